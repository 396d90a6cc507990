"""The short answer in a reply that may hold more: a label, markup, an explanation.

What is taken off is only what is about the answer; an answer keeps its own words, so that a title with a colon or a
full stop stays whole, and of a text in none of these forms nothing is taken off at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

__all__ = ["short_answer"]

_KIND: Final = r"(?:(?:the|my|your) )?(?:(?:final|short|correct|best) )?answer"
_LABEL: Final = re.compile(
    r"(?:^[ \t>]*(?:[-•][ \t]+)?|(?<=[.!?] ))(?P<head>#+[ \t]*)?(?P<mark>\*\*|__|\*|_)?[ \t]*"
    rf"{_KIND}(?:[ \t]+to the question)?(?: ?\(short\))?[ \t]*(?P<close>\*\*|__|\*|_)?[ \t]*"
    r"(?:[:：](?P<rest>.*)$|(?P<line>)$)",
    re.IGNORECASE | re.MULTILINE,
)
_PROSE: Final = re.compile(
    r"(?:^|(?<=[.!?:\n] )|(?<=\n))[ \t*]*(?:(?:So|Therefore|Thus|Hence),? )?(?:[Tt]he|[Mm]y) "
    r"(?:(?:final|short|correct|best) )?answer(?: to (?:this|that|the|your) question)? is:?[ \t]+(?P<rest>\S.*)$",
    re.MULTILINE,
)
"""``is`` in small letters only, since in a title it would be a large one."""

_LETTER: Final = re.compile(r"(?:(?:Q|Question): .*\n\s*)?A: *(?P<rest>\S.*)$", re.MULTILINE)
_TAG: Final = re.compile(
    r"<(?P<tag>(?:final_|short_)?answer)>(?P<rest>(?:(?!<(?P=tag)>).)*?)</(?P=tag)>", re.IGNORECASE | re.DOTALL
)
_BOXED: Final = re.compile(r"\\boxed\{(?:\\text\{(?P<text>[^{}]+)\}|(?P<rest>[^{}]+))\}")
_KEYS: Final = ("answer", "final_answer", "short_answer")
_FENCED: Final = re.compile(r"(?P<fence>```+|~~~+)[\w+-]*[ \t]*\n(?P<rest>.*?)\n?[ \t]*(?P=fence)", re.DOTALL)
_NEXT_QUESTION: Final = re.compile(r"\n\s*(?:#+ *|\*\*)?(?:question|q) *\d*[:：]|\n\s*<question>", re.IGNORECASE)
_SHORT_WORDS: Final = 5
_MOST_LAYERS: Final = 6

_EXPLAINS: Final = re.compile(
    r"\n\s*[(\[*_#]*(?:(?:short |brief )?(?:explanations?|reason(?:ing)?|justification|rationale|evidence|sources?"
    r"|notes?|citations?|references?|context|confidence)\**\s*[:：]"
    r"|(?:this|that|it) (?:is|was|can be|information)\b|(?:based on|according to|as (?:stated|mentioned|per)|from) "
    r"|(?:the )?(?:first |second |third |provided |given )*(?:passages?|documents?|contexts?|texts?)\b)",
    re.IGNORECASE,
)
"""How lines begin that explain the answer above them."""

_SENTENCE_END: Final = re.compile(
    r"(?<!\b[^\W\d])(?<!\b(?:Dr|Mr|Ms|St|Jr|Sr|Mt|Ft|vs|No|Lt|Co))(?<!\b(?:Mrs|Inc|Ltd|Gen|Col|Rev|Sgt|Vol))"
    r"(?<!\b(?:Prof|Corp|Capt))(?<!\.\w)[.!?][\"”'*]*\s+(?=[A-Z\"“*(])"
    r"|\.[\"”'*]*\s+(?=(?:It|This|That|He|She|They|According|As|Passage|The passages?)\b)"
)
_FULL_STOP: Final = re.compile(
    r"(?:(?<=\w\w)|(?<=[\d\"”'*`)\]]))(?<!\b(?:Jr|Sr|St|Co))(?<!\b(?:Inc|Ltd|etc))(?<!\bCorp)(?<!\.\w)\.$"
)
_REASON: Final = re.compile(
    r",? (?:because|since the|as (?:it is |is )?(?:stated|mentioned|given|per|indicated|described)|according to"
    r"|based on (?:the|passage|document))\b.*$|, (?:as|since) (?:the|it|passage|document)\b.*$"
)
_PAIRS: Final = (
    ("**", "**"), ("```", "```"), ("`", "`"), ("*", "*"), ('"', '"'), ("“", "”"), ("„", "“"), ("«", "»"), ("‘", "’"),
    ("'", "'"),
)  # fmt: skip


def short_answer(text: str) -> str:
    """Return the answer that a reply to a short-answer prompt states; "" if it only announces one."""
    text = _own_turn(_unwrapped(text))
    tagged = [m["rest"] for m in _TAG.finditer(text)] or [m["text"] or m["rest"] for m in _BOXED.finditer(text)]
    if tagged:
        return _unwrapped(tagged[-1])
    stated = _in_json(text)
    if stated is not None:
        return stated
    labels = list(_labels(text))
    if labels:
        return _unwrapped(_labelled(text, labels[-1]))
    prose = list(_PROSE.finditer(text))
    if prose:
        return _unwrapped(_first_sentence(prose[-1]["rest"]))
    letter = _LETTER.match(text)
    return _unwrapped(_unexplained(letter["rest"] + text[letter.end() :] if letter else _unintroduced(text)))


def _own_turn(text: str) -> str:
    """Return the text up to where a model that goes on asks itself the next question."""
    question = _NEXT_QUESTION.search(text)
    if question is None:
        return text
    before = text[: question.start()].strip()
    if "\n" not in before and not before.endswith(":") and 0 < len(before.split()) <= _SHORT_WORDS:
        return before
    answered = _LETTER.match(text) or next(_labels(text), None)
    question = _NEXT_QUESTION.search(text, answered.end()) if answered else None
    return text[: question.start()] if question else text


def _labels(text: str) -> Iterator[re.Match[str]]:
    """Yield the labels; one without a colon is a heading or emphasised, or it would be a word like any."""
    return (m for m in _LABEL.finditer(text) if m["rest"] is not None or m["head"] or m["mark"])


def _in_json(text: str) -> str | None:
    """Return the answer where the whole reply is a JSON object that holds one."""
    fenced = _FENCED.fullmatch(text)
    inner = fenced["rest"].strip() if fenced else text
    if not inner.startswith("{"):
        return None
    try:
        found = json.loads(inner)
    except (ValueError, RecursionError):
        return None
    values = [v for k, v in found.items() if k.casefold() in _KEYS]
    if not values or isinstance(values[-1], dict | list | bool) or values[-1] is None:
        return None
    return str(values[-1]).strip()


def _labelled(text: str, label: re.Match[str]) -> str:
    """Return what stands behind a label: on its line, or else as the next block of lines."""
    mark = "" if label["close"] else label["mark"] or ""
    rest = (label["rest"] or "").strip()
    if mark and rest.startswith(mark) and not (rest.endswith(mark) and len(rest) > 2 * len(mark)):
        rest = rest[len(mark) :].strip()
    elif mark and rest.startswith(mark):
        inner = rest[len(mark) :].strip()
        rest = inner if inner.startswith(mark) or inner.count(mark) % 2 == 0 else inner.removesuffix(mark)
    elif mark:
        rest = rest.removesuffix(mark).strip()
    if rest:
        return rest
    below = text[label.end() :].strip()
    fenced = _FENCED.match(below)
    return fenced[0] if fenced else _unexplained(re.split(r"\n\s*\n", below)[0])


def _first_sentence(text: str) -> str:
    end = _SENTENCE_END.search(text)
    text = _REASON.sub("", text[: end.end()].rstrip() if end else text)
    return _FULL_STOP.sub("", text)


def _unexplained(text: str) -> str:
    explained = _EXPLAINS.search(text)
    return text[: explained.start()] if explained else text


def _unintroduced(text: str) -> str:
    """Return the text without a first line that only announces the one below it: ``The capital is:``."""
    lines = [line for line in text.split("\n") if line.strip()]
    announced = len(lines) == 2 and lines[0].rstrip(" *").endswith(":") and len(lines[0].split()) > 1
    return lines[1] if announced else text


def _unwrapped(text: str) -> str:
    """Return an answer without the quotes, the emphasis, the fence or the bullet around all of it."""
    text = text.strip()
    for _ in range(_MOST_LAYERS):
        inner = _inside(text)
        if inner is None:
            break
        text = inner.strip()
    return text


def _inside(text: str) -> str | None:
    fenced = _FENCED.fullmatch(text)
    if fenced:
        return fenced["rest"]
    if "\n" not in text and re.match(r"(?:[-*•] +)(?=[^\s\d])", text):
        return text[1:]
    bare = text[:-1] if text.endswith((".", ",")) else text
    for left, right in _PAIRS:
        for whole in (text, bare):
            if len(whole) < len(left) + len(right) or not (whole.startswith(left) and whole.endswith(right)):
                continue
            inner = whole[len(left) : -len(right)]
            if left not in inner and right not in inner and (inner or left not in ("**", "`", "*")):
                return inner
    return None
