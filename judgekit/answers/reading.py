"""From a reply to an answer: its text, whether it is an abstention, or why there is none.

If a reply has more than a short answer, only text about the answer is removed (a label, markup, an explanation). The
answer keeps its own words, so a title with a colon or a full stop stays whole; from a text in any other form, nothing
is removed.

An abstention is the prompt's own phrase, or one of a few that mean nothing else. No list of phrases and no grammar of
English is ever complete, and one that guesses turns answers into abstentions (``Can't Tell Me Nothing`` is a song). Any
other text that reads like one is an answer with a score; `seems_to_abstain` only counts it.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from judgekit.answers.text import trimmed
from judgekit.data.tables import Status
from judgekit.reading.prompts import Output
from judgekit.reading.verdict import Unread, read, usable
from judgekit.wire.reasoning import without_reasoning
from judgekit.wire.types import Failure, Outcome

_PHRASES: Final = frozenset(
    {
        "unknown",
        "i dont know",
        "i do not know",
        "i dont know the answer",
        "i do not know the answer",
        "n/a",
        "not enough information",
        "not enough info",
        "insufficient information",
        "cannot be determined",
        "unanswerable",
    }
)
"""Folded, as `_folded` returns them."""

_EDGES: Final = ' \t\r\n.,;:!?…。！？،؟।"“”„«»()[]*_~`#>-–—'
_APOSTROPHES: Final = str.maketrans("", "", "'’‘ʼ`")
_LABEL: Final = re.compile(r"(?:the )?(?:final )?answer(?: is|:|$)[\s*]*")

_REMEMBERED: Final = 1024
"""Short replies that are remembered with what was read of them."""
_SEEN: Final = 200
_HINT: Final = re.compile(
    r"\b(?:unknown|unclear|unsure|unanswerable|undetermined|unspecified|unable|insufficient|sorry"
    r"|(?:not|cannot|(?:do|does|did|is|are|was|were|ca|could)nt|no|none|nothing)\W+(?:\w+\W+){0,5}?"
    r"(?:know|known|sure|certain|clear|enough|available"
    r"|say|says|tell|tells|answer\w*|mention\w*|stat(?:e|es|ed)|specif\w+|contain\w*|provid\w+|give|gives|given"
    r"|determine\w*|establish\w*|identif\w+|found|find|infer\w*|discuss\w*|address\w*|information|context|evidence"
    r"|details))\b"
)
"""Words of doubt, or a negation a few words before "said", "known" or "found": far too broad for a score."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a query.

    Attributes:
        text: the answer, or "".
        status: `Status.OK` also for abstentions, which are answers.
        raw: the reply's original text.
        reason: why there is no answer.
        abstained: whether the model said that it cannot answer, in the prompt's words or a few known others.
        seems_abstained: whether it seems to say so in its own words; only counted, no score depends on it.
        cut_tokens: estimated number of document tokens that did not fit into the context budget.
    """

    text: str
    status: Status = Status.OK
    raw: str = ""
    reason: str = ""
    abstained: bool = False
    seems_abstained: bool = False
    cut_tokens: int = 0


def read_answer(outcome: Outcome, output: Output, thinks: bool = False) -> Answer:
    """Read the answer from a request's outcome."""
    reply = usable(outcome)
    raw = "" if isinstance(outcome, Failure) else outcome.text or outcome.refusal or ""
    if isinstance(reply, Unread):
        return Answer("", reply.status, raw, reply.reason)
    if output.type == "short":
        return _short_reply(raw, output.abstain)
    text = trimmed(without_reasoning(raw))
    if not text:
        return _empty(raw)
    if output.type == "class":
        return _class_answer(raw, output, thinks)
    return stated(text, raw, output.abstain)


@lru_cache(_REMEMBERED)
def _short_reply(raw: str, abstain: str) -> Answer:
    """Read a short answer. The last ones are remembered: of most documents alone a model says the same few things."""
    text = trimmed(without_reasoning(raw))
    if not text:
        return _empty(raw)
    answer = trimmed(short_answer(text))
    if not answer:
        return Answer("", Status.UNPARSED, raw, "the reply announces an answer but gives none")
    return stated(answer, raw, abstain)


def _empty(raw: str) -> Answer:
    return Answer("", Status.UNPARSED, raw, "the reply is empty" + (" but for reasoning" if raw.strip() else ""))


def stated(text: str, raw: str, abstain: str = "unknown") -> Answer:
    """Return an existing answer, with whether it abstains."""
    return Answer(
        text,
        Status.OK,
        raw=raw,
        reason="",
        abstained=abstains(text, abstain),
        seems_abstained=seems_to_abstain(text, abstain),
    )


def _class_answer(raw: str, output: Output, thinks: bool) -> Answer:
    """Return the class in a reply; the prompt's own abstention is one of them."""
    verdict = read(raw, output.form, thinks)
    if isinstance(verdict, Unread):
        return Answer("", verdict.status, raw, verdict.reason)
    # 'SUPPORTS, but only if ...' is not a class, and its first word alone would be wrong.
    if verdict.words:
        return Answer("", Status.UNPARSED, raw, f"the reply is more than a class: {verdict.words[:80]!r}")
    said, _ = output.form.options[verdict.value]
    return Answer(said, Status.OK, raw, "", abstained=said == output.abstain)


