"""Inputs that do not belong together are found before anything is paid for."""

from __future__ import annotations

import pandas as pd
import pytest

from judgekit.data.checks import QrelsCheck, check_qrels, check_runs
from judgekit.data.documents import Doc, MemoryDocs, Query
from judgekit.data.labelings import Labeling, Scale
from judgekit.data.runs import Run
from judgekit.errors import DataError

QUERIES = {q: Query(q, "x") for q in ("q1", "q2", "q3")}
DOCS = MemoryDocs(Doc(d, "x") for d in ("d1", "d2", "d3"))


def run(*pairs: tuple[str, str], name: str = "bm25") -> Run:
    return Run(name, [q for q, _ in pairs], [d for _, d in pairs], [1.0] * len(pairs))


def test_queries_that_a_run_lacks_are_counted() -> None:
    runs = [run(("q1", "d1"), ("q3", "d1")), run(("q2", "d2"), ("q1", "d1"), ("q3", "d3"), name="dense")]
    assert check_runs(runs, QUERIES, DOCS) == {"bm25": ("q2",), "dense": ()}


@pytest.mark.parametrize(
    ("runs", "reason"),
    [
        ([], "there are no runs"),
        ([run()], "run 'bm25' is empty"),
        ([run(("q1", "d1")), run(("q2", "d1"))], "two runs are named 'bm25'"),
        (
            [run(("q1", "d1"), ("q8", "d1"), ("q9", "d1"))],
            "run 'bm25' has query 'q8', which the queries lack; in all it lacks 2 of its 3 queries",
        ),
        (
            [run(("q1", "d1")), run(("q1", "d1"), ("q2", "d9"), name="dense")],
            "run 'dense' has doc 'd9', which the collection lacks; in all it lacks 1 of its 2 docs",
        ),
        ([run(("x1", "d1"))], "lacks 1 of its 1 queries: are these files of one collection?"),
    ],
)
def test_runs_that_do_not_fit_are_refused(runs: list[Run], reason: str) -> None:
    with pytest.raises(DataError) as caught:
        check_runs(runs, QUERIES, DOCS)
    assert reason in str(caught.value)


def test_docs_are_left_unchecked_without_a_collection() -> None:
    assert check_runs([run(("q1", "d9"))], QUERIES) == {"bm25": ("q2", "q3")}


def labeling(*labels: tuple[str, str, float], scale: str = "binary") -> Labeling:
    frame = pd.DataFrame(labels, columns=["query_id", "doc_id", "relevance"])
    return Labeling("gold", Scale.parse(scale), frame)


POOL = {"q1": ["d1", "d2"], "q2": ["d1"], "q3": []}


@pytest.mark.parametrize(
    ("labels", "check"),
    [
        (labeling(("q1", "d1", 1)), QrelsCheck(1, 1, 0, 2, 2, 0)),
        (labeling(("q1", "d1", 1), ("q1", "d9", 1), ("q1", "d8", 0)), QrelsCheck(3, 2, 1, 2, 2, 0)),
        (labeling(("q1", "d1", 0), ("q1", "d2", 0), ("q2", "d1", 0)), QrelsCheck(3, 0, 0, 0, 3, 0)),
        (labeling(("q1", "d1", 1), ("q3", "d1", 1), ("q7", "d1", 1), ("q8", "d1", 1)), QrelsCheck(2, 2, 1, 2, 1, 2)),
        (labeling(("q1", "d1", 1), ("q2", "d1", 2), scale="grades:3:2"), QrelsCheck(2, 1, 0, 1, 2, 0)),
        (labeling(("q1", "d1", 0.0), ("q2", "d9", 0.1), scale="unit"), QrelsCheck(2, 1, 1, 2, 2, 0)),
    ],
)
def test_golds_outside_of_the_pool_are_counted(labels: Labeling, check: QrelsCheck) -> None:
    assert check_qrels(labels, POOL) == check


def test_qrels_about_other_queries_are_refused() -> None:
    with pytest.raises(DataError, match=r"none of the 3 queries of the experiment \(its own, e\.g\. 'x1'\)"):
        check_qrels(labeling(("x1", "d1", 1)), POOL)
    with pytest.raises(DataError, match="none of the 3 queries of the experiment: are these"):
        check_qrels(labeling(), POOL)
