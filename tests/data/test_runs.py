"""Runs, their order and the pool."""

import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from judgekit.data.runs import Run, Ties, fused, pool
from judgekit.errors import DataError, UsageError

ids = st.text("aé0_Z", min_size=1, max_size=20)
scores = st.one_of(st.sampled_from([0.0, -0.0, 1.0, 1.0 + 1e-12, -3.5, 1e300, -1e300]), st.floats(-1e3, 1e3))


def in_order(rows: list[tuple[str, str, float]], ties: Ties) -> dict[str, list[str]]:
    """Order rows the plain way: sort by one key after the other."""
    with np.errstate(over="ignore"):
        narrow = {row: float(np.float32(row[2])) for row in rows}
    value = (lambda row: narrow[row]) if ties is Ties.DOC_DESC_32 else (lambda row: row[2])
    if ties is not Ties.RUN_ORDER:
        rows = sorted(rows, key=lambda row: row[1].encode(), reverse=ties is not Ties.DOC_ASC)
    rows = sorted(rows, key=value, reverse=True) if ties is not Ties.RUN_ORDER else sorted(rows, key=lambda r: -r[2])
    if ties is not Ties.RUN_ORDER:
        # A reversed sort keeps equal rows in order.
        rows = [row for v in sorted({value(r) for r in rows}, reverse=True) for row in rows if value(row) == v]
    return {q: [d for one, d, _ in rows if one == q] for q in sorted({row[0] for row in rows})}


@given(
    st.dictionaries(st.tuples(st.sampled_from(["1", "10", "2", "ü"]), ids), scores, max_size=25),
    st.sampled_from(list(Ties)),
    st.randoms(use_true_random=False),
)
def test_documents_are_ordered_by_score_and_then_by_the_tie_rule(pairs, ties: Ties, random) -> None:
    rows = [(q, d, s) for (q, d), s in pairs.items()]
    random.shuffle(rows)
    run = Run("run", [r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows], ties=ties)
    wanted = in_order(rows, ties)
    assert {q: run.top(q) for q in run.query_ids} == wanted
    assert run.query_ids.tolist() == list(wanted)
    assert run.doc_ids.tolist() == sorted({r[1] for r in rows})
    listed = [(q, d, pairs[q, d]) for q, docs in wanted.items() for d in docs]
    assert [*run.frame().itertuples(index=False, name=None)] == listed
    for depth in (1, 3):
        cut = run.cut(depth)
        assert {q: cut.top(q) for q in cut.query_ids} == {q: docs[:depth] for q, docs in wanted.items()}
        assert run.top("1", depth) == wanted.get("1", [])[:depth]
    few = run.only(["2", "nowhere"])
    assert {q: few.top(q) for q in few.query_ids} == {q: docs for q, docs in wanted.items() if q == "2"}
    assert few.cut(2).frame()["score"].tolist() == [pairs["2", d] for d in wanted.get("2", [])[:2]]
    back = Run.from_frame(run.frame(), "run", ties=ties)
    assert {q: back.top(q) for q in back.query_ids} == wanted
    for rule in Ties:
        other = run.with_ties(rule)
        assert {q: other.top(q) for q in other.query_ids} == in_order(rows, rule), "the order of the rows is kept"


@given(
    st.dictionaries(st.tuples(st.sampled_from("ab"), st.sampled_from("abcd")), scores, max_size=8),
    st.sampled_from(list(Ties)),
)
def test_documents_that_are_the_query_itself_are_left_out_and_their_queries_stay(pairs, ties: Ties) -> None:
    rows = [(q, d, s) for (q, d), s in pairs.items()]
    run = Run("run", [r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows], ties=ties)
    left = run.without_own()
    assert left.query_ids.tolist() == run.query_ids.tolist()
    for query in run.query_ids:
        assert left.top(query) == [doc for doc in run.top(query) if doc != query]
        assert (query in run.extent.own_first) == (run.top(query)[:1] == [query])
    assert len(left.frame()) == len(left) == sum(q != d for q, d in pairs)
    assert left.with_ties(Ties.DOC_ASC).query_ids.tolist() == run.query_ids.tolist()
    assert {q: left.with_ties(Ties.DOC_ASC).top(q) for q in run.query_ids} == {
        q: [doc for doc in run.with_ties(Ties.DOC_ASC).top(q) if doc != q] for q in run.query_ids
    }
    assert left.without_own().extent.own_first == []


@pytest.mark.parametrize("lengths", [[40, 40, 40], [50, 41, 0, 3], [300, *([1] * 200)]])
@pytest.mark.parametrize("ties", list(Ties))
def test_lists_of_any_lengths_are_sorted(lengths: list[int], ties: Ties) -> None:
    rng = np.random.default_rng(1)
    rows = [(f"q{i:03}", f"d{j:03}", float(rng.integers(0, 9))) for i, n in enumerate(lengths) for j in range(n)]
    run = Run("run", [r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows], ties=ties)
    assert {q: run.top(q) for q in run.query_ids} == in_order(rows, ties)


