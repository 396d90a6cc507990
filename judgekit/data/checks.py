"""Checks of one input against another, made once before anything is labelled or paid for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from judgekit.data.columns import Floats, strings
from judgekit.data.documents import Docs, Queries
from judgekit.data.labelings import STATUSES, Labeling
from judgekit.data.questions import normalised
from judgekit.data.records import as_number
from judgekit.data.runs import Run
from judgekit.data.sources import opened
from judgekit.data.tables import Status
from judgekit.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

    from judgekit.data.parts import AnyRun

FEW: Final = 0.05
"""With fewer judged queries than this share, imported labels may belong to another collection; with fewer shared
documents, runs are over different cuts of one."""
_AT_ONCE: Final = 1 << 16
"""Ids that are objects at once."""
_ROWS: Final = 5000
"""Number of first rows that decide whether a run's ranks follow its scores."""
_PILOT: Final = 0.25
"""From this share on, a query file lacks a run's queries on purpose."""
_RANKED: Final = ("query", "rank", "score")
_CONTRADICTED: Final = 0.1
"""Number of neighbours in rank with contradicting scores; fewer may come from rounded ties."""
_OWN: Final = 0.2
"""From this share of lists on, beginning with the query itself is no coincidence."""
MANY: Final = 20
"""Runs with fewer documents show nothing, nor do fewer labels that are all alike."""


def check_runs(runs: Sequence[Run], queries: Queries, docs: Docs | None = None) -> dict[str, tuple[str, ...]]:
    """Refuse runs about other queries and docs; return the queries that each run lacks."""
    # A pilot is no error: if a run holds a good part of the queries and many others, the others are left out.
    if not runs:
        raise DataError("give at least one run to evaluate")
    absent: dict[str, tuple[str, ...]] = {}
    for run in runs:
        if run.name in absent:
            raise DataError(f"two runs are named {run.name!r}: rename one of them (NAME=FILE)")
        if not len(run):
            raise DataError(f"run {run.name!r} is empty")
        listed = set(run.query_ids)
        absent[run.name] = tuple(q for q in queries if q not in listed)
        further = len(listed) + len(absent[run.name]) - len(queries)
        # Otherwise a mistyped id would pass for a query left out on purpose.
        if 2 * len(absent[run.name]) > len(queries) or further < _PILOT * len(listed):
            _known(run, "queries", strings(run.query_ids), queries)
        if docs is not None:
            _known(run, "docs", (run.only(queries) if further else run).distinct_docs(), docs)
    return absent


def _known(run: Run, many: str, ids: pa.StringArray, known: Queries | Docs) -> None:
    # A collection on disk looks up many as fast as a few; importing its class here would load all readers.
    lacking = getattr(known, "lacking", None)
    unknown: list[str] = []
    for start in range(0, len(ids), _AT_ONCE):
        some = ids.slice(start, _AT_ONCE).to_pylist()
        unknown += [i for i in some if i not in known] if lacking is None else lacking(some)
    if not unknown:
        return
    where, more = "the queries", ""
    if many == "docs":
        where, more = "the collection", ". If the docs are in several files, give all of them"
    if len(unknown) == len(ids):
        more = ": are these files from the same collection?"
    missing = f"{len(unknown)} of its {len(ids)} {many} missing from {where}, first {unknown[0]!r}"
    raise DataError(f"run {run.name!r} has {missing}{more}")


def contradictions(runs: Mapping[str, str | Path | pd.DataFrame]) -> Iterator[str]:
    """Yield a sentence for each file or table whose ranks contradict its scores, as with distances."""
    for name, held in runs.items():
        whose = f"run {name!r}"
        if isinstance(held, str | Path):
            whose += f" ({held})"
        query, rank, score = _first_rows(held)
        # Vector stores return distances: read as scores they turn every list upside down.
        ranked = not np.isnan(rank).all()
        order = np.lexsort((rank, query))
        below = np.diff(query[order]) == 0
        if ranked:
            below &= np.diff(rank[order]) > 0
        steps = np.diff(score[order])[below]
        up, down = (steps > 0).sum(), (steps < 0).sum()
        if ranked and up > _CONTRADICTED * (up + down):
            among = "always"
            if down:
                among = f"{up / (up + down):.0%} of the time"
            yield (
                f"{whose}: its scores contradict its ranks ({among} the next rank has the higher score)."
                " Documents are ordered by score, highest first: negate distances, or give ranks without scores"
            )
        elif ranked and (steps == 0).sum() >= MANY and not up and not down:
            yield (
                f"{whose}: all scores within a query are equal, and its ranks are not read. Documents of equal score"
                " are ordered by their ids: give ranks without scores"
            )
        elif not ranked and up >= MANY and not down:
            yield (
                f"{whose}: every list goes from the lowest score to the highest. Documents are ordered by"
                " score, highest first: negate distances, or name their column as ranks, csv(rank=COLUMN):FILE"
            )


def own_documents(
    run: AnyRun, labelings: Sequence[Labeling] = (), texts: tuple[Queries, Docs] | None = None
) -> Iterator[str]:
    """Yield a sentence if many lists begin with the query itself, because queries are documents of the collection.

    A document that is judged relevant, or has another text, merely shares the id.
    """
    # Numeric ids of a few hundred queries and documents coincide by chance, but seldom at the top.
    first, least = {*run.extent.own_first}, max(2, _OWN * run.extent.lists)
    if len(first) >= least and texts is not None:
        queries, docs = texts
        for doc in docs.get(sorted(first)):
            if normalised(doc.text) not in normalised(queries[doc.doc_id].text):
                first.remove(doc.doc_id)
    for labeling in labelings if len(first) >= least else ():
        for block in labeling.blocks("query_id", "doc_id", "relevance"):
            own = block[(block["query_id"] == block["doc_id"]) & (block["relevance"] > 0)]
            first -= {*own["query_id"]}
    if len(first) >= least:
        yield (
            f"run {run.name!r} begins with the query's own document for {len(first):,} of {run.extent.queries:,}"
            " queries: leave it out (score --drop-self; drop_self = true in [data])"
        )


