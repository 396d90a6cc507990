"""What the offline stand-in takes from a question: its words with prior weights, and the type of the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from judgekit.llm.offline_lexicon import HEADS, MEASURES, PAYING, QUESTION_WORDS, words
from judgekit.llm.offline_text import Token, stem, tokenize

__all__ = ["NAMED", "Question", "read_question"]

NAMED: Final = 1.5
"""Prior weight of names and numbers of the question; other words have 1."""
ASKED: Final = 0.35
"""Prior weight of the noun that is asked for (``which city``), which a good sentence need not repeat."""

_LINKS: Final = words("is are was were the a an kind type sort species of")
_STOPS: Final = words(
    "of for in on at by to from with does did do has have had can could must may be been made that who which"
)
_LASTING: Final = words("last lasted take takes took kept stay stayed work stuck trip after until can must did")
"""Beside these words ``how long`` asks for a time."""
_HEAD_WORDS: Final = 5
"""A noun phrase behind ``what`` or ``which`` is not read further than this."""


@dataclass(frozen=True, slots=True)
class Question:
    """An analysed question.

    Attributes:
        terms: prior weight by word class.
        expects: the answer type: ``person``, ``name``, ``place``, ``date``, ``year``, ``weekday``, ``number``,
            ``code``, ``quantity`` or ``thing``.
        head: word class of the noun or measure asked for (``city``, ``tall``), "" if there is none.
        measures: for a quantity what its unit may measure (``length time``), "" if that is open.
        counted: for a number the word classes of what is counted.
        ends: the last word in lower case.
    """

    terms: Mapping[str, float]
    expects: str
    head: str
    measures: str
    counted: frozenset[str]
    ends: str


def read_question(text: str) -> Question:
    """Analyse a question; the type is decided by its first question word."""
    tokens = [t for t in tokenize(text) if t.word]
    lower = [t.text.lower() for t in tokens]
    at = next((i for i, w in enumerate(lower) if w in QUESTION_WORDS), len(lower))
    word, following = "".join(lower[at : at + 1]), "".join(lower[at + 1 : at + 2])
    expects, head, measures, counted = "thing", "", "", frozenset[str]()
    if word in ("who", "whom", "whose"):
        expects = "person"
    elif word == "when":
        expects = "date"
    elif word == "where":
        expects = "place"
    elif word == "how" and following == "many":
        counted = frozenset(t.stem for t in tokens[at + 2 : at + 4] if t.stem)
        expects = "number"
    elif word == "how" and following in MEASURES:
        head = stem(following)
        expects, measures = "quantity", _duration(lower[at:]) or MEASURES[following]
        if following == "much":
            measures = next((MEASURES[w] for w in lower[at + 2 :] if MEASURES.get(w)), "")
    elif word in ("what", "which"):
        noun = _head(tokens, at + 1)
        expects, measures = _noun_type(noun, lower)
        head = stem(noun) if noun else ""
        if expects == "thing" and lower[-1] in ("called", "named"):
            expects = "name"
        elif expects == "thing" and PAYING & set(lower):
            expects, measures = "quantity", "money"
    terms: dict[str, float] = {}
    for i, token in enumerate(tokens):
        if token.stem and lower[i] not in QUESTION_WORDS:
            prior = NAMED if token.text[0].isdigit() or (token.capital and i > 0) else 1.0
            prior = ASKED if token.stem == head and word != "how" and expects != "thing" else prior
            terms[token.stem] = max(prior, terms.get(token.stem, 0.0))
    return Question(terms, expects, head, measures, counted, lower[-1] if lower else "")


def _duration(asked: Sequence[str]) -> str:
    """``How long does it take`` asks for a time; ``How long is it`` leaves it open."""
    return "time" if asked[1] == "long" and (_LASTING & set(asked)) else ""


def _head(tokens: Sequence[Token], start: int) -> str:
    """Return the noun behind ``what`` or ``which``: ``melting point`` of ``What is the melting point of``."""
    last = ""
    for token in tokens[start : start + _HEAD_WORDS + 2]:
        word = token.text.lower()
        if not last and word in _LINKS:
            continue
        if word in _STOPS or not token.stem:
            break
        last = word
    return last


def _noun_type(noun: str, asked: Sequence[str]) -> tuple[str, str]:
    if noun == "day" and "week" in asked:
        return "weekday", ""
    if noun in MEASURES:
        return "quantity", MEASURES[noun]
    singular = noun[:-1] if noun.endswith("s") else noun
    return HEADS.get(noun) or HEADS.get(singular) or "thing", ""
