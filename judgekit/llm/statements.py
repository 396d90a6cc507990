"""Where a reply states a verdict, and how much each place weighs."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from judgekit.llm.forms import Form
from judgekit.llm.objects import find_objects
from judgekit.llm.reasoning import blanked, without_reasoning

__all__ = ["INVISIBLE", "OF_THE_QUESTION", "Rank", "Statement", "attributed", "find_statements", "plain_text"]

INVISIBLE: Final = "\u200b\u200c\u200d\u2060\ufeff"
_TEX: Final = re.compile(r"\\(?:[a-zA-Z]+|(?=[\[\](){}]))")
_MARKUP: Final = {ord(c): " " for c in "*_`#$~\t" + INVISIBLE} | {
    ord(c): "\n" for c in "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
}

_SCALE: Final = r"(?:(?:on|from|in|using)\s(?:a\s|the\s)?(?:scale\s)?(?:of\s|from\s)?)\d+\s?(?:to|through|[-–—])\s?\d+"
_MARKER: Final = re.compile(
    r"(?<![\w'’/-])(?P<label>score|grade|rating|verdict|label|answer|judge?ment|decision|relevance|relevant|useful"
    r"|correct|class(?:ification)?|output|result|conclusion|overall)[\"'”’)\]]?\ {0,4}"
    r"(?:(?:for|of|to)\ (?:this|the)\ (?:passage|document|text|result|answer|question|query)\ ?)?"
    rf"(?:\([^()\n]{{0,60}}\)\ ?|{_SCALE}\ ?)?"
    r"(?:(?P<strong>[:=]+>?|->|=>|→|>|\?|[-–—](?=\s))"
    r"|(?P<prose>(?:is|must\ be|(?P<unreal>was|would\ be|should\ be|will\ be))\b:?))"
    r"[ ]*(?:[\"'“”‘’«(\[{<][ ]*){0,3}(?:(?:an?|only|clearly|just|simply)\b[ ]*)?",
    re.IGNORECASE,
)
_BEFORE: Final = re.compile(r"([\w'’]+) *$")
_ALLOWED: Final = re.compile(
    r"\d+|final|overall|relevanc[ey]|total|the|my|an?|this|its|your|so|thus|therefore|hence|passage|document"
    r"|usefulness|correctness|answer",
    re.IGNORECASE,
)
"""Words that may stand right before a marker; behind any other (``match score: 3``) it is another thing's score."""
OF_THE_QUESTION: Final = frozenset({"answer", "result", "output", "conclusion"})
"""Labels that in prose as often belong to the question's own answer as to the verdict."""
_HEADINGS: Final = OF_THE_QUESTION | {"relevance", "relevant", "useful", "correct", "class", "classification"}
"""Labels that also head a paragraph of explanation."""
_FINAL: Final = re.compile(r"\b(?:final|overall)\b(?: +\w+)? *$", re.IGNORECASE)
_FINAL_LABELS: Final = re.compile(r"verdict|decision|judge?ment|overall", re.IGNORECASE)
_HEAD: Final = re.compile(
    r"\W*(?:\d+\W+)?(?:(?:final|overall|relevance|my|so|thus|therefore|hence|your|total)\W+)*", re.IGNORECASE
)
"""What may stand before a marker that heads its line or sentence."""
_EXPLAINED: Final = re.compile(r"(?:[^\W\d]\S* +){4}\S")

