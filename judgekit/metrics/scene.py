"""The one join of runs with labelings, on which all measures are computed.

Everything is flat arrays. A *cell* is a (labeling, run, query), numbered in that order; a *group* is a (labeling,
query). A *hit* is a retrieved document that has a label.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from judgekit.data.columns import find, numbers, take
from judgekit.data.labelings import STATUSES, Labeling
from judgekit.data.runs import Run
from judgekit.data.tables import Status

__all__ = ["Relevant", "Scene"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class Relevant(NamedTuple):
    """The retrieved relevant documents, by cell, best first."""

    cell: Ints
    rank: Ints
    """1-based rank in the run."""
    nth: Ints
    """The document is the nth relevant one of its cell, from 1."""


class Scene:
    """All runs and labelings over the evaluated queries.

    Attributes:
        shape: numbers of labelings, runs and queries (L, R, Q).
        retrieved: documents per run and query, shape (R, Q).
        cell, rank, label: per hit its cell, 1-based rank and label; ordered by cell, then rank.
        group, value: per obtained label its group and label.
        missing, excused: per labeling and query, whether a label is missing, or not applicable, shape (L, Q).
        listed: per labeling and query, whether the labeling has rows for the query, shape (L, Q).
        min_rel: the least relevant label per labeling, NaN on unit and signed scales, shape (L,).
    """

    def __init__(self, runs: Sequence[Run], labelings: Sequence[Labeling], query_ids: list[str]) -> None:
        """Join runs and labelings; documents of other queries are left out."""
        place = {q: i for i, q in enumerate(query_ids)}
        self.labelings = labelings
        self.shape = len(labelings), len(runs), len(query_ids)
        self.min_rel = np.array([np.nan if s.min_rel is None else s.min_rel for s in (x.scale for x in labelings)])
        self._relevant: dict[float | None, Relevant] = {}
        self._totals: dict[float | None, Ints] = {}
        self._ideal: dict[str, tuple[Ints, Ints, Floats]] = {}
        self._log2 = np.ones(1)
        self._join_labels(place)
        self._join_runs(runs, place)

    def _join_labels(self, place: dict[str, int]) -> None:
        count, _, queries = self.shape
        flags = np.zeros((3, count, queries), np.bool_)
        docs = pa.concat_arrays([x.row_docs for x in self.labelings]).dictionary_encode()
        self._docs: pa.StringArray = docs.dictionary
        coded = numbers(docs.indices, np.int32).astype(np.int64)
        sizes = [len(x) for x in self.labelings]
        owner = np.repeat(np.arange(count), sizes)
        query = np.concatenate(
            [np.array([place.get(q, -1) for q in x.row_queries], np.int64)[x.row_codes] for x in self.labelings]
        )
        status = np.concatenate([x.row_status for x in self.labelings])
        value = np.concatenate([x.row_relevance for x in self.labelings])
        inside = query >= 0
        obtained, excused = STATUSES.index(Status.OK), STATUSES.index(Status.NOT_APPLICABLE)
        flags[0, owner[inside], query[inside]] = True
        bad = inside & (status != obtained)
        flags[2, owner[bad], query[bad]] = status[bad] == excused
        lost = bad & (status != excused)
        flags[1, owner[lost], query[lost]] = True
        self.listed, self.missing, self.excused = flags
        keep = inside & (status == obtained)
        owner, query, coded, self.value = owner[keep], query[keep], coded[keep], value[keep]
        self.group = owner * queries + query
        keys = _integers(query * len(self._docs) + coded).dictionary_encode()
        self._pairs: pa.Int64Array = keys.dictionary
        self._labels = np.full((count, len(self._pairs)), np.nan)
        self._labels[owner, numbers(keys.indices, np.int32)] = self.value

    def _join_runs(self, runs: Sequence[Run], place: dict[str, int]) -> None:
        _, n_runs, queries = self.shape
        self.retrieved = np.zeros((n_runs, queries), np.int64)
        cells, ranks, pairs = [], [], []
        for number, run in enumerate(runs):
            at = np.array([place.get(q, -1) for q in run.query_ids], np.int64)
            known = np.flatnonzero(at >= 0)
            # Rows of the run, query by query; their order among the queries does not matter here.
            known = known[np.argsort(run.starts[known], kind="stable")]
            starts, counts, at = run.starts[known], run.counts[known], at[known]
            self.retrieved[number, at] = counts
            ends = np.cumsum(counts)
            rank = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
            rows = np.repeat(starts, counts) + rank
            docs = run.ranked_docs if len(rows) == len(run) else take(run.ranked_docs, rows)
            coded = find(docs, self._docs)
            hit = np.flatnonzero(coded >= 0)
            query = np.repeat(at, counts)[hit]
            pair = find(_integers(query * len(self._docs) + coded[hit]), self._pairs)
            judged = pair >= 0
            cells.append(number * queries + query[judged])
            ranks.append(rank[hit][judged] + 1)
            pairs.append(pair[judged])
        cell, rank, pair = map(np.concatenate, (cells, ranks, pairs))
        label = self._labels[:, pair]
        owner, column = np.nonzero(~np.isnan(label))
        self.cell: Ints = owner * (n_runs * queries) + cell[column]
        self.rank: Ints = rank[column]
        self.label: Floats = label[owner, column]

    @property
    def cells(self) -> int:
        """The number of cells."""
        return int(np.prod(self.shape))

    def table(self, per_cell: npt.NDArray[np.generic]) -> Floats:
        """Return a flat array over cells in the shape (L, R, Q)."""
        return per_cell.reshape(self.shape).astype(np.float64, copy=False)

    def threshold(self, rel: float | None) -> Floats:
        """Return the least relevant label per labeling, shape (L,); NaN where nothing says which it is."""
        return self.min_rel if rel is None else np.full(len(self.min_rel), float(rel))

    def relevant(self, rel: float | None) -> Relevant:
        """Return the relevant hits under a threshold (None: the declared ones)."""
        if rel not in self._relevant:
            per_cell = self.threshold(rel)[self.cell // (self.shape[1] * self.shape[2])]
            chosen = self.label >= per_cell
            cell = self.cell[chosen]
            self._relevant[rel] = Relevant(cell, self.rank[chosen], places(cell))
        return self._relevant[rel]

    def total(self, rel: float | None) -> Ints:
        """Return how many relevant documents there are per labeling and query, shape (L, 1, Q)."""
        if rel not in self._totals:
            labelings, _, queries = self.shape
            chosen = self.value >= self.threshold(rel)[self.group // queries]
            counted = np.bincount(self.group[chosen], minlength=labelings * queries)
            self._totals[rel] = counted.reshape(labelings, 1, queries)
        return self._totals[rel]

    def discount(self, rank: Ints) -> Floats:
        """Return log2(rank + 1), computed as C does it: numpy's own log2 differs in the last bit."""
        largest = int(rank.max()) if len(rank) else 0
        if largest >= len(self._log2):
            self._log2 = np.array([1.0, *(math.log2(i + 1) for i in range(1, largest + 1))])
        return self._log2[rank]

    @staticmethod
    def gains(dcg: str, label: Floats) -> Floats:
        """Return the gain of labels: themselves, or 2^label - 1; negative ones gain nothing."""
        return np.exp2(label) - 1 if dcg == "exp-log2" else label

    def ideal(self, dcg: str, cutoff: int | None) -> Floats:
        """Return the DCG of the best order of all labelled documents, shape (L, 1, Q)."""
        labelings, _, queries = self.shape
        if dcg not in self._ideal:
            gain = self.gains(dcg, self.value)
            group, gain = self.group[gain > 0], gain[gain > 0]
            best = np.lexsort((-gain, group))
            group = group[best]
            self._ideal[dcg] = group, places(group), gain[best]
        group, rank, gain = self._ideal[dcg]
        top = slice(None) if cutoff is None else rank <= cutoff
        total = np.bincount(group[top], gain[top] / self.discount(rank[top]), labelings * queries)
        return total.reshape(labelings, 1, queries).astype(np.float64, copy=False)


def places(sorted_groups: Ints) -> Ints:
    """Return each row's place within its group, from 1; rows of a group stand together."""
    if not len(sorted_groups):
        return np.empty(0, np.int64)
    first = np.concatenate([[True], sorted_groups[1:] != sorted_groups[:-1]])
    starts = np.flatnonzero(first)
    return np.arange(1, len(sorted_groups) + 1) - np.repeat(starts, np.diff(np.append(starts, len(sorted_groups))))


def _integers(values: Ints) -> pa.Int64Array:
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])
