"""Scoring runs with labelings: `evaluate` and the options that decide what is a score and what is undefined."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, Literal, get_args

import numpy as np

from judgekit.data.checks import disjoint
from judgekit.data.documents import Docs
from judgekit.data.labelings import Labeling
from judgekit.data.runs import Run, Ties
from judgekit.data.spans import spans_of
from judgekit.errors import UsageError, nearest
from judgekit.metrics.evidence import by_evidence
from judgekit.metrics.hits import Drop, LabelledHits
from judgekit.metrics.join import Bools, Floats, Join
from judgekit.metrics.measures import Measure, parse_measures
from judgekit.metrics.results import Evaluation
from judgekit.spec import Value

_POOLED: Final = frozenset({"AP", "DCG", "F1", "P", "R", "RBP", "Rprec", "SetF", "SetP", "SetR", "nDCG"})
"""Measures that count documents; of the others the first relevant one decides, or they count pairs of a list."""
_OTHER_CUTS: Final = (
    "Take RR or Success, or say where documents stand on their pages (judgekit chunks) and take unit=evidence."
)

Missing = Literal["undefined", "zero", "condense", "bounds"]
"""What a label that was asked for and not obtained does to the scores of its query: makes them undefined; counts as
the label 0; leaves the document out of the lists; or gives bounds over every label it may have."""
Unjudged = Literal["nonrelevant", "condense", "bounds"]
"""What a document is that nobody asked about: not relevant; left out of the lists; or anything, as above."""


def evaluate(
    runs: Sequence[Run],
    labelings: Sequence[Labeling],
    measures: str | Iterable[object],
    *,
    query_ids: Sequence[str] | None = None,
    depth: int | None = None,
    missing: Missing = "undefined",
    unjudged: Unjudged = "nonrelevant",
    docs: Docs | None = None,
) -> Evaluation:
    """Score runs with labelings; `judgekit.score` says what the options mean."""
    parsed = parse_measures(measures)
    for name, given, kind in (("missing", missing, Missing), ("unjudged", unjudged, Unjudged)):
        if given not in (choices := get_args(kind)):
            raise UsageError(f"{name} is one of {', '.join(choices)}, not {given!r}.{nearest(str(given), choices)}")
    _check_names("run", [run.name for run in runs])
    _check_names("labeling", [labeling.name for labeling in labelings])
    if not parsed:
        raise UsageError("give at least one measure to compute")
    if depth is not None:
        deep = next((m for m in parsed if (m.cutoff or 0) > depth), None)
        if deep is not None or depth < 1:
            raise UsageError(f"{deep or 'every measure'} looks at more documents than the depth of {depth}")
    bounds = "bounds" in (missing, unjudged)
    if bounds:
        for why in filter(None, map(_unbounded, parsed)):
            raise UsageError(why)
    ids = sorted(set(query_ids) if query_ids is not None else {q for x in labelings for q in x.row_queries})

    def computer_of(ties: Value | None) -> _Computer:
        ordered = [run if ties is None else run.with_ties(Ties(str(ties))) for run in runs]
        ordered = ordered if depth is None else [run.cut(depth) for run in ordered]
        join = Join(
            ordered,
            labelings,
            ids,
            depth=_looked_at(parsed, condensed="condense" in (missing, unjudged)),
            missing_unknown=missing == "bounds",
            unjudged_unknown=unjudged == "bounds",
        )
        return _Computer(join, missing, unjudged, docs)

    computers = {ties: computer_of(ties) for ties in {None: 0} | dict.fromkeys(m.option("ties") for m in parsed)}
    join = computers[None].join
    if query_ids is not None:
        # What no run has anything for scores 0 whatever its labels are; what a labeling knows nothing of, does not.
        join.excused |= ~join.listed & (join.retrieved > 0).any(axis=0)
        join.listed[:] = True
    reasons = {
        (labeling.name, str(m)): reason for labeling in labelings for m in parsed if (reason := _undefined(m, labeling))
    }
    blank = join.excused | ~join.listed
    if missing == "undefined":
        blank |= join.missing
    values, low, high = [], [], []
    for measure in parsed:
        computer = computers[measure.option("ties")]
        bad = np.array([(labeling.name, str(measure)) in reasons for labeling in labelings])
        undefined = blank[:, None, :] | bad[:, None, None]
        value = np.where(undefined, np.nan, computer.values(measure, ~undefined))
        if bounds:
            below, above = (np.where(undefined, np.nan, bound) for bound in computer.bounds(measure))
            # With an unknown label the value is known only where every label it may have gives the same.
            known = np.where(below == above, below, np.nan)
            value = np.where(computer.unknown[:, None, :], known, value)
            low.append(below)
            high.append(above)
        values.append(value)
    warnings = [*_warnings(parsed, labelings, bounds=bounds), *_unrelated(join)]
    warnings += [*_spanless(join, parsed, docs), *_apart(join, parsed)]
    found = np.array(values)
    ends = (np.array(low), np.array(high)) if bounds else None
    lost = join.missing & join.listed & ~join.excused
    if missing == "undefined" and lost.any():
        bounded = [m for m in parsed if not _unbounded(m)]
        rows, columns = (np.flatnonzero(lost.any(axis=axis)).tolist() for axis in (1, 0))
        part = bounded and evaluate(
            runs,
            [labelings[row] for row in rows],
            bounded,
            query_ids=[ids[column] for column in columns],
            depth=depth,
            missing="bounds",
            unjudged=unjudged,
            docs=docs,
        )
        open_ = lost[None, :, None, :] & np.isnan(found)
        ends = np.where(open_, -np.inf, found), np.where(open_, np.inf, found)
        if part:
            at = np.ix_(*map(np.array, ([parsed.index(m) for m in bounded], rows, range(len(runs)), columns)))
            for end, bound in zip(ends, (part.low, part.high), strict=True):
                end[at] = np.where(open_[at] & ~np.isnan(bound), bound, end[at])
    return Evaluation(join, parsed, found, reasons, warnings, ends, bounded=bounds)


class _Computer:
    """Computes measures on the labelled hits that the options ask for, making each kind of them once."""

    def __init__(self, join: Join, missing: Missing, unjudged: Unjudged, docs: Docs | None) -> None:
        self.join, self._docs = join, docs
        self._drop: Drop = "missing" if missing == "condense" else "nothing"
        self._condensed = unjudged == "condense"
        self._table: Floats = np.where(join.lost, 0, join.label) if missing == "zero" else join.label
        self._made: dict[tuple[str, Drop], LabelledHits] = {}
        self.unknown: Bools = np.zeros((join.shape[0], join.shape[2]), np.bool_)
        labeling, pair = np.nonzero(join.unknown_labels)
        self.unknown[labeling, join.pair_query[pair]] = True

    def hits(self, measure: Measure, filled: str = "") -> LabelledHits:
        """Return the hits that a measure looks at, unknown labels filled with the ``high``, ``low`` or ``worst``."""
        drop: Drop = "unlabelled" if self._condensed or measure.option("judged_only") else self._drop
        key = filled, drop
        if key not in self._made:
            table = self._table
            if filled:
                table = np.where(self.join.unknown_labels, self._end(filled, drop)[:, None], table)
            self._made[key] = LabelledHits(self.join, table, drop=drop)
        return self._made[key]

    def _end(self, filled: str, drop: Drop) -> Floats:
        """Return the largest label that may be, the lowest, or the worst, by labeling."""
        scales = [labeling.scale for labeling in self.join.labelings]
        if filled == "high":
            return np.array([s.high for s in scales], np.float64)
        # A negative grade would leave a condensed list, and so be no worse than a 0 that stays in it.
        stays = filled == "worst" and drop == "unlabelled"
        return np.array([0 if stays and s.kind != "signed" else s.low for s in scales], np.float64)

    def values(self, measure: Measure, asked: Bools) -> Floats:
        """Return the measure's values, shape (L, R, Q), those asked for at least."""
        hits = self.hits(measure).asking(asked)
        if measure.by_evidence:
            hits, measure = by_evidence(hits, measure, self._docs)
        return measure.definition.compute(hits, measure)

    def bounds(self, measure: Measure) -> tuple[Floats, Floats]:
        """Return bounds of a measure over all labels that the unknown ones may have."""
        # What is retrieved takes its lowest labels while the denominator takes its highest, and the other way round.
        about = measure.definition
        if measure.by_evidence:
            # Unknown labels may make units, or join them: anything may be.
            known, wide = self.values(measure, np.ones((), np.bool_)), self.unknown[:, None, :]
            return np.where(wide, float(about.low or 0), known), np.where(wide, float(about.high or 1), known)
        # What asks for no label, but how many documents a list has, is least where the most of them leave it.
        worst = self.hits(measure, "low" if about.needs == "nothing" else "worst")
        best = self.hits(measure, "high")
        low = about.compute(worst.against(best), measure)
        high = about.compute(best.against(worst), measure)
        if measure.lower_is_better:
            # Where only unknown labels may be relevant, the first relevant one may stand anywhere.
            last = np.where(np.isnan(high), np.nan, np.broadcast_to(worst.retrieved, low.shape))
            low, high = high, np.where(np.isnan(low), last, low)
        high = high if about.high is None else np.minimum(high, about.high)
        if about.unbounded(measure):
            wide = self.unknown[:, None, :]
            low, high = np.where(wide, float(about.low or 0), low), np.where(wide, float(about.high or 1), high)
        return low, high


