"""How the offline stand-in answers and judges: weighted overlap of the question with sentences, and answer types.

All passages of a prompt are read together. A question word weighs more the rarer it is among *this prompt's*
sentences, and a word that no sentence has weighs most, so that further passages change what counts as evidence. The
best span over all passages is the answer, with a bonus if other passages say the same: a contradicting passage can
win. Attention sags in the middle of long prompts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from judgekit.llm.offline_lexicon import HEADS, MEASURED, PLACE_WORDS, QUESTION_WORDS
from judgekit.llm.offline_text import Candidate, Sentence, sentences, stem, tokenize

__all__ = ["Answer", "Reader"]

COVERAGE: Final = 0.60
"""Share of the span's score that the question words found in and around its sentence have."""
NEARNESS: Final = 0.22
"""Share of the distance between the span and these words."""
FIT: Final = 0.18
"""Share of the answer type."""
ANSWER_FROM: Final = 0.42
"""Least coverage with which a span is answered; below it the model abstains."""
RELEVANT_FROM: Final = 0.50
"""Overlap at which a passage is as likely relevant as not."""
STEEPNESS: Final = 11.0
"""How fast the probability rises around that point."""
SAG: Final = 0.10
"""Share of the attention that is lost in the middle of a prompt with three passages or more."""
ECHO: Final = 0.05
"""Bonus for every doubling of the number of passages that give the same answer."""
CACHED_PASSAGES: Final = 4096

