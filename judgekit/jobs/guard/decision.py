"""Pass, fail or inconclusive: what differences by query between two versions show about a loss.

A loss is the old version's score minus the new one's, from -1 to 1 as a share of the measure's range. *Fail* means that
the mean loss is above 0, *pass* that it is below the margin, *inconclusive* that neither is shown. Both are t bounds
with one extra query, of the best possible gain or the worst possible loss. Without it, a few unseen queries undo the
claim: if many queries lose little and few win much, a test of "no loss" is wrong in up to .6 of cases, and so is a
sign-flip test; a true loss of the margin passes in up to .4. If labels are missing, a loss is only known from ``low``
to ``high``, and a claim must hold for all of it. For a fixed suite, only its own loss is reported.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal

import numpy as np
from scipy.special import ndtri, stdtr, stdtrit

from judgekit.analysis.coefficients import Floats

GateOutcome = Literal["pass", "fail", "inconclusive"]

_ALPHA: Final = 0.05
"""The largest share of false claims of each kind."""
_PLANNED: Final = 0.8
"""The power with which a number of queries would settle it."""
_MOST: Final = 1_000_000
# With fewer differing questions, bounds only reflect the unseen query, and would be useless.
_FEWEST: Final = 5


@dataclass(frozen=True)
class GateDecision:
    """The decision on the mean loss; all losses are shares of the range.

    Attributes:
        outcome: ``pass``, ``fail`` or ``inconclusive``.
        queries: the number of queries, or of groups.
        changed: the number whose score changed, or may have.
        unknown: the number whose loss is open because labels are missing.
        least, most: the mean loss with missing labels at their best and at their worst for the new version; equal if
            none are missing.
        margin: the largest acceptable loss.
        low, high: one-sided bounds of the mean loss in the population of the queries; None for a fixed suite, and if
            too few queries differ.
        p: the p-value of no loss; None for a fixed suite.
        needed: the number of such queries that would settle it four times in five; None if it is settled, or if no
            reasonable number would.
        open: whether the missing labels alone may decide it.
    """

    outcome: GateOutcome
    queries: int
    changed: int
    unknown: int
    least: float
    most: float
    margin: float
    low: float | None = None
    high: float | None = None
    p: float | None = None
    needed: int | None = None
    open: bool = False


def _t(losses: Floats) -> tuple[float, float]:
    """Return p of no loss and the lower bound of the mean loss, both with an extra query of the best possible gain."""
    n = len(losses)
    mean = (float(losses.sum()) - 1) / (n + 1)
    spread = float((losses**2).sum()) + 1 - (n + 1) * mean**2
    error = math.sqrt(max(spread, 0) / n / (n + 1))
    p = 1 - float(stdtr(n, mean / error)) if error > 0 else 1.0
    return p, max(mean - float(stdtrit(n, 1 - _ALPHA)) * error, -1.0)


def bounds(losses: Floats) -> tuple[float, float]:
    """Return the lower and the upper bound of the mean loss, each at 95 %."""
    return _t(losses)[1], -_t(-losses)[1]


def decide_suite(low: Floats, high: Floats, margin: float) -> GateDecision:
    """Decide on the mean loss of only these queries."""
    # Equal scores may differ in their last digit, which must not count as a change.
    low, high = np.round(low, 12), np.round(high, 12)
    least, most = round(float(low.mean()), 12), round(float(high.mean()), 12)
    outcome: GateOutcome = "inconclusive"
    if least > margin:
        outcome = "fail"
    elif most <= margin:
        outcome = "pass"
    changed, unknown = int(((low != 0) | (high != 0)).sum()), int((low < high).sum())
    return GateDecision(
        outcome,
        len(low),
        changed=changed,
        unknown=unknown,
        least=least,
        most=most,
        margin=margin,
        open=outcome == "inconclusive",
    )


def decide(low: Floats, high: Floats, margin: float) -> GateDecision:
    """Decide on the population of at least one query."""
    low, high = np.round(low, 12), np.round(high, 12)
    p, lower, upper = _t(low)[0], bounds(low)[0], bounds(high)[1]
    outcome: GateOutcome = "inconclusive"
    # Many small losses may be a significant loss far below the limit: such a change passes.
    if upper < margin:
        outcome = "pass"
    elif p <= _ALPHA:
        outcome = "fail"
    decision = replace(decide_suite(low, high, margin), outcome=outcome, p=p, low=lower, high=upper, open=False)
    if outcome != "inconclusive":
        return decision
    if decision.changed < _FEWEST:
        decision = replace(decision, low=None, high=None)
    if decision.unknown:
        # Missing labels matter only if some labels would decide it; otherwise more questions are needed.
        return replace(decision, open=any(decide(d, d, margin).outcome != "inconclusive" for d in (low, high)))
    return replace(decision, needed=_needed(low, margin))


def _clears(gap: float, added: float, spread: float, n: int) -> bool:
    """Return whether n queries show a mean at this distance from a limit, with the planned power."""
    # The more queries there are, the less the one unseen query in the bounds counts.
    error = math.sqrt((spread**2 + added**2 / n) / n)
    reach = float(stdtrit(n, 1 - _ALPHA)) * error + float(ndtri(_PLANNED)) * spread / math.sqrt(n)
    return gap - added / (n + 1) > reach


def _needed(losses: Floats, margin: float) -> int | None:
    """Return the number of such queries that would show a loss, or that it is below the margin."""
    mean, spread, n = float(losses.mean()), float(losses.std()), len(losses)
    sides = ((mean, 1 + mean), (margin - mean, 1 - mean))
    more = range(n + 1, _MOST)
    least = min(bisect_left(more, True, key=partial(_clears, gap, added, spread)) for gap, added in sides)
    if least < len(more):
        return more[least]
    return None
