"""Checks of one input against another, made once before anything is labelled or paid for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, groupby, islice, pairwise, starmap
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from judgekit.data.documents import Docs, Queries
from judgekit.data.fields import DECLARED, Source
from judgekit.data.labelings import Labeling
from judgekit.data.records import DataRecord, as_number
from judgekit.data.runs import Run
from judgekit.data.sources import opened
from judgekit.data.tables import Status
from judgekit.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

FEW: Final = 0.05
"""Imported labels that say something of the documents of fewer of the queries may be another collection's; runs that
share fewer of their documents are over different cuts of one."""
_LOOKED_AT: Final = 8
_SAMPLED: Final = 1000
_ROWS: Final = 5000
"""Rows at the beginning of a run that tell whether its ranks follow its scores."""
_PILOT: Final = 0.25
"""The share of a run's queries that a query file lacks on purpose, at least."""
_CONTRADICTED: Final = 0.1
"""Neighbours in rank whose scores say the opposite; rounded scores of a few ties are no sign of anything."""
MANY: Final = 20
"""Runs of fewer documents in all do not tell."""


_DIFFER: Final = 0.01
"""The p-value (Kruskal-Wallis over questions) below which kinds of question are said to differ."""


def check_runs(runs: Sequence[Run], queries: Queries, docs: Docs | None = None) -> dict[str, tuple[str, ...]]:
    """Refuse runs that are not about these queries and docs; return for each the queries that it lacks."""
    # A pilot is no error: where a run holds a good part of the queries, and many others, these are left out.
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
        if 2 * len(absent[run.name]) > len(queries) or further < _PILOT * len(listed):
            _known(run, "queries", run.query_ids, queries)
        if docs is not None:
            _known(run, "docs", (run.only(queries) if further else run).doc_ids, docs)
    return absent


def _known(run: Run, many: str, ids: Iterable[str], known: Queries | Docs) -> None:
    ids = list(ids)
    unknown = [i for i in ids if i not in known]
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
    """Yield a sentence for each file or table, by name, whose ranks say the opposite of its scores, as distances do."""
    for name, held in runs.items():
        whose = f"run {name!r} ({held})" if isinstance(held, str | Path) else f"run {name!r}"
        ranked, down, up = False, 0, 0
        for _, listed in groupby(_first_rows(held), key=attrgetter("query")):
            rows = list(listed)
            ranked = ranked or any(not math.isnan(row.rank) for row in rows)
            if ranked:
                rows.sort(key=attrgetter("rank"))
            for row, below in pairwise(rows):
                if not ranked or row.rank < below.rank:
                    down += row.score > below.score
                    up += row.score < below.score
        if ranked and up > _CONTRADICTED * (up + down):
            among = f"{up / (up + down):.0%} of the time" if down else "always"
            yield (
                f"{whose}: its scores contradict its ranks ({among} the next rank has the higher score)."
                " Documents are ordered by score, highest first: negate distances, or give ranks without scores"
            )
        elif not ranked and up >= MANY and not down:
            yield (
                f"{whose}: every list goes from the lowest score to the highest. Documents are ordered by"
                " score, highest first: negate distances"
            )


class _RankedRow(NamedTuple):
    """A row of a run as it stands in its file; NaN where a number is missing."""

    query: object
    rank: float
    score: float


def _first_rows(held: str | Path | pd.DataFrame) -> Iterator[_RankedRow]:
    """Yield the first rows of a file, or of a table query by query."""
    if isinstance(held, str | Path):
        source, records = opened(held, "run")
    else:
        by_query = held.iloc[np.argsort(held["query_id"].factorize()[0], kind="stable")[:_ROWS]]
        source = Source(None, "frame", DECLARED["run"].names, "row")
        records = starmap(DataRecord, enumerate(by_query.to_dict("records"), 1))
    for record in islice(records, _ROWS):
        query, rank, score = (record.fields.get(source.find(record, key) or "") for key in ("query", "rank", "score"))
        yield _RankedRow(query, as_number(rank), as_number(score))


