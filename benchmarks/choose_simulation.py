"""Does `judgekit choose` keep its promise, and what does it save? A simulation of the procedure as it is called.

    python benchmarks/choose_simulation.py             # writes choose.csv beside this file, about five minutes
    python benchmarks/choose_simulation.py raised      # prints what raising the budget again and again does

Each world is a population of 60,000 questions with an answer of every run, whose means are the truth. A race asks
questions drawn from it, as many as somebody owns; with half the money it may ask for half of their answers. Beside it
stand asking everything, and a fixed random sample of as many answers, for all runs alike. Regret is what the chosen run
lacks of the best, in points; a bound is kept if the regret is at most what the race says.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import numpy.typing as npt
import pandas as pd

from judgekit.analysis.race import RaceRules, RunAnswers, race, random_order

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

POPULATION, OWNED, MARGIN = 60_000, (100, 200, 500, 3000), 0.02
RUNS = (2, 3, 4, 6, 8, 12, 20, 6)
"""Of the worlds of a kind."""
REPLICATES = 25


@dataclass(frozen=True)
class World:
    """A population: quality by run and question, and the group of each question, or None."""

    quality: npt.NDArray[np.float32]
    groups: Ints | None = None


def leads(random: np.random.Generator, runs: int) -> Floats:
    """Return mean quality with gaps of 0 to 3 points, in random order."""
    return random.permutation(0.55 - np.cumsum(random.uniform(0, 0.03, runs)))


def answers(random: np.random.Generator, means: Floats, shared: float = 0.7, n: int = POPULATION) -> Floats:
    """Return right and wrong answers; of some share of the questions all runs' answers depend on one difficulty."""
    same = random.random(n) < shared
    hard = np.where(same, random.random(n), random.random((len(means), n)))
    return np.asarray(hard < means[:, None], np.float64)


def equal(random: np.random.Generator, runs: int) -> World:
    """Runs that are equally good."""
    return World(answers(random, np.full(runs, random.uniform(0.3, 0.7))).astype(np.float32))


def near_ties(random: np.random.Generator, runs: int) -> World:
    """Some runs within a point of the best, others far behind."""
    means = 0.5 - np.where(np.arange(runs) < 3, random.uniform(0, 0.01, runs), random.uniform(0.05, 0.2, runs))
    return World(answers(random, means).astype(np.float32))


def apart(random: np.random.Generator, runs: int) -> World:
    """Gaps of 0 to 3 points."""
    return World(answers(random, leads(random, runs)).astype(np.float32))


def one_ahead(random: np.random.Generator, runs: int) -> World:
    """One run 3 to 6 points ahead of equal ones."""
    return World(answers(random, np.r_[0.5 + random.uniform(0.03, 0.06), np.full(runs - 1, 0.5)]).astype(np.float32))


def rare_wins(random: np.random.Generator, runs: int) -> World:
    """One run wins 2 to 5 of 100 questions that all others lose, and loses nothing."""
    quality = np.repeat(answers(random, np.array([0.5])), runs, axis=0)
    won = random.random(POPULATION) < random.uniform(0.02, 0.05)
    quality[:, won] = 0
    quality[0, won] = 1
    return World(quality.astype(np.float32))


def rare_losses(random: np.random.Generator, runs: int) -> World:
    """All runs but the last are a little better often, and it alone is right on a few questions; graded."""
    quality = np.repeat(random.uniform(0.3, 0.7, (1, POPULATION)), runs, axis=0)
    quality[:-1] += 0.02
    lost = random.random(POPULATION) < random.uniform(0.04, 0.08)
    quality[:-1, lost] = 0
    quality[-1, lost] = 1
    return World(quality.astype(np.float32))


def few_right(random: np.random.Generator, runs: int) -> World:
    """About 6 in 100 answers are right."""
    return World(answers(random, random.uniform(0.03, 0.08, runs)).astype(np.float32))


def graded(random: np.random.Generator, runs: int) -> World:
    """Quality such as F1: many 0, many 1, and values between."""
    means = leads(random, runs)
    part = random.beta(0.5, 0.5, (1, POPULATION)) + random.normal(0, 0.2, (runs, POPULATION)) + means[:, None] - 0.5
    return World(np.clip(part, 0, 1).astype(np.float32))


