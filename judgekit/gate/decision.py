"""Pass, fail or inconclusive: what the differences between two versions, query by query, show of a loss.

A loss is what the old version scores above the new one, from -1 to 1 in shares of the measure's range. *Fail* says that
the mean loss is above 0, *pass* that it is below the margin; what neither shows is *inconclusive*. Both are t bounds
with one more query, that of the best possible gain or of the worst possible loss. Without it, a few queries that
nobody has seen yet undo the claim: where many queries lose little and few win much, a test of "no loss" is wrong in up
to .6 of cases, and so is a sign-flip test; a true loss of the margin passes in up to .4. Where labels are missing a
loss is only known from ``low`` to ``high``, and a claim has to hold for all of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtr, stdtrit

from judgekit.errors import UsageError

__all__ = [
    "DEFAULT_STEPS",
    "POWER",
    "SHARES",
    "Decision",
    "Outcome",
    "Rules",
    "Unjudged",
    "decide",
    "decide_groups",
    "shown",
]

Floats = npt.NDArray[np.float64]
Outcome = Literal["pass", "fail", "inconclusive"]
Unjudged = Literal["bounds", "nonrelevant"]

DEFAULT_STEPS: Final = ("demote", "drop", "truncate", "identity", "balanced")
"""The steps of the ladder that need no further labels."""
SHARES: Final = (1.0, 2.0, 5.0, 10.0, 20.0)
"""Percent of the queries that a step changes."""
POWER: Final = 0.9
"""A loss is called noticeable if it is shown so often."""
_PLANNED: Final = 0.8
"""Power of a number of queries that would settle it."""
_MOST: Final = 1_000_000
BETS: Final = np.geomspace(0.004, 0.98, 20)
"""Shares of the capital that are bet, in equal parts; a mixture of bets is valid whatever the order of the queries."""


@dataclass(frozen=True)
class Rules:
    """What a gate is about.

    Attributes:
        measure: by which the versions are scored; by default the primary measure, else nDCG@10.
        max_drop: the mean loss that is too much, in hundredths of the measure's range.
        max_group_drop: the same for each group; by default ``max_drop``.
        by: the column of the queries that names their groups, to guard each.
        unjudged: what a document without a label is: ``bounds``, anything on the scale; ``nonrelevant``, 0.
        alpha: how often each claim may be false.
        strict: whether inconclusive counts as a failure.
        sequential: the state file of a gate that keeps ``alpha`` over all looks and changes.
        max_requests: for new labels, at most; documents beyond it stay without a label.
    """

    measure: str | None = None
    max_drop: float = 1.0
    max_group_drop: float | None = None
    by: str | None = None
    unjudged: Unjudged = "bounds"
    alpha: float = 0.05
    strict: bool = False
    sequential: str | None = None
    max_requests: int = 1_000

    def __post_init__(self) -> None:
        for name, value in (("max_drop", self.max_drop), ("max_group_drop", self.max_group_drop)):
            if value is not None and not 0 < value <= 100:
                raise UsageError(
                    f"{name} must be above 0 and at most 100 (hundredths of the measure's range), not {value:g}"
                )
        if not 0 < self.alpha <= 0.5:
            raise UsageError(f"alpha must be above 0 and at most .5, not {self.alpha:g}")
        if self.unjudged not in get_args(Unjudged):
            raise UsageError(f"unjudged must be one of {', '.join(get_args(Unjudged))}, not {self.unjudged!r}")
        if self.max_group_drop is not None and self.by is None:
            raise UsageError("max_group_drop needs groups: name their column with by")


@dataclass(frozen=True)
class Decision:
    """What is shown of the mean loss; all losses are shares of the range.

    Attributes:
        outcome: ``pass``, ``fail`` or ``inconclusive``.
        queries: how many it is about.
        changed: those that score otherwise, or may.
        unknown: those whose loss is open because labels are missing.
        least, most: the mean loss with missing labels at their best and at their worst for the new version; equal
            where none are missing.
        low, high: one-sided bounds of the mean loss in the population that the queries stand for.
        p: of no loss.
        margin: the loss that must not be.
        smallest: the loss that would be shown nine times in ten with queries like these, whatever the missing labels
            are; 1 or more where no loss would.
        needed: how many queries like these would settle it four times in five; None if it is settled, or if no
            reasonable number would.
        open: whether the missing labels alone may decide it.
    """

    outcome: Outcome
    queries: int
    changed: int
    unknown: int
    least: float
    most: float
    low: float
    high: float
    p: float
    margin: float
    smallest: float
    needed: int | None = None
    open: bool = False


def _with_gain(total: npt.ArrayLike, squares: npt.ArrayLike, n: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Return the mean loss and its standard error with one more query of the best possible gain, from sums over n."""
    n = np.asarray(n, np.float64)
    mean = (np.asarray(total) - 1) / (n + 1)
    spread = np.asarray(squares) + 1 - (n + 1) * mean**2
    return mean, np.sqrt(np.maximum(spread, 0) / n / (n + 1))


def shown(total: npt.ArrayLike, squares: npt.ArrayLike, n: npt.ArrayLike, alpha: float) -> npt.NDArray[np.bool_]:
    """Return where a loss is shown, from the sums of the losses and of their squares over n queries."""
    mean, error = _with_gain(total, squares, n)
    return np.asarray(mean > stdtrit(np.asarray(n, np.float64), 1 - alpha) * error)


