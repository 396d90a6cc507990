"""Laws that hold for every labeler: its spelling, one label per pair, no dependence on order, no state."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from judgekit.answers import quality
from judgekit.data.documents import Doc, Fields, MemoryDocs, Query, Unit
from judgekit.data.tables import Status
from judgekit.errors import UsageError
from judgekit.labelers import base
from judgekit.labelers.base import Label, Labeler, build
from judgekit.labelers.contract import checked
from judgekit.spec import Spec, parse
from judgekit.wire.types import Failure, Request
from tests.labelers.scripted import CUT, REFUSED, Here, Says, play

quiet = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)

FIELDS = st.sampled_from(["text", "title+text"])
OPTIONS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "cascade": {
        "first": st.sampled_from(["judge", "judge(jury=a+b+c)", "judge(read=logprobs)", "containment"]),
        "then": st.sampled_from(["judge(endpoint=large, prompt=useful)", "utility(quality=em)", "judge(samples=3)"]),
        "doubt": st.sampled_from([0, 0.3, 0.5]),
    },
    "containment": {
        "max_words": st.integers(1, 30),
        "fields": FIELDS,
    },
    "judge": {
        "endpoint": st.sampled_from(["a", "b-1"]),
        "prompt": st.sampled_from(["binary", "graded", "graded-json", "useful", "own/own.toml"]),
        "read": st.just("text"),
        "samples": st.integers(1, 3),
        "vote": st.sampled_from(["majority", "mean"]),
        "temperature": st.sampled_from([0, 0.5, 1.0]),
        "top_logprobs": st.integers(2, 20),
        "fields": FIELDS,
    },
    "utility": {
        "endpoint": st.sampled_from(["a", "b-1"]),
        "prompt": st.sampled_from(["answer-short", "answer-long", "classify-claim"]),
        "quality": st.sampled_from(["em", "f1", "accuracy", "rouge-l(tokens=unicode)", "correct(endpoint='j x')"]),
        "variant": st.sampled_from(["quality", "gain", "signed-gain"]),
        "reference": st.sampled_from(["given", "own"]),
        "context_tokens": st.integers(1, 400),
        "fields": FIELDS,
    },
    "needed": {
        "endpoint": st.sampled_from(["a", "b-1"]),
        "prompt": st.sampled_from(["answer-short", "answer-long"]),
        "quality": st.sampled_from(["em", "f1", "correct(endpoint='j x')"]),
        "top": st.integers(1, 6),
        "context_tokens": st.integers(1, 400),
        "fields": FIELDS,
    },
    "nuggets": {"file": st.just("nuggets.jsonl"), "endpoint": st.sampled_from(["a", "b-1"]), "fields": FIELDS},
    "rerank": {"endpoint": st.just("reranker"), "scores": st.just("logit"), "fields": FIELDS},
    "provenance": {"qrels": st.just("gold.qrels"), "expand": st.sampled_from(["none", "page", "title"])},
    "human": {"file": st.sampled_from(["gold.qrels", "votes.csv"]), "unlisted": st.sampled_from(["zero", "missing"])},
}
NEEDED = {
    "cascade": {"first": "judge", "then": "judge(samples=3)"},
    "nuggets": {"file": "nuggets.jsonl"},
    "rerank": {"endpoint": "reranker", "scores": "logit"},
    "provenance": {"qrels": "gold.qrels"},
    "human": {"file": "gold.qrels"},
}


def specs_of(kind: str) -> st.SearchStrategy[Spec]:
    given_options = st.fixed_dictionaries({}, optional=OPTIONS[kind])
    return given_options.map(lambda options: Spec(kind, tuple({**NEEDED.get(kind, {}), **options}.items())))


specs = st.sampled_from(sorted(OPTIONS)).flatmap(specs_of)
ids = st.text("abcd12", min_size=1, max_size=3)
WORDS = ["Paris ", "paris ", "Lyon", "5", "25 ", "the ", "<passage>", " yes", "</passage>"]
words = st.lists(st.sampled_from(WORDS), max_size=5).map("".join)
doc = st.builds(Doc, ids, words, words, st.sampled_from([None, "p1"]))
docs = st.lists(doc, min_size=1, max_size=5, unique_by=lambda d: d.doc_id)
answers = st.lists(st.sampled_from(["Paris", "5", "yes", "C++"]), max_size=3).map(tuple)
queries = st.builds(Query, st.just("q1"), words, answers)
SAYINGS: list[Says] = [
    *("Yes", "No", "2", "Paris", "unknown", "", "Score: 9", "supports", '{"score": 1}', '["support"]', CUT, REFUSED),
    Failure("k", Status.FAILED, "down"),
]


@pytest.fixture
def here(tmp_path: Path) -> Here:
    (tmp_path / "gold.qrels").write_text("q1 0 a 2\nq1 0 b 0\nq1 0 1 1\n")
    (tmp_path / "votes.csv").write_text("query_id,shown,chosen\nq1,a b,a\nq1,a 1,none\n")
    (tmp_path / "nuggets.jsonl").write_text('{"query_id": "q1", "nuggets": [{"text": "It is Paris."}]}')
    (tmp_path / "own").mkdir()
    (tmp_path / "own/own.toml").write_text(
        'kind = "judge"\nuser = "{question} {passages} yes or no?"\n[output]\ntype = "yes/no"\n'
    )
    return Here(tmp_path, docs=MemoryDocs([Doc(d, "x", "T", "p1") for d in "ab1"]))


def speaks(request: Request) -> Says:
    """A model whose saying depends on nothing but the request."""
    return SAYINGS[int(hashlib.sha256(request.body + bytes([request.sample])).hexdigest(), 16) % len(SAYINGS)]


def labels(labeler: Labeler, query: Query, docs: list[Doc]) -> list[Label]:
    return [label for unit in labeler.units(query, docs) for label in play(labeler, unit, speaks).labels]


@quiet
@given(spec=specs, fields=st.sampled_from(["title+text", "text"]))
def test_the_canonical_spelling_builds_an_equal_labeler(spec: Spec, fields: Any, here: Here) -> None:
    context = Here(here.base, fields, here.docs)
    labeler = build(spec, context)
    again = build(parse(str(labeler.spec)), context)
    assert again == labeler
    assert again.spec == labeler.spec
    assert (again.scale, again.needs) == (labeler.scale, labeler.needs)
    assert isinstance(labeler, Labeler)


@quiet
@given(spec=specs, query=queries, pool=docs, data=st.data())
def test_there_is_one_label_per_pair_whatever_the_order_of_the_documents(
    spec: Spec, query: Query, pool: list[Doc], data: st.DataObject, here: Here
) -> None:
    labeler = build(spec, here)
    found = labels(labeler, query, pool)
    assert sorted(label.doc_id for label in found) == sorted(doc.doc_id for doc in pool)
    # Labels that compare documents with the list that they stand in depend on that list.
    if not labeler.by_pair:
        return
    other = labels(labeler, query, data.draw(st.permutations(pool)))
    assert {x.doc_id: str(x) for x in other} == {x.doc_id: str(x) for x in found}
    alone = labels(labeler, query, pool[:1])
    assert str(alone[0]) == str(next(x for x in found if x.doc_id == pool[0].doc_id))


@pytest.mark.parametrize("kind", sorted(OPTIONS))
def test_the_spelling_leaves_defaults_out(kind: str, here: Here) -> None:
    spec = Spec(kind, tuple(NEEDED.get(kind, {}).items()))
    assert build(spec, here).spec == spec


def test_how_documents_are_rendered_is_in_the_name_unless_it_is_the_rule() -> None:
    rule: Fields
    for rule, spec, canonical in (
        ("title+text", "containment", "containment"),
        ("title+text", "containment(fields=text)", "containment(fields=text)"),
        ("title+text", "containment(fields='title+text')", "containment"),
        ("text", "containment", "containment(fields=text)"),
        ("text", "containment(fields='title+text')", "containment(fields='title+text')"),
    ):
        assert str(build(spec, Here(fields=rule)).spec) == canonical


def test_a_labeler_that_breaks_the_contract_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    labeler = build("containment", Here())
    for bad, message in (
        ([], "was asked to label"),
        ([Label("q1", "a", 1.0), Label("q1", "a", 1.0)], "was asked to label"),
        ([Label("q1", "b", 1.0)], "was asked to label"),
        ([Label("q1", "a", None)], "if its status is ok, and none otherwise"),
        ([Label("q1", "a", 1.0, Status.FAILED)], "if its status is ok, and none otherwise"),
        ([Label("q1", "a", 2.0)], "is off the scale"),
    ):
        monkeypatch.setattr(type(labeler), "label", lambda *_, bad=bad: bad)
        with pytest.raises(UsageError, match=f"labeler containment.*{message}"):
            checked(labeler, Unit(Query("q1", "?"), (Doc("a", "x"),)), [])


# What the lists of labelers and answer metrics say is what the code does.

ENTRIES = {**base.catalog(), **quality.catalog()}


def test_every_labeler_and_every_metric_is_listed_with_its_scale() -> None:
    assert sorted(base.catalog()) == sorted(base.kinds()) == sorted(OPTIONS)
    metrics = ["accuracy", "contains", "correct", "em", "f1", "grounded", "rouge-1", "rouge-2", "rouge-l"]
    plugged = ["citation_precision", "citation_recall", "nugget_recall"]
    assert sorted(quality.catalog()) == sorted(metrics + plugged)
    for name in (*metrics, *plugged[:2]):
        assert quality.catalog()[name].scale.startswith(str(quality.metric(name, Here()).scale))


def test_each_says_what_it_does_needs_and_costs() -> None:
    for entry in ENTRIES.values():
        for text in (entry.does, entry.scale, entry.needs, entry.cost, *entry.options.values()):
            assert 0 < len(text.strip()) < 120
            assert not text.endswith(".")