def clusters(random: np.random.Generator, runs: int) -> World:
    """Groups of 5 questions that share difficulty and which run does well."""
    n = POPULATION // 5
    groups = np.repeat(np.arange(n), 5)
    level = leads(random, runs)[:, None] + random.normal(0, 0.15, (runs, n)) + random.normal(0, 0.25, n)
    return World((random.random((runs, POPULATION)) < level[:, groups]).astype(np.float32), groups)


def uneven_clusters(random: np.random.Generator, runs: int) -> World:
    """Groups of 1 to 9 questions; some runs are better in large groups."""
    sizes = random.integers(1, 10, POPULATION // 5)
    groups = np.repeat(np.arange(len(sizes)), sizes)[:POPULATION]
    groups = np.r_[groups, np.full(POPULATION - len(groups), len(sizes))]
    size = np.bincount(groups)
    slope = random.normal(0, 0.01, runs)[:, None] * (size - 5)
    level = leads(random, runs)[:, None] + random.normal(0, 0.1, (runs, len(size))) + slope
    return World((random.random((runs, POPULATION)) < level[:, groups]).astype(np.float32), groups)


def drift(random: np.random.Generator, runs: int) -> World:
    """What is asked changes along the file, and with it which run is the best."""
    along = np.linspace(-1, 1, POPULATION) * random.normal(0, 0.15, runs)[:, None]
    level = leads(random, runs)[:, None] + along
    hard = random.random(POPULATION)
    own = random.random((runs, POPULATION))
    return World((0.5 * hard + 0.5 * own < level).astype(np.float32))


def noisy(random: np.random.Generator, runs: int) -> World:
    """A tenth of the answers is turned round at random."""
    quality = answers(random, leads(random, runs))
    turned = random.random(quality.shape) < 0.1
    return World(np.where(turned, 1 - quality, quality).astype(np.float32))


def duplicates(random: np.random.Generator, runs: int) -> World:
    """Variants of one retriever: nine in ten answers are the same for all runs."""
    quality = answers(random, leads(random, runs))
    same = random.random(POPULATION) < 0.9
    quality[:, same] = quality[0, same]
    return World(quality.astype(np.float32))


def unequal_depths(random: np.random.Generator, runs: int) -> World:
    """Runs that return few documents answer some questions surely and abstain from the others."""
    found = random.uniform(0.4, 0.8, runs)
    hard = 0.7 * random.random(POPULATION) + 0.3 * random.random((runs, POPULATION))
    return World(np.where(hard < found[:, None], random.beta(4, 2, (runs, POPULATION)), 0).astype(np.float32))


def kinds_of_question(random: np.random.Generator, runs: int) -> World:
    """Three kinds of question with a best run each."""
    kind = random.choice(3, POPULATION, p=[0.6, 0.3, 0.1])
    level = 0.5 + random.normal(0, 0.12, (runs, 3))
    return World((random.random((runs, POPULATION)) < level[:, kind]).astype(np.float32))


def missing(random: np.random.Generator, runs: int) -> World:
    """Three in 100 wrong answers of one run are missing."""
    quality = answers(random, leads(random, runs)).astype(np.float32)
    quality[0, (quality[0] == 0) & (random.random(POPULATION) < 0.03)] = np.nan
    return World(quality)


def ragged(random: np.random.Generator, runs: int) -> World:
    """One run that fails wholly on some groups of 5, and is the best elsewhere."""
    n = POPULATION // 5
    groups = np.repeat(np.arange(n), 5)
    quality = answers(random, np.r_[0.56, np.full(runs - 1, 0.5)])
    quality[0, (random.random(n) < random.uniform(0.06, 0.14))[groups]] = 0
    return World(quality.astype(np.float32), groups)


KINDS: tuple[Callable[[np.random.Generator, int], World], ...] = (
    equal,
    near_ties,
    apart,
    one_ahead,
    rare_wins,
    rare_losses,
    few_right,
    graded,
    clusters,
    uneven_clusters,
    drift,
    noisy,
    duplicates,
    unequal_depths,
    kinds_of_question,
    missing,
    ragged,
)


def drawn(random: np.random.Generator, world: World, owned: int) -> RunAnswers:
    """Return so many questions of a population, groups whole, in the order in which a race asks them."""
    if world.groups is None:
        return RunAnswers(world.quality[:, random.permutation(POPULATION)[:owned]].astype(np.float64))
    starts = np.flatnonzero(np.diff(world.groups, prepend=-1))
    sizes = np.diff(np.append(starts, POPULATION))
    places: list[int] = []
    for group in random.permutation(len(starts)).tolist():
        places += range(starts[group], starts[group] + sizes[group])
        if len(places) >= owned:
            break
    return RunAnswers(world.quality[:, places].astype(np.float64), world.groups[places])


def played(world: World, random: np.random.Generator, owned: int) -> list[dict[str, object]]:
    """Return what a race did with all and with half of the money, and what asking everything would have done."""
    answered = drawn(random, world, owned)
    truth = 100 * np.where(np.isnan(world.quality), 0, world.quality).mean(axis=1, dtype=np.float64)
    runs, questions = answered.quality.shape
    order = random_order(questions, int(random.integers(1 << 30)), answered.groups)
    groups = None if answered.groups is None else answered.groups[order.places]
    answered = RunAnswers(answered.quality[:, order.places], groups)
    counted = np.nan_to_num(answered.quality)
    rows: list[dict[str, object]] = []
    for money in (1.0, 0.5):
        whole = runs * questions
        choice = race(answered, order.ends, RaceRules(MARGIN, resamples=300), money * whole)
        lost = truth.max() - truth[choice.chosen]
        rows.append(
            {
                "money": money,
                "regret": lost,
                "everything": truth.max() - truth[counted.mean(axis=1).argmax()],
                "sample": truth.max() - truth[counted[:, : choice.last.answers // runs].mean(axis=1).argmax()],
                "answers": choice.last.answers / whole,
                "stopped": choice.stopped,
                "within": lost <= 100 * MARGIN if choice.stopped else np.nan,
                "claimed": np.isfinite(choice.bound),
                "bound": 100 * choice.bound,
                "kept": lost <= 100 * choice.bound + 1e-9 if np.isfinite(choice.bound) else np.nan,
                "best kept": bool(choice.may_be_best[truth >= truth.max() - 1e-9].any()),
            }
        )
    return rows


def raised() -> None:
    """Print how often the last bound is kept if the budget is raised by 100 questions until it is within the margin."""
    for at, kind in enumerate((equal, near_ties, one_ahead, rare_losses, few_right, duplicates)):
        kept = []
        for number, runs in enumerate((2, 4, 8)):
            random = np.random.default_rng([9, at, number])
            world = kind(random, runs)
            truth = world.quality.mean(axis=1, dtype=np.float64)
            for _ in range(60):
                answered = drawn(random, world, 1500)
                ends = list(range(20, 1501, 20))
                for questions in range(100, 1501, 100):
                    some = RunAnswers(answered.quality[:, :questions])
                    choice = race(some, [end for end in ends if end <= questions], RaceRules(MARGIN, resamples=200))
                    if choice.bound <= MARGIN:
                        break
                kept.append(truth.max() - truth[choice.chosen] <= choice.bound + 1e-9)
        print(f"{kind.__name__}: kept {np.mean(kept):.3f} of {len(kept)}", flush=True)


def main() -> None:
    """Simulate, print and write the table: by kind and questions owned, with the standard errors over worlds."""
    rows = []
    for at, kind in enumerate(KINDS):
        for number, runs in enumerate(RUNS):
            random = np.random.default_rng([at, number])
            world = kind(random, runs)
            for owned in OWNED:
                for _ in range(REPLICATES if owned < 1000 else REPLICATES // 2):
                    for row in played(world, random, owned):
                        rows.append({"kind": kind.__name__, "world": number, "runs": runs, "owned": owned, **row})
        print(kind.__name__, flush=True)
    table = pd.DataFrame(rows)
    numbers = [name for name in table.columns if name not in ("kind", "world", "runs", "owned", "money")]
    table[numbers] = table[numbers].astype(float)
    worlds = table.groupby(["kind", "owned", "money", "world"])[numbers].mean()
    grouped = worlds.groupby(["kind", "owned", "money"])
    means, errors = grouped.mean(), grouped.sem()
    found = means.join(errors[["regret", "kept"]].add_suffix(" error")).reset_index()
    found.round(4).to_csv(Path(__file__).with_name("choose.csv"), index=False)
    pd.set_option("display.width", 250)
    print(found.round(3).to_string(index=False))
    for by in (["money", "owned"], ["kind"]):
        print(f"\n{worlds.groupby(by).mean().round(3).to_string()}")
        print(worlds.groupby(by)["kept"].sem().round(4).to_string())


if __name__ == "__main__":
    raised() if sys.argv[1:] == ["raised"] else main()
