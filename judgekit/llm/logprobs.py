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
from judgekit.llm.verdict import Form, Unread, Verdict, read, read_outcome

__all__ = ["Distribution", "distribution"]

_EDGES: Final = re.compile(r"^\W+|\W+$")


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
        EndpointError: the reply states a verdict but comes without log-probabilities, or without alternatives.
            Taking the text instead would pass off certainty as a probability.
    """
    tokens = reply.logprobs or []
    text = "".join(str(token.get("token", "")) for token in tokens)
    verdict = read(text, form, reply.finish_reason) if tokens else read_outcome(reply, form)
    if isinstance(verdict, Unread):
        return verdict
    place = _place(tokens, verdict)
    alternatives = tokens[place].get("top_logprobs") or [] if place is not None else []
    if len(alternatives) < 2:
        raise EndpointError(
            f"endpoint {endpoint.name!r} (model {endpoint.model!r}) gives no log-probabilities"
            + (" of alternative tokens" if tokens else "")
            + ", which read=logprobs needs; use read=text or another endpoint"
        )
    chances: dict[int, float] = {}
    for token in {str(a.get("token", "")): a for a in alternatives}.values():
        value = _stands_for(str(token.get("token", "")), form)
        if value is not None:
            chances[value] = chances.get(value, 0.0) + math.exp(min(0.0, float(token["logprob"])))
    mass = math.fsum(chances.values())
    if mass <= 0.0:
        return Unread(Status.UNPARSED, f"none of the likely tokens for the verdict is one (expected {form})")
    return Distribution({value: chance / mass for value, chance in chances.items()}, min(1.0, mass))


def _place(tokens: Sequence[Mapping[str, Any]], verdict: Verdict) -> int | None:
    """Return the index of the token in which the verdict begins."""
    end = 0
    for index, token in enumerate(tokens):
        end += len(str(token.get("token", "")))
        if end > verdict.start:
            return index
    return None


def _stands_for(token: str, form: Form) -> int | None:
    """Return the one verdict that a token is, or begins; None if there is none or more than one."""
    said = _EDGES.sub("", token).casefold()
    if not said or said in form.short:
        return form.short.get(said)
    values = {value for word, value in form.words if word.startswith(said)}
    return values.pop() if len(values) == 1 else None
