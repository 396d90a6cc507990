"""Checks of one input against another, made once before anything is labelled or paid for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from judgekit.data.documents import Docs, Queries
from judgekit.data.labelings import Labeling
from judgekit.data.runs import Run
from judgekit.errors import DataError

__all__ = ["QrelsCheck", "check_qrels", "check_runs"]


def check_runs(runs: Sequence[Run], queries: Queries, docs: Docs | None = None) -> dict[str, tuple[str, ...]]:
    """Check that runs are about these queries and docs; all rows count, so cut the runs to their depth first.

    Args:
        runs: the runs of an experiment.
        queries: all queries of the experiment.
        docs: the collection; None leaves doc ids unchecked.

    Returns:
        Per run the queries that it lacks, in their order: they are scored 0, and are to be counted and shown.

    Raises:
        DataError: there is no run, two have one name, one is empty, or one has a query or a doc that is unknown;
            the message names the run, the first such id and how many there are.
    """
    if not runs:
        raise DataError("there are no runs to evaluate")
    absent: dict[str, tuple[str, ...]] = {}
    for run in runs:
        if run.name in absent:
            raise DataError(f"two runs are named {run.name!r}: give one of them another name (NAME=FILE)")
        if not len(run):
            raise DataError(f"run {run.name!r} is empty")
        _known(run, "query", "queries", run.query_ids, queries)
        if docs is not None:
            _known(run, "doc", "docs", run.doc_ids, docs)
        listed = set(run.query_ids)
        absent[run.name] = tuple(q for q in queries if q not in listed)
    return absent


def _known(run: Run, one: str, many: str, ids: Iterable[str], known: Queries | Docs) -> None:
    ids = list(ids)
    unknown = [i for i in ids if i not in known]
    if unknown:
        lacks = "the collection lacks" if one == "doc" else "the queries lack"
        count = f"{len(unknown)} of its {len(ids)} {many}"
        reason = f"run {run.name!r} has {one} {unknown[0]!r}, which {lacks}"
        wrong_file = ": are these files of one collection?" if len(unknown) == len(ids) else ""
        raise DataError(f"{reason}; in all it lacks {count}{wrong_file}")


@dataclass(frozen=True, slots=True)
class QrelsCheck:
    """What imported labels leave out, counted over the queries of the experiment.

    Attributes:
        pairs: pairs that the qrels list for these queries.
        relevant: those of them that are relevant (golds).
        outside: golds outside of the pool, which no measure sees inside an experiment.
        unlisted: pooled pairs that the qrels do not list; they count as 0.
        without_gold: queries without any gold.
        other_queries: queries of the qrels that the experiment does not have; they are ignored.
    """

    pairs: int
    relevant: int
    outside: int
    unlisted: int
    without_gold: int
    other_queries: int


def check_qrels(labeling: Labeling, pool: Mapping[str, Sequence[str]]) -> QrelsCheck:
    """Count what imported labels hold outside of the pool, and what of the pool they do not list.

    Relevant is what reaches the scale's ``min_rel``; on the scales unit and signed whatever is above 0.

    Args:
        labeling: the imported labels.
        pool: the pooled doc ids of every query of the experiment (`judgekit.data.pool.pool`).

    Raises:
        DataError: not one query of the experiment is in the qrels.
    """
    ours = np.array([q in pool for q in labeling.query_ids], dtype=bool)
    if not ours.any():
        example = f" (its own, e.g. {labeling.query_ids[0]!r})" if len(labeling) else ""
        raise DataError(
            f"labeling {labeling.name!r} has none of the {len(pool)} queries of the experiment"
            f"{example}: are these files of one collection?"
        )
    least = labeling.scale.min_rel
    gold = ours & ((labeling.relevance > 0) if least is None else (labeling.relevance >= least))
    pooled = {query: set(docs) for query, docs in pool.items()}
    rows = list(zip(labeling.query_ids, labeling.doc_ids, strict=True))
    inside = np.array([d in pooled.get(q, ()) for q, d in rows], dtype=bool)
    return QrelsCheck(
        pairs=int(ours.sum()),
        relevant=int(gold.sum()),
        outside=int((gold & ~inside).sum()),
        unlisted=sum(map(len, pooled.values())) - int((ours & inside).sum()),
        without_gold=len(pool) - len(set(labeling.query_ids[gold])),
        other_queries=len(set(labeling.query_ids[~ours])),
    )
