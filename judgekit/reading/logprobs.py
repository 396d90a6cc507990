"""Verdicts from the log-probabilities of the tokens that state them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from judgekit.data.tables import Status
from judgekit.reading.verdict import ReplyFormat, Unread, read, usable
from judgekit.wire.types import Endpoint, Outcome, Reply

_EDGES: Final = re.compile(r"^\W+|\W+$")
# Below this a probability is 0; servers write anything from -100 to minus infinity.
_IMPOSSIBLE: Final = -1e6
_ROUNDED: Final = 1e-3
"""The excess of probabilities over 1 that rounding by servers may cause."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """How probable each verdict is.

    Attributes:
        shares: probability per verdict's value, summing to 1 over the verdicts.
        mass: the total probability of tokens that state a verdict, at most 1.
    """

    shares: Mapping[int, float]
    mass: float


def distribution(outcome: Outcome, form: ReplyFormat, endpoint: Endpoint) -> Distribution | Unread:
    """Return the probabilities of the verdicts at the token with which a one-word reply states its own."""
    # A reply without log-probabilities has no verdict: its text would pass off certainty as a probability. Nor has one
    # whose log-probabilities are invalid (``null``, for example), impossible, or about another verdict than the text's:
    # the rest would pass for the whole.
    reply = usable(outcome)
    if isinstance(reply, Unread):
        return reply
    try:
        tokens = _tokens(reply)
        text = "".join(tokens) if tokens else reply.text
        # The text of the tokens, not of the message: servers strip blanks from one of them, and places must agree.
        verdict = read(text, form, endpoint.thinks)
        if isinstance(verdict, Unread):
            return verdict
        stated = read(reply.text, form, endpoint.thinks)
        if isinstance(stated, Unread) or stated.value != verdict.value:
            return Unread(Status.UNPARSED, f"the text {reply.text[:80]!r} and the tokens {text!r:.80} disagree")
        place = _place(tokens, verdict.start)
        # Alternatives only count for a token that begins the verdict exactly: those of "1" in "10" are not alternatives
        # to 10.
        if tokens and _stands_for(tokens[place], form) != verdict.value:
            return Unread(
                Status.UNPARSED, f"the token {tokens[place]!r:.80} does not state the verdict of {text!r:.80}"
            )
        likely = alternatives(reply, place)
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


def alternatives(reply: Reply, place: int) -> dict[str, float]:
    """Return the probability of each text at the place of a token.

    Raises:
        ValueError: the reply has none, or they cannot belong to that token.
    """
    entry = reply.logprobs[place] if reply.logprobs else {}
    tops = entry.get("top_logprobs") or ()
    if not isinstance(tops, (list, tuple)):
        raise _malformed("top_logprobs", tops)
    if len(tops) < 2:
        missing = "log-probabilities" + (" of alternative tokens" if reply.logprobs else "")
        raise ValueError(f"the reply has no {missing}")
    chances: dict[str, float] = {}
    # Some servers list the chosen token twice, with the same entry.
    for token, logprob in dict.fromkeys((token_text(top), token_logprob(top)) for top in tops):
        chances[token] = chances.get(token, 0.0) + math.exp(logprob)
    if math.fsum(chances.values()) > 1.0 + _ROUNDED:
        raise ValueError(f"the reply's probabilities add up to {math.fsum(chances.values()):.4g}, above 1")
    stated = _tokens(reply)[place]
    if _bare(stated) not in map(_bare, chances):
        # A sampled token may be less likely than all listed ones. A more likely one would be listed, so these are the
        # alternatives of another token.
        chance = math.exp(token_logprob(entry))
        if chance > min(chances.values()) + _ROUNDED:
            raise ValueError(
                f"the alternatives to the token {stated!r:.80} are those of another token: {list(chances)}"
            )
        chances[stated] = chance
    return chances


def _place(tokens: list[str], start: int) -> int:
    """Return the place of the token that holds the character at ``start`` of all tokens' text."""
    end = 0
    for place, token in enumerate(tokens):
        end += len(token)
        if end > start:
            return place
    return 0


def _tokens(reply: Reply) -> list[str]:
    """Return the text of each token of a reply, as its alternatives give it."""
    entries = reply.logprobs or []
    tokens = [token_text(entry) for entry in entries]
    # llama-server holds back text that may begin a stop and adds it to a later token; the alternatives still give each
    # token's own text, by its number.
    own = [_own_text(entry, token) for entry, token in zip(entries, tokens, strict=True)]
    return own if "".join(own) == "".join(tokens) else tokens


def _own_text(entry: Mapping[str, Any], token: str) -> str:
    """Return the text of an entry's own token by its alternatives, or else by the entry itself."""
    number, tops = entry.get("id"), entry.get("top_logprobs")
    if type(number) is int and isinstance(tops, list):
        for top in tops:
            if isinstance(top, dict) and top.get("id") == number and isinstance(top.get("token"), str):
                return str(top["token"])
    return token


def token_text(entry: Any) -> str:
    """Return the text of an entry's token."""
    token = entry.get("token") if isinstance(entry, dict) else None
    if not isinstance(token, str):
        raise _malformed("a token with its log-probability", entry)
    return token


def token_logprob(entry: Mapping[str, Any]) -> float:
    """Return the log-probability of an entry, at most 0, however servers round it."""
    logprob = entry.get("logprob")
    if isinstance(logprob, bool) or not isinstance(logprob, (int, float)) or not logprob <= _ROUNDED:
        raise _malformed(f"the log-probability of the token {entry.get('token')!r}", logprob)
    return float(max(_IMPOSSIBLE, min(0.0, logprob)))


def _malformed(what: str, found: Any) -> ValueError:
    return ValueError(f"the reply's logprobs are malformed: where {what} should be is {str(found)[:80]!r}")


def _bare(token: str) -> str:
    """Return a token's text without surrounding blanks and signs, in which servers differ."""
    return _EDGES.sub("", token).casefold()


def _stands_for(token: str, form: ReplyFormat) -> int | None:
    """Return the only verdict that a token is or begins; None if there are none or several."""
    text = _bare(token)
    # "1" begins "10", but a word that is itself an option counts only as that.
    if not text or text in form.values:
        return form.values.get(text)
    values = {value for word, value in form.values.items() if word.startswith(text)}
    return values.pop() if len(values) == 1 else None
