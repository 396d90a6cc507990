"""Maps a machine's labels to people's scale: first relevance, then the grade within relevant and other pairs.

Relevance never comes from a mean. If people agree with half of the relevant labels of a judge, the mean grade of these
documents lies below people's threshold, and no document would be relevant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import isotonic_regression

from judgekit.data.columns import Bools, Floats
from judgekit.data.labelings import Scale


@dataclass(frozen=True)
class Rule:
    """The rule that turns a labeling's value into a final label.

    Attributes:
        scale: the scale of the final labels.
        cut: the smallest relevant value.
        values, gains: values and their gains on the scale, those below the cut first; gains are interpolated within a
            class, and constant beyond its last value.
    """

    scale: Scale
    cut: float
    values: tuple[float, ...]
    gains: tuple[float, ...]

    def gain(self, values: Floats) -> Floats:
        """Return the gains of labels on the scale, not rounded; NaN stays NaN."""
        known, gains = np.array(self.values), np.array(self.gains)
        upper = known >= self.cut
        below = np.interp(values, known[~upper], gains[~upper])
        above = np.interp(values, known[upper], gains[upper])
        return np.where(np.isnan(values), np.nan, np.where(values >= self.cut, above, below))

    def __call__(self, values: Floats) -> Floats:
        """Return final labels, rounded if the scale has whole numbers; NaN stays NaN."""
        gain = self.gain(values)
        # A class ends at whole grades, so rounding moves no label across the border.
        return np.floor(gain + 0.5) if self.scale.integral else gain

    def __str__(self) -> str:
        start = f"relevant from {self.cut:.3g} on"
        if self.scale.kind == "binary":
            return start
        shown = sorted({round(at) for at in np.linspace(0, len(self.values) - 1, 5)})
        return f"{start}; " + ", ".join(f"{self.values[at]:.3g} counts {self.gains[at]:.2f}" for at in shown)


def matched_cut(values: Floats, relevant: Bools, weight: Floats, declared: float) -> float:
    """Return the cut with the share of relevant labels that is closest to people's share.

    Among equally close cuts, take the one nearest to the declared cut. If people call all pairs relevant, or none, or
    all labels are alike, take the declared one.
    """
    # Only values that occur are cuts, so a binary judge keeps its own 1.
    cuts: Floats = np.unique(values)[1:]
    if not len(cuts) or relevant.all() or not relevant.any():
        return declared
    order = np.argsort(values)
    below = np.append(0.0, np.cumsum(weight[order]))[np.searchsorted(values[order], cuts)]
    away = np.abs(weight.sum() - below - weight[relevant].sum())
    close = cuts[away <= away.min() + 1e-9 * weight.sum()]
    return float(min(close, key=lambda cut: (abs(cut - declared), cut)))


def fit(values: Floats, people: Floats, weight: Floats, scale: Scale, cut: float) -> Rule:
    """Return the rule with this cut.

    A value counts the mean of people's grades on pairs where both agree on relevance. The other pairs are the
    labeling's mistakes, and say nothing about how good a relevant document is.
    """
    upper, relevant = values >= cut, people >= scale.threshold
    known: list[float] = []
    gains: list[float] = []
    for of_class, nobody in ((False, (cut - 1, float(scale.low))), (True, (cut, scale.threshold))):
        agreed = (upper == of_class) & (relevant == of_class)
        if not agreed.any():
            known.append(nobody[0])
            gains.append(nobody[1])
            continue
        distinct, place = np.unique(values[agreed], return_inverse=True)
        weights = np.bincount(place, weight[agreed])
        means = np.bincount(place, weight[agreed] * people[agreed]) / weights
        # A better machine label must never become a worse final one, whatever a few pairs say.
        known += distinct.tolist()
        gains += isotonic_regression(means, weights=weights).x.tolist()
    return Rule(scale, cut, tuple(known), tuple(gains))


def columns_of(table: pd.DataFrame) -> tuple[Floats, Floats, Floats]:
    """Return a labeling's values, people's labels and the weights of pairs that both labelled."""
    return table["machine"].to_numpy(), table["people"].to_numpy(), 1 / table["probability"].to_numpy(np.float64)
