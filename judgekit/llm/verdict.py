"""The verdict parser: a total function from a reply to a verdict or the reason why there is none.

A wrong label that looks right is worse than a missing one, so a verdict counts only where the reply *states* it:

* the whole reply, or a line of its own: ``Yes``, ``**2**``, ``3/3``, ``10.0``;
* behind a marker: ``Score: 2``, ``the final answer is no``, ``<grade>1</grade>``, ``Relevance (0-3): 2``;
* as the opening or closing words: ``Yes, because …``, ``2 - partly``, ``… It does not say. No.``;
* in a JSON object, under the key that the prompt declares or a usual one.

Of several statements the last one counts. If that one is off the scale, hedged or garbled there is no verdict; an
earlier mention is never taken in its place. A scale that is only restated (``on a scale of 0 to 3``) is no
statement, and reasoning in ``<think>`` tags is not read, closed or not. ``finish_reason`` is looked at first: a
reply that was cut off has no verdict, whatever it says. Time is linear in the length of the reply.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from judgekit.data.tables import Status
from judgekit.llm.types import Failure, Outcome

__all__ = ["Form", "Unread", "Verdict", "read", "read_outcome", "without_reasoning"]


@dataclass(frozen=True)
class Form:
    """The verdicts that a prompt allows.

    Attributes:
        words: (word, value), case-folded: ``yes`` and ``no``, the names of grades, classes.
        low, high: the least and largest grade where a number is a verdict, else None.
        key: the key of the verdict where the reply is to be a JSON object, else "".
    """

    words: tuple[tuple[str, int], ...] = ()
    low: int | None = None
    high: int | None = None
    key: str = ""

    @cached_property
    def short(self) -> Mapping[str, int]:
        """The verdicts as they stand in the shortest replies."""
        numbers = () if self.low is None or self.high is None else range(self.low, self.high + 1)
        return {**dict(self.words), **{str(n): n for n in numbers}}

    @cached_property
    def keys(self) -> re.Pattern[str]:
        """The keys under which a JSON object may hold the verdict."""
        return re.compile(re.escape(self.key), re.IGNORECASE) if self.key else _KEYS

    @cached_property
    def value(self) -> re.Pattern[str]:
        """A verdict and what stands behind it: groups ``word``, ``other``, ``number``, ``total``, ``more``, ``end``."""
        return re.compile(self._pattern, re.IGNORECASE)

    @cached_property
    def bare(self) -> re.Pattern[str]:
        """A verdict on a line of its own: ``value`` with what may stand around it; the group ``mark`` is behind it."""
        return re.compile(_BARE + self._pattern + _AFTER_BARE, re.IGNORECASE | re.MULTILINE)

    @property
    def _pattern(self) -> str:
        words = sorted((w for w, _ in self.words), key=len, reverse=True)
        any_word = "|".join(r"\s+".join(re.escape(part) for part in w.split()) for w in words) or r"(?!)"
        number = r"[+\-−]?(?:\d+(?:\.\d+)?|\.\d+)" if self.low is not None else r"(?!)"
        total = (
            r"\s*(?:/|out\s+of\b|of\b)\s*(?:a\s+)?(?:(?:total|maximum|possible)\s+(?:of\s+)?)?(?P<total>\d+)(?![\d/])"
        )
        return (
            rf"(?:(?P<word>{any_word})(?!\w)(?P<other>\s*(?:/|\||\bor\b|\band\b)\s*(?:{any_word})\b)?"
            rf"|(?P<number>{number})(?:{total})?"
            r"(?P<more>\s*(?:(?P<list>[,/])|[-–—]|\.\.+|to\b|through\b|or\b|and\b)\s*(?P<next>\d+))?)"
            rf"(?P<end>{_END})?"
        )

    def __str__(self) -> str:
        words = [w for w, _ in self.words]
        return "/".join(words) if self.low is None else f"{self.low} to {self.high}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a reply states: its value in the prompt's `Form` and where in the text it stands (``text[start:end]``)."""

    value: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Unread:
    """Why a reply has no verdict."""

    status: Status
    reason: str


_KEYS: Final = re.compile(
    r"(?:(?:final|overall|relevance|is)[ _]?)?(?:score|grade|rating|relevance|relevant|label|verdict|answer|judge?ment"
    r"|decision|overall|result|useful|correct|class(?:ification)?)",
    re.IGNORECASE,
)
"""Keys under which a JSON object states a verdict where the prompt declares none."""

_WRAPPED: Final = " \n\"'*`"
_THINK: Final = re.compile(r"<(/?)(?:think|thinking|thought|reasoning)\b[^<>]*>", re.IGNORECASE)
_TEX: Final = re.compile(r"\\[a-zA-Z]+")
_MARKUP: Final = {ord(c): " " for c in "*_`#$~\t"} | {ord(c): "\n" for c in "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"}
_END: Final = r"(?=\s*(?:$|\n|[,;:!)\]}\"'”’»|<>]|\.(?!\d)|\(|[-–—](?:\s|$)|(?:because|since|as|due)\b))"
"""What may stand behind a verdict: the end of the line, punctuation, an aside, a reason."""

