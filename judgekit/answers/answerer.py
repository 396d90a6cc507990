"""End-to-end answering: from a query and its top documents to an answer, as a pure program over units.

Utility labels come from the same code with one document: their requests equal those of answering at k = 1 byte by byte,
so the store's replies serve both.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from judgekit.answers.reading import Answer, read_answer
from judgekit.answers.text import candidate, comparable
from judgekit.context import Context
from judgekit.data.documents import BYTES_PER_TOKEN, Doc, Fields, Unit, estimate_tokens, render
from judgekit.data.tables import Status
from judgekit.errors import UsageError, not_among
from judgekit.reading import ANSWER_PROMPT
from judgekit.reading.asker import Asker, merge_waves, next_wave
from judgekit.reading.prompts import Output, Prompt, find_prompt, load_prompt, neutral
from judgekit.wire.jsontext import canonical
from judgekit.wire.types import Endpoint, Outcome, Request
from judgekit.wire.unread import note_unread

_LEAST: Final = 16
"""Documents with fewer tokens left after cutting are dropped."""

_MERGING: Final[Mapping[str, str]] = {"short": "merge", "long": "merge-long"}

MODES: Final = ("together", "reversed", "shuffled", "vote", "merge")
"""The ways of showing documents: all in one prompt (best first, best last or shuffled), or one request per document,
with answers merged by vote or by the model."""

_APART: Final = ("vote", "merge")


@dataclass(frozen=True)
class Answerer:
    """Answers a query from its documents with one prompt of one endpoint.

    Attributes:
        endpoint: the downstream LLM.
        prompt: an answer prompt with ``{passages}``.
        fields: the rendering of documents.
        mode: the way of showing them, one of `MODES`. The order of two documents only depends on the query and on these
            two.
        context_tokens: largest number of tokens for the documents of a prompt, by estimate; the rest is cut.
        sample: the number of the answer to ask for, of several to a question; None for a single one.
        logprobs: whether to ask for the log-probabilities of the answer's tokens.
    """

    endpoint: Endpoint
    prompt: Prompt
    fields: Fields = "title+text"
    mode: str = "together"
    context_tokens: int | None = None
    sample: int | None = None
    logprobs: bool = False

    def __post_init__(self) -> None:
        prompt = self.prompt
        if prompt.kind != "answer" or "passages" not in prompt.placeholders:
            raise UsageError(f"the prompt {prompt.name!r} must answer from passages")
        siblings = [(self._closed.prompt, "answer", "answer without passages")]
        if self._merger:
            siblings.append((self._merger.prompt, "merge", "merge answers"))
        for other, kind, does in siblings:
            if other.kind != kind or "passages" in other.placeholders:
                raise UsageError(f"the prompt {other.name!r} does not {does} (kind: {other.kind})")
            if other.output.type != prompt.output.type:
                raise UsageError(
                    f"the prompt {other.name!r} gives a {other.output.type} answer, {prompt.name!r} a"
                    f" {prompt.output.type} one"
                )

    @cached_property
    def _open(self) -> Asker:
        return self._asking(self.prompt)

    @cached_property
    def _closed(self) -> Asker:
        return self._asking(load_prompt(self.prompt.closed_book))

    def _asking(self, prompt: Prompt) -> Asker:
        # At temperature 0 all samples would be the same.
        drawn = self.sample is not None and "temperature" not in self.endpoint.params
        params: dict[str, Any] = {"temperature": 1.0} if drawn else {}
        if self.logprobs:
            params |= {"logprobs": True, "top_logprobs": 1}
        return Asker(self.endpoint, prompt, params)

    @cached_property
    def _merger(self) -> Asker | None:
        type_ = self.prompt.output.type
        if self.mode != "merge":
            return None
        if type_ not in _MERGING:
            raise UsageError(f"answers of type {type_} are merged by the mode vote, not by a prompt")
        return self._asking(load_prompt(self.prompt.merge or _MERGING[type_]))

    def requests(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Request]:
        """Return the next wave: the question; once more if a reply cannot be used; the merging of answers."""
        calls = self._calls(unit)
        askers = [self.asker(docs) for docs in calls]
        wave = next_wave(
            [(asker, self.sample or 0) for asker in askers],
            lambda: [self._values(unit, docs) for docs in calls],
            replies,
        )
        if wave or self._merger is None or len(calls) == 1:
            return wave
        answers, merging = self._answers(replies, askers)
        candidates = _candidates(answers)
        # If one answer is missing, the whole will be, whatever merging gives: see `_merged`.
        if any(answer.status is not Status.OK for answer in answers) or len(candidates) < 2:
            return []
        listed = "\n".join(f"<answer>{neutral(text)}</answer>" for text in candidates)
        values = self._merger.prompt.values(unit.query) | {"answers": listed}
        return next_wave([(self._merger, self.sample or 0)], lambda: [values], merging)

    def most(self, unit: Unit, /) -> int:
        """Return the largest number of requests for a unit."""
        calls = len(self._calls(unit))
        # Each may be asked once more if its reply cannot be used.
        return 2 * (calls + (self.mode == "merge" and calls > 1))

    def answer(self, unit: Unit, replies: Sequence[Outcome], /) -> Answer:
        """Return the answer, after `requests` returned nothing."""
        calls = self._calls(unit)
        answers, merging = self._answers(replies, [self.asker(docs) for docs in calls])
        answer = answers[0] if len(calls) == 1 else self._merged(answers, merging)
        if self.context_tokens is None:
            return answer
        cut = 0
        for docs in calls:
            fitting = fit(docs, self.fields, self.context_tokens)
            cut += _tokens(docs, self.fields) - _tokens(fitting, self.fields)
        return replace(answer, cut_tokens=cut)

    def shown(self, unit: Unit) -> tuple[Doc, ...]:
        """Return the documents for one prompt, cut to the budget, in the order of the mode."""
        docs = fit(unit.docs, self.fields, self.context_tokens)
        if self.mode == "reversed":
            return docs[::-1]
        # By a hash of the two ids, so that a re-run shows the same order and pays nothing.
        if self.mode == "shuffled":
            drawn = f"0\0{unit.query.query_id}\0"
            return tuple(sorted(docs, key=lambda doc: hashlib.sha256(f"{drawn}{doc.doc_id}".encode()).digest()))
        return docs

    def _calls(self, unit: Unit) -> list[tuple[Doc, ...]]:
        """Return the documents of each request of the first wave; one each if answers are merged."""
        if self.mode not in _APART or not unit.docs:
            return [unit.docs]
        return [(doc,) for doc in unit.docs]

    def asker(self, docs: tuple[Doc, ...]) -> Asker:
        """Return the question about the documents of one prompt."""
        if fit(docs, self.fields, self.context_tokens):
            return self._open
        return self._closed

    def _values(self, unit: Unit, docs: tuple[Doc, ...]) -> dict[str, str]:
        return self.asker(docs).prompt.values(unit.query, self.shown(Unit(unit.query, docs)), self.fields)

    @staticmethod
    def _read(outcome: Outcome, asker: Asker) -> Answer:
        answer = read_answer(outcome, asker.prompt.output, asker.endpoint.thinks)
        note_unread(outcome, answer.status)
        return answer

    def _answers(self, replies: Sequence[Outcome], askers: Sequence[Asker]) -> tuple[list[Answer], Sequence[Outcome]]:
        """Return the answer from each document, and the replies to merging, which follow."""
        outcomes, merging = merge_waves(replies, askers)
        return [self._read(outcome, asker) for outcome, asker in zip(outcomes, askers, strict=True)], merging

    def _merged(self, answers: Sequence[Answer], merging: Sequence[Outcome]) -> Answer:
        """Merge the answers per document. If one is missing, the whole is missing."""
        raw = json.dumps([answer.raw for answer in answers], ensure_ascii=False)
        missing = [answer for answer in answers if answer.status is not Status.OK]
        if missing:
            reason = f"{len(missing)} of {len(answers)} documents gave no answer: {missing[0].reason}"
            return Answer("", missing[0].status, raw, reason)
        if merging and self._merger is not None:
            (merged,), _ = merge_waves(merging, [self._merger])
            return self._read(merged, self._merger)
        given = [answer for answer in answers if not answer.abstained]
        if not given:
            return replace(answers[0], raw=raw)
        votes = Counter(comparable(answer.text) for answer in given)
        # Among answers with equal votes, the best document's counts: `max` returns the first.
        winner = max(given, key=lambda answer: votes[comparable(answer.text)])
        return replace(winner, raw=raw)


_APPLICATION: Final = Prompt("application", "answer", "{question} {passages}", Output("long", abstain="unknown"))


@dataclass(frozen=True)
class Application(Answerer):
    """A user's own application, which gets a question and its documents and needs no prompt.

    A request is ``{"question": …, "documents": [{"doc_id": …, "title": …, "text": …}]}``, with further columns of the
    documents, and with ``"messages"`` if the query is a conversation.
    """

    prompt: Prompt = _APPLICATION

    def __post_init__(self) -> None:
        """Look nothing up."""

    def asker(self, docs: tuple[Doc, ...]) -> Asker:
        """Return the reader of replies."""
        return self._open

    def requests(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Request]:
        """Return the only request; an application is not asked twice."""
        if replies:
            return []
        shown = []
        for doc in self.shown(unit):
            shown.append({"doc_id": doc.doc_id, "title": doc.title, "text": doc.text, **doc.columns})
        body: dict[str, Any] = {"question": unit.query.text, "documents": shown}
        if unit.query.messages:
            body["messages"] = list(unit.query.messages)
        return [Request(self.endpoint, canonical(body), self.sample or 0)]

    def most(self, unit: Unit, /) -> int:
        """Return the largest number of requests for a unit."""
        return 1


def _candidates(answers: Sequence[Answer]) -> list[str]:
    """Return the distinct answers without abstentions, the best documents' first."""
    candidates: dict[str, str] = {}
    for answer in answers:
        if answer.text and not answer.abstained:
            candidates.setdefault(candidate(answer.text), answer.text)
    return list(candidates.values())


