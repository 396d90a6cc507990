"""How the offline stand-in sees text: tokens, word classes, sentences, and spans that could be answers.

English only. Everything here is a pure function of the text, so that an analysed passage can be kept and used for
every question that is asked about it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Final

from judgekit.llm.offline_lexicon import MONTHS, NUMBER_WORDS, RELATIONS, STOPWORDS, UNITS

__all__ = ["Candidate", "Sentence", "Token", "sentences", "stem", "tokenize"]

_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*(?:st|nd|rd|th)?|\w+(?:['’.-]\w+)*|[^\w\s]")
_BREAK = re.compile(r"(?<=[.!?])[\"'”’)\]]*\s+(?=[\"'“‘(\[]?[A-Z0-9À-Þ])|\n+")
_ABBREVIATION = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|St|No|Prof|Mt|Sr|Jr|vs|ca|cf|e\.g|i\.e)|\b[A-Z])\.$")
_YEAR = re.compile(r"(?:1\d|20)\d\d")
_SUFFIXES: Final = ("ing", "ed", "ers", "er", "ors", "or", "ions", "ion", "ly")


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Return the class of a word: suffixes off, everyday synonyms of a relation under one name."""
    root = _root(word)
    return _CLASSES.get(root, root)


def _root(word: str) -> str:
    word = word.lower().replace("’", "'").removesuffix("'s").removesuffix("'")
    if word[:1].isdigit() or len(word) < 4:
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word[: -len(suffix)]
            if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
                word = word[:-1]
            break
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


def _classes() -> Mapping[str, str]:
    return MappingProxyType({_root(word): "=" + group.split()[0] for group in RELATIONS for word in group.split()})


_CLASSES: Final = _classes()


@dataclass(frozen=True, slots=True)
class Token:
    """A word, number or punctuation mark of a sentence; ``stem`` is empty for stop words and punctuation."""

    text: str
    start: int
    end: int
    stem: str

    @property
    def word(self) -> bool:
        """Whether this is a word or number rather than punctuation."""
        return self.text[0].isalnum()

    @property
    def number(self) -> bool:
        """Whether this is a number in digits or in words."""
        return self.text[0].isdigit() or self.text.lower().split("-")[0] in NUMBER_WORDS

    @property
    def capital(self) -> bool:
        """Whether this starts with a capital letter."""
        return self.text[0].isupper()


def tokenize(text: str) -> list[Token]:
    """Cut a text into tokens with their character offsets."""
    out = []
    for match in _TOKEN.finditer(text):
        word = match[0]
        silent = not word[0].isalnum() or word.lower() in STOPWORDS
        out.append(Token(word, match.start(), match.end(), "" if silent else stem(word)))
    return out


@dataclass(frozen=True, slots=True)
class Candidate:
    """A span that could be an answer.

    Attributes:
        text: the span as it stands in the passage.
        kind: ``name``, ``date``, ``year``, ``number``, ``quantity`` or ``phrase``.
        first, last: token positions in the sentence, inclusive.
        stems: the word classes in it.
        after: the lower-case word before it (``in``, ``by``, …), "" at the start.
    """

    text: str
    kind: str
    first: int
    last: int
    stems: frozenset[str]
    after: str


