"""What requests cost: tokens, money, budgets.

Two columns are never mixed. *Standalone* is a stage's cost with an empty store: every distinct request that it needs,
whoever paid for it. *Incurred* is what was sent now, failed attempts included. Unknown money is None, and shown as "-".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from judgekit.errors import BudgetError, UsageError
from judgekit.wire.usage import Tokens

if TYPE_CHECKING:
    import asyncio

    from judgekit.wire.types import Endpoint


@dataclass(frozen=True, slots=True)
class Price:
    """What a model costs, in the user's currency.

    Attributes:
        prompt: money per million tokens of prompts.
        completion: money per million tokens of replies, thinking included.
        cached: money per million prompt tokens that the server had in its cache; by default the price of prompts.
    """

    prompt: float
    completion: float
    cached: float | None = None

    def of(self, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0) -> float:
        """Return the money for that many tokens; the prompt's tokens include the cached ones."""
        cached = self.prompt if self.cached is None else self.cached
        new = prompt_tokens - cached_tokens
        return (self.prompt * new + cached * cached_tokens + self.completion * completion_tokens) / 1e6

    def known(self, usage: Tokens | None) -> float:
        """Return the money for the tokens that a server counted."""
        used = usage or Tokens()
        return self.of(used.prompt or 0, used.completion or 0, used.cached or 0)

    def at_most(self, usage: Tokens | None, most: tuple[int, int]) -> float:
        """Return the money for tokens; where they were not counted, for ``most`` (prompt, completion)."""
        return self.known((usage or Tokens()).filled(*most))


Prices = Mapping[str, Price]
"""Prices by endpoint name or model id; the endpoint's name wins."""


@dataclass(slots=True)
class Amount:
    """A sum over requests, which may grow.

    Attributes:
        requests: how many.
        prompt_tokens, completion_tokens: as the server reported them, thinking included in the latter.
        money: None if the price of any of them is unknown.
        unreported: requests without both token counts from the server; unknown ones count as 0 tokens and make money a
            lower bound.
        uncounted: the most money that uncounted tokens may have cost in addition.
        cached_tokens, thinking_tokens: parts of the prompt's and the completion's tokens, as far as reported.
        seconds: the times from sending each request to having its reply, added up, also for parallel requests. They are
            stored with the replies, so they do not depend on when these were requested.
        untimed: requests of unknown time, which count as 0.
    """

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    money: float | None = 0.0
    unreported: int = 0
    seconds: float = field(default=0.0, compare=False)
    untimed: int = 0
    uncounted: float = field(default=0.0, compare=False)
    cached_tokens: int = field(default=0, compare=False)
    thinking_tokens: int = field(default=0, compare=False)

    def add(
        self,
        usage: Tokens | None,
        price: Price | None,
        seconds: float | None,
        most: tuple[int, int] = (0, 0),
    ) -> None:
        """Add a request that took ``usage`` tokens at a price, and ``seconds``.

        ``most`` is the largest possible (prompt, completion) tokens, for those that the server did not count.
        """
        prompt, completion, cached, thinking = usage or Tokens()
        self.requests += 1
        self.prompt_tokens += prompt or 0
        self.completion_tokens += completion or 0
        self.cached_tokens += cached or 0
        self.thinking_tokens += thinking or 0
        self.unreported += prompt is None or completion is None
        self.seconds += seconds or 0.0
        self.untimed += seconds is None
        if price is None:
            self.money = None
        elif self.money is not None:
            self.money += price.known(usage)
            self.uncounted += price.at_most(usage, most) - price.known(usage)

    @property
    def counted(self) -> str:
        """The tokens in words."""
        tokens = f"{self.prompt_tokens + self.completion_tokens:,} tokens"
        if not self.unreported:
            return tokens
        if self.unreported == self.requests:
            return "tokens not counted by the server"
        return f"at least {tokens}; those of {self.unreported:,} requests are unknown"

    @property
    def at_most(self) -> float | None:
        """The money, including the most that uncounted tokens may have cost."""
        return None if self.money is None else self.money + self.uncounted

    def __add__(self, other: Amount) -> Amount:
        total = Amount(money=None if self.money is None or other.money is None else self.money + other.money)
        for added in fields(Amount):
            if added.name != "money":
                setattr(total, added.name, getattr(self, added.name) + getattr(other, added.name))
        return total


