"""The input of the formulas: labelled hits of the join, selected and ranked."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from judgekit.data.labelings import Scale
from judgekit.metrics.join import Bools, Floats, Ints, Join, block_spans

Drop = Literal["nothing", "missing", "unlabelled"]
"""The documents that leave the lists before counting."""

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Hits:
    """Selected retrieved documents with a label, by cell, best first; one entry each.

    Attributes:
        cell: the cell.
        rank: 1-based rank in the list.
        label: the label, or a measure's gain for it.
        flat: index into an array over labelings and the join's hits.
        width: the number of the join's hits.
    """

    cell: Ints
    rank: Ints
    label: Floats
    flat: Ints
    width: int

    @property
    def owner(self) -> Ints:
        """The labeling."""
        return self.flat // self.width

    @cached_property
    def nth(self) -> Ints:
        """The document's place among these in its cell, from 1."""
        return places(self.cell)

    def where(self, chosen: Bools) -> Hits:
        """Return the chosen ones."""
        # Indices: selecting by alternating truth values takes several times as long.
        at = np.flatnonzero(chosen)
        return Hits(self.cell[at], self.rank[at], self.label[at], self.flat[at], self.width)

    def top(self, cutoff: int | None) -> Hits:
        """Return those in the first ``cutoff`` ranks."""
        return self if cutoff is None else self.where(self.rank <= cutoff)


class Weights(NamedTuple):
    """Weights to sum, by cell or group, each with a rank."""

    group: Ints
    rank: Ints
    weight: Floats

    def sum(self, cutoff: int | None, shape: tuple[int, ...]) -> Floats:
        """Return the sum per group over the first ``cutoff`` ranks, added in order."""
        group, weight = self.group, self.weight
        if cutoff is not None:
            inside = np.flatnonzero(self.rank <= cutoff)
            group, weight = group[inside], weight[inside]
        # bincount adds one number after another, like trec_eval; sum would differ in the last bit.
        sums = np.bincount(group, weight, math.prod(shape))
        return np.asarray(sums.reshape(shape), np.float64)


