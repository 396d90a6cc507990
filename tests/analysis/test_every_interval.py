"""Every interval of the program where few questions differ: none is of zero width, and none covers too little.

A world says how often, among n questions, what happens. A differing question is easily missed there: where two of n
differ on average, no question differs in one sample of seven. An interval that is refused is no error.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from judgekit.analysis.agreement import FORMULAS, PairedLabels
from judgekit.analysis.baseline_test import paired_interval
from judgekit.analysis.best import compared_with_best
from judgekit.analysis.coefficients import Floats
from judgekit.analysis.differences import compared
from judgekit.analysis.gain import decision_gain
from judgekit.analysis.graded import corrected_quality
from judgekit.analysis.inputs import Panel
from judgekit.analysis.levels import Estimate, Resamples, estimates
from judgekit.analysis.power import most_needed
from judgekit.analysis.race import RunAnswers, limits
from judgekit.analysis.resampling import resample_matrix
from judgekit.analysis.threads import one_thread
from judgekit.analysis.unpaired import unpaired_means
from judgekit.jobs.audit.bias import slopes
from judgekit.jobs.audit.numbers import Number, groups_of, mean_change, share_change
from judgekit.jobs.guard.decision import bounds
from judgekit.labelers.human import wilson
from judgekit.people.correct import corrected_difference, corrected_mean
from judgekit.people.deciding import Contest

Ends = tuple[float, float]
Interval = Callable[[Floats, Floats, np.random.Generator], Ends]
World = Callable[[int], list[tuple[float, float]]]
"""From n to how many of n questions differ by how much on average; on all others nothing differs."""

LEAST = 0.93

WORLDS: dict[str, World] = {
    **{f"{k:g} wins": lambda n, k=k: [(k, 1.0)] for k in (0, 0.5, 1, 1.7, 2.2, 3, 5)},
    "a win or a loss": lambda n: [(0.5, 1.0), (0.5, -1.0)],
    "5 wins or losses": lambda n: [(2.5, 1.0), (2.5, -1.0)],
    "2 small wins": lambda n: [(2, 0.1)],
    "rare large wins, frequent small losses": lambda n: [(2, 1.0), (0.3 * n, -0.02)],
    "more of them": lambda n: [(5, 1.0), (0.6 * n, -0.1)],
    "a steady lead with rare losses": lambda n: [(2, -1.0), (n - 2, 0.5)],
    "always the same lead": lambda n: [(n, 0.5)],
}


def drawn(world: World, n: int, rng: np.random.Generator) -> tuple[Floats, Floats, float]:
    """Return the scores of two runs on n questions, and the true mean of their difference."""
    kinds = world(n)
    chances = np.array([count / n for count, _ in kinds])
    values = np.array([*(value for _, value in kinds), 0.0])
    gap = values[rng.choice(len(values), n, p=[*chances, max(1 - chances.sum(), 0)])]
    alike = rng.integers(0, 2, n).astype(float)
    first = np.where(gap == 0, alike, 0.5 + gap / 2)
    return first, first - gap, float(chances @ values[:-1])


def corrected(people: Floats, rng: np.random.Generator, right: float) -> Ends:
    """Half of the questions are judged, and the machine is right on so many."""
    machine = np.where(rng.random(len(people)) < right, people, rng.permutation(people))
    judged = np.arange(len(people)) < len(people) // 2
    made, _ = corrected_difference(people, machine, judged, np.ones(len(people), bool), 0.95)
    return made.low, made.high


def corrected_level(people: Floats, rng: np.random.Generator) -> Ends:
    machine = np.where(rng.random(len(people)) < 0.9, people, 1 - people)
    made = corrected_mean(people[: len(people) // 2], machine[: len(people) // 2], machine)
    return made.low, made.high


def graded(first: Floats, second: Floats, rng: np.random.Generator) -> Ends:
    metric = np.stack([first, second])
    people = np.where(np.arange(len(first)) < len(first) // 2, metric, np.nan)
    wrong = rng.random(metric.shape) < 0.05
    lead = corrected_quality(("a", "b"), people, np.where(wrong, 1 - metric, metric)).lead(0, 1)
    return lead.low, lead.high


def live(first: Floats, second: Floats, rng: np.random.Generator) -> Ends:
    """Each question is rated for one run, drawn at random."""
    run = rng.integers(0, 2, len(first))
    found = unpaired_means(("a", "b"), run, np.where(run == 0, first, second), np.arange(len(first)))
    lead = found.lead(0, 1)
    return lead.low, lead.high


def shown_worse(first: Floats, second: Floats, rng: np.random.Generator) -> Ends:
    best = compared_with_best(np.stack([first, second]), matrix_of(len(first), 100))
    return -float(best.upper[1, 0]), float(best.upper[0, 1])


def raced(first: Floats, second: Floats, rng: np.random.Generator) -> Ends:
    (end,) = limits(RunAnswers(np.stack([first, second])), [len(first)], 0.025)
    return -float(end.upper[1, 0]), float(end.upper[0, 1])


def alone(values: Floats) -> np.ndarray:
    return np.arange(len(values))


OF_DIFFERENCES: dict[str, Interval] = {
    "score --baseline": lambda a, b, rng: paired_interval(a - b, 0.95, 1.0),
    "annotate correct, a good judge": lambda a, b, rng: corrected(a - b, rng, 0.9),
    "annotate correct, a perfect judge": lambda a, b, rng: corrected(a - b, rng, 1),
    "annotate correct, labels at random": lambda a, b, rng: corrected(a - b, rng, 0),
    "people's grades": graded,
    "live ratings": live,
    "runs that may be the best": shown_worse,
    "choose": raced,
    "guard": lambda a, b, rng: bounds(a - b),
    "audit, mean change": lambda a, b, rng: mean_change(a - b, alone(a), 1.0, 0.95)[1:],
    "audit, change of a share": lambda a, b, rng: share_change(b > 0.5, a > 0.5, alone(a), 0.95)[1:],
}
ONE_SIDED = {"runs that may be the best", "guard"}
"""Each end alone holds at 95 %: what is claimed is always one of them."""
RIGHT_OR_WRONG = {"audit, change of a share"}
"""For scores of 0 and 1 only."""

OF_LEVELS: dict[str, Interval] = {
    "annotate correct, a run's mean": lambda a, b, rng: corrected_level(a, rng),
    "votes": lambda a, b, rng: wilson(float(a.sum()), len(a)),
}


@cache
def matrix_of(n: int, resamples: int) -> np.ndarray:
    """Return the resamples of so many questions, which are the same in each round."""
    return resample_matrix(n, resamples, 1)


class Tally:
    """How often an interval missed the truth, and how often it was of zero width."""

    def __init__(self) -> None:
        self.rounds = self.missed = self.points = 0

    def add(self, ends: Ends, truth: float, *, one_sided: bool = False) -> None:
        low, high = ends if math.isfinite(ends[0]) else (-math.inf, math.inf)
        above = truth > high + 1e-9 and not (one_sided and truth < 0)
        below = truth < low - 1e-9 and not (one_sided and truth > 0)
        self.rounds, self.missed = self.rounds + 1, self.missed + (above or below)
        self.points += high - low < 1e-9

    def fails(self) -> str:
        """Say what is wrong, beyond three standard errors of so many rounds."""
        share, limit = self.missed / self.rounds, 1 - LEAST
        if share > limit + 3 * math.sqrt(limit * (1 - limit) / self.rounds):
            return f"covers {1 - share:.3f}"
        return f"zero width {self.points / self.rounds:.3f}" if self.points else ""


def check(tallies: dict[str, Tally]) -> None:
    wrong = {name: problem for name, tally in tallies.items() if (problem := tally.fails())}
    assert not wrong


ROUNDS = [
    pytest.param(((30, 100),), id="few"),
    pytest.param(((15, 1000), (30, 1000), (150, 1000)), marks=pytest.mark.many, id="many"),
]


@pytest.mark.parametrize("sizes", ROUNDS)
@pytest.mark.parametrize("name", OF_DIFFERENCES)
@one_thread
def test_a_difference_of_two_runs(name: str, sizes: tuple[tuple[int, int], ...]) -> None:
    tallies: dict[str, Tally] = {}
    for n, rounds in sizes:
        for of, world in WORLDS.items():
            if name in RIGHT_OR_WRONG and any(value % 1 for _, value in world(n)):
                continue
            rng, tally = np.random.default_rng(n), tallies.setdefault(f"{of}, {n}", Tally())
            for _ in range(rounds):
                first, second, truth = drawn(world, n, rng)
                tally.add(OF_DIFFERENCES[name](first, second, rng), truth, one_sided=name in ONE_SIDED)
    check(tallies)


@pytest.mark.parametrize("sizes", ROUNDS)
@pytest.mark.parametrize("name", OF_LEVELS)
def test_a_level(name: str, sizes: tuple[tuple[int, int], ...]) -> None:
    """All answers are right but for so many of n on average."""
    tallies: dict[str, Tally] = {}
    for n, rounds in sizes:
        for wrong in (0, 0.5, 1, 1.7, 2.2, 3, 5):
            rng, tally = np.random.default_rng(n), tallies.setdefault(f"{wrong} of {n} wrong", Tally())
            for _ in range(rounds):
                values = (rng.random(n) >= wrong / n).astype(float)
                tally.add(OF_LEVELS[name](values, values, rng), 1 - wrong / n)
    check(tallies)


A, B, C, AB, NONE, ALL = (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (0, 0, 0), (1, 1, 1)
HALF = (0.5, 0.5, 0.5)
Kinds = list[tuple[float, tuple[tuple[float, ...], tuple[float, ...]], tuple[int, ...]]]
"""How many of n questions, the scores of three runs by two labelings, and the quality of their answers."""


def few_depart(n: int, k: float, rest: tuple[float, ...] | None) -> Kinds:
    """The second labeling says what the quality is (or always the same), and the first departs from that k times."""
    kinds: Kinds = [((n - k) / 5, (rest or answers,) * 2, answers) for answers in (A, B, AB, NONE, ALL)]
    return [*kinds, (k, (B, rest or A), A)]


def few_right(n: int, k: float) -> Kinds:
    rest: Kinds = [((n - k) / 2, (NONE, NONE), NONE), ((n - k) / 4, (A, B), NONE), ((n - k) / 4, (B, A), NONE)]
    return [*rest, (0.7 * k, (A, (1, 0, 1)), A), (0.3 * k, (B, (0, 1, 1)), A)]


def few_told_apart(n: int, k: float) -> Kinds:
    rest = [(0.3, A, A), (0.2, B, A), (0.2, AB, B), (0.3, C, AB)]
    return [*(((n - k) * share, (scores, scores), quality) for share, scores, quality in rest), (k, (A, B), A)]


PANELS: dict[str, Callable[[int], Kinds]] = {
    "perfect": lambda n: few_depart(n, 0, None),
    "perfect but once": lambda n: few_depart(n, 1, None),
    "perfect but 3 times": lambda n: few_depart(n, 3, None),
    "constant": lambda n: few_depart(n, 0, HALF),
    "constant but twice": lambda n: few_depart(n, 2, HALF),
    "2 right answers": lambda n: few_right(n, 2),
    "5 right answers": lambda n: few_right(n, 5),
    "two labelings that differ once": lambda n: few_told_apart(n, 1),
    "two labelings that differ 5 times": lambda n: few_told_apart(n, 5),
}


def panel(kinds: Kinds, places: np.ndarray) -> Panel:
    scores = np.stack([kinds[place][1] for place in places], axis=-1).astype(float)
    quality = np.stack([kinds[place][2] for place in places], axis=-1).astype(float)
    names = ("one", "other"), ("a", "b", "c"), tuple(f"q{at:04}" for at in range(len(places)))
    return Panel("m", 5, "em", "model", *names, scores, quality, np.isfinite(quality))


def of_all(world: Panel, resamples: Resamples) -> Iterator[tuple[str, Estimate]]:
    for level in ("query", "within-query"):
        for found in estimates(world, level, resamples):
            if found.run in ("a", "all"):
                yield f"{level} {found.run}", found


@pytest.mark.parametrize(
    "sizes", [pytest.param((40, 40), id="few"), pytest.param((40, 1000), marks=pytest.mark.many, id="many")]
)
@pytest.mark.parametrize("name", PANELS)
@one_thread
def test_coefficients_their_differences_and_gains(name: str, sizes: tuple[int, int]) -> None:
    (n, rounds), rng = sizes, np.random.default_rng(4)
    kinds = PANELS[name](n)
    chance = np.array([count for count, *_ in kinds]) / n
    whole = np.repeat(np.arange(len(kinds)), np.round(chance * 2000).astype(int))
    truth = [found for _, found in of_all(panel(kinds, whole), Resamples(resample_matrix(len(whole), 100, 1)))]
    resamples, tallies = Resamples(resample_matrix(n, 200, 1)), dict[str, Tally]()
    gains = []
    for _ in range(rounds):
        world = panel(kinds, rng.choice(len(kinds), n, p=chance))
        levels = list(of_all(world, replace(resamples, _answers={})))
        for (level, found), real in zip(levels, truth, strict=True):
            for coefficient in found.names:
                ends = found.interval(coefficient, 0.95, resamples)
                tallies.setdefault(f"{level} {coefficient}", Tally()).add(ends[:2], real.value(coefficient))
        for one, other in combinations(range(len(levels)), 2):
            (level, first), (where, second) = levels[one], levels[other]
            if level != where or first.reason or second.reason:
                continue
            for row in compared([({}, first, second)], 0.95, resamples):
                coefficient = row["coefficient"]
                gap = truth[one].value(coefficient) - truth[other].value(coefficient)
                tally = tallies.setdefault(f"difference, {level} {coefficient}", Tally())
                tally.add((row["ci_low"], row["ci_high"]), gap)
        gains.append([decision_gain(scores, world.quality, resamples.weights) for scores in world.scores])
    for of_labeling in zip(*gains, strict=True):
        real = float(np.mean([gain.value for gain in of_labeling]))
        for gain in of_labeling:
            tallies.setdefault("gain", Tally()).add(gain.interval(0.95), real)
    check(tallies)


@pytest.mark.parametrize("rounds", [pytest.param(100, id="few"), pytest.param(3000, marks=pytest.mark.many, id="many")])
@pytest.mark.parametrize("differ", [0, 1, 2.2, 3, 5])
def test_agreement(differ: float, rounds: int) -> None:
    """Of 40 queries with three pairs each the two differ on so many pairs, relevant or not."""
    rng, tallies = np.random.default_rng(5), dict[str, Tally]()

    def labels(queries: int, resamples: int) -> PairedLabels:
        first, query = rng.integers(0, 2, 3 * queries).astype(float), np.repeat(np.arange(queries), 3)
        second = np.where(rng.random(3 * queries) < differ / 120, 1 - first, first)
        return PairedLabels(first, second, query, matrix_of(queries, resamples), np.arange(2.0))

    known = labels(8_000, 100)
    samples = [labels(40, 200) for _ in range(rounds)]
    for name in FORMULAS:
        truth, tally = known.coefficient(name, 0.95).value, tallies.setdefault(name, Tally())
        for sample in samples:
            tally.add(sample.coefficient(name, 0.95)[1:], truth)
    check(tallies)


def contest(n: int, differ: float, rng: np.random.Generator) -> Contest:
    """Three runs list the same 5 documents but on so many of n questions, where each has 2 of its own instead."""
    apart = rng.random(n) < differ / n
    shared = np.ones((3, int(5 * n - 2 * apart.sum())))
    counts = np.hstack([shared, np.repeat(np.eye(3), 2 * max(apart.sum(), 1), axis=1)]) / (5 * n)
    machine = rng.integers(0, 2, counts.shape[1])
    return Contest(("a", "b", "c"), counts, machine.astype(float), machine, rng.random(len(machine)))


@pytest.mark.parametrize("rounds", [pytest.param(8, id="few"), pytest.param(300, marks=pytest.mark.many, id="many")])
@pytest.mark.parametrize("differ", [1, 5, 60, 240])
@one_thread
def test_the_looks_of_people_at_pairs(differ: float, rounds: int) -> None:
    """People depart from the machine on few pairs; all looks and all pairs of runs hold together."""
    rng, tallies = np.random.default_rng(6), dict[str, Tally]()
    for departs in (0, 0.5, 2.2, 5):
        tally = tallies.setdefault(f"people depart {departs} times", Tally())
        for _ in range(rounds):
            world = contest(240, differ, rng)
            departing = rng.random(len(world.machine)) < departs / len(world.machine)
            truth = np.where(departing, 1 - world.machine, world.machine)
            people, chance, missed, point = np.full(len(truth), np.nan), np.zeros(len(truth)), False, False
            while (look := world.look(people, chance)).new.any():
                people, chance = np.where(look.new, truth, people), look.chance
                judged = np.isfinite(people)
                for row in world.look(people, chance).table.itertuples():
                    gap = world.counts[world.runs.index(row.run)] - world.counts[world.runs.index(row.other)]
                    missed |= not row.ci_low - 1e-9 <= gap @ truth <= row.ci_high + 1e-9
                    point |= bool(row.ci_high - row.ci_low < 1e-12 and not judged[gap != 0].all())
            tally.rounds, tally.missed, tally.points = tally.rounds + 1, tally.missed + missed, tally.points + point
    check(tallies)


def few_pairs_depart(n: int, k: float, kind: str, rng: np.random.Generator) -> Number:
    """Labels say what the reference does about 5 pairs of each of n questions, but follow a look on k questions."""
    question = np.repeat(np.arange(n), 5)
    truth, look = (rng.random(len(question)) < 0.4).astype(float), rng.normal(size=len(question))
    departing = (rng.random(n) < k / n)[question]
    labels = np.where(departing, look > 0, truth)
    if kind == "by a rare look":
        look = (rng.random(len(question)) < 0.05).astype(float)
        labels = np.where(departing & (look > 0), 1.0, truth)
    (number,) = slopes(labels, truth, {"look": look}, units=question, groups=groups_of(np.arange(n), 1)[question])
    return number


@pytest.mark.parametrize("rounds", [pytest.param(30, id="few"), pytest.param(600, marks=pytest.mark.many, id="many")])
@pytest.mark.parametrize("kind", ["by a look", "by a rare look"])
@one_thread
def test_slopes_of_an_audit(kind: str, rounds: int) -> None:
    rng, tallies = np.random.default_rng(7), dict[str, Tally]()
    for k in (0, 0.5, 1.7, 3, 5):
        real = few_pairs_depart(3000, 3000 * k / 40, kind, rng)
        for _ in range(rounds):
            found = few_pairs_depart(40, k, kind, rng)
            tallies.setdefault(f"{found.statistic} {k}", Tally()).add((found.low, found.high), real.value)
    check(tallies)


@pytest.mark.parametrize("runs", [3, 4, 6, 12])
def test_what_a_further_run_needs_at_most(runs: int) -> None:
    rng, tallies = np.random.default_rng(8), dict[str, Tally]()
    for needed in (0, 0.2, 0.5, 1, 1.7, 3, 5):
        for *known, new in rng.poisson(needed, (1000, runs + 1)).tolist():
            most = most_needed(known)
            assert most is not None
            tallies.setdefault(f"{needed} needed", Tally()).add((-1.0, most), new)
    check(tallies)
