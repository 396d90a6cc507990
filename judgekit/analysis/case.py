"""The case: one aligned panel and the facts beside it, from which all claims are made.

Two uses, never mixed. *Choose between retrievers* looks within questions, *find the questions that fail* over them. A
`Series` is one labeling (or control) at the level of a use, with missing labels at their worst and at their best, so
that claims hold whatever they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import permutations
from typing import Final

import numpy as np
import numpy.typing as npt

from judgekit.analysis.background import CLOSED_BOOK, TWIN, Background
from judgekit.analysis.best import Best, compared_with_best, equal_lists
from judgekit.analysis.coefficients import Floats
from judgekit.analysis.follow import MIN_TELLING, flatters, slanted
from judgekit.analysis.gain import Gain, common_level, decision_gains
from judgekit.analysis.graded import LEAST, GradedQuality, corrected_quality
from judgekit.analysis.inputs import Bools, Panel
from judgekit.analysis.intervals import MIN_DIFFERING, MIN_EACH_SIDE, least_leads
from judgekit.analysis.levels import POOLED, Estimate, Resamples, concordance_on_common_cases, estimates
from judgekit.analysis.money import ANSWERING, PEOPLE, StrategyCost, check_costs, price_of
from judgekit.analysis.partly_rated import PartlyRated
from judgekit.analysis.primary import CHOOSE_RUNS, FIND_QUESTIONS, USES, Primary
from judgekit.analysis.repeats import QuestionRows
from judgekit.analysis.resampling import spread
from judgekit.analysis.rivals import Keeping, free_among, verdict
from judgekit.analysis.samples import Sampled
from judgekit.analysis.unpaired import UnpairedRatings
from judgekit.analysis.wording import FEW_DIFFER, FEW_GROUPS, UNBOUNDED, Ranged, correlation, names_of, ranged
from judgekit.answers.direction import AS_NAMED, Directions
from judgekit.data.questions import Repeats
from judgekit.data.tables import ALL
from judgekit.rules import DeclaredOutcome, Rules, Source, SourcedOutcome

COEFFICIENT: Final = {CHOOSE_RUNS: POOLED, FIND_QUESTIONS: "concordance"}
"""The coefficient that answers each use."""
HELPS: Final = "helps"
MISLEADS: Final = "misleads"
NOT_SHOWN: Final = "not shown"
CHANCE: Final = 0.5
PICKS_A_WORSE_ONE: Final = "it picks"
"""How the clause of `Case.why_left_out` begins for a labeling whose own pick is shown to be worse."""
"""The rate at which chance finds the worse answered of two questions."""
_EQUAL: Final = 1e-12


@dataclass(frozen=True)
class Series:
    """A labeling's or a control's coefficients, with the missing labels at their worst and at their best."""

    name: str
    estimate: Estimate
    worst: Estimate
    best: Estimate

    def ranged(self, coefficient: str, confidence: float, resamples: Resamples) -> Ranged:
        """Return a coefficient with its interval over all values of the missing labels."""
        sides = (self.estimate, self.worst, self.best)
        ends = [side.interval(coefficient, confidence, resamples) for side in sides]
        low, high = min(end.low for end in ends), max(end.high for end in ends)
        return Ranged(self.estimate.value(coefficient), low, high)


@dataclass(frozen=True)
class Follower:
    """A labeling as a guide for choosing between the runs.

    Attributes:
        series: its coefficients.
        r: the pooled within-question correlation; the intervals of all labelings hold together.
        gain: the decision gain, in the unit of quality; likewise.
        finding: ``helps``, ``misleads`` or ``not shown``, by the gain.
        picks: the runs with the highest mean score; several where they tie.
        may_pick: the runs that it may pick once its missing scores are known; empty if its pick is known.
        flattered: the run that it picks, if it is shown to flatter it.
        biased_runs: runs whose scores are shown to be too high (True) or too low (False), given their answers.
    """

    series: Series
    r: Ranged
    gain: Ranged
    finding: str
    picks: tuple[str, ...]
    flattered: str = ""
    may_pick: tuple[str, ...] = ()
    biased_runs: Mapping[str, bool] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The labeling."""
        return self.series.name

    @property
    def useful(self) -> bool:
        """Whether it is shown to follow the answers."""
        return self.r.low > 0


