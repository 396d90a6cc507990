"""Circularity: what happens to a labeling's verdict about runs when runs re-rank by that labeling.

None, half, all or one of the runs re-rank; after Clarke and Dietz, "LLM-based relevance assessment still can't replace
human relevance assessment" (2024), and Balog, Metzler and Qin, "Rankers, judges, and assistants" (2025).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from judgekit.analysis.coefficients import Floats
from judgekit.analysis.levels import MIN_RUNS
from judgekit.analysis.rankings import over_runs
from judgekit.analysis.resampling import interval
from judgekit.analysis.system_bootstrap import shrunken_draws
from judgekit.audit.material import Material
from judgekit.audit.numbers import Bools, Number, unknown
from judgekit.data.runs import Run

__all__ = ["NAME", "circularity", "of_labeling", "reranked"]

NAME: Final = "circularity"
_DRAWS: Final = 500
"""Random halves of the runs."""
_AT_TOP: Final = 1e-3
"""A run is saturated if its score lies within this share of what the best order of the pool reaches."""


def of_labeling(material: Material, name: str, again: Floats | None = None) -> list[Number]:
    """Return the numbers of one labeling; ``again`` is the quality of the answers from its re-ranked runs, if asked.

    Without it, what re-ranking brings is compared with the reference labeling, if there is one.
    """
    labels = [(material.scale(name), material.values[name])]
    reference = material.reference if again is None and material.reference != name else None
    if reference is not None:
        labels.append((material.scale(reference), material.values[reference]))
    runs = [*material.runs, *reranked(material, name), _ordered(material, name, None)]
    scores, size = material.scores(labels, runs), len(material.runs)
    base, after, top = scores[0, :size], scores[0, size:-1], scores[0, -1]
    truth = (
        (scores[1, :size], scores[1, size:-1]) if reference else None if again is None else (material.quality, again)
    )
    there = np.isfinite(np.concatenate([base, after, top[None], *(truth or ())])).all(axis=0)
    if there.sum() < max(2, len(there) // 2):
        why = f"only {there.sum()} of {len(there)} queries have scores of all runs"
        return [unknown(NAME, "every run re-ranks", "gain by these labels", why, int(there.sum()))]
    return circularity(
        base[:, there],
        after[:, there],
        top[there],
        None if truth is None else (truth[0][:, there], truth[1][:, there]),
        weights=material.weights[there],
        confidence=material.confidence,
        seed=material.seed,
        against=reference or "the answers",
        units=len(np.unique(material.units[there])),
    )


def reranked(material: Material, name: str) -> list[Run]:
    """Return every run in the order of a labeling: ties keep the run's order, what has no label comes last."""
    return [_ordered(material, name, run) for run in material.runs]


def _ordered(material: Material, name: str, run: Run | None) -> Run:
    """Return a run, or without one the whole pool, in the order of the labels."""
    label = dict(zip(material.pairs, np.nan_to_num(material.values[name], nan=-np.inf).tolist(), strict=True))
    rows: list[tuple[str, str, float]] = []
    for query_id in material.queries:
        docs = material.prepared.collection.pairs[query_id] if run is None else run.top(query_id)
        docs = sorted(docs, key=lambda doc_id: -label[query_id, doc_id])[: material.prepared.collection.depth]
        rows += [(query_id, doc_id, -float(rank)) for rank, doc_id in enumerate(docs)]
    return Run(f"{'the pool' if run is None else run.name} by {name}", *map(list, zip(*rows, strict=True)))


