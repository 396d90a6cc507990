"""What a pilot can show, and which questions it is best made of: a simulation.

    python benchmarks/pilot_simulation.py      # writes pilot.csv beside this file, about four minutes

Questions have 12 documents of different use; runs rank them by what they know of it, with noise that they share in
part, so that some lists are equal; the same list gives the same answer. Labels are the use of a document with each
labeling's own noise, and some favour what lexical runs favour.

First: of labelings with the smallest correlation that `judgekit plan` says a pilot can show, and of runs with the
smallest difference of answers, how many pilots show it. Second: a pilot chooses a labeling by its pooled
within-question correlation r; 2,400 units buy labels for further questions; the run with the best mean is taken. What
that run's answers lack of the best run's, in points, is the regret.
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

from judgekit.experiment.plan import smallest_difference, smallest_r
from judgekit.people.sampling import systematic

Floats = npt.NDArray[np.float64]

POOL, DEPTH, FRAME, FURTHER, BUDGET = 12, 5, 400, 1000, 2400
GAINS = 1 / np.log2(np.arange(2, DEPTH + 2))
APART, ALIKE = (0.0, 0.4, 0.7, 1.0, 1.3, 1.6), (0.9, 0.95, 1.0, 1.05, 1.1, 1.15)
REPLICATES, SHOWN = 400, 1000
OWN = 1.0
"""What the answer from a document depends on beside its use: known to nobody but those who read the answer."""


@dataclass(frozen=True)
class World:
    """What is fixed while questions are drawn.

    Attributes:
        skills: of each run, how much it knows of a document's use.
        shared: share of the runs' noise that all have in common; variants of one retriever share nearly all.
        labels: of each labeling its noise, its bias to the first half of the runs, and its price for a question.
    """

    name: str
    skills: tuple[float, ...]
    shared: float
    labels: tuple[tuple[float, float, float], ...]


WORDS, JUDGE, STRONG, REFERENCE = (2.0, 1.0, 0.0), (1.2, 0.0, 12.0), (0.6, 0.0, 40.0), (0.5, 0.0, 60.0)
JUDGES = {
    "nothing biased": (WORDS, JUDGE, STRONG, REFERENCE),
    "judge biased": (WORDS, (1.2, 0.8, 12.0), STRONG, REFERENCE),
    "costliest biased": (WORDS, JUDGE, (0.6, 0.3, 40.0)),
}
WORLDS = tuple(
    World(f"{how}, {judges}", skills, shared, labels)
    for how, skills, shared in (("alike", ALIKE, 0.5), ("apart", APART, 0.5), ("variants", ALIKE, 0.95))
    for judges, labels in JUDGES.items()
)


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
    for spread, bias, _ in world.labels:
        label = use + spread * random.standard_normal((n, POOL)) + bias * lexical[:, 0]
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
    """Return how many pilots show the smallest r that the plan names, and the smallest difference of two runs."""
    rows = []
    for how, skills, shared in (("apart", APART, 0.5), ("alike", ALIKE, 0.5), ("variants", ALIKE, 0.95)):
        for runs in (2, 3, 6):
            some = tuple(skills[i] for i in np.linspace(0, 5, runs).astype(int))
            noises = np.geomspace(0.05, 12, 24)
            world = World(how, some, shared, tuple((noise, 0.0, 0.0) for noise in noises))
            scores, quality, far = questions(random, world, 30_000)
            true = correlation(scores[:, far > 0], quality[far > 0])
            for n in (50, 100, 200):
                wanted = smallest_r(n, runs)[how == "variants"]
                if wanted > true.max():
                    continue
                noise = float(np.interp(wanted, true[::-1], noises[::-1]))
                one = replace(world, labels=((noise, 0.0, 0.0),))
                scores, quality, far = questions(random, one, int(SHOWN * n / max((far > 0).mean(), 0.02) * 1.1))
                s, y = (values[..., far > 0, :] for values in (scores[0], quality))
                count = min(len(s) // n, SHOWN)
                found = shown(*(v[: count * n].reshape(count, n, runs) for v in (s, y)))
                rows.append((f"r, {how}", runs, n, wanted, found.mean(), count))
    for n in (50, 100, 200):
        for share in (0.1, 0.2, 0.4):
            points = smallest_difference(n, share)
            up = (share + points / 100) / 2
            if up > share:
                continue
            drawn = random.random((20_000, n))
            d = np.where(drawn < up, 1.0, np.where(drawn < share, -1.0, 0.0))
            t = d.mean(1) / np.maximum(d.std(1, ddof=1) / np.sqrt(n), 1e-9)
            found = np.abs(t) > stats.t.ppf(0.975, n - 1)
            rows.append((f"points, {share:.0%} differ", 2, n, points, found.mean(), 20_000))
    return pd.DataFrame(rows, columns=["what", "runs", "questions", "smallest", "shown", "replicates"])


def regret(random: np.random.Generator) -> pd.DataFrame:
    """Return the mean regret by world, design of the pilot and its questions."""
    rows = []
    for world in WORLDS:
        truth = np.mean([questions(random, world, 20_000)[1].mean(0) for _ in range(5)], axis=0)
        lost: dict[tuple[str, int], list[float]] = {}
        prices = np.array([price for _, _, price in world.labels])
        many = np.where(prices > 0, BUDGET / np.maximum(prices, 1e-9), FURTHER).astype(int)
        for _ in range(REPLICATES):
            scores, quality, far = questions(random, world, FRAME + FURTHER)
            picked = [int(scores[i, FRAME : FRAME + many[i]].mean(0).argmax()) for i in range(len(prices))]
            loss = 100 * (truth.max() - truth[picked])
            lost.setdefault(("no pilot: the costliest labeling", 0), []).append(loss[int(prices.argmax())])
            for n in (50, 200):
                some = {
                    "random": random.choice(FRAME, n, replace=False),
                    "lists differ": systematic(far[:FRAME] ** 2, min(n, int((far[:FRAME] > 0).sum())), random)[1],
                }
                for design, at in some.items():
                    leader = int(correlation(scores[:, at], quality[at]).argmax())
                    lost.setdefault((design, n), []).append(loss[leader])
        for (design, n), values in lost.items():
            error = np.std(values, ddof=1) / np.sqrt(len(values))
            rows.append((world.name, design, n, np.mean(values), error, len(values)))
    return pd.DataFrame(rows, columns=["what", "design", "questions", "regret", "error", "replicates"])


def main() -> None:
    """Simulate, print and write the table."""
    random = np.random.default_rng(1)
    found = pd.concat([smallest(random), regret(random)], ignore_index=True)
    found.round(4).to_csv(Path(__file__).with_name("pilot.csv"), index=False)
    print(found.round(3).to_string(index=False))
    means = found.dropna(subset="regret").groupby(["design", "questions"])["regret"].mean()
    print(f"\nMean regret over worlds, in points:\n{means.round(3).to_string()}")
    biased = found["what"].str.contains("costliest")
    means = found[biased].groupby(["design", "questions"])["regret"].mean()
    print(f"\nWhere the costliest labeling is biased:\n{means.round(3).to_string()}")


if __name__ == "__main__":
    main()
