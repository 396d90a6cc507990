"""How fast to ask an endpoint, how long to wait for it, and what to tell the user meanwhile.

*How fast.* Concurrency starts at 32, or at a quarter of what the user set if that is more, and grows with every success
until the endpoint first shows overload (429, a time-out). From then on it grows by one per round of successes and
halves at each further sign of overload (once per round). It never exceeds the user's setting. A limit on requests per
minute and requested pauses apply as well.

*How long.* Two clocks run from a first failure: one for each request, and one for the endpoint while nothing but
failures comes from it. Both run for ``Endpoint.patience_s``; the second only for a tenth of it if the endpoint
never answered anything, since something is then wrong with it or with its settings.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Final

from judgekit.wire.quirks import MALFORMED, OVERSIZED, THROTTLED, Retry
from judgekit.wire.types import Endpoint

_START: Final = 32
_FLOOR: Final = 1.0
_UNPROVEN: Final = 0.1
_THROTTLE_PATIENCE: Final = 4
_TELL_EVERY_S: Final = 20.0
_SILENT_S: Final = 20.0
_WORTH_TELLING_S: Final = 0.5
# Throttling is not worth a message while replies still come.
_THROTTLED_S: Final = 5.0

_NOTHING: Final = Retry("")


def piece_of(whole: int, number: int, of: int) -> int:
    """Return a part's share of a whole number, so that all shares add up."""
    return whole // of + (number <= whole % of)


def share_of(endpoint: Endpoint, number: int, of: int) -> Endpoint:
    """Return an endpoint with a part's share of its limits: all parts together load a server like one process."""
    rate = endpoint.requests_per_minute
    if rate is not None:
        rate /= of
    return replace(endpoint, concurrency=piece_of(endpoint.concurrency, number, of), requests_per_minute=rate)