def _t(losses: Floats, alpha: float) -> tuple[float, float]:
    """Return p of no loss and the lower bound of the mean loss."""
    mean, error = map(float, _with_gain(losses.sum(), (losses**2).sum(), len(losses)))
    p = 1 - float(stdtr(len(losses), mean / error)) if error > 0 else 1.0
    return p, max(mean - float(stdtrit(len(losses), 1 - alpha)) * error, -1.0)


def _capital(losses: Floats, mean: float) -> float:
    """Return the logarithm of what betting against a mean of at most ``mean`` has won."""
    won = np.log1p((BETS / (1 + mean))[:, None] * (losses - mean)).sum(axis=1)
    return float(np.logaddexp.reduce(won) - math.log(len(BETS)))


def _betting(losses: Floats, alpha: float) -> tuple[float, float]:
    """Return the same, valid however often and whenever one looks (Waudby-Smith and Ramdas, 2024)."""
    low, high, wanted = -1 + 1e-9, float(losses.mean()), math.log(1 / alpha)
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if _capital(losses, middle) >= wanted else (low, middle)
    return math.exp(min(-_capital(losses, 0.0), 0.0)), low


def decide(low: Floats, high: Floats, margin: float, *, alpha: float = 0.05, sequential: bool = False) -> Decision:
    """Decide on losses of at least one query.

    Args:
        low: the loss of each query with the missing labels at their best for the new version, shape (n,).
        high: the same at their worst; equal to ``low`` where no label is missing.
        margin: the mean loss that must not be.
        alpha: how often each of the two claims may be false.
        sequential: use bounds that hold at every look at a growing set of queries.
    """
    low, high = np.round(low, 12), np.round(high, 12)
    bound = _betting if sequential else _t
    p, lower = bound(low, alpha)
    upper = -bound(-high, alpha)[1]
    found = Decision(
        "pass" if upper < margin else "fail" if p <= alpha else "inconclusive",
        len(low),
        int(((low != 0) | (high != 0)).sum()),
        int((low < high).sum()),
        float(low.mean()),
        float(high.mean()),
        lower,
        upper,
        p,
        margin,
        math.nan if sequential else _smallest(low, alpha) + float((high - low).mean()),
    )
    if found.outcome != "inconclusive":
        return found
    if found.unknown:
        ends = (decide(d, d, margin, alpha=alpha, sequential=sequential) for d in (low, high))
        return replace(found, open=any(end.outcome != "inconclusive" for end in ends))
    return replace(found, needed=None if sequential else _needed(low, margin, alpha))


def _clears(gap: float, added: float, spread: float, n: int, alpha: float, power: float) -> bool:
    """Return whether n queries show that a mean is so far from a limit, in a share ``power`` of cases.

    Args:
        gap: how far it is.
        added: how far the one more query is from the mean, on the side of the limit.
        spread: the standard deviation of the losses.
        n: queries.
        alpha: of the bound.
        power: the share of cases.
    """
    error = math.sqrt((spread**2 + added**2 / n) / n)
    return gap - added / (n + 1) > float(stdtrit(n, 1 - alpha)) * error + float(ndtri(power)) * spread / math.sqrt(n)


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the first number above ``low`` from which on something holds, ``high`` if it does not before."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _smallest(losses: Floats, alpha: float) -> float:
    """Return the mean loss that would be shown nine times in ten, beside what changed here.

    Queries that lose are thought to lose as much as these changed (in the mean over points), or all where none changed.
    """
    n, changed = len(losses), float(np.abs(losses).sum())
    size = float((losses**2).sum()) / changed if changed else 1.0
    steps = 10_000

    def noticed(step: int) -> bool:
        loss = step / steps
        spread = math.sqrt(max(float(losses.var()) + loss * size - loss**2, 0))
        return _clears(loss, 1 + loss, spread, n, alpha, POWER)

    return _first(noticed, 0, steps) / steps


def _needed(losses: Floats, margin: float, alpha: float) -> int | None:
    """Return how many queries like these would show that there is a loss, or that it is below the margin."""
    mean, spread, n = float(losses.mean()), float(losses.std()), len(losses)
    least = _MOST
    for gap, added in ((mean, 1 + mean), (margin - mean, 1 - mean)):
        clears = partial(_clears, gap, added, spread, alpha=alpha, power=_PLANNED)
        least = min(least, _first(clears, n, _MOST))
    return least if least < _MOST else None


def decide_groups(
    low: Floats,
    high: Floats,
    groups: Sequence[str],
    margin: float,
    group_margin: float,
    *,
    alpha: float = 0.05,
    sequential: bool = False,
) -> tuple[Outcome, Decision, Mapping[str, Decision]]:
    """Decide on all queries and on each group; return the outcome of it all, of all queries, and of each group.

    It fails if a loss is shown anywhere (Holm over the groups and all queries), and passes only if every bound lies
    below its margin; the bounds of the groups hold together. ``groups`` holds the group of each query, or nothing.
    """
    names, of = sorted(set(groups)), np.array(groups)
    found = {"": decide(low, high, margin, alpha=alpha, sequential=sequential)}
    for name in names:
        where = of == name
        found[name] = decide(low[where], high[where], group_margin, alpha=alpha / len(names), sequential=sequential)
    rejected = True
    for place, name in enumerate(sorted(found, key=lambda name: found[name].p)):
        one = found[name]
        rejected = rejected and one.p <= alpha / (len(found) - place)
        if one.outcome != "pass":
            found[name] = replace(one, outcome="fail" if rejected else "inconclusive")
    outcomes = {one.outcome for one in found.values()}
    outcome: Outcome = "fail" if "fail" in outcomes else "pass" if outcomes == {"pass"} else "inconclusive"
    return outcome, found.pop(""), found
