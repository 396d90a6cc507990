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

from judgekit.analysis.coefficients import Floats
from judgekit.analysis.inputs import Bools, Panel

CLOSED_BOOK: Final = "closed-book"
RETRIEVER: Final = "retriever (control)"
LENGTH: Final = "length (control)"
"""Labelings that do not look at the question: 1 / rank in a fusion of the runs, and how long a document is."""
TWIN: Final = "twin of "
"""The name of a labeling's question-only twin is this and the labeling's."""

CONTROL_COLUMNS: Final = ("use", "control", "labeling", "model", "value", "ci_low", "ci_high", "n", "undefined_reason")
"""Concordance of each control."""


def question_only(panel: Panel, where: Bools, scores: Mapping[str, Floats]) -> Panel:
    """Return a panel of scores that know the question only, shape (Q,) each: the same for all runs."""
    there = np.all([np.isfinite(values) for values in scores.values()], axis=0)
    repeated = [np.broadcast_to(values, panel.quality.shape) for values in scores.values()]
    return replace(panel, labelings=tuple(scores), scores=np.stack(repeated), asked=where & there)