@pytest.mark.parametrize(
    ("queries", "docs", "values", "message"),
    [
        (["q", "p", "q"], ["d", "d", "d"], [1, 2, 3], "run 'r' lists doc 'd' twice for query 'q'"),
        (["q"], ["d"], [np.nan], "the score of query 'q', doc 'd' is nan; scores must be finite"),
        (["q"], ["d"], [np.inf], "scores must be finite"),
        (["all"], ["d"], [1], "reserved id 'all'"),
        (["q"], ["d"], [1, 2], "1 queries, 1 docs and 2 scores"),
        ([None], ["d"], [1], "an id is missing"),
        ([1], ["d"], [1], "ids must be strings"),
    ],
)
def test_rows_that_make_no_run_are_refused(queries: list, docs: list, values: list, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Run("r", queries, docs, values)


@pytest.mark.parametrize(("name", "message"), [(" ", "name of a run is empty"), ("all", "cannot be named 'all'")])
def test_a_run_has_a_name_of_its_own(name: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Run(name, ["q"], ["d"], [1])


def test_every_kind_of_column_of_ids_is_taken() -> None:
    queries, docs, values = ["1", "007", "1"], ["a", "b", "é"], [1.0, 2.0, 3.0]
    frame = pd.DataFrame({"query_id": queries, "doc_id": docs, "score": values})
    sources = [
        (queries, docs),
        (np.array(queries, dtype=object), np.array(docs)),
        (pa.array(queries), pa.chunked_array([docs[:1], docs[1:]])),
        (pa.array(queries, pa.large_string()), pa.array(["x", *docs])[1:]),
        (frame["query_id"], frame["doc_id"].astype("category")),
    ]
    for one, other in sources:
        run = Run("r", one, other, values)
        assert {q: run.top(q) for q in run.query_ids} == {"007": ["b"], "1": ["é", "a"]}
    assert repr(run) == "Run('r', queries=2, rows=3)"
    assert len(Run.from_frame(frame, "r")) == 3
    with pytest.raises(DataError, match=r"not the number 1\.0; ids are strings"):
        Run.from_frame(frame.assign(doc_id=[1.0, 2.0, 3.0]), "r")


def test_ids_are_taken_without_pandas() -> None:
    hidden = {name: sys.modules.pop(name) for name in ["pandas"]}
    try:
        assert Run("r", ["q", "q"], ["a", "é"], [1, 2]).top("q") == ["é", "a"]
        for bad in ([1, 2], ["\ud800", "a"]):
            with pytest.raises(DataError, match="ids must be strings"):
                Run("r", bad, ["a", "b"], [1, 2])  # type: ignore[arg-type]
    finally:
        sys.modules.update(hidden)


def test_the_pool_holds_every_pair_once() -> None:
    runs = [
        Run("a", ["q1"] * 3, ["x", "y", "z"], [3, 2, 1]),
        Run("b", ["q1", "q1", "q2"], ["y", "w", "x"], [3, 2, 1]),
    ]
    assert dict(pool(runs, ["q1", "q2", "q3"], 2)) == {"q1": ["w", "x", "y"], "q2": ["x"], "q3": []}


def test_many_docs_keep_their_rows_apart() -> None:
    count = 100_000
    docs = [f"document-{i:06}" for i in range(count)]
    run = Run("big", [f"q{i % 7}" for i in range(count)], docs, np.arange(count, dtype=float))
    assert run.top("q3", 2) == ["document-099998", "document-099991"]
    assert len(set(run.ranked_keys.tolist())) == count
    with pytest.raises(DataError, match="lists doc 'document-000070' twice for query 'q0'"):
        Run("big", [*(f"q{i % 7}" for i in range(count)), "q0"], [*docs, docs[70]], np.zeros(count + 1))


@pytest.mark.parametrize(("ties", "first"), [(Ties.DOC_DESC, "a"), (Ties.DOC_ASC, "a"), (Ties.DOC_DESC_32, "b")])
def test_scores_that_32_bits_do_not_tell_apart_are_tied_for_who_compares_them_so(ties: Ties, first: str) -> None:
    assert Run("run", ["q", "q"], ["a", "b"], [1 + 1e-12, 1.0], ties=ties).top("q", 1)[0] == first


def test_runs_are_fused_by_reciprocal_ranks() -> None:
    runs = [
        Run("a", ["q"] * 3, ["x", "y", "z"], [3, 2, 1]),
        Run("b", ["q"] * 3, ["y", "w", "x"], [3, 2, 1]),
        Run("c", ["other"], ["v"], [1]),
    ]
    # x: 1/61 + 1/63, y: 1/62 + 1/61, w: 1/62, z: 1/63.
    assert fused(runs, "q", 3) == ["y", "x", "w", "z"]
    # w leaves at depth 1; x and y are both first once: equal sums go by id, descending.
    assert fused(runs, "q", 1) == ["y", "x"]
    assert fused(runs, "unknown", 3) == []


def test_a_table_in_the_place_of_a_name_is_refused_without_being_shown() -> None:
    import pandas as pd

    frame = pd.DataFrame({"query_id": ["q"], "doc_id": ["secret"], "score": [1.0]})
    with pytest.raises(UsageError, match="a text, not DataFrame") as refused:
        Run.from_frame("bm25", frame)  # type: ignore[arg-type]
    assert "secret" not in str(refused.value)