def circularity(
    base: Floats,
    after: Floats,
    top: Floats,
    truth: tuple[Floats, Floats] | None,
    *,
    weights: Floats,
    confidence: float = 0.95,
    seed: int = 1,
    against: str = "the reference",
    units: int = 0,
) -> list[Number]:
    """Return what re-ranking by a labeling does to its own scores and to those of a reference.

    Args:
        base: the labeling's scores of the runs, shape (R, n), finite.
        after: of the runs re-ranked by the labeling.
        top: of the best order of the whole pool, shape (n,).
        truth: the reference's scores of the same runs, and re-ranked; None where there is none.
        weights: how often each query is in each resample, shape (n, B).
        confidence: of the intervals: percentiles of resamples, for ranks of draws of the true means over queries.
        seed: of the random halves.
        against: what the reference is called.
        units: independent units among the queries; 0 for all of them.
    """
    (runs, n), count = base.shape, np.maximum(weights.sum(axis=0), 1)
    everybody, inflated = "every run re-ranks", "gain too much"

    def found(subject: str, statistic: str, value: float, draws: Floats, size: int, told: str = "") -> Number:
        ends = interval(float(value), draws, confidence, "percentile", n)
        return Number(NAME, subject, statistic, float(value), ends.low, ends.high, size, told)

    def mean(statistic: str, values: Floats, told: str = "") -> Number:
        return found(everybody, statistic, values.mean(), values @ weights / count, n, told)

    gain, (at_top, often) = (after - base).mean(axis=0), (
        after @ each / each.sum(axis=0) >= (1 - _AT_TOP) * (top @ each) / each.sum(axis=0)
        for each in (np.ones((n, 1)), weights)
    )  # fmt: skip
    saturated = found(everybody, "runs at the maximum", at_top.sum(), often.sum(axis=0).astype(np.float64), runs)
    if 2 * saturated.value > runs:
        full = f"{saturated.value:.0f} of {runs} runs reach the best possible score, so nothing tells them apart"
        saturated = replace(saturated, verdict=full, flag="saturated")
    if truth is None:
        why = "without a reference, how much of this gain is real is unknown"
        return [mean("gain by these labels", gain, why), saturated]
    real = (truth[1] - truth[0]).mean(axis=0)
    sees = f"these labels see {gain.mean():.3f}, {against} {real.mean():.3f}: runs that use the labels look too good"
    out = [
        mean("gain by these labels", gain),
        mean(f"gain by {against}", real),
        _shown(mean(inflated, gain - real, sees)),
    ]
    # All four means of a run are drawn together, so that whoever re-ranks moves on both sides at once.
    values = np.stack([base, after, *truth], axis=-1)
    centre = values.mean(axis=1)
    deviations = np.einsum("qb,rqv->brv", weights, values, optimize=True) / count[:, None, None] - centre
    draws = shrunken_draws(centre, deviations, units or n, np.random.default_rng([seed, 1])) + centre.mean(axis=0)
    rng = np.random.default_rng([seed, 6])
    halves = rng.permuted(np.tile(np.arange(runs) < runs // 2, (max(_DRAWS, len(draws)), 1)), axis=1)
    few = "" if runs >= MIN_RUNS else " (few runs: descriptive only)"
    before, drawn = float(_tau(centre, halves[0] & False)), _tau(draws, halves[0] & False)
    told = f"how far both agree on the order of the runs before any re-ranks{few}"
    out.append(found("no run re-ranks", f"tau-b with {against}", before, drawn, runs, told))
    for who, masks in (("half the runs re-rank", halves), (everybody, halves | True)):
        at, each = _tau(centre, masks[:_DRAWS]), _tau(draws, masks[: len(draws)])
        tau = float(at[np.isfinite(at)].mean()) if np.isfinite(at).any() else math.nan
        fall = found(who, "fall", before - tau, drawn - each, runs)
        reach = "" if math.isnan(fall.low) else f" ({fall.low:.2f} to {fall.high:.2f})"
        told = f"agreement on the order of the runs falls by {fall.value:.2f}{reach}{few}"
        number = found(who, f"tau-b with {against}", tau, each, runs, told)
        if math.isnan(tau):
            number = replace(number, verdict="all runs score the same, so nothing tells them apart", flag="circular")
        elif fall.low > 0 and not few:
            told += ": do not use this judge to compare systems that use it"
            number = replace(number, verdict=told, flag="circular")
        out.append(number)
    alone, risen = _alone(centre[None])[0] / max(runs - 1, 1), _alone(draws) / max(runs - 1, 1)
    told = f"a run that alone re-ranks is placed {alone * (runs - 1):.1f} of {runs} ranks too high"
    placed = _shown(found("one run re-ranks", "share of the ranks gained too much", alone, risen, runs, told))
    rows = ("no run re-ranks", "half the runs re-rank", everybody, "one run re-ranks")
    return sorted([*out, saturated, placed], key=lambda number: rows.index(number.subject))


def _tau(means: Floats, again: Bools) -> Floats:
    """Return tau-b between the labeling and the reference, where some runs re-rank.

    Args:
        means: before and after by the labeling, before and after by the reference, shape (..., R, 4).
        again: which runs re-rank, broadcast against shape (..., R).
    """
    mine, theirs = (np.where(again, means[..., at + 1], means[..., at]) for at in (0, 2))
    return np.asarray(over_runs(mine, theirs, ("tau_b",))[0])


def _shown(number: Number) -> Number:
    """Return a number flagged if it is shown to be above 0, else with the words that it is not."""
    told = "not shown to be above 0: these labels are not shown to inflate runs that use them"
    return replace(number, flag="inflates") if number.low > 0 else replace(number, verdict=told)


def _alone(means: Floats) -> Floats:
    """Return by how many ranks a run that alone re-ranks rises more than the reference says, the mean over runs.

    Args:
        means: before and after by the labeling, before and after by the reference, shape (B, R, 4).
    """
    others = ~np.eye(means.shape[1], dtype=np.bool_)

    def above(mine: Floats, theirs: Floats) -> Floats:
        """Return how many other runs are above each, ties counting half, shape (B, R)."""
        gap = theirs[:, None, :] - mine[:, :, None]
        edge = 1e-11 * np.abs(theirs).max(axis=1)[:, None, None]
        return np.asarray((((gap > edge) + 0.5 * (np.abs(gap) <= edge)) * others).sum(axis=2))

    risen = [above(means[..., at], means[..., at]) - above(means[..., at + 1], means[..., at]) for at in (0, 2)]
    return np.asarray((risen[0] - risen[1]).mean(axis=1))
