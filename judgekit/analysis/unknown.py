"""Missing labels: what a claim has to withstand.

A label that was asked for and not obtained may be anything on its scale, so the score of its query lies between two
bounds. A claim that one labeling is better has to hold with its own scores at their worst and the other's at their
best, and an interval runs from the lower end of the worst to the upper end of the best. (Leaving such queries out is
not enough: with 3 % of the labels missing where it matters most, false winners were named three times as often.)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from judgekit.analysis.coefficients import Floats
from judgekit.analysis.inputs import Panel

__all__ = ["extremes", "lowest_highest", "unknown_queries"]


def lowest_highest(panel: Panel) -> tuple[Floats, Floats] | None:
    """Return the lowest and the highest that the scores may be, shape (L, R, Q); None where all are known."""
    if panel.low is None or panel.high is None:
        return None
    known = ~(panel.low < panel.high)
    low, high = np.where(known, panel.scores, panel.low), np.where(known, panel.scores, panel.high)
    return None if (known | ~panel.asked)[list(panel.joint)].all() else (low, high)


def extremes(panel: Panel, level: str) -> tuple[Panel, Panel] | None:
    """Return the panel with the joint labelings' scores at their worst and at their best; None where all are known.

    The worst are low where the answer is better than average and high elsewhere: than the run's average for
    comparisons of queries, than the query's for comparisons of runs. For answers that are right or wrong no labels
    could do worse.
    """
    bounds = lowest_highest(panel)
    if bounds is None:
        return None
    there = np.isfinite(panel.quality)
    axis = 1 if level == "query" else 0
    total = np.where(there, panel.quality, 0).sum(axis=axis, keepdims=True)
    ahead = panel.quality > total / np.maximum(there.sum(axis=axis, keepdims=True), 1)
    joint = list(panel.joint)
    names = tuple(panel.labelings[index] for index in joint)
    low, high = (each[joint] for each in bounds)
    worst = replace(panel, labelings=names, scores=np.where(ahead, low, high), low=None, high=None)
    return worst, replace(worst, scores=np.where(ahead, high, low))


def unknown_queries(panel: Panel) -> dict[str, int]:
    """Return by joint labeling on how many queries some run's score is not known for want of labels."""
    bounds = lowest_highest(panel)
    if bounds is None:
        return {}
    unknown = ((bounds[0] < bounds[1]) & panel.asked).any(axis=1).sum(axis=1)
    return {panel.labelings[index]: int(unknown[index]) for index in panel.joint if unknown[index]}
