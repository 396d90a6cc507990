"""Questions whose reply is a JSON list.

The reply must be the list and nothing else, in any unambiguous shape. After any other reply (cut off, too short, too
long, with another word) the model is asked once more; after that there is no value, never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar

from judgekit.data.tables import Status
from judgekit.reading.asker import GROWTH
from judgekit.reading.list_reply import read_list
from judgekit.reading.prompts import Prompt, neutral
from judgekit.reading.verdict import Unread, usable
from judgekit.wire.reasoning import without_reasoning
from judgekit.wire.types import Endpoint, Outcome, Reply, Request, chat
from judgekit.wire.unread import note_unread

_ROOM: Final = 256

Item = TypeVar("Item")


@dataclass(frozen=True)
class Question(Generic[Item]):
    """A question for a list.

    Attributes:
        values: the values filled into the prompt.
        form: the form of the reply, for telling a model whose first reply has another form.
        read: reads the list of a reply, or returns why it cannot be used.
    """

    values: Mapping[str, str]
    form: str
    read: Callable[[list[Any]], list[Item] | str]


@dataclass(frozen=True)
class ListAsker:
    """Asks an endpoint for lists: a first wave of requests, and a second one after unusable replies."""

    endpoint: Endpoint
    prompt: Prompt

    def requests(self, questions: Sequence[Question[Item]], replies: Sequence[Outcome]) -> list[Request]:
        """Return the next wave: all questions, then those with unreadable replies again, then []."""
        if not replies:
            return [self._request(self.prompt.messages(question.values)) for question in questions]
        if len(replies) > len(questions):
            return []
        wave: list[Request] = []
        for question, reply in zip(questions, replies, strict=True):
            if self._asks_again(question, reply):
                wave.append(self._again(question, reply))
        return wave

    def read(self, questions: Sequence[Question[Item]], replies: Sequence[Outcome]) -> list[Item] | Unread:
        """Return the items of all lists, in order, or why one of them cannot be read."""
        again = iter(replies[len(questions) :])
        items: list[Item] = []
        problem: Unread | None = None
        for question, reply in zip(questions, replies, strict=False):
            said = next(again) if self._asks_again(question, reply) else reply
            listed = self._read(question, said)
            if isinstance(listed, Unread):
                note_unread(said, listed.status)
                problem = problem or listed
            else:
                items += listed
        return problem or items

    def _request(self, messages: Sequence[Mapping[str, str]], **params: Any) -> Request:
        fields = {"temperature": 0, **self.prompt.params, **self.endpoint.llm.params, **params}
        return chat(self.endpoint, messages, **fields)

    def _asks_again(self, question: Question[Item], reply: Outcome) -> bool:
        listed = self._read(question, reply)
        # Failures were retried already, and refusals stay.
        return isinstance(listed, Unread) and listed.status in (Status.UNPARSED, Status.TRUNCATED)

    def _again(self, question: Question[Item], reply: Outcome) -> Request:
        messages = self.prompt.messages(question.values)
        if not isinstance(reply, Reply) or isinstance(usable(reply), Unread):
            # Cut off or empty: the same question, with more room.
            room = GROWTH * int(self.prompt.params.get("max_tokens", _ROOM))
            return replace(self._request(messages, max_tokens=room), again=True, free=True)
        said = neutral(without_reasoning(reply.text).strip())
        if said:
            messages.append({"role": "assistant", "content": said})
        messages.append({"role": "user", "content": f"Reply with nothing but {question.form}."})
        return replace(self._request(messages), again=True)

    def _read(self, question: Question[Item], outcome: Outcome) -> list[Item] | Unread:
        reply = usable(outcome)
        if isinstance(reply, Unread):
            return reply
        listed = read_list(reply.text, self.endpoint.thinks)
        if listed is None:
            return Unread(Status.UNPARSED, "the reply is not a JSON list")
        items = question.read(listed)
        if isinstance(items, str):
            return Unread(Status.UNPARSED, f"the reply lists {items}")
        return items
