"""What was measured of the audit's numbers; writes ``gullibility.csv`` beside this file.

    nice python -m benchmarks.audit_simulation [--rounds 4000]

gullibility: a probe flips 20 % of the passages that a judge does not call relevant; in what share of the rounds does
the interval of `share_change` hold the true growth of the share of relevant ones? ``each`` pairs are of one question,
whose passages share a readiness to be flipped.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from judgekit.jobs.audit.numbers import share_change

HERE = Path(__file__).parent


def covered(pairs: int, each: int, base: float, noise: float, rounds: int) -> dict[str, float]:
    """Return the coverage of the interval and its mean width for a planted effect of 20 %."""
    rng, hits, width = np.random.default_rng([pairs, each, int(100 * base), int(100 * noise)]), 0, 0.0
    units = np.repeat(np.arange(pairs // each), each)
    relevant = base + 0.2 * (1 - base)
    for _ in range(rounds):
        before = rng.random(pairs) < base
        # Beta(1, 4) has the mean .2: some questions' passages are flipped far more readily than others'.
        ready = 0.2 if each == 1 else rng.beta(1, 4, pairs // each)[units]
        after = before | (rng.random(pairs) < ready)
        anew = rng.random(pairs) < noise  # the judge says anything, at the rate of its relevant labels
        after = np.where(anew, rng.random(pairs) < relevant, after)
        _, low, high = share_change(before, after, units, 0.95)
        hits += low <= relevant - base <= high
        width += high - low
    return {"coverage": round(hits / rounds, 4), "width": round(width / rounds, 4)}


def main() -> None:
    """Simulate, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=4000)
    rounds = parser.parse_args().rounds
    cells = [
        {"pairs": pairs, "each": each, "base": base, "noise": noise, "rounds": rounds}
        for pairs in (50, 100, 200)
        for each in (1, 4)
        for base in (0.0, 0.05, 0.2)
        for noise in (0.0, 0.1)
        if pairs // each >= 25
    ]
    table = pd.DataFrame([cell | covered(**cell) for cell in cells])
    table.to_csv(HERE / "gullibility.csv", index=False)


if __name__ == "__main__":
    main()
