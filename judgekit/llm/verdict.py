"""The verdict parser: a total function from a reply to a verdict or the reason why there is none.

A wrong label that looks right is worse than a missing one, so a verdict counts only where the reply *states* it. In
the order of their weight (`Rank`):

* behind a label that only verdicts have, ``Final grade: 2``, ``Verdict: no``, or in a JSON object, under the key
  that the prompt declares or a usual one;
* behind another label: ``Score: 2``, ``<grade>1</grade>``, ``Relevance (0-3): 2``, ``Useful? No``;
* as the opening word, ``Yes, because …``, on a line of its own, ``**2**``, ``3/3``, or behind ``Answer:``;
* in prose, ``so the answer is no``, or as the closing words, ``… It does not say. No.``.

The weightiest counts, and of several of that weight the last. What stands behind it and weighs less is explanation:
the passage's own yes or no is no verdict, nor is what a sentence attributes to the passage or a reference. Where the
reply changes its mind (``Yes - wait, no``) or gives different verdicts of like weight there is none. If the
statement that counts is off the scale, hedged or garbled there is no verdict either; an earlier mention is never
taken in its place. A scale that is only restated (``on a scale of 0 to 3``) is no statement, and reasoning in
``<think>`` tags or channels is not read. ``finish_reason`` is looked at first: a reply that was not brought to its
end has no verdict, whatever it says. Time is linear in the length of the reply.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from judgekit.data.tables import Status
from judgekit.llm.forms import Form
from judgekit.llm.reasoning import without_reasoning
from judgekit.llm.statements import INVISIBLE, OF_THE_QUESTION, Rank, Statement, attributed, find_statements, plain_text
from judgekit.llm.types import Failure, Outcome

__all__ = ["Form", "Unread", "Verdict", "read", "read_outcome", "unfinished", "without_reasoning"]


class Verdict(NamedTuple):
    """What a reply states: its value in the prompt's `Form` and where in the text it stands (``text[start:end]``)."""

    value: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Unread:
    """Why a reply has no verdict."""

    status: Status
    reason: str


_WRAPPED: Final = " \n\"'*`" + INVISIBLE
_TRAILING: Final = _WRAPPED + "."
_FILTERED: Final = frozenset({"content_filter", "safety", "refusal", "recitation", "prohibited_content", "blocklist"})
_BROKEN_OFF: Final = frozenset({"error", "abort", "aborted", "cancelled", "canceled", "insufficient_system_resource"})

_DOUBT: Final = re.compile(
    r"(?:^|[.!?,;:…\n(–—-])\s{0,9}(?:(?:oh|but|no|hmm+|well|yes)\b[, ]{1,3}){0,3}"
    r"(?:(?:wait|hold on|correction)(?=\s{0,9}(?:[,.!:…–—-]|no\b|yes\b|$))|on second thoughts?\b|scratch that\b"
    r"|let me (?:reconsider|rethink|re-?evaluate|correct)\b|i (?:was wrong|take (?:it|that) back|change my mind)\b)",
    re.IGNORECASE,
)
_TURN: Final = re.compile(
    r"[\s.,;…!(–—-]{1,9}(?:(?:but|and|or|wait|actually|rather|then|hmm+|well|oh|though)\b[,.… ]{0,4}){0,3}",
    re.IGNORECASE,
)
_HALF: Final = re.compile(r"not really|maybe not|perhaps not|not sure|i['’]?\s?a?m not sure", re.IGNORECASE)
_CLAUSE_LEAD: Final = re.compile(
    r"(?:(?:but|and|or|wait|actually|rather|then|hmm+|well|oh|otherwise|else|so|then|instead|though)\b[,.… ]*){0,4}",
    re.IGNORECASE,
)


def read_outcome(outcome: Outcome, form: Form) -> Verdict | Unread:
    """Read the verdict out of what became of a request; a failure or a refusal has none."""
    if isinstance(outcome, Failure):
        return Unread(outcome.status, outcome.reason)
    refusal = outcome.refusal
    if refusal is not None:
        return Unread(Status.REFUSED, f"the model declined: {refusal[:200]}")
    return read(outcome.text, form, outcome.finish_reason)


def unfinished(finish_reason: str | None) -> Unread | None:
    """Return why a reply with this ``finish_reason`` cannot be read, or None if it came to its end."""
    if finish_reason in (None, "stop"):
        return None
    if finish_reason == "length":
        return Unread(Status.TRUNCATED, "the reply was cut off (finish_reason: length)")
    if finish_reason.casefold() in _FILTERED:
        return Unread(Status.REFUSED, f"the reply was filtered (finish_reason: {finish_reason})")
    if finish_reason.casefold() in _BROKEN_OFF:
        return Unread(Status.FAILED, f"the server broke the reply off (finish_reason: {finish_reason})")
    return None


