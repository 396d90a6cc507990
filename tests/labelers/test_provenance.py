"""Existing qrels as labels, for documents and for the pages that they are of."""

import json
from pathlib import Path

import pytest

from judgekit.data.documents import Doc, MemoryDocs, Query, Unit
from judgekit.data.tables import Status
from judgekit.errors import DataError, UsageError
from judgekit.labelers.base import build
from judgekit.labelers.contract import checked
from tests.labelers.scripted import Here

DOCS = [
    Doc("p1-a", "one", "Paris", "p1"),
    Doc("p1-b", "two", "Paris", "p1"),
    Doc("p2-a", "three", "Berlin", "p2"),
    Doc("x", "four"),
]
QRELS = "q1 0 p1-a 2\nq1 0 p2-a 1\nq2 0 p2-a 1\nq1 0 gone 3\n"


@pytest.fixture
def here(tmp_path: Path) -> Here:
    (tmp_path / "gold.qrels").write_text(QRELS)
    (tmp_path / "binary.qrels").write_text("q1 0 p1-a 1\nq1 0 x 0\n")
    (tmp_path / "pages.qrels").write_text("q1 0 p1 1\n")
    (tmp_path / "several.qrels").write_text("q1 0 p1-a 1\nq1 0 p1-b 2\n")
    return Here(tmp_path, docs=MemoryDocs(DOCS))


def labels(spec: str, here: Here, query_id: str = "q1") -> list[float | None]:
    unit = Unit(Query(query_id, "?"), tuple(DOCS))
    return [label.relevance for label in checked(build(spec, here), unit, [])]


@pytest.mark.parametrize(
    ("options", "expected", "scale"),
    [
        ("qrels='gold.qrels'", [2, 0, 1, 0], "grades:3"),
        ("qrels='gold.qrels', expand=page", [2, 2, 1, 0], "grades:3"),
        ("qrels='gold.qrels', expand=title", [2, 2, 1, 0], "grades:3"),
        ("qrels='gold.qrels', scale='grades:4:2'", [2, 0, 1, 0], "grades:4:2"),
        ("qrels='binary.qrels'", [1, 0, 0, 0], "binary"),
        ("qrels='binary.qrels', expand=page", [1, 1, 0, 0], "binary"),
        ("qrels='pages.qrels', expand=page", [1, 1, 0, 0], "binary"),
        ("qrels='pages.qrels'", [0, 0, 0, 0], "binary"),
        ("qrels='several.qrels', expand=page", [2, 2, 0, 0], "grades:2"),
    ],
)
def test_relevance_is_the_files_or_the_pages(options: str, expected: list[float], scale: str, here: Here) -> None:
    spec = f"provenance({options})"
    assert labels(spec, here) == expected
    assert str(build(spec, here).scale) == scale


def test_kilts_evidence_finds_passages_that_have_titles_only(tmp_path: Path) -> None:
    evidence = [{"wikipedia_id": "290", "title": "New York"}, {"wikipedia_id": "7", "title": "Bo"}]
    query = {"id": "q1", "input": "Where?", "output": [{"answer": "x", "provenance": evidence}]}
    (tmp_path / "nq.jsonl").write_text(json.dumps(query) + "\n")
    docs = [Doc("1", "a", "New York"), Doc("2", "b", "New_York"), Doc("3", "c", "York")]
    labeler = build("provenance(qrels='nq.jsonl', expand=title)", Here(tmp_path, docs=MemoryDocs(docs)))
    found = checked(labeler, Unit(Query("q1", "?"), tuple(docs)), [])
    assert [label.relevance for label in found] == [1, 1, 0]


@pytest.mark.parametrize("expand", ["none", "page"])
def test_a_query_that_the_file_does_not_judge_at_all_is_not_applicable_unless_the_user_says_zero(
    expand: str, here: Here
) -> None:
    na = Status.NOT_APPLICABLE
    for unlisted, status in (("judged", na), ("missing", na), ("zero", Status.OK)):
        spec = f"provenance(qrels='gold.qrels', expand={expand}, unlisted={unlisted})"
        found = checked(build(spec, here), Unit(Query("q3", "?"), tuple(DOCS)), [])
        assert {(label.status, label.extra["judged"]) for label in found} == {(status, 0)}
        assert {label.relevance for label in found} == {0 if status is Status.OK else None}
        assert labels(spec, here, "q2") == ([None, None, 1, None] if unlisted == "missing" else [0, 0, 1, 0])
    assert build("provenance(qrels='gold.qrels')", here).unlisted == "judged"  # type: ignore[attr-defined]


def test_a_query_of_which_the_file_says_that_it_is_not_applicable_is_not_judged(here: Here) -> None:
    (here.base / "gold.qrels").write_text("q1 0 p1-a 1\n")
    (here.base / "gold.missing.tsv").write_text("query_id\tdoc_id\tstatus\nq2\tp1-b\tnot_applicable\n")
    assert labels("provenance(qrels='gold.qrels')", here, "q2") == [None] * 4


def test_what_is_missing_in_the_file_is_missing_unless_the_page_is_relevant(here: Here) -> None:
    (here.base / "gold.qrels").write_text("q1 0 p1-a 1\n")
    (here.base / "gold.missing.tsv").write_text("query_id\tdoc_id\tstatus\nq1\tp1-b\tunparsed\nq1\tp2-a\tfailed\n")
    for expand, other in (("none", Status.UNPARSED), ("page", Status.OK)):
        labeler = build(f"provenance(qrels='gold.qrels', expand={expand})", here)
        found = checked(labeler, Unit(Query("q1", "?"), tuple(DOCS)), [])
        assert [x.status for x in found] == [Status.OK, other, Status.FAILED, Status.OK]
        assert found[2].reason


def test_a_page_that_is_not_relevant_does_not_fill_in_what_is_missing(here: Here) -> None:
    (here.base / "gold.qrels").write_text("q1 0 p1-a 0\nq1 0 p2-a 1\n")
    (here.base / "gold.missing.tsv").write_text("query_id\tdoc_id\tstatus\nq1\tp1-b\tunparsed\n")
    assert labels("provenance(qrels='gold.qrels', expand=page)", here) == [0, None, 1, 0]


NO_PAGES = MemoryDocs([Doc("p1-a", "t"), DOCS[3]])


@pytest.mark.parametrize(
    ("options", "docs", "message"),
    [
        ("", NO_PAGES, "needs qrels=…, file of existing judgments"),
        ("(qrels='missing.qrels')", NO_PAGES, r"missing\.qrels"),
        ("(qrels='gold.qrels', expand=page)", None, "give the collection"),
        ("(qrels='binary.qrels', expand=page)", NO_PAGES, "no document in the file has a page_id"),
        ("(qrels='gold.qrels', expand=section)", NO_PAGES, "expand must be one of"),
        ("(qrels='gold.qrels', scale=stars)", NO_PAGES, "is not a scale"),
        ("(qrels='off.qrels', scale='grades:3')", NO_PAGES, "line 1"),
    ],
)
def test_mistakes_end_in_a_sentence(options: str, docs: MemoryDocs | None, message: str, here: Here) -> None:
    (here.base / "off.qrels").write_text("q1 0 d 10\n")
    with pytest.raises((DataError, UsageError), match=message):
        build(f"provenance{options}", Here(here.base, docs=docs))
