"""How often corrected values cover the truth, and how often people's labels decide wrongly: a simulation.

python benchmarks/people_simulation.py       # prints the tables of benchmarks/simulations.md, about five minutes
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy import stats

from judgekit.people.correct import corrected_difference, corrected_mean
from judgekit.people.deciding import MARGIN, Contest

REPLICATES = 2000
DECISIONS = 100


def queries(random: np.random.Generator, n: int, total: int, rho: float, kind: str) -> tuple[bool, float, float]:
    """Whole queries: whether the truth is inside, the width, and the width of people alone."""
    both = random.multivariate_normal([0, 0], [[1, rho], [rho, 1]], total)
    true = 0.0
    if kind == "success":
        both, true = (both > -0.5).astype(float), float(stats.norm.sf(-0.5))
    elif kind == "difference":
        # Two runs that differ on three queries in ten, as runs do.
        both = both * (random.random(total) < 0.3)[:, None]
    y, f = both.T
    drawn = random.choice(total, n, replace=False)
    made = corrected_mean(y[drawn], f[drawn], f)
    alone = 2 * stats.t.ppf(0.975, n - 1) * y[drawn].std(ddof=1) / np.sqrt(n)
    return made.low <= true <= made.high, made.high - made.low, float(alone)


def rare(random: np.random.Generator, n: int, total: int, share: float, wins: float) -> tuple[bool, float, float]:
    """Runs whose lists differ on few queries: whether the mean is inside, the width, and whether there is one.

    A share of the lists that differ (``wins``) makes a difference of 1; 1 is for differences of all sizes.
    """
    differ = random.random(total) < share
    if wins == 1:
        both = random.choice([-1.0, 0.0, 0.5, 1.0], total) * differ
        said = random.choice([-1.0, 0.0, 0.5, 1.0], total) * differ
    else:
        both = 1.0 * differ * (random.random(total) < wins)
        said = 1.0 * differ * (random.random(total) < wins)
    f = np.where(random.random(total) < 0.8, both, said)
    judged = np.zeros(total, bool)
    judged[random.choice(total, n, replace=False)] = True
    made, _ = corrected_difference(both, f, judged, differ, 0.95)
    there = bool(np.isfinite(made.low))
    return there and made.low <= both.mean() <= made.high, made.high - made.low if there else np.nan, there


def contest(random: np.random.Generator, runs: int, apart: float, noise: float) -> tuple[Contest, np.ndarray]:
    """Runs over 60 queries of 40 documents with grades 0 to 3, their skill more or less apart; a machine with noise."""
    relevance = 0.6 * random.standard_normal((60, 1)) + random.standard_normal((60, 40))
    common, gains = random.standard_normal((60, 40)), 1 / np.log2(np.arange(2, 12))
    counts = np.zeros((runs, 60, 40))
    for row in counts:
        seen = random.normal(1, apart) * relevance + 0.6 * common + 0.8 * random.standard_normal((60, 40))
        order = np.argsort(-seen)[:, :10]
        np.put_along_axis(row, order, np.broadcast_to(gains / gains.sum() / 60, order.shape), 1)
    shown, cuts = (counts > 0).any(axis=0), [0.8, 1.4, 2.0]
    machine = np.digitize(relevance + noise * random.standard_normal((60, 40)), cuts)[shown]
    names = tuple(map(str, range(runs)))
    made = Contest(names, counts[:, shown], machine / 3, machine, random.random(len(machine)))
    return made, np.digitize(relevance, cuts)[shown] / 3


def decision(random: np.random.Generator, runs: int, apart: float, noise: float) -> tuple[float, bool, bool, float]:
    """The share that people judge, whether they and whether the machine alone choose wrongly, what was foretold."""
    made, truth = contest(random, runs, apart, noise)
    people, chance = np.full(len(truth), np.nan), np.zeros(len(truth))
    said = made.look(people, chance)
    foretold = said.share
    while not said.decided:
        people = np.where(said.new, truth, people)
        said = made.look(people, said.chance)
    means, alone = made.counts @ truth, int((made.counts @ made.machine).argmax())
    worst = means.max() - MARGIN - 1e-12
    return (
        float(np.isfinite(people).mean()),
        bool(means[int(said.leader)] < worst),
        bool(means[alone] < worst),
        foretold,
    )


def main() -> None:
    """Print the tables."""
    random = np.random.default_rng(1)
    print("| sample | what | machine | coverage | width, of people alone |\n| --- | --- | --- | --- | --- |")
    for kind in ("mean", "difference", "success"):
        for n, total in ((15, 53), (25, 53), (50, 200), (60, 300)):
            for rho in (0.0, 0.8):
                found = np.array([queries(random, n, total, rho, kind) for _ in range(REPLICATES)], float)
                hit, width, alone = found.mean(axis=0)
                print(f"| {n} of {total} queries | {kind} | correlation {rho} | {hit:.3f} | {width / alone:.2f} |")
    random = np.random.default_rng(3)
    print("\n| sample | lists differ on | scores differ on | coverage | has an interval |\n" + "| --- " * 5 + "|")
    for share in (0.1, 0.3, 1.0):
        for wins in (0.02, 0.1, 1.0):
            for n in (15, 25, 50):
                found = np.array([rare(random, n, 200, share, wins) for _ in range(REPLICATES)], float)
                there = found[:, 2] > 0
                hit = f"{found[there, 0].mean():.3f}" if there.sum() >= 100 else "-"
                print(f"| {n} of 200 queries | {share:.0%} | {wins:.0%} of these | {hit} | {there.mean():.2f} |")
    random = np.random.default_rng(2)
    print("\n| runs | machine | share judged | predicted | wrong | wrong by the machine alone |")
    print("| --- | --- | --- | --- | --- | --- |")
    for apart, what in ((0.3, ""), (0.0, " of equal skill")):
        for runs in (2, 4, 6, 10):
            for noise, machine in ((0.35, "good"), (1.0, "weak")):
                table = np.array([decision(random, runs, apart, noise) for _ in range(DECISIONS)], float)
                (share, foretold), (wrong, alone) = np.median(table[:, [0, 3]], axis=0), table[:, 1:3].mean(axis=0)
                print(f"| {runs}{what} | {machine} | {share:.2f} | {foretold:.2f} | {wrong:.2f} | {alone:.2f} |")


if __name__ == "__main__":
    main()
