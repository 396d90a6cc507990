"""Questions whose reply is a JSON list: which items of a list a text supports, or which facts passages state.

The reply is the list and nothing else, in whatever shape can be read in one way only. Any other reply (cut off, too
short, too long, with another word) is asked for once more; after that there is no value, and never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Generic, Literal, TypeVar, get_args

from judgekit.data.documents import Query
from judgekit.data.tables import Status
from judgekit.plugins.nuggets.facts import Nugget
from judgekit.plugins.nuggets.lists import read_list
from judgekit.reading.asker import GROWTH
from judgekit.reading.prompts import Prompt, neutral
from judgekit.reading.verdict import Unread, usable
from judgekit.wire.reasoning import without_reasoning
from judgekit.wire.types import Endpoint, Outcome, Reply, Request, chat

Support = Literal["support", "partial", "none"]
WORDS: Final[tuple[Support, ...]] = get_args(Support)
_OTHERS: Final[Mapping[str, Support]] = {
    **dict.fromkeys(("supported", "full support", "full", "fully supported", "fully support"), "support"),
    **dict.fromkeys(("partial support", "partially supported", "partially support", "partially", "partly"), "partial"),
    **dict.fromkeys(("not support", "not supported", "no support", "unsupported", "not stated"), "none"),
}
"""Other words for the same, without hyphens and underscores: TREC RAG's (``not_support``) and those of models."""

_NUMBERS: Final = ("id", "index", "item", "no", "number")
"""The fields of an object that may number it."""

WEIGHTS: Final[Mapping[Support, float]] = {"support": 1.0, "partial": 0.5, "none": 0.0}
AT_ONCE: Final = 10
"""Nuggets that are shown in one request, as AutoNuggetizer does (Pradeep et al., arXiv 2411.09607)."""

_ROOM: Final = 256

Item = TypeVar("Item")


@dataclass(frozen=True)
class Question(Generic[Item]):
    """What is asked.

    Attributes:
        values: what is filled into the prompt.
        form: what the reply has to be, as a model is told whose first reply is something else.
        read: reads the list of a reply, or returns why it cannot be used.
    """

    values: Mapping[str, str]
    form: str
    read: Callable[[list[Any]], list[Item] | str]


@dataclass(frozen=True)
class ListAsker:
    """A prompt for lists, put to an endpoint: a first wave of requests, and a second one for unusable replies."""

    endpoint: Endpoint
    prompt: Prompt

    def requests(self, questions: Sequence[Question[Item]], replies: Sequence[Outcome]) -> list[Request]:
        """Return the next wave: all questions, then those again whose replies cannot be read, then []."""
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
        """Return the items of all lists, in order; where one of them cannot be read, why."""
        again = iter(replies[len(questions) :])
        items: list[Item] = []
        for question, reply in zip(questions, replies, strict=False):
            listed = self._read(question, next(again) if self._asks_again(question, reply) else reply)
            if isinstance(listed, Unread):
                return listed
            items += listed
        return items

    def _request(self, messages: Sequence[Mapping[str, str]], **params: Any) -> Request:
        fields = {"temperature": 0, **self.prompt.params, **self.endpoint.llm.params, **params}
        return chat(self.endpoint, messages, **fields)

    def _asks_again(self, question: Question[Item], reply: Outcome) -> bool:
        listed = self._read(question, reply)
        # A failure was tried several times already, and a refusal stays one.
        return isinstance(listed, Unread) and listed.status in (Status.UNPARSED, Status.TRUNCATED)

    def _again(self, question: Question[Item], reply: Outcome) -> Request:
        messages = self.prompt.messages(question.values)
        if not isinstance(reply, Reply) or isinstance(usable(reply), Unread):
            # Cut off, or nothing that could be quoted: the same question, with more room.
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


def support_question(values: Mapping[str, str], items: int) -> Question[Support]:
    """Return a question that wants a word for each of its items."""
    form = f"a JSON list of {items} words, each one of: {', '.join(WORDS)}"
    return Question({**values, "count": str(items)}, form, partial(_supports, items))


def _supports(items: int, listed: list[Any]) -> list[Support] | str:
    if len(listed) != items:
        return f"{len(listed)} words for {items} items"
    supports: list[Support] = []
    for place, item in enumerate(listed, 1):
        if isinstance(item, dict) and any(item.get(name, place) not in (place, str(place)) for name in _NUMBERS):
            return "items in another order"
        word = _word(item)
        if word is None:
            return f"{item!r}, which is none of {', '.join(WORDS)}"
        supports.append(word)
    return supports


def _word(item: object) -> Support | None:
    """Return what an item says: a word, or the one word among the fields of an object."""
    if isinstance(item, dict):
        words = [word for value in item.values() if (word := _word(value)) is not None]
        return words[0] if len(words) == 1 and not any(isinstance(value, dict) for value in item.values()) else None
    if not isinstance(item, str):
        return None
    said = " ".join(item.casefold().replace("_", " ").replace("-", " ").split())
    return next((word for word in WORDS if word == said), _OTHERS.get(said))


def nugget_questions(prompt: Prompt, query: Query, nuggets: Sequence[Nugget], text: str) -> list[Question[Support]]:
    """Return the questions about which nuggets a text states, `AT_ONCE` in each."""
    questions: list[Question[Support]] = []
    for start in range(0, len(nuggets), AT_ONCE):
        shown = nuggets[start : start + AT_ONCE]
        facts = "\n".join(f"{number}. {neutral(nugget.text)}" for number, nugget in enumerate(shown, 1))
        values = prompt.values(query) | {"facts": facts, "text": neutral(text)}
        questions.append(support_question(values, len(shown)))
    return questions
