"""What requests cost: tokens, money, budgets.

Two columns are never mixed. *Standalone* is what a stage would take with an empty store: every distinct request that
it needed, whoever paid for it. *Incurred* is what was really sent now, failed attempts included. Money that cannot be
known is None, and shown as "-".
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from judgekit.errors import BudgetError, UsageError
from judgekit.wire.types import Endpoint

__all__ = ["Amount", "Budget", "Price", "Prices", "Spending", "Usage"]


@dataclass(frozen=True, slots=True)
class Price:
    """Money per million tokens, in the user's currency."""

    prompt: float
    completion: float

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the money for that many tokens."""
        return (self.prompt * prompt_tokens + self.completion * completion_tokens) / 1e6


Prices = Mapping[str, Price]
"""Prices by endpoint name or model id; the endpoint's name wins."""


@dataclass(slots=True)
class Amount:
    """A sum over requests, which may grow.

    Attributes:
        requests: how many.
        prompt_tokens, completion_tokens: as the server reported them.
        money: None if the price of any of them is unknown.
        unreported: requests for which the server reported no tokens; they count as 0 tokens and make money a
            lower bound.
        seconds: what each reply took from sending its request to having it, added up; requests that run at the same
            time count each. It is stored with the replies, so that it does not depend on when they were asked for.
        untimed: requests for which that is not known, which count as 0.
    """

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    money: float | None = 0.0
    unreported: int = 0
    seconds: float = field(default=0.0, compare=False)
    untimed: int = 0

    def count(self, usage: tuple[int, int] | None, seconds: float | None) -> None:
        """Add a request that took ``usage`` (prompt, completion) tokens and ``seconds``, leaving money out."""
        self.requests += 1
        if usage is None:
            self.unreported += 1
        else:
            self.prompt_tokens += usage[0]
            self.completion_tokens += usage[1]
        if seconds is None:
            self.untimed += 1
        else:
            self.seconds += seconds

    def add(self, usage: tuple[int, int] | None, price: Price | None, seconds: float | None) -> None:
        """Add a request that took ``usage`` (prompt, completion) tokens at a price, and ``seconds``."""
        self.count(usage, seconds)
        if price is None:
            self.money = None
        elif usage is not None and self.money is not None:
            self.money += price.of(*usage)

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            None if self.money is None or other.money is None else self.money + other.money,
            self.unreported + other.unreported,
            self.seconds + other.seconds,
            self.untimed + other.untimed,
        )


