"""Verdicts from the log-probabilities of the tokens that state them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from judgekit.data.tables import Status
from judgekit.reading.verdict import Form, Unread, read, usable
from judgekit.wire.types import Endpoint, Outcome, Reply

_EDGES: Final = re.compile(r"^\W+|\W+$")
# As good as no probability at all; servers write anything from -100 to minus infinity.
_IMPOSSIBLE: Final = -1e6
_ROUNDED: Final = 1e-3
"""By how much servers' rounding may lift probabilities above 1."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """How probable each verdict is.

    Attributes:
        shares: probability per verdict's value, summing to 1 over the verdicts.
        mass: how much of all probability fell on tokens that state a verdict, at most 1.
    """

    shares: Mapping[int, float]
    mass: float


def distribution(outcome: Outcome, form: Form, endpoint: Endpoint) -> Distribution | Unread:
    """Return the probabilities of the verdicts where the reply, which is one word, states its own."""
    # A reply without them has no verdict, as taking its text would pass off certainty as a probability; nor has one
    # with some that are none, such as ``null``, or cannot be, or are of another verdict than the text's: the rest would
    # pass for the whole.
    reply = usable(outcome)
    if isinstance(reply, Unread):
        return reply
    try:
        text = "".join(map(_token, reply.logprobs)) if reply.logprobs else reply.text
        # The text of the tokens, not of the message: servers strip blanks from one of them, and places must agree.
        verdict = read(text, form, endpoint.thinks)
        if isinstance(verdict, Unread):
            return verdict
        stated = read(reply.text, form, endpoint.thinks)
        if isinstance(stated, Unread) or stated.value != verdict.value:
            return Unread(Status.UNPARSED, f"the text {reply.text[:80]!r} and the tokens {text!r:.80} disagree")
        likely = alternatives(reply, verdict.start)
    except ValueError as problem:
        return Unread(Status.UNPARSED, str(problem))
    chances: dict[int, float] = {}
    for token, chance in likely.items():
        value = _stands_for(token, form)
        if value is not None:
            chances[value] = chances.get(value, 0.0) + chance
    mass = math.fsum(chances.values())
    if mass <= 0.0:
        return Unread(Status.UNPARSED, f"none of the likely tokens for the verdict is one (expected {form.wanted})")
    return Distribution({value: chance / mass for value, chance in chances.items()}, min(1.0, mass))


def alternatives(reply: Reply, start: int) -> dict[str, float]:
    """Return the probability of each text that could have stood where the token at ``start`` stands."""
    end = 0
    tops: Any = ()
    for entry in reply.logprobs or ():
        end += len(_token(entry))
        if end > start:
            tops = entry.get("top_logprobs") or ()
            break
    if not isinstance(tops, (list, tuple)):
        raise _malformed("top_logprobs", tops)
    if len(tops) < 2:
        missing = "log-probabilities" + (" of alternative tokens" if reply.logprobs else "")
        raise ValueError(f"the reply has no {missing}")
    chances: dict[str, float] = {}
    # The very same entry twice is a token that the server lists twice: as likely, and as the one that it took.
    for token, logprob in dict.fromkeys((_token(entry), _logprob(entry)) for entry in tops):
        chances[token] = chances.get(token, 0.0) + math.exp(logprob)
    if math.fsum(chances.values()) > 1.0 + _ROUNDED:
        raise ValueError(f"the reply's probabilities add up to {math.fsum(chances.values()):.4g}, above 1")
    return chances


def _token(entry: Any) -> str:
    """Return the text of an entry's token."""
    token = entry.get("token") if isinstance(entry, dict) else None
    if not isinstance(token, str):
        raise _malformed("a token with its log-probability", entry)
    return token


def _logprob(entry: Mapping[str, Any]) -> float:
    """Return the log-probability of an entry, at most 0, however servers round it."""
    logprob = entry.get("logprob")
    if isinstance(logprob, bool) or not isinstance(logprob, (int, float)) or not logprob <= _ROUNDED:
        raise _malformed(f"the log-probability of the token {entry.get('token')!r}", logprob)
    return float(max(_IMPOSSIBLE, min(0.0, logprob)))


def _malformed(what: str, found: Any) -> ValueError:
    return ValueError(f"the reply's logprobs are malformed: where {what} should be is {str(found)[:80]!r}")


def _stands_for(token: str, form: Form) -> int | None:
    """Return the one verdict that a token is, or begins; None if there is none or more than one."""
    text = _EDGES.sub("", token).casefold()
    # "1" begins "10", but a word that is an option of its own is nothing else's beginning.
    if not text or text in form.values:
        return form.values.get(text)
    values = {value for word, value in form.values.items() if word.startswith(text)}
    return values.pop() if len(values) == 1 else None
