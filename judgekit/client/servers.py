"""The servers behind one endpoint: which one is asked next, and which is left alone for a while.

Most endpoints have one server. Of several, the one with the fewest requests in flight is asked. A server that cannot be
reached, does not answer in time or says that it is too much rests, as does one that fails again and again: for as long
as it asks, else for half a second, which doubles with every further failure. Then one request tries it, and once it has
answered it is asked like the others. These go on meanwhile; only where all of them rest does the endpoint wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from judgekit.wire.responses import Fatal, Response, Retry
from judgekit.wire.types import Endpoint, Transport

__all__ = ["Server", "Servers"]

_FIRST_S: Final = 0.5
_LONGEST_S: Final = 30.0
_IN_A_ROW: Final = 3
"""Failures that are a server's own, and not of single requests."""

_WORTH_TELLING_S: Final = 2.0


@dataclass(slots=True, eq=False)
class Server:
    """One server.

    Attributes:
        url: its base URL.
        transport: carries the bytes.
        active: requests in flight.
        sent: requests so far.
        failures: failures in a row.
        failed_at: when the last of them was noted; what was in flight then does not count again.
        rests_until: before that moment it is not asked.
        asked: whether it asked for that rest.
        told: whether the user was told that it is left alone.
    """

    url: str
    transport: Transport
    active: int = 0
    sent: int = 0
    failures: int = 0
    failed_at: float = float("-inf")
    rests_until: float = float("-inf")
    asked: bool = False
    told: bool = False

    def free(self, now: float) -> bool:
        """Say whether it may be asked: it does not rest, and where it failed last nobody is trying it already."""
        return now >= self.rests_until and not (self.failures and self.active)


class Servers:
    """All servers of one endpoint. Belongs to one event loop.

    Args:
        endpoint: whose.
        open_transport: makes the transport of one server, from the endpoint with this server alone.
        note: called with messages for the user.
        clock: seconds from any moment on.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        open_transport: Callable[[Endpoint], Transport],
        note: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.all = [Server(one.base_url, open_transport(one)) for one in endpoint.servers]
        self._name = endpoint.name
        self._note = note
        self._clock = clock

    @contextmanager
    def taken(self) -> Iterator[Server]:
        """Give the server that the next request goes to, and count it as in flight there."""
        now = self._clock()
        free = [server for server in self.all if server.free(now)]
        if free:
            server = min(free, key=lambda one: (one.active, one.sent))
        else:
            server = min(self.all, key=lambda one: one.rests_until)
        server.active += 1
        server.sent += 1
        try:
            yield server
        finally:
            server.active -= 1

    def others(self, server: Server) -> bool:
        """Say whether another server may be asked now, so that this one's trouble does not stop the endpoint."""
        now = self._clock()
        return any(one.free(now) for one in self.all if one is not server)

    def heard(self, server: Server, response: Response, began: float) -> Response:
        """Note what a server answered to a request that was sent at ``began``; return what it means for the endpoint.

        A wait that the server asks for is the endpoint's only where every server rests, and then until the first of
        them may be tried. An error that stops the run names the server.
        """
        if not isinstance(response, Retry):
            server.failures = 0
            if server.told:
                server.told = False
                self._note(f"{self._name}: {server.url} answers again")
            if isinstance(response, Fatal) and len(self.all) > 1:
                return Fatal(f"{server.url}: {response.reason}")
            return response
        now = self._clock()
        others = self.others(server)
        self._rest(server, response, began, now, others)
        if others:
            return replace(response, after=None, elsewhere=True)
        if any(one.asked and one.rests_until > now for one in self.all if one is not server):
            wait = min(one.rests_until for one in self.all) - now
            return replace(response, after=max(0.0, wait), throttled=True)
        return response

    def _rest(self, server: Server, said: Retry, began: float, now: float, others: bool) -> None:
        if began >= server.failed_at and not said.oversized:
            server.failures += 1
            server.failed_at = now
        rest = said.after
        if rest is None and (said.down or said.throttled or server.failures >= _IN_A_ROW):
            rest = min(_LONGEST_S, _FIRST_S * 2 ** (server.failures - 1))
        if rest is None or now + rest <= server.rests_until:
            return
        server.rests_until, server.asked = now + rest, said.after is not None
        if others and not server.told and (said.down or rest >= _WORTH_TELLING_S):
            server.told = True
            self._note(
                f"{self._name}: {server.url} is left alone for now ({said.reason}) and tried again later; the other"
                " servers go on"
            )

    async def aclose(self) -> None:
        """Close all connections."""
        for server in self.all:
            await server.transport.aclose()
