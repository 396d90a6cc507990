"""Whether labels are worth buying, given free rivals.

Of the paid labelings that may be kept, the one with the largest r is bought only if its r lies more than one paired
standard error above that of every free rival: a free labeling that may be kept, too, or a control such as the runs' own
ranks. Otherwise the free labeling with the largest r is kept. If only a control stands in the way, nothing need be
bought yet. A control is never kept: it rewards what the runs have in common, and cannot label a run that differs from
them. Below six runs it stops no purchase, since its r is then too uncertain to save anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pandas as pd

from judgekit.analysis.money import Money

if TYPE_CHECKING:
    from judgekit.analysis.case import Follower
    from judgekit.labelers.base import Needs

LEAST_RUNS: Final = 6
"""Runs from which on a control stops a purchase."""


@dataclass(frozen=True)
class Keeping:
    """Which labeling to keep, and its rivals.

    Attributes:
        kept: the labeling to keep; None if none is shown to be useful, or none need be bought.
        paid: the paid labeling with the largest r that may be kept; None if all of them are free.
        rival: its free rival (labeling or control) with the largest r.
        stopped: whether a rival follows about as closely, so that the paid labeling need not be bought.
    """

    kept: Follower | None = None
    paid: Follower | None = None
    rival: Follower | None = None
    stopped: bool = False

    @property
    def nothing(self) -> bool:
        """Whether nothing need be bought because of a control alone."""
        return self.stopped and self.kept is None


def verdict(
    useful: Sequence[Follower],
    free: Sequence[str],
    controls: Sequence[Follower],
    runs: int,
    *,
    close: Callable[[Follower, Follower], bool],
) -> Keeping:
    """Return which labeling to keep.

    Args:
        useful: the labelings that may be kept and are shown to follow the answers, the largest r first.
        free: the names of those that cost nothing.
        controls: the controls that would pass as labelings.
        runs: how many runs there are.
        close: whether the second lies no more than one paired standard error below the first.
    """
    costless = [follower for follower in useful if follower.name in free]
    paid = next((follower for follower in useful if follower.name not in free), None)
    if paid is None:
        return Keeping(costless[0] if costless else None)
    rivals = [*costless, *(controls if runs >= LEAST_RUNS else ())]
    rivals.sort(key=lambda follower: -follower.r.value)
    in_the_way = [rival for rival in rivals if close(paid, rival)]
    if not in_the_way:
        return Keeping(paid, paid, rivals[0] if rivals else None)
    if costless:
        return Keeping(costless[0], paid, costless[0], stopped=True)
    return Keeping(None, paid, in_the_way[0], stopped=True)


def is_free(name: str, need: Needs | None, costs: pd.DataFrame, money: Money) -> bool:
    """Return whether labels are known to cost nothing: they exist, or neither a model nor people make them.

    Reference answers are left out: later runs answer questions that have them.
    """
    if need is not None and need.existing:
        return True
    if name in money.price:
        return money.price[name] == 0
    if name in costs.index:
        requests, price = costs["requests"].to_dict()[name], costs["money"].to_dict()[name]
        if price > 0 or requests > 0:
            return False
        return bool(price == 0 or requests == 0)
    return need is not None and not need.asked and not need.people


def free_among(names: Sequence[str], needs: Mapping[str, Needs], costs: pd.DataFrame, money: Money) -> list[str]:
    """Return which labelings are known to cost nothing."""
    return [name for name in names if is_free(name, needs.get(name), costs, money)]
