"""From a reply to an answer: what was said, whether it is an abstention, and why there is none.

An abstention is the prompt's own phrase, or one of a few that mean nothing else. No list of phrases and no grammar of
English is ever complete, and one that guesses turns answers into abstentions (``Can't Tell Me Nothing`` is a song).
Whatever else reads like one is an answer and gets its score; `seems_to_abstain` only counts it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from judgekit.answers.short import short_answer
from judgekit.answers.text import trimmed
from judgekit.data.tables import Status
from judgekit.reading.prompts import Output
from judgekit.reading.verdict import Unread, read, unfinished, without_reasoning
from judgekit.wire.types import Failure, Outcome

__all__ = ["Answer", "abstains", "read_answer", "seems_to_abstain", "stated"]

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

_SEEN: Final = 200
_HINT: Final = re.compile(
    r"\b(?:unknown|unclear|unsure|unanswerable|undetermined|unspecified|unable|insufficient|sorry"
    r"|(?:not|cannot|(?:do|does|did|is|are|was|were|ca|could)nt|no|none|nothing)\W+(?:\w+\W+){0,5}?"
    r"(?:know|known|sure|certain|clear|enough|available"
    r"|say|says|tell|tells|answer\w*|mention\w*|stat(?:e|es|ed)|specif\w+|contain\w*|provid\w+|give|gives|given"
    r"|determine\w*|establish\w*|identif\w+|found|find|infer\w*|discuss\w*|address\w*|information|context|evidence"
    r"|details))\b"
)
"""Words of doubt, or a negation and, a few words on, what is said, known or found. Far too wide for a score."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a query.

    Attributes:
        text: the answer, "" where there is none.
        status: `Status.OK` for abstentions too; they are answers.
        raw: the reply's text as it came.
        reason: why there is no answer.
        abstained: whether the model said that it cannot answer, in the prompt's words or one of a few others.
        seems_abstained: whether it reads as if it did, in words of its own. Counted; no score depends on it.
        cut_docs, cut_tokens: how many documents, and how many tokens in all by our estimate, did not fit into the
            context budget.
    """

    text: str
    status: Status = Status.OK
    raw: str = ""
    reason: str = ""
    abstained: bool = False
    seems_abstained: bool = False
    cut_docs: int = 0
    cut_tokens: int = 0


def read_answer(outcome: Outcome, output: Output, complete: Collection[str] = (), thinks: bool = False) -> Answer:
    """Read the answer out of what became of a request."""
    if isinstance(outcome, Failure):
        return Answer("", outcome.status, "", outcome.reason)
    raw = outcome.text
    if outcome.refusal is not None:
        return Answer("", Status.REFUSED, raw or outcome.refusal, "the model declined")
    broken = unfinished(outcome.finish_reason, complete)
    if broken is not None:
        return Answer("", broken.status, raw, broken.reason)
    text = trimmed(without_reasoning(raw))
    if not text:
        return Answer("", Status.UNPARSED, raw, "the reply is empty" + (" but for reasoning" if raw.strip() else ""))
    if output.type == "class":
        return _class_answer(raw, output, thinks)
    answer = trimmed(short_answer(text)) if output.type == "short" else text
    if not answer:
        return Answer("", Status.UNPARSED, raw, "the reply announces an answer but gives none")
    return stated(answer, raw, output.abstain)


def stated(text: str, raw: str, abstain: str = "unknown") -> Answer:
    """Return an answer that is there, with what it says of abstaining."""
    return Answer(text, Status.OK, raw, "", abstains(text, abstain), seems_to_abstain(text, abstain))


def _class_answer(raw: str, output: Output, thinks: bool) -> Answer:
    """Return the class that a reply is; the prompt's own abstention is one of them."""
    verdict = read(raw, output.form, thinks)
    if isinstance(verdict, Unread):
        return Answer("", verdict.status, raw, verdict.reason)
    if verdict.words:
        return Answer("", Status.UNPARSED, raw, f"the reply is more than a class: {verdict.words[:80]!r}")
    said = (*output.classes, output.abstain)[verdict.value]
    return Answer(said, Status.OK, raw, "", abstained=said == output.abstain)


def abstains(text: str, phrase: str = "unknown") -> bool:
    """Whether an answer is an abstention: ``phrase``, or one of a few that mean the same, and nothing else."""
    said, own = _folded(text), _folded(phrase)
    if not own:  # a phrase made of signs, such as ?
        return trimmed(text) == trimmed(phrase) != ""
    said = _LABEL.sub("", said, count=1).strip(_EDGES) if _LABEL.match(said) else said
    return said == own or said in _PHRASES


def seems_to_abstain(text: str, phrase: str = "unknown") -> bool:
    """Whether an answer that is not an abstention reads like one; it is only counted, and no score depends on it."""
    if abstains(text, phrase):
        return False
    said, own = _folded(text[:_SEEN]), _folded(phrase)
    return _HINT.search(said) is not None or (own != "" and re.search(rf"\b{re.escape(own)}\b", said) is not None)


def _folded(text: str) -> str:
    text = unicodedata.normalize("NFKC", trimmed(text)).translate(_APOSTROPHES)
    return " ".join(text.casefold().split()).strip(_EDGES)
