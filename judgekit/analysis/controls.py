"""Controls: what tells questions, ranks or lengths apart without looking at what a document says.

They stand beside the labelings in every comparison and never win. A labeling that does no better than its
*question-only twin* tells easy questions from hard ones; one that does no better than the runs' own ranks adds nothing
to them. Labels shuffled within a query need no run of their own: within queries their concordance is known, one half.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from judgekit.analysis.coefficients import Floats, Target
from judgekit.analysis.inputs import Bools, Panel
from judgekit.analysis.levels import Resamples
from judgekit.analysis.resampling import interval

__all__ = ["CLOSED_BOOK", "CONTROL_COLUMNS", "LENGTH", "RETRIEVER", "TWIN", "closed_book_strata", "question_only"]

CLOSED_BOOK: Final = "closed-book"
RETRIEVER: Final = "retriever (control)"
LENGTH: Final = "length (control)"
"""Labelings that do not look at the question: 1 / rank in a fusion of the runs, and how long a document is."""
TWIN: Final = "twin of "
"""The name of a labeling's question-only twin is this and the labeling's."""

CONTROL_COLUMNS: Final = ("use", "control", "labeling", "model", "value", "ci_low", "ci_high", "n", "undefined_reason")
"""Concordance of each control, and of labelings given what the model knows without documents."""


def question_only(panel: Panel, where: Bools, scores: Mapping[str, Floats]) -> Panel:
    """Return a panel of scores that know the question only, shape (Q,) each: the same for all runs.

    Only the cases ``where`` count, shape (R, Q).
    """
    there = np.all([np.isfinite(values) for values in scores.values()], axis=0)
    repeated = [np.broadcast_to(values, panel.quality.shape) for values in scores.values()]
    return replace(panel, labelings=tuple(scores), scores=np.stack(repeated), asked=where & there)


def closed_book_strata(
    panel: Panel, labeling: int, known: Floats, resamples: Resamples, confidence: float
) -> dict[str, object]:
    """Return the concordance over pairs of questions of the same closed-book quality, in the mean over runs.

    (A partial Kendall coefficient would not do: with a binary control it is not 0 under conditional independence.)
    ``known`` is the quality without documents, shape (Q,), NaN where undefined.
    """
    found, most = [], 0
    for row in range(len(panel.runs)):
        where = panel.defined(labeling)[row] & np.isfinite(known)
        weights = np.column_stack([np.ones(int(where.sum())), resamples.weights[where]])
        sums = np.zeros((2, weights.shape[1]))
        for level in np.unique(known[where]):
            same = known[where] == level
            balance, _, untied = Target(panel.quality[row, where][same], weights[same]).pairs(
                panel.scores[labeling, row, where][same]
            )
            sums += balance, untied
        with np.errstate(divide="ignore", invalid="ignore"):
            found.append((sums[0] / sums[1] + 1) / 2)
        most = max(most, int(where.sum()))
    defined = [each for each in found if np.isfinite(each[0])]
    if not defined:
        why = "no two questions of the same closed-book quality have answers of different quality"
        return {"value": np.nan, "ci_low": np.nan, "ci_high": np.nan, "n": most, "undefined_reason": why}
    value, *draws = np.mean(defined, axis=0)
    ends = interval(float(value), np.array(draws), confidence, "arcsine-t", most)
    return {"value": float(value), "ci_low": ends.low, "ci_high": ends.high, "n": most, "undefined_reason": ""}
