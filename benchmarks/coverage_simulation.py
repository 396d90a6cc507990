"""Measure how often the intervals cover the truth, and write the figures to benchmarks/coverage.csv.

    python benchmarks/coverage_simulation.py [--replicates 2000] [--resamples 300] [--out benchmarks/coverage.csv]

Two labelings, A and B, score the same answers. Query level: one run; latent score and latent quality are bivariate
normal with Kendall's tau as given (B: .15 less), quality is the latent one or whether it exceeds a threshold, scores
are rounded to about six values for A and left fine for B. The truth is the coefficient of 2,000,000 queries.

Within queries: a run's true mean quality and true mean scores are normal with that tau over runs (standard deviation .3
of a query's noise); queries have difficulties that scores and quality share in part, and each run deviates on each
query, the same way in part in scores and quality. Four sets of runs are kept in each pass, and the truth of each comes
from 40,000 queries. The system level has no intervals.

Intervals come from the same functions that `judgekit.compare` calls. One cell is one (level, quality, n,
runs, tau, coefficient, single or difference).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import ndtri

from judgekit.analysis.coefficients import COEFFICIENTS, coefficients
from judgekit.analysis.differences import compared
from judgekit.analysis.inputs import Panel
from judgekit.analysis.levels import Estimate, Resamples, estimates
from judgekit.analysis.rankings import within_queries
from judgekit.analysis.resampling import resample_matrix

QUERIES = (50, 200, 1000)
RUNS = (5, 10, 30)
QUALITIES = ("0.2", "0.5", "0.8", "continuous")
RUN_QUALITIES = ("0.2", "0.5", "continuous")  # a prevalence of .8 mirrors one of .2
TAUS = (0.0, 0.3, 0.6)
GAP = 0.15
SPREAD = 0.3
RUN_SETS = 4
TRUTH_QUERIES = {"query": 2_000_000, "within-query": 40_000}


@dataclass(frozen=True)
class Case:
    level: str
    quality: str
    queries: int
    runs: int
    tau: float

    @property
    def correlations(self) -> tuple[float, float]:
        return tuple(float(np.sin(np.pi * t / 2)) for t in (self.tau, self.tau - GAP))


def observed(latent: np.ndarray, quality: str, scale: float) -> np.ndarray:
    """Turn latent quality into what is observed: itself, or whether it exceeds the threshold of a prevalence."""
    if quality == "continuous":
        return latent
    return (latent > ndtri(1 - float(quality)) * scale).astype(float)


def one_run(case: Case, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return scores (2, 1, n) and quality (1, n) of one run."""
    latent, common = rng.standard_normal((2, n))
    scores = []
    for r in case.correlations:
        noise = np.sqrt(0.5) * common + np.sqrt(0.5) * rng.standard_normal(n)
        scores.append(r * latent + np.sqrt(1 - r * r) * noise)
    scores[0] = np.floor(np.clip(scores[0], -1, 1.4) * 2) / 2
    return np.stack(scores)[:, None], observed(latent, case.quality, 1.0)[None]


