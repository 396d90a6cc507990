"""Notes the replies that could not be read, so that only these can be requested again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from judgekit.data.tables import Status
from judgekit.wire.types import Outcome, Reply

UNREAD: Final = frozenset({Status.UNPARSED, Status.TRUNCATED})
"""Statuses of unreadable replies. Refusals are read, and failures say nothing."""

_NOTED: Final[ContextVar[dict[str, None] | None]] = ContextVar("unread", default=None)


@contextmanager
def noting_unread() -> Iterator[dict[str, None]]:
    """Note the identities of unreadable replies inside of the ``with`` block, in order."""
    noted: dict[str, None] = {}
    token = _NOTED.set(noted)
    try:
        yield noted
    finally:
        _NOTED.reset(token)


def note_unread(outcome: Outcome, status: Status) -> None:
    """Note an unreadable reply, if the model might reply differently next time."""
    noted = _NOTED.get()
    if noted is not None and status in UNREAD and isinstance(outcome, Reply):
        noted[outcome.key] = None


def note_replaced(outcome: Outcome) -> None:
    """Note that another reply replaces an unreadable one."""
    noted = _NOTED.get()
    if noted is not None and isinstance(outcome, Reply):
        noted.pop(outcome.key, None)