_FIT: Final[Mapping[str, Mapping[str, float]]] = {
    "person": {"name": 1.0},
    "name": {"name": 1.0, "phrase": 0.15},
    "place": {"name": 0.9, "phrase": 0.35},
    "date": {"date": 1.0, "year": 0.7},
    "year": {"year": 1.0},
    "number": {"number": 1.0},
    "quantity": {"quantity": 1.0, "number": 0.45},
    "thing": {"phrase": 0.7, "name": 0.75, "quantity": 0.3},
}
_VERBAL: Final = ("ed", "ing", "ly")
_ARTICLE = re.compile(r"^(?:the|a|an)\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Answer:
    """The best span (None: nothing fits well enough), its score, and how relevant the passages look.

    Attributes:
        span: the answer's text, or None.
        confidence: probability that the model gives to its own answer or abstention.
        relevant: probability that the passages are relevant.
        sentence: the sentence with the most overlap, "" without passages.
    """

    span: str | None
    confidence: float
    relevant: float
    sentence: str


@dataclass(frozen=True, slots=True)
class _Passage:
    title: frozenset[str]
    sentences: tuple[Sentence, ...]


@dataclass(frozen=True, slots=True)
class _Question:
    """Word classes with prior weights, the answer type, the noun asked for, the things counted, the last word."""

    terms: Mapping[str, float]
    expects: str
    head: str
    counted: frozenset[str]
    ends: str


class Reader:
    """Reads prompts. Keeps the analysis of the passages seen last, which changes the speed and nothing else."""

    def __init__(self) -> None:
        self._passages: dict[tuple[str, str], _Passage] = {}

    def read(self, question: str, passages: Sequence[tuple[str, str]]) -> Answer:
        """Answer a question from (title, text) passages in prompt order."""
        asked = _question(question)
        read = [self._passage(title, text) for title, text in passages]
        everything = [s for p in read for s in p.sentences]
        if not asked.terms or not everything:
            return Answer(None, 0.99, 0.01, "")
        weights = _weights(asked, everything)
        best_by_passage: list[tuple[float, str]] = []
        overlap, where = 0.0, everything[0].text
        spans: list[tuple[float, float, str]] = []
        for index, passage in enumerate(read):
            attention = _attention(index, len(read))
            covers = _coverages(passage, weights)
            here = max(covers, default=0.0)
            if here * attention > overlap:
                overlap, where = here * attention, passage.sentences[covers.index(here)].text
            best = _best_span(passage, covers, asked, weights, attention)
            if best is not None:
                spans.append(best)
            best_by_passage.append((_relevance(passage, here, best, weights), where))
        relevant = max(p for p, _ in best_by_passage)
        if not spans:
            return Answer(None, _sigmoid(STEEPNESS * (ANSWER_FROM - overlap)), relevant, where)
        score, cover, text = _vote(spans)
        if cover < ANSWER_FROM:
            return Answer(None, _sigmoid(STEEPNESS * (ANSWER_FROM - cover)), relevant, where)
        return Answer(text, _sigmoid(STEEPNESS * (score - 0.5)), relevant, where)

    def _passage(self, title: str, text: str) -> _Passage:
        key = (title, text)
        known = self._passages.get(key)
        if known is None:
            if len(self._passages) >= CACHED_PASSAGES:
                self._passages.clear()
            known = _Passage(frozenset(t.stem for t in tokenize(title) if t.stem), tuple(sentences(text)))
            self._passages[key] = known
        return known


def _question(text: str) -> _Question:
    tokens = [t for t in tokenize(text) if t.word]
    words = [t.text.lower() for t in tokens]
    at = next((i for i, w in enumerate(words) if w in QUESTION_WORDS), 0)
    first = words[at] if words else ""
    second = words[at + 1] if at + 1 < len(words) else ""
    expects, head, counted = "thing", "", frozenset[str]()
    if first in ("who", "whom", "whose"):
        expects = "person"
    elif first == "when":
        expects = "date"
    elif first == "where":
        expects = "place"
    elif first == "how" and second == "many":
        expects, counted = "number", frozenset(t.stem for t in tokens[at + 2 : at + 4] if t.stem)
    elif first == "how" and second in MEASURED:
        expects, head = "quantity", second
    elif first in ("what", "which"):
        nouns = words[at + 1 : at + 5]
        head = next((w for w in nouns if w in HEADS), "")
        # "What is the height of", "which northern city": the noun stands within a few words of the question word.
        expects = HEADS.get(head, "thing")
    terms: dict[str, float] = {}
    for i, token in enumerate(tokens):
        if not token.stem or token.text.lower() in QUESTION_WORDS:
            continue
        prior = 1.5 if token.text[0].isdigit() or (token.capital and i > 0) else 1.0
        if token.text.lower() == head:
            prior = 0.35
        terms[token.stem] = max(prior, terms.get(token.stem, 0.0))
    return _Question(terms, expects, stem(head) if head else "", counted, words[-1] if words else "")


def _weights(question: _Question, everything: Sequence[Sentence]) -> dict[str, float]:
    total = len(everything)
    raw = {
        term: prior * math.log(1.0 + (total + 1.0) / (sum(term in s.positions for s in everything) + 0.5))
        for term, prior in question.terms.items()
    }
    norm = sum(raw.values())
    return {term: weight / norm for term, weight in raw.items()}


def _attention(index: int, count: int) -> float:
    return 1.0 if count < 3 else 1.0 - SAG * math.sin(math.pi * index / (count - 1))


def _coverages(passage: _Passage, weights: Mapping[str, float]) -> list[float]:
    """Share of the question's weight in each sentence; what only the title or the sentence before has counts less."""
    out: list[float] = []
    before: Mapping[str, list[int]] = {}
    for sentence in passage.sentences:
        here = sentence.positions
        total = 0.0
        for term, weight in weights.items():
            if term in here:
                total += weight
            elif term in passage.title:
                total += 0.75 * weight
            elif term in before:
                total += 0.4 * weight
        out.append(total / (1.0 + 0.006 * max(0, len(sentence.tokens) - 24)))
        before = here
    return out


def _relevance(
    passage: _Passage, here: float, best: tuple[float, float, str] | None, weights: Mapping[str, float]
) -> float:
    whole = sum(w for t, w in weights.items() if t in passage.title or any(t in s.positions for s in passage.sentences))
    overlap = 0.6 * here + 0.3 * whole + (0.1 if best is not None else 0.0)
    return _sigmoid(STEEPNESS * (overlap - RELEVANT_FROM))


def _best_span(
    passage: _Passage,
    covers: Sequence[float],
    question: _Question,
    weights: Mapping[str, float],
    attention: float,
) -> tuple[float, float, str] | None:
    best: tuple[float, float, str] | None = None
    fits = _FIT[question.expects]
    for sentence, raw in zip(passage.sentences, covers, strict=True):
        cover = raw * attention
        if cover <= 0.0 or (best is not None and COVERAGE * cover + NEARNESS + FIT <= best[0]):
            continue
        found = [(i, weights[t]) for t, places in sentence.positions.items() if t in weights for i in places]
        for candidate in sentence.candidates:
            fit = fits.get(candidate.kind, 0.0)
            if not fit or (candidate.stems and candidate.stems <= weights.keys()):
                continue
            fit = _fit(fit, candidate, question, weights)
            near = sum(w * math.exp(-_distance(candidate, i) / 7.0) for i, w in found)
            score = COVERAGE * cover + NEARNESS * near + FIT * fit
            if question.counted and not _counts(candidate, sentence, question.counted):
                score -= 0.12
            if best is None or score > best[0]:
                best = score, cover, candidate.text
    return best


def _distance(candidate: Candidate, position: int) -> int:
    if position < candidate.first:
        return candidate.first - position
    # English puts the asked-for thing behind its verb more often than before it.
    return max(0, position - candidate.last) + 1


def _fit(fit: float, candidate: Candidate, question: _Question, weights: Mapping[str, float]) -> float:
    if question.expects == "place":
        fit += 0.1 if candidate.after in PLACE_WORDS else -0.25
    elif question.expects == "person":
        length = candidate.last - candidate.first + 1
        fit -= 0.35 if candidate.after in ("in", "at", "the") else 0.0
        fit += 0.1 if candidate.after == "by" else 0.0
        fit -= 0.15 if length == 1 or length > 4 else 0.0
    elif question.expects == "thing":
        fit += 0.1 if candidate.after in ("is", "was", "are", "were", "called", "of", "a", "an", "the", "with") else 0.0
        fit += 0.08 if candidate.kind == "phrase" and candidate.last > candidate.first else 0.0
        fit -= 0.25 if candidate.first == candidate.last and candidate.text.endswith(_VERBAL) else 0.0
        # "What is it made of?": the answer tends to follow the same preposition.
        fit += 0.2 if candidate.after == question.ends else 0.0
    if question.head and question.expects == "name" and question.head in candidate.stems:
        fit += 0.15
    if any(s in weights for s in candidate.stems):
        fit -= 0.2
    return fit


def _counts(candidate: Candidate, sentence: Sentence, counted: frozenset[str]) -> bool:
    behind = sentence.tokens[candidate.last + 1 : candidate.last + 5]
    return any(t.stem in counted for t in behind)


def _vote(spans: Sequence[tuple[float, float, str]]) -> tuple[float, float, str]:
    """Return the best (score, coverage, text), passages that say the same counting together."""
    groups: dict[str, list[tuple[float, float, str]]] = {}
    for span in spans:
        groups.setdefault(_ARTICLE.sub("", span[2]).lower(), []).append(span)
    winners = []
    for group in groups.values():
        score, cover, text = max(group, key=lambda s: s[0])
        winners.append((score + ECHO * math.log2(len(group)), cover, text))
    return max(winners, key=lambda s: s[0])


def _sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))
