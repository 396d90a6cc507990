"""The one join of runs with labelings, on which all measures are computed.

Everything is flat arrays. A *list* is a (run, query), a *cell* a (labeling, run, query), a *group* a (labeling,
query), each numbered in that order. A *pair* is a (query, doc) that some labeling lists; a *hit* is a row of a run
whose pair some labeling lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from judgekit.data.columns import Keys, equal, find
from judgekit.data.labelings import STATUSES, Labeling
from judgekit.data.ordering import Ties, compared
from judgekit.data.runs import Run
from judgekit.data.tables import Status
from judgekit.errors import DataError

__all__ = ["Blocks", "Join", "spans"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_OK: Final = STATUSES.index(Status.OK)
_EXCUSED: Final = STATUSES.index(Status.NOT_APPLICABLE)


class Blocks(NamedTuple):
    """Per hit the block of documents of equal score that it stands in, shapes (H,)."""

    before: Ints
    """Documents of the list before the block."""
    size: Ints
    """Documents in the block."""
    first: Ints
    """The first hit in the block."""
    last: Ints
    """The hit behind the last one in the block."""


class Join:
    """Runs and labelings over the evaluated queries, their documents matched once.

    Attributes:
        runs, labelings: what was joined.
        shape: numbers of labelings, runs and queries (L, R, Q).
        listed: whether the labeling has rows for the query, shape (L, Q).
        missing, excused: whether a label of the query is missing, or not applicable, shape (L, Q).
        owner, query, pair, value, lost: per label its labeling, query, pair and value, and whether it is missing
            (value NaN); shape (N,). Labels that are not applicable are left out.
        pairs: the number of pairs.
        retrieved: documents per run and query, shape (R, Q).
        hit_list, hit_rank, hit_pair: per hit its list, 1-based rank and pair, shape (H,); the hits of a list stand
            together, best first.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        labelings: Sequence[Labeling],
        query_ids: list[str],
        *,
        depth: int | None = None,
        unjudged_as_missing: bool = False,
    ) -> None:
        """Join runs and labelings.

        Args:
            runs: the runs.
            labelings: the labelings.
            query_ids: the queries to evaluate; rows of others are left out.
            depth: the first documents of each list that any measure looks at, or None for all.
            unjudged_as_missing: add every retrieved document that a labeling does not list to its missing labels.
        """
        self.runs, self.labelings = runs, labelings
        self.shape = len(labelings), len(runs), len(query_ids)
        place = {q: i for i, q in enumerate(query_ids)}
        self._runs = [_Rows(run, place, depth) for run in runs]
        self._join_runs(self._join_labels(place), unjudged_as_missing=unjudged_as_missing)

    def _join_labels(self, place: dict[str, int]) -> Keys:
        """Fill the attributes about labels; return the key of each pair."""
        count, _, queries = self.shape
        self.listed, self.missing, self.excused = np.zeros((3, count, queries), np.bool_)
        known = np.empty(0, np.uint64)
        offset, origins = 0, []
        columns: list[tuple[Ints, ...]] = []
        for number, labeling in enumerate(self.labelings):
            query = np.array([place.get(q, -1) for q in labeling.row_queries], np.int64)[labeling.row_codes]
            rows = np.flatnonzero(query >= 0)
            self.listed[number, query[rows]] = True
            status = labeling.row_status[rows]
            self.excused[number, query[rows[status == _EXCUSED]]] = True
            rows = rows[status != _EXCUSED]
            query, keys = query[rows], labeling.row_keys[rows]
            self.missing[number, query[labeling.row_status[rows] != _OK]] = True
            pair = find([keys], known)[0].astype(np.int64)
            fresh = np.flatnonzero(pair < 0)
            pair[fresh] = len(known) + np.arange(len(fresh))
            known = np.concatenate([known, keys[fresh]])
            origins.append(offset + rows[fresh])
            columns.append((np.full(len(rows), number), query, pair, offset + rows))
            offset += len(labeling)
        self.owner, self.query, self.pair, rows = map(np.concatenate, zip(*columns, strict=True))
        self.value = np.concatenate([x.row_relevance for x in self.labelings])[rows]
        self.lost = np.isnan(self.value)
        self.pairs = len(known)
        self._pair_docs = pa.concat_arrays([x.row_docs for x in self.labelings])
        self._pair_origin = np.concatenate(origins)
        self._pair_query = np.empty(self.pairs, np.int64)
        self._pair_query[self.pair] = self.query
        self._verify(self.pair, self.query, self._pair_docs, rows)
        return known

    def _verify(self, pair: Ints, query: Ints, docs: pa.StringArray, rows: Ints) -> None:
        """Compare the ids of rows that were matched by their keys, so that no chance match goes unseen."""
        others = self._pair_origin[pair]
        if docs is self._pair_docs:
            foreign = rows != others
            pair, query, rows, others = pair[foreign], query[foreign], rows[foreign], others[foreign]
        wrong = (self._pair_query[pair] != query) | ~equal(docs, rows, self._pair_docs, others)
        if wrong.any():
            row = int(np.argmax(wrong))
            ids = docs[rows[row]].as_py(), self._pair_docs[others[row]].as_py()
            raise DataError(f"the docs {ids[0]!r} and {ids[1]!r} have the same 64-bit hash; rename one of them")

    def _join_runs(self, pair_keys: Keys, *, unjudged_as_missing: bool) -> None:
        """Fill the attributes about hits."""
        _, count, queries = self.shape
        self.retrieved = np.zeros((count, queries), np.int64)
        pairs = find([x.keys for x in self._runs], pair_keys)
        if unjudged_as_missing:
            pairs = self._pair_unjudged(pairs)
        columns: list[tuple[Ints, Ints, Ints]] = []
        self._hit_rows: list[Ints] = []
        for number, (lists, pair) in enumerate(zip(self._runs, pairs, strict=True)):
            self.retrieved[number, lists.query] = lists.retrieved
            hits = np.flatnonzero(pair >= 0)
            at, rank = lists.locate(hits)
            matched = pair[hits].astype(np.int64)
            known = matched < len(pair_keys)
            rows = lists.starts[at] + rank - 1
            self._verify(matched[known], lists.query[at[known]], lists.run.ranked_docs, rows[known])
            columns.append((number * queries + lists.query[at], rank, matched))
            self._hit_rows.append(rows)
        self.hit_list, self.hit_rank, self.hit_pair = map(np.concatenate, zip(*columns, strict=True))

    def _pair_unjudged(self, pairs: list[npt.NDArray[np.int32]]) -> list[npt.NDArray[np.int32]]:
        """Make a pair of every retrieved document, and a missing label of those that a labeling does not list."""
        count = self.shape[0]
        unmatched = [np.flatnonzero(pair < 0) for pair in pairs]
        keys = [lists.keys[rows] for lists, rows in zip(self._runs, unmatched, strict=True)]
        fresh, first, place = np.unique(np.concatenate(keys), return_index=True, return_inverse=True)
        query = np.concatenate([x.query[x.locate(rows)[0]] for x, rows in zip(self._runs, unmatched, strict=True)])
        fills = np.split(self.pairs + place, np.cumsum([len(rows) for rows in unmatched])[:-1])
        out = [pair.copy() for pair in pairs]
        for filled, rows, fill in zip(out, unmatched, fills, strict=True):
            filled[rows] = fill
        query_of = np.concatenate([self._pair_query, query[first]])
        self.pairs += len(fresh)
        unlabelled = np.ones((count, self.pairs), np.bool_)
        unlabelled[self.owner, self.pair] = False
        retrieved = np.zeros(self.pairs, np.bool_)
        retrieved[np.concatenate(out)] = True
        owner, pair = np.nonzero(unlabelled & retrieved)
        self.owner, self.pair = np.append(self.owner, owner), np.append(self.pair, pair)
        self.query = np.append(self.query, query_of[pair])
        self.value = np.append(self.value, np.full(len(pair), np.nan))
        self.lost = np.append(self.lost, np.ones(len(pair), np.bool_))
        return out

    @cached_property
    def lists(self) -> tuple[Ints, Ints]:
        """Per hit the first hit of its list, and the one behind the last, shapes (H,)."""
        return spans(self.hit_list)

    @cached_property
    def blocks(self) -> Blocks:
        """Per hit the block of documents of equal score that it stands in."""
        found = [_blocks(run, rows) for run, rows in zip(self.runs, self._hit_rows, strict=True)]
        before, size = (np.concatenate(column) for column in zip(*found, strict=True))
        # Lists are shorter than the largest rank, so that list and block together number the blocks.
        first, last = spans(self.hit_list * (int(before.max(initial=0)) + 1) + before)
        return Blocks(before, size, first, last)

    @property
    def averaged(self) -> Bools:
        """Which runs take the expected value over the orders of tied documents, shape (R,)."""
        return np.array([run.ties is Ties.EXPECTED for run in self.runs])

    @cached_property
    def listed_hits(self) -> Bools:
        """Whether a labeling lists the pair of a hit, obtained or missing, shape (L, H)."""
        table = np.zeros((self.shape[0], self.pairs), np.bool_)
        table[self.owner, self.pair] = True
        return table[:, self.hit_pair]

    @cached_property
    def ties(self) -> tuple[Ints, Ints, Ints]:
        """Per two documents with equal scores that follow each other: run, query, and rank of the upper one."""
        found = [rows.ties() for rows in self._runs]
        number = np.repeat(np.arange(len(found)), [len(query) for query, _ in found])
        query, rank = (np.concatenate(column) for column in zip(*found, strict=True))
        return number, query, rank


