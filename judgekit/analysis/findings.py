"""What was found, in numbers: of each labeling for each use, and of the choice between the runs itself.

Two uses, never mixed. *Choose between retrievers*: what is won by choosing with a labeling (decision gain), and which
labeling follows the answers, question by question (pooled correlation)? *Find the questions that fail*: of two
questions of one run, does the one with the higher score get the better answer? Words are made elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from judgekit.analysis.baseline_test import flipped
from judgekit.analysis.coefficients import Floats
from judgekit.analysis.differences import difference
from judgekit.analysis.follow import MIN_TELLING, misordered, slanted
from judgekit.analysis.gain import Gain, common_level, decision_gain, percentiles
from judgekit.analysis.inputs import Bools, Panel
from judgekit.analysis.intervals import MIN_DIFFERING, MIN_EACH_SIDE, better_than
from judgekit.analysis.levels import POOLED, Estimate, Resamples, estimates
from judgekit.analysis.primary import CHOOSE_RUNS, USES, Primary
from judgekit.analysis.rankings import gaps, pairs
from judgekit.analysis.resampling import max_t, spread, t_quantile
from judgekit.rules import Rules

CLOSED_BOOK: Final = "closed-book"
RETRIEVER: Final = "retriever (control)"
LENGTH: Final = "length (control)"
"""Controls that do not look at the question: 1 / rank in a fusion of the runs, and how long a document is.

