"""All answers are scored and some are rated: the ratings correct the scores.

People rate the answers of all runs to n questions, drawn at random from N; a labeling scores the answers to all N. Then
the quality of a run is what `judgekit.analysis.graded` makes of both. Only a random draw lets n questions stand for N:
otherwise the rated questions decide alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from judgekit.analysis.best import Best
from judgekit.analysis.claims import Claim
from judgekit.analysis.coefficients import Floats, Ints
from judgekit.analysis.graded import DECIDES, LEAST, GradedQuality, corrected_quality
from judgekit.analysis.inputs import FEW

MOST: Final = 0.5
"""From this share of rated questions on, nobody is asked how they were drawn."""


@dataclass(frozen=True)
class PartlyRated:
    """People's ratings of some questions, combined with a labeling that scores all.

    Attributes:
        labeling: the corrected labeling: the one with the largest r among those that score all answers.
        found: its scores corrected by the ratings.
        drawn: whether the rated questions are declared to be drawn at random.
    """

    labeling: str
    found: GradedQuality
    drawn: bool

    @property
    def decides(self) -> bool:
        """Whether the corrected quality decides between the runs, rather than the ratings alone."""
        return self.drawn and self.found.decides


def partly_rated(
    runs: tuple[str, ...],
    people: Floats,
    scores: Mapping[str, Floats],
    *,
    drawn: bool,
    groups: Ints | None = None,
    confidence: float = 0.95,
) -> PartlyRated | None:
    """Return the labeling with the largest r, corrected by people's ratings; None if none can be corrected.

    Args:
        runs: names of the R runs.
        people: ratings on 0 to 1, NaN where there is none, shape (R, N).
        scores: by labeling, larger ones for better answers, NaN where there is none, shape (R, N) each. Values outside
            of 0 to 1 are rescaled by their smallest and largest value.
        drawn: whether the rated questions were drawn at random.
        groups: the group of each question, shape (N,), where questions belong together.
        confidence: of the intervals.
    """
    best: tuple[float, str] | None = None
    for name, values in sorted(scores.items()):
        scored = np.isfinite(values).all(axis=0)
        # A labeling that often fails may fail on bad answers.
        if scored.mean() < 1 - FEW:
            continue
        r = _r(people[:, scored], values[:, scored])
        if r > 0 and (best is None or r > best[0]):
            best = r, name
    if best is None:
        return None
    name = best[1]
    scored = np.isfinite(scores[name]).all(axis=0)
    ratings, values = people[:, scored], scores[name][:, scored]
    low, high = float(values.min()), float(values.max())
    if low < 0 or high > 1:
        values = (values - low) / (high - low)
    own = None if groups is None else groups[scored]
    rated = np.isfinite(ratings).all(axis=0)
    units = int(rated.sum()) if own is None else len(np.unique(own[rated]))
    if units < LEAST or rated.all() or not (drawn or rated.mean() < MOST):
        return None
    found = corrected_quality(runs, ratings, values, groups=own, confidence=confidence)
    return PartlyRated(name, found, drawn)


def _r(people: Floats, scores: Floats) -> float:
    """Return the correlation within questions, on those that people rated for all runs; 0 where there is none."""
    rated = np.isfinite(people).all(axis=0)
    if not rated.any():
        return 0.0
    y = people[:, rated] - people[:, rated].mean(axis=0)
    f = scores[:, rated] - scores[:, rated].mean(axis=0)
    square = float((y * y).sum() * (f * f).sum())
    return float((y * f).sum()) / np.sqrt(square) if square > 0 else 0.0


def claims(rated: PartlyRated, alone: Best, qualifies: str) -> Iterator[Claim]:
    """Yield the result of the corrected labeling beside that of the ratings alone."""
    found, name = rated.found, rated.labeling
    counts = f"People rated all answers to {found.graded:,} of {found.questions:,} questions"
    about = Claim("partly rated", "", name, value=float(found.graded), shown=rated.decides, qualifies=qualifies)
    if not rated.drawn:
        enough = "" if found.decides else f" from {DECIDES} of them on"
        said = (
            f'{counts}, and these alone decide. If they were drawn at random, declare `drawn = "random"` (`--drawn'
            f" random`): then{enough} {name}, which scores all, counts too, corrected by them."
        )
        yield replace(about, sentence=said)
        return
    if rated.decides:
        said = f"{counts}, drawn at random: {name}, which scores all, is corrected by them and decides."
    else:
        said = f"{counts}, drawn at random, which decide alone: from {DECIDES} on, {name} corrected by them does."
    yield replace(about, sentence=said)
    yield found.lead_of_first("corrected lead", f"{name} corrected:", qualifies, decides=rated.decides)
    if rated.decides:
        leader = int(np.nanargmax(alone.means))
        loss = 100 * float(alone.cost[leader])
        said = f"By the rated questions alone {found.runs[leader]} is at most {loss:.1f} points worse than the best."
        if loss < 100 * float(found.best.cost[leader]):
            # Choosing the narrower of two bounds after seeing both would break it too often.
            said += (
                f" That is narrower than {name} corrected, which decides even so: which one is was not known before."
            )
        yield Claim("rated alone", said, found.runs[leader], high=loss, qualifies=qualifies)