@dataclass(frozen=True)
class Leads:
    """The leads of labelings over each other in a coefficient, with one bound for all pairs (max-t).

    Attributes:
        least: the smallest lead of the first over the second, by pair of names; pairs without enough data are left out.
        values: the lead of pairs that share fewer cases than either labeling has.
    """

    least: Mapping[tuple[str, str], float]
    values: Mapping[tuple[str, str], float] = field(default_factory=dict)

    @property
    def shown(self) -> list[tuple[str, str]]:
        """The pairs whose first labeling is shown to be ahead, by name."""
        return sorted(pair for pair, lead in self.least.items() if lead > 0)

    def of(self, first: Follower, second: Follower) -> Ranged:
        """Return the lead in r of a labeling over another with its interval."""
        lead = self.values.get((first.name, second.name), first.r.value - second.r.value)
        low, high = self.least.get((first.name, second.name)), self.least.get((second.name, first.name))
        if low is None or high is None:
            return Ranged(lead)
        return Ranged(lead, low, -high)


@dataclass(frozen=True)
class Case:
    """The primary panel, aligned, and everything known about it.

    Attributes:
        primary: the cell.
        panel: scores and quality of the cell.
        found: the estimates of the panel by level.
        resamples: the one resample matrix.
        rules: when something is claimed.
        background: facts that the tables do not hold.
        declared: what the outcome is, and on which scale.
        constructed: labelings whose labels are the outcome by construction.
        holding: labelings made from the quality of these runs' answers.
        closed_book: quality without documents, shape (Q,); None if unknown.
        kinds: the queries of each kind, by its name.
        unchecked: whether answers were imported without saying which documents they were made from.
        unpaired: means of ratings that are about one run each; None for the quality of all runs on each question.
        directions: the directions of labelings that the user gave.
        sampled: the spread of several answers to a question; None if each question has one.
        rows: the rows behind each question of the panel.
        repeats: the numbers of rows and questions; None if texts are unknown.
        partly: people's ratings of some questions, beside a labeling that scores all; None if all are rated.
    """

    primary: Primary
    panel: Panel
    found: Mapping[str, Sequence[Estimate]]
    resamples: Resamples
    rules: Rules
    background: Background
    declared: DeclaredOutcome = field(default_factory=DeclaredOutcome)
    constructed: frozenset[str] = frozenset()
    holding: frozenset[str] = frozenset()
    closed_book: Floats | None = None
    kinds: Mapping[str, Bools] = field(default_factory=dict)
    unchecked: bool = False
    unpaired: UnpairedRatings | None = None
    directions: Directions = AS_NAMED
    sampled: Sampled | None = None
    rows: QuestionRows = field(default_factory=QuestionRows)
    repeats: Repeats | None = None
    partly: PartlyRated | None = None

    @property
    def target(self) -> str:
        """What labels are to follow, in words."""
        return self.background.quality or "the answers"

    @property
    def worse_one(self) -> str:
        """The worse of two questions, in words."""
        quality = self.background.quality
        return f"the one with the lower {quality}" if quality else "the worse answered one"

    def no_interval(self, labeling: str = "") -> str:
        """Return why a labeling's number, or without a name a difference of two, has no interval."""
        if labeling in self.panel.unbounded:
            return UNBOUNDED
        return FEW_DIFFER if self.claimable else FEW_GROUPS

    def exists_already(self, labeling: str) -> bool:
        """Return whether a labeling consists of existing labels, so that it cannot label new pairs."""
        need = self.background.needs.get(labeling)
        return need is not None and need.existing

    @property
    def source(self) -> Source:
        """Where the outcome comes from; "" if unknown."""
        return self.declared.source if isinstance(self.declared, SourcedOutcome) else ""

    @property
    def show(self) -> str:
        """The verb of the outcome: answers show, nDCG shows."""
        return "shows" if self.background.quality else "show"

    @cached_property
    def answered(self) -> Bools:
        """Which queries have an answer of any run, shape (Q,)."""
        return np.asarray(np.isfinite(self.panel.quality).any(axis=0))

    @cached_property
    def questions(self) -> int:
        """How many questions there are."""
        return self.resamples.questions(self.answered)

    @cached_property
    def scored(self) -> Bools:
        """Which answered queries have a score of any labeling, shape (Q,)."""
        return np.asarray(self.panel.asked.any(axis=0))

    @cached_property
    def constant(self) -> float | None:
        """The quality of all answers if it is the same everywhere; else None."""
        if self.graded is not None and self.graded.decides:
            return None  # people told answers apart
        there = self.panel.quality[np.isfinite(self.panel.quality)]
        if not there.size or np.ptp(there) > 0:
            return None
        return float(there[0])

    @property
    def claimable(self) -> bool:
        """Whether there are enough units for claims, if questions are grouped or weigh unequally."""
        return self.resamples.groups is None or self.resamples.units(self.scored) >= MIN_DIFFERING

    @cached_property
    def graded(self) -> GradedQuality | None:
        """Quality corrected by people's grades; None without enough of them."""
        grades, panel = self.background.grades, self.panel
        if grades is None or len(panel.runs) < 2:
            return None
        whole = np.flatnonzero(np.isfinite(panel.quality).all(axis=0))
        given = grades.pivot_table(index="run", columns="query_id", values="value", aggfunc="mean")
        given = given.reindex(index=list(panel.runs), columns=list(panel.queries))
        people = given.to_numpy(np.float64)[:, whole]
        judged = whole[np.isfinite(people).all(axis=0)]
        if self.resamples.units(judged) < LEAST:
            return None
        groups = self.resamples.groups_of(whole)
        quality = panel.quality[:, whole]
        return corrected_quality(panel.runs, people, quality, groups=groups, confidence=self.rules.confidence)

    @cached_property
    def best(self) -> Best:
        """Which run may be the best, and what choosing each may lose."""
        if self.unpaired is not None:
            return self.unpaired.best
        if self.graded is not None and self.graded.decides:
            return self.graded.best
        if self.partly is not None and self.partly.decides:
            return self.partly.found.best
        return self.by_answers

    @cached_property
    def by_answers(self) -> Best:
        """Which run may be the best by the answers of known quality alone."""
        quality = self.panel.quality[:, self.answered]
        return compared_with_best(
            quality,
            self.resamples.weights[self.answered],
            groups=self.resamples.groups_of(self.answered),
            equal=self._equal_runs(quality),
            confidence=self.rules.confidence,
        )

    def _equal_runs(self, quality: Floats) -> Bools | None:
        """Return which pairs of runs have equal lists, so that their answers cannot differ; None without lists."""
        by_name = {run.name: run for run in self.background.lists}
        if not by_name.keys() >= {*self.panel.runs}:
            return None
        rows = self.rows.rows_of(self.panel.queries)
        equal = equal_lists([by_name[name] for name in self.panel.runs], rows, self.panel.depth)
        # Imported answers may differ even if lists are equal: from two applications, or from one that samples.
        for run, other in np.argwhere(equal).tolist():
            equal[run, other] = np.array_equal(quality[run], quality[other], equal_nan=True)
        return equal

    def excluded(self, use: str) -> dict[str, str]:
        """Return the labelings that are left out, with the reason."""
        excluded: dict[str, str] = {}
        for name, series in self._series[use].items():
            labeling, reason = series.estimate.labeling, series.estimate.reason
            if name in self.background.controls:
                continue
            if name in self.constructed:
                excluded[name] = "its labels are the outcome by construction"
            elif name in self.holding:
                excluded[name] = "its labels hold the quality of answers of these runs"
            elif labeling not in self.panel.joint:
                excluded[name] = f"it lacks scores on {100 * self.panel.cost[labeling]:.0f} % of the answers"
            elif reason:
                excluded[name] = reason
        return excluded

    def series(self, use: str) -> list[Series]:
        """Return the labelings that take part."""
        apart = {*self.excluded(use), *self.background.controls}
        return [series for name, series in self._series[use].items() if name not in apart]

    def controls(self, use: str) -> list[Series]:
        """Return the controls that are defined; for finding questions the question-only twins are among them."""
        controls: list[Series] = []
        for name, series in self._series[use].items():
            if name in self.background.controls and not series.estimate.reason:
                controls.append(series)
        # Within a question a twin is the same for all runs.
        return controls if use == CHOOSE_RUNS else [*controls, *self._twins]

    @cached_property
    def _series(self) -> dict[str, dict[str, Series]]:
        """All labelings and controls by use and name, for one run or for the mean over runs."""
        series: dict[str, dict[str, Series]] = {}
        for use, level in USES.items():
            ends = self._ends(self._extremes[level], level)
            series[use] = self._by_name(self.panel, self.found.get(level, ()), ends)
        return series

    @cached_property
    def _extremes(self) -> dict[str, tuple[Panel, ...]]:
        """The panel with the missing labels at their worst and at their best, by level; empty if all are known."""
        return {level: self.panel.extremes(level) or () for level in USES.values()}

    def _ends(self, filled: Iterable[Panel], level: str) -> list[dict[str, Series]]:
        """Return the series of panels whose missing labels are filled, at their worst and at their best."""
        return [self._by_name(end, estimates(end, level, self.resamples, ("concordance",))) for end in filled]

    def _by_name(
        self, panel: Panel, found: Iterable[Estimate], ends: Sequence[Mapping[str, Series]] = ()
    ) -> dict[str, Series]:
        by_name: dict[str, Series] = {}
        for estimate in found:
            if estimate.run != self.primary.run:
                continue
            name = panel.labelings[estimate.labeling]
            sides = [end[name].estimate if name in end else estimate for end in ends]
            worst, best = sides or (estimate, estimate)
            by_name[name] = Series(name, estimate, worst, best)
        return by_name

    @cached_property
    def _twins(self) -> list[Series]:
        """Series that know the question only: each labeling's twin, and closed-book answers."""
        if not self._twin_panels:
            return []
        panel, *filled = self._twin_panels
        ends = 2 * self._ends(filled, "query")
        twins = self._by_name(panel, estimates(panel, "query", self.resamples, ("concordance",)), ends)
        # A model that knows nothing without documents is worth reporting, a constant twin is not.
        return [twin for name, twin in twins.items() if name == CLOSED_BOOK or not twin.estimate.reason]

    @cached_property
    def _twin_panels(self) -> tuple[Panel, ...]:
        """The panel of the question-only series, and the same with missing labels filled, if any are missing."""
        # The scores of a twin are the same for all runs.
        shape = self.panel.quality.shape
        scores: dict[str, Floats] = {}
        for labeling in self.series(FIND_QUESTIONS):
            twin = self.background.twins.get(labeling.name)
            if twin is not None:
                values = np.array([twin.get(query, np.nan) for query in self.panel.queries], np.float64)
                scores[TWIN + labeling.name] = np.broadcast_to(values, shape)
        if self.closed_book is not None:
            scores[CLOSED_BOOK] = np.broadcast_to(self.closed_book, shape)
        if not self.series(FIND_QUESTIONS) or not scores:
            return ()
        # A labeling at its worst is compared on more questions than those with all labels, and so is its twin.
        filled = self._extremes["query"][:1]
        return tuple(self._twin_panel(panel, scores) for panel in (self.panel, *filled))

    def _twin_panel(self, panel: Panel, scores: Mapping[str, Floats]) -> Panel:
        """Return the question-only series, each on the cases of its labeling."""
        same = np.stack([*scores.values()])
        there = np.isfinite(same).all(axis=0)
        cases = [panel.defined(place) for place in panel.joint]
        asked = np.asarray(np.any(cases, axis=0) & there)
        for row, name in enumerate(scores):
            labeling = name.removeprefix(TWIN)
            if labeling in panel.labelings:
                own = panel.defined(panel.labelings.index(labeling))
                same[row] = np.where(own, same[row], np.nan)
        low, high = np.where(np.isfinite(same), same, -np.inf), np.where(np.isfinite(same), same, np.inf)
        return replace(panel, labelings=tuple(scores), scores=same, asked=asked, low=low, high=high)

    @cached_property
    def followers(self) -> tuple[Follower, ...]:
        """The labelings for choosing between the runs, those that follow the answers best first."""
        series = self.series(CHOOSE_RUNS)
        if not series or self.background.incomparable:
            return ()
        series.sort(key=lambda labeling: (-labeling.estimate.value(POOLED), labeling.name))
        gains = self._gains([labeling.estimate.labeling for labeling in series])
        units, confidence = min(gain.units for gain in gains), self.rules.confidence
        level = common_level(np.stack([gain.draws for gain in gains]), units, confidence)
        followers: list[Follower] = []
        for labeling, gain in zip(series, gains, strict=True):
            ends = gain.interval(confidence, level) if units >= MIN_TELLING else ()
            follower = self._follower(labeling, Ranged(gain.value, *ends), self.rules.of(len(series)))
            followers.append(follower)
        return tuple(followers)

    def why_left_out(self, follower: Follower) -> str:
        """Return a clause on why the rule of *Keep* leaves a labeling out; "" if it does not."""
        if follower.name in self.panel.unbounded:
            # Nothing is claimed about it, and it is not kept: once its scores are known, its pick may change.
            return ""
        if self._backwards(follower):
            return self._backwards(follower)
        may_be_best = np.array(self.panel.runs)[self.best.may_be_best]
        if not {*may_be_best.tolist()} & {*(follower.may_pick or follower.picks)}:
            worse = f"which {self.target} {self.show} to be worse than the best"
            return f"{PICKS_A_WORSE_ONE} {names_of(follower.picks)}, {worse}"
        if follower.flattered:
            return f"it is shown to flatter {follower.flattered}, its own pick"
        if follower.finding == MISLEADS:
            return "choosing by it loses against a coin flip"
        return ""

    def _backwards(self, follower: Follower) -> str:
        """Return what may be wrong with another tool's scores that are shown to run against the answers, or ""."""
        r, name = follower.r, follower.name
        # The direction of our own labelings is known.
        ours = name in self.background.needs or name in self.background.controls
        if not r.high < 0 or ours or self.directions.said(name):
            return ""
        of_runs = [each for each in self.found.get("query", ()) if each.run == ALL]
        over_questions = [each.value("r") for each in of_runs if self.panel.labelings[each.labeling] == name]
        if not over_questions or np.isnan(over_questions[0]):
            return ""
        if over_questions[0] > 0:
            return f"it follows {self.target} over questions, but runs against them between runs: it misleads"
        return (
            f"it runs against {self.target} (r {ranged(r, correlation)}), between runs and over questions. Is lower"
            f" better? Then give `--reverse {name}`; until then nothing is decided by it"
        )

    @cached_property
    def eligible(self) -> list[Follower]:
        """The labelings that the rule of *Keep* allows, the best first."""
        eligible: list[Follower] = []
        for follower in self.followers:
            bounded = follower.name not in self.panel.unbounded
            if follower.r.value > 0 and bounded and not self.why_left_out(follower):
                eligible.append(follower)
        return eligible

    @cached_property
    def finders(self) -> list[Series]:
        """The labelings for finding the questions that fail, the one that finds most of them first."""
        unbounded = self.panel.unbounded
        # Unbounded series claim nothing, so they stand last. Ties go by name, so that no order of files decides.
        return sorted(
            self.series(FIND_QUESTIONS),
            key=lambda each: (each.name in unbounded, -each.estimate.value("concordance"), each.name),
        )

    def finds(self, series: Series) -> bool:
        """Return whether one of the `finders` is shown to find the questions that fail more often than chance."""
        if series.name in self.panel.unbounded:
            return False
        # Each interval has half of its error below it, and the best of many labelings is looked at.
        alone = 2 * self.rules.of(len(self.finders)) - 1
        return series.ranged("concordance", alone, self.resamples).low > CHANCE

    @cached_property
    def free(self) -> list[str]:
        """The labelings that are known to cost nothing."""
        background = self.background
        return free_among(self.panel.labelings, background.needs, check_costs(background.costs), background.money)

    @cached_property
    def verdict(self) -> Keeping:
        """Which labeling to keep, compared with free rivals."""
        useful = [follower for follower in self.eligible if follower.useful]
        controls = [control for control in self._control_followers if not self.why_left_out(control)]
        return verdict(
            useful,
            self.free,
            [control for control in controls if control.useful],
            len(self.panel.runs),
            close=lambda paid, rival: self.within_one_error(paid.series, rival.series),
        )

    @property
    def kept(self) -> Follower | None:
        """The labeling to keep; None if none is shown to be useful, or none need be bought."""
        return self.verdict.kept

    @cached_property
    def _control_followers(self) -> list[Follower]:
        """The controls as guides for choosing between the runs."""
        followers: list[Follower] = []
        controls = self.controls(CHOOSE_RUNS)
        gains = self._gains([series.estimate.labeling for series in controls])
        for series, gain in zip(controls, gains, strict=True):
            level = common_level(gain.draws[None], gain.units, self.rules.confidence)
            ends = gain.interval(self.rules.confidence, level) if gain.units >= MIN_TELLING else ()
            ranged = Ranged(gain.value, *ends)
            followers.append(self._follower(series, ranged, self.rules.confidence))
        return followers

    def _follower(self, series: Series, gain: Ranged, confidence: float) -> Follower:
        panel, labeling = self.panel, series.estimate.labeling
        where = panel.complete(labeling)
        scores = panel.scores[labeling][:, where]
        picked = _highest(scores.mean(axis=1))
        names = tuple(panel.runs[run] for run in picked)
        # Unbounded series are described but claim nothing.
        if not self.claimable or series.name in panel.unbounded:
            return Follower(series, Ranged(series.estimate.value(POOLED)), gain, NOT_SHOWN, names)
        biased: dict[str, bool] = {}
        may_pick: tuple[str, ...] = ()
        if series.name in panel.unknown:
            # Missing scores may hide or feign a bias, or change the pick.
            may_pick, flattered = self._at_the_bounds(labeling, picked)
        else:
            # With missing scores, means of runs cover fewer questions than r.
            units = min(series.estimate.telling, self.resamples.units(where))
            given = scores, panel.quality[:, where], self.resamples.weights[where], units
            flattered = len(picked) == 1 and flatters(*given, picked[0])
            biased = {panel.runs[run]: high for run, high in slanted(*given, confidence).items()}
        return Follower(
            series=series,
            r=series.ranged(POOLED, confidence, self.resamples),
            gain=gain,
            finding=_finding(gain),
            picks=names,
            flattered=names[0] if flattered else "",
            may_pick=may_pick,
            biased_runs=biased,
        )

    def _at_the_bounds(self, labeling: int, picked: Sequence[int]) -> tuple[tuple[str, ...], bool]:
        """Return the runs that a labeling may pick, and whether it flatters its pick whatever is missing."""
        panel = self.panel
        if panel.bounds is None:
            return (), False
        where = panel.bounded(labeling)
        low, high = (end[labeling][:, where] for end in panel.bounds)
        may_pick = np.flatnonzero(high.mean(axis=1) >= low.mean(axis=1).max() - _EQUAL)
        names = tuple(panel.runs[run] for run in may_pick.tolist())
        if len(picked) != 1:
            return names, False
        against = high.copy()
        against[picked[0]] = low[picked[0]]
        units = self.resamples.units(where)
        quality, weights = panel.quality[:, where], self.resamples.weights[where]
        return names, flatters(against, quality, weights, units, picked[0])

    def _gains(self, labelings: Sequence[int]) -> list[Gain]:
        """Return the decision gains of labelings, with worst and best case where claims depend on what one lacks."""
        panel = self.panel
        gains: dict[int, Gain] = {}
        same_queries: dict[bytes, list[int]] = {}
        for labeling in labelings:
            same_queries.setdefault(panel.complete(labeling).tobytes(), []).append(labeling)
        for together in same_queries.values():
            where = panel.complete(together[0])
            scores = [panel.scores[labeling] for labeling in together]
            gains |= zip(together, self._gains_of([(own, own) for own in scores], where), strict=True)
        for labeling in labelings:
            if panel.bounds is not None and panel.open[labeling].any():
                low, high = panel.bounds[0][labeling], panel.bounds[1][labeling]
                ends = self._gains_of([(low, high), (high, low)], panel.bounded(labeling))
                gains[labeling] = gains[labeling].within(*ends)
        return [gains[labeling] for labeling in labelings]

    def _gains_of(self, scores: Sequence[tuple[Floats, Floats]], where: Bools) -> list[Gain]:
        """Return the decision gains of scores on some queries, shape (Q,)."""
        of_queries = [(own[:, where], other[:, where]) for own, other in scores]
        weights, groups = self.resamples.weights[where], self.resamples.groups_of(where)
        return decision_gains(of_queries, self.panel.quality[:, where], weights, groups)

    def leads(self, use: str, series: Sequence[Series]) -> Leads:
        """Return the leads of labelings over others, in r or in how often they find failing questions."""
        # Nothing is claimed in comparison with an unbounded series.
        series = [labeling for labeling in series if labeling.name not in self.panel.unbounded]
        if not self.claimable or not series:
            return Leads({})
        apart = self._apart(use, series)
        if use == CHOOSE_RUNS:
            telling = np.array([min(labeling.worst.telling, labeling.best.telling) for labeling in series])
            # As in `_telling`, for labelings that are compared on the same cases.
            telling = np.where(telling > 0, telling, telling.max())
            units, least = np.minimum(telling[:, None], telling), MIN_TELLING
            for pair, (first, second) in apart.items():
                units[pair] = _telling(first, second)
            return self._leads(series, POOLED, units, units >= least, max(int(telling.max()), 2), apart)
        total = np.array([labeling.worst.units for labeling in series])
        rarer = np.array([_minority(labeling.estimate) for labeling in series])
        minority = np.minimum(rarer[:, None], rarer)
        units = np.minimum(minority, np.minimum(total[:, None], total))
        for pair, (first, second) in apart.items():
            minority[pair] = min(_minority(first), _minority(second))
            units[pair] = min(minority[pair], first.units, second.units)
        return self._leads(series, "concordance", units, minority >= MIN_EACH_SIDE, int(total.min()), apart)

    def _apart(self, use: str, series: Sequence[Series]) -> dict[tuple[int, int], tuple[Estimate, Estimate]]:
        """Return the pairs of labelings with different cases, at their worst and best on the shared ones, by place."""
        apart: dict[tuple[int, int], tuple[Estimate, Estimate]] = {}
        for first, second in permutations(range(len(series)), 2):
            pair = self._paired(use, series[first].name, series[second].name)
            # If coefficients are undefined on the shared cases, nothing more is known about the pair.
            if pair is not None and not (pair[0].reason or pair[1].reason):
                apart[first, second] = pair
        return apart

    def _paired(self, use: str, first: str, second: str, *, ends: bool = True) -> tuple[Estimate, Estimate] | None:
        """Return the first at its worst and the second at its best on the shared cases; None if they share all.

        Without ``ends`` both are taken as they are known.
        """
        key, level = (use, first, second, ends), USES[use]
        if key not in self._pairs:
            worst, best = self._ends_of(first, level, ends=ends)[0], self._ends_of(second, level, ends=ends)[1]
            places = worst.labelings.index(first), best.labelings.index(second)
            found = None
            if not worst.same_cases(*places, best):
                run = self.primary.run
                found = concordance_on_common_cases(worst, *places, level, self.resamples, run, other=best)
            self._pairs[key] = found
            if not (ends and self._extremes[level]):
                self._pairs[use, second, first, ends] = None if found is None else (found[1], found[0])
        return self._pairs[key]

    def _ends_of(self, name: str, level: str, *, ends: bool) -> tuple[Panel, Panel]:
        """Return the panels with a labeling or a twin at its worst and at its best, or as it is known."""
        if name not in self.panel.labelings:
            twins = self._twin_panels[-1 if ends else 0]
            return twins, twins
        if ends and self._extremes[level]:
            worst, best = self._extremes[level]
            return worst, best
        return self.panel, self.panel

    @cached_property
    def _pairs(self) -> dict[tuple[str, str, str, bool], tuple[Estimate, Estimate] | None]:
        """The pairs that were worked out."""
        return {}

    def _leads(
        self,
        series: Sequence[Series],
        name: str,
        units: npt.NDArray[np.int64],
        enough: Bools,
        n: int,
        apart: Mapping[tuple[int, int], tuple[Estimate, Estimate]],
    ) -> Leads:
        worst = [labeling.worst for labeling in series]
        best = [labeling.best for labeling in series]
        # Groups are uneven: with one degree of freedom for each, .060 to .065 of claims are false at 40 groups.
        freedom = (units if self.resamples.groups is None else units // 2) - 1
        leads = least_leads(
            *_drawn(worst, name),
            confidence=self.rules.of(),
            n=n,
            freedom=freedom,
            enough=enough,
            best=_drawn(best, name),
            apart={pair: _lead(*both, name) for pair, both in apart.items()},
        )
        least: dict[tuple[str, str], float] = {}
        for first, second in np.argwhere(np.isfinite(leads)).tolist():
            least[series[first].name, series[second].name] = float(leads[first, second])
        values: dict[tuple[str, str], float] = {}
        if name == POOLED:
            for first, second in apart:
                names = series[first].name, series[second].name
                known = self._paired(CHOOSE_RUNS, *names, ends=False)
                if known is not None:
                    values[names] = _lead(*known, name)[0]
        return Leads(least, values)

    def within_one_error(self, leader: Series, other: Series) -> bool:
        """Return whether the r of a labeling lies within one paired standard error of the leader's; both are useful."""
        first, second = self._paired(CHOOSE_RUNS, leader.name, other.name, ends=False) or (
            leader.estimate,
            other.estimate,
        )
        gap, draws = _lead(first, second, POOLED)
        return gap <= float(spread(draws - gap, min(first.telling, second.telling)))

    def of_kinds(self) -> dict[str, Case]:
        """Return the case for each kind of question."""
        parts: dict[str, Case] = {}
        for kind, where in self.kinds.items():
            panel = self.panel.only(where)
            found = {level: list(estimates(panel, level, self.resamples, ("concordance",))) for level in USES.values()}
            parts[kind] = replace(self, panel=panel, found=found, kinds={})
        return parts

    @cached_property
    def prices(self) -> dict[str, StrategyCost]:
        """The cost of a new question by answering, by each labeling that can be bought, and by people."""
        background, costs = self.background, check_costs(self.background.costs)
        names = [ANSWERING]
        for use in USES:
            names += [series.name for series in self.series(use)]
        if background.money.judgment is not None:
            names.append(PEOPLE)
        prices: dict[str, StrategyCost] = {}
        for name in dict.fromkeys(names):
            price = price_of(name, background.needs.get(name), costs, background.money, background.pool)
            if price is None:
                continue
            if name == ANSWERING and self.source in ("people", "trusted"):
                # Answers need no references here, and the cost of rating new ones is unknown.
                price = replace(price, references=0, money=np.nan)
            prices[name] = price
        return prices


def _drawn(estimates: Sequence[Estimate], name: str) -> tuple[Floats, Floats]:
    """Return a coefficient of several estimates on the data, shape (L,), and on every resample, shape (L, B)."""
    values = [estimate.value(name) for estimate in estimates]
    return np.array(values), np.stack([estimate.drawn(name) for estimate in estimates])


def _lead(first: Estimate, second: Estimate, name: str) -> tuple[float, Floats]:
    """Return the lead of an estimate over another one, on the data and on every resample."""
    return first.value(name) - second.value(name), first.drawn(name) - second.drawn(name)


def _telling(first: Estimate, second: Estimate) -> int:
    """Return how many units tell two correlations apart."""
    # A labeling that is constant within every query has r = 0 exactly: only the other's queries count.
    telling = [each.telling for each in (first, second) if each.telling > 0]
    return min(telling, default=0)


def _minority(estimate: Estimate) -> int:
    """Return how many units have the rarer outcome; they decide how often failing questions are found."""
    return int(np.mean([each.minority for each, _ in estimate.margins]) * estimate.units / max(estimate.n, 1))


def _highest(means: Floats) -> list[int]:
    """Return which means are the highest."""
    # Equal scores give means that differ in the last bit.
    return np.flatnonzero(means >= means.max() - _EQUAL).tolist()


def _finding(gain: Ranged) -> str:
    if gain.low > 0:
        return HELPS
    return MISLEADS if gain.high < 0 else NOT_SHOWN
