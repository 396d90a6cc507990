"""What labels and answers take: claims on as many new questions, on a further run, and on the budget."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

from judgekit.analysis.case import Case
from judgekit.analysis.claims import Claim
from judgekit.analysis.foresight import most_needed
from judgekit.analysis.money import ANSWERING, StrategyCost
from judgekit.analysis.wording import names_of, plural, rounded

_NO_REQUESTS: Final = "no requests"
_SIGNS: Final = {"USD": "$", "EUR": "€", "GBP": "£"}


def costs(case: Case) -> Iterator[Claim]:
    """Yield what as many new questions take by each labeling, and which need reference answers or ratings."""
    pool, prices = case.background.pool, case.prices
    if pool is None:
        return
    amounts: dict[str, str] = {}
    for name, price in prices.items():
        amount = _amount(case, price, pool.queries)
        if amount:
            amounts[name] = amount
    if not amounts:
        return
    questions = plural(pool.queries, "new question")
    yield Claim("costs", f"{questions} would take {_together(amounts)}.", line="Cost", rank=1)
    for name, amount in amounts.items():
        price = prices[name]
        value = price.money if math.isfinite(price.money) else price.requests + price.judgments
        said = f"{questions} would take {amount} by {name}."
        yield Claim("cost", said, name, amount, value=value * pool.queries)
    yield from _references(case, prices)
    if case.source == "people":
        yield Claim("ratings", "New answers need new ratings.", ANSWERING, line="Cost", rank=2)
    yield from _budget(case, prices)


def _together(amounts: Mapping[str, str]) -> str:
    """Return what all ways take, in words; equal amounts stand together, those that ask nobody last."""
    by_amount: dict[str, list[str]] = {}
    for name, amount in amounts.items():
        by_amount.setdefault(amount, []).append(name)
    free = by_amount.pop(_NO_REQUESTS, [])
    parts: list[str] = []
    for amount, names in by_amount.items():
        # The unit is said once.
        amount = amount.removesuffix(" requests") if parts else amount
        parts.append(f"{amount} for {names_of(names, 'or')}")
    if free:
        parts.append(f"{'none' if parts else _NO_REQUESTS} for {names_of(free, 'or')}")
    return "; ".join(parts)


def _amount(case: Case, price: StrategyCost, questions: int) -> str:
    """Return what so many new questions take, in words; "" where nothing is known."""
    if math.isfinite(price.money) and price.money > 0:
        return in_money(case, price.money * questions)
    if price.judgments > 0:
        return plural(round(price.judgments * questions), "judgment")
    if price.requests > 0:
        return plural(round(price.requests * questions), "request")
    return _NO_REQUESTS if price.requests == 0 else ""


def in_money(case: Case, amount: float) -> str:
    """Return an amount of money in words."""
    currency = case.background.money.currency
    sign = _SIGNS.get(currency, f"{currency} " if currency else "")
    return f"{sign}{amount:,.0f}" if amount >= 10 else f"{sign}{amount:,.2f}"


def _references(case: Case, prices: Mapping[str, StrategyCost]) -> Iterator[Claim]:
    need = [name for name, price in prices.items() if price.references > 0]
    free = [name for name in prices if name not in need]
    if not need:
        return
    each = case.background.money.reference
    price = "" if each is None else f" ({in_money(case, each)} each)"
    if free and len(free) < len(need):
        said = f"All but {names_of(free)} need reference answers{price}."
    else:
        verb = "need" if len(need) > 1 or need == [ANSWERING] else "needs"
        said = f"{names_of(need)} {verb} reference answers{price}."
    yield Claim("references", said, names_of(need), line="Cost", rank=2)


def _budget(case: Case, prices: Mapping[str, StrategyCost]) -> Iterator[Claim]:
    """Yield how many further questions the budget pays for."""
    budget = case.background.money.budget
    if budget is None:
        return
    bought = {name: int(budget / price.money) for name, price in prices.items() if price.money > 0}
    if bought:
        parts = "; ".join(f"{name} {number:,}" for name, number in bought.items())
        said = f"A budget of {in_money(case, budget)} pays for so many questions: {parts}."
        yield Claim("budget", said, value=budget, line="Cost", rank=3)


def a_further_run(case: Case) -> Iterator[Claim]:
    """Yield how many labels and answers a further run needs at most."""
    pool = case.background.pool
    if pool is None:
        return
    labels, answers = most_needed(pool.labels_again), most_needed(pool.answers_again)
    if labels is None or answers is None:
        return
    # Not more than there is in all.
    labels, answers = min(rounded(labels), pool.pooled), min(rounded(answers), pool.queries)
    said = f"A further run needs at most about {labels:,} labels"
    # Where trusted labels are the outcome, nobody answers.
    said += "." if case.background.quality else f" or {answers:,} answers."
    yield Claim("further run", said, against=ANSWERING, value=labels, high=labels, line="New run")
