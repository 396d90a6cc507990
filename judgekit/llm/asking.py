"""Asking one prompt of one endpoint, and asking once more where the reply was cut off.

Everything that puts a prompt file to an endpoint (judges, answers, correctness) makes its requests here, so that
the same question in the same words always is the same request.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, TypeVar

from judgekit.llm.prompts import Prompt
from judgekit.llm.types import Endpoint, Outcome, Program, Reply, Request, canonical

__all__ = ["Asker", "cut_off", "play", "settled"]

U = TypeVar("U")

_GROWTH: Final = 8
"""How much more room a reply gets that was cut off: enough for a model that thinks aloud first."""

_ROOMS: Final = ("max_tokens", "max_completion_tokens")
_ROOM: Final = 256
_GAP: Final = "\ue000 gap \ue000"


@dataclass(frozen=True)
class Asker:
    """A prompt put to an endpoint.

    The request's parameters are, each before the next: ``params``, the endpoint's own, the prompt's, temperature 0.

    Attributes:
        endpoint: where to ask.
        prompt: what to ask.
        params: fields of the request body that go before all others.
    """

    endpoint: Endpoint
    prompt: Prompt
    params: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def _fields(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The fields of the body besides model and messages: as first asked, and with more room."""
        fields = {"temperature": 0, **self.prompt.params}
        said = {**self.endpoint.params, **self.params}
        if any(room in said for room in _ROOMS):
            fields.pop("max_tokens", None)
        fields.update(said)
        room = next((r for r in _ROOMS if r in fields), "max_tokens")
        return fields, {**fields, room: _GROWTH * int(fields.get(room) or _ROOM)}

    @cached_property
    def _templates(self) -> tuple[list[bytes | str], list[bytes | str]]:
        """The canonical bodies, cut where values go: as first asked, and with more room.

        Pieces of JSON are bytes, the names of placeholders between them are str.
        """
        marks = {name: f"{_GAP}{name}{_GAP}" for name in self.prompt.placeholders}
        model, messages = self.endpoint.model, self.prompt.messages(marks)
        gap = re.escape(canonical(_GAP)[1:-1])
        first, more = (
            re.split(gap + b"([a-z_]+)" + gap, canonical({"model": model, "messages": messages, **fields}))
            for fields in self._fields
        )
        return _named(first), _named(more)

    def request(self, values: Mapping[str, str], *, sample: int = 0, more: bool = False) -> Request:
        """Return the request with the prompt's placeholders filled in: what `chat` makes of it, at a fifth of the cost.

        Args:
            values: text per placeholder, `neutral` already.
            sample: tells repeated samples of one request apart.
            more: whether to give the reply more room, after one that was cut off.
        """
        written = {name: canonical(text)[1:-1] for name, text in values.items()}
        pieces = [written[piece] if isinstance(piece, str) else piece for piece in self._templates[more]]
        return Request(self.endpoint, b"".join(pieces), sample)


def _named(pieces: list[bytes]) -> list[bytes | str]:
    return [piece.decode() if place % 2 else piece for place, piece in enumerate(pieces)]


def cut_off(outcomes: Sequence[Outcome]) -> list[int]:
    """Return which outcomes of a first wave are replies that were cut off; a second wave asks these again."""
    return [i for i, outcome in enumerate(outcomes) if isinstance(outcome, Reply) and outcome.finish_reason == "length"]


def settled(replies: Sequence[Outcome], first: int) -> list[Outcome]:
    """Return the ``first`` outcomes with those of the second wave in the places of the cut-off ones.

    A second attempt that failed altogether leaves the cut-off reply in its place.
    """
    outcomes = list(replies[:first])
    if len(replies) > first:
        for index, again in zip(cut_off(outcomes), replies[first:], strict=False):
            if isinstance(again, Reply):
                outcomes[index] = again
    return outcomes


def play(program: Program[U], unit: U, replies: Sequence[Outcome]) -> tuple[list[Request], int]:
    """Run a program over the first of ``replies``, which are its own, and see how far it gets.

    Returns:
        The wave that it waits for, [] if it is done, and how many of the replies it has used. What follows them
        belongs to whatever comes after this program.
    """
    used = 0
    while True:
        wave = program.requests(unit, replies[:used])
        if not wave or used + len(wave) > len(replies):
            return wave, used
        used += len(wave)
