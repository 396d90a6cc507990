"""A race between runs: answers come block by block, worse runs drop out, and it stops once the choice is sure enough.

After each block an anytime-valid sequence bounds every difference of two runs left (the asymptotic confidence sequence
of I. Waudby-Smith et al., Annals of Statistics 2024, with two answers more on which a run wins or loses everything).
Half of the error is spent on the race, half on `compared_with_best`, which bounds the loss if money or questions end
first. `benchmarks/choose_simulation.py` counts how often the bounds hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from judgekit.analysis.best import check_unit, compared_with_best, known_means, per_group
from judgekit.analysis.coefficients import Bools, Floats, Ints
from judgekit.analysis.resampling import resample_matrix
from judgekit.errors import UsageError

BLOCK: Final = 20
"""Questions of a block; groups of questions are asked whole."""
FIRST_LOOK: Final = 40
"""Number of questions (or groups) before any run may drop out."""
LEAST: Final = 20
"""With fewer questions (or groups) nothing is claimed."""
_PLANNED: Final = 300
"""Questions at which the sequence is narrowest."""
_MOST_NEEDED: Final = 10_000_000


@dataclass(frozen=True)
class RaceRules:
    """When a race stops, and how sure it is.

    Attributes:
        margin: largest acceptable loss of the chosen run, in the unit of quality (0.01 is one point).
        confidence: confidence at which all statements about the race hold together.
        resamples, seed: of the bound that applies if the race did not stop.
    """

    margin: float
    confidence: float = 0.95
    resamples: int = 1000
    seed: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.margin < 1:
            raise UsageError(f"the margin must lie between 0 and 100 points, not {100 * self.margin:g}")

    @property
    def error(self) -> float:
        """The error of the race; its end has the same."""
        return (1 - self.confidence) / 2


@dataclass(frozen=True)
class RunAnswers:
    """The answers of a race so far, question by question in the order of asking.

    Attributes:
        quality: between 0 and 1, NaN where missing, shape (R, Q).
        groups: the group of each question, or None where each stands alone, shape (Q,).
        equal: which pairs of runs have equal lists on all questions, shape (R, R).
    """

    quality: Floats
    groups: Ints | None = None
    equal: Bools | None = None

    def __post_init__(self) -> None:
        check_unit(self.quality)

    @property
    def tied(self) -> Bools:
        """Pairs of runs that cannot differ, including each run with itself, shape (R, R)."""
        same = np.eye(len(self.quality), dtype=np.bool_)
        return same if self.equal is None else same | self.equal

    def of(self, questions: slice | Ints) -> RunAnswers:
        """Return the answers to some of the questions, or to all of them in another order."""
        groups = None if self.groups is None else self.groups[questions]
        return RunAnswers(self.quality[:, questions], groups, self.equal)

    def sizes(self) -> tuple[Floats, Ints]:
        """Return the questions of each unit (a question or a group), and the unit of each question, both in order."""
        if self.groups is None:
            questions = self.quality.shape[1]
            return np.ones(questions), np.arange(questions)
        _, first, unit, count = np.unique(self.groups, return_index=True, return_inverse=True, return_counts=True)
        # numpy numbers groups by name; here they are numbered in the order of asking.
        order = np.argsort(first)
        place = np.argsort(order)
        return count[order].astype(np.float64), place[unit]


@dataclass(frozen=True)
class Limits:
    """What is known about all differences of two runs after some units of a race.

    Attributes:
        questions: asked so far.
        lead: lead of run b over run s, with missing answers at 1 for b and at 0 for s, ``lead[b, s]``.
        upper: largest possible lead of run b over run s; infinite before the first look.
        deviation: the standard deviation of a unit's difference.
        unit: mean questions of a unit.
    """

    questions: int
    lead: Floats
    upper: Floats
    deviation: Floats
    unit: float


def half_width(units: npt.ArrayLike, error: float) -> Floats:
    """Return the half-width of the sequence after some units, in standard deviations of one."""
    t = np.asarray(units, np.float64)
    surprise = -2 * math.log(error)
    ratio = (surprise + math.log(surprise) + 1) / _PLANNED  # rho squared
    wide = t * ratio + 1
    return np.asarray(np.sqrt(2 * wide / (t**2 * ratio) * np.log(np.sqrt(wide) / error)))


def limits(answered: RunAnswers, ends: Sequence[int], error: float) -> list[Limits]:
    """Return what is known about all differences after the first ``ends`` questions each; groups end with a block.

    ``error`` is the chance that the difference of two given runs ever leaves its limits.
    """
    size, unit = answered.sizes()
    quality, missing = answered.quality, np.isnan(answered.quality)
    group = None if answered.groups is None else unit
    mean_size = quality.shape[1] / len(size)
    share = size / mean_size
    # A missing answer may be right for the leading run and wrong for the other.
    kind = per_group(np.where(missing, 1.0, quality), group, share) * mean_size
    harsh = per_group(np.where(missing, 0.0, quality), group, share) * mean_size
    lead = kind[:, None] - harsh[None]
    last = unit[np.asarray(ends, np.intp) - 1]

    def up_to(values: Floats) -> Floats:
        """Return the sums over all units up to each end, shape (..., ends)."""
        return np.asarray(np.cumsum(values, axis=-1)[..., last])

    units, asked = last + 1.0, up_to(size)
    mean, unit_size = up_to(lead) / asked, asked / units
    # For groups: deviations from the mean of their questions. Two more units on which one run wins or loses everything.
    spread = up_to(lead**2) - 2 * mean * up_to(lead * size) + mean**2 * up_to(size**2)
    variance = (spread / unit_size**2 + units * mean**2 + 2) / (units + 2) - mean**2
    deviation = np.sqrt(np.maximum(variance, 0))
    upper = np.minimum(mean + deviation * half_width(units, error), 1)
    upper = np.where(units < FIRST_LOOK, np.inf, upper)
    for known in (upper, mean, deviation):
        known[answered.tied] = 0
    found = []
    for at, questions in enumerate(asked.tolist()):
        found.append(
            Limits(
                questions=int(questions),
                lead=mean[..., at],
                upper=upper[..., at],
                deviation=deviation[..., at],
                unit=float(unit_size[at]),
            )
        )
    return found


@dataclass(frozen=True)
class Dropped:
    """A run that was shown to be worse than another.

    Attributes:
        run, better: the run, and one that is shown to be better.
        questions: after how many questions.
        behind, low, high: the difference and its limits.
    """

    run: int
    better: int
    questions: int
    behind: float
    low: float
    high: float


@dataclass(frozen=True)
class Look:
    """The result of a block of a race.

    Attributes:
        questions: asked so far.
        answers: asked so far, of all runs.
        raced: which runs were asked in this block, shape (R,).
        left: which of them stay, shape (R,).
        leader: the run with the best answers of those that stay.
        bound: largest loss of choosing it; infinite before the first look.
        behind, low, high: how far each run is behind the leader, with limits, shape (R,).
        dropped: the runs that this block showed to be worse.
        needed: about how many questions bring the bound down to the margin, if differences stay as they are.
        needed_if_equal: the same, if the remaining runs are equally good.
    """

    questions: int
    answers: int
    raced: Bools
    left: Bools
    leader: int
    bound: float
    behind: Floats = field(repr=False)
    low: Floats = field(repr=False)
    high: Floats = field(repr=False)
    dropped: tuple[Dropped, ...]
    needed: int
    needed_if_equal: int


def look(known: Limits, raced: Bools, answers: int, rules: RaceRules) -> Look:
    """Return the result of a block: which runs drop out, who leads, and what choosing the leader may lose."""
    inside = np.where(raced[:, None] & raced[None], known.upper, np.inf)
    # A run is worse if some other run is better wherever the truth lies within the limits.
    nearest = np.argmin(inside, axis=1).tolist()
    lost = raced & (inside.min(axis=1) < 0)
    left = raced & ~lost
    both = (known.lead - known.lead.T) / 2  # where no answer is missing, just the lead
    staying = np.flatnonzero(left)
    ahead = both[np.ix_(staying, staying)].sum(axis=1)
    leader = int(staying[np.argmax(ahead)])
    bound = max(0.0, float(known.upper[left, leader].max()))
    dropped = []
    for run in np.flatnonzero(lost).tolist():
        better = nearest[run]
        dropped.append(
            Dropped(
                run=run,
                better=better,
                questions=known.questions,
                behind=float(both[better, run]),
                low=-float(known.upper[run, better]),
                high=float(known.upper[better, run]),
            )
        )
    lead, deviation = known.lead[left, leader], known.deviation[left, leader]
    return Look(
        questions=known.questions,
        answers=answers,
        raced=raced,
        left=left,
        leader=leader,
        bound=bound,
        behind=np.where(raced, both[leader], np.nan),
        low=np.where(raced, -known.upper[:, leader], np.nan),
        high=np.where(raced, known.upper[leader], np.nan),
        dropped=tuple(dropped),
        needed=_needed(known, lead, deviation, rules),
        needed_if_equal=_needed(known, 0 * lead, deviation, rules),
    )


def _needed(known: Limits, lead: Floats, deviation: Floats, rules: RaceRules) -> int:
    """Return about how many questions rule out that any run leads the leader by more than the margin."""
    # Each pair with the leader gets an equal share of the error.
    error = rules.error / max(len(known.lead) - 1, 1)
    return max(questions_until(lead, deviation, rules.margin, error, known.unit), known.questions)


def questions_until(lead: Floats, deviation: Floats, margin: float, error: float, unit: float = 1.0) -> int:
    """Return after how many questions no limit exceeds the margin, if the differences stay as they are."""

    def enough(units: int) -> bool:
        return bool(np.all(lead + deviation * half_width(units, error) <= margin))

    low, high = FIRST_LOOK, FIRST_LOOK
    while not enough(high) and high < _MOST_NEEDED:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle
    return math.ceil(high * unit / BLOCK) * BLOCK


@dataclass(frozen=True)
class Choice:
    """The end of a race.

    Attributes:
        looks: block by block.
        chosen: the run.
        bound: largest loss of the choice against any run; NaN if too little was asked.
        may_be_best: which runs may be the best, shape (R,).
        stopped: whether the race showed that the loss is at most the margin; otherwise money or questions ended.
        low, high: limits of how far each remaining run is behind the chosen one, NaN for the others, shape (R,).
    """

    looks: tuple[Look, ...]
    chosen: int
    bound: float
    may_be_best: Bools
    stopped: bool
    low: Floats
    high: Floats

    @property
    def last(self) -> Look:
        """The last block."""
        return self.looks[-1]

    @property
    def dropped(self) -> dict[int, Dropped]:
        """The runs that dropped out, in order."""
        every = (gone for shown in self.looks for gone in shown.dropped)
        return {gone.run: gone for gone in every}


def stops(shown: Look, rules: RaceRules) -> bool:
    """Return whether a race ends with this block."""
    return shown.bound <= rules.margin


def concluded(looks: Sequence[Look], answered: RunAnswers, rules: RaceRules) -> Choice:
    """Return the end of a race that stopped, or that ran out of money or questions.

    Raises:
        UsageError: no block was answered.
    """
    if not looks:
        raise UsageError("no block of questions could be answered: a choice needs at least one")
    last = looks[-1]
    reached = Choice(
        looks=tuple(looks),
        chosen=last.leader,
        bound=last.bound,
        may_be_best=last.left,
        stopped=stops(last, rules),
        low=np.where(last.left, last.low, np.nan),
        high=np.where(last.left, last.high, np.nan),
    )
    if reached.stopped:
        return reached
    asked = answered.of(slice(last.questions))
    size, _ = asked.sizes()
    if len(size) < LEAST:
        return replace(reached, bound=math.nan)
    # Rejected runs stay rejected: the race spent half of the error on that.
    left = np.flatnonzero(last.left)
    best = compared_with_best(
        asked.quality[left],
        resample_matrix(last.questions, rules.resamples, rules.seed, asked.groups),
        groups=asked.groups,
        equal=answered.tied[np.ix_(left, left)],
        confidence=1 - rules.error,
    )
    chosen = left.tolist().index(last.leader)
    kept = np.zeros(len(last.left), np.bool_)
    kept[left[best.may_be_best]] = True
    low, high = reached.low.copy(), reached.high.copy()
    low[left], high[left] = -best.upper[:, chosen], best.upper[chosen]
    return replace(reached, bound=float(best.cost[chosen]), may_be_best=kept, low=low, high=high)


@dataclass(frozen=True)
class Order:
    """Questions in the order in which a race asks them.

    Attributes:
        places: of the questions, grouped ones side by side, shape (Q,).
        ends: the number of questions after which each block ends.
    """

    places: Ints
    ends: tuple[int, ...]


def random_order(questions: int, seed: int, groups: Ints | None = None) -> Order:
    """Return questions in random order, in blocks of at least `BLOCK` that keep groups whole."""
    present, unit = np.unique(np.arange(questions) if groups is None else groups, return_inverse=True)
    shuffled = np.random.default_rng(seed).permutation(len(present))
    rank = np.argsort(shuffled)[unit]
    places = np.argsort(rank, kind="stable")
    last_of_unit = np.flatnonzero(np.diff(rank[places], append=-1)) + 1
    ends, begin = [], 0
    for end in last_of_unit.tolist():
        if end - begin >= BLOCK or end == questions:
            ends.append(end)
            begin = end
    return Order(places, tuple(ends))


def race(answered: RunAnswers, ends: Sequence[int], rules: RaceRules, most: float = math.inf) -> Choice:
    """Simulate a race on known answers, asking at most this many."""
    runs = len(answered.quality)
    left = np.ones(runs, np.bool_)
    looks: list[Look] = []
    answers = before = 0
    for known in limits(answered, ends, rules.error / max(runs - 1, 1)):
        # Only the remaining runs are asked.
        answers += int(left.sum()) * (known.questions - before)
        if answers > most:
            break
        looks.append(look(known, left, answers, rules))
        left, before = looks[-1].left, known.questions
        if stops(looks[-1], rules):
            break
    return concluded(looks, answered, rules)


@dataclass(frozen=True)
class Replay:
    """What a race would have done on known answers, in one order and in many.

    Attributes:
        choice: the choice in the order of the seed.
        best: the run that answers best over all questions.
        questions: how many there are.
        orders: number of random orders simulated.
        within: number of orders whose chosen run was within the margin of the best over all questions.
        stopped: number of orders that stopped before questions ended.
        broken: number of orders whose loss exceeded their bound.
        answers: share of all answers that each order asked for, shape (orders,).
        bounds: each order's own bound on its loss, shape (orders,).
    """

    choice: Choice
    best: int
    questions: int
    orders: int
    within: int
    stopped: int
    broken: int
    answers: Floats
    bounds: Floats


def replay(answered: RunAnswers, rules: RaceRules, orders: int = 200) -> Replay:
    """Simulate a race on known answers, in the order of the seed and in random ones; all answers are the truth."""
    runs, questions = answered.quality.shape
    # All answers together are the truth for each order.
    means = known_means(answered.quality)
    choices = []
    for seed in range(orders + 1):
        order = random_order(questions, rules.seed + seed, answered.groups)
        choices.append(race(answered.of(order.places), order.ends, rules))
    first, *others = choices
    chosen = [choice.chosen for choice in others]
    loss = means.max() - means[chosen]
    bounds = np.array([choice.bound for choice in others])
    asked = np.array([choice.last.answers for choice in others])
    return Replay(
        choice=first,
        best=int(means.argmax()),
        questions=questions,
        orders=orders,
        within=int((loss <= rules.margin).sum()),
        stopped=sum(choice.stopped for choice in others),
        broken=int((loss > bounds + 1e-12).sum()),
        answers=asked / (runs * questions),
        bounds=bounds,
    )
