"""Means of runs that are not compared question by question, but by the standard errors of their differences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from judgekit.analysis.best import Best, best_of
from judgekit.analysis.claims import Claim
from judgekit.analysis.coefficients import Floats
from judgekit.analysis.resampling import t_quantile
from judgekit.analysis.wording import Ranged


@dataclass(frozen=True, kw_only=True)
class RunMeans:
    """Means of R runs, from 0 to 1.

    Attributes:
        runs: names.
        means: by run, shape (R,).
        errors: standard errors of the differences, shape (R, R).
        units: independent units behind each mean, shape (R,).
        confidence: of the intervals.
    """

    runs: tuple[str, ...]
    means: Floats
    errors: Floats
    units: npt.NDArray[np.intp]
    confidence: float = 0.95

    def lead(self, first: int, second: int) -> Ranged:
        """Return a run's lead over another one, with its interval."""
        # The mean over fewer units limits the confidence.
        units = int(min(self.units[first], self.units[second]))
        half = t_quantile((1 + self.confidence) / 2, units) * float(self.errors[first, second])
        value = float(self.means[first] - self.means[second])
        # No lead exceeds the whole scale.
        return Ranged(value, max(value - half, min(-1.0, value)), min(value + half, max(1.0, value)))

    @property
    def best(self) -> Best:
        """Which run may be the best, and what choosing each may lose."""
        return best_of(self.means, self.errors, int(self.units.min()), self.confidence)

    @property
    def order(self) -> list[int]:
        """The runs by their means, the best first."""
        return sorted(range(len(self.runs)), key=lambda run: -float(self.means[run]))

    def lead_of_first(self, kind: str, before: str, qualifies: str, *, decides: bool) -> Claim:
        """Return the claim that the best run leads the next one, its sentence after ``before``.

        If these means ``decides``, claims on the runs bound the same lead, and the sentence says why the bounds differ.
        """
        first, second, *_ = self.order
        lead = self.lead(first, second)
        said = f"{before} {self.runs[first]} leads {self.runs[second]} by {in_points(lead)}."
        if decides:
            said += " This interval has two sides; what to ship is a question of one side, whose limit is narrower."
        return Claim(
            kind,
            said,
            subject=self.runs[first],
            against=self.runs[second],
            value=100 * lead.value,
            low=100 * lead.low,
            high=100 * lead.high,
            shown=lead.low > 0,
            qualifies=qualifies,
        )


def in_points(gap: Ranged) -> str:
    """Return a difference of quality with its interval in words."""
    return f"{100 * gap.value:.1f} points ({100 * gap.low:.1f} to {100 * gap.high:.1f})".replace("-", "−")
