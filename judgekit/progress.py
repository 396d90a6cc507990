"""Progress is an event callback that the stages call; only the command line draws it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """The progress of a stage.

    Attributes:
        stage: e.g. ``label judge``.
        done, total: units of work (pairs, answers); ``total`` is None if unknown.
        sent, cached, failed: requests paid for now, replayed from the store, and failed for good.
        note: a message that the user should see once, such as a requested wait or a dropped parameter.
        spent: the money that the whole session spent so far; None without prices.
        uncounted: number of requests whose tokens the server did not count; ``spent`` includes the most that they may
            have cost.
    """

    stage: str
    done: int
    total: int | None
    sent: int = 0
    cached: int = 0
    failed: int = 0
    note: str = ""
    spent: float | None = None
    uncounted: int = 0

    @property
    def requests(self) -> int:
        """The number of finished requests."""
        return self.sent + self.cached + self.failed


Progress = Callable[[Event], None]


def silent(_: Event) -> None:
    """Ignore progress."""
