"""What labels and answers take: claims on as many new questions, on a further run, and on the budget."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

from judgekit.analysis.case import Case
from judgekit.analysis.claims import Claim
from judgekit.analysis.foresight import most_needed
from judgekit.analysis.money import ANSWERING, PEOPLE, StrategyCost, check_costs, price_of
from judgekit.analysis.primary import CHOOSE_RUNS, FIND_QUESTIONS
from judgekit.analysis.wording import names_of, plural, rounded

_NO_REQUESTS: Final = "no requests"
_SIGNS: Final = {"USD": "$", "EUR": "€", "GBP": "£"}


def _names(case: Case) -> list[str]:
    """Return the labelings that take part for either use."""
    both = [*case.series(CHOOSE_RUNS), *case.series(FIND_QUESTIONS)]
    return list(dict.fromkeys(series.name for series in both))


def costs(case: Case) -> Iterator[Claim]:
    """Yield what as many new questions take by each labeling, and which need reference answers."""
    pool, prices = case.background.pool, case.prices(_names(case))
    if pool is None:
        return
    if case.background.money.judgment is not None:
        people = price_of(PEOPLE, None, check_costs(None), case.background.money, pool)
        prices |= {} if people is None else {PEOPLE: people}
    known = {name: price for name, price in prices.items() if _amount(case, price)}
    if not known:
        return
    yield Claim(
        "costs", f"{plural(pool.queries, 'new question')} would take {_together(case, known)}.", line="Cost", rank=1
    )
    for name, price in known.items():
        amount = _amount(case, price)
        said = f"{plural(pool.queries, 'new question')} would take {amount} by {name}."
        value = price.money if math.isfinite(price.money) else price.requests + price.judgments
        yield Claim("cost", said, name, amount, value=value * pool.queries)
    yield from _references(case, prices)
    yield from _budget(case, prices)


def _together(case: Case, known: Mapping[str, StrategyCost]) -> str:
    """Return what all ways take, in words; equal amounts stand together, those that ask nobody last."""
    by_amount: dict[str, list[str]] = {}
    for name, price in known.items():
        by_amount.setdefault(_amount(case, price), []).append(name)
    free = by_amount.pop(_NO_REQUESTS, [])
    parts = [f"{amount} for {names_of(names, 'or')}" for amount, names in by_amount.items()]
    # The unit is said once.
    parts = [part if place == 0 else part.replace(" requests for ", " for ") for place, part in enumerate(parts)]
    if free:
        parts.append(f"{'none' if parts else _NO_REQUESTS} for {names_of(free, 'or')}")
    return "; ".join(parts)


def _amount(case: Case, price: StrategyCost) -> str:
    """Return what as many new questions take, in words; "" where nothing is known."""
    assert case.background.pool is not None
    questions = case.background.pool.queries
    if math.isfinite(price.money) and price.money > 0:
        return in_money(case, price.money * questions)
    if price.judgments > 0:
        return plural(round(price.judgments * questions), "judgment")
    if not math.isfinite(price.requests):
        return ""
    return plural(round(price.requests * questions), "request") if price.requests > 0 else _NO_REQUESTS


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
    said = f"A further run needs at most about {labels:,} labels or {answers:,} answers."
    yield Claim("further run", said, against=ANSWERING, value=labels, high=labels, line="New run")