@dataclass(frozen=True)
class Sentence:
    """A sentence of a passage, analysed when it is first needed."""

    text: str

    @cached_property
    def tokens(self) -> list[Token]:
        """Its tokens in order."""
        return tokenize(self.text)

    @cached_property
    def positions(self) -> Mapping[str, list[int]]:
        """Token positions by word class."""
        out: dict[str, list[int]] = {}
        for index, token in enumerate(self.tokens):
            if token.stem:
                out.setdefault(token.stem, []).append(index)
        return out

    @cached_property
    def candidates(self) -> list[Candidate]:
        """Every span that could be an answer, in order of appearance within each kind."""
        found = [*self._dates(), *self._numbers(), *self._names(), *self._phrases()]
        return list({(c.first, c.last, c.kind): c for c in found}.values())

    def _make(self, kind: str, first: int, last: int) -> Candidate:
        tokens = self.tokens
        before = tokens[first - 1].text.lower() if first else ""
        text = self.text[tokens[first].start : tokens[last].end]
        return Candidate(text, kind, first, last, frozenset(t.stem for t in tokens[first : last + 1] if t.stem), before)

    def _dates(self) -> list[Candidate]:
        found: list[Candidate] = []
        tokens = self.tokens
        for i, token in enumerate(tokens):
            if token.text.lower() in MONTHS and token.capital:
                first = i - 1 if i and tokens[i - 1].text[0].isdigit() and len(tokens[i - 1].text) < 5 else i
                last = i
                if first == i and i + 1 < len(tokens) and re.fullmatch(r"\d\d?", tokens[i + 1].text):
                    last = i + 1
                year = last + 2 if last + 1 < len(tokens) and tokens[last + 1].text == "," else last + 1
                if year < len(tokens) and _YEAR.fullmatch(tokens[year].text):
                    last = year
                found.append(self._make("date", first, last))
            if _YEAR.fullmatch(token.text):
                found.append(self._make("year", i, i))
        return found

    def _numbers(self) -> list[Candidate]:
        found: list[Candidate] = []
        tokens = self.tokens
        i = 0
        while i < len(tokens):
            if not tokens[i].number or _YEAR.fullmatch(tokens[i].text):
                i += 1
                continue
            last = i
            while last + 1 < len(tokens) and tokens[last + 1].number:
                last += 1
            found.append(self._make("number", i, last))
            end = last
            while end + 1 < len(tokens) and tokens[end + 1].text.lower() in UNITS and end - last < 3:
                end += 1
            if (
                end > last
                and tokens[end].text.lower() in ("per", "square", "cubic", "working")
                and end + 1 < len(tokens)
            ):
                end += 1
            first = i - 1 if i and tokens[i - 1].text in "€$£" else i
            if end > last or first < i:
                found.append(self._make("quantity", first, end))
            i = last + 1
        return found

    def _names(self) -> list[Candidate]:
        found: list[Candidate] = []
        tokens = self.tokens
        i = 0
        while i < len(tokens):
            if not (tokens[i].capital and tokens[i].word) or (tokens[i].text.lower() in STOPWORDS):
                i += 1
                continue
            last = i
            while last + 1 < len(tokens):
                step = 1
                while last + step < len(tokens) and tokens[last + step].text in ("of", "the", "de", "van", "von", "la"):
                    step += 1
                after = tokens[last + step] if last + step < len(tokens) else None
                if (
                    after is None
                    or step > 3
                    or not after.word
                    or not (after.capital or (step == 1 and after.text.isdigit()))
                ):
                    break
                if after.capital and after.text.lower() in STOPWORDS:
                    break
                last += step
            found.append(self._make("name", i, last))
            i = last + 1
        return found

    def _phrases(self) -> list[Candidate]:
        found: list[Candidate] = []
        tokens = self.tokens
        i = 0
        while i < len(tokens):
            last = i
            while last < len(tokens) and tokens[last].stem and not tokens[last].number:
                last += 1
            length = last - i
            if length:
                found.extend(
                    self._make("phrase", max(i, last - size), last - 1) for size in (1, 2, 3) if size <= length
                )
            i = max(last, i + 1)
        return found


def sentences(text: str) -> list[Sentence]:
    """Cut a text into sentences at full stops and line breaks; abbreviations and initials do not end one."""
    out: list[str] = []
    start = 0
    for match in _BREAK.finditer(text):
        if "\n" not in match[0] and _ABBREVIATION.search(text[start : match.start()]):
            continue
        out.append(text[start : match.start()])
        start = match.end()
    out.append(text[start:])
    return [Sentence(s.strip()) for s in out if s.strip()]
