"""What labels and answers cost.

Labels that exist can be used here and cannot label a new pair, so they are never bought and never the least expensive.
A reference answer has to be written for every new question that containment, utility or answering is to label. Without
prices, requests, judgments and references are counted, and nothing is said to cost less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from judgekit.collection import Pool
from judgekit.data.tables import Table
from judgekit.errors import DataError, UsageError

if TYPE_CHECKING:
    from judgekit.labelers.base import Needs

COSTS: Final = Table(
    "costs",
    {"labeling": "str"},
    {
        "requests": "float",
        "prompt_tokens": "float",
        "completion_tokens": "float",
        "money": "float",
        "request_seconds": "float",
    },
)
"""Standalone cost per labeling, as if the store were empty. NaN is unknown, never 0. ``request_seconds`` is
the time of all requests added up, as if they had been sent one after the other."""

ANSWERING: Final = "answers"
"""The strategy of answering end to end; the costs table may have a row of this name, for the primary depth."""
PEOPLE: Final = "people"


@dataclass(frozen=True)
class Money:
    """Costs other than endpoint prices.

    Attributes:
        currency: currency of all money, e.g. ``USD``.
        reference: cost of writing one reference answer.
        judgment: cost of one judgment of a (query, doc) by people.
        price: cost of one label, by labeling, for labelers that are not paid as people or by tokens.
        budget: money for further questions.

    Raises:
        UsageError: an amount is negative.
    """

    currency: str = ""
    reference: float | None = None
    judgment: float | None = None
    price: dict[str, float] = field(default_factory=dict)
    budget: float | None = None

    def __post_init__(self) -> None:
        amounts = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in ("currency", "price")}
        for name, amount in {**amounts, **{f"price of {name}": price for name, price in self.price.items()}}.items():
            if amount is not None and not 0 <= amount < float("inf"):
                raise UsageError(f"[money] {name} must be at least 0, not {amount:g}")


@dataclass(frozen=True, slots=True)
class StrategyCost:
    """The cost of a new question by one way of judging it; NaN is unknown, never 0.

    Attributes:
        requests: to an LLM.
        judgments: by people.
        references: reference answers to be written.
        money: for all of these, in the currency of the prices.
    """

    requests: float = np.nan
    judgments: float = np.nan
    references: float = np.nan
    money: float = np.nan

    def saved(self, other: StrategyCost, questions: int) -> dict[str, float]:
        """Return what it is known to save beyond the spread over this many questions, and how much it takes of it.

        ``money`` if both prices are known; else any of ``requests``, ``judgments`` and ``reference answers``, if it
        takes more of none.
        """
        counts = {
            "requests": (self.requests, other.requests),
            "judgments": (self.judgments, other.judgments),
            "reference answers": (self.references, other.references),
        }
        # Money weighs all of them against each other, if both prices are known.
        if np.isfinite(self.money) and np.isfinite(other.money):
            counts = {"money": (self.money, other.money)}
        saved: dict[str, float] = {}
        for name, (mine, theirs) in counts.items():
            # Requests cannot be weighed against references: a way that takes more of anything is not known to cost
            # less.
            if not mine <= theirs:
                return {}
            if clearly_less(mine, theirs, questions):
                saved[name] = mine
        return saved

    def below(self, other: StrategyCost, questions: int) -> bool:
        """Return whether it is known to cost less, by more than the spread of costs over this many questions."""
        return bool(self.saved(other, questions))


def clearly_less(cost: float, other: float, questions: int) -> bool:
    """Return whether a cost per question is lower than another by more than the spread of their means."""
    # Costs vary by question with about half of their mean as standard deviation, so this is two standard errors.
    return bool(other - cost > max(cost, other) / math.sqrt(max(questions, 1)))


def check_costs(costs: pd.DataFrame | None) -> pd.DataFrame:
    """Return the costs as a checked table with all columns, by labeling; empty if there are none."""
    frame = COSTS.empty() if costs is None else COSTS.check(costs)
    twice = frame["labeling"][frame["labeling"].duplicated()]
    if len(twice):
        raise DataError(f"the costs table has two rows for labeling {twice.iloc[0]!r}")
    frame = frame.reindex(columns=[*COSTS.columns, *COSTS.optional])
    if (frame[list(COSTS.optional)] < 0).any(axis=None):
        raise DataError("the costs table holds a negative cost")
    return frame.set_index("labeling")


def price_of(
    strategy: str, need: Needs | None, costs: pd.DataFrame, money: Money, pool: Pool | None
) -> StrategyCost | None:
    """Return the cost of a new question by a labeling, `ANSWERING` or `PEOPLE`; None if it cannot be bought.

    Args:
        strategy: the labeling, or one of the two.
        need: what the labeling needs.
        costs: as `check_costs` returns them.
        money: prices.
        pool: the size of the pool; None if only tables are known, so that nothing is known about new questions.
    """
    # Labels that exist cannot be bought for a new question.
    if pool is None or not pool.queries or (need is not None and need.existing):
        return None
    pairs = pool.pairs / pool.queries
    if strategy == PEOPLE:
        return StrategyCost(0, pairs, 0, pairs * (np.nan if money.judgment is None else money.judgment))
    known = {column: float(costs[column].get(strategy, np.nan)) for column in ("requests", "money")}
    # Costs are those of the whole pool, which may be deeper than the measure looks.
    share = (1 if strategy == ANSWERING else pool.pairs / max(pool.pooled, 1)) / pool.queries
    spent = known["money"] * share
    if strategy in money.price:
        spent = pairs * money.price[strategy]
    # The outcome of answering needs references, as containment and utility do.
    references = float(need.references) if need is not None else float(strategy == ANSWERING)
    if references:
        spent += references * (np.nan if money.reference is None else money.reference)
    return StrategyCost(known["requests"] * share, 0, references, spent)


def takes(strategy: str, costs: pd.DataFrame, money: Money, pool: Pool) -> dict[str, float]:
    """Return the cost of one label, or of one answer for `ANSWERING`, in money, tokens and requests; NaN is unknown.

    References are left out: a further run answers questions that have them.
    """
    # Runs that return the same list share its answer.
    number = pool.lists if strategy == ANSWERING else pool.pooled
    each = costs.reindex([strategy]).iloc[0] / (number or np.nan)
    tokens = each["prompt_tokens"] + each["completion_tokens"]
    price = money.price.get(strategy, each["money"])
    return {"money": float(price), "tokens": float(tokens), "requests": float(each["requests"])}
