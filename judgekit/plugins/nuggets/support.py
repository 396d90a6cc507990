"""Listwise questions: an LLM says of each item of a list whether a text supports it.

The reply is a JSON list with one word for each item, in their order, and nothing else. A reply that is no such list
(cut off, too short, too long, with another word) is asked for once more; after that there is no value, and never 0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args

from judgekit.data.documents import Query
from judgekit.data.tables import Status
from judgekit.plugins.nuggets.facts import Nugget
from judgekit.reading.asker import GROWTH
from judgekit.reading.prompts import Prompt, neutral
from judgekit.reading.verdict import Unread, unfenced, usable
from judgekit.wire.reasoning import plain_reply, without_reasoning
from judgekit.wire.types import Endpoint, Outcome, Reply, Request, chat

Support = Literal["support", "partial", "none"]
WORDS: Final[tuple[Support, ...]] = get_args(Support)
WEIGHTS: Final[Mapping[Support, float]] = {"support": 1.0, "partial": 0.5, "none": 0.0}
AT_ONCE: Final = 10
"""Nuggets that are shown in one request, as AutoNuggetizer does (Pradeep et al., arXiv 2411.09607)."""

ASKED_AGAIN: Final = (Status.UNPARSED, Status.TRUNCATED)
"""A failure was tried several times already, and a refusal stays one."""


@dataclass(frozen=True)
class Question:
    """What is filled into a prompt, and how many words the reply has to list."""

    values: Mapping[str, str]
    items: int


@dataclass(frozen=True)
class ListAsker:
    """A prompt for lists, put to an endpoint: a first wave of requests, and a second one for unusable replies."""

    endpoint: Endpoint
    prompt: Prompt

    def requests(self, questions: Sequence[Question], replies: Sequence[Outcome]) -> list[Request]:
        """Return the next wave: all questions, then those again whose replies cannot be read, then []."""
        if not replies:
            return [self._request(self.prompt.messages(question.values)) for question in questions]
        if len(replies) > len(questions):
            return []
        wave = []
        for question, reply in zip(questions, replies, strict=True):
            if self._asks_again(question, reply):
                wave.append(self._again(question, reply))
        return wave

    def supports(self, questions: Sequence[Question], replies: Sequence[Outcome]) -> list[list[Support] | Unread]:
        """Return what each question's reply lists, or why it cannot be read."""
        again = iter(replies[len(questions) :])
        lists = []
        for question, reply in zip(questions, replies, strict=False):
            if self._asks_again(question, reply):
                lists.append(self._read(question, next(again)))
            else:
                lists.append(self._read(question, reply))
        return lists

    def _request(self, messages: Sequence[Mapping[str, str]], **params: Any) -> Request:
        fields = {"temperature": 0, **self.prompt.params, **self.endpoint.llm.params, **params}
        return chat(self.endpoint, messages, **fields)

    def _asks_again(self, question: Question, reply: Outcome) -> bool:
        listed = self._read(question, reply)
        return isinstance(listed, Unread) and listed.status in ASKED_AGAIN

    def _again(self, question: Question, reply: Outcome) -> Request:
        messages = self.prompt.messages(question.values)
        room = {"max_tokens": GROWTH * int(self.prompt.params.get("max_tokens", 256))}
        if isinstance(usable(reply), Unread):  # cut off, or nothing that could be quoted
            return replace(self._request(messages, **room), again=True)
        assert isinstance(reply, Reply)  # see `ASKED_AGAIN`
        said = neutral(without_reasoning(reply.text).strip())
        turns = [{"role": "assistant", "content": said}] if said else []
        words = ", ".join(WORDS)
        form = f"Reply with nothing but a JSON list of {question.items} words, each one of: {words}."
        return replace(self._request([*messages, *turns, {"role": "user", "content": form}]), again=True)

    def _read(self, question: Question, outcome: Outcome) -> list[Support] | Unread:
        reply = usable(outcome)
        if isinstance(reply, Unread):
            return reply
        listed = json_list(reply.text, self.endpoint.thinks)
        if listed is None:
            return Unread(Status.UNPARSED, "the reply is not a JSON list")
        if len(listed) != question.items:
            return Unread(Status.UNPARSED, f"the reply lists {len(listed)} words for {question.items} items")
        supports = []
        for item in listed:
            word = item.strip().casefold() if isinstance(item, str) else item
            if word not in WORDS:
                return Unread(Status.UNPARSED, f"the reply lists {item!r}, which is none of {', '.join(WORDS)}")
            supports.append(word)
        return supports


def json_list(text: str, thinks: bool = False) -> list[Any] | None:
    """Return the JSON list that a reply is, code fences aside; None where it is anything else."""
    said = plain_reply(text, thinks)
    if said is None:
        return None
    try:
        value = json.loads(unfenced(said))
    except (ValueError, RecursionError):
        return None
    if isinstance(value, list):
        return value
    return None


def nugget_questions(prompt: Prompt, query: Query, nuggets: Sequence[Nugget], text: str) -> list[Question]:
    """Return the questions about which nuggets a text states, `AT_ONCE` in each."""
    questions = []
    for start in range(0, len(nuggets), AT_ONCE):
        shown = nuggets[start : start + AT_ONCE]
        facts = "\n".join(f"{number}. {neutral(nugget.text)}" for number, nugget in enumerate(shown, 1))
        values = prompt.values(query) | {"facts": facts, "text": neutral(text), "count": str(len(shown))}
        questions.append(Question(values, len(shown)))
    return questions


def joined(lists: Sequence[list[Support] | Unread]) -> list[Support] | Unread:
    """Return all lists as one; where one of them cannot be read, why."""
    supports: list[Support] = []
    for listed in lists:
        if isinstance(listed, Unread):
            return listed
        supports += listed
    return supports
