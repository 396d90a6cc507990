"""Is a jury worth it: how far do its members err together, and does their majority beat the best of them alone?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np

from judgekit.analysis.coefficients import Floats
from judgekit.analysis.resampling import unseen
from judgekit.client.session import Session
from judgekit.labelers.judge import Judge
from judgekit.labelling import stored_outcomes
from judgekit.plugins.audit.audited_run import Material
from judgekit.plugins.audit.numbers import Bools, Ints, Number, jackknife, unknown

NAME: Final = "jury"


def of_voices(material: Material, name: str, session: Session) -> list[Number]:
    """Return the worth of a judge's own voices: its jury, its samples or its repeats, as the store holds them."""
    judge = material.prepared.labelers[name]
    if not isinstance(judge, Judge) or not (judge.jury or judge.samples > 1 or judge.repeats > 1):
        return []
    rows: list[list[float]] = []
    members: list[str] = []
    for unit in material.units_of(judge, material.pairs):
        outcomes = stored_outcomes(judge, unit, session)
        votes = judge.votes(unit, outcomes) if outcomes else []
        if votes:
            members = [voice for voice, _ in votes]
        rows.append([math.nan if value is None else value for _, value in votes])
    if not members:
        why = "the store does not hold them (--cache names a store)"
        return [unknown(NAME, "its own votes", "effective votes", why)]
    values = np.full((len(rows), len(members)), np.nan)
    for place, row in enumerate(rows):
        if row:
            values[place] = row
    cast = np.stack([material.votes(name, of_member) for of_member in values.T])
    units, groups = material.units[material.query], material.groups[material.query]
    return jury(cast, material.judged, members, units=units, groups=groups, confidence=material.confidence)


def jury(
    votes: Floats, truth: Floats, members: Sequence[str], *, units: Ints, groups: Ints, confidence: float = 0.95
) -> list[Number]:
    """Return the worth of a jury; ``units`` and ``groups`` say of each vote its question and its jackknife group."""
    # A vote errs where it is not what the reference says. With a mean correlation r of the members' errors m votes are
    # worth m / (1 + (m - 1) r) independent ones (Kish, "Survey sampling", 1965). A tied majority says no. The best
    # single member is chosen by kappa on the other groups of queries than those on which it is compared with the
    # majority: chosen and tested on the same ones it would have luck on its side.
    there = np.isfinite(votes).all(axis=0) & np.isfinite(truth)
    cast, right, group = votes[:, there] > 0, truth[there] > 0, groups[there]
    n, size, used = int(there.sum()), len(members), np.unique(group)
    subject = " + ".join(members) if size <= 5 else f"{size} votes"
    if len(used) < 2:
        return [unknown(NAME, subject, "effective votes", "the reference judges too few pairs that all voted on", n)]
    chosen = np.empty_like(right)
    for left_out in used:
        inside = group == left_out
        best_elsewhere = _kappa(cast[:, ~inside], right[~inside]).argmax()
        chosen[inside] = cast[best_elsewhere, inside]
    majority = 2 * cast.sum(axis=0) > size
    judged, wrong = np.stack([*cast, majority, chosen]), cast != right

    def worth(keep: Bools) -> list[float]:
        *alone, together, best = _kappa(judged[:, keep], right[keep])
        errors = wrong[:, keep]
        erring = errors[errors.std(axis=1) > 0]  # a member that never errs has no correlation
        first, second = np.triu_indices(len(erring), 1)
        shared = np.corrcoef(erring)[first, second].mean() if len(first) else np.nan
        return [shared, together, max(alone), together - best]

    # What one question does on which all err (or one alone): the rarer errors and relevant pairs are, the more.
    count, rate = len(np.unique(units[there])), max(float(wrong.mean()), 1e-9)
    of_errors = unseen(count, (1 - rate) / rate)
    of_kappa = unseen(count, 0.5 / max(float(right.mean() * (1 - right.mean())), 1e-9))
    floor = np.array([of_errors, of_kappa, of_kappa, of_kappa])
    estimates = jackknife(worth, group, confidence, floor)
    shared, together, best, gain = (estimate.within(-1.0, 1.0) for estimate in estimates)
    number = partial(Number, NAME, subject, n=n)
    if math.isnan(shared.value):
        why = "fewer than two members ever err"
        correlation = unknown(NAME, subject, "mean correlation of errors", why, n)
        effective = unknown(NAME, subject, "effective votes", why, n)
    else:
        # The more members err together, the fewer votes theirs are worth: the ends change places.
        value, low, high = (size / max(1 + (size - 1) * r, 1e-9) for r in (shared.value, shared.high, shared.low))
        counts = f"{size} votes cost {size} times as much and count like {value:.1f} independent ones"
        correlation = number("mean correlation of errors", *shared)
        effective = number("effective votes", value, low, max(value, min(high, float(size))), verdict=counts)
    if gain.low > 0:
        flag = ""
        verdict = f"the majority beats the best single one by {gain.value:.3f} of kappa, at {size} times the cost"
    else:
        flag = "jury adds nothing"
        behind = "is behind" if gain.high < 0 else "is not shown to beat"
        alone = members[int(_kappa(cast, right).argmax())]
        verdict = f"the majority {behind} the best single one: use {alone} alone"
    return [
        correlation,
        effective,
        number("kappa of the majority", *together),
        number("kappa of the best single", *best),
        number("majority minus best single", *gain, verdict=verdict, flag=flag),
    ]


def _kappa(said: Bools, right: Bools) -> Floats:
    """Return Cohen's kappa of each row of votes with the reference; 0 where chance alone agrees fully."""
    agree = (said == right).mean(axis=-1)
    yes, true = said.mean(axis=-1), right.mean()
    chance = yes * true + (1 - yes) * (1 - true)
    open_ = np.where(chance < 1, 1 - chance, 1)
    return np.asarray(np.where(chance < 1, (agree - chance) / open_, 0.0))
