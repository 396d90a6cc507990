"""Scoring runs with labelings: `evaluate` and the options that decide what is a score and what is undefined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, get_args

import numpy as np

from judgekit.data.labelings import Labeling, Scale
from judgekit.data.ordering import Ties
from judgekit.data.runs import Run
from judgekit.errors import UsageError, nearest
from judgekit.metrics.expected import EXPECTED
from judgekit.metrics.formulas import FORMULAS, rel
from judgekit.metrics.join import Bools, Floats, Join
from judgekit.metrics.measure import Measure, parse_measure
from judgekit.metrics.results import Evaluation
from judgekit.metrics.scene import Drop, Scene
from judgekit.spec import Spec

__all__ = ["Missing", "NoRelevant", "NotInRun", "Unjudged", "evaluate"]

Missing = Literal["undefined", "zero", "condense", "bounds"]
"""What a label that was asked for and not obtained does to the scores of its query: makes them undefined; counts as
the label 0; leaves the document out of the lists; or gives bounds over every label it may have."""
Unjudged = Literal["nonrelevant", "condense", "bounds"]
"""What a document is that nobody asked about: not relevant; left out of the lists; or a hole as above."""
NoRelevant = Literal["zero", "skip"]
"""What a query scores that has no relevant document: 0, or nothing (undefined)."""
NotInRun = Literal["zero", "skip"]
"""What a query scores that a run lacks: 0 (trec_eval -c), or nothing (undefined)."""

_LOOSE: Final = {"AUC", "Bpref", "Rprec"}
"""Measures that no filling of holes bounds more simply than their whole range."""


def evaluate(
    runs: Sequence[Run],
    labelings: Sequence[Labeling],
    measures: Sequence[Measure | str],
    *,
    query_ids: Sequence[str] | None = None,
    depth: int | None = None,
    missing: Missing = "undefined",
    unjudged: Unjudged = "nonrelevant",
    no_relevant: NoRelevant = "zero",
    not_in_run: NotInRun = "zero",
) -> Evaluation:
    """Score runs with labelings.

    How tied documents count is the runs' own (`Run.ties`).

    Args:
        runs: the runs, with distinct names.
        labelings: the labelings, with distinct names. What they list is what there is: a document that they do not
            list is unjudged, and R, AP and nDCG count the relevant ones among what they list.
        measures: measures or their spellings.
        query_ids: the queries to score; by default, for each labeling, all queries that it lists. A labeling is not
            applicable to one of these that it does not list and a run has documents for. Queries of a run beyond
            these are left out and counted.
        depth: cut every run to its first documents before anything else.
        missing: what a missing label does. A label that is not applicable always makes its query undefined.
        unjudged: what a document without any label is.
        no_relevant: what a query without relevant documents scores.
        not_in_run: what a query scores that a run lacks.

    Raises:
        UsageError: there is nothing to score, names repeat, a measure or option is unknown, a measure looks deeper
            than ``depth``, or options cannot be had together.
    """
    parsed = list(dict.fromkeys(parse_measure(m) for m in measures))
    _check_options(missing=missing, unjudged=unjudged, no_relevant=no_relevant, not_in_run=not_in_run)
    _check_names("run", [run.name for run in runs])
    _check_names("labeling", [labeling.name for labeling in labelings])
    if not parsed:
        raise UsageError("there is no measure to compute")
    if depth is not None:
        deep = next((m for m in parsed if (m.cutoff or 0) > depth), None)
        if deep is not None or depth < 1:
            raise UsageError(f"{deep or 'every measure'} looks at more documents than the depth of {depth}")
        runs = [run.cut(depth) for run in runs]
    bounds = "bounds" in (missing, unjudged)
    if bounds:
        _check_bounds(parsed, no_relevant)
    ids = sorted(set(query_ids) if query_ids is not None else {q for x in labelings for q in x.row_queries})
    join = Join(
        runs,
        labelings,
        ids,
        depth=_looked_at(parsed, runs, condensed="condense" in (missing, unjudged)),
        missing_as_holes=missing == "bounds",
        unjudged_as_holes=unjudged == "bounds",
    )
    if query_ids is not None:
        # What no run has anything for scores 0 whatever its labels are; what a labeling knows nothing of, does not.
        join.excused |= ~join.listed & (join.retrieved > 0).any(axis=0)
        join.listed[:] = True
    reasons = {
        (labeling.name, str(m)): reason
        for labeling in labelings
        for m in parsed
        if (reason := _undefined(m, labeling, averaged=bool(join.averaged.any())))
    }
    blank = join.excused | ~join.listed
    if missing == "undefined":
        blank |= join.missing
    computer = _Computer(join, missing, unjudged)
    shape = (len(parsed), *join.shape)
    values = np.empty(shape)
    low, high = (np.empty(shape), np.empty(shape)) if bounds else (None, None)
    for i, measure in enumerate(parsed):
        bad = np.array([(labeling.name, str(measure)) in reasons for labeling in labelings])
        undefined = blank[:, None, :] | bad[:, None, None]
        if no_relevant == "skip":
            undefined = undefined | computer.barren(measure)
        if not_in_run == "skip":
            undefined = undefined | (join.retrieved == 0)
        values[i] = np.where(undefined, np.nan, computer.values(measure))
        if low is not None and high is not None:
            low[i], high[i] = (np.where(undefined, np.nan, bound) for bound in computer.bounds(measure))
            # With a hole the value is known only where every filling of it gives the same.
            filled = np.where(low[i] == high[i], low[i], np.nan)
            values[i] = np.where(computer.holes[:, None, :], filled, values[i])
    warnings = [*_warnings(parsed, labelings, bounds=bounds), *_strangers(join)]
    return Evaluation(join, parsed, ids, values, reasons, warnings, low=low, high=high)


class _Computer:
    """Computes measures on the scenes that the options ask for, making each scene once."""

    def __init__(self, join: Join, missing: Missing, unjudged: Unjudged) -> None:
        self._join = join
        self._formulas = FORMULAS | (EXPECTED if join.averaged.any() else {})
        self._drop: Drop = "missing" if missing == "condense" else "nothing"
        self._condensed = unjudged == "condense"
        self._table: Floats = np.where(join.lost, 0, join.label) if missing == "zero" else join.label
        self._scenes: dict[tuple[str, Drop], Scene] = {}
        self.holes: Bools = np.zeros((join.shape[0], join.shape[2]), np.bool_)
        labeling, pair = np.nonzero(join.holes)
        self.holes[labeling, join.pair_query[pair]] = True

    def _scene(self, measure: Measure, which: str = "plain") -> Scene:
        drop: Drop = "unlabelled" if self._condensed or measure.option("judged_only") else self._drop
        if (which, drop) not in self._scenes:
            table = self._table
            if which != "plain":
                table = np.where(self._join.holes, self._end(which, drop)[:, None], table)
            self._scenes[which, drop] = Scene(self._join, table, drop=drop)
        return self._scenes[which, drop]

    def _end(self, which: str, drop: Drop) -> Floats:
        """Return the largest label that a hole may have, the lowest, or the worst, by labeling."""
        scales = [labeling.scale for labeling in self._join.labelings]
        if which == "high":
            return np.array([s.high for s in scales], np.float64)
        # A negative grade would leave a condensed list, and so be no worse than a 0 that stays in it.
        stays = which == "worst" and drop == "unlabelled"
        return np.array([0 if stays and s.kind != "signed" else s.low for s in scales], np.float64)

    def values(self, measure: Measure) -> Floats:
        """Return the measure's values, shape (L, R, Q)."""
        return self._formulas[measure.name](self._scene(measure), measure)

    def bounds(self, measure: Measure) -> tuple[Floats, Floats]:
        """Return bounds of a measure over all labels that the missing ones may have.

        What is retrieved takes its lowest labels while the denominator takes its highest, and the other way round.
        """
        # What asks for no label, but how many documents a list has, is least where the most of them leave it.
        low_end = "low" if measure.definition.needs == "nothing" else "worst"
        worst, best = self._scene(measure, low_end), self._scene(measure, "high")
        formula = self._formulas[measure.name]
        low = formula(worst.against(best), measure)
        high = formula(best.against(worst), measure)
        if measure.lower_is_better:
            # Where nothing but holes may be relevant, the first relevant one may stand anywhere.
            last = np.where(np.isnan(high), np.nan, np.broadcast_to(worst.retrieved, low.shape))
            low, high = high, np.where(np.isnan(low), last, low)
        most = measure.definition.high
        high = high if most is None else np.minimum(high, most)
        if measure.name in _LOOSE or measure.option("best") or measure.option("by") == "hits":
            wide = self.holes[:, None, :]
            low, high = np.where(wide, measure.definition.low, low), np.where(wide, measure.definition.high or 1, high)
        return low, high

    def barren(self, measure: Measure) -> Bools:
        """Return which queries have no relevant document under a measure's threshold, shape (L, 1, Q)."""
        return self._scene(measure).barren(rel(measure))


