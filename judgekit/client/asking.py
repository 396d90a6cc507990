"""How models are asked: the budget, the reply store, and the callback for progress."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Final, Literal, Self

from judgekit.client.budget import Budget, Price, Prices
from judgekit.errors import UsageError
from judgekit.progress import Progress, silent
from judgekit.settings import ANY_OBJECT, check_settings, setting


@dataclass(frozen=True)
class Asking:
    """How models are asked.

    Attributes:
        max_cost: stop before spending more than this (needs prices).
        max_requests: stop after this many requests.
        wait_s: seconds to wait for a server that is not ready.
        cache: folder of the reply store (default: your cache folder).
        ask_again: which stored replies to ask for again: ``unread``, those that could not be read (default: none).
        progress: called with events, `judgekit.progress.Event`.
        prices: a `judgekit.Price` by the name of an endpoint or the id of a model. In an experiment, they add to and
            replace the prices of its file.

    Raises:
        UsageError: a limit or a price is negative, or a price is not a `judgekit.Price`.
    """

    max_cost: float | None = setting(None, least=0)
    max_requests: int | None = setting(None, least=0)
    wait_s: float = setting(0.0, least=0)
    cache: str | Path | None = field(default=None, metadata=ANY_OBJECT)
    ask_again: Literal["unread"] | None = setting(None)
    progress: Progress = field(default=silent, metadata=ANY_OBJECT)
    prices: Prices = field(default_factory=dict, hash=False, metadata=ANY_OBJECT)

    def __post_init__(self) -> None:
        check_settings(self)
        for name, price in self.prices.items():
            # A limit works with a wrong price just as with a right one.
            if not isinstance(price, Price) or not (0 <= price.prompt < inf and 0 <= price.completion < inf):
                raise UsageError(
                    f"prices[{name!r}] must be a judgekit.Price(prompt=…, completion=…), in money per million tokens"
                    f" and at least 0, not {price!r}"
                )

    @property
    def budget(self) -> Budget:
        """The largest amounts to send."""
        return Budget(max_requests=self.max_requests, max_cost=self.max_cost)

    def within(self, budget: Budget) -> Self:
        """Return a copy with another budget."""
        return replace(self, max_requests=budget.max_requests, max_cost=budget.max_cost)

    def priced(self, prices: Prices) -> Self:
        """Return a copy with the prices of a file; prices given here win."""
        return replace(self, prices={**prices, **self.prices})


UNLIMITED: Final = Asking()
"""Without limits, with the user's own store."""
