"""Runs from the retrievers that people have: each library's by what it can do, plain functions by what they return."""

from types import SimpleNamespace
from typing import Any

import pytest

import judgekit as jk
from judgekit.data.forms import content_id
from judgekit.errors import DataError, UsageError

QUERIES = {"q1": "one", "q2": "two"}
TEXTS = {"d1": "first", "d2": "second", "d3": "third"}


class LangChain:
    def invoke(self, text: str, config: Any = None) -> list[Any]:
        made = ((said, {"key": name, "title": "T"}) for name, said in TEXTS.items())
        return [SimpleNamespace(page_content=said, metadata=meta, id=None) for said, meta in made]


class LlamaIndex:
    def retrieve(self, text: str) -> list[Any]:
        nodes = [SimpleNamespace(node_id=name, get_content=TEXTS[name].__str__, metadata={}) for name in TEXTS]
        return [SimpleNamespace(node=node, score=0.1 * place) for place, node in enumerate(nodes)]


class Haystack:
    def run(self, query: str, filters: Any = None, top_k: int | None = None) -> dict[str, list[Any]]:
        made = (SimpleNamespace(id=name, content=said, score=1.0, meta={}) for name, said in TEXTS.items())
        return {"documents": [*made][:top_k]}


class Embedding:
    def run(self, query_embedding: list[float], top_k: int = 10) -> dict[str, list[Any]]:
        return {"documents": []}


@pytest.mark.parametrize(
    "retriever",
    [
        LlamaIndex(),
        Haystack(),
        lambda text: ["d1", "d2", "d3"],
        lambda text, k: list(TEXTS)[:k],
        lambda text: [("d3", 0.1), ("d2", 0.2), ("d1", 0.3)],
        lambda text: [{"doc_id": name, "text": said} for name, said in TEXTS.items()],
        lambda text: [(jk.Doc(name, said), 0.5) for name, said in TEXTS.items()],
    ],
)
def test_lists_become_a_run_in_their_order(retriever: Any) -> None:
    run = jk.run_from(retriever, QUERIES, 2, name="mine")
    assert run.name == "mine"
    assert {query: run.top(query) for query in QUERIES} == {"q1": ["d1", "d2"], "q2": ["d1", "d2"]}


def test_documents_without_an_id_have_one_of_their_text_or_of_a_field() -> None:
    docs: dict[str, jk.Doc] = {}
    run = jk.run_from(LangChain(), QUERIES, docs=docs)
    ids = [content_id("T", said) for said in TEXTS.values()]
    assert run.top("q1") == ids
    assert docs[ids[0]] == jk.Doc(ids[0], "first", "T")
    assert jk.run_from(LangChain(), QUERIES, id_field="key").top("q2") == list(TEXTS)
    assert jk.run_from(LlamaIndex(), QUERIES, id_field="text").top("q2") == [content_id("", s) for s in TEXTS.values()]


@pytest.mark.parametrize(
    ("retriever", "error", "message"),
    [
        ("bm25", UsageError, "a retriever is a function .*; got str"),
        (Embedding(), UsageError, "takes no query"),
        (lambda text: None, DataError, "query 'q1': .*; got NoneType"),
        (lambda text: ["d1", "d1"], DataError, r"lists doc 'd1' twice for query 'q1' \(name the ids' field with"),
        (lambda text: ["a b"], DataError, "query 'q1', place 1: the doc id 'a b' holds white space"),
        (lambda text: [3.5], DataError, "query 'q1', place 1: the doc id is empty"),
    ],
)
def test_what_is_not_a_retriever_is_told_what_was_expected(
    retriever: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        jk.run_from(retriever, QUERIES)