def _new_block(run: Run) -> Bools:
    """Return for each row of a run whether its score differs from the one before it in the same list."""
    scores = compared(run.ranked_scores, run.ties)
    new = np.ones(len(run), np.bool_)
    np.not_equal(scores[1:], scores[:-1], out=new[1:])
    new[run.starts[run.counts > 0]] = True
    return new


def spans(group: Ints) -> tuple[Ints, Ints]:
    """Return, per row, the first row of its group and the one behind the last; rows of a group stand together."""
    edges = np.flatnonzero(np.diff(group, prepend=-1, append=-1))
    lengths = np.diff(edges)
    return np.repeat(edges[:-1], lengths), np.repeat(edges[1:], lengths)


def _blocks(run: Run, rows: Ints) -> tuple[Ints, Ints]:
    new = _new_block(run)
    firsts = np.flatnonzero(new)
    block = (np.cumsum(new) - 1)[rows]
    starts = np.sort(run.starts[run.counts > 0])
    before = firsts - starts[np.searchsorted(starts, firsts, side="right") - 1]
    return before[block], np.diff(np.append(firsts, len(run)))[block]


class _Rows:
    """The lists of one run that are evaluated, in the order of the run's rows, cut to a depth.

    Attributes:
        query: place of the list's query among the evaluated ones, shape (S,).
        starts: the list's first row in the run, shape (S,).
        retrieved: how many documents the run has for the query, shape (S,).
        keys: the key of every row, shape (N,).
    """

    def __init__(self, run: Run, place: dict[str, int], depth: int | None) -> None:
        at = np.array([place.get(q, -1) for q in run.query_ids], np.int64)
        known = np.flatnonzero((at >= 0) & (run.counts > 0))
        known = known[np.argsort(run.starts[known])]
        self.run = run
        self.query, self.starts, self.retrieved = at[known], run.starts[known], run.counts[known]
        self._counts = self.retrieved if depth is None else np.minimum(self.retrieved, depth)
        self._offsets = np.concatenate([[0], np.cumsum(self._counts)])
        whole = self._offsets[-1] == len(run)
        self.keys = run.ranked_keys if whole else run.ranked_keys[self._rows()]

    def _rows(self) -> Ints:
        within = np.arange(self._offsets[-1]) - np.repeat(self._offsets[:-1], self._counts)
        return np.asarray(np.repeat(self.starts, self._counts) + within)

    def locate(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return list and 1-based rank of rows of `keys` (ascending)."""
        at = np.searchsorted(self._offsets, rows, side="right") - 1
        return at, rows - self._offsets[at] + 1

    def ties(self) -> tuple[Ints, Ints]:
        """Return query and rank of every document whose score equals that of the next one."""
        tied = np.flatnonzero(~_new_block(self.run)) - 1
        at = np.searchsorted(self.starts, tied, side="right") - 1
        inside = (at >= 0) & (tied < self.starts[at] + self.retrieved[at])
        at, tied = at[inside], tied[inside]
        return self.query[at], tied - self.starts[at] + 1
