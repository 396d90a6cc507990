"""From a reply to an answer: what was said, whether it is an abstention, and why there is none."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from judgekit.answers.normalize import normalize
from judgekit.data.tables import Status
from judgekit.llm.prompts import Output
from judgekit.llm.types import Failure, Outcome
from judgekit.llm.verdict import Unread, read, without_reasoning

__all__ = ["Answer", "abstains", "read_answer"]

_LABELLED: Final = re.compile(
    r"^[ \t>*#]*(?:the\s+)?(?:final\s+|short\s+)?answer[ \t*]*[:：][ \t*]*(.*\S)", re.I | re.M
)
_QUOTES: Final = {'"': '"', "“": "”", "`": "`", "'": "'", "**": "**"}
_ABSTENTIONS: Final = re.compile(
    r"(?:i )?(?:do not|dont) know(?: answer)?"
    r"|unknown|unanswerable|no answer|na|none of (?:passages|documents) \w+.*"
    r"|(?:i |it |this |question |answer )?(?:cannot|can not|cant) "
    r"(?:answer|be answered|be determined|determine|say|tell)\b.*"
    r"|(?:there is )?(?:not enough|insufficient|no) (?:information|context|evidence)\b.*"
    r"|(?:answer |it |this )?(?:is )?not "
    r"(?:known|given|stated|mentioned|specified|provided|answerable|in (?:passages?|text))\b.*"
    r"|(?:(?:provided|given) )?(?:passages?|documents?|context|text|information) "
    r"(?:(?:do|does|did) not|doesnt|dont|didnt) (?:contain|mention|provide|say|state|specify|include|give|answer)\b.*"
)
"""Abstentions in other words than the prompt's own, in normalised text; the whole answer has to be one."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a query.

    Attributes:
        text: the answer, "" where there is none.
        status: `Status.OK` for abstentions too; they are answers.
        raw: the reply's text as it came.
        reason: why there is no answer.
        abstained: whether the model said that it cannot answer.
        cut_docs, cut_tokens: how many documents, and how many tokens in all by our estimate, did not fit into the
            context budget.
    """

    text: str
    status: Status = Status.OK
    raw: str = ""
    reason: str = ""
    abstained: bool = False
    cut_docs: int = 0
    cut_tokens: int = 0


def abstains(text: str, phrase: str = "unknown") -> bool:
    """Whether an answer says that there is none, in the prompt's phrase or in other usual words."""
    said = normalize(text)
    return said == normalize(phrase) or _ABSTENTIONS.fullmatch(said) is not None


def read_answer(outcome: Outcome, output: Output) -> Answer:
    """Read the answer out of what became of a request.

    Reasoning in ``<think>`` tags is left out. Of a short answer what stands behind the last ``Answer:`` counts, if
    there is one, and quotation marks around it are dropped. A class answer is the class that the reply states.
    """
    if isinstance(outcome, Failure):
        return Answer("", outcome.status, "", outcome.reason)
    raw = outcome.text
    if outcome.refusal is not None:
        return Answer("", Status.REFUSED, raw or outcome.refusal, "the model declined")
    if outcome.finish_reason == "length":
        return Answer("", Status.TRUNCATED, raw, "the answer was cut off (finish_reason: length)")
    text = without_reasoning(raw).strip()
    if not text:
        return Answer("", Status.UNPARSED, raw, "the reply is empty" + (" but for reasoning" if raw.strip() else ""))
    if output.type != "long":
        text = _bare(text)
    abstained = abstains(text, output.abstain)
    if output.type == "class" and not abstained:
        verdict = read(raw, output.form)
        if isinstance(verdict, Unread):
            return Answer("", verdict.status, raw, verdict.reason)
        text = output.classes[verdict.value]
    return Answer(text, Status.OK, raw, "", abstained)


def _bare(text: str) -> str:
    labelled = _LABELLED.findall(text)
    text = labelled[-1] if labelled else text
    for left, right in _QUOTES.items():
        if len(text) > len(left) + len(right) and text.startswith(left) and text.endswith(right):
            inner = text[len(left) : -len(right)]
            if left not in inner and right not in inner:
                text = inner.strip()
    return text
