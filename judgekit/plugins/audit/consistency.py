"""Consistency: what changes when nothing does but the draw, and the noise under every difference."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from judgekit.client.session import Session
from judgekit.data.documents import Unit
from judgekit.labelers.judge import Judge
from judgekit.plugins.audit.audited_run import Material, Pair
from judgekit.plugins.audit.gullibility import sample_size
from judgekit.plugins.audit.numbers import Number, share, unknown

NAME: Final = "consistency"
_TIMES: Final = 3
"""How often the same is asked."""
_AGAIN: Final = "asked again"
_POOLS: Final = 40
"""Pools of labels that are drawn for the noise floor."""


def asked(material: Material, name: str) -> tuple[str, Judge, list[Unit]] | None:
    """Return what `repeats` asks of a judge: the stage, whom, about what pairs; None of what is no single judge."""
    labeler = material.prepared.labelers[name]
    if not isinstance(labeler, Judge) or labeler.jury is not None or labeler.samples > 1:
        return None
    judge = replace(labeler, repeats=_TIMES).bound(labeler.context)
    drawn = np.random.default_rng([material.seed, 5]).permutation(len(material.pairs))[: sample_size(material)]
    return f"audit {name}, repeats", judge, list(material.units_of(judge, (material.pairs[i] for i in drawn)))


async def repeats(material: Material, name: str, session: Session) -> list[Number]:
    """Ask a judge again about pairs of the pool: what share of labels flips, and what that hides of differences."""
    if (asking := asked(material, name)) is None:
        return []
    stage, judge, units = asking
    said: list[tuple[Pair, float, float]] = []
    async for unit, outcomes in session.resolve(units, judge, stage, len(units)):
        first, *later = [value for _, value in judge.votes(unit, outcomes)]
        pair = unit.query.query_id, unit.docs[0].doc_id
        said += [(pair, first, value) for value in later if first is not None and value is not None]
    if len({query_id for (query_id, _), _, _ in said}) < 2:
        return [unknown(NAME, _AGAIN, "flips", "too few pairs have two labels", len(said))]
    then, now = (material.relevant(name, np.array([one[at] for one in said])) for at in (1, 2))
    ends = share(then != now, material.units[material.at(pair for pair, _, _ in said)], material.confidence)
    told = f"{ends[0]:.1%} of the labels change sides, up to {ends[2]:.1%} by the interval"
    flips = Number(NAME, _AGAIN, "flips", *ends, len(said), told, "noisy" if ends[1] > 0.05 else "")
    return [flips, noise_floor(material, name, flips)]


def noise_floor(material: Material, name: str, flips: Number) -> Number:
    """Return below what difference two runs cannot be told apart by labels that flip so often."""
    # All labels of the pool are drawn again, each turning round with this probability (to a label that some other pair
    # on that side of the threshold has); the floor is 1.96 standard deviations of the difference of two runs' mean
    # scores, the mean over pairs of runs. The interval is that of the floor at both ends of the share of flips.
    values, rng, measure = material.values[name], np.random.default_rng([material.seed, 3]), material.primary.measure
    there = np.isfinite(values)
    side = material.relevant(name, np.where(there, values, 0))
    ends = [values[there & (side == one)] for one in (False, True)]
    drawn = rng.random((_POOLS, len(values)))

    def floor(chance: float) -> float:
        if chance <= 0 or not all(map(len, ends)) or len(material.collection.runs) < 2:
            return 0.0
        others = [np.where(side, *(rng.choice(end, len(values)) for end in ends)) for _ in drawn]
        pools = [np.where(there & (row < chance), other, values) for row, other in zip(drawn, others, strict=True)]
        means = np.nanmean(material.scores([(material.labelings[name].scale, pool) for pool in pools]), axis=2)
        first, second = np.triu_indices(means.shape[1], 1)
        return float(1.96 * (means[:, first] - means[:, second]).std(axis=0, ddof=1).mean())

    if not np.isfinite(material.scores([(material.labelings[name].scale, values)])).any():
        return unknown(NAME, flips.subject, f"noise floor of {measure}", f"{measure} is undefined under these labels")
    low, value, high = sorted(map(floor, (flips.low, flips.value, flips.high)))
    told = f"a difference between runs below {value:.4f} ({low:.4f} to {high:.4f}) in {measure} may be chance"
    return Number(NAME, flips.subject, f"noise floor of {measure}", value, low, high, len(values), told)
