"""How often corrected means cover the truth, and how often looking early ends with a false claim: a simulation.

python benchmarks/people_simulation.py       # prints the tables of docs/people.md, about two minutes
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy import stats

from judgekit.experiment.blocks import confidence_at
from judgekit.people.correct import corrected_mean, corrected_sum
from judgekit.people.stopping import LOOKS, decide

REPLICATES = 2000


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


def pairs(random: np.random.Generator, n: int, total: int, accuracy: float, design: str) -> tuple[bool, float, float]:
    """Single pairs of ``total`` queries with ten documents each: P@5, or the difference of two runs in it."""
    query = np.repeat(np.arange(total), 10)
    y = (random.standard_normal(total)[query] + random.standard_normal(len(query)) > 0.8).astype(float)
    f = np.where(random.random(len(query)) < accuracy, y, 1 - y)
    counts = np.tile(np.repeat([0.2, 0.0], 5), total)
    true = float(stats.norm.sf(0.8 / np.sqrt(2)))
    if design == "difference":
        counts, true = counts - np.tile(np.repeat([0.0, 0.2, 0.0], [2, 5, 3]), total), 0.0
    people = np.full(len(query), np.nan)
    drawn = random.choice(len(query), n, replace=False)
    people[drawn] = y[drawn]
    share = np.full(len(query), n / len(query))
    made = corrected_sum(people, f, counts, share, query, total)
    alone = corrected_sum(people, np.zeros(len(query)), counts, share, query, total)
    return made.low <= true <= made.high, made.high - made.low, alone.high - alone.low


def largest(random: np.random.Generator, labelings: int, replicates: int = 200_000) -> float:
    """The share of runs in which the largest t between equal labelings ever crosses the boundary of its look."""
    sums = random.standard_normal((replicates, LOOKS, labelings)).cumsum(axis=1)
    each = sums / np.sqrt(np.arange(1, LOOKS + 1))[None, :, None]
    most = (each.max(axis=2) - each.min(axis=2)) / np.sqrt(2)
    ended = np.zeros(replicates, np.bool_)
    for look in range(LOOKS):
        level = confidence_at(look + 1, LOOKS, 0.95)
        ended |= most[:, look] > np.quantile(most[:, 0], level)
    return float(ended.mean())


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
    for design in ("mean", "difference"):
        for n, total in ((200, 200), (600, 200)):
            for accuracy in (0.5, 0.85):
                found = np.array([pairs(random, n, total, accuracy, design) for _ in range(REPLICATES)], float)
                hit, width, alone = found.mean(axis=0)
                what = f"P@5, {design}"
                print(f"| {n} of {10 * total} pairs | {what} | accuracy {accuracy} | {hit:.3f} | {width / alone:.2f} |")
    print("\n| queries differ | false claims, five looks | false claims, stream |\n| --- | --- | --- |")
    for share in (0.05, 0.1, 0.3, 1.0):
        ended = np.zeros(2)
        for _ in range(REPLICATES):
            d = np.where(random.random(300) < share, random.choice([-1.0, 1.0], 300), 0.0)
            ended += [decide(d, 300, method=method).decided for method in ("looks", "stream")]  # type: ignore[arg-type]
        print(f"| {share:.0%} | {ended[0] / REPLICATES:.3f} | {ended[1] / REPLICATES:.3f} |")
    print("\n| equal labelings | false claims of a run that stops when decided |\n| --- | --- |")
    for labelings in (2, 3, 4, 8):
        print(f"| {labelings} | {largest(random, labelings):.3f} |")
    shift = (stats.norm.isf(0.025) + stats.norm.isf(0.1)) / np.sqrt(300) * 1.01
    found = [decide(random.standard_normal(300) + shift, 300) for _ in range(REPLICATES)]
    power, used = np.mean([each.decided for each in found]), np.mean([each.used for each in found]) / 300
    print(f"\nWhere a fixed sample of 300 has power .90, five looks have {power:.2f} and use {used:.2f} of it.")


if __name__ == "__main__":
    main()
