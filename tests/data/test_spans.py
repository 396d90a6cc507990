"""Documents say where on their pages they stand, in every form; and what shares evidence is found from that."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

import judgekit as jk
from judgekit.data.checks import cut_differently, disjoint
from judgekit.data.documents import Doc, MemoryDocs
from judgekit.data.frames import as_docs
from judgekit.data.readers import read_docs, write_docs
from judgekit.data.runs import Run
from judgekit.data.spans import Spans, evidence_in, evidence_of, sharing, spans_of, where
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


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 1), st.integers(0, 20), st.integers(1, 15)), min_size=1, max_size=12
    ),
    st.sampled_from([0.2, 0.5, 1.0]),
)
def test_what_shares_evidence_agrees_with_comparing_every_two(
    made: list[tuple[int, int, int, int]], overlap: float
) -> None:
    row, page, start, length = np.array(made, np.int64).T
    found = sharing(Spans(row, page, start, start + length), np.array([0, 0, 0, 1, 1, 1]), overlap)
    groups = [{i} for i in range(6)]
    for i, p, a, n in made:
        for j, q, b, m in made:
            if p == q and i // 3 == j // 3 and min(a + n, b + m) - max(a, b) >= overlap * min(n, m):
                one, other = (next(g for g in groups if x in g) for x in (i, j))
                groups = [g for g in groups if g not in (one, other)] + [one | other]
    assert {frozenset(np.flatnonzero(found == x).tolist()) for x in set(found.tolist())} == set(map(frozenset, groups))


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


def run_over(name: str, ids: list[str]) -> Run:
    return Run(name, ["q"] * len(ids), ids, list(range(len(ids))))


def test_runs_over_other_cuts_of_one_collection_are_told_from_runs_that_find_other_documents() -> None:
    small, large = ([f"{cut}{i}" for i in range(40)] for cut in "sl")
    one, other = run_over("small", small), run_over("large", large)
    assert [*disjoint([one, other, run_over("mixed", small[:20] + large[:20])])] == [("small", "large", 0.0)]
    assert [*disjoint([run_over("few", small[:5]), other])] == []
    spans = {"s": lambda i: (100 * i, 100 * i + 60), "l": lambda i: (100 * i, 100 * i + 100)}
    docs = MemoryDocs([Doc(d, "", "", "p", *spans[d[0]](int(d[1:]))) for d in small + large])
    assert cut_differently([one, other], docs)
    assert not cut_differently([one, run_over("same", small[::-1])], docs)
    assert not cut_differently([one, other], MemoryDocs([Doc(d, "", "", d, 0, 9) for d in small + large]))
    assert not cut_differently([one, other], MemoryDocs([Doc(d, "", "", d[0], 0, 9) for d in small + large]))
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


def test_spans_are_of_rows_whose_place_is_known_by_their_labels_or_their_documents() -> None:
    rows = [("a", "p", 0, 9, "2-4 6-8"), ("b", "p", None, 9, ""), ("c", "", 0, 9, ""), ("d", "r", 1, 5, "")]
    table = pd.DataFrame(rows, columns=["doc_id", "page_id", "start", "end", "evidence"])
    labeling = jk.Labeling("x", jk.Scale("binary"), table.assign(query_id="q", relevance=1.0))
    every = np.arange(4)
    spans = [(0, 0, 2, 4), (0, 0, 6, 8), (3, 1, 1, 5)]
    assert [*zip(*(x.tolist() for x in spans_of(labeling, every)), strict=True)] == spans
    docs = MemoryDocs([Doc("c", "", "", "p", 7, 9)])
    assert [*zip(*(x.tolist() for x in spans_of(labeling, every, docs)), strict=True)] == [
        *spans[:2], (2, 0, 7, 9), spans[2]
    ]  # fmt: skip


@pytest.mark.parametrize(("start", "alike"), [(15, True), (16, False)])
def test_spans_share_evidence_from_half_of_the_shorter_one(start: int, alike: bool) -> None:
    spans = Spans(np.array([0, 1]), np.array([0, 0]), np.array([0, start]), np.array([20, start + 10]))
    assert (sharing(spans, np.array([0, 0]), 0.5).tolist() == [0, 0]) == alike
