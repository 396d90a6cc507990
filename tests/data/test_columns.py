"""Columns of ids and numbers: what is fast gives the same as what is plain."""

import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from judgekit.data import columns
from judgekit.data.columns import Pairs, grouped, order_ids, repeated, row_keys, run_lengths, strings
from judgekit.data.runs import Run, Ties

IDS = st.text(st.sampled_from("aAz0Ü字\x00\x7f"), max_size=4) | st.integers(0, 10**9).map(str) | st.text(max_size=12)


@given(st.lists(IDS, max_size=30), st.booleans())
def test_ids_are_sorted_by_their_bytes(ids: list[str], descending: bool) -> None:
    ids = [text for text in ids if text.isprintable() or "\x00" in text]
    expected = sorted(ids, key=str.encode, reverse=descending)
    assert [ids[row] for row in order_ids(strings(ids), descending=descending)] == expected
    # In the middle of a column, too, behind which other texts stand.
    part = strings(["before", *ids, "behind"]).slice(1, len(ids))
    assert [ids[row] for row in order_ids(part, descending=descending)] == expected


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2**31 - 1)), max_size=40))
def test_rows_are_grouped_as_by_a_stable_sort(rows: list[tuple[int, int]]) -> None:
    group, value = np.array(rows, np.int64).reshape(-1, 2).T
    ordered = np.argsort(value, kind="stable")
    assert grouped(ordered, group).tolist() == ordered[np.argsort(group[ordered], kind="stable")].tolist()


@pytest.mark.parametrize("place", range(12))
def test_a_pair_that_is_there_twice_is_found_wherever_its_rows_are_cut(
    place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "_CHUNK", 4)
    queries = [query for query, rows in zip("pqrs", (1, 7, 2, 3), strict=True) for _ in range(rows)]
    docs = [f"d{row}" for row in range(len(queries))]
    column = run_lengths(strings(queries))
    once = Pairs(column, strings(docs), np.ones(len(docs)))
    assert repeated(once, row_keys(column, once.docs)) is None
    docs[place + 1] = docs[place]
    twice = once._replace(docs=strings(docs))
    found = (queries[place], docs[place]) if queries[place] == queries[place + 1] else None
    assert repeated(twice, row_keys(column, twice.docs)) == found


@given(st.lists(st.integers(0, 60), max_size=80), st.integers(1, 9))
def test_keys_are_found_however_many_are_looked_up_at_a_time(asked: list[int], chunk: int) -> None:
    # Keys that share their first bits, so that many lose their place in the first table.
    among = np.arange(0, 60, 2, dtype=np.uint64)[::-1].copy()
    keys = np.array(asked, np.uint64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "_CHUNK", chunk)
        found = columns.find(keys, among)
    places = {int(key): row for row, key in enumerate(among)}
    assert found.tolist() == [places.get(key, -1) for key in asked]


def in_order(rows: int, tied: bool = False) -> Pairs:
    """Return the rows of one query, best first."""
    scores = np.arange(rows, 0, -1, dtype=np.float64)
    return Pairs(
        run_lengths(strings(["q"] * rows)), strings([f"d{9 * rows - row}" for row in range(rows)]), scores // (1 + tied)
    )


@pytest.mark.parametrize("tied", [False, True])
def test_columns_of_a_run_in_order_are_not_copied(tied: bool) -> None:
    rows = in_order(100_000, tied)
    Run.of("warm", in_order(10))
    tracemalloc.start()
    run = Run.of("run", rows)
    left, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    column = 8 * 100_000
    assert run.ranked_scores is rows.values
    assert run.docs_as_read is rows.docs
    # Keys are made, and of ties also where each document stands, with all that it takes to find that out.
    assert left < (1.1 if not tied else 2.1) * column
    assert peak < (2.8 if not tied else 12) * column


def test_zeros_of_either_sign_stay_with_their_documents() -> None:
    rows = Pairs(run_lengths(strings(["q"] * 3)), strings(["a", "c", "b"]), np.array([1, 0.0, -0.0]))
    run = Run.of("run", rows, ties=Ties.DOC_ASC)
    assert run.top("q") == ["a", "b", "c"]
    assert np.signbit(run.ranked_scores).tolist() == [False, True, False]


def test_a_run_that_is_made_of_columns_of_others_has_its_own() -> None:
    rows = in_order(10)
    run = Run("run", rows.queries, rows.docs, rows.values)
    rows.values[:] = 0
    assert run.ranked_scores.tolist() == [*range(10, 0, -1)]


@given(
    st.lists(
        st.tuples(st.sampled_from("pq"), st.integers(0, 30), st.integers(0, 3)), max_size=30, unique_by=lambda r: r[:2]
    ),
    st.sampled_from([*Ties]),
)
def test_a_run_of_its_own_columns_is_the_same(rows: list[tuple[str, int, int]], ties: Ties) -> None:
    queries, docs, scores = ([*column] for column in zip(*rows, strict=True)) if rows else ([], [], [])
    ids = [*map(str, docs)]
    one = Run("run", queries, ids, scores, ties=ties)
    other = Run.of("run", Pairs(run_lengths(strings(queries)), strings(ids), np.array(scores, float)), ties=ties)
    assert one.frame().equals(other.frame())
    assert one.ranked_keys.tolist() == other.ranked_keys.tolist()
    assert pa.compute.equal(one.docs_as_read, other.docs_as_read).to_pylist() == [True] * len(rows)
