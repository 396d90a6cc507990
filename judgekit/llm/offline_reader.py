"""How the offline stand-in answers and judges: weighted overlap of the question with sentences, and answer types.

All passages of a prompt are read together. A question word weighs more the rarer it is among *this prompt's*
sentences, and a word that no sentence has weighs most, so that further passages change what counts as evidence. The
best span over all passages is the answer, with a bonus if other passages say the same: a contradicting passage can
win. Attention sags in the middle of long prompts.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from judgekit.llm.offline_lexicon import PLACE_WORDS, words
from judgekit.llm.offline_question import NAMED, Question, read_question
from judgekit.llm.offline_text import Candidate, Sentence, Token, sentences, tokenize

__all__ = ["Answer", "Reader", "choose", "compare", "shifted"]

COVERAGE: Final = 0.60
"""Share of the span's score that the question words found in and around its sentence have."""
NEARNESS: Final = 0.22
"""Share of the distance between the span and these words."""
FIT: Final = 0.18
"""Share of the answer type."""
IN_TITLE: Final = 0.75
"""What a question word counts that only the title has; in the sentence itself it counts 1."""
BEFORE: Final = 0.40
"""What it counts if only the sentence before has it."""
ANSWER_FROM: Final = 0.32
"""Least coverage with which a span is answered; below it the model abstains."""
RELEVANT_FROM: Final = 0.50
"""Score at which a passage is as likely relevant as not."""
STEEPNESS: Final = 11.0
"""How fast the probability rises around that point."""
SAG: Final = 0.16
"""Share of the attention that is lost in the middle of a prompt with three passages or more."""
ECHO: Final = 0.10
"""Bonus for every doubling of the number of passages that give the same answer."""
CACHED: Final = 4096
"""How many questions and passages are kept analysed."""

