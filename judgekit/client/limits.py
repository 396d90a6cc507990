"""How fast one endpoint is asked: adaptive concurrency, requests and tokens per minute, pauses it asked for.

Concurrency starts low and grows with every success until the endpoint first says that it is too much (429, a
time-out); from then on it grows by one per round of successes and halves at each further sign of overload, the signs
of one round counting once. It never exceeds what the user set.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

__all__ = ["Limiter"]

_START = 32
_FLOOR = 1.0


class Limiter:
    """The gate in front of one endpoint. Slots are given first come, first served."""

    def __init__(
        self,
        maximum: int,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.maximum = maximum
        self.limit = float(min(maximum, _START))
        self.active = 0
        self._clock = clock
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._slow_start = True
        self._decreased_at = float("-inf")
        self._resume_at = float("-inf")
        self._request_s = 60.0 / requests_per_minute if requests_per_minute else 0.0
        self._token_s = 60.0 / tokens_per_minute if tokens_per_minute else 0.0
        self._next_request = self._next_token = float("-inf")

    @property
    def counts_tokens(self) -> bool:
        """Whether `acquire` needs an estimate of the tokens."""
        return self._token_s > 0

    async def acquire(self, tokens: int = 0, *, again: bool = False) -> float:
        """Wait for a slot, then for the moment at which the request may go; return that moment.

        Args:
            tokens: how many the request is estimated to take.
            again: whether it is a further attempt, which goes before those that never had one.
        """
        if self.active >= int(self.limit) or (self._waiting and not again):
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            (self._waiting.appendleft if again else self._waiting.append)(future)
            try:
                await future
            except asyncio.CancelledError:
                if future.done() and not future.cancelled():
                    self._leave()
                elif future in self._waiting:
                    self._waiting.remove(future)
                raise
        else:
            self.active += 1
        try:
            await self._pace(tokens)
        except asyncio.CancelledError:
            self._leave()
            raise
        return self._clock()

    async def _pace(self, tokens: int) -> None:
        if self._request_s or self._token_s:
            now = self._clock()
            at = max(now, self._next_request, self._next_token)
            self._next_request = at + self._request_s
            self._next_token = max(self._next_token, now) + tokens * self._token_s
            if at > now:
                await asyncio.sleep(at - now)
        while (wait := self._resume_at - self._clock()) > 0:  # noqa: ASYNC110  # a time that moves, no state
            await asyncio.sleep(wait)

    def release(self) -> None:
        """Give the slot back."""
        self._leave()

    def _leave(self) -> None:
        self.active -= 1
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self.active < int(self.limit):
            future = self._waiting.popleft()
            if not future.done():
                self.active += 1
                future.set_result(None)

    def correct_tokens(self, estimated: int, used: int) -> None:
        """Tell how many tokens a request really took."""
        self._next_token += (used - estimated) * self._token_s

    def succeeded(self) -> None:
        """Note a success: a little more concurrency."""
        if self.limit < self.maximum:
            self.limit = min(self.maximum, self.limit + (1.0 if self._slow_start else 1.0 / self.limit))
            self._admit()

    def overloaded(self, started_at: float) -> None:
        """Note a sign of overload on a request that went at ``started_at``: half the concurrency."""
        if started_at < self._decreased_at:
            return
        self._slow_start = False
        self._decreased_at = self._clock()
        self.limit = max(_FLOOR, self.limit / 2)

    def pause(self, seconds: float) -> None:
        """Send nothing for that long."""
        self._resume_at = max(self._resume_at, self._clock() + seconds)