@dataclass(slots=True)
class Usage:
    """What a stage, or an endpoint, took so far.

    Attributes:
        standalone: what it would take with an empty store.
        incurred: what was sent now, failed attempts included.
        wall_s: seconds spent in it.
        sent: distinct requests answered by the endpoint now.
        cached: distinct requests replayed from the store.
        failed: distinct requests that have no reply.
        again: distinct requests, of those that have one, asked because the reply to another could not be used.

    The sum of two stages is what they take one after the other, without sharing any request.
    """

    standalone: Amount = field(default_factory=Amount)
    incurred: Amount = field(default_factory=Amount)
    wall_s: float = 0.0
    sent: int = 0
    cached: int = 0
    failed: int = 0
    again: int = 0

    @classmethod
    def of(cls, values: Mapping[str, Any], *, earlier: bool = False) -> Self:
        """Return a usage from plain values; of an ``earlier`` run what was sent then comes from the store now."""
        standalone, incurred = Amount(**values["standalone"]), Amount(**values["incurred"])
        usage = cls(**{**values, "standalone": standalone, "incurred": incurred})
        if earlier:
            usage.incurred, usage.wall_s = Amount(), 0.0
            usage.sent, usage.cached = 0, usage.sent + usage.cached
        return usage

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.standalone + other.standalone,
            self.incurred + other.incurred,
            self.wall_s + other.wall_s,
            self.sent + other.sent,
            self.cached + other.cached,
            self.failed + other.failed,
            self.again + other.again,
        )


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that may be sent; None means no limit. Replays from the store are free."""

    max_requests: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None

    def less(self, spent: Amount) -> Budget:
        """Return what is left of it."""
        requests, tokens, cost = self.max_requests, self.max_tokens, self.max_cost
        used = spent.prompt_tokens + spent.completion_tokens
        return Budget(
            None if requests is None else max(0, requests - spent.requests),
            None if tokens is None else max(0, tokens - used),
            None if cost is None else max(0.0, cost - (spent.money or 0.0)),
        )

    def __bool__(self) -> bool:
        return (self.max_requests, self.max_tokens, self.max_cost) != (None, None, None)


class Spending:
    """Keeps to the budget of a session: what was spent, and what the requests in flight may yet cost."""

    def __init__(self, budget: Budget, prices: Prices) -> None:
        self.budget = budget
        self._prices = prices
        self._requests = 0
        self._tokens, self._money = 0, 0.0
        self._tokens_in_flight, self._money_in_flight = 0, 0.0
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def spent(self) -> tuple[float, float, float]:
        """Requests, tokens and money so far."""
        return self._requests, self._tokens, self._money

    def count(self, amount: Amount) -> None:
        """Count what was spent elsewhere."""
        self._requests += amount.requests
        self._tokens += amount.prompt_tokens + amount.completion_tokens
        self._money += amount.money or 0.0

    @property
    def money(self) -> float | None:
        """The money so far; None where no price is known."""
        return self._money if self._prices else None

    def price(self, endpoint: Endpoint) -> Price | None:
        """Return the price of an endpoint, if the user gave one."""
        return self._prices.get(endpoint.name) or self._prices.get(endpoint.model)

    def check(self, endpoint: Endpoint) -> None:
        """Refuse a cost limit that could not be kept.

        Raises:
            UsageError: there is a cost limit and the endpoint has no price.
        """
        if self.budget.max_cost is not None and self.price(endpoint) is None:
            raise UsageError(
                f"a cost limit needs the price of the model {endpoint.model!r} (endpoint {endpoint.name!r}),"
                " and the price table has none"
            )

    async def reserve(self, endpoint: Endpoint, estimate: tuple[int, int]) -> None:
        """Set aside what the next request may cost, (prompt, completion) tokens estimated.

        Estimates are the most that a reply may take: where those of the requests in flight leave no room, wait for
        what they really took.

        Raises:
            BudgetError: it would exceed the budget beside what is spent already.
        """
        while not self._reserved(endpoint, estimate):
            settled = asyncio.get_running_loop().create_future()
            self._waiting.append(settled)
            await settled

    def _reserved(self, endpoint: Endpoint, estimate: tuple[int, int]) -> bool:
        budget = self.budget
        price = self.price(endpoint)
        money = price.of(*estimate) if price else 0.0
        tokens = sum(estimate)
        if budget.max_requests is not None and self._requests + 1 > budget.max_requests:
            raise BudgetError(f"the budget of {budget.max_requests} requests is used up")
        if budget.max_tokens is not None and self._tokens + tokens > budget.max_tokens:
            raise BudgetError(
                f"the next request (about {tokens} tokens) would exceed the budget of {budget.max_tokens} tokens:"
                f" {self._tokens} are used"
            )
        if budget.max_cost is not None and self._money + money > budget.max_cost:
            raise BudgetError(
                f"the next request (about {money:.6g}) would exceed the budget of {budget.max_cost:g}:"
                f" {self._money:.6g} are spent"
            )
        if budget.max_tokens is not None and self._tokens + self._tokens_in_flight + tokens > budget.max_tokens:
            return False
        if budget.max_cost is not None and self._money + self._money_in_flight + money > budget.max_cost:
            return False
        self._requests += 1
        self._tokens_in_flight += tokens
        self._money_in_flight += money
        return True

    def settle(self, endpoint: Endpoint, estimate: tuple[int, int], usage: tuple[int, int] | None) -> None:
        """Replace an estimate by what was used, as far as that is known; None is nothing."""
        price = self.price(endpoint)
        self._tokens_in_flight -= sum(estimate)
        self._tokens += sum(usage or ())
        if price:
            self._money_in_flight -= price.of(*estimate)
            self._money += price.of(*usage) if usage else 0.0
        for settled in self._waiting:
            if not settled.done():
                settled.set_result(None)
        self._waiting.clear()