@dataclass(slots=True)
class Usage:
    """The usage of a stage or an endpoint so far.

    Attributes:
        standalone: the cost with an empty store.
        incurred: what was sent now, failed attempts included.
        wall_s: seconds spent in it.
        sent: distinct requests answered by the endpoint now.
        cached: distinct requests replayed from the store.
        failed: distinct requests that have no reply.
        again: distinct answered requests that repeat one whose reply could not be used.

    The sum of two stages is their cost one after the other, without shared requests.
    """

    standalone: Amount = field(default_factory=Amount)
    incurred: Amount = field(default_factory=Amount)
    wall_s: float = 0.0
    sent: int = 0
    cached: int = 0
    failed: int = 0
    again: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, added.name) + getattr(other, added.name) for added in fields(Usage)))


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that may be spent; None means no limit. Replies from the store are free."""

    max_requests: int | None = None
    max_cost: float | None = None

    def less(self, spent: Amount) -> Budget:
        """Return what is left, at least 0."""
        requests, cost = self.max_requests, self.max_cost
        if requests is not None:
            requests = max(0, requests - spent.requests)
        if cost is not None:
            cost = max(0.0, cost - (spent.at_most or 0.0))
        return Budget(requests, cost)

    def allows(self, spent: Amount, times: float = 1.0) -> bool:
        """Whether a multiple of an amount is within it."""
        if self.max_requests is not None and times * spent.requests > self.max_requests:
            return False
        return self.max_cost is None or times * (spent.at_most or 0.0) <= self.max_cost

    def __str__(self) -> str:
        limits: list[str] = []
        if self.max_requests is not None:
            limits.append(f"{self.max_requests:g} requests")
        if self.max_cost is not None:
            limits.append(f"{self.max_cost:g} money")
        return ", ".join(limits)


class Spending:
    """Keeps to the budget of a session.

    Attributes:
        budget: the most that may be spent.
        uncounted: number of requests whose tokens the server did not count; their largest possible cost is used.
    """

    def __init__(self, budget: Budget, prices: Prices) -> None:
        self.budget = budget
        self._prices = prices
        self._requests = self._requests_in_flight = 0
        self._money = self._money_in_flight = 0.0
        self._settled: asyncio.Event | None = None
        self.uncounted = 0

    def allow(self, budget: Budget) -> None:
        """Replace the rest by a new budget."""
        requests, cost = budget.max_requests, budget.max_cost
        if requests is not None:
            requests += self._requests
        if cost is not None:
            cost += self._money
        self.budget = Budget(requests, cost)

    @property
    def money(self) -> float | None:
        """The money so far; None without prices."""
        return self._money if self._prices else None

    def price(self, endpoint: Endpoint) -> Price | None:
        """Return the price of an endpoint, if the user gave one."""
        return self._prices.get(endpoint.name) or self._prices.get(endpoint.model)

    def check(self, endpoint: Endpoint) -> None:
        """Refuse a cost limit that cannot be enforced."""
        if self.budget.max_cost is not None and self.price(endpoint) is None:
            raise UsageError(
                f"a cost limit needs the price of the model {endpoint.model!r} (endpoint {endpoint.name!r}): add"
                f" [prices.{endpoint.model!r}] with prompt and completion, money per million tokens; in Python,"
                f" jk.Asking(prices={{{endpoint.model!r}: jk.Price(prompt=…, completion=…)}})"
            )

    async def reserve(self, money: float) -> None:
        """Reserve a request and its largest possible cost; wait for requests in flight, which may cost less."""
        while not self._fits(money):
            if self._settled is None:
                from asyncio import Event  # takes long to import; whoever asks has it

                self._settled = Event()
            await self._settled.wait()
        self._requests_in_flight += 1
        self._money_in_flight += money

    def _fits(self, money: float) -> bool:
        """Whether a request fits beside those in flight; raise an error if it cannot fit at all."""
        fits = True
        most = self.budget.max_requests
        if most is not None:
            if self._requests >= most:
                raise BudgetError(f"the budget of {most} requests is used up")
            fits = self._requests + self._requests_in_flight < most
        most_money = self.budget.max_cost
        if most_money is not None:
            if self._money + money > most_money:
                spent = f"{self._money:.6g} is spent"
                if self.uncounted:
                    spent = f"at most about {spent}, as no tokens were counted for {self.uncounted:,} requests"
                raise BudgetError(
                    f"the next request (about {money:.6g}) would exceed the budget of {most_money:g}; {spent}"
                )
            fits = fits and self._money + self._money_in_flight + money <= most_money
        return fits

    def settle(self, reserved: float, used: float, *, counted: bool = True) -> None:
        """Replace the reservation for a request by its cost, or by the largest possible one if uncounted."""
        self.uncounted += not counted
        # Failed requests count, too: a budget of requests limits what is sent.
        self._requests_in_flight -= 1
        self._money_in_flight -= reserved
        self._requests += 1
        self._money += used
        if self._settled is not None:
            self._settled.set()
            self._settled = None