def _check_options(**given: str) -> None:
    known = {"missing": Missing, "unjudged": Unjudged, "no_relevant": NoRelevant, "not_in_run": NotInRun}
    for name, value in given.items():
        choices = get_args(known[name])
        if value not in choices:
            raise UsageError(f"{name} is one of {', '.join(choices)}, not {value!r}.{nearest(str(value), choices)}")


def _check_names(what: str, names: list[str]) -> None:
    if not names:
        raise UsageError(f"there is no {what} to score")
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise UsageError(f"there are two {what}s named {twice!r}; name them apart")


def _check_bounds(measures: list[Measure], no_relevant: NoRelevant) -> None:
    if no_relevant == "skip":
        raise UsageError("bounds are over all queries: they cannot be had with no_relevant=skip")
    custom = next((m for m in measures if m.option("gains") is not None), None)
    if custom is not None:
        raise UsageError(f"bounds ask for gains that grow with the labels: they cannot be had for {custom}")


def _looked_at(measures: list[Measure], runs: Sequence[Run], *, condensed: bool) -> int | None:
    """Return how many documents from the top any measure looks at, or None if some look at all of them."""
    moved = condensed or any(m.option("judged_only") for m in measures)
    if moved or any(run.ties is Ties.EXPECTED for run in runs) or any(m.cutoff is None for m in measures):
        return None
    return max(m.cutoff or 0 for m in measures)


