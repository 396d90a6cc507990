"""Asks an endpoint with a prompt, and once more if the reply cannot be used.

All requests from prompt files (judges, answers, correctness) are made here, so that the same question in the same words
is always the same request.

A request is repeated at most once, in the second wave: with more room if the reply was cut off; otherwise, if a verdict
does not have the requested form, as the next turn of the conversation, which asks only for the verdict.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Final, TypeVar

from judgekit.data.tables import Status
from judgekit.reading.prompts import Prompt, neutral
from judgekit.reading.question import is_open
from judgekit.reading.verdict import Unread, Verdict, stated, usable
from judgekit.wire.jsontext import canonical, canonical_text
from judgekit.wire.reasoning import without_reasoning
from judgekit.wire.types import CONSTRAINTS, Endpoint, Outcome, Program, Reply, Request, shaped
from judgekit.wire.unread import note_replaced, note_unread

U = TypeVar("U")

GROWTH: Final = 8
"""The factor by which a cut-off reply gets more room: enough for a model that thinks aloud first."""

_ROOMS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_ROOM: Final = 256
_TIMES: Final = 4
_LEAST: Final = 80
_LOOKED_AT: Final = 2000
"""A text repeats itself if it ends in the same characters this often, with at least this total length."""

_MEANT: Final = {
    "judge": "is the passage relevant to it?",
    "correctness": "is the given answer correct?",
    "grounded": "does the given answer rest on the passages?",
}
"""The question behind a yes or no, by kind of prompt."""

_GAP: Final = "\ue000 gap \ue000"


@dataclass(frozen=True)
class _Template:
    """A canonical body in pieces: a value from ``names`` follows each of ``texts`` except the last."""

    texts: list[bytes]
    names: list[str]

    @classmethod
    def of(cls, body: bytes) -> _Template:
        """Cut a body that was filled with marks."""
        gap = re.escape(canonical(_GAP)[1:-1])
        pieces = re.split(gap + rb"([\w.-]+)" + gap, body)
        return cls(pieces[::2], [name.decode() for name in pieces[1::2]])

    def filled(self, values: Mapping[str, str]) -> bytes:
        """Return the body with values filled in."""
        pieces = [self.texts[0]]
        for name, text in zip(self.names, self.texts[1:], strict=True):
            pieces += (canonical_text(values[name]), text)
        return b"".join(pieces)


@dataclass(frozen=True)
class Asker:
    """Asks an endpoint with a prompt.

    Parameters of the request, the first wins: ``params``, the endpoint's, the prompt's, temperature 0. A constraint to
    the prompt's form is added if the server honours it, and is not part of the identity: see `_held`.

    Attributes:
        endpoint: where to ask.
        prompt: what to ask.
        params: fields of the request body that win over all others.
    """

    endpoint: Endpoint
    prompt: Prompt
    params: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def _fields(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The fields of the body besides model and messages: as first asked, and with more room."""
        own = {**self.endpoint.llm.params, **self.params}
        fields = {"temperature": 0, **self._ends, **self.prompt.params}
        # Otherwise an endpoint with another name for its limit would get two limits, which OpenAI refuses.
        if any(room in own for room in _ROOMS):
            fields.pop("max_tokens", None)
        fields.update(own)
        room = next((room for room in _ROOMS if room in fields), "max_tokens")
        return fields, {**fields, room: GROWTH * int(fields.get(room) or _ROOM)}

    @cached_property
    def _held(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """The constraints on a reply: for the first request, and for one that asks only for the form."""
        # There is none if the request has its own, if it asks for log-probabilities, which a constraint would change,
        # or for a model that thinks, whose reasoning it would forbid.
        fields, llm = self._fields[0], self.endpoint
        if CONSTRAINTS & fields.keys() or fields.get("logprobs") or llm.thinks or llm.built_in or llm.application:
            return {}, {}
        form = self.prompt.output.form
        return self._beside(form.constraint()), self._beside(form.constraint(again=True))

    def _beside(self, constraint: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the fields by which the endpoint's API states a constraint."""
        bare = shaped(self.endpoint.api, "", (), {})
        constrained = shaped(self.endpoint.api, "", (), constraint)
        return {name: value for name, value in constrained.items() if name not in bare}

    @property
    def _ends(self) -> dict[str, Any]:
        """The stop for a base model, which does not end by itself."""
        if self.endpoint.api != "completions":
            return {}
        output = self.prompt.output
        if output.type in ("short", "class") or (output.type != "long" and output.form.one_word):
            return {"stop": ["\n"]}
        return {"stop": ["\n\n"]}

    def _body(self, messages: Sequence[Mapping[str, str]], fields: Mapping[str, Any]) -> bytes:
        return canonical(shaped(self.endpoint.api, self.endpoint.model, messages, fields))

    @cached_property
    def _templates(self) -> tuple[_Template, _Template]:
        """The canonical bodies, cut at the values: for the first request, and with more room."""
        marks = {name: f"{_GAP}{name}{_GAP}" for name in self.prompt.placeholders}
        messages = self.prompt.messages(marks)
        first, more = self._fields
        return _Template.of(self._body(messages, first)), _Template.of(self._body(messages, more))

    def request(self, values: Mapping[str, str], *, sample: int = 0) -> Request:
        """Return the request with the prompt's placeholders filled in."""
        body = self._templates[0].filled(values)
        return Request(self.endpoint, body, sample, constraint=self._held[0])

    def again(self, values: Mapping[str, str], reply: Outcome, *, sample: int = 0) -> Request:
        """Return the request to send after an `unsettled` reply; the arguments are those of the first request."""
        # The reply is quoted as the model's turn. The next turn repeats the question, with the form at its end, for
        # servers that look at the last turn only.
        quoted = usable(reply)
        if self._ended_at_once(reply):
            return self._after_line_break(values, sample)
        # Under a constraint some servers write blanks for ever. So a verdict that came back cut or blank is requested
        # without one, under the same identity. Without a verdict, the constraint is the user's wish.
        free = bool(self.prompt.output.form.options)
        more = {} if free else self._held[0]
        if isinstance(quoted, Unread):
            body = self._templates[1].filled(values)
            return Request(self.endpoint, body, sample, again=True, constraint=more, free=free)
        *turns, question = self.prompt.messages(values)
        answer = without_reasoning(quoted.text).strip()
        if answer:
            turns += [question, {"role": "assistant", "content": neutral(answer)}]
        turns.append({**question, "content": f"{question['content']}\n\n{self._once_more(values)}"})
        body = self._body(turns, self._fields[0])
        if not answer:
            return Request(self.endpoint, body, sample, again=True, constraint=more, free=free)
        return Request(self.endpoint, body, sample, again=True, constraint=self._held[1])

    def _ended_at_once(self, outcome: Outcome) -> bool:
        """Whether a base model began its answer with the line break that stops it."""
        stops = self._ends.get("stop")
        if stops is None or self.prompt.output.form.options or self._fields[0].get("stop") != stops:
            return False
        return isinstance(outcome, Reply) and outcome.finish_reason == "stop" and not outcome.text.strip()

    def _after_line_break(self, values: Mapping[str, str], sample: int) -> Request:
        """Return the request with the model's line break appended to its text."""
        fields = json.loads(self._templates[0].filled(values))
        fields["prompt"] += "\n"
        return Request(self.endpoint, canonical(fields), sample, again=True, constraint=self._held[0])

    def _once_more(self, values: Mapping[str, str]) -> str:
        """Return the message to a model whose reply states no verdict."""
        again = self.prompt.output.form.again
        meant = _MEANT.get(self.prompt.kind)
        if meant is None or self.prompt.output.type != "yes/no" or is_open(values.get("question", "")):
            return again
        if "passage useful" in self.prompt.user:
            meant = "is the passage useful for answering it?"
        # "No, it did not" answers the user's question, and so may the next "No", unless the message says what is meant.
        return f"Do not answer the question itself: {meant} {again}"

    def unsettled(self, outcome: Outcome, values: Callable[[], Mapping[str, str]] = dict) -> bool:
        """Whether to ask `again` after an outcome of `request`; ``values`` returns what was filled into the prompt."""
        verdict = stated(self.prompt, outcome, values, thinks=self.endpoint.thinks) if self._asks_verdict else None
        if isinstance(verdict, Verdict):
            return False
        if self._ended_at_once(outcome):
            return True
        reply = usable(outcome)
        if isinstance(reply, Unread):
            cut = isinstance(outcome, Reply) and reply.status is Status.TRUNCATED
            return cut and not self._endless(outcome)
        if verdict is None:
            return False
        note_unread(outcome, verdict.status)
        return True

    @cached_property
    def _asks_verdict(self) -> bool:
        """Whether a verdict is read from the text of the reply."""
        # Log-probabilities belong to the model's first words, so they are not requested again.
        return bool(self.prompt.output.form.options) and not self._fields[0].get("logprobs")

    def _endless(self, outcome: Outcome) -> bool:
        """Whether a cut-off reply repeats itself and would continue to do so with more room."""
        # A verdict is requested in other words, and sampling may end by chance.
        if self.prompt.output.form.options or self._fields[0].get("temperature") != 0:
            return False
        return isinstance(outcome, Reply) and repeats_itself(outcome.text)

    def stated(self, outcome: Outcome, values: Callable[[], Mapping[str, str]] = dict) -> Verdict | Unread:
        """Read the verdict from the outcome of a request; ``values`` returns what was filled into the prompt."""
        verdict = stated(self.prompt, outcome, values, thinks=self.endpoint.thinks)
        if isinstance(verdict, Unread):
            note_unread(outcome, verdict.status)
        return verdict


def repeats_itself(text: str) -> bool:
    """Whether a text ends in the same words, again and again."""
    end = text.rstrip()[-_LOOKED_AT:]
    for period in range(1, len(end) // _TIMES + 1):
        times = max(_TIMES, -(-_LEAST // period))
        if end.endswith(end[-period:] * times):
            return True
    return False


Values = Callable[[], Sequence[Mapping[str, str]]]
"""Returns what is filled into each request of the first wave."""


def next_wave(asked: Sequence[tuple[Asker, int]], values: Values, replies: Sequence[Outcome]) -> list[Request]:
    """Return the first wave; then, once, the repeated requests; then []."""
    if not replies:
        return [asker.request(text, sample=sample) for (asker, sample), text in zip(asked, values(), strict=True)]
    if len(replies) > len(asked):
        return []
    places = _unsettled([asker for asker, _ in asked], values, replies)
    texts = values() if places else ()
    requests: list[Request] = []
    for place in places:
        asker, sample = asked[place]
        requests.append(asker.again(texts[place], replies[place], sample=sample))
    return requests


def merge_waves(
    replies: Sequence[Outcome], askers: Sequence[Asker], values: Values | None = None
) -> tuple[list[Outcome], Sequence[Outcome]]:
    """Return the final outcomes of the first wave, one per asker, and the replies after the second one.

    ``values`` are those given to `next_wave`; prompts without a verdict do not need them.
    """
    outcomes, later = list(replies[: len(askers)]), replies[len(askers) :]
    if not later:
        return outcomes, later
    unsettled = _unsettled(askers, values, outcomes)
    for place, second in zip(unsettled, later, strict=False):
        if isinstance(second, Reply):
            note_replaced(outcomes[place])
            outcomes[place] = second
    return outcomes, later[len(unsettled) :]


def _unsettled(askers: Sequence[Asker], values: Values | None, outcomes: Sequence[Outcome]) -> list[int]:
    """Return the places of the outcomes to ask for again."""
    places = []
    for place, (asker, outcome) in enumerate(zip(askers, outcomes, strict=False)):
        texts = dict if values is None else partial(_at, values, place)
        if asker.unsettled(outcome, texts):
            places.append(place)
    return places


def _at(values: Values, place: int) -> Mapping[str, str]:
    return values()[place]


def play(program: Program[U], unit: U, replies: Sequence[Outcome]) -> tuple[list[Request], int]:
    """Run a program on its own replies, the first of ``replies``, and return how far it gets."""
    used = 0
    while True:
        wave = program.requests(unit, replies[:used])
        if not wave or used + len(wave) > len(replies):
            return wave, used
        used += len(wave)
