"""Which run may be the best, and what choosing a run may lose: multiple comparisons with the best, paired by question.

For each run that might be the best, one bound holds for its differences to all other runs together. So the best run is
kept and the loss of any choice is bounded, all at one confidence. (J. C. Hsu, Multiple Comparisons, 1996, chapter 4;
here with resampled quantiles.) Simulated in `benchmarks/choose_simulation.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from judgekit.analysis.coefficients import Bools, Floats, Ints
from judgekit.analysis.resampling import t_quantile, unseen
from judgekit.analysis.threads import one_thread
from judgekit.data.runs import Run
from judgekit.errors import UsageError


@dataclass(frozen=True)
class Best:
    """What is known about the best of R runs; everything holds together at the confidence.

    Attributes:
        means: mean quality of each run's answers, missing ones left out, shape (R,); NaN without any.
        may_be_best: whether each run may be the best, shape (R,).
        cost: the largest loss of choosing each run instead of the best, from 0 to 1 like quality, shape (R,).
        upper: ``upper[b, s]`` is the largest lead of run b over run s if b is the best, shape (R, R); 0 on the diagonal
            and for equal lists.
        missing: number of missing answers; the bounds hold whatever they are.
    """

    means: Floats
    may_be_best: Bools
    cost: Floats
    upper: Floats
    missing: int


@one_thread
def compared_with_best(
    quality: Floats,
    weights: Floats,
    *,
    groups: Ints | None = None,
    equal: Bools | None = None,
    confidence: float = 0.95,
) -> Best:
    """Return which runs may be the best, and the largest loss of choosing each.

    Args:
        quality: answer quality between 0 and 1, NaN where the answer is missing, shape (R, Q).
        weights: how often each question is in each resample, shape (Q, B); see `resample_matrix`. Questions of one
            group have the same row.
        groups: each question's group as a number, shape (Q,), if questions are grouped.
        equal: which pairs of runs have equal lists on all questions, shape (R, R); see `equal_lists`. Their answers
            cannot differ.
        confidence: at which all bounds hold together.

    Raises:
        UsageError: quality lies outside 0 to 1, or there are fewer than two questions (or groups).
    """
    from scipy.special import ndtr, ndtri

    runs, questions = quality.shape
    size, place, group = _sizes(questions, groups)
    # Related questions are one piece of evidence.
    units = len(size)
    if units < 2:
        raise UsageError("finding the best run takes answers to at least two questions (or groups of questions)")
    check_unit(quality)
    drawn = weights[place] / units
    missing = np.isnan(quality)
    tied = np.eye(runs, dtype=np.bool_) if equal is None else equal | np.eye(runs, dtype=np.bool_)
    known = per_group(np.where(missing, 0.5, quality), group, size)
    may_be_best, upper = np.ones(runs, np.bool_), np.zeros((runs, runs))
    for best in range(runs):
        others = np.flatnonzero(~tied[best])
        if not len(others):
            continue
        if missing.any():
            known = per_group(kindest(quality, best), group, size)
        # Dividing sums of groups by the mean group size makes their mean that of questions.
        lead = known[best] - known[others]
        mean = lead.mean(axis=1)
        errors = lead - mean[:, None] * size
        # Unseen units on which a run wins everything stand for rare wins, which the data may not show.
        floor = unseen(units, one_sided=True) * (1 + np.abs(mean)) ** 2
        error = np.sqrt(errors.var(axis=1, ddof=1) / units + floor)
        largest = (-(errors @ drawn) / error[:, None]).max(axis=0)
        reach = max(float(np.quantile(largest, confidence)), float(ndtri(confidence)))
        limit = t_quantile(float(ndtr(reach)), units)
        upper[best, others] = mean + limit * error
        may_be_best[best] = bool(np.all(upper[best, others] >= 0))
    cost = np.clip(upper.max(axis=0), 0.0, 1.0)
    return Best(means=known_means(quality), may_be_best=may_be_best, cost=cost, upper=upper, missing=int(missing.sum()))


def check_unit(quality: Floats) -> None:
    """Refuse quality outside of 0 to 1: no bound would hold."""
    if (quality < 0).any() or (quality > 1).any():
        raise UsageError("finding the best run takes quality between 0 and 1: scale it first")


def known_means(quality: Floats) -> Floats:
    """Return each run's mean quality, missing answers left out; NaN without any."""
    # A run without any answer has no mean, not a mean of 0.
    present = (~np.isnan(quality)).sum(axis=1)
    return np.where(present > 0, np.nansum(quality, axis=1) / np.maximum(present, 1), np.nan)


def best_of(means: Floats, errors: Floats, units: int, confidence: float) -> Best:
    """Return which runs may be the best, given their means and the standard errors of differences, shape (R, R).

    The bounds for each run that might be the best hold together (Bonferroni over the others).
    """
    others = max(len(means) - 1, 1)
    upper = means[:, None] - means + t_quantile(1 - (1 - confidence) / others, units) * errors
    np.fill_diagonal(upper, 0.0)
    may_be_best = np.asarray((upper >= 0).all(axis=1))
    cost = np.clip(upper.max(axis=0), 0.0, 1.0)
    return Best(means=means, may_be_best=may_be_best, cost=cost, upper=upper, missing=0)


def kindest(quality: Floats, best: int) -> Floats:
    """Return quality with missing answers at 1 for one run and at 0 for all others."""
    filled = np.where(np.isnan(quality), 0.0, quality)
    filled[best] = np.where(np.isnan(quality[best]), 1.0, quality[best])
    return filled


def per_group(values: Floats, group: Ints | None, size: Floats) -> Floats:
    """Return sums of groups over the mean group size, shape (R, units), so that their mean is that of questions.

    ``size`` is each group's number of questions over the mean; ``group`` is None if each question stands alone.
    """
    if group is None:
        return values
    sums = np.stack([np.bincount(group, row, len(size)) for row in values])
    return np.asarray(sums * len(size) / values.shape[1])


def _sizes(questions: int, groups: Ints | None) -> tuple[Floats, Ints, Ints | None]:
    """Return each group's size over the mean size, the place of its first question, and each question's group."""
    if groups is None:
        return np.ones(questions), np.arange(questions), None
    _, place, group, count = np.unique(groups, return_index=True, return_inverse=True, return_counts=True)
    return np.asarray(count * (len(count) / questions), np.float64), place, group


def equal_lists(runs: Sequence[Run], query_ids: Iterable[str], depth: int) -> Bools:
    """Return which pairs of runs have equal lists of ``depth`` documents on all queries, shape (R, R)."""
    queries = list(query_ids)
    lists = [[run.top(query_id, depth) for query_id in queries] for run in runs]
    return np.array([[mine == other for other in lists] for mine in lists], dtype=np.bool_).reshape(len(runs), -1)