_SCALE: Final = r"(?:(?:on|from|in|using)\s(?:a\s|the\s)?(?:scale\s)?(?:of\s|from\s)?)\d+\s?(?:to|through|[-–—])\s?\d+"
_MARKER: Final = re.compile(
    r"(?<![\w'’/-])(?:score|grade|rating|verdict|label|answer|judge?ment|decision|relevance|relevant|useful|correct"
    r"|class(?:ification)?|output|result|conclusion|overall)[\"'”’)\]]?\ {0,4}"
    r"(?:(?:for|of)\ (?:this|the)\ (?:passage|document|text|result|answer)\ )?"
    rf"(?:\([^()\n]{{0,60}}\)\ ?|{_SCALE}\ ?)?"
    r"(?:(?P<strong>[:=]+>?|->|=>|→|>|\?|[-–—](?=\s))|(?P<prose>(?:is|was|would\ be|should\ be|will\ be)\b:?))"
    r"[ ]*(?:[\"'“”‘’«(\[{<][ ]*){0,3}(?:(?:an?|only|clearly|just|simply)\b[ ]*)?",
    re.IGNORECASE,
)
_BEFORE: Final = re.compile(r"([\w'’]+) *$")
_ALLOWED: Final = re.compile(
    r"\d+|final|overall|relevanc[ey]|total|the|my|an?|this|its|your|so|thus|therefore|hence|passage|document"
    r"|usefulness|correctness",
    re.IGNORECASE,
)
"""Words that may stand right before a marker; behind any other (``match score: 3``) it is another thing's score."""
_CONDITION: Final = re.compile(r"\b(?:if|whether|unless|until|when)\b[^.,;:!?\n]*$", re.IGNORECASE)
"""The clause before a marker in prose only supposes what follows: ``if the answer is yes``."""

_BARE: Final = r"^ *(?:[-•–>] +)?[ \"'“”‘’«(\[{<]*"
_AFTER_BARE: Final = r"(?P<mark>[\"'”’»)\]}<>.,;:! ]*)$"
_LISTED: Final = re.compile(r"^\W*\d+\s*[:=,;(–—-]", re.MULTILINE)
_CLOSE: Final = 200
_WORD: Final = 30
"""How many characters before a marker are looked at, for conditions and for the word before it."""

_MAX_OBJECTS: Final = 50
"""JSON objects are looked for behind at most so many of the last opening braces."""


def read_outcome(outcome: Outcome, form: Form) -> Verdict | Unread:
    """Read the verdict out of what became of a request; a failure or a refusal has none."""
    if isinstance(outcome, Failure):
        return Unread(outcome.status, outcome.reason)
    refusal = outcome.refusal
    if refusal is not None:
        return Unread(Status.REFUSED, f"the model declined: {refusal[:200]}")
    return read(outcome.text, form, outcome.finish_reason)


def read(text: str, form: Form, finish_reason: str | None = None) -> Verdict | Unread:
    """Read the verdict out of the text of a reply. Never raises, whatever the text.

    Args:
        text: the reply, without any reasoning that the endpoint gave apart from it.
        form: the verdicts that the prompt allows.
        finish_reason: the endpoint's; ``length`` means that the reply was cut off.
    """
    if finish_reason == "length":
        return Unread(Status.TRUNCATED, "the reply was cut off (finish_reason: length)")
    begun = text.lstrip(_WRAPPED)
    plain = begun.rstrip(_WRAPPED + ".")
    value = form.short.get(plain.casefold())
    if value is not None:
        start = len(text) - len(begun)
        return Verdict(value, start, start + len(plain))
    last: tuple[int, int, int | None] | None = None
    for statement in _statements(text, form):
        if last is None or statement[0] >= last[0]:
            last = statement
    if last is None:
        said = " ".join(text.split())
        what = f"states no verdict: {said[:80]!r}" if said else "is empty"
        return Unread(Status.UNPARSED, f"the reply {what} (expected {form})")
    start, end, value = last
    if value is None:
        said = " ".join(text[start : end + 20].split())
        return Unread(Status.UNPARSED, f"the reply's last statement, {said!r}, is no verdict (expected {form})")
    return Verdict(value, start, end)


def without_reasoning(text: str) -> str:
    """Return ``text`` with its reasoning in ``<think>`` tags blanked; every character keeps its place.

    A block that is never closed reaches to the end, one that was never opened began before the reply. A second
    opening inside a block is part of the block.
    """
    if "<" not in text:
        return text
    blanks: list[tuple[int, int]] = []
    begun: int | None = None
    for tag in _THINK.finditer(text):
        if not tag[1]:
            begun = tag.start() if begun is None else begun
        elif begun is None:
            blanks = [(0, tag.end())]
        else:
            blanks.append((begun, tag.end()))
            begun = None
    if begun is not None:
        blanks.append((begun, len(text)))
    return _blanked(text, blanks)


def _blanked(text: str, spans: list[tuple[int, int]]) -> str:
    """Return ``text`` with the spans, which stand in order, turned into line ends."""
    parts: list[str] = []
    done = 0
    for start, end in spans:
        parts += (text[done:start], "\n" * (end - start))
        done = end
    return "".join((*parts, text[done:]))


