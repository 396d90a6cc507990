"""Whether a text holds an answer as a sequence of tokens.

A text is prepared once, and an answer once, so that a pair costs little more than a plain substring search:
an answer's longest word is looked for first, and only a text that has it is cut into words, once.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import regex

from judgekit.answers.text import apart, fold

__all__ = ["Phrase", "Text"]

_SEP: Final = "\x1f"
"""Stands between words; a control character, which is part of no word."""

_TOKEN: Final = regex.compile(r"[\p{L}\p{N}\p{M}]+|[^\p{Z}\p{C}]")
"""The tokens of DPR's evaluation: runs of letters, digits and marks; every other visible character by itself. Where a
script has no spaces, `apart` has set its characters apart."""

_ASCII_TOKEN: Final = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")
"""The same for lower-case ASCII, several times faster."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """An answer, prepared.

    Attributes:
        probe: its longest token; a text without it does not hold the answer.
        marked: its tokens, with `_SEP` around each.
    """

    probe: str
    marked: str


class Text:
    """A text in which answers are found as sequences of tokens, as DPR evaluates.

    Case-folded and in Unicode's decomposed form (NFD), other scripts than Latin as `judgekit.answers.text` reads
    them. ``5`` is not in ``25``, and ``C++`` is not in ``C + +b`` only because of its last token.
    """

    def __init__(self, text: str) -> None:
        self._folded = _fold(text)

    @classmethod
    def phrase(cls, answer: str) -> Phrase | None:
        """Prepare an answer to be looked for; None if nothing of it is left."""
        tokens = _tokens(_fold(answer))
        return Phrase(max(tokens, key=len), _marked(tokens)) if tokens else None

    def holds(self, phrase: Phrase) -> bool:
        """Whether the answer's tokens stand in the text, one behind the other."""
        return phrase.probe in self._folded and phrase.marked in self._text

    @cached_property
    def _text(self) -> str:
        return _marked(_tokens(self._folded))


def _fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", fold(text)).casefold())


def _tokens(folded: str) -> list[str]:
    found: list[str] = _ASCII_TOKEN.findall(folded) if folded.isascii() else _TOKEN.findall(apart(folded, whole=True))
    return found


def _marked(tokens: list[str]) -> str:
    return _SEP + _SEP.join(tokens) + _SEP