def _first_rows(held: str | Path | pd.DataFrame) -> Floats:
    """Return the first rows of a file, or of a table query by query: numbers for the query, the rank and the score."""
    numbers: dict[Any, int] = {}
    rows = []
    if isinstance(held, str | Path):
        source, records = opened(held, "run")
        cells = []
        for record in islice(records, _ROWS):
            cells.append([record.fields.get(source.find(record, key) or "") for key in _RANKED])
    else:
        by_query = np.argsort(held["query_id"].factorize()[0], kind="stable")
        cells = held.iloc[by_query[:_ROWS]].reindex(columns=["query_id", "rank", "score"]).to_numpy().tolist()
    for query, rank, score in cells:
        rows.append((numbers.setdefault(query, len(numbers)), as_number(rank), as_number(score)))
    return np.array(rows, np.float64).reshape(-1, 3).T


def twins(runs: Sequence[Run]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of runs with the same lists."""
    for first, second in combinations(runs, 2):
        same = len(first) == len(second) and np.array_equal(first.query_ids, second.query_ids)
        if same and all(first.top(query_id) == second.top(query_id) for query_id in first.query_ids):
            yield first.name, second.name


def judges_nothing(labeling: Labeling) -> bool:
    """Return whether imported labels judge no pooled document, so that every 0 is merely unlisted."""
    judged = labeling.column("judged")
    return judged is not None and not (judged == 1).any()


def remarks(labeling: Labeling) -> Iterator[str]:
    """Yield remarks on labels, to be read before their scores: unjudged or escalated ones, and problems."""
    name, total, labels = labeling.name, len(labeling.row_queries), f"of {len(labeling):,} labels"
    counts = _remarkable(labeling)

    def among(rows: pd.DataFrame) -> str:
        return f"{rows['query_id'].nunique():,} of {total:,} queries"

    # Exclusions have to be read before the scores, which are about the rest.
    without = counts[counts["status"] == Status.NOT_APPLICABLE]
    if len(without):
        excuse = f"{without['query_id'].iloc[0]}: {without['reason'].iloc[0]}"
        yield f"{name} does not apply to {among(without)}, which have no score under it ({excuse})."
    unasked = counts[counts["status"] == Status.UNASKED]
    for reason, rows in unasked.groupby("reason"):
        lacked = f"{rows['pairs'].sum():,} {labels}, in {among(rows)}"
        yield f"{name} lacks {lacked}: {str(reason) or 'these documents were never judged'}."
    doubtful = counts[counts["status"] == Status.OK]
    for reason, rows in doubtful.groupby("reason"):
        yield f"{name}: {rows['pairs'].sum():,} {labels}, in {among(rows)}, may be wrong: {reason}."
    escalated = labeling.column("escalated")
    if escalated is not None:
        doubts = int(escalated.sum())
        share = f"{doubts:,} of {len(labeling):,} pairs ({doubts / max(len(labeling), 1):.0%})"
        yield f"{name} was in doubt about {share}, which the second labeler labeled."
    judged = labeling.column("judged")
    if judged is not None and judged.notna().any():
        met = len(np.unique(labeling.row_codes[(judged == 1).to_numpy()]))
        if met < FEW * total:
            few = "judges none of the documents"
            if met:
                few = f"judges documents of only {met:,} of {total:,} queries"
            yield f"{name} {few} in the pool of these runs: are these from the same collection?"
            # That is also why all labels are alike.
            return
    given = labeling.row_relevance[labeling.row_status == STATUSES.index(Status.OK)]
    if len(given) >= MANY and given.min() == given.max():
        yield f"{name} gives all {len(given):,} pairs the same label, {given[0]:g}: it tells no documents apart."


def _remarkable(labeling: Labeling) -> pd.DataFrame:
    """Return the numbers of labels that are missing or have a reason, ``query_id, status, reason, pairs``, by query."""
    import pandas as pd

    reason = labeling.column("reason")
    rows = pd.DataFrame({"query": labeling.row_codes, "status": labeling.row_status})
    rows["reason"] = "" if reason is None else reason
    # Most labels need no remark, and groups of texts are slow to make.
    rows = rows[(rows["status"] != STATUSES.index(Status.OK)) | (rows["reason"] != "")]
    counts = rows.groupby(["query", "status", "reason"], as_index=False).size().rename(columns={"size": "pairs"})
    counts["status"] = counts["status"].map(STATUSES.__getitem__)
    counts["query_id"] = counts["query"].map(labeling.row_queries.__getitem__)
    return counts.sort_values("query_id", kind="stable")


def ways_read(labeling: Labeling) -> Iterator[str]:
    """Yield how the replies of a judge were read."""
    read_by = labeling.column("read_by")
    if read_by is None:
        return
    shares = read_by.value_counts()
    replies = shares.sum()
    ways = {"form": "in the form asked for", "sentence": "as a plain sentence", "second request": "when asked again"}
    told = ", ".join(f"{shares.get(way, 0) / replies:.1%} {words}" for way, words in ways.items())
    yield f"{labeling.name}: of {replies:,} replies, {told} (column read_by of the labels)."
