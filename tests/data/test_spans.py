"""Documents say where on their pages they stand, in every form."""

import json
from pathlib import Path

import pandas as pd
import pytest

import judgekit as jk
from judgekit.data.documents import Doc
from judgekit.data.frames import as_docs
from judgekit.data.readers import read_docs, write_docs
from judgekit.data.spans import evidence_in, evidence_of, where
from judgekit.errors import DataError

ROWS = [
    {"doc_id": "a", "text": "one", "page_id": "p", "start": 0, "end": 3},
    {"doc_id": "b", "text": "two", "page_id": "p", "start": 4, "end": 7},
]
PLACED = [("p", 0, 3), ("p", 4, 7)]


def places(docs: object) -> list[tuple[object, ...]]:
    return [(d.page_id, d.start, d.end) for d in docs.get(["a", "b"])]  # type: ignore[attr-defined]


def test_spans_are_read_from_every_form_and_nobody_has_to_give_them(tmp_path: Path) -> None:
    pd.DataFrame(ROWS).to_csv(tmp_path / "docs.csv", index=False)
    write_docs(read_docs(tmp_path / "docs.csv"), tmp_path / "docs.jsonl")
    for name in ("docs.csv", "docs.jsonl"):
        assert places(read_docs(tmp_path / name)) == places(read_docs(tmp_path / name, memory_limit=0)) == PLACED
    assert places(as_docs(pd.DataFrame(ROWS))) == places(as_docs(ROWS)) == PLACED
    (tmp_path / "none.csv").write_text("doc_id,text,page_id,start,end\na,x,,,\nb,y,p,0,1\n")
    assert places(read_docs(tmp_path / "none.csv")) == [(None, None, None), ("p", 0, 1)]
    # A start without a page is a column of the user's own.
    assert places(as_docs([{"doc_id": d, "text": "", "start": "at noon"} for d in "ab"])) == [(None, None, None)] * 2


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"start": 3, "end": 3}, "ends on its page at 3, which is not after its start at 3"),
        ({"start": -1, "end": 3}, "'start' must be a whole number of characters of the page, from 0, not -1"),
        ({"start": 0, "end": 1e20}, "'end' must be a whole number of characters"),
        ({"start": 0, "end": 2.5}, "'end' must be a whole number of characters"),
        ({"start": True, "end": 3}, "not True"),
        ({"start": 0}, "has a start or an end on its page, but not both"),
        ({"end": 3}, "has a start or an end on its page, but not both"),
    ],
)
def test_a_span_that_is_none_is_an_error_with_its_line(
    tmp_path: Path, fields: dict[str, object], expected: str
) -> None:
    path = tmp_path / "docs.jsonl"
    path.write_text(json.dumps({"doc_id": "a", "text": "", "page_id": "p", **fields}) + "\n")
    with pytest.raises(DataError, match=expected) as error:
        read_docs(path)
    assert error.value.line == 1


def test_evidence_is_found_as_the_shortest_words_that_hold_it() -> None:
    doc = Doc("d", "In Paris, the capital; Paris again.", "On Paris", "p", 100, 135)
    assert evidence_in(doc, lambda words: "Paris" in words, 3) == {"103-109", "123-128", "title"}
    assert evidence_in(doc, lambda words: "Paris again" in words, 3) == {"123-135"}
    assert evidence_of("title 103-109") == [(-1, 0), (103, 109)]
    with pytest.raises(DataError, match=r"evidence must be named like 'title 120-127 340-347', .* not 'here'"):
        evidence_of("here")
    # Where the text is not that of the span letter by letter, nobody knows where its words stand.
    for end in (8, None):
        assert evidence_in(Doc("d", "In  Paris", "", "p", 0, end), lambda words: True, 3) == set()


def test_a_doc_without_a_whole_span_has_no_columns_of_one() -> None:
    assert where(Doc("d", "", page_id="p", end=3)) == {}


def test_a_table_of_labels_is_read_as_qrels_with_its_statuses_and_where_its_evidence_stands(tmp_path: Path) -> None:
    columns = ["query_id", "doc_id", "relevance", "status", "page_id", "start", "end", "evidence"]
    rows = [("q", "a", 1.0, "ok", "p", 0, 50, "10-15"), ("q", "b", 1.0, "ok", "p", 5, 60, "10-15")]
    rows += [("q2", "c", None, "refused", "p", 80, 90, "")]
    path = tmp_path / "labels.parquet"
    pd.DataFrame(rows, columns=columns).to_parquet(path)
    labeling = jk.read_qrels(path)
    assert (labeling.name, labeling.counts()["refused"], str(labeling.scale)) == ("labels", 1, "grades:1")
    found = jk.score({"q": {"a": 2, "b": 1}, "q2": {"c": 1}}, path, "R(unit=evidence)@1 R@1")
    assert found.means()["value"].tolist() == [1, 0.5]
    pd.DataFrame(rows, columns=columns).assign(relevance=0.5, status="ok").to_parquet(path)
    with pytest.raises(DataError, match=r"labels.parquet: .*declare what decimals mean"):
        jk.read_qrels(path)
    assert len(jk.read_qrels(path, scale=jk.Scale.parse("unit"))) == 3