def read(text: str, form: Form, finish_reason: str | None = None) -> Verdict | Unread:
    """Read the verdict out of the text of a reply. Never raises, whatever the text.

    Args:
        text: the reply, without any reasoning that the endpoint gave apart from it.
        form: the verdicts that the prompt allows.
        finish_reason: the endpoint's; ``length``, ``error`` and the like mean that the reply is not whole.
    """
    broken = None if finish_reason == "stop" else unfinished(finish_reason)
    if broken is not None:
        return broken
    begun = text.lstrip(_WRAPPED)
    plain = begun.rstrip(_TRAILING)
    value = form.short.get(plain.casefold())
    if value is not None:
        start = len(text) - len(begun)
        return Verdict(value, start, start + len(plain))
    statements = find_statements(text, form)
    statements = [s for s in statements if not s.vague or s.start == statements[-1].start]
    if not statements:
        said = " ".join(text.split())
        what = f"states no verdict: {said[:80]!r}" if said else "is empty"
        return Unread(Status.UNPARSED, f"the reply {what} (expected {form})")
    top = max(s.rank for s in statements)
    ruling = [s for s in statements if s.rank is top][-1]
    said = " ".join(text[ruling.start : ruling.end + 20].split())
    if ruling.value is None:
        return Unread(Status.UNPARSED, f"the reply's last statement, {said!r}, is no verdict (expected {form})")
    disputed = any(_contradicts(s, ruling, form.low is not None) for s in statements)
    if disputed or _changes_its_mind(text, ruling, form):
        return Unread(Status.UNPARSED, f"the reply takes back what it states, {said!r} (expected {form})")
    return Verdict(ruling.value, ruling.start, ruling.end)


def _contradicts(other: Statement, ruling: Statement, graded: bool) -> bool:
    """Whether another statement leaves in doubt that the ruling one is the verdict."""
    if other.value == ruling.value:
        return False
    if other.start < ruling.start:
        return other.value is not None and _disputed(other, ruling, graded)
    if other.rank is Rank.ASIDE:
        return other.firm and other.value is not None
    if other.rank is Rank.PLAIN:
        return other.label == ""
    return other.value is not None


def _disputed(earlier: Statement, ruling: Statement, graded: bool) -> bool:
    """Whether an earlier statement of another verdict is more than a step on the way to the ruling one."""
    if earlier.rank is ruling.rank is Rank.FINAL:
        return not ruling.heads and (earlier.heads or earlier.label != ruling.label)
    if earlier.rank is ruling.rank:
        return ruling.rank is Rank.ASIDE or earlier.label != ruling.label or not ruling.label
    if earlier.rank is Rank.ASIDE:
        return False
    # Grades of parts lead up to the grade of the whole, and so does the question's own answer to a verdict about it.
    about = earlier.label in OF_THE_QUESTION and ruling.label not in OF_THE_QUESTION
    step = about or (graded and earlier.label != "")
    return not step and (earlier.alone or not ruling.heads)


def _changes_its_mind(text: str, ruling: Statement, form: Form) -> bool:
    """Whether the words around a verdict take it back: ``Yes - wait, no``, ``Yes, if …; otherwise no``."""
    text = plain_text(text)
    if _DOUBT.search(text, ruling.end):
        return True
    if ruling.rank <= Rank.PLAIN and not ruling.heads:
        # "Yes the answer is no": not set off, so no opening verdict, but not to be overruled by prose either.
        first = form.value.match(text, len(text) - len(text.lstrip(_WRAPPED)))
        if first and first["word"] and form.short.get(first["word"].casefold(), ruling.value) != ruling.value:
            return True
    turn = _TURN.match(text, ruling.end)
    if turn is None:
        return False
    if _HALF.match(text, turn.end()):
        return True
    words = dict(form.words)
    if ruling.value not in words.values():
        return False
    opposite = form.value.match(text, turn.end())
    if opposite and opposite["word"] and opposite["end"] is not None and form.read(opposite) != ruling.value:
        return True
    return _last_clause(text[ruling.end :], words) not in (None, ruling.value)


def _last_clause(text: str, words: dict[str, int]) -> int | None:
    """Return the verdict that is all of the last clause, apart from ``but``, ``otherwise`` and the like."""
    tail = text.rstrip(" \n.!)]")
    cut = max(tail.rfind(c) for c in (".", "!", "?", "…", "\n", ",", ";", " - ", "–", "—"))
    if cut < 0 or attributed(tail[max(tail.rfind(c) for c in ".!?…\n") + 1 : cut]):
        return None
    clause = tail[cut:].lstrip(" .!?…\n,;–—-")
    clause = clause[_CLAUSE_LEAD.match(clause).end() :]  # type: ignore[union-attr]  # it matches the empty text
    return words.get(" ".join(clause.casefold().split()))
