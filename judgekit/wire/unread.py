"""Which replies could not be read, noted by whoever reads them, so that they alone can be asked for again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from judgekit.data.tables import Status
from judgekit.wire.types import Outcome, Reply

UNREAD: Final = frozenset({Status.UNPARSED, Status.TRUNCATED})
"""What a model said that could not be read. A refusal is read, and a failure said nothing."""

_NOTED: Final[ContextVar[dict[str, None] | None]] = ContextVar("unread", default=None)


@contextmanager
def noting_unread() -> Iterator[dict[str, None]]:
    """Note the identities of the replies that cannot be read inside of the ``with`` block, in their order."""
    noted: dict[str, None] = {}
    token = _NOTED.set(noted)
    try:
        yield noted
    finally:
        _NOTED.reset(token)


def note_unread(outcome: Outcome, status: Status) -> None:
    """Note that a reply was not read, if it is one that a model might give otherwise."""
    noted = _NOTED.get()
    if noted is not None and status in UNREAD and isinstance(outcome, Reply):
        noted[outcome.key] = None


def note_replaced(outcome: Outcome) -> None:
    """Note that another reply stands in the place of one that was not read."""
    noted = _NOTED.get()
    if noted is not None and isinstance(outcome, Reply):
        noted.pop(outcome.key, None)
