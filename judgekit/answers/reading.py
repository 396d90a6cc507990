"""From a reply to an answer: what was said, whether it is an abstention, and why there is none."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from judgekit.answers.abstention import abstains, seems_to_abstain
from judgekit.answers.normalize import trimmed
from judgekit.answers.short import short_answer
from judgekit.data.tables import Status
from judgekit.reading.prompts import Output
from judgekit.reading.verdict import Unread, read, unfinished, without_reasoning
from judgekit.wire.types import Failure, Outcome

__all__ = ["Answer", "read_answer", "stated"]


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


def read_answer(outcome: Outcome, output: Output, complete: Collection[str] = ()) -> Answer:
    """Read the answer out of what became of a request.

    Reasoning in ``<think>`` tags and invisible characters at the ends are left out. A short answer is read by
    `short_answer`, a class answer is the class that the reply is, or the prompt's own abstention. ``complete`` are the
    endpoint's own words for a complete reply.
    """
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
        return _class_answer(raw, output)
    answer = trimmed(short_answer(text)) if output.type == "short" else text
    if not answer:
        return Answer("", Status.UNPARSED, raw, "the reply announces an answer and gives none")
    return stated(answer, raw, output.abstain)


def stated(text: str, raw: str, abstain: str = "unknown") -> Answer:
    """Return an answer that is there, with what it says of abstaining."""
    return Answer(text, Status.OK, raw, "", abstains(text, abstain), seems_to_abstain(text, abstain))


def _class_answer(raw: str, output: Output) -> Answer:
    """Return the class that a reply is; the prompt's own abstention is one of them."""
    verdict = read(raw, output.form)
    if isinstance(verdict, Unread):
        return Answer("", verdict.status, raw, verdict.reason)
    said = (*output.classes, output.abstain)[verdict.value]
    return Answer(said, Status.OK, raw, "", abstained=said == output.abstain)
