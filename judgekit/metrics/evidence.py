"""Counting evidence once: ``nDCG(unit=evidence)@5``.

Relevant documents of one page whose spans overlap share evidence, and a connected group of them is a *unit*. A document
gains the excess of its label over the best label of its unit above it; the ideal shows every unit once at its largest
label; and only first showings count. With labels replaced this way, the formulas stay the same.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from judgekit.data.documents import Docs
from judgekit.data.labelings import Scale
from judgekit.data.runs import Run
from judgekit.metrics.cuts import cut_differently
from judgekit.metrics.formulas import gains_of
from judgekit.metrics.hits import LabelledHits
from judgekit.metrics.join import Bools, Floats, Ints
from judgekit.metrics.measures import Measure
from judgekit.metrics.overlapping import sharing, spans_of
from judgekit.spec import Spec

_FIRST: Final = ("RR", "Success")
"""Measures that only look at the first relevant document, which is a first showing."""
_READ: Final = ("unit", "ties")
_REPLACED: Final = (*_READ, "rel", "dcg")
_SHARED: Final = 0.5
"""Two documents share evidence if their spans have this share of the shorter one in common."""


def suited(measures: Iterable[Measure], runs: Sequence[Run], docs: Docs) -> list[Measure]:
    """Return the measures; for runs over different chunks of the same pages, those of evidence."""
    given = list(measures)
    counting_once = [of_evidence(measure) for measure in given]
    # Comparing the chunks reads every document's span.
    return counting_once if counting_once != given and cut_differently(runs, docs) else given


def of_evidence(measure: Measure) -> Measure:
    """Return the measure that counts evidence once; unchanged if it has its own unit or none."""
    if "unit" not in measure.definition.params or "unit" in measure.spec.options:
        return measure
    return Measure(replace(measure.spec, params=(*measure.spec.params, ("unit", "evidence"))))


def by_evidence(hits: LabelledHits, measure: Measure, docs: Docs | None) -> tuple[LabelledHits, Measure]:
    """Return the hits with each label replaced by its document's gain, and the measure of documents to apply."""
    first = measure.name in _FIRST
    done = _READ if first else _REPLACED
    params = tuple((key, value) for key, value in measure.spec.params if key not in done)
    plain = Measure(Spec(measure.name, params, measure.spec.cutoff))
    if first:
        return hits, plain
    by_gain = measure.definition.needs == "gain" or (measure.name == "RBP" and measure.rel is None)
    key = "evidence", by_gain, measure.rel, measure.option("dcg")
    return hits.once(key, lambda: _added(hits, measure, docs, by_gain)), plain


def _added(hits: LabelledHits, measure: Measure, docs: Docs | None, by_gain: bool) -> LabelledHits:
    """Return the hits with each document's gain; with ``by_gain`` labels count as amounts."""
    join, table, scales = hits.join, hits.table, list(hits.scales)
    if measure.definition.needs == "gain":
        table = gains_of(measure, table)
    if not by_gain:
        table = table.copy()
        for row, least in enumerate(hits.threshold(measure.rel).tolist()):
            # Without a threshold labels stay unchanged: P is their mean.
            if not math.isnan(least):
                table[row] = np.where(table[row] >= least, 1, np.minimum(table[row], 0))
                scales[row] = Scale("binary")
    unit = _units(hits, table > 0, docs)
    # Every hit is a pair of its own, since a document's gain depends on what its list showed before.
    apart = copy.copy(join)
    apart.hit_pair, apart.pair_query = np.arange(len(join.hit_pair)), join.hit_list % join.shape[2]
    apart.lost = join.lost[:, join.hit_pair]
    shown = table[:, join.hit_pair]
    best = table.copy()
    for values, gains, units in zip(shown, best, unit, strict=True):
        found = np.flatnonzero(values > 0)
        values[found] = _more(join.hit_list[found], units[join.hit_pair[found]], values[found])
        _keep_best(gains, units)
    added = LabelledHits(apart, shown, drop=hits.drop, scales=scales)
    return added.against(LabelledHits(join, best, scales=scales))


def _units(hits: LabelledHits, relevant: Bools, docs: Docs | None) -> Ints:
    """Return a representative pair of each pair's unit, per labeling, shape (L, P)."""
    join = hits.join
    unit = np.tile(np.arange(relevant.shape[1]), (len(relevant), 1))
    for number, labeling in enumerate(join.labelings):
        rows, pair = join.labelled[number]
        at = np.flatnonzero(relevant[number, pair])
        rows, pair = rows[at], pair[at]
        shared = sharing(spans_of(labeling, rows, docs), join.pair_query[pair], _SHARED)
        unit[number, pair] = pair[shared]
    return unit


def _more(lists: Ints, units: Ints, values: Floats) -> Floats:
    """Return each value's excess over the largest earlier one of its list and unit, at least 0."""
    order = np.lexsort((units, lists))
    new_list = np.diff(lists[order], prepend=-1) != 0
    new_unit = np.diff(units[order], prepend=-1) != 0
    starts = np.flatnonzero(new_list | new_unit)
    block = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(order)))
    levels, level = np.unique(np.append(0, values), return_inverse=True)
    # Levels of later blocks are larger than all earlier ones, so one running maximum serves all blocks.
    base = block * len(levels)
    before = np.maximum.accumulate(base + level[1:][order]) - base
    before[1:] = before[:-1]
    before[starts] = 0
    more = np.empty(len(values))
    more[order] = np.maximum(values[order] - levels[before], 0)
    return more


def _keep_best(gains: Floats, units: Ints) -> None:
    """Keep each unit's largest gain at one of its pairs, and set the others to 0."""
    found = np.flatnonzero(gains > 0)
    order = found[np.lexsort((-gains[found], units[found]))]
    again = np.diff(units[order], prepend=-1) == 0
    gains[order[again]] = 0
