"""The stored replies of a job that could not be read, to be requested again if the user wants that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

from judgekit.client.stages import AllStages, StageUnit
from judgekit.client.waves import CHUNK, Lookup, begin, follow
from judgekit.wire.types import Outcome
from judgekit.wire.unread import UNREAD, noting_unread

_READERS: Final = ("label", "answer", "read")
"""Reads a program's replies: a labeler, an answerer or anything else that asks."""


def unread_keys(units: Iterable[StageUnit], lookup: Lookup) -> list[str]:
    """Return the identities of stored replies that could not be read, each once.

    Only units that the store answers completely are looked at: missing requests are sent anyway. If a request was
    repeated, the second reply counts.
    """
    found: dict[str, None] = {}
    source = iter(units)
    while jobs := begin(islice(source, CHUNK), AllStages()):
        for job in follow(jobs, AllStages(), lookup).ended:
            found.update(dict.fromkeys(_unread(*job.unit, job.outcomes)))
    return list(found)


def _unread(program: Any, unit: Any, replies: Sequence[Outcome]) -> list[str]:
    """Return the identities of a unit's replies that could not be read."""
    reader: Callable[[Any, Sequence[Outcome]], Any] | None
    reader = next(filter(None, (getattr(program, name, None) for name in _READERS)), None)
    if reader is None or not replies:
        return []
    with noting_unread() as noted:
        result = reader(unit, replies)
    if not noted and any(status in UNREAD for status in _statuses(result)):
        # A labeler that reads its replies by itself does not say which one it could not read.
        return [reply.key for reply in replies]
    return list(noted)


def _statuses(result: Any) -> Iterator[Any]:
    """Yield the outcome of each thing read: the labels of a list, an answer, a rating."""
    for one in result if isinstance(result, list) else [result]:
        yield getattr(one, "status", None)