def abstains(text: str, phrase: str = "unknown") -> bool:
    """Whether an answer is an abstention: ``phrase``, or one of a few that mean the same, and nothing else."""
    answer, own = _folded(text), _folded(phrase)
    if not own:  # a phrase made of signs, such as ?
        return trimmed(text) == trimmed(phrase) != ""
    if _LABEL.match(answer):
        answer = _LABEL.sub("", answer, count=1).strip(_EDGES)
    return answer == own or answer in _PHRASES


def seems_to_abstain(text: str, phrase: str = "unknown") -> bool:
    """Whether an answer that is not an abstention reads like one; only counted, no score depends on it."""
    if abstains(text, phrase):
        return False
    # An abstention comes first: later on, a text may mention what it does not know and still answer.
    said, own = _folded(text[:_SEEN]), _folded(phrase)
    return _HINT.search(said) is not None or (own != "" and re.search(rf"\b{re.escape(own)}\b", said) is not None)


def _folded(text: str) -> str:
    text = unicodedata.normalize("NFKC", trimmed(text)).translate(_APOSTROPHES)
    return " ".join(text.casefold().split()).strip(_EDGES)


_KIND: Final = r"(?:(?:the|my|your) )?(?:(?:final|short|correct|best) )?answer"
_LABELLED: Final = re.compile(
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
"""``is`` only in lower case, since a title would have it capitalised."""

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
"""Beginnings of lines that explain the answer above."""

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
    """Return the answer in a reply to a short-answer prompt; "" if it only announces one."""
    text = _own_turn(_unwrapped(text))
    tagged = [m["rest"] for m in _TAG.finditer(text)] or [m["text"] or m["rest"] for m in _BOXED.finditer(text)]
    # The last one: models that think aloud write drafts of the answer before it.
    if tagged:
        return _unwrapped(tagged[-1])
    in_object = _in_json(text)
    if in_object is not None:
        return in_object
    labels = list(_labels(text))
    if labels:
        return _unwrapped(_labelled(text, labels[-1]))
    prose = list(_PROSE.finditer(text))
    if prose:
        return _unwrapped(_first_sentence(prose[-1]["rest"]))
    letter = _LETTER.match(text)
    if letter:
        return _unwrapped(_unexplained(letter["rest"] + text[letter.end() :]))
    return _unwrapped(_unexplained(_unintroduced(text)))


def _own_turn(text: str) -> str:
    """Return the text up to the point at which a model goes on to ask itself a question."""
    question = _NEXT_QUESTION.search(text)
    if question is None:
        return text
    before = text[: question.start()].strip()
    # Base models answer and then continue with a question of their own.
    if "\n" not in before and not before.endswith(":") and 0 < len(before.split()) <= _SHORT_WORDS:
        return before
    answered = _LETTER.match(text) or next(_labels(text), None)
    question = _NEXT_QUESTION.search(text, answered.end()) if answered else None
    if question:
        return text[: question.start()]
    return text


def _labels(text: str) -> Iterator[re.Match[str]]:
    """Yield the labels; without a colon, only headings and emphasised words are labels."""
    return (m for m in _LABELLED.finditer(text) if m["rest"] is not None or m["head"] or m["mark"])


def _in_json(text: str) -> str | None:
    """Return the answer if the whole reply is a JSON object with one."""
    fenced = _FENCED.fullmatch(text)
    inner = fenced["rest"].strip() if fenced else text
    if not inner.startswith("{"):
        return None
    try:
        reply = json.loads(inner)
    except (ValueError, RecursionError):
        return None
    values = [value for key, value in reply.items() if key.casefold() in _KEYS]
    # An object or `true` is not a short answer, so the whole text is kept.
    if not values or isinstance(values[-1], dict | list | bool) or values[-1] is None:
        return None
    return str(values[-1]).strip()


def _labelled(text: str, label: re.Match[str]) -> str:
    """Return the text after a label: on its line, else the next block of lines."""
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
    if fenced:
        return fenced[0]
    return _unexplained(re.split(r"\n\s*\n", below)[0])


def _first_sentence(text: str) -> str:
    end = _SENTENCE_END.search(text)
    text = _REASON.sub("", text[: end.end()].rstrip() if end else text)
    return _FULL_STOP.sub("", text)


def _unexplained(text: str) -> str:
    explained = _EXPLAINS.search(text)
    if explained:
        return text[: explained.start()]
    return text


def _unintroduced(text: str) -> str:
    """Return the text without a first line that only announces the next: ``The capital is:``."""
    lines = [line for line in text.split("\n") if line.strip()]
    announced = len(lines) == 2 and lines[0].rstrip(" *").endswith(":") and len(lines[0].split()) > 1
    if announced:
        return lines[1]
    return text


def _unwrapped(text: str) -> str:
    """Return an answer without quotes, emphasis, a fence or a bullet around the whole."""
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
