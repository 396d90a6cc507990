"""How often `judgekit guard` is wrong, and how often it sees what it says that it sees: a simulation.

    python benchmarks/guard_simulation.py            # all cells, writes guard.csv beside this file
    python benchmarks/guard_simulation.py --replicates 200 --only "no loss"

A world draws the loss of a query, from -1 to 1. Beside what the gate says stand two rules that it does not use: a t
bound without the added query, and a sign-flip test. *no loss*: the true mean loss is 0, so that every `fail` is a false
alarm. *margin*: it equals the margin of one point, so that every `pass` is wrong. *loss*: it is what the name says.
*clusters*: groups of five queries that share four fifths of their fates, decided on by their means, and beside it as if
they did not go together. *needed*: the queries are as many as an inconclusive pilot of 100 asked for.
"""

from __future__ import annotations

import argparse
import os
import zlib
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from judgekit.jobs.guard.decision import decide

Draw = Callable[[int, np.random.Generator], np.ndarray]
MARGIN = 0.01
FEWER, FLIPS = 500, 1999
"""Replicates and flips of the other rules."""


def sparse(share: float, size: float, better: float = 0.0, gain: float | None = None) -> Draw:
    """A share of the queries loses ``size``; a share ``better`` wins ``gain``."""

    def draw(n: int, rng: np.random.Generator) -> np.ndarray:
        fate = rng.random(n)
        won = -(size if gain is None else gain)
        return np.where(fate < share, size, np.where(fate < share + better, won, 0.0))

    return draw


def graded(share: float, mean: float, spread: float) -> Draw:
    """A share of the queries changes by a normal amount, cut to the range."""

    def draw(n: int, rng: np.random.Generator) -> np.ndarray:
        return np.where(rng.random(n) < share, np.clip(rng.normal(mean, spread, n), -1, 1), 0.0)

    return draw


def exactly(share: float, size: float) -> Draw:
    """Just this share loses ``size``, and as many win it."""

    def draw(n: int, rng: np.random.Generator) -> np.ndarray:
        m = round(share * n)
        losses = np.zeros(n)
        losses[:m], losses[m : 2 * m] = size, -size
        return rng.permutation(losses)

    return draw


NULL = {
    "nothing changes": sparse(0, 0),
    "2 % lose 1, 2 % win 1": sparse(0.02, 1, 0.02),
    "5 % lose .5, 5 % win .5": sparse(0.05, 0.5, 0.05),
    "20 % lose .2, 20 % win .2": sparse(0.2, 0.2, 0.2),
    "just 5 % lose .5, just 5 % win .5": exactly(0.05, 0.5),
    "10 % change, normal .3": graded(0.1, 0, 0.3),
    "all change, normal .2": graded(1, 0, 0.2),
    "2 % lose 1, 20 % win .1": sparse(0.02, 1, 0.2, 0.1),
    "20 % lose .1, 2 % win 1": sparse(0.2, 0.1, 0.02, 1),
    "20 % lose .05, 1 % win 1": sparse(0.2, 0.05, 0.01, 1),
    "2 % lose .4, .8 % win 1": sparse(0.02, 0.4, 0.008, 1),
    "all but 2 % lose .02, these win 1": sparse(0.98, 0.02, 0.02, 1),
    "90 % lose .1, 9 % win 1": sparse(0.9, 0.1, 0.09, 1),
}
AT_MARGIN = {
    "1 % lose 1": sparse(0.01, 1),
    "2 % lose .5": sparse(0.02, 0.5),
    "10 % lose .1": sparse(0.1, 0.1),
    "3 % lose .5, 1 % win .5": sparse(0.03, 0.5, 0.01),
    "2 % lose 1, 10 % win .1": sparse(0.02, 1, 0.1, 0.1),
    "20 % lose .1, 1 % win 1": sparse(0.2, 0.1, 0.01, 1),
    "10 % change, normal .1 and .3": graded(0.1, 0.1, 0.3),
    "all change, normal .01 and .1": graded(1, 0.01, 0.1),
}
LOSS = {
    "2 points: 4 % lose .5": sparse(0.04, 0.5),
    "2 points: 2 % lose 1": sparse(0.02, 1),
    "3 points: 10 % lose .5, 4 % win .5": sparse(0.1, 0.5, 0.04),
    "5 points: 10 % lose .5": sparse(0.1, 0.5),
    "5 points: 20 % lose .5, 10 % win .5": sparse(0.2, 0.5, 0.1),
    "harmless: 1 % lose .1, 1 % win .1": sparse(0.01, 0.1, 0.01),
    "harmless: 5 % lose .2, 5 % win .2": sparse(0.05, 0.2, 0.05),
}


