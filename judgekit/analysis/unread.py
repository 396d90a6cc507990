"""Whether the replies that could not be read go with what was shown: they should be missing at random."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from judgekit.analysis.differences import holm

_LEAST = 5
_SURE = 0.05


def unread(name: str, lost: npt.NDArray[np.bool_], queries: npt.ArrayLike, sides: Mapping[str, npt.ArrayLike]) -> str:
    """Return a paragraph on the pairs whose reply is ``lost``, and with what that goes; "" where none is.

    ``sides`` names two kinds of passages, "long or short", and holds 1 and 0 for them, NaN for neither.
    """
    if not lost.any():
        return ""
    _, query = np.unique(np.asarray(queries), return_inverse=True)
    parts, chances = [], []
    for words, marks in sides.items():
        one, other = (np.asarray(marks) == mark for mark in (1, 0))
        if one.any() and other.any():
            shares = lost[one].mean(), lost[other].mean()
            first, second = words.split(" or ")
            parts.append(f"{shares[0]:.1%} of {first}, {shares[1]:.1%} of {second}")
            chances.append(_chance(lost, query, one, other))
    said = f"{name}: {lost.sum():,} of {len(lost):,} labels are missing ({lost.mean():.1%}): {'; '.join(parts)}."
    sure = [part for part, p in zip(parts, holm(chances), strict=True) if p < _SURE] if parts else []
    if sure:
        return f"{said} They are not missing at random: {'; '.join(sure)} is more than chance (Holm, p < {_SURE})."
    few = len(np.unique(query[lost])) < _LEAST
    return f"{said} {'They are too few for a test.' if few else 'No difference is more than chance.'}"


def _chance(
    lost: npt.NDArray[np.bool_], query: npt.NDArray[np.intp], one: npt.NDArray[np.bool_], other: npt.NDArray[np.bool_]
) -> float:
    """Return the p-value of the difference of two shares, by questions: replies to one question go together."""
    from scipy.special import stdtr

    clusters = len(np.unique(query[lost & (one | other)]))
    if clusters < _LEAST:
        return float("nan")
    gap = lost[one].mean() - lost[other].mean()
    parts = (lost - lost[one].mean()) * one / one.sum() - (lost - lost[other].mean()) * other / other.sum()
    sums = np.bincount(query, parts)
    error = np.sqrt((sums**2).sum() * clusters / (clusters - 1))
    return float(2 * stdtr(clusters - 1, -abs(gap) / error)) if error > 0 else float("nan")
