"""What labels cost, and what a budget buys: the purchase order.

Labels that exist can be used here and cannot label a new pair, so they are never bought and never the least expensive.
What makes an answer right, a reference, has to be written for every new question that containment, utility or answering
is to label. Without prices requests, judgments and references are counted, and nothing is said to cost less.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from judgekit.analysis.findings import UNKNOWN, Findings, Ranged
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
"""Standalone cost per labeling: what it would take with an empty store. NaN is unknown, never 0. ``request_seconds`` is
the time of all requests added up, as if they had been sent one after the other."""

_ORDER: Final = (
    *("strategy", "requests", "judgments", "references", "money", "total", "questions"),
    *("r", "r_low", "r_high", "gain", "gain_low", "gain_high", "note"),
)
ANSWERING: Final = "answers"
"""The strategy of answering end to end; the costs table may have a row of this name, at the primary depth."""
PEOPLE: Final = "people"
NOTHING: Final = "nothing more"

EXISTING: Final = "existing: cannot label new pairs"
NOT_PILOTED: Final = "unknown: not piloted"
HALF: Final = "half of the answers choose for the other half: a gain below 0 is chance"


@dataclass(frozen=True)
class Money:
    """Costs that are not prices of an endpoint.

    Attributes:
        currency: currency of all money, e.g. ``USD``.
        reference: cost of writing one reference answer.
        judgment: cost of one judgment of a (query, doc) by people; or give wage and minutes.
        wage: people's wage per hour.
        minutes: minutes per judgment.
        price: cost of one label, by labeling, for labelers that are neither people nor tokens.
        budget: money for further questions.

    Raises:
        UsageError: an amount is negative, or a judgment is priced twice.
    """

    currency: str = ""
    reference: float | None = None
    judgment: float | None = None
    wage: float | None = None
    minutes: float | None = None
    price: dict[str, float] = field(default_factory=dict)
    budget: float | None = None

    def __post_init__(self) -> None:
        amounts = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in ("currency", "price")}
        for name, amount in {**amounts, **{f"price of {name}": price for name, price in self.price.items()}}.items():
            if amount is not None and not 0 <= amount < float("inf"):
                raise UsageError(f"[money] {name} must be at least 0, not {amount:g}")
        if (self.wage is None) != (self.minutes is None) or (self.judgment is not None and self.wage is not None):
            raise UsageError(
                "[money] prices a judgment either by judgment, or by wage (per hour) and minutes: use one of the two"
            )

    @property
    def by_people(self) -> float | None:
        """The price of one judgment by people; None where it is unknown."""
        if self.wage is not None and self.minutes is not None:
            return self.wage * self.minutes / 60
        return self.judgment


@dataclass(frozen=True, slots=True)
class Pool:
    """How much there is to label and to answer, at the depth of the primary measure.

    Attributes:
        queries: that were labelled.
        pairs: (query, doc) of them within the depth; ``pooled`` within the depth of the pool, which the costs are of.
        pooled: see above.
        lists: different lists of documents to answer from.
        at_hand: queries that there are, labelled or not.
        labels_again, answers_again: the least and the most new labels and answers that one further run would need, by
            leaving out each run in turn; None with one run.
    """

    queries: int
    pairs: int
    pooled: int
    lists: int
    at_hand: int
    labels_again: tuple[int, int] | None = None
    answers_again: tuple[int, int] | None = None


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


def purchase_order(
    findings: Findings, needs: Mapping[str, Needs], costs: pd.DataFrame, money: Money, pool: Pool | None
) -> pd.DataFrame:
    """Return what each strategy costs on a new question, what the budget buys of it, and what this pilot found of it.

    Args:
        findings: for choosing between the runs, or for finding questions where there is one run.
        needs: of each labeling.
        costs: as `check_costs` returns them.
        money: prices and budget.
        pool: how much there is; None where only tables are known, and then nothing is said of new questions.

    Returns:
        Rows ``strategy, requests, judgments, references, money`` (of a new question, NaN where unknown), ``total`` (the
        money for as many as the pilot has), ``questions`` (that the budget pays for, those of the pilot with them, and
        at most those at hand), ``r, r_low, r_high, gain, gain_low, gain_high`` and ``note``.
    """
    rows = [_row(NOTHING, note="", pool=pool, money=money, cost=(0, 0, 0, 0), gain=Ranged(0, 0, 0))]
    for one in findings.each:
        need = needs.get(one.labeling)
        existing = need is not None and need.existing
        cost = (np.nan,) * 4 if existing else _new_question(one.labeling, need, costs, money, pool)
        rows.append(_row(one.labeling, EXISTING * existing, pool, money, cost, one.gain, one.r))
    if pool is not None:
        judged = _new_question(PEOPLE, None, costs, money, pool)
        rows.append(_row(PEOPLE, NOT_PILOTED, pool, money, judged))
        asked = _new_question(ANSWERING, None, costs, money, pool)
        below = findings.answers.value < 0 or findings.answers.low < 0
        rows.append(_row(ANSWERING, HALF * below, pool, money, asked, findings.answers, Ranged(1.0)))
    return pd.DataFrame(rows, columns=list(_ORDER))


def _new_question(
    strategy: str, need: Needs | None, costs: pd.DataFrame, money: Money, pool: Pool | None
) -> tuple[float, float, float, float]:
    """Return the requests, judgments, references and the money that a new question takes."""
    if pool is None or not pool.queries:
        return np.nan, np.nan, np.nan, np.nan
    pairs = pool.pairs / pool.queries
    if strategy == PEOPLE:
        return 0, pairs, 0, pairs * (np.nan if money.by_people is None else money.by_people)
    known = {column: float(costs[column].get(strategy, np.nan)) for column in ("requests", "money")}
    share = (1 if strategy == ANSWERING else pool.pairs / max(pool.pooled, 1)) / pool.queries
    requests, spent = known["requests"] * share, known["money"] * share
    if strategy in money.price:
        spent = pairs * money.price[strategy]
    # The outcome that answering is rated by is compared with references, as containment and utility are.
    references = float(need.references) if need is not None else float(strategy == ANSWERING)
    written = references * (np.nan if money.reference is None else money.reference) if references else 0.0
    return requests, 0, references, spent + written


def _row(
    strategy: str,
    note: str,
    pool: Pool | None,
    money: Money,
    cost: tuple[float, float, float, float],
    gain: Ranged = UNKNOWN,
    r: Ranged = UNKNOWN,
) -> tuple[object, ...]:
    price, bought = cost[-1], np.nan
    if pool is not None and money.budget is not None and price > 0:
        bought = float(min(pool.queries * (note != NOT_PILOTED) + np.floor(money.budget / price), pool.at_hand))
    total = price * (pool.queries if pool else np.nan)
    return strategy, *cost, total, bought, *r, *gain, note