def _undefined(measure: Measure, labeling: Labeling, *, averaged: bool) -> str:
    """Return why a measure is not defined under a labeling, or ''."""
    needs, scale, name = measure.definition.needs, labeling.scale, measure.name
    if needs == "nothing" and rel(measure) is not None:
        needs = "binary"
    whose = f"the {scale.kind} labels of {labeling.name}"
    if scale.kind == "signed" and needs in ("binary", "amount"):
        return f"{name} is not defined on signed labels, and {whose} are gains that may be negative"
    if needs == "binary" and scale.min_rel is None and rel(measure) is None and not measure.option("best"):
        example = Measure(Spec(name, (*measure.spec.params, ("rel", 0.5)), measure.cutoff))
        return (
            f"{name} needs to know which documents are relevant, and {whose} do not say it: give rel=, as in {example}"
        )
    if averaged and measure.option("ideal") == "retrieved" and measure.cutoff is not None:
        return f"{measure} has no closed form over the orders of tied documents: break ties by a rule"
    if name == "ERR":
        return _undefined_err(measure, scale)
    return ""


def _undefined_err(measure: Measure, scale: Scale) -> str:
    most = measure.option("max")
    if measure.option("prob") == "label" and scale.high > 1:
        return f"{measure} takes labels as probabilities, and those of {scale} are not"
    if most is not None and float(most) < scale.high:
        return f"{measure} cannot hold the labels up to {scale.high} that the scale {scale} allows"
    return ""


def _strangers(join: Join) -> list[str]:
    """Return which runs have nothing to do with a labeling: another collection's, or ids written otherwise."""
    out = []
    count, queries = join.shape[1:]
    for known, listed, labeling in zip(join.known, join.listed, join.labelings, strict=True):
        if not listed.any():
            continue
        judged = np.bincount(join.hit_list[known[join.hit_pair]] // queries, minlength=count)
        shared = np.count_nonzero(join.retrieved[:, listed], axis=1)
        for run, some, met in zip(join.runs, judged.tolist(), shared.tolist(), strict=True):
            if not met:
                out.append(f"{run.name} has none of the queries of {labeling.name}: are these of one collection?")
            elif not some:
                out.append(f"{labeling.name} lists none of the documents of {run.name}: are these of one collection?")
    return out


def _warnings(measures: list[Measure], labelings: Sequence[Labeling], *, bounds: bool) -> list[str]:
    """Return what the user should know about scales that nobody declared."""
    out = []
    for labeling in labelings:
        if labeling.declared:
            continue
        seen = f"the scale of {labeling.name} was not declared; {labeling.scale.high} is its largest label"
        for measure in measures:
            if measure.name == "ERR" and measure.option("max") is None and measure.option("prob") != "label":
                out.append(f"{seen}, and {measure} takes it for the largest grade there is")
        if bounds:
            out.append(f"{seen}, and bounds take it for the largest label that a hole may have")
    return out
