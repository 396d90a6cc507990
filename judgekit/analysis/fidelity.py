"""Does a labeling find the differences between runs that the answers show, and does it order the best runs rightly?

A labeling may order runs as quality does (tau) and yet find many differences that quality does not confirm: with little
noise in its labels every small difference is significant.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from judgekit.analysis.coefficients import Floats
from judgekit.analysis.differences import holm
from judgekit.analysis.gain import decision_gain
from judgekit.analysis.rankings import gaps, over_runs
from judgekit.analysis.resampling import t_quantile

__all__ = ["MIN_RUNS_TOP", "significance_fidelity", "top_runs"]

_GROUPS: Final = 20
_ALPHA: Final = 0.05
MIN_RUNS_TOP: Final = 10
"""From so many runs on the best of them are looked at by themselves."""
_TOPS: Final = (3, 5, 10)


def significance_fidelity(scores: Floats, quality: Floats, confidence: float, seed: int) -> pd.DataFrame:
    """Return what paired t tests of all pairs of runs find under a labeling, against what they find in quality.

    Args:
        scores: shape (R, n), finite.
        quality: likewise.
        confidence: of the intervals, from a jackknife that leaves out one of 20 groups of queries at a time
            (resampling queries would double the noise that the tests are about).
        seed: of the groups.

    Returns:
        Rows ``correction`` (none, holm), ``statistic``, ``value``, ``ci_low``, ``ci_high``, ``pairs``: ``recall``, the
        share of quality's findings that the labeling makes too; ``unconfirmed``, the share of its own that quality
        does not make; ``opposite``, the share of its own that are significant in quality the other way round.
        ``pairs`` is what the share is of. Undefined shares are NaN.
    """
    n = scores.shape[1]
    groups = min(_GROUPS, n)
    group = np.random.default_rng([seed, 2]).permutation(np.arange(n) % groups)
    weights = np.column_stack([np.ones(n), *(group != left for left in range(groups))]).astype(np.float64)
    by_labels, by_quality = _signs(scores, weights), _signs(quality, weights)
    rows = []
    for correction, labels, answers in zip(("none", "holm"), by_labels, by_quality, strict=True):
        both = labels * answers
        for name, part, whole in (
            ("recall", both > 0, answers != 0),
            ("unconfirmed", (labels != 0) & (both <= 0), labels != 0),
            ("opposite", both < 0, labels != 0),
        ):
            counts = whole.sum(axis=0)
            with np.errstate(invalid="ignore"):
                shares = part.sum(axis=0) / counts
            low = high = np.nan
            if np.isfinite(shares).all() and groups > 1:
                spread = np.sqrt((groups - 1) / groups * ((shares[1:] - shares[1:].mean()) ** 2).sum())
                reach = t_quantile((1 + confidence) / 2, groups) * spread
                low, high = max(float(shares[0] - reach), 0.0), min(float(shares[0] + reach), 1.0)
            rows.append((correction, name, float(shares[0]), low, high, int(counts[0])))
    return pd.DataFrame(rows, columns=["correction", "statistic", "value", "ci_low", "ci_high", "pairs"])


def _signs(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the sign of each pair's significant difference, else 0: without and with Holm's correction, (P, W)."""
    from scipy.special import stdtr

    gap = gaps(values)
    total = weights.sum(axis=0)
    centre = gap.mean(axis=1, keepdims=True)
    moved = gap - centre
    mean_moved = moved @ weights / total
    variance = np.maximum((moved**2) @ weights / total - mean_moved**2, 0) * total / np.maximum(total - 1, 1)
    mean = mean_moved + centre
    error = np.sqrt(variance / total)
    steady = error <= 1e-14 * np.maximum(np.abs(gap).max(axis=1, keepdims=True), 1e-300)
    t = np.where(steady, np.where(np.abs(mean) > 1e-12, np.inf, 0), np.abs(mean) / np.where(steady, 1, error))
    p = 2 * stdtr(np.maximum(total - 1, 1), -t)
    return np.sign(mean) * (p <= _ALPHA), np.sign(mean) * (holm(p) <= _ALPHA)


def top_runs(scores: Floats, quality: Floats, weights: Floats, confidence: float) -> pd.DataFrame:
    """Return how a labeling does among the best runs only, by its own order and by that of quality.

    Args:
        scores: shape (R, n), finite.
        quality: likewise.
        weights: how often each query is in each resample, shape (n, B).
        confidence: of the gain's interval.

    Returns:
        Rows ``by`` (scores, quality), ``top``, ``tau_b``, ``gain``, ``ci_low``, ``ci_high``.
    """
    rows = []
    for by, means in (("scores", scores.mean(axis=1)), ("quality", quality.mean(axis=1))):
        order = np.argsort(-means, kind="stable")
        for top in (n for n in _TOPS if n <= len(scores)):
            best = np.sort(order[:top])
            tau = float(over_runs(scores[best].mean(axis=1), quality[best].mean(axis=1), ("tau_b",))[0])
            gain = decision_gain(scores[best], quality[best], weights)
            rows.append((by, top, tau, gain.value, *gain.interval(confidence)))
    return pd.DataFrame(rows, columns=["by", "top", "tau_b", "gain", "ci_low", "ci_high"])
