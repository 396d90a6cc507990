"""Whether a text holds an answer: as a sequence of tokens, or as normalised whole words.

Both rules prepare a text once and an answer once, so that a pair costs little more than a plain substring search:
an answer's longest word is looked for first, and only a text that has it is cut into words, once.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import regex

from judgekit.answers.text import apart, fold

__all__ = ["Phrase", "PreparedText", "TokenText", "WordText"]

_SEP: Final = "\x1f"
"""Stands between words; a control character, which is part of no word."""

_TOKEN: Final = regex.compile(r"[\p{L}\p{N}\p{M}]+|[^\p{Z}\p{C}]")
"""The tokens of DPR's evaluation: runs of letters, digits and marks; every other visible character by itself. Where a
script has no spaces, `apart` has set its characters apart."""

_ASCII_TOKEN: Final = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")
"""The same for lower-case ASCII, several times faster."""

_LEADING: Final = regex.compile(r"^[^\p{L}\p{N}\p{M}_]+")
_SIGN: Final = regex.compile(r"(?:(?<!-)(-)\p{Sc}?)?((?<!\.)\.)?$")
"""What belongs to the number behind it, in what stands before a word's first letter or digit."""

_RAISED: Final = "⁰¹²³⁴-⁹⁺⁻⁼⁽⁾ⁱⁿ₀-₉₊₋₌₍₎"
_SPECIAL: Final = re.compile(f"[{_RAISED}①-⓿]")
_APART: Final = regex.compile(rf"((?<![\p{{L}}\p{{M}}{_RAISED}])[{_RAISED}]+|[①-⓿]+)")
"""Super- and subscripts that are not part of a unit or a formula (``km²``, ``H₂O``), and numbers in circles."""

_TRAILING: Final = ".,;:'\"»›)]}…!?。、」』】》؟،؛।"
_KEPT: Final = "!?"
_PLAIN: Final = str.maketrans("‘’“”‐‑−—―\u200b", "''\"\"---   ", "\u00ad\u200c\u200d\u200e\u200f\u2060\ufeff")
"""Quotes, hyphens and the minus as on a keyboard; a dash parts words, a hyphen does not. What is invisible is gone."""

_ARTICLES: Final = frozenset({"a", "an", "the"})


@dataclass(frozen=True, slots=True)
class Phrase:
    """An answer, prepared.

    Attributes:
        probe: its longest word, without a sign; a text without it does not hold the answer.
        marked: its words, with `_SEP` around each.
        mark: the ``!`` or ``?`` that it ends in, which a text must have in that place (``Jeopardy!``).
        size: the number of its words.
    """

    probe: str
    marked: str
    mark: str = ""
    size: int = 1


class PreparedText:
    """A text in which answers are found; both are cut into words by the same rule."""

    def __init__(self, text: str) -> None:
        self._folded = self._fold(text)

    @classmethod
    def phrase(cls, answer: str) -> Phrase | None:
        """Prepare an answer to be looked for; None if nothing of it is left."""
        words, marks = cls._cut(cls._fold(answer))
        if not words:
            return None
        mark = marks.get(len(words) - 1, "")[:1]
        # A sign may stand apart from its number in a text (-$5).
        return Phrase(max(words, key=len).lstrip("-."), _SEP + _SEP.join(words) + _SEP, mark, len(words))

    def holds(self, phrase: Phrase) -> bool:
        """Whether the answer's words stand in the text, one behind the other."""
        if phrase.probe not in self._folded:
            return False
        text, marks = self._words
        start = text.find(phrase.marked)
        while phrase.mark and start >= 0:
            last = text.count(_SEP, 0, start) + phrase.size - 1
            if phrase.mark in marks.get(last, ""):
                return True
            start = text.find(phrase.marked, start + 1)
        return start >= 0

    @cached_property
    def _words(self) -> tuple[str, Mapping[int, str]]:
        words, marks = self._cut(self._folded)
        return _SEP + _SEP.join(words) + _SEP, marks

    @staticmethod
    def _fold(text: str) -> str:
        raise NotImplementedError

    @staticmethod
    def _cut(folded: str) -> tuple[list[str], Mapping[int, str]]:
        """Return the words of a folded text, and by place the ``!`` and ``?`` behind a word that count."""
        raise NotImplementedError


class TokenText(PreparedText):
    """A text in which answers are found as sequences of tokens, as DPR evaluates.

    Case-folded and in Unicode's decomposed form (NFD), other scripts than Latin as `judgekit.answers.text` reads
    them. ``5`` is not in ``25``, and ``C++`` is not in ``C + +b`` only because of its last token.
    """

    @staticmethod
    def _fold(text: str) -> str:
        if text.isascii():
            return text.lower()
        return unicodedata.normalize("NFD", unicodedata.normalize("NFD", fold(text)).casefold())

    @staticmethod
    def _cut(folded: str) -> tuple[list[str], Mapping[int, str]]:
        tokens: list[str] = (
            _ASCII_TOKEN.findall(folded) if folded.isascii() else _TOKEN.findall(apart(folded, whole=True))
        )
        return tokens, {}


class WordText(PreparedText):
    """A text in which answers are found as whole words under a normalisation that is SQuAD's but for symbols.

    Lower case (folded), articles dropped, punctuation dropped before a word and, where it is a sentence's, behind
    it. Symbols inside or at the end of a word are kept, unlike in SQuAD: ``N/A`` is not ``n a``, ``C++`` is not
    ``c``, ``2.5`` is not ``25``, ``-5`` and ``.5`` are not ``5``, ``10²`` is not ``102``. An answer that ends in
    ``!`` or ``?`` wants it in the text.
    """

    @staticmethod
    def _fold(text: str) -> str:
        """Return ``text`` case-folded in NFKC, with plain apostrophes and hyphens; ``10²`` does not become ``102``."""
        if text.isascii():
            return text.lower()
        text = fold(text)
        # Every second part stays as it is. Few texts have any, and a set of characters is looked for much faster.
        parts = _APART.split(text) if _SPECIAL.search(text) else [text]
        parts[::2] = (unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", p).casefold()) for p in parts[::2])
        return "".join(parts).translate(_PLAIN)

    @staticmethod
    def _cut(folded: str) -> tuple[list[str], Mapping[int, str]]:
        words: list[str] = []
        marks: dict[int, str] = {}
        for found in folded.split():
            spaceless = () if found.isascii() else apart(found, whole=True).split()
            if len(spaceless) > 1:  # one by one, and with no article among them: the A of ビタミンA is not one
                words += [part for piece in spaceless if (part := _begun(piece.rstrip(_TRAILING)))]
                continue
            word = found
            if not found.isalnum():
                word = found.rstrip(_TRAILING)
                kept = "".join(c for c in found[len(word) :] if c in _KEPT)
                if kept:
                    marks[len(words)] = kept
                if word and not word[0].isalnum():
                    word = _begun(word)
            if word and word not in _ARTICLES:
                words.append(word)
            else:
                marks.pop(len(words), None)
        return words, marks


def _begun(word: str) -> str:
    """Return a word without what stands before it; a sign or a point before a number is a part of it."""
    bare: str = _LEADING.sub("", word)
    sign = _SIGN.search(word[: len(word) - len(bare)]) if bare[:1].isdecimal() else None
    return "".join(part or "" for part in sign.groups()) + bare if sign else bare
