"""Documents share evidence where their spans, or the places of their evidence, overlap."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

import judgekit as jk
from judgekit.data.documents import Doc, MemoryDocs
from judgekit.data.runs import Run
from judgekit.metrics.cuts import cut_differently, disjoint
from judgekit.metrics.overlapping import Spans, sharing, spans_of


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
