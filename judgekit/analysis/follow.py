"""Which labeling follows the answers, question by question, and where its scores lean.

Plain arrays in, plain arrays out: scores and quality are of shape (R, n), runs by queries, all finite; ``weights`` says
how often each query is in each resample, shape (n, B). The question's mean is subtracted first, so that only
differences between runs on one question are left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from judgekit.analysis.coefficients import Bools, Floats
from judgekit.analysis.resampling import max_t, spread, t_quantile

MIN_TELLING: Final = 5
"""With fewer queries on which answers and scores differ, the correlation has no interval and supports no claim."""
_EQUAL: Final = 1e-9
_FULL: Final = 200
"""From this many queries on, a bias by run needs stronger evidence, since label noise comes to look like one."""
_FLATTERS: Final = 0.05
"""The error rate of finding that a labeling flatters its pick."""


@dataclass(frozen=True)
class Pooled:
    """The correlation of score and quality over all (run, query), after subtracting each query's mean over the runs.

    Attributes:
        value: 0 if either is the same for all runs on every query.
        draws: on every resample, shape (B,).
        telling: the queries on which the runs differ in quality and in score, shape (n,).
    """

    value: float
    draws: Floats
    telling: Bools


def within_query(values: Floats) -> Floats:
    """Return values less each query's mean over the runs; rounding differences become equal."""
    centred = values - values.mean(axis=0)
    rounding = _EQUAL * np.abs(values).max(initial=0)
    return np.where(np.abs(centred) > rounding, centred, 0.0)


def pooled_correlation(scores: Floats, quality: Floats, weights: Floats) -> Pooled:
    """Return the pooled within-question correlation."""
    sums = _products(within_query(scores), within_query(quality))
    both, own, answers = _first_whole(sums, weights)
    r = np.zeros(len(both))
    defined = (own > 0) & (answers > 0)
    r[defined] = both[defined] / np.sqrt(own[defined] * answers[defined])
    _, own_by_query, answers_by_query = sums
    return Pooled(float(r[0]), r[1:], (own_by_query > 0) & (answers_by_query > 0))


def _products(x: Floats, y: Floats) -> Floats:
    """Return the sums over the runs of xy, xx and yy, shape (3, n)."""
    products = np.stack([x * y, x * x, y * y])
    return np.asarray(products.sum(axis=1))


def _first_whole(rows: Floats, weights: Floats) -> Floats:
    """Return the sums of rows (K, n) over the queries, on the data and then on every resample, shape (K, 1 + B)."""
    return np.column_stack([rows.sum(axis=1), rows @ weights])


@dataclass(frozen=True)
class _Residuals:
    """What two regressions leave of each run's means, the data first and every resample after it, shape (R, 1 + B).

    Noise in the scores shrinks the slope of quality on scores, so that regression alone finds the best run undervalued.
    The regression of scores on quality has to find the bias, too.

    Attributes:
        quality: what the scores leave of the mean quality.
        scores: what the quality leaves of the mean score.
        slopes: of quality on scores.
        means: the mean score and the mean quality of each run, less those of all runs, shape (2, R).
    """

    quality: Floats
    scores: Floats
    slopes: Floats
    means: Floats


def _residuals(scores: Floats, quality: Floats, weights: Floats) -> _Residuals | None:
    x, y = within_query(scores), within_query(quality)
    sums = _products(x, y)
    both, own, answers = _first_whole(sums, weights)
    if not (own > 0).all() or not (answers > 0).all():
        return None
    size = np.append(x.shape[1], weights.sum(axis=0))
    mean_x = _first_whole(x, weights) / size
    mean_y = _first_whole(y, weights) / size
    slopes, back = both / own, both / answers
    left_of_quality = mean_y - slopes * mean_x
    left_of_scores = mean_x - back * mean_y
    means = np.stack([mean_x[:, 0], mean_y[:, 0]])
    return _Residuals(left_of_quality, left_of_scores, slopes, means)


def flatters(scores: Floats, quality: Floats, weights: Floats, units: int, run: int) -> bool:
    """Return whether scores are shown to be too high for a run, such as the one they pick.

    Both regressions have to say so, each one-sided at .05 over the number of runs, since any run may be picked.
    """
    left = _residuals(scores, quality, weights)
    if left is None or units < MIN_TELLING:
        return False
    bound = t_quantile(1 - _FLATTERS / len(scores), units)
    return _exceeds(-left.quality[run], bound, units) and _exceeds(left.scores[run], bound, units)


def _exceeds(draws: Floats, bound: float, units: int) -> bool:
    """Return whether a value, shape (1 + B,), the data first, is more than so many standard errors above 0."""
    error = float(spread(draws[1:] - draws[0], units))
    return bool(draws[0] > bound * error)


def slanted(scores: Floats, quality: Floats, weights: Floats, units: int, confidence: float) -> dict[int, bool]:
    """Return the runs, by index, whose scores are shown to be too high (True) or too low (False) for their answers."""
    left = _residuals(scores, quality, weights)
    if left is None or units < MIN_TELLING:
        return {}
    # Labels that do not follow the answers have no bias by run.
    if np.quantile(left.slopes[1:], (1 - confidence) / 2) <= 0:
        return {}
    # With more queries, even the slight bend that noise gives a slope is significant, so more confidence is needed.
    doubt = (1 - confidence) * min(1.0, _FULL / scores.shape[1])
    under = _shown(left.quality, units, 1 - doubt)
    over = _shown(left.scores, units, 1 - doubt)
    # A nonlinear measure deviates everywhere, so a bias must also move the run past another one.
    by_score, by_quality = np.sign(left.means[:, :, None] - left.means[:, None])
    passed = (by_score - by_quality) * over[:, None] > 1
    biased = under * over < 0
    biased &= passed.any(axis=1)
    return {run: bool(over[run] > 0) for run in np.flatnonzero(biased).tolist()}


def _shown(draws: Floats, units: int, confidence: float) -> npt.NDArray[np.int64]:
    """Return the signs of the values that are shown to differ from 0 together; draws (R, 1 + B), the data first."""
    value = draws[:, 0]
    moved = draws[:, 1:] - draws[:, :1]
    error = spread(moved, units)
    there = error > 1e-12
    if not there.any():
        return np.zeros(len(value), np.int64)
    bound = max_t(moved[there], error[there], confidence, units - 1)
    shown = there & (np.abs(value) > bound * error)
    return np.where(shown, np.sign(value), 0).astype(np.int64)
