"""Claims about the cost of labels and answers: for as many new questions again, a further run, and the budget."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from judgekit.analysis.case import Case
from judgekit.analysis.claims import Claim
from judgekit.analysis.money import ANSWERING, StrategyCost, check_costs, clearly_less, takes
from judgekit.analysis.power import most_needed
from judgekit.analysis.primary import USES
from judgekit.analysis.wording import names_of, plural, rounded, some_of

_NO_REQUESTS: Final = "no requests"
_SIGNS: Final = {"USD": "$", "EUR": "€", "GBP": "£"}


def costs(case: Case) -> Iterator[Claim]:
    """Yield each labeling's cost for as many new questions again, and which need reference answers or ratings."""
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
    verb = "takes" if pool.queries == 1 else "take"
    questions = f"{plural(pool.queries, 'new question')} {verb}"
    # The number of questions appears once.
    again = "To repeat this with as many new questions takes" if pool.queries == case.questions > 1 else questions
    yield Claim("costs", f"{again} {_together(amounts)}.", line="Cost", rank=1)
    for name, amount in amounts.items():
        price = prices[name]
        each = price.money if math.isfinite(price.money) else price.requests + price.judgments
        yield Claim("cost", f"{questions} {amount} by {name}.", name, amount, value=each * pool.queries)
    yield from _references(case, prices)
    if case.source == "people":
        yield Claim("ratings", "New answers need new ratings.", ANSWERING, line="Cost", rank=2)


def _together(amounts: Mapping[str, str]) -> str:
    """Return the costs of all ways, in words; equal amounts are joined, free ones come last."""
    by_amount: dict[str, list[str]] = {}
    for name, amount in amounts.items():
        by_amount.setdefault(amount, []).append(name)
    # Free ways come last.
    free = by_amount.pop(_NO_REQUESTS, [])
    parts: list[str] = []
    for amount, names in by_amount.items():
        # The unit appears once.
        amount = amount.removesuffix(" requests") if parts else amount
        parts.append(f"{amount} for {names_of(names, 'or')}")
    if free:
        parts.append(f"{'none' if parts else _NO_REQUESTS} for {names_of(free, 'or')}")
    return "; ".join(parts)


def _amount(case: Case, price: StrategyCost, questions: int) -> str:
    """Return the cost of this many new questions, in words; "" if unknown."""
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
    # Name the shorter list.
    if free and len(free) < len(need):
        said = f"All but {names_of(free)} need reference answers{price}."
    else:
        verb = "need" if len(need) > 1 or need == [ANSWERING] else "needs"
        said = f"{names_of(need)} {verb} reference answers{price}."
    yield Claim("references", said, names_of(need), line="Cost", rank=2)


@dataclass(frozen=True)
class FurtherRun:
    """The most that a further run needs, in 95 % of cases, and its cost by one labeling and by answers.

    Attributes:
        labels, answers: the numbers that it needs.
        unit: ``money``, ``tokens`` or ``requests``; "" if either cost is unknown.
        by_labels, by_answers: the costs in this unit.
    """

    labels: int
    answers: int
    unit: str = ""
    by_labels: float = math.nan
    by_answers: float = math.nan

    @property
    def labels_pay(self) -> bool:
        """Whether labels are known to cost less than answers, by more than the spread of costs."""
        return clearly_less(self.by_labels, self.by_answers, self.answers)

    @property
    def pays_below(self) -> float:
        """The number of new labels below which they clearly cost less than answers."""
        # At this number the saving just reaches the spread of costs over that many answers.
        return self.labels * self.by_answers * (1 - 1 / math.sqrt(self.answers)) / self.by_labels


def further_run(case: Case, labeling: str) -> FurtherRun | None:
    """Return the costs of a further run by a labeling and by answers; None if its needs are unknown."""
    background, pool = case.background, case.background.pool
    if pool is None:
        return None
    labels, answers = most_needed(pool.labels_again), most_needed(pool.answers_again)
    if labels is None or answers is None:
        return None
    # Not more than there is in all.
    needed = FurtherRun(min(rounded(labels), pool.pooled), min(rounded(answers), pool.queries))
    existing = case.exists_already(labeling)
    # Existing labels cannot be bought, and the cost of rating new answers is unknown.
    if not labeling or existing or background.quality or case.source in ("people", "trusted"):
        return needed
    costs = check_costs(background.costs)
    label = takes(labeling, costs, background.money, pool)
    answer = takes(ANSWERING, costs, background.money, pool)
    for unit, of_label in label.items():
        if math.isfinite(of_label) and answer[unit] > 0:
            by_labels, by_answers = needed.labels * of_label, needed.answers * answer[unit]
            return replace(needed, unit=unit, by_labels=by_labels, by_answers=by_answers)
    return needed


def a_further_run(case: Case) -> Iterator[Claim]:
    """Yield the most labels and answers that a further run needs, and their costs."""
    kept = "" if case.kept is None else case.kept.name
    needed = further_run(case, kept)
    if needed is None:
        return
    labels, answers = plural(needed.labels, "new label"), plural(needed.answers, "new answer")
    # If trusted labels are the outcome, nobody answers.
    said = f"A new run needs at most {labels}."
    if needed.unit:
        # A price without its number of labels could not be checked.
        to_answer, to_label = (_in_unit(case, each, needed.unit) for each in (needed.by_answers, needed.by_labels))
        said = f"A new run takes at most {to_answer} to answer ({answers}), or {to_label} to label ({labels})."
    elif case.kept is None and not case.background.quality:
        said = f"A new run needs at most {answers}."  # *Keep* says that no labels are worth buying
    elif not case.background.quality:
        said = f"A new run needs at most {answers}; to label it instead needs at most {labels}."
    yield Claim("further run", said, against=ANSWERING, value=needed.labels, high=needed.labels, line="New run")


def _in_unit(case: Case, amount: float, unit: str) -> str:
    if unit == "money":
        return in_money(case, amount)
    return f"{rounded(amount) if unit == 'tokens' else round(amount):,} {unit}"


def unknown(case: Case) -> Iterator[Claim]:
    """Yield the labelings of unknown origin, which have no other claims about cost."""
    background, priced = case.background, check_costs(case.background.costs)
    names: list[str] = []
    for use in USES:
        names += [series.name for series in case.series(use)]
    nameless = [
        name
        for name in dict.fromkeys(names)
        if name not in background.needs and name not in priced.index and name not in background.money.price
    ]
    if nameless:
        said = f"It is not known which model made the labels of {some_of(nameless)}, what they need or what they cost."
        yield Claim("unknown", said, names_of(nameless), line="Cost", rank=3)


ON_COSTS: Final = (costs, unknown, a_further_run)
"""The functions that `decision` calls for claims, in order; a new finding is one more function."""
