"""Marks with which answers cite passages: ``[1]``, ``[1, 3-5]``, ``【2】``, ``[^1]``, ``(Source 1)``, ``tall.¹``.

A mark that looks like a citation but names no numbered passage (``[Smith 2020]``, ``【4:0†source】``, a link) is
reported as unread: such an answer cites something, so it must not count as uncited.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import regex

_WORD: Final = (
    r"(?:doc(?:ument)?s?|passages?|sources?|refs?|references?|citations?|cites?|contexts?|results?|footnotes?|notes?"
    r"|quellen?|fuentes?|fontes?|出典|資料|文献|来源|來源|资料|источник|المصدر|स्रोत)"
)
_SOURCE: Final = r"(?:doc(?:ument)?s?|passages?|sources?|refs?|references?|citations?|quellen?|出典|来源)"
"""In round brackets; (note 5) and (results 1) are prose."""

_NUMBER: Final = rf"(?:{_WORD}\ ?[\s:#_.-]*|[\^#])?\d{{1,3}}"
_NUMBERS: Final = rf"{_NUMBER}(?:\s*(?:[,;&、，；]|and|und|et|y|to|[-–—~])\s*{_NUMBER})*"
_INSIDE: Final = r"[^\[\]［］【】〔〕\n]{0,80}"
_OPEN, _CLOSE = r"[\[［【〔]", r"[\]］】〕]"
_SUPERSCRIPTS: Final = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")

MARK: Final = (
    rf"(?:\\?{_OPEN}{{1,2}}\s*{_NUMBERS}\s*(?:†{_INSIDE})?\\?{_CLOSE}{{1,2}}(?:\((?:https?://|\#)[^\s()]*\))?"
    rf"|[(（]\s*{_SOURCE}\ ?[\s:#_.-]*\d{{1,3}}(?:\s*(?:[,;&、]|and|[-–—])\s*{_NUMBER})*\s*[)）]"
    rf"|<sup>\s*\[?\s*{_NUMBERS}\s*\]?\s*</sup>"
    # After few letters it is an exponent: m², km³.
    r"|(?<=[.,;:!?。！？।؟\"”’»)\]]|\p{L}{4})[⁰¹²³⁴-⁹]+(?:[,˒][⁰¹²³⁴-⁹]+)*(?![\w⁺⁻]))"
)
"""The pattern of a mark, for `regex` with IGNORECASE."""

_MARK: Final = regex.compile(MARK, regex.IGNORECASE)
_WITH_BLANKS: Final = regex.compile(rf"\s*{MARK}", regex.IGNORECASE)
_LIKE_A_MARK: Final = regex.compile(
    rf"{_OPEN}(?:"
    # A key, a place in a source, or its name, but not a time of day.
    rf"\^\w{_INSIDE}|{_INSIDE}†{_INSIDE}|(?!\d{{1,2}}:\d\d\b)\d{{1,3}}(?::|\.\d){_INSIDE}"
    rf"|(?!citation\ needed){_WORD}\b{_INSIDE}"
    r"|(?-i:\p{Lu})[\p{L}.'’-]+(?:\ et\ al\.?|\ (?:and|&)\ (?-i:\p{Lu})[\p{L}'’-]+)?,?\ (?:19|20)\d\d[a-z]?"
    rf"){_CLOSE}"
    r"|(?<!!)\[[^\[\]\n]{1,120}\]\(\s*https?://[^\s()]*\)"
    r"|\((?-i:\p{Lu})[\p{L}'’-]+(?:\ et\ al\.?|\ &\ (?-i:\p{Lu})[\p{L}'’-]+),?\ (?:19|20)\d\d[a-z]?\)"
    r"|<(?:cite|ref)\b[^>]*>",
    regex.IGNORECASE,
)
_PART: Final = regex.compile(r"(?P<first>\d+)(?:\s*(?:[-–—~]|to)\s*(?:\D*?)(?P<last>\d+))?", regex.IGNORECASE)
_LONGEST_RANGE: Final = 50


class CitationMark(NamedTuple):
    """A citation mark: its place, and the numbers of the cited passages, each once."""

    start: int
    end: int
    numbers: tuple[int, ...]


def marks(text: str) -> Iterator[CitationMark]:
    """Yield the marks of a text in order."""
    for found in _MARK.finditer(text):
        numbers: list[int] = []
        # Text after the numbers, such as a place in the source or a link, names no passage.
        named = regex.split(r"†|\(?(?:https?://|\(#)", found[0])[0].translate(_SUPERSCRIPTS)
        for part in _PART.finditer(named):
            first, last = int(part["first"]), int(part["last"] or part["first"])
            within = range(first, last + 1) if 0 <= last - first <= _LONGEST_RANGE else (first, last)
            numbers += within
        # [0] names no passage, and [1][1] names one only once.
        yield CitationMark(found.start(), found.end(), tuple(dict.fromkeys(number for number in numbers if number > 0)))


def without_marks(text: str) -> str:
    """Return a text without its marks and the blanks before them, in one line."""
    return " ".join(_WITH_BLANKS.sub("", text).split())


def unread_marks(text: str) -> list[str]:
    """Return marks that look like citations but name no numbered passage."""
    return [found[0] for found in _LIKE_A_MARK.finditer(_MARK.sub(lambda mark: " " * len(mark[0]), text))]