def others(drawn: list[np.ndarray], rng: np.random.Generator) -> dict[str, float]:
    """How often two other rules claim the same: t without the added query, and a sign-flip test of the mean."""
    losses = np.array(drawn)
    n = losses.shape[1]
    reach = stdtrit(n - 1, 0.95) * losses.std(axis=1, ddof=1) / np.sqrt(n)
    signs = rng.integers(0, 2, (n, FLIPS), dtype=np.int8).astype(float) * 2 - 1
    p = [(1 + (np.round(one @ signs - one.sum(), 9) >= 0).sum()) / (FLIPS + 1) for one in losses]
    return {
        "t fail": float((losses.mean(axis=1) > reach).mean()),
        "t pass": float((losses.mean(axis=1) + reach < MARGIN).mean()),
        "sign-flip fail": float((np.array(p) <= 0.05).mean()),
    }


def share(replicates: int, outcome: Callable[[], str]) -> dict[str, float]:
    found = [outcome() for _ in range(replicates)]
    return {name: found.count(name) / replicates for name in ("pass", "fail", "inconclusive")}


def cells(replicates: int) -> dict[tuple[str, str, int], Callable[[np.random.Generator], dict[str, float]]]:
    made: dict[tuple[str, str, int], Callable[[np.random.Generator], dict[str, float]]] = {}

    def plain(world: Draw, n: int) -> Callable[[np.random.Generator], dict[str, float]]:
        def run(rng: np.random.Generator) -> dict[str, float]:
            drawn = [world(n, rng) for _ in range(replicates)]
            found = [decide(losses, losses, MARGIN).outcome for losses in drawn]
            return share(replicates, iter(found).__next__) | others(drawn[:FEWER], rng)

        return run

    def clustered(world: Draw, n: int) -> Callable[[np.random.Generator], dict[str, float]]:
        def run(rng: np.random.Generator) -> dict[str, float]:
            shared = [np.repeat(world(n // 5, rng), 5) for _ in range(replicates)]
            drawn = [np.where(rng.random(n) < 0.8, losses, world(n, rng)) for losses in shared]
            means = [losses.reshape(-1, 5).mean(axis=1) for losses in drawn]
            found = share(replicates, (decide(losses, losses, MARGIN).outcome for losses in means).__next__)
            alone = share(replicates, (decide(losses, losses, MARGIN).outcome for losses in drawn).__next__)
            return found | {f"alone {name}": alone[name] for name in ("fail", "pass")}

        return run

    def needed(world: Draw) -> Callable[[np.random.Generator], dict[str, float]]:
        def run(rng: np.random.Generator) -> dict[str, float]:
            def one() -> str:
                while True:
                    pilot = world(100, rng)
                    found = decide(pilot, pilot, MARGIN)
                    if found.needed is not None and found.needed <= 20_000:
                        break
                losses = world(found.needed, rng)
                return decide(losses, losses, MARGIN).outcome

            return share(min(replicates, 500), one)

        return run

    for n in (50, 100, 300, 1000):
        made |= {("no loss", name, n): plain(world, n) for name, world in NULL.items()}
    for n in (100, 300, 600, 1000, 3000):
        made |= {("margin", name, n): plain(world, n) for name, world in AT_MARGIN.items()}
    for n in (300, 600, 1000):
        made |= {("loss", name, n): plain(world, n) for name, world in LOSS.items()}
    for n in (300, 1000, 3000):
        names = ("2 % lose 1, 2 % win 1", "20 % lose .1, 2 % win 1", "all change, normal .2")
        made |= {("clusters, no loss", name, n): clustered(NULL[name], n) for name in names}
        names = ("1 % lose 1", "10 % lose .1", "3 % lose .5, 1 % win .5")
        made |= {("clusters, margin", name, n): clustered(AT_MARGIN[name], n) for name in names}
    for name in ("harmless: 1 % lose .1, 1 % win .1", "5 points: 20 % lose .5, 10 % win .5"):
        made["needed", name, 100] = needed(LOSS[name])
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=2000)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("guard.csv"))
    given = parser.parse_args()
    rows = []
    for (kind, name, n), run in cells(given.replicates).items():
        if given.only in kind:
            rng = np.random.default_rng(zlib.crc32(f"{kind}|{name}|{n}".encode()))
            rows.append({"kind": kind, "world": name, "queries": n, "replicates": given.replicates} | run(rng))
            print(rows[-1], flush=True)
            pd.DataFrame(rows).to_csv(given.out, index=False, float_format="%.4f")


if __name__ == "__main__":
    main()
