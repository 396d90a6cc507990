"""Does a plan keep its promises? A simulation of what `judgekit plan` says that a pilot can show.

    python benchmarks/pilot_simulation.py      # writes pilot.csv beside this file, about four minutes

First: questions have 12 documents of different use; runs rank them by what they know of it, with noise that they share
in part, so that some lists are equal; the same list gives the same answer. Of labelings with the smallest correlation
that a plan says a pilot can show, how many pilots show it? Second: of runs of which one leads by as much as a plan
says, how often is it shown to be the only one that may be the best, and after how many questions does a choice end?
Third: does a further run need no more labels and answers than is said once some runs are known?
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from judgekit.analysis.best import compared_with_best
from judgekit.analysis.power import most_needed, race_length, shown_lead
from judgekit.analysis.race import BLOCK, RaceRules, RunAnswers, race
from judgekit.analysis.resampling import resample_matrix
from judgekit.experiment.plan import smallest_r

Floats = npt.NDArray[np.float64]

POOL, DEPTH = 12, 5
GAINS = 1 / np.log2(np.arange(2, DEPTH + 2))
APART, ALIKE = (0.0, 0.4, 0.7, 1.0, 1.3, 1.6), (0.9, 0.95, 1.0, 1.05, 1.1, 1.15)
REPLICATES, SHOWN = 300, 1000
OWN = 1.0
"""What the answer from a document depends on beside its use: known to nobody but those who read the answer."""


@dataclass(frozen=True)
class World:
    """What is fixed while questions are drawn.

    Attributes:
        skills: of each run, how much it knows of a document's use.
        shared: share of the runs' noise that all have in common; variants of one retriever share nearly all.
        noises: of the labelings.
    """

    skills: tuple[float, ...]
    shared: float
    noises: tuple[float, ...]


def questions(random: np.random.Generator, world: World, n: int) -> tuple[Floats, Floats, Floats]:
    """Return scores (labelings, n, runs), quality (n, runs) and how far the lists differ (n,)."""
    runs = len(world.skills)
    use = 0.6 * random.standard_normal((n, 1)) + 0.8 * random.standard_normal((n, POOL))
    common, lexical = random.standard_normal((2, n, 1, POOL))
    own = random.standard_normal((n, runs, POOL))
    own[:, : runs // 2] = 0.6 * own[:, : runs // 2] + 0.8 * lexical
    noise = np.sqrt(world.shared) * common + np.sqrt(1 - world.shared) * own
    order = np.argsort(-(np.array(world.skills)[:, None] * use[:, None] + noise), axis=2)[:, :, :DEPTH]
    gains = np.zeros((n, runs, POOL))
    np.put_along_axis(gains, order, np.broadcast_to(GAINS, order.shape), axis=2)
    useful = 1 / (1 + np.exp(-3 * (use + OWN * random.standard_normal((n, POOL)) - 1)))
    held = (gains * useful[:, None]).sum(2)
    quality = (held + 0.3 * random.standard_normal((n, 1)) > 1.0).astype(float)
    scores = []
    for spread in world.noises:
        label = use + spread * random.standard_normal((n, POOL))
        scores.append((gains / (1 + np.exp(-3 * (label - 1)))[:, None]).sum(2))
    far = np.abs(gains[:, :, None] - gains[:, None]).sum((1, 2, 3)) / (2 * GAINS.sum() * runs * (runs - 1))
    return np.array(scores), quality, far


def parts(scores: Floats, quality: Floats) -> tuple[Floats, Floats, Floats]:
    """Return by question what the correlation within questions is made of: products, squares of both."""
    s, y = (values - values.mean(-1, keepdims=True) for values in (scores, quality))
    return (s * y).sum(-1), (s * s).sum(-1), (y * y).sum(-1) + 0 * s.sum(-1)


def correlation(scores: Floats, quality: Floats) -> Floats:
    """Return the pooled within-question correlation."""
    a, b, c = (part.sum(-1) for part in parts(scores, quality))
    return np.asarray(a / np.sqrt(np.maximum(b * c, 1e-300)))


def shown(scores: Floats, quality: Floats) -> npt.NDArray[np.bool_]:
    """Return whether r is shown above 0 at 95 %, by its linear part and t on the questions on which both differ."""
    each = parts(scores, quality)
    a, b, c = (
        np.maximum(part.sum(-1, keepdims=True), 1e-300) if i else part.sum(-1, keepdims=True)
        for i, part in enumerate(each)
    )
    r = a / np.sqrt(b * c)
    influence = each[0] / np.sqrt(b * c) - r / 2 * (each[1] / b + each[2] / c)
    both = ((each[1] > 1e-12) & (each[2] > 1e-12)).sum(-1)
    error = np.sqrt((influence**2).sum(-1))
    return np.asarray((both >= 5) & (r[..., 0] > stats.t.ppf(0.975, np.maximum(both - 1, 1)) * error))


def smallest(random: np.random.Generator) -> pd.DataFrame:
    """Return how many pilots show the smallest r that the plan names."""
    rows = []
    for how, skills, shared in (("apart", APART, 0.5), ("alike", ALIKE, 0.5), ("variants", ALIKE, 0.95)):
        for runs in (2, 3, 6):
            some = tuple(skills[i] for i in np.linspace(0, 5, runs).astype(int))
            noises = np.geomspace(0.05, 12, 24)
            world = World(some, shared, tuple(noises.tolist()))
            scores, quality, far = questions(random, world, 30_000)
            true = correlation(scores[:, far > 0], quality[far > 0])
            for n in (50, 100, 200):
                wanted = smallest_r(n, runs)[how == "variants"]
                if wanted > true.max():
                    continue
                noise = float(np.interp(wanted, true[::-1], noises[::-1]))
                one = replace(world, noises=(noise,))
                scores, quality, far = questions(random, one, int(SHOWN * n / max((far > 0).mean(), 0.02) * 1.1))
                s, y = (values[..., far > 0, :] for values in (scores[0], quality))
                count = min(len(s) // n, SHOWN)
                found = shown(*(v[: count * n].reshape(count, n, runs) for v in (s, y)))
                rows.append((f"r, {how}", runs, n, wanted, found.mean(), count))
    return pd.DataFrame(rows, columns=["what", "runs", "questions", "smallest", "shown", "replicates"])


def ahead(random: np.random.Generator, runs: int, questions: int, differ: float, lead: float) -> Floats:
    """Return answers of runs of which two differ on a share of the questions, and the first leads by so much."""
    own = random.random(questions) < 2 * differ
    quality = np.where(own, random.random((runs, questions)) < 0.5, random.random(questions) < 0.5)
    quality[0] |= random.random(questions) < 2 * lead
    return quality.astype(np.float64)


def leads(random: np.random.Generator) -> pd.DataFrame:
    """Return how often the lead that a plan names is shown."""
    rows = []
    for runs in (2, 3, 6, 12):
        for n in (50, 100, 200, 500):
            weights = resample_matrix(n, 300, 1)
            for differ in (0.1, 0.2, 0.4):
                lead = shown_lead(n, runs, differ)
                if lead > 0.45:
                    continue
                drawn = (ahead(random, runs, n, differ, lead) for _ in range(REPLICATES))
                found = np.mean([compared_with_best(one, weights).may_be_best.sum() == 1 for one in drawn])
                rows.append((f"lead, {differ:.0%} differ", runs, n, 100 * lead, found, REPLICATES))
    return pd.DataFrame(rows, columns=["what", "runs", "questions", "smallest", "shown", "replicates"])


def lengths(random: np.random.Generator) -> pd.DataFrame:
    """Return after how many questions a choice ends, beside what a plan says of it (margin 3 points)."""
    rows = []
    for runs in (2, 6):
        for differ in (0.1, 0.2, 0.4):
            for lead in (0.0, 0.05, 0.1):
                foreseen = race_length(0.03, runs, differ, lead)
                ends = range(BLOCK, 3 * foreseen + 1, BLOCK)
                rules = RaceRules(0.03, resamples=100)
                drawn = (ahead(random, runs, 3 * foreseen, differ, lead) for _ in range(40))
                found = np.median([race(RunAnswers(one), ends, rules).last.questions for one in drawn])
                rows.append((f"choice, {differ:.0%} differ", runs, foreseen, 100 * lead, found / foreseen, 40))
    return pd.DataFrame(rows, columns=["what", "runs", "questions", "smallest", "took", "replicates"])


def lists(random: np.random.Generator, how: str, runs: int, n: int) -> npt.NDArray[np.intp]:
    """Return the top of each run's list of each question, shape (runs, n, DEPTH), of a few dozen documents.

    Runs are drawn from one population: of unlike skill, alike, or half of them variants of one retriever.
    """
    documents = 40
    use, common = random.standard_normal((2, 1, n, documents))
    skill = random.uniform(0.2, 2.0, (runs, 1, 1)) if how == "apart" else np.full((runs, 1, 1), 1.0)
    variant = (random.random((runs, 1, 1)) < 0.5) & (how == "some variants")
    noise = random.standard_normal((runs, n, documents))
    noise = np.where(variant, np.sqrt(0.9) * common + np.sqrt(0.1) * noise, noise)
    return np.argsort(-(skill * use + noise), axis=2)[:, :, :DEPTH]


def needs_of(tops: npt.NDArray[np.intp], run: int) -> tuple[int, int]:
    """Return how many labels and how many answers a run needs that no other run shares."""
    rest = np.delete(tops, run, axis=0)
    shared = (tops[run][None, :, :, None] == rest[:, :, None, :]).any(axis=(0, 3))
    listed = (tops[run] == rest).all(axis=2).any(axis=0)
    return int((~shared).sum()), int((~listed).sum())


def reuses(random: np.random.Generator) -> pd.DataFrame:
    """Return how often one more run needs at most what is said of it."""
    rows = []
    for how in ("apart", "alike", "some variants"):
        for runs in (3, 4, 6, 12):
            held: dict[str, list[bool]] = {"labels": [], "answers": []}
            for _ in range(SHOWN):
                tops = lists(random, how, runs + 1, 50)
                known = [needs_of(tops[:-1], run) for run in range(runs)]
                for kind, before, new in zip(held, zip(*known, strict=True), needs_of(tops, runs), strict=True):
                    most = most_needed(before)
                    held[kind].append(most is not None and new <= most)
            rows += [(f"reuse of {kind}, {how}", runs, 50, np.mean(each), SHOWN) for kind, each in held.items()]
    return pd.DataFrame(rows, columns=["what", "runs", "questions", "held", "replicates"])


def main() -> None:
    """Simulate, print and write the table."""
    random = np.random.default_rng(1)
    found = pd.concat([smallest(random), leads(random), lengths(random), reuses(random)], ignore_index=True)
    found.round(4).to_csv(Path(__file__).with_name("pilot.csv"), index=False)
    print(found.round(3).to_string(index=False))


if __name__ == "__main__":
    main()
