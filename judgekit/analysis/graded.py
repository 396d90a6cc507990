"""Quality rated by a metric, corrected by people's grades of the answers to some questions.

People grade all runs' answers to n of N questions, drawn at random. With y people's grade and f the metric's value,
both less the question's mean over the runs, and l the pooled slope of y on f, between 0 and 1:

    quality of a run = mean over the n of (y - l f)  +  l mean over the N of f
    variance of a difference = s2_resid (1/n - 1/N) + s2_y / N + (2 (1 + |difference|) / n)^2,
        t with n - 1 degrees of freedom

This is prediction-powered inference (Angelopoulos et al., 2023; PPI++, 2024) with one bias for each run; the last term
stands for unseen questions on which the runs differ by the whole scale (`judgekit.analysis.resampling.unseen`). The
estimate is unbiased whatever the metric is worth. Simulated in `benchmarks/graded_simulation.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from judgekit.analysis.claims import Claim
from judgekit.analysis.coefficients import Bools, Floats, Ints
from judgekit.analysis.resampling import max_t, resample_matrix, t_quantile, unseen
from judgekit.analysis.run_means import RunMeans, in_points
from judgekit.analysis.threads import one_thread
from judgekit.analysis.wording import Ranged
from judgekit.errors import UsageError

DECIDES: Final = 50
"""From this many graded questions on, the corrected quality decides, even if the metric is not shown to be biased:
waiting for that costs twice as much (1.65 points against .87, simulated)."""
LEAST: Final = 5
"""With fewer graded questions, nothing is corrected."""
_RESAMPLES: Final = 1000
_SEED: Final = 1


@dataclass(frozen=True, kw_only=True)
class GradedQuality(RunMeans):
    """Quality of runs corrected by people's grades; the units are graded questions, or groups of them.

    Attributes:
        people, metric: means of people's grades on the graded questions and of the metric on all, shape (R,).
        flattered: the metric's surplus over people for each run, less the mean over the runs.
        shown: the runs whose ``flattered`` is shown to differ from 0, all runs taken together.
        weight: the weight of the metric, from 0 to 1.
        graded: the number of graded questions, out of ``questions``.
    """

    people: Floats
    metric: Floats
    flattered: tuple[Ranged, ...]
    shown: tuple[str, ...]
    weight: float
    graded: int
    questions: int

    @property
    def decides(self) -> bool:
        """Whether these means decide between the runs, rather than the metric."""
        return self.graded >= DECIDES


@one_thread
def corrected_quality(
    runs: tuple[str, ...],
    people: Floats,
    metric: Floats,
    *,
    groups: Ints | None = None,
    confidence: float = 0.95,
) -> GradedQuality:
    """Correct the quality of runs.

    Args:
        runs: names of the R runs.
        people: people's grades on 0 to 1, or NaN, shape (R, N). Only questions with grades for all runs count.
        metric: the metric's values on 0 to 1 of all questions, shape (R, N).
        groups: the group of each question, shape (N,), where questions belong together.
        confidence: of the intervals, and of all findings on flattered runs together.

    Raises:
        UsageError: fewer than two runs, or fewer than five graded questions or groups.
    """
    # A question with grades for some runs only would favour these runs.
    taken = np.isfinite(people).all(axis=0)
    graded = int(taken.sum())
    questions = metric.shape[1]
    if len(runs) < 2:
        raise UsageError("people's grades correct quality to compare runs, but there is only one run")
    what, group = "questions", np.arange(questions)
    if groups is not None:
        what, group = "groups of questions", groups
    present, numbers = np.unique(group[taken], return_inverse=True)
    units = len(present)
    if units < LEAST:
        raise UsageError(f"people graded every run's answers to {units} {what}: a correction needs at least {LEAST}")
    # Less each question's mean: whether it is easy or hard tells no runs apart.
    given, rated = people[:, taken], metric[:, taken]
    y = given - given.mean(axis=0)
    f = rated - rated.mean(axis=0)
    square = float((f * f).sum())
    weight = 0.0
    if square > 0:
        weight = float(np.clip((y * f).sum() / square, 0.0, 1.0))
    residual = y - weight * f
    whole = metric - metric.mean(axis=0)
    centred = residual.mean(axis=1) + weight * whole.mean(axis=1)
    # People's grades set the level that the metric's share leaves open.
    easier = metric.mean() - rated.mean()
    level = float(given.mean() + weight * easier)
    share = graded / questions
    variance = (1 - share) * _variances(residual, numbers, units)
    variance += share * _variances(y, numbers, units)
    leads = centred[:, None] - centred
    variance += unseen(units, one_sided=True) * (1 + np.abs(leads)) ** 2
    errors = np.sqrt(variance)
    np.fill_diagonal(errors, 0.0)
    flattered, shown = _flattered(f - y, numbers, units, confidence)
    return GradedQuality(
        runs=runs,
        means=centred + level,
        people=given.mean(axis=1),
        metric=metric.mean(axis=1),
        errors=errors,
        flattered=flattered,
        shown=tuple(runs[place] for place in np.flatnonzero(shown).tolist()),
        weight=weight,
        graded=graded,
        questions=questions,
        units=np.full(len(runs), units),
        confidence=confidence,
    )


def _sums(values: Floats, numbers: Ints, units: int) -> Floats:
    """Return the deviations from the mean summed by group, as shares of a mean group, shape (R, units)."""
    moved = values - values.mean(axis=1, keepdims=True)
    sums = np.stack([np.bincount(numbers, row, units) for row in moved])
    questions = values.shape[1]
    return np.asarray(sums * units / questions)


def _variances(values: Floats, numbers: Ints, units: int) -> Floats:
    """Return the variance of the mean difference of every two runs, shape (R, R)."""
    sums = _sums(values, numbers, units)
    gaps = sums[:, None] - sums
    squares = (gaps**2).sum(axis=2)
    return np.asarray(squares / (units - 1) / units)


def _flattered(excess: Floats, numbers: Ints, units: int, confidence: float) -> tuple[tuple[Ranged, ...], Bools]:
    """Return the metric's surplus over people for each run, and which of it is shown, by max-t over the runs."""
    sums = _sums(excess, numbers, units)
    value = excess.mean(axis=1)
    squares = (sums**2).sum(axis=1)
    error = np.sqrt(squares / (units - 1) / units + unseen(units))
    weights = resample_matrix(units, _RESAMPLES, _SEED)
    draws = sums @ weights / units
    # Any run may be named.
    reach = float(max_t(draws, error, confidence, units - 1))
    least = t_quantile((1 + confidence) / 2, units)
    # The joint bound of few runs may be narrower than that of one alone, whose resamples vary too little.
    half = max(reach, least) * error
    rows = np.column_stack([value, value - half, value + half]).tolist()
    return tuple(Ranged(*row) for row in rows), np.asarray(np.abs(value) > half)


