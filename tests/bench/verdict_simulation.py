"""Measure how often a verdict names a false winner and a true one, and how well planning predicts.

    python tests/bench/verdict_simulation.py [--experiments 1000]

Every experiment is a whole `judgekit.analysis.compare` on simulated tables: binary quality (prevalence .4), labelings
whose scores are the latent quality plus noise of their own, 16 measures that share four fifths of a labeling's noise.

* false winner: all labelings are equally good, so any winner is false. With a primary measure, and without one (the
  best measure of each labeling, taken inside every resample).
* power: two labelings whose true difference is 3.24 standard errors (which a test at 5 % detects with power .9); the
  standard error comes from 1,500 further experiments.
* planning: the width of intervals and the power at four times the queries, predicted by pilots, against what
  experiments of that size have.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import ndtri

from judgekit.analysis import Comparison, coefficients, compare, plan_queries

MEASURES = 16
PREVALENCE = 0.4


def arrays(n: int, noises: Sequence[float], measures: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return scores (labelings, measures, n) and quality (n,); labelings have noise of these standard deviations."""
    latent = rng.standard_normal(n)
    scores = np.empty((len(noises), measures, n))
    for index, noise in enumerate(noises):
        own = rng.standard_normal(n)
        for measure in range(measures):
            error = np.sqrt(0.8) * own + np.sqrt(0.2) * rng.standard_normal(n) if measures > 1 else own
            scores[index, measure] = np.round(latent + noise * error, 1 if measure % 2 else 0)
    return scores, (latent > ndtri(1 - PREVALENCE)).astype(float)


def tables(scores: np.ndarray, quality: np.ndarray) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Write the arrays as a score and a quality table."""
    labelings, measures, n = scores.shape
    ids = np.array([f"q{i:05d}" for i in range(n)], dtype=object)
    answers = {"run": "r", "depth": 5, "model": "m", "query_id": ids, "metric": "em", "value": quality}
    names = {
        "labeling": np.repeat([f"L{i}" for i in range(labelings)], measures * n),
        "run": "r",
        "measure": np.tile(np.repeat([f"M{i:02d}@5" for i in range(measures)], n), labelings),
        "query_id": np.tile(ids, labelings * measures),
        "value": scores.ravel(),
    }
    return pd.DataFrame(names), pd.DataFrame(answers)


def run(n: int, noises: Sequence[float], measures: int, primary: str | None, rng: np.random.Generator) -> Comparison:
    return compare(
        *tables(*arrays(n, noises, measures, rng)),
        primary=primary,
        levels=["query"],
        resamples=250,
        seed=int(rng.integers(1000)),
    )


FALSE = [(2, 50), (2, 200), (2, 700), (3, 200), (5, 200)]


def false_winner(experiments: int) -> list[dict[str, object]]:
    rows = []
    for labelings, n in FALSE:
        for primary in ("M00@5", None):
            rng = np.random.default_rng([labelings, n, primary is None])
            measures = MEASURES if primary is None else 1
            named = [run(n, [1.5] * labelings, measures, primary, rng).verdict.winner for _ in range(experiments)]
            rate = float(np.mean([name is not None for name in named]))
            what = f"{labelings} equal labelings, " + ("a primary measure" if primary else f"the best of {MEASURES}")
            rows.append({"what": "false winner", "case": what, "queries": n, "value": rate, "goal": "<= 0.05"})
            print(rows[-1], flush=True)
    return rows


def concordances(n: int, noises: Sequence[float], rng: np.random.Generator) -> list[float]:
    scores, quality = arrays(n, noises, 1, rng)
    return [coefficients(row[0], quality)["concordance"] for row in scores]


def power(experiments: int) -> list[dict[str, object]]:
    rows = []
    for n in (200, 700):
        # find the noise at which the true difference is 3.24 standard errors
        rng = np.random.default_rng(n)
        low, high = 1.0, 4.0
        for _ in range(9):
            middle = (low + high) / 2
            found = np.array([concordances(n, [1.0, middle], rng) for _ in range(1500)])
            gap = found[:, 0] - found[:, 1]
            low, high = (low, middle) if gap.mean() / gap.std(ddof=1) > 3.2415 else (middle, high)
        named = [run(n, [1.0, (low + high) / 2], 1, "M00@5", rng).verdict.winner for _ in range(experiments)]
        rate = float(np.mean([name == "L0" for name in named]))
        rows.append({"what": "power", "case": "theory .9", "queries": n, "value": rate, "goal": ">= 0.85"})
        print(rows[-1], flush=True)
    return rows


def planning(experiments: int) -> list[dict[str, object]]:
    rows = []
    for n in (50, 200):
        rng = np.random.default_rng(n)
        predicted, realised = [], []
        for _ in range(experiments):
            plan = plan_queries(run(n, [1.0, 1.6], 1, "M00@5", rng), [4 * n])
            predicted.append(plan.groupby(plan["second"] != "")["width"].mean().to_numpy())
        for _ in range(max(experiments // 4, 50)):
            plan = plan_queries(run(4 * n, [1.0, 1.6], 1, "M00@5", rng), [4 * n])
            realised.append(plan.groupby(plan["second"] != "")["width"].mean().to_numpy())
        truth = np.mean(realised, axis=0)
        ratios = np.array(predicted) / truth
        for index, what in enumerate(("width of a concordance", "width of a difference")):
            typical, within = float(np.median(ratios[:, index])), float(np.mean(np.abs(ratios[:, index] - 1) <= 0.15))
            case = f"{what}: predicted / realised at 4 x as many queries"
            rows.append(
                {"what": "planning", "case": case + ", median", "queries": n, "value": typical, "goal": "0.85-1.15"}
            )
            rows.append({"what": "planning", "case": case + ", within 15 %", "queries": n, "value": within, "goal": ""})
        print(rows[-4:], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--experiments", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=Path("tests/bench/verdict.csv"))
    args = parser.parse_args()
    rows = power(args.experiments) + planning(args.experiments // 2) + false_winner(args.experiments)
    table = pd.DataFrame(rows)
    table["experiments"] = args.experiments
    table.round(4).to_csv(args.out, index=False)
    print(table.to_string(), f"\n{time.process_time():.0f} s of CPU")


if __name__ == "__main__":
    main()