_SO: Final = (
    r"(?:(?<!if )\bso\b(?!\s?[,.;!?])|^\W*so,|\b(?:thus|therefore|hence|accordingly|consequently|which means)\b)"
)
_CONDITION: Final = re.compile(
    r"\b(?:whether|until|when)\b[^.,;:!?\n]*$"
    rf"|\b(?:if|unless)\b(?![^.;:!?\n]*{_SO})[^.;:!?\n]*$",
    re.IGNORECASE,
)
"""The words before a marker in prose only suppose what follows: ``if the answer is yes``."""
_SOURCE: Final = re.compile(
    r"\b(?P<reference>references?|expected|gold|ground truth)\b"
    r"|\baccording\b(?! to (?:the|this|these) (?:scale|rubric|guidelines|criteria|definition))"
    r"|(?<!only )(?<!just )(?<!merely )"
    r"\b(?:says|said|saying|states|stated|stating|reads|reports|reported|claims|claimed|quotes?|quoted|tells|told"
    r"|mentions|gives|shows|indicates|confirms|suggests|implies|explains|notes|writes|wrote|answers|asks|whose)\b"
    r"(?!\s(?:no\s\w|nothing|neither|nowhere|only\b))"
    r"|\b(?:both|all|passages?|documents?|they|texts?|sources?|which|that)\s"
    r"(?:say|state|mention|give|claim|report|show|indicate|suggest|confirm|imply)\b",
    re.IGNORECASE,
)
"""Words of a sentence that tells what another text says."""
_CONCLUDES: Final = re.compile(rf"{_SO}|\bin (?:conclusion|short)\b", re.IGNORECASE)
_REVISES: Final = re.compile(
    r"\b(?:so|thus|therefore|hence|accordingly|consequently|but|however|actually|wait|instead|finally|final|overall|my"
    r"|in conclusion|in short|which means|yet)\b",
    re.IGNORECASE,
)
_SENTENCE_END: Final = re.compile(r"[.!?;…](?=\s)|[\n<>]")

_LISTED: Final = re.compile(r"^\W*\d+\s*[:=,;(–—-]", re.MULTILINE)
_BEGIN: Final = re.compile(r"[ \n\"'“‘«(\[]*(?:[-•–>] +)?[\"'“‘«(\[]*")
_SET_OFF: Final = re.compile(r"  +[A-Z]| (?:The|This|It|That|Because)\b")
"""What sets an opening word off without punctuation: markup (now spaces) or the beginning of a sentence."""
_CLOSING_LEAD: Final = re.compile(
    r"(?:so|thus|hence|therefore|overall|in (?:short|sum|conclusion))[, ]+", re.IGNORECASE
)
_NEGATED: Final = re.compile(r"\b(?:not|never|unclear|unsure|depends)\b|n['’]t\b", re.IGNORECASE)
_AS_SAID: Final = re.compile(r"\W{0,3}(?:according|as (?:the|stated|per|it)|per the)\b", re.IGNORECASE)
_QUOTES: Final = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»"}
_LABEL_WORDS: Final = 8
_CLOSE: Final = 200
"""How many characters before a marker are looked at, for conditions and sources."""
_WORD: Final = 30


class Rank(IntEnum):
    """How much a statement weighs: the more it looks like the form of a verdict, the more."""

    ASIDE = 1
    """In prose (``the answer is no``) or as the closing words."""
    PLAIN = 2
    """The opening word, a line of its own, or a line ``Answer: no``."""
    LABELLED = 3
    """Behind a label: ``Relevance: 2``, ``Useful? No``."""
    FINAL = 4
    """Behind a label for verdicts only (``Final grade: 2``, ``Verdict: no``), or in a JSON object."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A place that states a verdict, or where one should be.

    Attributes:
        start, end: where it stands in the text.
        value: the verdict, None if it is none that the form has.
        rank: how much it weighs.
        label: the word that it stands behind, case-folded, or "".
        heads: whether it begins its line unquoted, so that it is no part of a sentence.
        alone: whether it is the opening word and all of its line.
        firm: whether an `Rank.ASIDE` revises a weightier statement before it, instead of being about something else.
        vague: whether there are other words where the verdict should be, so that a later statement makes up for it.
    """

    start: int
    end: int
    value: int | None
    rank: Rank
    label: str = ""
    heads: bool = False
    alone: bool = False
    firm: bool = True
    vague: bool = False


def plain_text(text: str) -> str:
    """Return ``text`` without reasoning and markup and with compatibility characters made plain, as long as before."""
    return _without_markup(_without_reasoning(text))


def _without_reasoning(text: str) -> str:
    text = without_reasoning(text)
    if text.isascii():
        return text
    plain = (unicodedata.normalize("NFKC", c) for c in text)
    return "".join(n if len(n) == 1 else c for n, c in zip(plain, text, strict=True))


