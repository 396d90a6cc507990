"""Which labeling follows the answers: the pooled correlation, biases by run."""

import numpy as np
import pytest

from judgekit.analysis.follow import pooled_correlation, slanted
from judgekit.analysis.resampling import resample_matrix
from tests.analysis.worlds import arrays

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


@pytest.mark.parametrize("seed", range(3))
def test_it_is_pearsons_r_with_each_questions_mean_taken_off(seed: int) -> None:
    scores, quality = arrays(seed, 6, 200)
    weights = resample_matrix(200, 100, 1)
    found = pooled_correlation(scores, quality, weights)
    x, y = (each - each.mean(axis=0) for each in (scores, quality))
    assert found.value == pytest.approx(np.corrcoef(x.ravel(), y.ravel())[0, 1])
    again = np.repeat(np.arange(200), weights[:, 7].astype(int))
    assert found.draws[7] == pytest.approx(np.corrcoef(x[:, again].ravel(), y[:, again].ravel())[0, 1])


def test_the_same_score_for_all_runs_of_a_question_says_nothing() -> None:
    scores, quality = arrays(0, 6, 200)
    flat = pooled_correlation(np.tile(scores[0], (6, 1)), quality, resample_matrix(200, 100, 1))
    assert flat.value == 0
    assert not flat.draws.any()
    assert not flat.telling.any()
    assert slanted(np.tile(scores[0], (6, 1)), quality, resample_matrix(200, 100, 1), 200, 0.95) == {}


def test_noise_in_the_labels_is_no_bias_and_a_large_bias_is_found() -> None:
    def named(seed: int, bias: Floats | None = None, noise: float = 1.0, confidence: float = 0.95) -> dict[int, bool]:
        scores, quality = arrays(seed, 6, 200, noise, bias)
        weights = resample_matrix(200, 200, seed)
        return slanted(scores, quality, weights, 200, confidence)

    false = sum(bool(named(seed, noise=noise)) for seed in range(10) for noise in (0.5, 2.0, 100.0))
    assert false <= 2
    flattered = np.array([2.0, 0, 0, 0, 0, -2.0])
    true = [named(seed, flattered) for seed in range(10)]
    assert sum(found.get(0) is True for found in true) >= 9
    assert sum(found.get(5) is False for found in true) >= 9
    shown = [sum(len(named(seed, flattered / 5, confidence=c)) for seed in range(10)) for c in (0.5, 0.8, 0.95)]
    assert shown == sorted(set(shown), reverse=True), "a slight bias is shown more rarely the surer one is to be"


def test_a_measure_that_bends_is_no_bias_as_long_as_it_leaves_the_runs_in_their_order() -> None:
    rng = np.random.default_rng(0)
    use = rng.normal(size=(6, 2000)) + np.linspace(-2, 2, 6)[:, None]
    weights = resample_matrix(2000, 200, 1)
    assert slanted(np.exp(use), use, weights, 2000, 0.95) == {}
    swapped = np.exp(use / 2)[[0, 1, 2, 4, 3, 5]]
    assert slanted(swapped, use, weights, 2000, 0.95) == {3: True, 4: False}