def _check_names(what: str, names: list[str]) -> None:
    if not names:
        raise UsageError(f"give at least one {what} to score")
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise UsageError(f"there are two {what}s named {twice!r}; give them different names")


def _unbounded(measure: Measure) -> str:
    """Return why nothing bounds a measure where labels are unknown, "" where something does."""
    if measure.option("gains") is not None:
        return f"bounds need gains that grow with the labels, which those of {measure} do not"
    if measure.by_evidence and measure.definition.high is None:
        return f"{measure} has no bounds: unknown labels may make or join units of evidence"
    return f"{measure} has no bounds: nothing says how its values grow with the labels" * bool(
        measure.definition.author
    )


def _looked_at(measures: list[Measure], *, condensed: bool) -> int | None:
    """Return how many documents from the top any measure looks at, or None if some look at all of them."""
    moved = condensed or any(m.option("judged_only") for m in measures)
    if moved or any(m.cutoff is None for m in measures):
        return None
    return max(m.cutoff or 0 for m in measures)


def _undefined(measure: Measure, labeling: Labeling) -> str:
    """Return why a measure is not defined under a labeling, or ''."""
    needs, scale, name = measure.definition.needs, labeling.scale, measure.name
    if needs == "nothing" and measure.rel is not None:
        needs = "binary"
    whose = f"the {scale.kind} labels of {labeling.name}"
    if scale.kind == "signed" and needs in ("binary", "amount"):
        return f"{name} is not defined on signed labels, and {whose} are gains that may be negative"
    if needs == "binary" and scale.min_rel is None and measure.rel is None and not measure.option("best"):
        example = replace(measure.spec, params=(*measure.spec.params, ("rel", 0.5)))
        return (
            f"{name} needs to know which documents are relevant, and {whose} do not say it: give rel=, as in {example}"
        )
    if measure.by_evidence and measure.option("ideal") == "retrieved":
        return f"{measure} has no ideal of the retrieved: what a document adds depends on what stands above it"
    return measure.definition.undefined(measure, scale)


