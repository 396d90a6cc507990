"""Consistency: what changes when nothing does but the draw or the order, and the noise under every difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from judgekit import stages
from judgekit.analysis.coefficients import Floats
from judgekit.answers.imported import Imported
from judgekit.answers.quality import Answered
from judgekit.audit.material import Material, Pair
from judgekit.audit.numbers import Number, mean_change, share, unknown
from judgekit.client.session import Session
from judgekit.data.documents import Unit
from judgekit.labelers.base import checked
from judgekit.labelers.judge import Judge

__all__ = ["NAME", "answering", "answers", "noise_floor", "positions", "repeats"]

NAME: Final = "consistency"
_POOLS: Final = 40
"""Pools of labels that are drawn for the noise floor."""


async def repeats(material: Material, name: str, pairs: Sequence[Pair], times: int, session: Session) -> list[Number]:
    """Ask a judge again about pairs of the pool: what share of the verdicts flips, and what that does."""
    labeler = material.labelers[name]
    if not isinstance(labeler, Judge) or labeler.jury is not None or labeler.samples > 1:
        return []
    judge = replace(labeler, repeats=times).bound(labeler.context)
    said: list[tuple[Pair, float, float]] = []
    shown = material.units_of(judge, pairs)
    async for unit, outcomes in session.resolve(shown, judge, stage=f"audit {name}, repeats", total=len(pairs)):
        first, *later = [value for _, value in judge.votes(unit, outcomes)]
        pair = unit.query.query_id, unit.docs[0].doc_id
        said += [(pair, first, value) for value in later if first is not None and value is not None]
    return _flips(material, name, "asked again", said)


async def positions(material: Material, name: str, session: Session) -> list[Number]:
    """Show a labeler that sees several documents at once each list in reverse order."""
    labeler, collection = material.labelers[name], material.prepared.collection
    lists = [
        replace(unit, docs=unit.docs[::-1])
        for query_id in (material.queries if labeler.needs.asked else ())
        for unit in labeler.units(collection.queries[query_id], collection.docs.get(collection.pairs[query_id]))
        if len(unit.docs) > 1
    ]
    if not lists:
        return []
    stored = dict(zip(material.pairs, material.values[name].tolist(), strict=True))
    said: list[tuple[Pair, float, float]] = []
    async for unit, outcomes in session.resolve(lists, labeler, stage=f"audit {name}, position", total=len(lists)):
        for label in checked(labeler, unit, outcomes):
            pair = label.query_id, label.doc_id
            if label.relevance is not None and math.isfinite(stored[pair]):
                said.append((pair, stored[pair], label.relevance))
    return _flips(material, name, "list in reverse order", said)


def _flips(material: Material, name: str, subject: str, said: Sequence[tuple[Pair, float, float]]) -> list[Number]:
    """Return what share of labels changes sides, and the floor that it puts under differences."""
    if len({query_id for (query_id, _), _, _ in said}) < 2:
        return [unknown(NAME, subject, "flips", "too few pairs have two labels", len(said))]
    then, now = (material.relevant(name, np.array([one[at] for one in said])) for at in (1, 2))
    ends = share(then != now, material.units[material.at(pair for pair, _, _ in said)], material.confidence)
    told = f"{ends[0]:.1%} of the labels change sides, up to {ends[2]:.1%} by the interval"
    flips = Number(NAME, subject, "flips", *ends, len(said), told, "noisy" if ends[1] > 0.05 else "")
    return [flips, noise_floor(material, name, flips)]


def noise_floor(material: Material, name: str, flips: Number) -> Number:
    """Return below what difference two runs cannot be told apart by labels that flip so often.

    All labels of the pool are drawn again, each turning round with this probability (to a label that some other pair on
    that side of the threshold has); the floor is 1.96 standard deviations of the difference of two runs' mean scores,
    the mean over pairs of runs. The interval is that of the floor at both ends of the share of flips.
    """
    values, rng, measure = material.values[name], np.random.default_rng([material.seed, 3]), material.primary.measure
    there = np.isfinite(values)
    side = material.relevant(name, np.where(there, values, 0))
    ends = [values[there & (side == one)] for one in (False, True)]
    drawn = rng.random((_POOLS, len(values)))

    def floor(chance: float) -> float:
        if chance <= 0 or not all(map(len, ends)) or len(material.runs) < 2:
            return 0.0
        others = [np.where(side, *(rng.choice(end, len(values)) for end in ends)) for _ in drawn]
        pools = [np.where(there & (row < chance), other, values) for row, other in zip(drawn, others, strict=True)]
        means = np.nanmean(material.scores([(material.scale(name), pool) for pool in pools]), axis=2)
        first, second = np.triu_indices(means.shape[1], 1)
        return float(1.96 * (means[:, first] - means[:, second]).std(axis=0, ddof=1).mean())

    if not np.isfinite(material.scores([(material.scale(name), values)])).any():
        return unknown(NAME, flips.subject, f"noise floor of {measure}", f"{measure} is undefined under these labels")
    low, value, high = sorted(map(floor, (flips.low, flips.value, flips.high)))
    told = f"a difference between runs below {value:.4f} ({low:.4f} to {high:.4f}) in {measure} may be chance"
    return Number(NAME, flips.subject, f"noise floor of {measure}", value, low, high, len(values), told)


def answering(material: Material) -> stages.Answering | None:
    """Return how the answers of the verdict were made; None where they were imported."""
    found = material.prepared.answering.values()
    return next(
        (one for one in found if one.model == material.primary.model and not isinstance(one.answerer, Imported)), None
    )


async def answers(material: Material, most: int, session: Session) -> list[Number]:
    """Answer some questions from the same documents the other way round: how much of the quality is their order?

    Answers that an LLM rates are left out: it would rate each of them anew.
    """
    how, collection, depth = answering(material), material.prepared.collection, material.primary.depth
    metric = (
        next((m for m in how.metrics if m.name == material.primary.metric and not m.endpoint), None) if how else None
    )
    if how is None or isinstance(how.answerer, Imported) or metric is None or depth < 2:
        return []
    answerer = how.answerer
    drawn = np.random.default_rng([material.seed, 4]).permutation(material.queries).tolist()[:most]
    lists = [
        (collection.queries[query_id], docs)
        for turn, query_id in enumerate(drawn)
        if len(docs := tuple(collection.docs.get(material.runs[turn % len(material.runs)].top(query_id, depth)))) > 1
    ]
    rated: list[dict[str, float]] = [{}, {}]
    for found, step, which in zip(rated, (1, -1), ("as they were", "in reverse order"), strict=True):
        units = [Unit(query, docs[::step]) for query, docs in lists]
        async for unit, outcomes in session.resolve(units, answerer, f"audit answers, {which}", len(units)):
            value = metric.read(Answered(unit.query, answerer.answer(unit, outcomes), unit.docs), []).value
            if value is not None:
                found[unit.query.query_id] = value
    both, subject = sorted(rated[0].keys() & rated[1].keys()), "answers from the documents in reverse order"
    if len(both) < 2:
        return []
    units_of = material.units[material.at((query_id, "") for query_id in both)]
    change: Floats = np.array([rated[1][query_id] - rated[0][query_id] for query_id in both])
    floor = 1.96 * float(change.std(ddof=1)) / math.sqrt(len(material.queries))
    ends = share(change != 0, units_of, material.confidence)
    told = (
        f"{ends[0]:.1%} of the answers score differently in another order: over {len(material.queries)} questions, a"
        f" difference between runs below about {floor:.3f} in {metric.name} may be due to the order alone"
    )
    shift = mean_change(change, units_of, 1.0, material.confidence)
    return [
        Number(NAME, subject, "answers that score differently", *ends, len(both), told),
        Number(NAME, subject, f"mean change of {metric.name}", *shift, len(both)),
    ]