_FIT: Final[Mapping[str, Mapping[str, float]]] = {
    "person": {"name": 1.0},
    "name": {"name": 1.0, "phrase": 0.15},
    "place": {"name": 0.9, "phrase": 0.35},
    "date": {"date": 1.0, "year": 0.7},
    "year": {"year": 1.0},
    "weekday": {"weekday": 1.0},
    "number": {"number": 1.0},
    "code": {"number": 0.9, "name": 0.6},
    "quantity": {"quantity": 1.0, "number": 0.4},
    "thing": {"phrase": 0.7, "name": 0.75, "quantity": 0.3},
}
_INTRODUCTIONS: Final = words("is was are were called of a an the with")
_VERBAL: Final = ("ed", "ing")
_ARTICLE = re.compile(r"^(?:the|a|an)\s+", re.IGNORECASE)
_HEADING = re.compile(r"\A([^\n]{1,120})\n(?=.*\S)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model makes of a prompt.

    Attributes:
        span: the answer's text; None where nothing fits well enough.
        confidence: probability that the model gives to its own answer or abstention.
        relevant: probability that the passages are relevant.
        sentence: the sentence that the span stands in, else the one with the most overlap; "" without passages.
    """

    span: str | None
    confidence: float
    relevant: float
    sentence: str


class _Passage(NamedTuple):
    """``holding`` is the number of sentences that have a word class."""

    title: frozenset[str]
    sentences: tuple[Sentence, ...]
    holding: Mapping[str, int]


class _Span(NamedTuple):
    score: float
    coverage: float
    text: str
    sentence: str


class Reader:
    """Answers and judges. Keeps the analysis of what it saw last, which changes the speed and nothing else."""

    def __init__(self) -> None:
        self._question = lru_cache(maxsize=CACHED)(read_question)
        self._passage = lru_cache(maxsize=CACHED)(_analyse)

    def read(self, question: str, passages: Sequence[tuple[str, str]]) -> Answer:
        """Answer a question from (title, text) passages in prompt order."""
        asked = self._question(question)
        read = [self._passage(title, text) for title, text in passages]
        if not asked.terms or not any(p.sentences for p in read):
            return Answer(None, 0.99, 0.01, "")
        weights = _weights(asked, read)
        relevant, overlap, where = 0.0, -1.0, ""
        spans: list[_Span] = []
        for index, passage in enumerate(read):
            attention = _attention(index, len(read))
            covers = [attention * cover for cover in _coverages(passage, weights)]
            span = _best_span(passage, covers, asked, weights)
            if span is not None:
                spans.append(span)
            here = max(covers, default=0.0)
            if here > overlap and passage.sentences:
                overlap, where = here, passage.sentences[covers.index(here)].text
            relevant = max(relevant, _relevance(here, span))
        best = _vote(spans)
        if best is None or best.coverage < ANSWER_FROM:
            return Answer(None, _sigmoid(STEEPNESS * (ANSWER_FROM - overlap)), relevant, where)
        return Answer(best.text, _sigmoid(STEEPNESS * (best.score - 0.5)), relevant, best.sentence)

    def check(self, claim: str, passages: Sequence[tuple[str, str]], classes: tuple[str, str]) -> Answer:
        """Say whether passages support a claim (``classes[0]``) or refute it, by the sentence nearest to it.

        It refutes the claim if it lacks one of the claim's names or numbers, or if only one of the two is negated.
        """
        asked = self._question(claim)
        read = [self._passage(title, text) for title, text in passages]
        if not asked.terms or not any(p.sentences for p in read):
            return Answer(None, 0.99, 0.01, "")
        weights = _weights(asked, read)
        best, nearest, title = 0.0, Sentence(""), frozenset[str]()
        for passage in read:
            for sentence, cover in zip(passage.sentences, _coverages(passage, weights), strict=True):
                if cover > best:
                    best, nearest, title = cover, sentence, passage.title
        certain = _sigmoid(STEEPNESS * abs(best - ANSWER_FROM))
        if best < ANSWER_FROM:
            return Answer(None, certain, 1.0 - certain, nearest.text)
        named = {term for term, prior in asked.terms.items() if prior == NAMED}
        lacking = any(term not in nearest.positions and term not in title for term in named)
        negated = _negated(tokenize(claim)) != _negated(nearest.tokens)
        return Answer(classes[1] if lacking or negated else classes[0], certain, certain, nearest.text)


def choose(answers: Sequence[str], abstain: str) -> Answer:
    """Choose what most of the proposed answers say, the earlier where they are even; abstentions do not count."""
    said: dict[str, list[str]] = {}
    for answer in answers:
        if answer and _key(answer) != _key(abstain):
            said.setdefault(_key(answer), []).append(answer)
    if not said:
        return Answer(None, 0.9, 0.0, "")
    most = max(said.values(), key=len)
    return Answer(most[0], len(most) / (1.0 + sum(map(len, said.values()))), 1.0, "")


def compare(answer: str, references: Sequence[str]) -> Answer:
    """Judge an answer by the words that it shares with the nearest reference."""
    said = _content_words(answer)
    overlap = 0.0
    for reference in references:
        wanted = _content_words(reference)
        shared = len(said & wanted)
        overlap = max(overlap, 2.0 * shared / (len(said) + len(wanted)) if shared else 0.0)
    return Answer(None, 0.9, _sigmoid(STEEPNESS * (overlap - 0.5)), answer)


def shifted(probability: float, bar: float) -> float:
    """Return a probability of relevance as it is where the bar lies higher by ``bar`` on the score's scale."""
    return _sigmoid(math.log(probability / (1.0 - probability)) - STEEPNESS * bar) if bar else probability


def _negated(tokens: Sequence[Token]) -> bool:
    return any(t.text.lower() in ("not", "never", "no", "nor", "neither") for t in tokens)


def _key(answer: str) -> str:
    return _ARTICLE.sub("", answer.strip(" .")).lower()


def _content_words(text: str) -> frozenset[str]:
    return frozenset(t.stem for t in tokenize(text) if t.stem)


def _analyse(title: str, text: str) -> _Passage:
    heading = _HEADING.match(text)
    if heading and heading[1][-1] not in ".!?:":
        # The title may stand above the text instead of in an attribute.
        title, text = f"{title} {heading[1]}", text[heading.end() :]
    cut = tuple(sentences(text))
    return _Passage(_content_words(title), cut, Counter(term for s in cut for term in s.positions))


def _weights(question: Question, passages: Sequence[_Passage]) -> dict[str, float]:
    total = 1.0 + sum(len(p.sentences) for p in passages)
    raw = {
        term: prior * math.log(1.0 + total / (0.5 + sum(p.holding.get(term, 0) for p in passages)))
        for term, prior in question.terms.items()
    }
    norm = sum(raw.values())
    return {term: weight / norm for term, weight in raw.items()}


def _attention(index: int, count: int) -> float:
    return 1.0 if count < 3 else 1.0 - SAG * math.sin(math.pi * index / (count - 1))


def _coverages(passage: _Passage, weights: Mapping[str, float]) -> list[float]:
    """Return each sentence's share of the question's weight; long sentences lose a little."""
    out: list[float] = []
    before: Mapping[str, list[int]] = {}
    for sentence in passage.sentences:
        here = sentence.positions
        total = 0.0
        for term, weight in weights.items():
            if term in here:
                total += weight
            elif term in passage.title:
                total += IN_TITLE * weight
            elif term in before:
                total += BEFORE * weight
        out.append(total / (1.0 + 0.006 * max(0, len(sentence.tokens) - 24)))
        before = here
    return out


def _relevance(here: float, span: _Span | None) -> float:
    """Return the probability that a passage is relevant: what it covers, and how well its best span fits."""
    overlap = COVERAGE * here if span is None else span.score
    return _sigmoid(STEEPNESS * (overlap - RELEVANT_FROM))


def _best_span(
    passage: _Passage, covers: Sequence[float], question: Question, weights: Mapping[str, float]
) -> _Span | None:
    best: _Span | None = None
    fits = _FIT[question.expects]
    for sentence, cover in zip(passage.sentences, covers, strict=True):
        # No span of this sentence could still win.
        if cover <= 0.0 or (best is not None and COVERAGE * cover + NEARNESS + 2 * FIT <= best.score):
            continue
        found = [(i, weights[t]) for t, places in sentence.positions.items() if t in weights for i in places]
        for candidate in sentence.candidates:
            kind = fits.get(candidate.kind)
            if kind is None or (candidate.stems and candidate.stems <= weights.keys()):
                continue
            fit = kind + _adjustment(candidate, sentence, question, weights)
            near = sum(w * math.exp(-_distance(candidate, i) / 7.0) for i, w in found)
            score = COVERAGE * cover + NEARNESS * near + FIT * min(fit, 2.0)
            if best is None or score > best.score:
                best = _Span(score, cover, candidate.text, sentence.text)
    return best


def _distance(candidate: Candidate, position: int) -> int:
    if position < candidate.first:
        return candidate.first - position
    # English puts the asked-for thing behind its verb more often than before it.
    return max(0, position - candidate.last) + 1


def _adjustment(candidate: Candidate, sentence: Sentence, question: Question, weights: Mapping[str, float]) -> float:
    """Return what speaks for a span of a fitting kind (positive) or against it."""
    length = candidate.last - candidate.first + 1
    # Any word has a capital letter at the start of a sentence.
    fit = -0.5 if candidate.kind == "name" and candidate.first == 0 and length == 1 else 0.0
    if question.expects == "place":
        fit += 0.1 if candidate.after in PLACE_WORDS else -0.25
    elif question.expects == "person":
        fit -= 0.35 if candidate.after in ("in", "at", "the", "near") else 0.0
        fit += 0.1 if candidate.after == "by" else 0.0
        fit -= 0.15 if length == 1 or length > 3 else 0.0
    elif question.expects == "quantity":
        fit -= 1.5 if candidate.unit and question.measures and candidate.unit not in question.measures else 0.0
        fit += 0.3 if question.head in sentence.positions else 0.0
    elif question.expects == "number":
        fit += _counting(candidate, sentence, question.counted)
    elif question.expects == "thing":
        fit += 0.1 if candidate.after in _INTRODUCTIONS else 0.0
        fit += 0.08 if candidate.kind == "phrase" and length > 1 else 0.0
        fit -= 0.25 if length == 1 and candidate.text.endswith(_VERBAL) else 0.0
        # "What is it made of?": the answer tends to follow the same preposition.
        fit += 0.2 if candidate.after == question.ends else 0.0
    if (
        question.head
        and question.expects != "quantity"
        and length > 1
        and sentence.tokens[candidate.last].stem == question.head
    ):
        # "Which whale?" is answered by "a fin whale".
        fit += 0.5
    elif any(s in weights for s in candidate.stems):
        fit -= 0.35
    return fit


def _counting(candidate: Candidate, sentence: Sentence, counted: frozenset[str]) -> float:
    """``How many stops``: the number before ``stops`` is meant; ``one`` is more often a pronoun than a count."""
    behind = sentence.tokens[candidate.last + 1 : candidate.last + 5]
    fit = 0.3 if any(t.stem in counted for t in behind) else -0.3
    return fit - 0.8 if candidate.text.lower() == "one" else fit


def _vote(spans: Sequence[_Span]) -> _Span | None:
    """Return the best span, passages that give the same answer counting together."""
    groups: dict[str, list[_Span]] = {}
    for span in spans:
        groups.setdefault(_key(span.text), []).append(span)
    best: _Span | None = None
    for group in groups.values():
        first = max(group, key=lambda s: s.score)
        score = first.score + ECHO * math.log2(len(group))
        if best is None or score > best.score:
            best = first._replace(score=score)
    return best


def _sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))
