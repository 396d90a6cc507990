"""Checks of one input against another, made once before anything is labelled or paid for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from judgekit.data.columns import Keys
from judgekit.data.documents import Docs, Queries
from judgekit.data.labelings import Labeling
from judgekit.data.runs import Run
from judgekit.data.tables import Status
from judgekit.errors import DataError

__all__ = ["FEW", "check_runs", "cut_differently", "disjoint", "remarks"]

FEW: Final = 0.05
"""Imported labels that say something of the documents of fewer of the queries may be another collection's; runs that
share fewer of their documents are over different cuts of one."""
_LOOKED_AT: Final = 8
_SAMPLED: Final = 1000
MANY: Final = 20
"""Runs of fewer documents in all do not tell."""


def check_runs(runs: Sequence[Run], queries: Queries, docs: Docs | None = None) -> dict[str, tuple[str, ...]]:
    """Check that runs are about these queries and docs; all rows count, so cut the runs to their depth first.

    Args:
        runs: the runs of an experiment.
        queries: all queries of the experiment.
        docs: the collection; None leaves doc ids unchecked.

    Returns:
        Per run the queries that it lacks, in their order: they are scored 0, and are to be counted and shown.

    Raises:
        DataError: no run is given, two have one name, one is empty, or one has a query or a doc that is unknown;
            the message names the run, the first such id and how many there are.
    """
    if not runs:
        raise DataError("give at least one run to evaluate")
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
        where = "the collection" if one == "doc" else "the queries"
        if len(unknown) == len(ids):
            more = ": are these files from the same collection?"
        else:
            more = ". Where docs stand in several files, give them all" if one == "doc" else ""
        raise DataError(
            f"run {run.name!r} has {len(unknown)} of its {len(ids)} {many} missing from {where}, first"
            f" {unknown[0]!r}{more}"
        )


def disjoint(runs: Sequence[Run]) -> Iterator[tuple[str, str, float]]:
    """Yield the pairs of runs that share few of their documents, as over two cuts of one collection, and the share.

    It is the share of a sample of the smaller run's documents, over all queries. Runs of a few documents say nothing.
    """
    import pyarrow.compute as pc

    groups: list[tuple[Keys, list[Run]]] = []
    for run in runs:
        pairs = _some_pairs(run, runs[0].query_ids[:_LOOKED_AT])
        # Runs that share documents of the same queries share them over all, which takes far longer to see.
        for first, alike in groups:
            if np.isin(pairs, first).sum() >= max(1, FEW * len(pairs)):
                alike.append(run)
                break
        else:
            groups.append((pairs, [run]))
    apart = ((one, other) for (_, some), (_, others) in combinations(groups, 2) for one in some for other in others)
    for one, other in apart:
        # All that was read, also below the depth: the first few of two runs may have nothing in common.
        fewer, more = (run.docs_as_read for run in sorted((one, other), key=len))
        sample = pc.unique(fewer.take(np.linspace(0, max(len(fewer) - 1, 0), min(len(fewer), _SAMPLED)).astype(int)))
        found = len(pc.unique(more.filter(pc.is_in(more, value_set=sample))))
        if len(sample) >= MANY and found < FEW * len(sample):
            yield one.name, other.name, found / len(sample)


def _some_pairs(run: Run, query_ids: npt.NDArray[np.object_]) -> Keys:
    """Return the keys of the pairs of some queries."""
    at = np.searchsorted(run.query_ids, query_ids)
    at = at[at < len(run.query_ids)]
    return np.concatenate([run.ranked_keys[:0], *(run.ranked_keys[run.starts[i] :][: run.counts[i]] for i in at)])


def cut_differently(runs: Sequence[Run], docs: Docs) -> bool:
    """Return whether runs share few documents, and yet retrieved the same stretches of pages."""
    ids = {run.name: sorted(set(run.doc_ids)) for run in runs}
    for names in disjoint(runs):
        spans = sorted(
            (doc.page_id, doc.start, doc.end, name)
            for name in names[:2]
            for doc in docs.get(ids[name])
            if doc.page_id is not None and doc.start is not None and doc.end is not None
        )
        if any(a[0] == b[0] and b[1] < a[2] and a[3] != b[3] for a, b in pairwise(spans)):
            return True
    return False


def remarks(labeling: Labeling) -> Iterator[str]:
    """Yield what has to be known of labels before their scores are read: what they do not judge, and what looks wrong.

    A labeling of imported labels has a column ``judged``, 1 where the file says something of the document.
    """
    name, total = labeling.name, len(labeling.row_queries)
    said: dict[tuple[str, str], tuple[int, set[str]]] = {}
    first, judged, met = "", False, set[str]()
    for block in labeling.blocks("query_id", "status", "reason", "judged"):
        rows = block if "reason" in block else block.assign(reason="")
        rows = rows.assign(reason=rows["reason"].fillna(""))
        rows = rows[(rows["status"] != Status.OK.value) | (rows["reason"] != "")]
        excused = rows[rows["status"] == Status.NOT_APPLICABLE.value]
        if len(excused) and not first:
            first = f"{excused['query_id'].iloc[0]}: {excused['reason'].iloc[0]}"
        for (status, reason), some in rows.groupby(["status", "reason"]):
            count, of = said.get((str(status), str(reason)), (0, set()))
            said[str(status), str(reason)] = count + len(some), of | set(some["query_id"])
        judged |= "judged" in block
        met.update(block["query_id"][block["judged"] == 1] if "judged" in block else ())

    def of_status(status: Status) -> tuple[int, str]:
        found = [each for (which, _), each in said.items() if which == status.value]
        among = len(set().union(*(queries for _, queries in found)))
        return sum(count for count, _ in found), f"{among:,} of {total:,} queries"

    if first:
        among = of_status(Status.NOT_APPLICABLE)[1]
        yield f"{name} does not apply to {among}, which have no score under it ({first})."
    unasked, among = of_status(Status.UNASKED)
    if unasked:
        lacked = f"{unasked:,} of {len(labeling):,} labels, in {among}"
        yield f"{name} lacks {lacked}: nobody was asked about these documents."
    for (status, reason), (count, of) in sorted(said.items()):
        if status == Status.OK.value:
            among = f"{len(of):,} of {total:,} queries"
            yield f"{name}: {count:,} of {len(labeling):,} labels, in {among}, may be wrong: {reason}."
    if judged and len(met) < FEW * total:
        few = f"judges documents of only {len(met):,} of {total:,} queries" if met else "judges none of the documents"
        yield f"{name} {few} in the pool of these runs: are these from the same collection?"