def twins(runs: Sequence[Run]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of names under which the same lists stand."""
    for one, other in combinations(runs, 2):
        alike = len(one) == len(other) and np.array_equal(one.query_ids, other.query_ids)
        if alike and all(one.top(query_id) == other.top(query_id) for query_id in one.query_ids):
            yield one.name, other.name


def disjoint(runs: Sequence[Run]) -> Iterator[tuple[str, str, float]]:
    """Yield the pairs of runs that share few of their documents, as over two cuts of one collection, and the share."""
    import pyarrow.compute as pc

    pairs = [{*run.only(runs[0].query_ids[:_LOOKED_AT]).ranked_keys.tolist()} for run in runs]
    for (first, some), (second, others) in combinations(zip(runs, pairs, strict=True), 2):
        # Runs that share documents of the same queries share them over all, which takes far longer to see.
        if len(some & others) >= max(1, FEW * len(some)):
            continue
        # All that was read, also below the depth: the first few of two runs may have nothing in common.
        fewer, more = (run.docs_as_read for run in sorted((first, second), key=len))
        places = np.linspace(0, max(len(fewer) - 1, 0), min(len(fewer), _SAMPLED)).astype(int)
        sample = pc.unique(fewer.take(places))
        shared = len(pc.unique(more.filter(pc.is_in(more, value_set=sample))))
        if len(sample) >= MANY and shared < FEW * len(sample):
            yield first.name, second.name, shared / len(sample)


def cut_differently(runs: Sequence[Run], docs: Docs) -> bool:
    """Return whether runs share few documents, and yet retrieved the same stretches of pages."""
    ids = {run.name: sorted(set(run.doc_ids)) for run in runs}
    for *names, _ in disjoint(runs):
        spans: list[tuple[str, int, int, str]] = []
        for name in names:
            for doc in docs.get(ids[name]):
                if doc.page_id is not None and doc.start is not None and doc.end is not None:
                    spans.append((doc.page_id, doc.start, doc.end, name))
        for (page, _, end, name), (next_page, start, _, other) in pairwise(sorted(spans)):
            if page == next_page and start < end and name != other:
                return True
    return False


def judges_nothing(labeling: Labeling) -> bool:
    """Return whether imported labels say nothing of any pooled document, so that each 0 is only what the file lacks."""
    known = False
    for block in labeling.blocks("query_id", "judged"):
        if "judged" in block:
            known = True
            if (block["judged"] == 1).any():
                return False
    return known


def remarks(labeling: Labeling) -> Iterator[str]:
    """Yield what to know of labels before their scores are read: unjudged, escalated, and what looks wrong."""
    import pandas as pd

    name, total, labels = labeling.name, len(labeling.row_queries), f"of {len(labeling):,} labels"
    columns, met, escalated = set[str](), set[str](), 0
    blocks: list[pd.DataFrame] = []
    for block in labeling.blocks("query_id", "status", "reason", "judged", "escalated"):
        columns.update(block.columns)
        rows = block.assign(reason=block["reason"].fillna("") if "reason" in block else "")
        rows = rows[(rows["status"] != Status.OK.value) | (rows["reason"] != "")]
        counts = rows.groupby(["status", "reason", "query_id"], sort=False, observed=True).size()
        blocks.append(counts.reset_index(name="pairs"))
        if "escalated" in block:
            escalated += int(block["escalated"].sum())
        if "judged" in block:
            met.update(block["query_id"][block["judged"] == 1])
    odd = pd.concat(blocks)

    def among(rows: pd.DataFrame) -> str:
        return f"{rows['query_id'].nunique():,} of {total:,} queries"

    without = odd[odd["status"] == Status.NOT_APPLICABLE.value]
    if len(without):
        excuse = f"{without['query_id'].iloc[0]}: {without['reason'].iloc[0]}"
        yield f"{name} does not apply to {among(without)}, which have no score under it ({excuse})."
    unasked = odd[odd["status"] == Status.UNASKED.value]
    if len(unasked):
        lacked = f"{unasked['pairs'].sum():,} {labels}, in {among(unasked)}"
        yield f"{name} lacks {lacked}: these documents were never judged."
    for reason, rows in odd[odd["status"] == Status.OK.value].groupby("reason"):
        yield f"{name}: {rows['pairs'].sum():,} {labels}, in {among(rows)}, may be wrong: {reason}."
    if "escalated" in columns:
        share = f"{escalated:,} of {len(labeling):,} pairs ({escalated / max(len(labeling), 1):.0%})"
        yield f"{name} was in doubt about {share}, which the second labeler labeled."
    if "judged" in columns and len(met) < FEW * total:
        few = f"judges documents of only {len(met):,} of {total:,} queries" if met else "judges none of the documents"
        yield f"{name} {few} in the pool of these runs: are these from the same collection?"


def ways_read(labeling: Labeling, kinds: Mapping[str, str]) -> Iterator[str]:
    """Yield how the replies of a judge were read, and where the share asked again differs by kind of question."""
    import pandas as pd

    blocks = [block for block in labeling.blocks("query_id", "status", "read_by") if "read_by" in block]
    rows = pd.concat(blocks) if blocks else pd.DataFrame({"read_by": []})
    counts = rows["read_by"].value_counts()
    if not len(counts):
        return
    ways = {"form": "in the form asked for", "sentence": "as a plain sentence", "second request": "when asked again"}
    shares = ", ".join(f"{counts.get(way, 0) / counts.sum():.1%} {words}" for way, words in ways.items())
    yield f"{labeling.name}: of {counts.sum():,} replies, {shares} (column read_by of the labels)."
    again = (rows["read_by"] == "second request") | (rows["status"] == Status.UNPARSED.value)
    queries = again.groupby(rows["query_id"]).mean()
    by_kind = {kind: part.to_numpy() for kind, part in queries.groupby(queries.index.map(kinds)) if len(part) > 1}
    if len(by_kind) < 2 or queries.nunique() < 2:
        return
    from scipy.stats import kruskal

    if kruskal(*by_kind.values()).pvalue < _DIFFER:
        (most, often), *_, (least, seldom) = sorted(
            ((part.mean(), kind) for kind, part in by_kind.items()), reverse=True
        )
        yield (
            f"{labeling.name} was asked again about {most:.0%} of {often} questions and {least:.0%} of {seldom}"
            " questions: their labels come from different prompts, so compare scores within a kind."
        )
