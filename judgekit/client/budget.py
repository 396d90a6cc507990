"""What requests cost: tokens, money, budgets.

Two columns are never mixed. *Standalone* is what a stage would take with an empty store: every distinct request that
it needed, whoever paid for it. *Incurred* is what was really sent now, failed attempts included. Money that cannot be
known is None, and shown as "-".
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final

from judgekit.errors import BudgetError, UsageError

if TYPE_CHECKING:
    from judgekit.wire.types import Endpoint

Amounts = tuple[float, float, float]
"""Requests, tokens, money."""

_BEYOND: Final = (
    "the budget of {most} requests is used up",
    "the next request (about {needed} tokens) would exceed the budget of {most} tokens; {spent} are used",
    "the next request (about {needed:.6g}) would exceed the budget of {most:g}; {spent:.6g} is spent",
)


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

    def add(self, usage: tuple[int, int] | None, price: Price | None, seconds: float | None) -> None:
        """Add a request that took ``usage`` (prompt, completion) tokens at a price, and ``seconds``."""
        prompt, completion = usage or (0, 0)
        self.requests += 1
        self.prompt_tokens += prompt
        self.completion_tokens += completion
        self.unreported += usage is None
        self.seconds += seconds or 0.0
        self.untimed += seconds is None
        self.money = None if price is None or self.money is None else self.money + price.of(prompt, completion)

    @property
    def taken(self) -> Amounts:
        """Requests, tokens and money, as far as they are known."""
        return self.requests, self.prompt_tokens + self.completion_tokens, self.money or 0.0

    def __add__(self, other: Amount) -> Amount:
        names = [added.name for added in fields(Amount) if added.name != "money"]
        sums = {name: getattr(self, name) + getattr(other, name) for name in names}
        return Amount(**sums, money=None if self.money is None or other.money is None else self.money + other.money)


@dataclass(slots=True)
class Usage:
    """The usage of a stage or an endpoint so far.

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

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, added.name) + getattr(other, added.name) for added in fields(Usage)))


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that may be spent; None means no limit. Replies from the store are free."""

    max_requests: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None

    @property
    def limits(self) -> tuple[int | None, int | None, float | None]:
        """The most requests, tokens and money."""
        return self.max_requests, self.max_tokens, self.max_cost

    def less(self, spent: Amount) -> Budget:
        """Return what is left, at least 0."""
        limits: Iterable[tuple[Any, Any]] = zip(self.limits, spent.taken, strict=True)
        return Budget(*(None if most is None else max(0, most - taken) for most, taken in limits))

    def __str__(self) -> str:
        limits = zip(self.limits, ("requests", "tokens", "money"), strict=True)
        return ", ".join(f"{most:g} {name}" for most, name in limits if most is not None)

    def __bool__(self) -> bool:
        return self.limits != (None, None, None)


class Spending:
    """Keeps to the budget of a session.

    Attributes:
        budget: the most that may be spent.
        spent: requests, tokens and money so far.
    """

    def __init__(self, budget: Budget, prices: Prices) -> None:
        self.budget = budget
        self.spent: Amounts = (0, 0, 0.0)
        self._prices = prices
        self._in_flight: Amounts = (0, 0, 0.0)
        self._settled = asyncio.Event()

    @property
    def _limited(self) -> bool:
        return bool(self.budget)

    def allow(self, budget: Budget) -> None:
        """Replace what is left by a new budget."""
        limits: Iterable[tuple[Any, Any]] = zip(budget.limits, self.spent, strict=True)
        self.budget = Budget(*(None if most is None else most + spent for most, spent in limits))

    @property
    def money(self) -> float | None:
        """The money so far; None where no price is known."""
        return self.spent[2] if self._prices else None

    def price(self, endpoint: Endpoint) -> Price | None:
        """Return the price of an endpoint, if the user gave one."""
        return self._prices.get(endpoint.name) or self._prices.get(endpoint.model)

    def check(self, endpoint: Endpoint) -> None:
        """Refuse a cost limit that could not be kept."""
        if self.budget.max_cost is not None and self.price(endpoint) is None:
            raise UsageError(
                f"a cost limit needs the price of the model {endpoint.model!r} (endpoint {endpoint.name!r}): add"
                f" [prices.{endpoint.model!r}] with prompt and completion, money per million tokens"
            )

    @staticmethod
    def needed(tokens: tuple[int, int], price: Price | None) -> Amounts:
        """Return what a request of that many (prompt, completion) tokens takes."""
        return 1, sum(tokens), price.of(*tokens) if price else 0.0

    async def reserve(self, need: Amounts) -> None:
        """Set aside what the next request may take."""
        while self._limited:
            fits = True
            for most, spent, in_flight, needed, beyond in zip(
                self.budget.limits, self.spent, self._in_flight, need, _BEYOND, strict=True
            ):
                if most is None:
                    continue
                if spent + needed > most:
                    raise BudgetError(beyond.format(most=most, needed=needed, spent=spent))
                fits = fits and spent + in_flight + needed <= most
            if fits:
                self._in_flight = _sum(self._in_flight, need)
                return
            await self._settled.wait()

    def settle(self, need: Amounts, used: Amounts) -> None:
        """Replace what was set aside by what was used."""
        self.spent = _sum(self.spent, used)
        if self._limited:
            self._in_flight = _sum(self._in_flight, need, -1)
            self._settled.set()
            self._settled = asyncio.Event()


def _sum(total: Amounts, more: Amounts, times: int = 1) -> Amounts:
    return total[0] + times * more[0], total[1] + times * more[1], total[2] + times * more[2]
