"""The one join of runs with labelings, on which all measures are computed.

All arrays are flat. A *list* is a (run, query), a *cell* a (labeling, run, query), a *group* a (labeling, query), each
numbered in that order. A *pair* is a (query, doc) that some labeling lists; a *hit* is a row of a run with such a pair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from itertools import repeat
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from judgekit.data.columns import Codes, Keys, equal, find, take
from judgekit.data.labelings import STATUSES, Labeling
from judgekit.data.runs import Run, compared
from judgekit.data.tables import Status
from judgekit.errors import DataError

if TYPE_CHECKING:
    from judgekit.data.parts import AnyRun

T = TypeVar("T")
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_OK: Final = STATUSES.index(Status.OK)
_EXCUSED: Final = STATUSES.index(Status.NOT_APPLICABLE)


class Join:
    """Runs and labelings on the evaluated queries, with their documents matched once.

    Attributes:
        runs, labelings, query_ids: the joined runs, labelings and queries.
        shape: numbers of labelings, runs and queries (L, R, Q).
        listed: whether the labeling has rows for the query, shape (L, Q).
        missing, excused: whether any label of the query is missing, or not applicable, shape (L, Q).
        pair_query: the query of each pair, shape (P,).
        label: the label of each pair, NaN for none, shape (L, P).
        known: whether the labeling lists the pair at all, shape (L, P).
        lost: whether the pair's label is missing although it was asked for, shape (L, P).
        labelled: each labeling's rows for these queries, and their pairs, shapes (N,).
        unknown_labels: whether bounds cover all possible labels of the pair, shape (L, P).
        retrieved: number of documents per run and query, shape (R, Q).
        ran: whether the run has the query, even with an empty list, shape (R, Q).
        hit_list, hit_rank, hit_pair: each hit's list, 1-based rank and pair, shape (H,); hits of a list are adjacent,
            best first.
    """

    def __init__(
        self,
        runs: Sequence[AnyRun],
        labelings: Sequence[Labeling],
        query_ids: list[str],
        *,
        depth: int | None = None,
        missing_unknown: bool = False,
        unjudged_unknown: bool = False,
    ) -> None:
        """Join runs and labelings."""
        # Documents are matched by 64-bit keys of query and document, since comparing ids takes most of the time; where
        # keys match, ids are compared too (`_verify`).
        self.runs, self.labelings, self.query_ids = runs, labelings, query_ids
        self.shape = len(labelings), len(runs), len(query_ids)
        self._place = {q: i for i, q in enumerate(query_ids)}
        self._depth = depth
        self._pair_docs = self.labelings[0].row_docs.slice(0, 0)
        self.pair_query = np.empty(0, np.int64)
        self._pair_keys: Keys = np.empty(0, np.uint64)
        self.labelled: list[tuple[Ints, Ints]] = []
        for labeling in labelings:
            query = _places(labeling.row_queries, self._place)[labeling.row_codes]
            rows = np.flatnonzero(query >= 0)
            docs = take(labeling.row_docs, rows)
            pair = self._pairs(labeling.row_keys[rows], query[rows], docs)
            self.labelled.append((rows, pair))
        # Documents that no labeling lists need pairs of their own to be bounded.
        if unjudged_unknown:
            for run in runs:
                run.of_parts(self._add_pairs)
        self._fill_labels()
        self._join_runs()
        self.unknown_labels: Bools = self.lost & missing_unknown
        if unjudged_unknown:
            pairs = np.unique(self.hit_pair)
            self.unknown_labels[:, pairs] |= ~self.known[:, pairs]

    def _fill_labels(self) -> None:
        """Fill the attributes about labels."""
        count, _, queries = self.shape
        self.listed, self.missing, self.excused = np.zeros((3, count, queries), np.bool_)
        self.label = np.full((count, len(self._pair_keys)), np.nan)
        self.known, self.lost = np.zeros((2, *self.label.shape), np.bool_)
        for number, labeling in enumerate(self.labelings):
            rows, pair = self.labelled[number]
            columns, status = _compact(pair), labeling.row_status[rows]
            self.label[number, columns] = labeling.row_relevance[_compact(rows)]
            self.known[number, columns] = True
            self.listed[number, self.pair_query[columns]] = True
            lost = pair[(status != _OK) & (status != _EXCUSED)]
            self.lost[number, lost] = True
            self.missing[number, self.pair_query[lost]] = True
            excused = pair[status == _EXCUSED]
            self.excused[number, self.pair_query[excused]] = True

    def _pairs(self, keys: Keys, query: Ints, docs: pa.StringArray) -> Ints:
        """Return the pair of each row of a table; unknown ones become new pairs."""
        pair = find(keys, self._pair_keys).astype(np.int64)
        # A labeling has each pair once, so all new ones differ.
        old = np.flatnonzero(pair >= 0)
        fresh = np.flatnonzero(pair < 0)
        self._verify(pair[old], query[old], take(docs, old))
        pair[fresh] = len(self._pair_keys) + np.arange(len(fresh))
        self._pair_docs = pa.concat_arrays([self._pair_docs, take(docs, fresh)])
        self.pair_query = np.append(self.pair_query, query[fresh])
        self._pair_keys = np.append(self._pair_keys, keys[fresh])
        return pair

    def _verify(self, pair: Ints, query: Ints, docs: pa.StringArray) -> None:
        """Compare the ids of rows matched by their keys, to detect chance matches."""
        others = take(self._pair_docs, pair)
        wrong = self.pair_query[pair] != query
        wrong |= ~equal(docs, others)
        if wrong.any():
            row = int(np.argmax(wrong))
            given, known = docs[row].as_py(), others[row].as_py()
            raise DataError(f"the docs {given!r} and {known!r} have the same 64-bit hash; rename one of them")

    def _add_pairs(self, part: Run) -> None:
        """Make a pair of each document of a part of a run."""
        lists = _Rows(part, self._place, self._depth)
        at, _, rows = lists.locate(np.arange(len(lists.keys)))
        self._pairs(lists.keys, lists.query[at], part.docs_at(rows))

    def _join_runs(self) -> None:
        """Fill the attributes about hits."""
        _, count, queries = self.shape
        self.retrieved = np.zeros((count, queries), np.int64)
        self.ran = np.zeros((count, queries), np.bool_)
        self._found: list[list[_Found]] = []
        for number, run in enumerate(self.runs):
            # For a run in memory, blocks and ties are computed on demand; the rows of a part are gone by then.
            found = run.of_parts(partial(self._join, keep=isinstance(run, Run)))
            for part in found:
                self.retrieved[number, part.query] = part.retrieved
                self.ran[number, part.known] = True
            self._found.append(found)
        every = [(number * queries, part) for number, found in enumerate(self._found) for part in found]
        self.hit_list = np.concatenate([first + part.hit_query for first, part in every])
        self.hit_rank = np.concatenate([part.hit_rank for _, part in every])
        self.hit_pair = np.concatenate([part.hit_pair for _, part in every])

    def _join(self, part: Run, *, keep: bool) -> _Found:
        """Return the hits of a part of a run; ``keep`` says whether its rows stay in memory."""
        lists = _Rows(part, self._place, self._depth)
        found = find(lists.keys, self._pair_keys)
        hits = np.flatnonzero(found >= 0)
        pair = found[hits].astype(np.int64)
        at, rank, rows = lists.locate(hits)
        query = lists.query[at]
        self._verify(pair, query, part.docs_at(rows))
        blocks, ties = partial(_blocks, part, rows), lists.ties
        if not keep:
            blocks, ties = partial(_same, blocks()), partial(_same, ties())
        return _Found(lists.known, lists.query, lists.retrieved, query, rank, pair, blocks, ties)

    @cached_property
    def lists(self) -> tuple[Ints, Ints]:
        """Each hit's first hit of its list, and the one after the last, shapes (H,)."""
        return spans(self.hit_list)

    @cached_property
    def blocks(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Each hit's block of equal scores: documents before and in it, its first hit, and the one after the last."""
        found = [part.blocks() for parts in self._found for part in parts]
        before = np.concatenate([ahead for ahead, _ in found])
        size = np.concatenate([inside for _, inside in found])
        return before, size, *block_spans(self.hit_list, before)

    def ties(self, number: int) -> tuple[Codes, Codes]:
        """Return query and upper rank of each two consecutive documents of a run with equal scores."""
        found = [part.ties() for part in self._found[number]]
        return np.concatenate([query for query, _ in found]), np.concatenate([rank for _, rank in found])


class _Found(NamedTuple):
    """The overlap of a part of a run with the labelings.

    Attributes:
        known: places of its queries among the evaluated ones, also of empty lists.
        query, retrieved: each list's query and number of documents.
        hit_query, hit_rank, hit_pair: each hit's query, 1-based rank and pair.
        blocks: returns, per hit, the numbers of documents before and in its block of equal scores.
        ties: returns query and rank of every document whose score equals that of the next one.
    """

    known: Ints
    query: Ints
    retrieved: Ints
    hit_query: Ints
    hit_rank: Ints
    hit_pair: Ints
    blocks: Callable[[], tuple[Ints, Ints]]
    ties: Callable[[], tuple[Codes, Codes]]


def _same(value: T) -> T:
    return value


def _new_block(run: Run) -> Bools:
    """Return for each row of a run whether its score differs from the previous one of its list."""
    # With 32-bit scores, two may be equal that differ as doubles.
    scores = compared(run.ranked_scores, run.ties)
    new = np.ones(len(run), np.bool_)
    np.not_equal(scores[1:], scores[:-1], out=new[1:])
    new[run.starts[run.counts > 0]] = True
    return new


def spans(group: Ints) -> tuple[Ints, Ints]:
    """Return, per row, the first row of its group and the one after the last; rows of a group are adjacent."""
    # No group has the number -1, so the first row and the end are edges.
    edges = np.flatnonzero(np.diff(group, prepend=-1, append=-1))
    lengths = np.diff(edges)
    first, end = edges[:-1], edges[1:]
    return np.repeat(first, lengths), np.repeat(end, lengths)


def block_spans(group: Ints, before: Ints) -> tuple[Ints, Ints]:
    """Return, per row, the first row of its block and the one after the last, from the documents before the block."""
    # Lists are shorter than the largest rank, so group and block together identify a block.
    most = int(before.max(initial=0)) + 1
    return spans(group * most + before)


def _blocks(run: Run, rows: Ints) -> tuple[Ints, Ints]:
    """Return the numbers of documents before and in the block of equal scores, for some rows of a run."""
    new = _new_block(run)
    firsts = np.flatnonzero(new)
    sizes = np.diff(firsts, append=len(run))
    starts = np.sort(run.starts[run.counts > 0])
    own = np.searchsorted(starts, firsts, side="right") - 1
    before = firsts - starts[own]
    block = (np.cumsum(new) - 1)[rows]
    return before[block], sizes[block]


def _compact(rows: Ints) -> Ints | slice:
    """Return consecutive rows as a slice, which is many times faster to read and write."""
    if not len(rows):
        return rows
    first, end = int(rows[0]), int(rows[-1]) + 1
    if end - first == len(rows) and (np.diff(rows) == 1).all():
        return slice(first, end)
    return rows


def _places(ids: Iterable[str], place: dict[str, int]) -> Ints:
    """Return the place of each id, or -1."""
    return np.fromiter(map(place.get, ids, repeat(-1)), np.int64)


class _Rows:
    """The evaluated lists of a run, in the order of its rows, cut to a depth.

    Attributes:
        known: places of the run's queries among the evaluated ones, also of empty lists.
        query: the place of the list's query among the evaluated ones, shape (S,).
        starts: the list's first row in the run, shape (S,).
        retrieved: number of the run's documents for the query, shape (S,).
        keys: the key of every row, shape (N,).
    """

    def __init__(self, run: Run, place: dict[str, int], depth: int | None) -> None:
        at = _places(run.query_ids, place)
        self.known = at[at >= 0]
        known = np.flatnonzero((at >= 0) & (run.counts > 0))
        # In the order of rows, so that finding keys and reading ids takes one sweep.
        known = known[np.argsort(run.starts[known])]
        self.run = run
        self.query, self.starts, self.retrieved = at[known], run.starts[known], run.counts[known]
        counts = self.retrieved
        if depth is not None:
            counts = np.minimum(counts, depth)
        self._offsets = np.concatenate([[0], np.cumsum(counts)])
        self.keys = run.ranked_keys[self._rows(counts)]

    def _rows(self, counts: Ints) -> Ints | slice:
        """Return the run's evaluated rows; a slice if they are consecutive."""
        ends = self.starts + counts
        if (ends[:-1] == self.starts[1:]).all():
            return slice(self.starts[0], ends[-1]) if len(counts) else slice(0)
        return np.repeat(self.starts - self._offsets[:-1], counts) + np.arange(self._offsets[-1])

    def locate(self, places: Ints) -> tuple[Ints, Ints, Ints]:
        """Return list, 1-based rank and the run's row of places in `keys` (ascending)."""
        per_list = np.diff(np.searchsorted(places, self._offsets))
        at = np.repeat(np.arange(len(per_list)), per_list)
        within = places - np.repeat(self._offsets[:-1], per_list)
        return at, within + 1, self.starts[at] + within

    def ties(self) -> tuple[Codes, Codes]:
        """Return query and rank of every document whose score equals that of the next one."""
        if not len(self.starts):
            return np.empty(0, np.int32), np.empty(0, np.int32)
        tied = np.flatnonzero(~_new_block(self.run)) - 1
        at = np.searchsorted(self.starts, tied, side="right") - 1
        # The run's other rows belong to queries that are not evaluated.
        inside = (at >= 0) & (tied < self.starts[at] + self.retrieved[at])
        at, tied = at[inside], tied[inside]
        # There may be tens of millions of them.
        return self.query[at].astype(np.int32), (tied - self.starts[at] + 1).astype(np.int32)
