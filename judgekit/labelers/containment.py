"""Containment: a document is relevant if it contains one of the reference answers. Free, and often wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Final

from judgekit.answers.text import DprText, Norm, Text, inflected, word_count
from judgekit.data.documents import Doc, Fields, Query, Unit, render
from judgekit.data.labelings import Scale
from judgekit.data.spans import evidence_in
from judgekit.data.tables import Status
from judgekit.labelers.base import Label, Labeler, Needs
from judgekit.settings import setting
from judgekit.wire.types import Outcome

_CLASSES: Final = ("yes", "no", "true", "false", "supports", "refutes", "not enough info")
_CACHED_DOCS: Final = 1 << 14
# An answer without spaces may have more words in a text with spaces.
_SPLIT: Final = 2


@dataclass(frozen=True)
class Containment(Labeler):
    """A reference answer occurs in the document.

    Relevance is 1 if the document's text contains any reference answer, else 0. Not applicable to queries without
    reference answers, or with answers that are all classes (yes, no, SUPPORTS, …) or longer than ``max_words``:
    documents do not state classes, and not long answers in the same words, so 0 would say nothing.

    Words are matched as written, apart from typographic marks, and numbers by value: 3 is not in 3,500 or 3.5, while
    41300 is found as 41,300, 12% as 12 percent, $4.2 billion as 4.2 billion dollars and May 18, 2018 as 18 May 2018.
    ``norm=squad`` matches tokens, like DPR. In scripts without spaces, sequences of characters are matched, so that
    京都 is also found in 東京都. In languages that inflect words (Finnish, Turkish) or attach others to them (Arabic,
    Hebrew), other forms of an answer are not found, and a 0 says so in its reason. The language is the query's, or else
    follows from the script of the answers.

    Scale: binary

    Needs: short reference answers, not classes such as yes or no

    Costs: nothing

    Attributes:
        max_words: skip answers with more words (10); two characters without spaces count as one word
        fields: use fields=text to leave out the title
        norm: whole (typographic marks folded, numbers whole) or squad (tokens, as DPR evaluates)
    """

    kind = "containment"
    scale = Scale("binary")
    needs = Needs(references=True)
    max_words: int = setting(10, least=1)
    fields: Fields | None = None
    norm: Norm = "whole"

    @property
    def _text(self) -> type[Text]:
        return {"whole": Text, "squad": DprText}[self.norm]

    @cached_property
    def _prepared(self) -> Callable[[str], Text]:
        """A cache of a pure function, so that a document of many queries is prepared once."""
        return lru_cache(maxsize=_CACHED_DOCS)(self._text)

    def label(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Label]:
        """Return one label per doc; ``raw`` is the answer that was found."""
        query = unit.query
        phrases, reason = self._phrases(query)
        if not phrases:
            return [Label.missing(query.query_id, doc.doc_id, Status.NOT_APPLICABLE, reason) for doc in unit.docs]
        language = inflected(query.language, tuple(answer for _, answer in phrases))
        doubt = language and f"not found in this form; {language} may contain another form, which is not searched for"
        labels = []
        rendering, prepared = self.rendering, self._prepared
        for doc in unit.docs:
            text = prepared(render(doc, rendering))
            answer = next((answer for phrase, answer in phrases if text.holds(phrase)), None)
            if answer is None:
                label = Label(query.query_id, doc.doc_id, 0.0, reason=doubt)
            else:
                # Locating an answer on its page takes a search of its own, and only overlapping passages share
                # evidence.
                evidence = {} if doc.start is None else self._evidence(doc, phrases)
                label = Label(query.query_id, doc.doc_id, 1.0, raw=answer, extra=evidence)
            labels.append(label)
        return labels

    @property
    def published_variant(self) -> str:
        """The spelling of the variant by tokens, the default until 0.3."""
        return "" if self.norm == "squad" else str(replace(self, norm="squad").spec)

    def counted_otherwise(self, unit: Unit, labels: Sequence[Label], /) -> int:
        """Return how many labels of a unit differ by tokens."""
        by_tokens = self._by_tokens
        phrases, _ = by_tokens._phrases(unit.query)
        own, _ = self._phrases(unit.query)
        if not (phrases and own):
            return len(labels) if bool(phrases) != bool(own) else 0
        count = 0
        with_number = any(phrase.has_digits for phrase, _ in own)
        with_mark = any(phrase.has_marks for phrase, _ in own)
        rendering, prepared = self.rendering, self._prepared
        for doc, label in zip(unit.docs, labels, strict=True):
            rendered = render(doc, rendering)
            text = prepared(rendered)
            # Otherwise both variants match the same tokens.
            if with_mark or text.has_marks or (with_number and text.has_digits):
                tokens = by_tokens._prepared(rendered)
                count += any(tokens.holds(phrase) for phrase, _ in phrases) != (label.relevance == 1.0)
        return count

    @cached_property
    def _by_tokens(self) -> Containment:
        return replace(self, norm="squad")

    def _evidence(self, doc: Doc, phrases: Sequence[tuple[Text, str]]) -> dict[str, str]:
        """Return the places of the answers on the document's page, which two documents of that page may share."""
        shown = doc if self.rendering == "title+text" else replace(doc, title="")
        most = max(len(answer.split()) for _, answer in phrases) + _SPLIT

        def holds_an_answer(words: str) -> bool:
            text = self._text(words)
            return any(text.holds(phrase) for phrase, _ in phrases)

        evidence = evidence_in(shown, holds_an_answer, most)
        if evidence:
            return {"evidence": " ".join(sorted(evidence))}
        return {}

    def _phrases(self, query: Query) -> tuple[list[tuple[Text, str]], str]:
        """Return the answers to look for, prepared for matching, and the reason if there are none."""
        if not query.answers:
            return [], "the query has no reference answer"
        reason = "the reference answers are classes, such as yes or no"
        phrases = []
        for answer in query.answers:
            if " ".join(answer.casefold().split()).strip(" .!") in _CLASSES:
                continue
            text = self._text(answer) if any(map(str.isalnum, answer)) else None
            if text is None or not text.probe:
                reason = "no reference answer has a letter or digit"
            else:
                phrases.append((text, answer))
        if not phrases:
            return [], reason
        short = [(text, answer) for text, answer in phrases if word_count(answer) <= self.max_words]
        if not short:
            return [], f"every reference answer is longer than {self.max_words} words"
        return short, ""