def claims(found: GradedQuality, metric: str, qualifies: str) -> Iterator[Claim]:
    """Yield what people's grades say about the runs and the metric, beside a claim on the runs."""
    when = "so" if found.decides else f"and from {DECIDES} on"
    sentence = (
        f"People graded the answers to {found.graded:,} of {found.questions:,} questions, {when} the quality corrected"
        " by them decides."
    )
    yield Claim("graded", sentence, subject=metric, value=float(found.graded), shown=True, qualifies=qualifies)
    for run, ends in _leaning(found):
        verb, gap = "flatters", ends
        if ends.value < 0:
            verb, gap = "undervalues", Ranged(-ends.value, -ends.high, -ends.low)
        yield Claim(
            "flatters the run",
            f"{metric} {verb} {run} by {in_points(gap)}, beside the mean of these runs.",
            subject=run,
            against=metric,
            value=100 * ends.value,
            low=100 * ends.low,
            high=100 * ends.high,
            shown=True,
            qualifies=qualifies,
        )
    yield found.lead_of_first("corrected lead", "Corrected by people,", qualifies, decides=found.decides)


def _leaning(found: GradedQuality) -> list[tuple[str, Ranged]]:
    """Return the runs that the metric is shown to flatter; if there are none, those that it undervalues."""
    every = dict(zip(found.runs, found.flattered, strict=True))
    shown = [(run, every[run]) for run in found.shown]
    # If one run is flattered, the others lie below the mean because of it.
    return [(run, ends) for run, ends in shown if ends.value > 0] or shown