def _without_markup(text: str) -> str:
    return _TEX.sub(lambda m: " " * len(m[0]), text).translate(_MARKUP)


def find_statements(text: str, form: Form) -> list[Statement]:
    """Return all statements of a verdict in the order in which they stand, the weightier later at the same place."""
    text = _without_reasoning(text)
    objects = list(find_objects(text, form))
    found = [Statement(o.place, o.end, o.value, Rank.FINAL, o.key) for o in objects if o.key]
    text = _without_markup(blanked(text, [(o.start, o.end) for o in objects]))
    found += _marked(text, form)
    found += _bare(text, form)
    found += _opening(text, form)
    found += _closing(text, form)
    return sorted(found, key=lambda s: (s.start, s.rank))


def attributed(sentence: str, label: str = "", best: bool = False) -> bool:
    """Whether a sentence that ends in a statement tells what another text says.

    Args:
        sentence: the words before the statement.
        label: the label of the statement.
        best: whether it states the best verdict. ``It states the year, so the answer is yes`` is a verdict, while
            ``It says that he lost, so the answer is no`` may be the answer to the question.
    """
    source = _SOURCE.search(sentence)
    if source is None:
        return False
    own = label not in OF_THE_QUESTION or (best and source["reference"] is None)
    return not (own and _CONCLUDES.search(sentence, source.end()))


def _marked(text: str, form: Form) -> Iterator[Statement]:
    for marker in _MARKER.finditer(text):
        begin = max(0, marker.start() - _CLOSE)
        line = text[max(begin, text.rfind("\n", begin, marker.start()) + 1) : marker.start()]
        before = _BEFORE.search(line[-_WORD:])
        if before and not _ALLOWED.fullmatch(before[1]):
            continue
        sentence = line[max((m.end() for m in _SENTENCE_END.finditer(line)), default=0) :]
        match, start = _behind(text, marker, form)
        if (match and form.restated(match)) or _told(text, marker, match, line, sentence, form):
            continue
        stated = _stated(text, marker, match, start, line, sentence, form)
        if stated is not None:
            yield stated


def _told(text: str, marker: re.Match[str], match: re.Match[str] | None, line: str, sentence: str, form: Form) -> bool:
    """Whether a marker only supposes what follows, or tells it of another text than the reply."""
    if marker["prose"] is not None and _CONDITION.search(sentence):
        return True
    if form.answers:
        return False
    label = marker["label"].casefold()
    best = match is not None and form.read(match) == max(form.short.values())
    if not _HEAD.fullmatch(line) and attributed(sentence, label, best):
        return True
    return match is not None and label in OF_THE_QUESTION and _AS_SAID.match(text, match.end()) is not None


def _stated(
    text: str, marker: re.Match[str], match: re.Match[str] | None, start: int, line: str, sentence: str, form: Form
) -> Statement | None:
    """Return what a marker introduces: ``match``, or other words at ``start``; None if that is nothing."""
    label = marker["label"].casefold()
    heads = _HEAD.fullmatch(line) is not None and line.lstrip()[:1] not in _QUOTES
    if marker["prose"] is not None:
        revises = _REVISES.search(sentence) is not None
        own = form.answers or revises or label not in OF_THE_QUESTION
        # The number in "the answer is 2" need not be a grade.
        if match is None or match["end"] is None or not (own or match["number"] is None):
            return None
        firm = own and marker["unreal"] is None
        return Statement(start, match.end(), form.read(match), Rank.ASIDE, label, heads, firm=firm)
    rank = _weight(label, line, _HEAD.fullmatch(sentence) is not None)
    if match is not None:
        return Statement(start, match.end(), form.read(match), rank, label, heads)
    if not text[start : start + 1].strip() or _explains(text, start, label, rank):
        return None
    return Statement(start, start, None, rank, label, heads, vague=True)


