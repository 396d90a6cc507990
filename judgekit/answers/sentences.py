r"""The sentences of an answer: items of lists, rows of tables and sentences of prose, without headings and sources.

Characters that end a sentence are Unicode's (``\p{STerm}``). A full stop after an abbreviation does not end one; after
one that may end a sentence (``Inc.``, ``p.m.``), the next word decides. A citation mark belongs to the sentence before
it. Texts without punctuation between sentences (Thai) are one sentence.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import regex

from judgekit.answers.citations import MARK

_CLOSERS: Final = r"[\"'”“’»›)\]）」』】〉》*_~`]"
_OPENERS: Final = r"[\"'“”‘„«‹(\[（「『¿¡*_~`–—-]"
_END: Final = regex.compile(
    rf"(?P<stop>[.…\p{{STerm}}]+)(?P<close>(?:\ ?»|{_CLOSERS})*)(?P<marks>(?:\s*{MARK}(?:{_CLOSERS}|\.)*)*)",
    regex.IGNORECASE,
)
_NEXT: Final = regex.compile(rf"(?P<gap>\s*)(?:{_OPENERS}|\s)*(?P<word>[^\W_]+(?:['’][^\W_]+)?)?")
_WORD_BEFORE: Final = regex.compile(r"(?:[\p{L}\p{M}]+[.'’-])*[\p{L}\p{M}\p{N}]+\Z")
_REPORTING: Final = regex.compile(r"[とっをがはにのでもや、，,]")
"""Text after a Japanese quotation within a sentence."""


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


_TITLES: Final = _listed(
    "dr mr mrs ms mx prof st mt ft rev gen col lt sgt capt cmdr adm gov sen rep pres hon fr messrs sra srta dra sig "
    "dott ing hr fr frl mme mlle mgr г-н डॉ श्री सुश्री प्रो cf vs e.g i.e eg ie viz z.b d.h u.a см им проф акад ул пл "
    "пр др гл рис стр табл"
)
"""Abbreviations, without their last full stop, that do not end a sentence."""

_BEFORE_A_NUMBER: Final = _listed(
    "no nos nr fig figs eq eqs sec secs ch chap p pp par para vol vols art arts cap pag pág núm num tab app op line "
    "jan feb mar apr jun jul aug sep sept oct nov dec д кв ст п № т"
)
_OTHERS: Final = _listed(
    "inc ltd co corp llc bros jr sr etc al approx ca est dept univ assn ave blvd rd a.m p.m ph.d m.d b.a m.a b.c a.d "
    "u.s u.k u.n e.u usw bzw mio mrd evtl ggf ee uu ud uds av no г р н.э т.е т.д т.п млн млрд тыс руб коп гг "
    "jan feb mar apr jun jul aug sep sept oct nov dec"
)
"""Abbreviations that may end a sentence."""

_STARTERS: Final = _listed(
    "the a an it its he she they we you i in on at this that these those there his her their our my your as but and or "
    "so when while after before since if for from to by with however although because both some many most all no not "
    "then today now during under over only such each every another other one two three what who where why how nobody "
    "der die das er sie es ein eine im am dieser diese dieses wir le la les il elle un une ce cette dans en el los las "
    "una este esta он она оно они это в на его её"
)
"""Words that mostly begin a sentence if capitalised."""

_GERMAN_MONTHS: Final = (
    r"(?:Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember|Jahrhundert)"
)
_ORDINAL: Final = regex.compile(r"\d{1,2}\Z")
_MONTH: Final = regex.compile(_GERMAN_MONTHS)
_QUANTITY: Final = regex.compile(r".*\d\s?", regex.DOTALL)
_ENUMERATOR: Final = regex.compile(r"[(\s]*(?:\d{1,3}|\p{L})\Z")


def split_prose(text: str) -> list[str]:
    """Return the unchanged sentences of a text without lists and headings."""
    found = []
    start = 0
    for end in _END.finditer(text):
        boundary = _boundary(text, start, end)
        if boundary is not None:
            found.append(text[start:boundary])
            start = boundary
    found.append(text[start:])
    return [sentence.strip() for sentence in found if sentence.strip()]


def _boundary(text: str, start: int, end: regex.Match[str]) -> int | None:
    """Return the end of a sentence; None if it goes on."""
    following = _NEXT.match(text, end.end())
    if following is None or following.end() == len(text) == end.end():
        return None
    word, gap = following["word"] or "", following["gap"]
    stop = end["stop"].rstrip(".…!?") or ""
    if stop:
        # Signs of scripts without a blank after them; a quotation may be part of a longer sentence.
        if end["close"] and _REPORTING.match(text, end.end()):
            return None
        return int(end.end())
    if not word and following.end() < len(text) and not gap:
        return None
    goes_on = word[:1].islower() and not word[1:2].isupper()
    if end["marks"].strip():
        # "[1] says …": the mark is a word of the next sentence.
        if goes_on and end["marks"][:1].isspace():
            before = end.end("close")
            return None if _is_abbreviated(text, start, end, "") else int(before)
    elif not gap:
        return None
    if goes_on:
        return None
    if end["stop"] == "." and _is_abbreviated(text, start, end, word):
        return None
    return int(end.end())


def _is_abbreviated(text: str, start: int, end: regex.Match[str], word: str) -> bool:
    """Return whether a full stop belongs to an abbreviation, and the sentence goes on."""
    stop = end.start("stop")
    if _ENUMERATOR.fullmatch(text, start, stop):
        return True
    before = _WORD_BEFORE.search(text, start, stop)
    if before is None or end["close"]:
        return False
    short = before[0].casefold()
    begins = word.casefold() in _STARTERS
    if short in _TITLES:
        return True
    if word[:1].isdigit() and (short in _BEFORE_A_NUMBER or short.endswith("str")):
        return True
    if _ORDINAL.match(short) and _MONTH.match(word):
        return True
    # A letter after a number is a unit: 300 m.
    single = len(short) == 1 and short.isalpha() and _QUANTITY.fullmatch(text, start, before.start()) is None
    dotted = "." in short and all(len(part) <= 2 for part in short.split("."))
    return (single or dotted or short in _OTHERS) and not begins


# The lines of an answer.


_HEADING: Final = regex.compile(r"\s{0,3}#{1,6}\s+(?P<title>.*?)\s*#*\s*")
_BOLD: Final = regex.compile(r"\s*(?P<mark>\*\*|__)(?P<title>[^*_\n]+)(?P=mark)\s*(?P<colon>[:：]?)\s*")
_UNDERLINE: Final = regex.compile(r"\s{0,3}(?:={3,}|-{3,})\s*")
_RULE: Final = regex.compile(r"\s*(?:[-*_]\s*){3,}")
_ITEM: Final = regex.compile(r"\s*(?:[-*+•‣◦▪·–—]|\(?\d{1,3}[.)．、]|\(?\p{L}\))\s+(?:\[[ xX]\]\s+)?(?=\S)")
_QUOTED: Final = regex.compile(r"\s{0,3}>\s?")
_FENCE: Final = regex.compile(r"\s*(?:```|~~~)")
_ROW: Final = regex.compile(r"\s*\|.*\|\s*")
_RULED: Final = regex.compile(r"\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*")
_ENDS_A_LINE: Final = regex.compile(rf".*(?:[.…\p{{STerm}}:：]{_CLOSERS}*|{MARK}{_CLOSERS}*)\s*", regex.IGNORECASE)
_STOPPED: Final = regex.compile(rf".*[.…\p{{STerm}}]{_CLOSERS}*\s*")
_CITES: Final = regex.compile(MARK, regex.IGNORECASE)
_SOURCE: Final = regex.compile(rf"\s*(?:{MARK}|[-*•]|\d{{1,3}}[.)]|https?://)", regex.IGNORECASE)
_FOOTNOTE: Final = regex.compile(r"\s*\[\^?\d{1,3}\]:\s.*")
_SOURCES: Final = _listed(
    "source sources reference references citation citations bibliography quellen références "
    "fuentes referencias fontes fonti 参考文献 出典 参考 来源 參考文獻 источники المصادر المراجع संदर्भ स्रोत"
)


class _Block(NamedTuple):
    """Lines that belong together (a paragraph, an item, a row); with ``whole`` not split into sentences."""

    text: str
    whole: bool = False


def sentences(text: str) -> list[str]:
    """Return the sentences of an answer, each in one line, citation marks included.

    Sentences end with their list item or table row. Headings, lines that announce a list (``Facts:``), table heads and
    a final list of sources are not sentences, unless they cite a passage.
    """
    found: list[str] = []
    for block in _blocks(text):
        parts = [block.text] if block.whole else split_prose(block.text)
        found += [" ".join(part.split()) for part in parts]
    return [sentence for sentence in found if regex.search(r"[\p{L}\p{N}]", sentence)]


def _blocks(text: str) -> Iterator[_Block]:
    lines = text.splitlines()
    paragraph: list[str] = []

    def ended(announces: bool = False) -> Iterator[_Block]:
        """Yield the paragraph so far, without lines that announce the next ones."""
        joined = "\n".join(paragraph).strip()
        paragraph.clear()
        if announces and joined.endswith((":", "：")):
            *firsts, last = split_prose(joined)
            if not _CITES.search(last):
                joined = " ".join(firsts)
        if joined:
            yield _Block(joined)

    number = 0
    while number < len(lines):
        line = _QUOTED.sub("", lines[number], count=1) if _QUOTED.match(lines[number]) else lines[number]
        following = lines[number + 1] if number + 1 < len(lines) else ""
        number += 1
        title = _title(line, following)
        if title is not None:
            yield from ended(announces=True)
            if _UNDERLINE.fullmatch(following):
                number += 1
            if _CITES.search(title):
                yield _Block(title)
        elif _FENCE.match(line):
            yield from ended(announces=True)
            end = next((n for n in range(number, len(lines)) if _FENCE.match(lines[n])), len(lines))
            yield _Block("\n".join(lines[number:end]), whole=True)
            number = end + 1
        elif "|" in line and _RULED.fullmatch(following) and "|" in following:
            yield from ended(announces=True)
            number += 1
            while number < len(lines) and "|" in lines[number]:
                yield _row(lines[number])
                number += 1
        elif _ROW.fullmatch(line):
            yield from ended(announces=True)
            yield _row(line)
        elif not line.strip() or _RULE.fullmatch(line):
            yield from ended(announces=any(rest.strip() for rest in lines[number:]))
        elif _ITEM.match(line):
            yield from ended(announces=True)
            paragraph.append(_ITEM.sub("", line, count=1))
        elif not _FOOTNOTE.fullmatch(line):
            if paragraph and _ENDS_A_LINE.fullmatch(paragraph[-1]):
                yield from ended(announces=True)
            paragraph.append(line)
        named = line if title is None else title
        if named.strip(" #*_:：").casefold() in _SOURCES:
            paragraph.clear()
            while number < len(lines) and (not lines[number].strip() or _SOURCE.match(lines[number])):
                number += 1
    yield from ended()


def _row(line: str) -> _Block:
    return _Block(line.strip().strip("|").strip(), whole=True)


def _title(line: str, following: str) -> str | None:
    """Return the title if a line is a heading, else None."""
    heading = _HEADING.fullmatch(line)
    if heading is not None:
        return str(heading["title"])
    bold = _BOLD.fullmatch(line)
    if bold is not None and not _STOPPED.fullmatch(bold["title"]):
        return str(bold["title"])
    if line.strip() and _UNDERLINE.fullmatch(following) and not _STOPPED.fullmatch(line) and "|" not in line:
        return line.strip()
    return None