def _cleaned(text: str) -> str:
    """Return ``text`` without reasoning and with compatibility characters made plain, as long as before."""
    text = without_reasoning(text)
    if text.isascii():
        return text
    plain = (unicodedata.normalize("NFKC", c) for c in text)
    return "".join(n if len(n) == 1 else c for n, c in zip(plain, text, strict=True))


def _statements(text: str, form: Form) -> Iterator[tuple[int, int, int | None]]:
    """Yield (start, end, value) of all statements of a verdict; the value is None where it is not one of ``form``."""
    text = _cleaned(text)
    objects: list[tuple[int, int]] = []
    for start, place, end, found in _objects(text, form):
        objects.append((start, end))
        yield place, end, _whole(found, form)
    text = _blanked(text, objects)
    text = _TEX.sub(lambda m: " " * len(m[0]), text).translate(_MARKUP)
    yield from _marked(text, form)
    yield from _bare(text, form)
    yield from _opening_and_closing(text, form)


def _objects(text: str, form: Form) -> Iterator[tuple[int, int, int, Any]]:
    """Yield each outermost JSON object that holds a verdict's key: (start, start of the verdict, end, verdict)."""
    decoder = json.JSONDecoder()
    done = 0
    braces = [i for i, c in enumerate(text) if c == "{"] if "{" in text else []
    for start in braces[-_MAX_OBJECTS:]:
        if start < done:
            continue
        try:
            found, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        keys = [k for k in found if form.keys.fullmatch(k)]
        if keys:
            done = end
            places = list(re.finditer(rf'"{re.escape(keys[-1])}"\s*:\s*', text[start:end]))
            yield start, start + places[-1].end() if places else start, end, found[keys[-1]]


def _whole(value: Any, form: Form) -> int | None:
    """Return the verdict that a JSON value is, or None."""
    if isinstance(value, bool):
        value = "yes" if value else "no"
    match = form.value.fullmatch(str(value).strip())
    return _value(match, form) if match else None


def _value(match: re.Match[str], form: Form) -> int | None:
    """Return the verdict that a match of ``form.value`` is; None if it is hedged, garbled or off the scale."""
    if match["end"] is None or match["other"] or match["more"]:
        return None
    if match["word"] is not None:
        return form.short.get(" ".join(match["word"].casefold().split()))
    number = float(match["number"].replace("−", "-"))
    if not number.is_integer() or str(int(number)) not in form.short:
        return None
    return int(number) if match["total"] in (None, str(form.high)) else None


def _restates(match: re.Match[str], form: Form) -> bool:
    """Whether a match only lists what is possible: ``0 to 3``, ``0, 1, 2 or 3``, ``yes/no``."""
    if match["word"] is not None:
        return match["other"] is not None and "and" not in match["other"].casefold()
    if match["more"] is None or match["number"] != str(form.low):
        return False
    return match["next"] == str(form.high if match["list"] is None else int(match["number"]) + 1)


def _marked(text: str, form: Form) -> Iterator[tuple[int, int, int | None]]:
    for marker in _MARKER.finditer(text):
        begin = max(0, marker.start() - _CLOSE)
        line = text[max(begin, text.rfind("\n", begin, marker.start()) + 1) : marker.start()]
        before = _BEFORE.search(line[-_WORD:])
        if before and not _ALLOWED.fullmatch(before[1]):
            continue
        prose = marker["prose"] is not None
        if prose and _CONDITION.search(line):
            continue
        start = marker.end()
        match = form.value.match(text, start)
        if match is None:
            if not prose and text[start : start + 1].strip():
                yield start, start, None
        elif not _restates(match, form):
            value = _value(match, form)
            if value is not None or not prose or match["end"] is not None:
                yield start, match.end(), value


def _bare(text: str, form: Form) -> Iterator[tuple[int, int, int | None]]:
    last = len(text.rstrip())
    for match in form.bare.finditer(text):
        # "1." on a line of its own is the number of an item, unless nothing follows.
        item = match["number"] is not None and match["mark"][:1] in (".", ")", ":") and match.end() < last
        if not item and not match["other"] and not match["more"]:
            start, end = match.span("word" if match["number"] is None else "number")
            yield start, end, _value(match, form)


def _opening_and_closing(text: str, form: Form) -> Iterator[tuple[int, int, int | None]]:
    begin = len(text) - len(text.lstrip(" \n\"'“‘«(["))
    match = form.value.match(text, begin)
    if match and match["end"] is not None and not match["other"] and not match["more"]:
        behind = text[match.end() :].lstrip()[:1]
        listed = match["number"] is not None and match["total"] is None
        if not listed or (behind in ",;:(-–—" and len(_LISTED.findall(text)) < 2):
            yield begin, match.end(), _value(match, form)
    tail = text.rstrip(" \n.!\"'”’»)]")
    cut = max(tail.rfind(c) for c in ".!?:\n")
    words = tail[cut + 1 :].lstrip(" \"'“‘«([")
    value = dict(form.words).get(" ".join(words.casefold().split()))
    if value is not None:
        yield len(tail) - len(words), len(tail), value
