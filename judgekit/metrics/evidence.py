"""Evidence that is counted once: ``nDCG(unit=evidence)@5``.

Relevant documents of one page whose spans overlap share evidence, and a connected group of them is a *unit*. A
document gains what its label exceeds the best label of its unit that was shown before it, the ideal shows every unit
once at its largest label, and what is counted are first showings. Once labels are replaced so, the formulas hold as
they are.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from judgekit.data.checks import cut_differently
from judgekit.data.documents import Docs
from judgekit.data.labelings import Scale
from judgekit.data.runs import Run
from judgekit.data.spans import sharing, spans_of
from judgekit.metrics.formulas import gains_of
from judgekit.metrics.hits import LabelledHits
from judgekit.metrics.join import Bools, Floats, Ints
from judgekit.metrics.measures import Measure
from judgekit.spec import Spec

_FIRST: Final = ("RR", "Success")
"""Measures that look no further than the first relevant document, which is a first showing."""
_READ: Final = ("unit", "overlap", "ties")
_REPLACED: Final = (*_READ, "rel", "dcg", "gains")


def suited(measures: Iterable[Measure], runs: Sequence[Run], docs: Docs) -> list[Measure]:
    """Return the measures; where runs are over different cuts of the same pages, those of evidence."""
    found = list(measures)
    apart = any(of_evidence(measure) != measure for measure in found) and cut_differently(runs, docs)
    return [of_evidence(measure) if apart else measure for measure in found]


def of_evidence(measure: Measure) -> Measure:
    """Return the measure that counts evidence once; as it is where it says what it counts, or has no such unit."""
    if "unit" not in measure.definition.params or "unit" in measure.spec.options:
        return measure
    return Measure(replace(measure.spec, params=(*measure.spec.params, ("unit", "evidence"))))


def by_evidence(hits: LabelledHits, measure: Measure, docs: Docs | None) -> tuple[LabelledHits, Measure]:
    """Return the hits, each label replaced by what its document adds, and the measure of documents to take of them."""
    first = measure.name in _FIRST
    params = tuple((k, v) for k, v in measure.spec.params if k not in (_READ if first else _REPLACED))
    plain = Measure(Spec(measure.name, params, measure.spec.cutoff))
    if first:
        return hits, plain
    by_gain = measure.definition.needs == "gain" or (measure.name == "RBP" and measure.rel is None)
    key = "evidence", by_gain, *(measure.option(k) for k in ("overlap", "rel", "dcg", "gains"))
    return hits.once(key, lambda: _added(hits, measure, docs, by_gain)), plain


def _added(hits: LabelledHits, measure: Measure, docs: Docs | None, by_gain: bool) -> LabelledHits:
    join, table, scales = hits.join, hits.table, list(hits.scales)
    if by_gain:
        table = gains_of(measure, table) if measure.definition.needs == "gain" else table
    else:
        least = hits.threshold(measure.rel)
        asked = ~np.isnan(least)[:, None]
        table = np.where(asked, np.where(table >= least[:, None], 1, np.minimum(table, 0)), table)
        scales = [Scale("binary") if known else scale for known, scale in zip(asked[:, 0], scales, strict=True)]
    unit = _units(hits, table > 0, float(measure.option("overlap") or 0), docs)
    # Every hit is a pair of its own: what a document adds depends on what its list showed before.
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


def _units(hits: LabelledHits, relevant: Bools, overlap: float, docs: Docs | None) -> Ints:
    """Return per labeling and pair a pair of its unit, the same for all of them, shape (L, P)."""
    join = hits.join
    unit = np.tile(np.arange(relevant.shape[1]), (len(relevant), 1))
    for labeling, (rows, pair), chosen, units in zip(join.labelings, join.labelled, relevant, unit, strict=True):
        at = np.flatnonzero(chosen[pair])
        rows, pair = rows[at], pair[at]
        units[pair] = pair[sharing(spans_of(labeling, rows, docs), join.pair_query[pair], overlap)]
    return unit


def _more(lists: Ints, units: Ints, values: Floats) -> Floats:
    """Return what each value exceeds the largest one of its list and unit that stands before it, at least 0."""
    order = np.lexsort((units, lists))
    starts = np.flatnonzero((np.diff(lists[order], prepend=-1) != 0) | (np.diff(units[order], prepend=-1) != 0))
    block = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(order))))
    levels, level = np.unique(np.append(0, values), return_inverse=True)
    # Levels of a later block are larger than all of an earlier one, so that one running maximum serves all blocks.
    before = np.maximum.accumulate(block * len(levels) + level[1:][order]) - block * len(levels)
    before[1:] = before[:-1]
    before[starts] = 0
    more = np.empty(len(values))
    more[order] = np.maximum(values[order] - levels[before], 0)
    return more


def _keep_best(gains: Floats, units: Ints) -> None:
    """Leave of each unit its largest gain, at one of its pairs; the others become 0."""
    found = np.flatnonzero(gains > 0)
    order = found[np.lexsort((-gains[found], units[found]))]
    gains[order[np.diff(units[order], prepend=-1) == 0]] = 0