def _behind(text: str, marker: re.Match[str], form: Form) -> tuple[re.Match[str] | None, int]:
    """Return the verdict behind a marker and where it should begin: on the same line, or alone on the next one."""
    start = marker.end()
    match = form.value.match(text, start)
    if match is None and marker["strong"] is not None and text[start : start + 1] in ("", "\n"):
        below = form.bare.match(text, start + len(text[start:]) - len(text[start:].lstrip()))
        if below is not None:
            return form.value.match(text, below.start("word" if below["number"] is None else "number")), below.start()
    return match, start


def _weight(label: str, line: str, heads: bool) -> Rank:
    if _FINAL.search(line) or _FINAL_LABELS.fullmatch(label):
        return Rank.FINAL
    if label not in OF_THE_QUESTION:
        return Rank.LABELLED
    return Rank.PLAIN if heads else Rank.ASIDE


def _explains(text: str, start: int, label: str, rank: Rank) -> bool:
    """Whether a label without a verdict only heads a paragraph: ``Relevance: the passage names the year``."""
    return rank < Rank.FINAL and label in _HEADINGS and _EXPLAINED.match(text, start) is not None


def _bare(text: str, form: Form) -> Iterator[Statement]:
    last = len(text.rstrip())
    for match in form.bare.finditer(text):
        # "1." on a line of its own is the number of an item, unless nothing follows.
        item = match["number"] is not None and match["mark"][:1] in (".", ")", ":") and match.end() < last
        if not item and not match["other"] and not match["more"]:
            start, end = match.span("word" if match["number"] is None else "number")
            yield Statement(start, end, form.read(match), Rank.PLAIN, heads=True)


def _opening(text: str, form: Form) -> Iterator[Statement]:
    begin = _BEGIN.match(text).end()  # type: ignore[union-attr]  # it matches the empty text
    match = form.value.match(text, begin)
    if match is None or match["other"] or match["more"]:
        return
    value = form.read(match)
    if match["end"] is None:
        if match["word"] is None or not _SET_OFF.match(text, match.end()):
            return
        value = form.short.get(" ".join(match["word"].casefold().split()))
    if _only_quoted(text, begin, match.end()):
        return
    behind = text[match.end() :].lstrip()[:1]
    listed = match["number"] is not None and match["total"] is None
    if not listed or (behind in ",;:(-–—" and len(_LISTED.findall(text)) < 2):
        alone = text[match.end() :].partition("\n")[0].strip(" .,:;!\"'”’»)]") == ""
        yield Statement(begin, match.end(), value, Rank.PLAIN, alone=alone)


def _only_quoted(text: str, begin: int, end: int) -> bool:
    """Whether a verdict at the beginning is quoted to speak about it: ``"Yes" is not the right answer``."""
    closes = _QUOTES.get(text[begin - 1 : begin], "")
    if not closes:
        return False
    close = text.find(closes, end)
    inside = text[end:close].strip(" .,!:;")
    after = text[close + 1 :].lstrip(" ")
    return close >= 0 and bool(after.strip()) and (bool(inside) or after[:1].isalnum())


def _closing(text: str, form: Form) -> Iterator[Statement]:
    tail = text.rstrip(" \n.!\"'”’»)]")
    cut = max(tail.rfind(c) for c in ".!?…\n")
    words = tail[cut + 1 :]
    firm = True
    introduction = ""
    if ":" in words:
        introduction, _, words = words.rpartition(":")
        firm = _CONCLUDES.search(introduction[-_WORD:]) is not None
        told = not form.answers and attributed(introduction)
        if not firm and (told or len(introduction.split()) > _LABEL_WORDS):
            return
    words = words.lstrip(" (")
    if words[:1] in _QUOTES:
        return
    words = _CLOSING_LEAD.sub("", words, count=1) if _CLOSING_LEAD.match(words) else words
    verdicts = dict(form.words)
    value = verdicts.get(" ".join(words.casefold().split()))
    if value is None or (value != min(verdicts.values()) and _NEGATED.search(introduction[-_CLOSE:])):
        return
    yield Statement(len(tail) - len(words), len(tail), value, Rank.ASIDE, firm=firm)