def draw_runs(case: Case, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the true mean scores (2, R) and the true latent quality (R,) of new runs."""
    quality, common = rng.standard_normal((2, case.runs))
    scores = [
        r * quality + np.sqrt(1 - r * r) * (np.sqrt(0.5) * common + np.sqrt(0.5) * rng.standard_normal(case.runs))
        for r in case.correlations
    ]
    return SPREAD * np.stack(scores), SPREAD * quality


SCALE = float(np.sqrt(1 + 0.5))


def many_runs(
    case: Case, means: tuple[np.ndarray, np.ndarray], n: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return scores (2, R, n) and quality (R, n) of runs with these means."""
    difficulty = rng.standard_normal(n)
    own = rng.standard_normal((case.runs, n))
    shared = rng.standard_normal((case.runs, n))
    scores = []
    for mean in means[0]:
        hard = 0.5 * difficulty + np.sqrt(0.75) * rng.standard_normal(n)
        noise = 0.4 * own + np.sqrt(0.84) * (shared + rng.standard_normal((case.runs, n))) / np.sqrt(2)
        scores.append(mean[:, None] + np.sqrt(0.5) * hard + noise)
    latent = means[1][:, None] + np.sqrt(0.5) * difficulty + own
    return np.stack(scores), observed(latent, case.quality, SCALE)


def truth_over_queries(case: Case) -> np.ndarray:
    """Return the coefficients of A and B on very many queries of one run, shape (2, 4)."""
    scores, quality = one_run(case, TRUTH_QUERIES["query"], np.random.default_rng(12345))
    fine = scores[1, 0]
    return np.array([_many(scores[0, 0], quality[0]), _many(fine, quality[0])])


def _many(x: np.ndarray, y: np.ndarray) -> list[float]:
    """The coefficients in n log n, for very many points; tau by scipy, the others from it and its ties."""
    from scipy.stats import kendalltau, spearmanr

    if min(len(np.unique(x)), len(np.unique(y))) <= 2:
        return list(coefficients(x, y).values())
    tau = float(kendalltau(x, y).statistic)
    untied = [1 - float((np.unique(v, return_counts=True)[1] ** 2).sum()) / len(v) ** 2 for v in (x, y)]
    somers = tau * np.sqrt(untied[0] / untied[1])
    return [(somers + 1) / 2, tau, float(spearmanr(x, y).statistic), float(np.corrcoef(x, y)[0, 1])]


def panel(scores: np.ndarray, quality: np.ndarray) -> Panel:
    """Wrap arrays (2, R, n) and (R, n) as a panel."""
    runs, n = quality.shape
    names = tuple(f"r{i:02d}" for i in range(runs)), tuple(f"q{i:04d}" for i in range(n))
    return Panel("m", 5, "metric", "model", ("A", "B"), *names, scores, quality, np.ones((runs, n), dtype=bool))


def judge(found: list[Estimate], resamples: Resamples, truth: np.ndarray) -> Iterator[tuple[str, str, bool, float]]:
    """Yield (coefficient, kind, covered, width) of A's interval and of that of A - B."""
    first, second = found
    for i, name in enumerate(COEFFICIENTS[1:], 1):
        ends = first.interval(name, 0.95, resamples)
        yield name, "single", ends.low - 1e-9 <= truth[0, i] <= ends.high + 1e-9, ends.high - ends.low
    for i, gap in zip(range(len(COEFFICIENTS)), compared([({}, first, second)], 0.95, resamples), strict=False):
        right, low, high = truth[0, i] - truth[1, i], gap["ci_low"], gap["ci_high"]
        yield gap["coefficient"], "difference", low - 1e-9 <= right <= high + 1e-9, high - low


def measure(case: Case, replicates: int, resamples: int, seed: int = 1) -> pd.DataFrame:
    """Return how often the truth was covered, and the sum of the widths, per coefficient and kind."""
    rng = np.random.default_rng([seed, case.queries, case.runs, round(10 * case.tau), QUALITIES.index(case.quality)])
    matrices = [Resamples(resample_matrix(case.queries, resamples, i)) for i in range(10)]
    hits: dict[tuple[str, str], list[tuple[bool, float]]] = {}
    sets = [draw_runs(case, rng) for _ in range(RUN_SETS)] if case.level == "within-query" else []
    truths = [_within_truth(case, means, rng) for means in sets]
    fixed = truth_over_queries(case) if case.level == "query" else None
    for replicate in range(replicates):
        if case.level == "query":
            data, truth = one_run(case, case.queries, rng), fixed
        else:
            data, truth = many_runs(case, sets[replicate % RUN_SETS], case.queries, rng), truths[replicate % RUN_SETS]
        sample = matrices[replicate % len(matrices)]
        found = list(estimates(panel(*data), case.level, sample))
        if any(e.reason for e in found):
            continue
        for name, kind, hit, width in judge(found, sample, truth):
            hits.setdefault((name, kind), []).append((hit, width))
    rows = [
        {
            "level": case.level,
            "quality": case.quality,
            "queries": case.queries,
            "runs": case.runs,
            "tau": case.tau,
            "coefficient": name,
            "kind": kind,
            "hits": sum(hit for hit, _ in found),
            "widths": float(np.nansum([width for _, width in found])),
            "replicates": len(found),
        }
        for (name, kind), found in hits.items()
    ]
    return pd.DataFrame(rows)


def _within_truth(case: Case, means: tuple[np.ndarray, np.ndarray], rng: np.random.Generator) -> np.ndarray:
    sums, parts = np.zeros((2, len(COEFFICIENTS))), 8
    for _ in range(parts):
        scores, quality = many_runs(case, means, TRUTH_QUERIES["within-query"] // parts, rng)
        sums += np.stack([np.nanmean(within_queries(row, quality), axis=1) for row in scores])
    return sums / parts


def cases(levels: tuple[str, ...] = ("query", "within-query")) -> Iterator[Case]:
    for level in levels:
        for runs in (1,) if level == "query" else RUNS:
            for quality in QUALITIES if level == "query" else RUN_QUALITIES:
                for tau in TAUS:
                    for n in QUERIES:
                        yield Case(level, quality, n, runs, tau)


KEYS = ["level", "quality", "queries", "runs", "tau", "coefficient", "kind"]


def summary(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """Add up the passes: coverage and mean width per cell."""
    sums = pd.concat(parts).groupby(KEYS, sort=False)[["hits", "widths", "replicates"]].sum().reset_index()
    covered, width = sums["hits"] / sums["replicates"], sums["widths"] / sums["replicates"]
    return sums[KEYS].assign(coverage=covered.round(4), width=width.round(4), replicates=sums["replicates"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--replicates", type=int, default=2000)
    parser.add_argument("--passes", type=int, default=8, help="all cells are gone through so many times")
    parser.add_argument("--resamples", type=int, default=300)
    parser.add_argument("--levels", nargs="+", default=["query", "within-query"])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/coverage.csv"))
    args = parser.parse_args()
    parts: list[pd.DataFrame] = []
    for each in range(args.passes):
        for case in cases(tuple(args.levels)):
            parts.append(measure(case, args.replicates // args.passes, args.resamples, seed=each))
        summary(parts).to_csv(args.out, index=False)
        print(f"pass {each + 1} of {args.passes}, {time.process_time():.0f} s of CPU", flush=True)
    table = summary(parts)
    table["in"] = table["coverage"].between(0.93, 0.97)
    print(table.groupby(["level", "coefficient", "kind"])["in"].mean().unstack().round(2).to_string())
    print(f"{table['in'].mean():.1%} of {len(table)} cells within 93-97 %")


if __name__ == "__main__":
    main()
