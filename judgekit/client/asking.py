"""How models are asked: what that may cost, where replies are kept, and who is told how far it is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Self

from judgekit.client.budget import Budget
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
        progress: called with events, `judgekit.progress.Event`.

    Raises:
        UsageError: a limit is negative.
    """

    max_cost: float | None = setting(None, least=0)
    max_requests: int | None = setting(None, least=0)
    wait_s: float = setting(0.0, least=0)
    cache: str | Path | None = field(default=None, metadata=ANY_OBJECT)
    progress: Progress = field(default=silent, metadata=ANY_OBJECT)

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def budget(self) -> Budget:
        """The most that may be sent."""
        return Budget(max_requests=self.max_requests, max_cost=self.max_cost)

    def within(self, budget: Budget) -> Self:
        """Return the same with another budget."""
        return replace(self, max_requests=budget.max_requests, max_cost=budget.max_cost)


UNLIMITED: Final = Asking()
"""Without limits, with the user's own store."""
