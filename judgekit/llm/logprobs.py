"""Verdicts from the log-probabilities of the tokens that state them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from judgekit.data.tables import Status
from judgekit.errors import EndpointError
from judgekit.llm.types import Endpoint, Reply
from judgekit.llm.verdict import Form, Unread, read, read_outcome, without_reasoning

__all__ = ["Distribution", "alternatives", "begins", "distribution"]

_EDGES: Final = re.compile(r"^\W+|\W+$")
_LEAST: Final = 3


@dataclass(frozen=True, slots=True)
class Distribution:
    """How probable each verdict is.

    Attributes:
        shares: probability per verdict's value, summing to 1 over the verdicts.
        mass: how much of all probability fell on tokens that state a verdict, at most 1.
    """

    shares: Mapping[int, float]
    mass: float

    def mean(self, values: Mapping[int, float]) -> float:
        """Return the expected value, given a number per verdict."""
        return math.fsum(share * values[verdict] for verdict, share in self.shares.items())


def distribution(reply: Reply, form: Form, endpoint: Endpoint) -> Distribution | Unread:
    """Return the probabilities of the verdicts where the reply states its own.

    The token in which the stated verdict begins is looked up, and with it the alternatives that the endpoint gave
    for that place. A token counts for the one verdict that it is or begins.

    Raises:
        EndpointError: the reply states a verdict but comes without log-probabilities, or none of alternatives.
    """
    text = _text(reply)
    verdict = read_outcome(reply, form) if text is None else read(text, form, reply.finish_reason)
    if isinstance(verdict, Unread):
        return verdict
    chances: dict[int, float] = {}
    for token, chance in alternatives(reply, verdict.start, endpoint).items():
        value = _stands_for(token, form)
        if value is not None:
            chances[value] = chances.get(value, 0.0) + chance
    mass = math.fsum(chances.values())
    if mass <= 0.0:
        return Unread(Status.UNPARSED, f"none of the likely tokens for the verdict is one (expected {form})")
    return Distribution({value: chance / mass for value, chance in chances.items()}, min(1.0, mass))


def begins(reply: Reply, phrase: str, endpoint: Endpoint) -> float:
    """Return the probability that the reply begins with ``phrase``, judged by its first token.

    A token counts if it is the phrase or at least three letters of its beginning. Reasoning in ``<think>`` tags is
    passed over.

    Raises:
        EndpointError: there are no log-probabilities, or none of alternatives.
    """
    text = without_reasoning(_text(reply) or reply.text)
    wanted = _EDGES.sub("", phrase).casefold()
    chances = alternatives(reply, len(text) - len(text.lstrip()), endpoint)
    said = {token: _EDGES.sub("", token).casefold() for token in chances}
    least = min(_LEAST, len(wanted))
    return min(1.0, math.fsum(c for t, c in chances.items() if len(said[t]) >= least and wanted.startswith(said[t])))


def alternatives(reply: Reply, start: int, endpoint: Endpoint) -> dict[str, float]:
    """Return the probability of each token that could have stood where the token at ``start`` stands.

    Args:
        reply: the reply.
        start: offset into the joined tokens of the reply.
        endpoint: whom to blame.

    Raises:
        EndpointError: there are no log-probabilities, or none of alternatives. Taking the text instead would pass
            off certainty as a probability.
    """
    end = 0
    found: Sequence[Mapping[str, Any]] = ()
    for token in reply.logprobs or ():
        end += len(str(token.get("token", "")))
        if end > start:
            found = token.get("top_logprobs") or ()
            break
    if len(found) < 2:
        raise EndpointError(
            f"endpoint {endpoint.name!r} (model {endpoint.model!r}) gives no log-probabilities"
            + (" of alternative tokens" if reply.logprobs else "")
            + ", which read=logprobs needs; use read=text or another endpoint"
        )
    return {str(t.get("token", "")): math.exp(min(0.0, float(t["logprob"]))) for t in found}


def _text(reply: Reply) -> str | None:
    """Return the reply's tokens joined, or None where it has none."""
    tokens = reply.logprobs
    return "".join(str(token.get("token", "")) for token in tokens) if tokens else None


def _stands_for(token: str, form: Form) -> int | None:
    """Return the one verdict that a token is, or begins; None if there is none or more than one."""
    said = _EDGES.sub("", token).casefold()
    if not said or said in form.short:
        return form.short.get(said)
    values = {value for word, value in form.words if word.startswith(said)}
    return values.pop() if len(values) == 1 else None