class LabelledHits:
    """Labels on the hits of a `Join`, under one way to treat unlabelled hits.

    Attributes:
        join: the join.
        shape: numbers of labelings, runs and queries (L, R, Q).
        table: the label of each pair, NaN for none, shape (L, P).
        drop: the documents that left the lists.
        retrieved: number of remaining documents per list, shape (1 or L, R, Q).
        asked: the cells whose values are wanted, shape (L, R, Q).
        scales: the labels' scale, per labeling.
    """

    def __init__(
        self,
        join: Join,
        table: Floats | None = None,
        *,
        drop: Drop = "nothing",
        scales: Sequence[Scale] | None = None,
    ) -> None:
        """Put the labels on the hits."""
        self.join, self.shape = join, join.shape
        self.asked: Bools = np.broadcast_to(True, self.shape)
        self._judged: LabelledHits | None = None
        self.scales = list(scales or (labeling.scale for labeling in join.labelings))
        self.table: Floats = join.label if table is None else table
        self.retrieved: Ints = join.retrieved[None, :, :]
        self._rank: Ints = join.hit_rank[None, :]
        self._stays: Bools | None = None
        self._memory: dict[Hashable, Any] = {}
        self.drop: Drop = drop
        # If documents leave the lists, the others move up by the number of those that left above them.
        if drop == "unlabelled":
            # As in trec_eval, a negative grade means that a document was not judged; a gain may be negative.
            least = np.array([-np.inf if scale.kind == "signed" else 0 for scale in self.scales])
            stays = np.take(self.table >= least[:, None], join.hit_pair, axis=1)
            self._stays = stays
            self._rank = self._counted_above(stays) + 1
            self.retrieved = self.count(self._cells(stays)[0])
        if drop == "missing":
            leaves = np.take(join.lost, join.hit_pair, axis=1)
            self._rank = join.hit_rank - self._counted_above(leaves)
            self.retrieved = join.retrieved - self.count(self._cells(leaves)[0])

    def _counted_above(self, chosen: Bools) -> Ints:
        """Return the number of chosen hits above each hit in its list, per labeling, shape (L, H)."""
        self._moved: Ints = np.cumsum(np.pad(chosen, ((0, 0), (1, 0))), axis=1)
        return np.asarray(self._moved[:, :-1] - self._moved[:, self.join.lists[0]])

    def against(self, judged: LabelledHits) -> LabelledHits:
        """Return these hits with other labels for denominators and ideals."""
        # A copy shares the memory, so results about the hits serve both.
        other = copy.copy(self)
        other._judged = judged
        return other

    @property
    def judged(self) -> LabelledHits:
        """The labels for denominators and ideals: the same, except for bounds."""
        return self._judged or self

    def asking(self, cells: Bools) -> LabelledHits:
        """Return these hits for a formula that does not need the other cells."""
        # A user's function may fail on a list whose score is not wanted.
        other = copy.copy(self)
        other.asked = np.broadcast_to(cells, self.shape)
        return other

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the result of the first ``make`` for ``key``."""
        # A table's measures share most of their input: the relevant hits serve P, R, RR and AP at every cutoff.
        if key not in self._memory:
            self._memory[key] = make()
        made: T = self._memory[key]
        return made

    @property
    def cells(self) -> int:
        """The number of cells."""
        return math.prod(self.shape)

    @property
    def group_shape(self) -> tuple[int, int, int]:
        """The shape of values that do not depend on the run, (L, 1, Q)."""
        return self.shape[0], 1, self.shape[2]

    def of_cell(self, values: Ints, cell: Ints) -> Ints:
        """Return the values of the wanted cells; ``values`` broadcast to (L, R, Q)."""
        return np.broadcast_to(values, self.shape).reshape(-1)[cell]

    def count(self, cell: Ints) -> Ints:
        """Return the number of hits of each cell, shape (L, R, Q)."""
        return np.bincount(cell, minlength=self.cells).reshape(self.shape)

    def sum(self, cell: Ints, weight: Floats) -> Floats:
        """Return the sum of weights per cell, added in the order given, shape (L, R, Q)."""
        sums = np.bincount(cell, weight, self.cells)
        return np.asarray(sums.reshape(self.shape), np.float64)

    def looked_at(self, cutoff: int | None) -> Ints:
        """Return the number of documents within a cutoff, shape (1 or L, R, Q)."""
        return self.retrieved if cutoff is None else np.minimum(self.retrieved, cutoff)

    def within(self, found: Hits, cutoff: Ints | int | None) -> Floats:
        """Return the number of these hits within a cutoff, shape (L, R, Q)."""
        cell = found.cell
        if cutoff is not None:
            cell = cell[np.flatnonzero(found.rank <= cutoff)]
        return self.count(cell).astype(np.float64)

    def ties(self, found: Hits) -> tuple[Ints, Ints]:
        """Return, per hit, the numbers of documents before and in its block of equal scores."""
        hit = found.flat % found.width
        before, size, first, last = (column[hit] for column in self.join.blocks)
        if self.drop == "nothing":
            return before, size
        row = found.owner
        start = self.join.lists[0][hit]
        at_block = self._moved[row, first]
        above: Ints = at_block - self._moved[row, start]
        inside: Ints = self._moved[row, last] - at_block
        return (above, inside) if self.drop == "unlabelled" else (before - above, size - inside)

    def tied(self, found: Hits) -> tuple[Ints, Ints]:
        """Return, per hit, the first of these hits in its block and the one after the last; see `ties`."""
        return block_spans(found.cell, self.ties(found)[0])

    def _cells(self, chosen: Bools) -> tuple[Ints, Ints, Ints, Ints]:
        """Return cell, labeling, hit and flat index of the chosen ones, shape (L, H)."""
        owner, hit, flat = _where(chosen)
        _, runs, queries = self.shape
        cell = owner * (runs * queries) + self.join.hit_list[hit]
        return cell, owner, hit, flat

    def _select(self, chosen: Bools) -> Hits:
        """Return the hits remaining in the lists whose pair has a chosen label, shape (L, P)."""
        # Gathering the chosen hits and then their labels moves an eighth of the bytes of all labels.
        hit_pair = self.join.hit_pair
        there = np.take(chosen, hit_pair, axis=1)
        if self._stays is not None:
            there &= self._stays
        cell, owner, hit, flat = self._cells(there)
        rank = self._rank[0, hit] if len(self._rank) == 1 else self._rank[owner, hit]
        pair = owner * self.table.shape[1] + hit_pair[hit]
        return Hits(cell, rank, self.table.ravel()[pair], flat, max(len(hit_pair), 1))

    def threshold(self, rel: float | None) -> Floats:
        """Return the smallest relevant label per labeling, shape (L,); NaN if undeclared."""
        if rel is not None:
            return np.full(self.shape[0], float(rel))
        # As float64, None is NaN.
        return np.array([scale.min_rel for scale in self.scales], np.float64)

    def relevant(self, rel: float | None) -> Hits:
        """Return the relevant hits under a threshold (None: the labelings' own)."""
        return self.once(("relevant", rel), lambda: self._select(self._reaches(rel)))

    def _reaches(self, rel: float | None) -> Bools:
        """Return which labels are relevant, shape (L, P)."""
        return np.asarray(self.table >= self.threshold(rel)[:, None])

    def positive(self) -> Hits:
        """Return the hits with a label above 0."""
        return self.once("positive", lambda: self._select(self.table > 0))

    def labelled(self) -> Hits:
        """Return all hits with a label."""
        return self.once("labelled", lambda: self._select(~np.isnan(self.table)))

    def total(self, rel: float | None) -> Ints:
        """Return the number of relevant documents per labeling and query, shape (L, 1, Q)."""
        return self.once(("total", rel), lambda: self.per_group(self._reaches(rel)))

    def per_group(self, chosen: Bools) -> Ints:
        """Return the number of chosen labels, shape (L, P), in each group, shape (L, 1, Q)."""
        group, _ = self.groups(chosen)
        counts = np.bincount(group, minlength=math.prod(self.group_shape))
        return counts.reshape(self.group_shape)

    @cached_property
    def largest(self) -> Floats:
        """The largest label per labeling and query, -inf without one, shape (L, 1, Q)."""
        out = np.full(math.prod(self.group_shape), -np.inf)
        group, label = self.groups(~np.isnan(self.table))
        np.maximum.at(out, group, label)
        return out.reshape(self.group_shape)

    def no_relevant(self, rel: float | None) -> Bools:
        """Return which groups lack a relevant document, or a label above 0 if the scale has no threshold, (L, 1, Q)."""
        undecided = np.isnan(self.threshold(rel))
        none: Bools = self.total(rel) == 0
        if undecided.any():
            none = np.where(undecided[:, None, None], ~(self.largest > 0), none)
        return none

    def groups(self, chosen: Bools) -> tuple[Ints, Floats]:
        """Return group and label of the chosen labels, shape (L, P)."""
        owner, pair, flat = _where(chosen)
        group = owner * self.shape[2] + self.join.pair_query[pair]
        return group, self.table.ravel()[flat]


def _where(chosen: Bools) -> tuple[Ints, Ints, Ints]:
    """Return row, column and flat index of True values, in a fraction of the time of `numpy.nonzero`."""
    flat = np.flatnonzero(chosen)
    row = np.repeat(np.arange(len(chosen)), np.count_nonzero(chosen, axis=1))
    return row, flat - row * chosen.shape[1], flat


def best_first(group: Ints, gain: Floats) -> Weights:
    """Rank gains from the largest to the smallest within each group."""
    levels = np.sort(gain)
    levels = levels[np.diff(levels, prepend=-np.inf) > 0]
    count = max(len(levels), 1)
    # One sort of integers of group and gain is several times faster than sorting by two keys.
    from_top = count - 1 - np.searchsorted(levels, gain)
    keys = np.sort(group * count + from_top)
    group, down = np.divmod(keys, count)
    return Weights(group, places(group), levels[count - 1 - down])


def places(groups: Ints) -> Ints:
    """Return each row's place within its group, from 1; rows of a group are adjacent."""
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    lengths = np.diff(starts, append=len(groups))
    return np.arange(1, len(groups) + 1) - np.repeat(starts, lengths)
