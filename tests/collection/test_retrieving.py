"""Retrievers in the place of runs: what they return for each question is the run."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import judgekit as jk
from judgekit.errors import UsageError

QUERIES = {"q1": {"text": "Who wrote Emma?", "answers": ["Jane Austen"]}, "q2": {"text": "Who?", "answers": ["Ann"]}}
PASSAGES = ["Emma is by Jane Austen.", "Emma is a name.", "A cat.", "A dog."]


class Document:
    """A document as LangChain has it."""

    def __init__(self, text: str) -> None:
        self.page_content, self.metadata = text, {"source": f"{text[:6]}.md"}


def plain(text: str) -> list[dict[str, str]]:
    return [{"id": f"d{number}", "text": passage} for number, passage in enumerate(PASSAGES)]


def with_k(text: str, k: int) -> list[dict[str, str]]:
    return plain(text)[:k]


def with_top_k(text: str, *, top_k: int = 1) -> list[dict[str, str]]:
    return plain(text)[:top_k]


class LangChain:
    def invoke(self, text: str, config: object = None) -> list[Document]:
        return [Document(passage) for passage in PASSAGES]


class LlamaIndex:
    def retrieve(self, text: str) -> list[SimpleNamespace]:
        return [
            SimpleNamespace(score=0.5, node=SimpleNamespace(text=passage, node_id=f"n{number}", metadata={}))
            for number, passage in enumerate(PASSAGES)
        ]


class Haystack:
    def run(self, query: str) -> dict[str, Any]:
        return {
            "documents": [
                SimpleNamespace(content=passage, id=passage.replace(" ", "-"), meta={}) for passage in PASSAGES
            ]
        }


@pytest.mark.parametrize("retriever", [plain, with_k, with_top_k, LangChain(), LlamaIndex(), Haystack()])
def test_a_retriever_is_asked_every_question_and_its_order_is_the_run(retriever: Any) -> None:
    labels = jk.label("containment", queries=QUERIES, runs=retriever, depth=3).table
    assert labels.groupby("query_id")["relevance"].agg(["size", "sum"]).to_numpy().tolist() == [[3, 1.0], [3, 0.0]]


def test_several_retrievers_share_their_passages() -> None:
    labels = jk.label("containment", queries=QUERIES, runs={"a": plain, "b": lambda text: plain(text)[::-1]}, depth=3)
    assert len(labels) == 8


def test_documents_that_are_given_are_the_ones_that_are_labelled() -> None:
    docs = {f"d{number}": "Jane Austen, Ann" for number in range(4)}
    for found in (["d0", "d3"], [("d3", 0.1), ("d0", 0.9)], [{"id": "d0", "score": 2.0}, {"id": "d3"}]):
        labels = jk.label(
            "containment", queries=QUERIES, docs=docs, runs=lambda text, found=found: found, depth=2
        ).table
        assert labels["relevance"].tolist() == [1.0] * 4


def test_texts_alone_and_passages_with_scores_are_passages() -> None:
    scored = [(Document(passage), np.float32(place)) for place, passage in enumerate(PASSAGES)]
    for found in (PASSAGES, [(passage, 0.5) for passage in PASSAGES], scored, iter(PASSAGES * 2)):
        labels = jk.label("containment", queries=QUERIES, runs=lambda text, found=found: list(found), depth=4).table
        assert labels.loc[labels["query_id"] == "q1", "relevance"].sum() == 1
    # Nothing for one question is an empty list.
    some = jk.label("containment", queries=QUERIES, runs=lambda text: PASSAGES if "Emma" in text else [], depth=4)
    assert set(some.table["query_id"]) == {"q1"}


async def waiting(text: str) -> list[str]:
    return PASSAGES


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        (lambda text: "a text", "must return a list of passages"),
        (lambda text: 1 / 0, "query 'q1': ZeroDivisionError"),
        ({"a": plain, "b": "b.trec"}, "run 'b' is not a retriever"),
        ("missing.trec", "docs is missing"),
        (LangChain, "docs is missing: .*not its class"),
        (SimpleNamespace(as_retriever=LangChain), r"SimpleNamespace is no retriever, .* as_retriever\(\) of it"),
        ({"a": plain, "b": SimpleNamespace(as_retriever=LangChain)}, r"give as_retriever\(\) of it"),
        ([plain, with_k], "several retrievers need a name each"),
        (lambda text: [], "retriever 'retriever' returned nothing for any of the 2 queries"),
        (lambda text: ["d0", "d1"], "docs is missing: retriever 'retriever' returns ids"),
        (lambda text: {"d0": 1.0}, "query 'q1': it returned a dictionary with the keys 'd0'"),
        (lambda text: [{"body_text": "x"}], "query 'q1': a passage has neither text nor id .*body_text"),
        (lambda text: ["d0", {"id": "d1", "text": "a cat"}], "query 'q1': .* with their texts and without"),
        (waiting, r"query 'q1': it is asynchronous: .* asyncio.run"),
    ],
)
def test_what_is_no_list_of_passages_is_refused(runs: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        jk.label("containment", queries=QUERIES, runs=runs)


@pytest.mark.parametrize("runs", [plain, {"dense": plain}, [plain], LangChain()])
def test_where_there_are_no_questions_a_retriever_is_no_run(runs: Any) -> None:
    with pytest.raises(UsageError, match=r"retrieves, and only .* ask it once"):
        jk.score(runs, {"q1": {"d0": 1}}, "P@1")