Controls stand beside the labelings in every comparison and never win. A labeling that does no better than its
*question-only twin* tells easy questions from hard ones; one that does no better than the runs' own ranks adds nothing
to them. Labels shuffled within a query need no run of their own: within queries their concordance is known, one half.
"""
TWIN: Final = "twin of "
"""The name of a labeling's question-only twin is this and the labeling's."""
CONTROL_COLUMNS: Final = ("use", "control", "labeling", "model", "value", "ci_low", "ci_high", "n", "undefined_reason")
"""Concordance of each control."""

CHANCE: Final = 0.5
HELPS: Final = "helps"
MISLEADS: Final = "misleads"
NOT_SHOWN: Final = "not shown"
_POWER: Final = 0.8
_UPPER: Final = 0.975
_MAY_LOSE: Final = 0.005
"""A labeling that follows the answers more closely is better to choose by unless its gain may be lower by more."""


class Ranged(NamedTuple):
    """A number with its interval; NaN where it has none."""

    value: float
    low: float = float("nan")
    high: float = float("nan")


UNKNOWN: Final = Ranged(float("nan"))


@dataclass(frozen=True)
class Finding:
    """What was found of one labeling for one use.

    Attributes:
        labeling: its name.
        concordance, tau_b: at the level of the use.
        r: the pooled within-question correlation (choose-runs only, like all that follows but ``beats``).
        gain: the decision gain, in the unit of quality, with an interval that holds for all labelings together.
        says: ``helps``, ``misleads`` or ``not shown``.
        without: by run, the gain among the others.
        picks: the run with the highest mean score, "" where several share it.
        leans: runs whose scores are shown to be too high (True) or too low (False) for their answers.
        misordered: pairs of runs of which it scores the first higher, and the second answers better; both shown.
        beats: by control, whether it is shown to do better than it.
        guides: find-questions only: whether its concordance is shown to be better than chance, for all labelings
            together.
    """

    labeling: str
    concordance: Ranged
    tau_b: float = float("nan")
    r: Ranged = UNKNOWN
    gain: Ranged = UNKNOWN
    says: str = ""
    without: Mapping[str, Ranged] = field(default_factory=dict)
    picks: str = ""
    leans: Mapping[str, bool] = field(default_factory=dict)
    misordered: tuple[tuple[str, str], ...] = ()
    beats: Mapping[str, bool] = field(default_factory=dict)
    guides: bool = False

    @property
    def hinges(self) -> tuple[str, ...]:
        """The runs without which it is not shown any more that it helps, or misleads."""
        if self.says not in (HELPS, MISLEADS):
            return ()
        return tuple(run for run, gain in self.without.items() if _says(gain) != self.says)


@dataclass(frozen=True)
class Findings:
    """What was found for one use in the primary cell.

    Attributes:
        primary: the cell, with the use.
        runs: the runs that it is about.
        queries, differing: queries that went in, and those of them on which the runs' answers differ in quality.
        each: the labelings that take part, those that follow the answers best first.
        better: ``(a, b)`` where a is shown to be better than b: to choose by (it follows more closely, and loses less
            than half a point of gain), or to find questions with; all claims hold together.
        closer: ``(a, b)`` where a is shown to follow the answers more closely, question by question.
        oftener: ``(a, b)`` where a is shown to put the better-answered run first more often than b (concordance).
        gaps: by ``(a, b)``, the first labeling against each other one, the difference in r.
        answers: what choosing by the answers of half of the questions themselves wins.
        ahead: the run with the best answers, the second one, and the difference between their means.
        not_worth: whether the choice between the runs is shown to be worth less than the margin.
        needed: questions that it takes at least to show that the first labeling helps; None where it is shown, or where
            nothing can be said. Perhaps no number suffices.
        controls: concordance of each control.
        unknown: by labeling, on how many queries labels are missing that leave its scores open.
        lacking: by labeling, the queries whose missing labels nothing bounds, so that nothing is claimed of it.
        inapplicable: by labeling, on how many queries it has no score: all are compared on the others.
        excluded: labelings that are left out, with the reason.
        kinds: the same for each kind of question.
    """

    primary: Primary
    runs: tuple[str, ...]
    queries: int
    differing: int
    each: tuple[Finding, ...]
    better: frozenset[tuple[str, str]] = frozenset()
    closer: frozenset[tuple[str, str]] = frozenset()
    oftener: frozenset[tuple[str, str]] = frozenset()
    gaps: Mapping[tuple[str, str], Ranged] = field(default_factory=dict)
    answers: Ranged = UNKNOWN
    ahead: tuple[str, str, Ranged] | None = None
    not_worth: bool = False
    needed: int | None = None
    controls: Mapping[str, Ranged] = field(default_factory=dict)
    unknown: Mapping[str, int] = field(default_factory=dict)
    lacking: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    inapplicable: Mapping[str, int] = field(default_factory=dict)
    excluded: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, Findings] = field(default_factory=dict)

    def __getitem__(self, labeling: str) -> Finding:
        """Return what was found of a labeling."""
        return next(one for one in self.each if one.labeling == labeling)

    @property
    def choose(self) -> bool:
        """Whether it is about choosing between the runs."""
        return self.primary.use == CHOOSE_RUNS

    @property
    def first(self) -> str:
        """The run with the best answers."""
        return self.ahead[0] if self.ahead else ""

    @property
    def winner(self) -> str | None:
        """The labeling that is shown to be of use, and to be better than every other one."""
        first, *others = self.each or (None,)
        shown = first is not None and (first.says == HELPS if self.choose else first.guides)
        if first is None or not shown or not others:
            return None
        return first.labeling if all((first.labeling, one.labeling) in self.better for one in others if one) else None

    def of(self, says: str) -> list[Finding]:
        """Return the labelings of which this was found, the best first."""
        return [one for one in self.each if one.says == says]

    @property
    def disagreeing(self) -> dict[str, list[str]]:
        """By labeling, the kinds of question for which what was found is the opposite of the whole, or of a kind."""
        out: dict[str, list[str]] = {}
        for one in self.each:
            says = {kind: found[one.labeling].says for kind, found in self.kinds.items() if one.labeling in found.names}
            if {HELPS, MISLEADS} <= {one.says, *says.values()}:
                out[one.labeling] = [
                    kind for kind, word in says.items() if word in (HELPS, MISLEADS) and word != one.says
                ]
        return out

    @property
    def names(self) -> tuple[str, ...]:
        """The labelings, in their order."""
        return tuple(one.labeling for one in self.each)

    def table(self) -> pd.DataFrame:
        """Return a row per labeling and kind of question (``all`` for the whole)."""
        rows = [
            (kind, one.labeling, one.says, *one.r, *one.gain, *one.concordance, found.queries, found.differing)
            for kind, found in {"all": self, **self.kinds}.items()
            for one in found.each
        ]
        ends = [f"{name}{end}" for name in ("r", "gain", "concordance") for end in ("", "_low", "_high")]
        return pd.DataFrame(rows, columns=["kind", "labeling", "finding", *ends, "queries", "differing"])


@dataclass(frozen=True)
class _Series:
    """A labeling's or a control's concordance, with the missing labels at their worst and at their best."""

    name: str
    estimate: Estimate
    shown: Ranged
    worst: Estimate
    best: Estimate


def find(
    primary: Primary,
    panel: Panel,
    found: Sequence[Estimate],
    resamples: Resamples,
    rules: Rules,
    *,
    controls: Iterable[str] = (),
    twins: Mapping[str, Floats] | None = None,
    known: Floats | None = None,
    excluded: Mapping[str, str] | None = None,
    kinds: Mapping[str, Bools] | None = None,
) -> Findings:
    """Return what a panel says of its labelings, for the use of a cell."""
    level, run = USES[primary.use], primary.run
    out, twins, apart = dict(excluded or {}), twins or {}, set(controls)
    taking: list[Estimate] = []
    beside: list[Estimate] = []
    for estimate in found:
        name = panel.labelings[estimate.labeling]
        if estimate.run != run or name in out:
            continue
        if name in apart:
            beside += [estimate] * (not estimate.reason)
        elif estimate.labeling not in panel.joint:
            out[name] = f"it has no value in {panel.cost[estimate.labeling]:.0%} of the cases"
        elif estimate.reason:
            out[name] = estimate.reason
        else:
            taking.append(estimate)
    if not taking:
        return Findings(primary, panel.runs, 0, 0, (), excluded=out)
    filled = panel.extremes(level)
    series = list(_series(taking, panel, level, rules, resamples, filled))
    ranks = list(_series(beside, panel, level, rules, resamples, filled))
    if primary.use != CHOOSE_RUNS:
        ranks += _twins(panel, series, resamples, rules, filled, twins, known)
    about = _About(panel, series, resamples, rules)
    result = (about.to_choose if primary.use == CHOOSE_RUNS else about.to_find)(primary)
    beats = {one.name: about.beats(one, ranks) for one in series}
    result = replace(
        result,
        each=tuple(replace(one, beats=beats[one.labeling]) for one in result.each),
        controls={one.name: one.shown for one in ranks},
        unknown=panel.unknown,
        lacking=panel.unbounded,
        inapplicable={name: n for name, n in panel.inapplicable.items() if name not in apart},
        excluded=out,
    )
    parts: dict[str, Findings] = {}
    for kind, where in (kinds or {}).items():
        part = panel.only(where)
        again = list(estimates(part, level, resamples, ("concordance",)))
        parts[kind] = find(primary, part, again, resamples, rules, controls=apart, twins=twins, known=known)
    return replace(result, kinds=parts)


@dataclass(frozen=True)
class _About:
    """The labelings that take part in one cell, and what can be claimed of them."""

    panel: Panel
    series: Sequence[_Series]
    resamples: Resamples
    rules: Rules

    def to_find(self, primary: Primary) -> Findings:
        """Return what was found for telling the questions that fail."""
        ranked = sorted(self.series, key=lambda one: (-one.shown.value, one.name))
        better = self.claims(ranked)
        # Each interval alone leaves half of its error below; of many labelings the best one is looked at.
        alone = 2 * self.rules.of(len(ranked)) - 1
        low = [one.worst.interval("concordance", alone, self.resamples).low for one in ranked]
        each = tuple(
            Finding(one.name, one.shown, one.estimate.value("tau_b"), guides=min(least, one.shown.value) > CHANCE)
            for one, least in zip(ranked, low, strict=True)
        )
        queries = min(one.estimate.n for one in ranked)
        return Findings(primary, self.panel.runs, queries, queries, each, better)

    def to_choose(self, primary: Primary) -> Findings:
        """Return what was found for choosing between the runs."""
        panel, rules, confidence = self.panel, self.rules, self.rules.confidence
        ranked = sorted(self.series, key=lambda one: (-one.estimate.value(POOLED), one.name))
        where, there = panel.complete(ranked[0].estimate.labeling), panel.bounded
        quality, weights = panel.quality[:, where], self.resamples.weights[where]
        gains = {one.name: self._gain(one.estimate.labeling, where) for one in ranked}
        # What answers say is about the questions that lack labels, too.
        answered, drawn = panel.quality[:, there], self.resamples.weights[there]
        by_answers = decision_gain(answered, answered, drawn, self.resamples.groups_of(there))
        units = by_answers.units
        some = self.resamples.groups is None or self.resamples.units(where) >= MIN_DIFFERING
        level = common_level(np.stack([gain.draws for gain in gains.values()]), units, confidence)
        low, high = by_answers.interval(confidence)
        # Resamples add noise to noise: picked by the answers themselves, near-equal runs seem to win more in them.
        answers = Ranged(by_answers.value, low - max(float(by_answers.draws.mean()) - by_answers.value, 0.0), high)
        few = units < MIN_TELLING
        each = []
        for one in ranked:
            gain, estimate = gains[one.name], one.estimate
            scores = panel.scores[estimate.labeling][:, where]
            interval = estimate.interval(POOLED, confidence, self.resamples)
            worst, best = (each.interval(POOLED, confidence, self.resamples) for each in (one.worst, one.best))
            shown = Ranged(gain.value, *(() if few else gain.interval(confidence, level)))
            given = scores, quality, weights, estimate.telling
            claim = some and one.name not in panel.unbounded and one.name not in panel.unknown
            each.append(
                Finding(
                    one.name,
                    one.shown,
                    estimate.value("tau_b"),
                    Ranged(estimate.value(POOLED), min(interval.low, worst.low), max(interval.high, best.high)),
                    shown,
                    _says(shown) if some and one.name not in panel.unbounded else NOT_SHOWN,
                    {
                        run: Ranged(among.value, *among.interval(confidence, level))
                        for run, among in zip(panel.runs, gain.without, strict=True)
                        if len(panel.runs) > 2
                    },
                    _first(scores.mean(axis=1), panel.runs),
                    {
                        panel.runs[run]: high
                        for run, high in (slanted(*given, rules.of(len(ranked))) if claim else {}).items()
                    },
                    tuple((panel.runs[i], panel.runs[j]) for i, j in (misordered(*given, confidence) if claim else ())),
                )
            )
        closer = self._closer(ranked)
        better = frozenset((a, b) for a, b in closer if self._keeps(gains[a], gains[b]))
        first, second, lead = self._ahead(answered, drawn, there)
        return Findings(
            primary,
            panel.runs,
            int(there.sum()),
            int((np.ptp(answered, axis=0) > 0).sum()),
            tuple(each),
            better,
            closer,
            self.claims(ranked),
            self._gaps(ranked),
            Ranged(answers.value) if few else answers,
            (first, second, Ranged(lead.value) if few else lead),
            bool(some and answers.high < rules.margin_points / 100),
            _needed(gains[ranked[0].name], int(where.sum())) if each[0].says == NOT_SHOWN else None,
        )

    def _gain(self, labeling: int, where: Bools) -> Gain:
        """Return the decision gain of a labeling, with its worst and best case where labels are missing."""
        panel, resamples = self.panel, self.resamples

        def of(scores: Floats, where: Bools, other: Floats | None = None) -> Gain:
            rest = None if other is None else other[labeling][:, where]
            given = scores[labeling][:, where], panel.quality[:, where], resamples.weights[where]
            return decision_gain(*given, resamples.groups_of(where), other=rest)

        found, bounds = of(panel.scores, where), panel.bounds
        if bounds is None:
            return found
        low, high = bounds
        there = panel.bounded
        return found.within(of(low, there, high), of(high, there, low))

    def _closer(self, ranked: Sequence[_Series]) -> frozenset[tuple[str, str]]:
        """Return which labeling is shown to follow the answers more closely than which."""
        telling = np.array([min(one.worst.telling, one.best.telling) for one in ranked])
        # One that says nothing within any query has an r of 0 for sure: only the other's queries count.
        telling = np.where(telling > 0, telling, telling.max())
        least = np.minimum(telling[:, None], telling)
        return self._told_apart(ranked, POOLED, least, least >= MIN_TELLING, max(int(telling.max()), 2))

    def claims(self, series: Sequence[_Series]) -> frozenset[tuple[str, str]]:
        """Return which series has a higher concordance than which."""
        size = len(series)
        n = min(one.worst.units for one in series)
        freedom, enough = np.full((size, size), n), np.ones((size, size), np.bool_)
        alone = self.rules.of(2 * size * (size - 1))
        surely: set[tuple[str, str]] = set()
        if series[0].estimate.margins:
            # The queries of the rarer outcome tell, and all series have the same ones.
            minority = int(np.mean([each.minority for each, _ in series[0].estimate.margins]))
            freedom[:], enough[:] = min(minority, n), minority >= MIN_EACH_SIDE
        else:
            for a, b in np.argwhere(~np.eye(size, dtype=np.bool_)).tolist():
                one, other = series[a].worst.each, series[b].best.each
                gap = (one[0] if one else np.empty(0)) - (other[0] if other else np.empty(0))
                gap = np.where(np.abs(gap) > 1e-9, gap, 0.0)
                ahead, behind = int((gap > 0).sum()), int((gap < 0).sum())
                freedom[a, b], grouped = min(ahead + behind, n), n < series[a].worst.n
                several = min(ahead, behind) >= MIN_EACH_SIDE or (not grouped and _outweighs(gap, freedom[a, b], alone))
                enough[a, b] = ahead + behind >= MIN_DIFFERING and several
                # Too few for a standard error, but not for counting what random signs would do.
                if (
                    ahead + behind < MIN_DIFFERING
                    and gap.sum() > 2 * np.sqrt((gap**2).sum())
                    and flipped(gap) / 2 <= 1 - alone
                ):
                    surely |= set() if grouped or self.panel.unbounded else {(series[a].name, series[b].name)}
        return self._told_apart(series, "concordance", freedom, enough, n) | surely

    def _told_apart(
        self, series: Sequence[_Series], name: str, units: npt.NDArray[np.int64], enough: Bools, n: int
    ) -> frozenset[tuple[str, str]]:
        """Return which series is ahead of which in a coefficient, by the largest t over all pairs (max-t)."""
        groups = self.resamples.groups
        some = groups is None or len(np.unique(groups)) >= MIN_DIFFERING
        # Where one lacks labels that nothing bounds, its queries are gone for all, perhaps those on which it was ahead.
        some = some and not self.panel.unbounded
        worst, best = (
            (np.array([each.value(name) for each in side]), np.stack([each.drawn(name) for each in side]))
            for side in ([one.worst for one in series], [one.best for one in series])
        )
        # Groups are uneven: with a degree of freedom for each, .060 to .065 of claims are false at 40 groups.
        claims = better_than(
            *worst, confidence=self.rules.of(), n=n, freedom=(units if groups is None else units // 2) - 1,
            enough=enough & some, best=best,
        )  # fmt: skip
        return frozenset((series[a].name, series[b].name) for a, b in np.argwhere(claims))

    def beats(self, one: _Series, controls: Sequence[_Series]) -> dict[str, bool]:
        """Return, by control, whether a labeling is shown to do better; another labeling's twin is not beside it."""
        mine = [c for c in controls if not c.name.startswith(TWIN) or c.name == TWIN + one.name]
        return {c.name: (one.name, c.name) in self.claims([one, c]) for c in mine}

    def _keeps(self, one: Gain, other: Gain) -> bool:
        """Return whether a labeling is shown to win nearly as much as another, or more."""
        one, other = (one.ends or (one,))[0], (other.ends or (other,))[-1]
        draws, units = one.draws - other.draws, one.units
        low, _ = percentiles(one.value - other.value, draws, units, 1 - 2 * (1 - self.rules.confidence))
        return low > -_MAY_LOSE

    def _gaps(self, ranked: Sequence[_Series]) -> dict[tuple[str, str], Ranged]:
        """Return the difference in r between the first series and each other one, over all that labels may be."""
        one, out = ranked[0], {}
        for other in ranked[1:]:
            low, high = (
                difference(
                    a.value(POOLED) - b.value(POOLED),
                    a.drawn(POOLED) - b.drawn(POOLED),
                    self.rules.of(len(ranked) - 1),
                    min(a.telling or b.telling, b.telling or a.telling),  # as in `_closer`
                )[0]
                for a, b in ((one.worst, other.best), (one.best, other.worst))
            )
            value = one.estimate.value(POOLED) - other.estimate.value(POOLED)
            out[one.name, other.name] = Ranged(value, min(low.low, value), max(high.high, value))
        return out

    def _ahead(self, quality: Floats, weights: Floats, where: Bools) -> tuple[str, str, Ranged]:
        """Return the run with the best answers, the second one, and the difference of their means."""
        # Its interval holds for any two runs, since these were picked by what they show; and with one more query on
        # which each wins all there is, since runs that hardly differ may still do so on the next ones.
        first, second, *_ = np.argsort(-quality.mean(axis=1), kind="stable").tolist()
        units, gap = self.resamples.units(where), gaps(quality)
        moved = gap @ weights / np.maximum(weights.sum(axis=0), 1) - gap.mean(axis=1, keepdims=True)
        error = np.hypot(spread(moved, units), np.sqrt(2) * np.ptp(quality) / units)
        lead = float((quality[first] - quality[second]).mean())
        pair = np.column_stack(pairs(len(quality))).tolist().index(sorted((first, second)))
        least = t_quantile((1 + self.rules.confidence) / 2, units)
        half = max(least, float(max_t(moved, error, self.rules.confidence, units - 1))) * float(error[pair])
        return self.panel.runs[first], self.panel.runs[second], Ranged(lead, lead - half, lead + half)


