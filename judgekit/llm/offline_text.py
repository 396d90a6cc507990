"""How the offline stand-in sees text: tokens, word classes, sentences, and spans that could be answers.

English only. Everything here is a pure function of the text, so that an analysed passage can be kept and used for
every question that is asked about it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Final

from judgekit.llm.offline_lexicon import MONTHS, NUMBER_WORDS, RELATIONS, STOPWORDS, UNITS, VERBS, WEEKDAYS

__all__ = ["Candidate", "Sentence", "Token", "sentences", "stem", "tokenize"]

_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*(?:st|nd|rd|th)?|\w+(?:['’.-]\w+)*|[^\w\s]")
_BREAK = re.compile(r"(?<=[.!?])[\"'”’)\]]*\s+(?=[\"'“‘(\[]?[A-Z0-9À-Þ])|\n+")
_ABBREVIATION = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|St|No|Prof|Mt|Sr|Jr|vs|ca|cf|e\.g|i\.e)|\b[A-Z])\.$")
_YEAR = re.compile(r"(?:1\d|20)\d\d")
_SUFFIXES: Final = ("ing", "ed", "ers", "er", "ors", "or", "ions", "ion", "ly")


def stem(word: str) -> str:
    """Return the class of a word: suffixes off, everyday synonyms of a relation under one name."""
    root = _root(word)
    # Irregular forms first: "found" is what a finder did, though "founded" loses its ending too.
    return _FORMS.get(word.lower()) or _ROOTS.get(root, root)


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


def _classes(form: Callable[[str], str]) -> Mapping[str, str]:
    classes: dict[str, str] = {}
    for group in RELATIONS:
        members = group.split()
        for word in members:
            classes.setdefault(form(word), f"={members[0]}")
    return MappingProxyType(classes)


_FORMS: Final = _classes(str)
_ROOTS: Final = _classes(_root)


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
        kind: ``name``, ``date``, ``year``, ``weekday``, ``number``, ``quantity`` or ``phrase``.
        first, last: token positions in the sentence, inclusive.
        stems: the word classes in it.
        after: the lower-case word before it (``in``, ``by``, …), "" at the start.
        unit: what the unit of a quantity measures (``length``, …), else "".
    """

    text: str
    kind: str
    first: int
    last: int
    stems: frozenset[str]
    after: str
    unit: str = ""


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

    def _make(self, kind: str, first: int, last: int, unit: str = "") -> Candidate:
        tokens = self.tokens
        before = tokens[first - 1].text.lower() if first else ""
        text = self.text[tokens[first].start : tokens[last].end]
        stems = frozenset(t.stem for t in tokens[first : last + 1] if t.stem)
        return Candidate(text, kind, first, last, stems, before, unit)

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
            if token.text.lower() in WEEKDAYS:
                found.append(self._make("weekday", i, i))
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
            unit = UNITS.get(tokens[last + 1].text.lower(), "") if last + 1 < len(tokens) else ""
            if unit:
                found.append(self._make("quantity", i, last + 1, unit))
            elif i and tokens[i - 1].text in "€$£":
                found.append(self._make("quantity", i - 1, last, "money"))
            i = last + 1
        return found

    def _names(self) -> list[Candidate]:
        found: list[Candidate] = []
        tokens = self.tokens
        i = 0
        while i < len(tokens):
            if not self._names_something(i):
                i += 1
                continue
            last = short = i
            while last + 1 < len(tokens):
                step = 1
                while last + step < len(tokens) and tokens[last + step].text in ("of", "the", "de", "van", "von", "la"):
                    step += 1
                if step > 3 or last + step >= len(tokens):
                    break
                if not (self._names_something(last + step) or (step == 1 and tokens[last + 1].text.isdigit())):
                    break
                last += step
                short = last if step == 1 and short == last - 1 else short
            found.append(self._make("name", i, last))
            if short < last:
                # "Abebe Bikila of Ethiopia" names a person as well as all of it does.
                found.append(self._make("name", i, short))
            i = last + 1
        return found

    def _names_something(self, index: int) -> bool:
        token = self.tokens[index]
        lower = token.text.lower()
        calendar = lower in MONTHS or lower in WEEKDAYS
        return token.capital and token.word and lower not in STOPWORDS and not calendar and not token.number

    def _phrases(self) -> list[Candidate]:
        found: list[Candidate] = []
        tokens = self.tokens
        i = 0
        while i < len(tokens):
            last = i
            while last < len(tokens) and self._in_phrase(last):
                last += 1
            if last > i:
                sizes = range(1, min(3, last - i) + 1)
                found.extend(self._make("phrase", last - size, last - 1) for size in sizes)
            i = max(last, i + 1)
        return found

    def _in_phrase(self, index: int) -> bool:
        token = self.tokens[index]
        lower = token.text.lower()
        common = not token.capital or index == 0
        return bool(token.stem) and common and not token.number and lower not in VERBS and not lower.endswith("ly")


def sentences(text: str) -> list[Sentence]:
    """Cut a text into sentences at full stops and line breaks; abbreviations and initials do not end one."""
    out: list[str] = []
    start = 0
    for match in _BREAK.finditer(text):
        if "\n" not in match[0] and _ABBREVIATION.search(text, max(start, match.start() - 12), match.start()):
            continue
        out.append(text[start : match.start()])
        start = match.end()
    out.append(text[start:])
    return [Sentence(s.strip()) for s in out if s.strip()]
