"""Labelings and their scales."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, strategies as st

from judgekit.data.columns import Pairs, find, repeated, run_lengths, strings
from judgekit.data.files import write_labels, write_table
from judgekit.data.labelings import LabelFile, Labeling, Scale
from judgekit.data.runs import Run
from judgekit.data.tables import Status
from judgekit.errors import DataError, UsageError
from judgekit.labelers.base import Label
from judgekit.labelling import frame_of


def table(*rows: tuple[str, str, float | None, str]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["query_id", "doc_id", "relevance", "status"])


@pytest.mark.parametrize(
    ("text", "scale"),
    [
        ("binary", Scale("binary", 1, 0, 1)),
        ("grades:3:2", Scale("grades", 3, 0, 2)),
        ("grades:-2..3", Scale("grades", 3, -2, 1)),
        ("means:5:2", Scale("means", 5, 0, 2)),
        ("means:-2..4:3", Scale("means", 4, -2, 3)),
        ("unit", Scale("unit")),
    ],
)
def test_scales_have_one_spelling(text: str, scale: Scale) -> None:
    assert Scale.parse(text) == scale
    assert str(scale) == text


@pytest.mark.parametrize("text", ["", "grade:3", "grades:3:", "grades:0", "grades:3..2", "means:x"])
def test_what_is_no_scale_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        Scale.parse(text)


_NUMBERS = st.floats(-4, 4) | st.integers(-4, 4)


@given(st.sampled_from(["binary", "grades:3", "grades:-1..2", "means:3:2", "unit", "signed"]), _NUMBERS)
@example("unit", 1.5)
@example("unit", -0.5)
@example("means:3:2", 3.5)
def test_a_value_is_on_the_scale_exactly_if_it_has_no_problem(text: str, value: float) -> None:
    scale = Scale.parse(text)
    assert scale.low == {"grades:-1..2": -1, "signed": -1}.get(text, 0)
    assert scale.holds(np.array([value], np.float64))[0] == (scale.problem(float(value)) is None)


def test_rows_are_sorted_by_query_and_doc_and_keep_their_further_columns() -> None:
    frame = table(
        ("q2", "b", 1, "ok"), ("q1", "b", None, "failed"), ("q2", "a", 0, "ok"), ("q1", "a", None, "not_applicable")
    )
    labeling = Labeling("x", Scale.parse("binary"), frame.assign(raw=["r0", "r1", "r2", "r3"]))
    columns = ["query_id", "doc_id", "status", "raw"]
    expected = ["q1 a not_applicable r3", "q1 b failed r1", "q2 a ok r2", "q2 b ok r0"]
    assert [*map(" ".join, labeling.table[columns].values.tolist())] == expected
    np.testing.assert_array_equal(labeling.table["relevance"], [np.nan, np.nan, 0, 1])
    given = dict.fromkeys(Status, 0) | {"ok": 2, "failed": 1, "not_applicable": 1}
    assert labeling.counts() == given
    assert (len(labeling), repr(labeling)) == (4, "Labeling('x', scale=binary, labels=4)")
    assert Labeling("x", labeling.scale, frame[["query_id", "doc_id", "relevance"]].dropna()).counts()["ok"] == 2


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("q", "d", 1, "ok"), ("p", "d", 1, "ok"), ("q", "d", 0, "ok")], "query 'q', doc 'd' is labelled twice"),
        ([("q", "d", 2, "ok")], "doc 'd': relevance 2 is outside the scale binary"),
        ([("q", "d", 0.5, "ok")], "relevance 0.5 is not a whole number, which the scale binary needs$"),
        ([("q", "d", None, "ok")], "relevance nan is not finite"),
        ([("q", "d", 1, "failed")], "has a relevance, but status 'failed'"),
        ([("q", "d", 1, "okay")], "unknown status 'okay'"),
        ([("all", "d", 1, "ok")], "reserved id 'all'"),
    ],
)
def test_rows_that_make_no_labeling_are_refused(rows: list, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Labeling("x", Scale.parse("binary"), table(*rows))
    with pytest.raises(DataError, match="name of a labeling is empty"):
        Labeling(" ", Scale.parse("binary"), table(*rows))


@given(st.lists(st.lists(st.sampled_from(["a", "b", "ü", ""]), max_size=6), max_size=4))
def test_stretches_are_those_of_the_column_however_it_is_cut(parts: list[list[str]]) -> None:
    column = [q for part in parts for q in part]
    whole = run_lengths(strings(column))
    ids = [whole.ids[code] for code in whole.codes]
    assert [q for q, n in zip(ids, np.diff(whole.bounds), strict=True) for _ in range(n)] == column
    assert whole.ids == list(dict.fromkeys(column))
    joined = run_lengths(*map(strings, parts))
    assert joined.ids == whole.ids
    assert joined.codes.tolist() == whole.codes.tolist()
    assert joined.bounds.tolist() == whole.bounds.tolist()


@given(st.lists(st.integers(0, 2**64 - 1), unique=True, max_size=40), st.lists(st.integers(0, 2**64 - 1), max_size=40))
def test_keys_are_found_whatever_their_bits(known: list[int], others: list[int]) -> None:
    near = [key ^ 1 for key in known[::2]]
    asked = [*known[::-1], *others, *near]
    for among in (np.array(known, np.uint64), np.array(known * 2, np.uint64)):
        found = find(np.array(asked, np.uint64), among)
        assert (found >= 0).tolist() == [key in known for key in asked]
        assert among[found[found >= 0]].tolist() == [key for key in asked if key in known]


@pytest.mark.parametrize(
    ("scale", "least"),
    [("binary", 1), ("grades:3", 1), ("grades:3:2", 2), ("means:5:2", 2), ("unit", 0.5), ("signed", 0)],
)
def test_a_label_is_relevant_from_the_declared_one_or_the_middle_of_the_scale(scale: str, least: float) -> None:
    assert Scale.parse(scale).threshold == least


def test_labels_are_found_by_pair_and_counted_in_steps_of_their_scale() -> None:
    rows = [("q", f"d{i:02}", i / 20, "ok") for i in range(21)]
    shown = Labeling("x", Scale("unit"), table(*rows, ("p", "d", None, "failed")))
    np.testing.assert_array_equal(shown.at([("q", "d10"), ("p", "d"), ("q", "none")]), [0.5, np.nan, np.nan])
    assert (len(shown.shares()), shown.shares()["0 to 0.1"], shown.shares()["0.9 to 1"]) == (10, 2, 3)
    assert Labeling("x", Scale("unit"), table(*rows[:3])).shares() == {"0": 1, "0.05": 1, "0.1": 1}


def test_what_is_made_of_a_table_stays_when_the_table_changes() -> None:
    values, scores = np.array([1.0, 0.0]), np.array([2.0, 1.0])
    columns = {"query_id": ["q", "q"], "doc_id": ["a", "b"], "relevance": values, "score": scores}
    frame = pd.DataFrame({name: pd.Series(column, copy=False) for name, column in columns.items()}, copy=False)
    first, second = (Labeling("x", Scale.parse("binary"), frame) for _ in range(2))
    run = Run.from_frame(frame, "run")
    expected = first.table
    frame.loc[0, ["doc_id", "query_id"]] = "c"
    frame.loc[0, ["relevance", "score"]] = 7.0
    values[:], scores[:] = 7, 7
    pd.testing.assert_frame_equal(second.table, expected)
    assert second.row_relevance.tolist() == [1, 0]
    assert (run.top("q"), run.frame()["score"].tolist()) == (["a", "b"], [2, 1])


def test_an_id_that_is_repeated_is_found() -> None:
    pairs = Pairs(run_lengths(strings(["q", "q", "r", "q"])), strings(["a", "b", "a", "a"]), np.ones(4))
    assert repeated(pairs, np.arange(4, dtype=np.uint64)) is None
    assert repeated(pairs, np.zeros(4, np.uint64)) == ("q", "a")
    apart = Pairs(run_lengths(strings(["q", "q", "r"])), strings(["a", "b", "a"]), np.ones(3))
    assert repeated(apart, np.zeros(3, np.uint64)) is None


LABELLED = [
    Label("q2", "a", 1.0, raw="1", extra={"votes": 3, "page_id": "p", "start": 0, "end": 9}),
    Label("q1", "c", None, Status.REFUSED, raw="no", reason="declined"),
    Label("q1", "b", 0.0, extra={"answer": "x", "votes": 2}),
    Label("q3", "a", 1.0, extra={"share": 0.5}),
    Label("q2", "b", 0.0),
]


@pytest.mark.parametrize("at", [(), (1,), (4,), (1, 2, 3, 4), (0, 2, 5)])
def test_labels_that_were_kept_on_disk_make_the_same_table_and_file(tmp_path: Path, at: tuple[int, ...]) -> None:
    """Bytes and dtypes too, whichever columns the parts hold; nothing is left in the folder, nor if one is killed."""
    whole = Labeling("l", Scale("binary"), frame_of(LABELLED))
    write_table(whole.table, tmp_path / "whole.parquet")
    (tmp_path / "kept").mkdir()
    *parts, last = [LABELLED[i:j] for i, j in pairwise([0, *at, len(LABELLED)])]
    with LabelFile(tmp_path / "kept") as kept:
        for part in parts:
            kept.add(frame_of(part))
            assert not any((tmp_path / "kept").iterdir())
        table = kept.table(frame_of(last))
    with pytest.raises(DataError, match="nowhere: labels cannot be written here"):
        LabelFile(Path("nowhere")).add(frame_of(LABELLED))
    labeling = Labeling("l", Scale("binary"), table)
    pd.testing.assert_frame_equal(labeling.table, whole.table)
    pd.testing.assert_frame_equal(pd.concat(labeling.blocks(rows=2), ignore_index=True), whole.table)
    assert [list(block) for block in labeling.blocks("status", "judged")] == [["status"]]
    write_labels(labeling, tmp_path / "parts.parquet")
    assert (tmp_path / "parts.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    rows = np.array([3, 0, 1])
    assert labeling.columns(rows, "page_id", "raw", "other") == whole.columns(rows, "page_id", "raw", "other")
    assert (labeling.row_docs.equals(whole.row_docs), labeling.row_queries) == (True, whole.row_queries)


@given(
    st.lists(
        st.tuples(st.sampled_from(["q1", "q2"]), st.sampled_from("abcdef"), st.sampled_from(list(Status))),
        unique_by=lambda row: row[:2],
    )
)
def test_labels_that_failed_are_those_of_the_table(rows: list[tuple[str, str, Status]]) -> None:
    made = table(*((q, d, 1.0 if status is Status.OK else None, status.value) for q, d, status in rows))
    labeling = Labeling("l", Scale("binary"), made.assign(reason=[f"because of {d}" for _, d, _ in rows]))
    whole = labeling.table[["query_id", "doc_id", "status", "reason"]]
    failed = whole[~whole["status"].isin(["ok", "not_applicable", "unasked"])]
    assert labeling.failed().to_csv(index=False) == failed.to_csv(index=False)