def _says(gain: Ranged) -> str:
    return HELPS if gain.low > 0 else MISLEADS if gain.high < 0 else NOT_SHOWN


def _first(means: Floats, runs: Sequence[str]) -> str:
    best = np.flatnonzero(means >= means.max() - 1e-12)
    return runs[int(best[0])] if len(best) == 1 else ""


def _needed(gain: Gain, queries: int) -> int | None:
    """Return how many queries it takes at least to show a gain, from the most that it may be; None where that is 0."""
    from scipy.special import ndtri

    z = float(ndtri(_UPPER))
    _, upper = gain.interval(2 * _UPPER - 1)
    error = float(np.std(gain.draws, ddof=1))
    if not upper > 0 or not error > 0:
        return None
    return max(int(np.ceil(queries * ((z + float(ndtri(_POWER))) * error / upper) ** 2)), queries + 1)


def _outweighs(gap: Floats, units: int, confidence: float) -> bool:
    """Return whether one labeling is ahead of another also with two more queries on which it loses all there is."""
    more = np.append(gap, (-1.0, -1.0))
    return bool(more.mean() > t_quantile(confidence, units + 1) * more.std(ddof=1) / np.sqrt(len(more)))


def _series(
    found: Sequence[Estimate],
    panel: Panel,
    level: str,
    rules: Rules,
    resamples: Resamples,
    filled: tuple[Panel, Panel] | None,
) -> Iterator[_Series]:
    """Yield the series of estimates of one run, or of the mean over runs, over all that missing labels may be."""
    ends: list[dict[str, Estimate]] = [
        {p.labelings[e.labeling]: e for e in estimates(p, level, resamples, ("concordance",)) if e.run == found[0].run}
        for p in filled or ()
        if found
    ]
    for one in found:
        name, value = panel.labelings[one.labeling], float(one.values[0])
        worst, best = (end.get(name, one) for end in ends) if ends else (one, one)
        low, high = (each.interval("concordance", rules.confidence, resamples) for each in (worst, best))
        yield _Series(name, one, Ranged(value, min(low.low, value), max(high.high, value)), worst, best)