def make_answerer(
    endpoint: Endpoint,
    prompt: str,
    context: Context,
    *,
    mode: str = "together",
    context_tokens: int | None = None,
) -> Answerer:
    """Build an answerer from the name (or path) of its prompt, a mode, and the room for documents."""
    if mode not in MODES:
        raise UsageError(not_among("mode", mode, MODES))
    if not endpoint.application:
        return Answerer(endpoint.llm, find_prompt(prompt, context.path), context.fields, mode, context_tokens)
    # An application handles documents and answers in its own way.
    if prompt != ANSWER_PROMPT or mode in _APART:
        what = f"the prompt {prompt!r}" if prompt != ANSWER_PROMPT else f"the mode {mode!r}"
        raise UsageError(f"endpoint {endpoint.name!r} is an application and takes no prompt: leave out {what}")
    return Application(endpoint, fields=context.fields, mode=mode, context_tokens=context_tokens)


def fit(docs: Sequence[Doc], fields: Fields, tokens: int | None) -> tuple[Doc, ...]:
    """Return the documents that fit into ``tokens``, best first; None means no limit."""
    # The first one that does not fit is cut at the end of a word, or dropped if almost nothing would remain; all later
    # ones are dropped.
    if tokens is None:
        return tuple(docs)
    kept: list[Doc] = []
    left = tokens
    for doc in docs:
        size = _tokens([doc], fields)
        # Cut here, since the server would cut silently; this way the loss is counted.
        if size > left:
            shortened = _shorten(doc, fields, left)
            if shortened is not None:
                kept.append(shortened)
            break
        kept.append(doc)
        left -= size
    return tuple(kept)


def _tokens(docs: Iterable[Doc], fields: Fields) -> int:
    """Return the estimated number of tokens of documents."""
    return sum(estimate_tokens(render(doc, fields)) for doc in docs)


def _shorten(doc: Doc, fields: Fields, tokens: int) -> Doc | None:
    """Return the document cut to ``tokens`` at the end of a word, or None if less than `_LEAST` would remain."""
    head = len(render(doc, fields).encode()) - len(doc.text.encode())
    room = tokens * BYTES_PER_TOKEN - head
    if room < _LEAST * BYTES_PER_TOKEN:
        return None
    text = doc.text.encode()[: room + 1].decode(errors="ignore")
    words = text.rsplit(maxsplit=1)
    if len(words) > 1:
        return replace(doc, text=words[0])
    return None