def incomparable(runs: Sequence[Run], measure: Measure) -> str:
    """Return why a measure does not compare runs: they are over other documents, and it counts documents; else ""."""
    pairs = list(disjoint(runs)) if measure.name in _POOLED and not measure.by_evidence else []
    if not pairs:
        return ""
    one, other, share = pairs[0]
    more = f" (and {len(pairs) - 1} more pairs of runs)" if pairs[1:] else ""
    return (
        f"{one} and {other} share {share:.0%} of their documents{more}, so {measure} cannot compare them:"
        f" documents of one count against the other. {_OTHER_CUTS}"
    )


def _apart(join: Join, measures: list[Measure]) -> Iterator[str]:
    """Yield which measures do not compare runs that share few documents."""
    asked = [measure for measure in measures if measure.name in _POOLED and not measure.by_evidence]
    if asked and (why := incomparable(join.runs, asked[0])):
        names = f" The same holds for {', '.join(map(str, asked[1:]))}." if asked[1:] else ""
        yield why + names


def _spanless(join: Join, measures: list[Measure], docs: Docs | None) -> Iterator[str]:
    """Yield which labelings do not say where relevant documents stand, of each of which evidence is counted once."""
    asked = next((measure for measure in measures if measure.by_evidence), None)
    if asked is None:
        return
    lacking = {}
    for labeling, (rows, pair), label in zip(join.labelings, join.labelled, join.label, strict=True):
        relevant = rows[label[pair] > 0]
        known = len(np.unique(spans_of(labeling, relevant, docs).row))
        lacking[labeling.name] = len(relevant) - known, len(relevant)
    if all(without == of for without, of in lacking.values()) and any(of for _, of in lacking.values()):
        raise UsageError(
            f"{asked} needs the positions of documents on their pages: give docs with page_id, start and end"
            " (judgekit chunks finds them)"
        )
    for name, (without, of) in lacking.items():
        if without:
            yield f"{name}: {without:,} of {of:,} relevant documents have no span; each counts as evidence of its own"


def foreign(evaluation: Evaluation) -> list[str]:
    """Return the labelings that list no document of any run, so that each 0 would say nothing of the runs."""
    join = evaluation._join
    listed = zip(join.labelings, join.known, join.listed, strict=True)
    return [one.name for one, known, queries in listed if queries.any() and not known[join.hit_pair].any()]


def _unrelated(join: Join) -> list[str]:
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
                out.append(f"{run.name} has none of the queries of {labeling.name}: are both from the same collection?")
            elif not some:
                out.append(
                    f"{labeling.name} lists none of the documents of {run.name}: are both from the same collection?"
                )
    return out


def _warnings(measures: list[Measure], labelings: Sequence[Labeling], *, bounds: bool) -> list[str]:
    """Return what the user should know about scales that nobody declared."""
    out = []
    for labeling in labelings:
        if labeling.declared:
            continue
        seen = f"the scale of {labeling.name} was not declared; {labeling.scale.high} is its largest label"
        for measure in measures:
            if measure.definition.takes_largest(measure):
                out.append(f"{seen}, and {measure} takes it for the largest grade there is")
        if bounds:
            out.append(f"{seen}, and bounds take it for the largest that an unknown label may be")
    return out