def _twins(
    panel: Panel,
    series: Sequence[_Series],
    resamples: Resamples,
    rules: Rules,
    filled: tuple[Panel, Panel] | None,
    twins: Mapping[str, Floats],
    known: Floats | None,
) -> Iterator[_Series]:
    """Yield what knows the question only: each labeling's twin, and what the model knows without documents."""
    scores = {TWIN + one.name: twins[one.name] for one in series if one.name in twins}
    scores |= {} if known is None else {CLOSED_BOOK: known}
    if not scores:
        return
    first = series[0].estimate
    there = np.all([np.isfinite(values) for values in scores.values()], axis=0)
    # The same for all runs. A labeling at its worst is compared on more questions than have all labels.
    same = np.stack([np.broadcast_to(values, panel.quality.shape) for values in scores.values()])
    control, again = (
        replace(each, labelings=tuple(scores), scores=same, asked=each.defined(index) & there)
        for each, index in ((panel, first.labeling), (filled[0] if filled else panel, 0))
    )
    found = [
        each
        for each in estimates(control, USES["find-questions"], resamples, ("concordance",))
        if each.run == first.run and (not each.reason or control.labelings[each.labeling] == CLOSED_BOOK)
    ]
    yield from _series(found, control, "query", rules, resamples, (again, again) if filled else None)
