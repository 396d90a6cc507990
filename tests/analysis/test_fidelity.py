"""Do labels find the differences between runs that the answers show?"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import ttest_rel

from judgekit.analysis.coefficients import Floats
from judgekit.analysis.differences import holm
from judgekit.analysis.fidelity import significance_fidelity, top_runs
from judgekit.analysis.resampling import resample_matrix


def world(seed: int, runs: int = 8, n: int = 120) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    skill = np.linspace(0, 0.5, runs)[:, None]
    quality = skill + rng.normal(size=(runs, n))
    return skill * 0.8 + 0.5 * quality + rng.normal(size=(runs, n)), quality


def by_loops(values: Floats, correct: bool) -> dict[tuple[int, int], float]:
    tests = {(i, j): ttest_rel(values[i], values[j]) for i, j in combinations(range(len(values)), 2)}
    p = [float(t.pvalue) for t in tests.values()]
    p = holm(p) if correct else p
    return {pair: np.sign(t.statistic) * (q <= 0.05) for (pair, t), q in zip(tests.items(), p, strict=True)}


@pytest.mark.parametrize("correction", ["none", "holm"])
@pytest.mark.parametrize("seed", range(3))
def test_the_shares_are_those_of_paired_t_tests(seed: int, correction: str) -> None:
    scores, quality = world(seed)
    found = significance_fidelity(scores, quality, 0.95, 1)
    found = found[found["correction"] == correction].set_index("statistic")["value"]
    labels, answers = by_loops(scores, correction == "holm"), by_loops(quality, correction == "holm")
    true = [pair for pair, sign in answers.items() if sign]
    own = [pair for pair, sign in labels.items() if sign]
    assert found["recall"] == pytest.approx(np.mean([labels[p] == answers[p] for p in true]))
    assert found["unconfirmed"] == pytest.approx(np.mean([labels[p] != answers[p] for p in own]))
    assert found["opposite"] == pytest.approx(np.mean([labels[p] == -answers[p] for p in own]))


def test_labels_that_are_the_answers_find_all_and_nothing_else() -> None:
    _, quality = world(1)
    found = significance_fidelity(quality, quality, 0.95, 1).set_index(["correction", "statistic"])["value"]
    assert found["holm", "recall"] == 1
    assert found["holm", "unconfirmed"] == found["holm", "opposite"] == 0


def test_reversed_labels_find_everything_the_other_way_round() -> None:
    _, quality = world(1)
    found = significance_fidelity(-quality, quality, 0.95, 1).set_index(["correction", "statistic"])["value"]
    assert found["none", "recall"] == 0
    assert found["none", "opposite"] == 1


def test_constant_labels_find_nothing_and_have_no_share_of_it() -> None:
    _, quality = world(1)
    found = significance_fidelity(np.ones_like(quality), quality, 0.95, 1).set_index(["correction", "statistic"])
    assert found.loc[("none", "recall"), "value"] == 0
    assert np.isnan(found.loc[("none", "unconfirmed"), "value"])


def test_the_jackknife_interval_holds_the_share_and_has_a_width() -> None:
    scores, quality = world(2)
    row = significance_fidelity(scores, quality, 0.95, 1).iloc[0]
    assert 0 <= row["ci_low"] < row["value"] < row["ci_high"] <= 1


def test_the_best_runs_are_looked_at_by_either_order() -> None:
    scores, quality = world(3, runs=12)
    found = top_runs(scores, quality, resample_matrix(120, 200, 1), 0.95)
    assert list(zip(found["by"], found["top"], strict=True)) == [
        (by, top) for by in ("scores", "quality") for top in (3, 5, 10)
    ]
    assert (found["ci_low"] <= found["gain"]).all()
    assert (found["gain"] <= found["ci_high"]).all()
