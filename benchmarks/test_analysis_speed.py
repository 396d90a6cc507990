"""Resampling against a loop over scipy, same values, in one run: 320 series x 1,000 resamples.

    python -m pytest benchmarks/test_analysis_speed.py -s

All four coefficients are worked out here; the loop works out tau-b alone (the strictest comparison), or tau-b, rho and
r. The loop is timed on a sample of its 320,000 rounds. CPU time, so that other work on the machine does not matter.
"""

import time

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from judgekit.analysis.coefficients import Target
from judgekit.analysis.comparison import compare
from judgekit.analysis.resampling import resample_matrix
from judgekit.rules import Rules

SERIES, RESAMPLES, SAMPLE = 320, 1000, 60
CASES = {
    "up to 20 values, binary quality": (20, 2, 40),
    "many values, binary quality": (10**6, 2, 15),
    "up to 20 values, continuous quality": (20, 10**6, 10),
    "many values, continuous quality": (10**6, 10**6, 10),
}


def measure(n, score_values, quality_values, series):
    rng = np.random.default_rng(0)
    quality = rng.integers(0, quality_values, n)
    scores = rng.integers(0, score_values, (series, n)) + quality // (1 + quality_values // 5)
    weights = resample_matrix(n, RESAMPLES, 1)
    Target(quality, weights[:, :2]).coefficients(scores[0])
    start = time.process_time()
    target, loops = Target(quality, weights), []
    ours = np.stack([target.coefficients(series) for series in scores])
    own = (time.process_time() - start) / series / RESAMPLES
    for functions in ((stats.kendalltau,), (stats.kendalltau, stats.spearmanr, stats.pearsonr)):
        start = time.process_time()
        for i in range(SAMPLE):
            picks = np.repeat(np.arange(n), weights[:, i].astype(int))
            values = [function(scores[0][picks], quality[picks]).statistic for function in functions]
            assert ours[0, 1 : 1 + len(values), 1 + i] == pytest.approx(values, abs=1e-12)
        loops.append((time.process_time() - start) / SAMPLE)
    return own, *loops


@pytest.mark.bench
@pytest.mark.parametrize("case", CASES)
def test_resampling_is_many_times_faster_than_a_loop_over_scipy(case, say):
    score_values, quality_values, goal = CASES[case]
    for n, series in ((700, SERIES), (2800, 20)):
        own, tau, three = measure(n, score_values, quality_values, series)
        ratios = f"{tau / own:.0f} x kendalltau, {three / own:.0f} x all three"
        say(f"resampling {n} queries, {case}: {ratios}")
        if n == 700:
            assert tau / own > goal


@pytest.mark.bench
def test_comparing_runs_takes_no_more_for_each_pair_of_them_where_they_are_many(say):
    def seconds(runs):
        rng = np.random.default_rng(3)
        good = rng.normal(size=(runs, 200)) + np.linspace(0, 1, runs)[:, None]
        ids = {
            "run": np.repeat([f"run{i:02d}" for i in range(runs)], 200),
            "query_id": [f"q{i}" for i in range(200)] * runs,
        }
        scores = pd.concat(
            pd.DataFrame(
                ids
                | {
                    "labeling": name,
                    "measure": "nDCG@10",
                    "value": (good + noise * rng.normal(size=good.shape)).ravel(),
                }
            )
            for name, noise in (("near", 1), ("far", 3))
        )
        quality = pd.DataFrame(
            ids | {"depth": 10, "model": "m", "metric": "correct", "value": (good > 0.5).ravel() * 1.0}
        )
        start = time.process_time()
        compare(scores, quality, rules=Rules(resamples=1000))
        return time.process_time() - start

    seconds(10)
    spent = {runs: min(seconds(runs) for _ in range(2)) for runs in (30, 60)}
    say(f"comparing 30 runs {spent[30]:.2f} s, 60 runs {spent[60]:.2f} s: {spent[60] / spent[30]:.1f} x")
    assert spent[60] <= 60 * 59 / (30 * 29) * 1.25 * spent[30]
