"""How probable a text is to a model, by the log-probabilities of its tokens: a text it was sent, or its own reply."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from judgekit.reading.logprobs import token_logprob, token_text
from judgekit.wire.jsontext import canonical
from judgekit.wire.types import Reply

_BROKEN: Final = "\ufffd"
"""What servers write for a token that is a part of a character."""
# Some servers decode a token without the blank in front of it, or write a sign in its place.
_BLANKS: Final = re.compile(r"[\s▁Ġ]+")
_THOUGHT: Final = "</think>"
_SHOWN: Final = 80
_LIMITS: Final = ("max_tokens", "max_completion_tokens", "stop", "stream_options")
"""Fields of a request that end a reply; here the reply is given."""


class NoPromptError(ValueError):
    """A reply without log-probabilities of the prompt's tokens."""


def echoing(body: bytes, text: str) -> bytes:
    """Return the body that asks for the log-probabilities of a completion's prompt with a text as its reply."""
    fields: dict[str, Any] = json.loads(body)
    for name in _LIMITS:
        fields.pop(name, None)
    # One token is generated and ignored, because some servers refuse to generate none.
    fields |= {"prompt": f"{fields['prompt']} {text}", "echo": True, "logprobs": 1, "max_tokens": 1}
    return canonical(fields)


def of_prompt(reply: Reply, text: str) -> float:
    """Return the mean log-probability of the tokens at the end of an echoed prompt that spell a text.

    Raises:
        NoPromptError: the reply has none for the prompt.
        ValueError: the last tokens of the prompt do not spell the text, or their log-probabilities are malformed.
    """
    entries = reply.logprobs or []
    if not entries:
        raise NoPromptError("its reply has no log-probabilities at all")
    # The generated token follows the prompt's.
    counted = None if reply.usage is None else reply.usage.prompt
    count = len(entries) - 1 if counted is None else counted
    # No prompt has only one token, whatever a server counts.
    if not 1 < count <= len(entries):
        raise NoPromptError(f"its reply has those of {len(entries)} tokens: none of the prompt's")
    return _mean(_spelling(entries[:count], text))


def of_reply(reply: Reply) -> float:
    """Return the mean log-probability of the tokens of a reply, without those of its thinking.

    Raises:
        ValueError: the reply has none, or they are malformed.
    """
    entries = reply.logprobs or []
    thought = [place for place, entry in enumerate(entries) if _THOUGHT in token_text(entry)]
    said = entries[thought[-1] + 1 :] if thought else entries
    if not said:
        raise ValueError("the reply has no log-probabilities")
    return _mean(said)


def _mean(entries: Sequence[Mapping[str, Any]]) -> float:
    return math.fsum(token_logprob(entry) for entry in entries) / len(entries)


def _spelling(entries: Sequence[Mapping[str, Any]], text: str) -> Sequence[Mapping[str, Any]]:
    """Return the last tokens that spell a text; the first may begin before it."""
    # From the end, since the spelling of partial characters in passages shifts all later places.
    wanted = _BLANKS.sub("", text)
    spelled = ""
    found = 0
    for count, entry in enumerate(reversed(entries), 1):
        token = _BLANKS.sub("", token_text(entry))
        spelled = token + spelled
        if _spells(spelled, wanted):
            found = count
        elif found:
            break
        elif any(_spells(spelled[start:], wanted) for start in range(1, len(token))):
            found = count
            break
        elif len(spelled.replace(_BROKEN, "")) > len(wanted):
            break
    if not found:
        raise ValueError(
            f"the prompt's last tokens are {spelled[:_SHOWN]!r}, which is not the answer {text[:_SHOWN]!r}"
        )
    return entries[len(entries) - found :]


def _spells(tokens: str, text: str) -> bool:
    pattern = "".join(_patterns(tokens))
    return re.fullmatch(pattern, text) is not None


def _patterns(tokens: Iterable[str]) -> Iterable[str]:
    """Yield a pattern for each character: of a broken one a character beyond ASCII, or none."""
    for character in tokens:
        yield r"[^\x00-\x7f]?" if character == _BROKEN else re.escape(character)