class Limiter:
    """Grants the slots of one endpoint, and decides when a request with a slot may be sent.

    Attributes:
        maximum: the largest number of slots.
        limit: the number of slots now, rounded down.
        active: the number of slots that are taken.
    """

    def __init__(self, endpoint: Endpoint, clock: Callable[[], float] = time.monotonic) -> None:
        self.maximum = endpoint.concurrency
        self.limit = float(min(self.maximum, max(_START, self.maximum // 4)))
        self.active = 0
        self._clock = clock
        self._starters: list[Callable[[], None]] = []
        self._request_s = 60.0 / (endpoint.requests_per_minute or inf)
        self._decreased_at = self._resume_at = self._next_request = -inf

    def join(self, start: Callable[[], None]) -> None:
        """Call ``start`` whenever a slot may be free."""
        self._starters.append(start)

    def leave(self, start: Callable[[], None]) -> None:
        """Stop calling ``start``."""
        self._starters = [other for other in self._starters if other != start]

    def take(self) -> bool:
        """Take a slot, if one is free."""
        free = self.active < int(self.limit)
        self.active += free
        return free

    def keeps(self) -> bool:
        """Return whether the holder of a slot may send another request."""
        return self.active <= int(self.limit)

    def release(self) -> None:
        """Give a slot back."""
        self.active -= 1
        self._offer()

    def _offer(self) -> None:
        for start in self._starters:
            start()

    async def turn(self) -> float:
        """Wait until a request that has a slot may be sent; return that moment."""
        # Turns are spaced evenly: a minute's requests at once, then none, is what servers call a burst.
        now = self._clock()
        at = max(now, self._next_request)
        self._next_request = at + self._request_s
        while max(at, self._resume_at) > now:  # a pause may come, or grow, meanwhile
            await asyncio.sleep(max(at, self._resume_at) - now)
            now = self._clock()
        return now

    def succeeded(self) -> None:
        """Note a success, and raise the concurrency a little."""
        if self.limit < self.maximum:
            more = 1.0 / self.limit
            if self._decreased_at == -inf:
                more = 1.0  # it never said that it is too much
            self.limit = min(self.maximum, self.limit + more)
            self._offer()

    def overloaded(self, started_at: float) -> None:
        """Note a sign of overload on a request sent at ``started_at``, and halve the concurrency."""
        # What was sent before the last decrease says nothing about the concurrency since.
        if started_at >= self._decreased_at:
            self._decreased_at = self._clock()
            self.limit = max(_FLOOR, self.limit / 2)

    def pause(self, seconds: float) -> None:
        """Send nothing for this long."""
        self._resume_at = max(self._resume_at, self._clock() + seconds)


class RetryPolicy:
    """How often and how long one request may still be tried.

    Throttling is not its fault and counts a quarter. An oversized reply costs its bytes each time, so it is requested
    only once more; malformed headers would come again and hide a paid reply, so they end it at once.

    Attributes:
        attempts: the number of failures.
        last: the last failure.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.attempts = 0
        self.last = _NOTHING
        self._endpoint = endpoint
        self._first = self._failed_at = 0.0
        self._kinds: list[str] = []

    def failed(self, again: Retry, now: float) -> None:
        """Note a failed attempt."""
        if not self.attempts:
            self._first = now
        self._failed_at = now
        self.last = again
        self.attempts += 1
        self._kinds.append(again.kind)

    @property
    def ends(self) -> float:
        """The moment after which no further attempt begins."""
        return self._first + self._endpoint.patience_s

    def over(self, wait_s: float) -> bool:
        """Return whether its retries are used up."""
        retries, throttled = self._endpoint.max_retries, self._kinds.count(THROTTLED)
        failed = self.attempts - throttled > retries or throttled > retries * _THROTTLE_PATIENCE
        paid_in_vain = self._kinds.count(OVERSIZED) > 1 or MALFORMED in self._kinds
        return failed or paid_in_vain or self._failed_at + wait_s > self.ends

    @property
    def told(self) -> str:
        """How often and how long it was tried, as the end of a sentence."""
        if self.attempts < 2:
            return ""
        tried = f"after {self.attempts} attempts"
        lasted = self._failed_at - self._first
        if lasted >= _TELL_EVERY_S:
            tried += f" in {_span(lasted)}"
        return f" ({tried})"


class Watch:
    """Keeps the time of one endpoint, and tells the user what judgekit is waiting for, and until when.

    Args:
        endpoint: whose.
        note: called with messages for the user.
        proven: whether the endpoint ever answered, now or in an earlier run.
        clock: a monotonic clock, in seconds.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        note: Callable[[str], None],
        proven: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.now = clock
        self._endpoint = endpoint
        self._note = note
        self._proven = proven
        self._failing_since: float | None = None
        self._heard_at = -inf
        self._slowest_s = 0.0
        self._tell_from: dict[str, float] = {}

    def heard(self, seconds: float) -> None:
        """Note that a response came, and its time since the request."""
        self._heard_at = self.now()
        self._slowest_s = max(self._slowest_s, seconds)

    def answered(self) -> None:
        """Forget earlier failures, after a success or a pause."""
        self._failing_since = None

    def failed(self, again: Retry) -> str | None:
        """Note a failure; return why the run should stop, if only failures came for too long."""
        if again.after is not None and again.after > self._endpoint.patience_s:
            longer = f"longer than judgekit waits, {_span(self._endpoint.patience_s)}"
            return f"it {_asks(again)}, {longer}. Run again then; all replies so far are kept"
        if self._failing_since is None:
            self._failing_since = self.now()
        lasted = self.now() - self._failing_since
        if lasted <= self._patience_s:
            return None
        what = f"it failed for {_span(lasted)} without a single answer"
        return f"{what}: {again.reason}. Run again later; all replies so far are kept"

    @property
    def _patience_s(self) -> float:
        return self._endpoint.patience_s * (1.0 if self._proven() else _UNPROVEN)

    def tell_retry(self, retry_policy: RetryPolicy) -> None:
        """Tell the user about a retry or a wait that the server asked for; stay quiet about brief throttling."""
        again, after = retry_policy.last, retry_policy.last.after or 0.0
        if after >= _WORTH_TELLING_S:
            self._tell("wait", f"{self._endpoint.name} {_asks(again)}; {self._until(retry_policy, after)}")
            return
        failing = 0.0 if self._failing_since is None else self.now() - self._failing_since
        if again.kind == THROTTLED and failing < _THROTTLED_S and self._proven():
            return
        self._tell("retry", f"{self._endpoint.name}: trying again after {again.reason}; {self._until(retry_policy)}")

    def tell_silence(self, begun: float) -> float:
        """Tell the user about a long silence; return when to look again."""
        since, now, long = max(begun, self._heard_at), self.now(), max(_SILENT_S, 2 * self._slowest_s)
        if now - since < long:
            return since + long
        ends, silent = self._time_of_day(since + self._endpoint.timeout_s), _span(now - since)
        self._tell(
            "silence", f"{self._endpoint.name}: no answer for {silent}; waits until {ends} at the latest (timeout_s)"
        )
        return now + long

    def left(self, retry_policy: RetryPolicy) -> float:
        """Return the seconds in which a failed request may still be tried again."""
        failing_since = inf if self._failing_since is None else self._failing_since
        return max(0.0, min(retry_policy.ends, failing_since + self._patience_s) - self.now())

    def _until(self, retry_policy: RetryPolicy, wait_s: float = 0.0) -> str:
        ends = self.now() + max(self.left(retry_policy), wait_s)
        return f"gives up at {self._time_of_day(ends)}"

    def _time_of_day(self, moment: float) -> str:
        return time.strftime("%H:%M:%S", time.localtime(time.time() + moment - self.now()))

    def _tell(self, kind: str, text: str) -> None:
        """Tell the user, but not too often."""
        # With 64 requests in flight a server that is down would fill the screen in a second.
        if self.now() >= self._tell_from.get(kind, -inf):
            self._tell_from[kind] = self.now() + _TELL_EVERY_S
            self._note(text)


def _asks(again: Retry) -> str:
    return f"asks to wait {_span(again.after or 0.0)} ({again.reason})"


def _span(seconds: float) -> str:
    """Return a length of time in words."""
    for unit, length in (("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"
