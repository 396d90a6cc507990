"""Joins a completion that was sent as an unrequested stream into one reply.

Some gateways send server-sent events despite ``stream: false``, with the completion in one event or in deltas, or JSON
lines. It is paid for, so it is read. A stream without its end is no complete reply.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from judgekit.wire.jsontext import at, parse_json

_FIELD: Final = re.compile(r"(data|event|id|retry)?:")
_DONE: Final = "[DONE]"
_TEXTS: Final = ("content", "reasoning_content", "reasoning", "refusal")
_LISTS: Final = ("tokens", "token_logprobs", "top_logprobs", "text_offset")


def completion_of(text: str) -> dict[str, Any] | None:
    """Return the completion in a stream, in the usual shape; None if it is not a stream, or an incomplete one."""
    events = list(_events(text))
    objects = [event for event in events if isinstance(event, dict)]
    failed = next((event for event in objects if event.get("error")), None)
    if failed is not None:
        return failed
    parts = [event for event in objects if isinstance(event.get("choices"), list)]
    if not parts or len(objects) < len([event for event in events if event != _DONE]):
        return None
    whole = next((part for part in parts if _is_whole(part)), None)
    if whole is not None:
        return whole
    merged = _merged(parts)
    ended = _DONE in events or all(choice.get("finish_reason") is not None for choice in merged["choices"])
    return merged if merged["choices"] and ended else None


def _events(text: str) -> Iterator[Any]:
    """Yield the data of each event, or of each line of JSON; ``[DONE]`` as it is, and None for invalid JSON."""
    lines = text.lstrip("\ufeff").splitlines()
    if any(_FIELD.match(line) for line in lines[:1]):
        # The lines of one event's data belong together, and an empty line ends it.
        data: list[str] = []
        for line in (*lines, ""):
            if line.startswith("data:"):
                data.append(line.removeprefix("data:").removeprefix(" "))
            elif not line.strip() and data:
                yield from _parsed("\n".join(data))
                data = []
        return
    for line in filter(str.strip, lines):
        yield from _parsed(line)


def _parsed(text: str) -> Iterator[Any]:
    if text.strip() == _DONE:
        yield _DONE
        return
    try:
        yield parse_json(text)
    except ValueError:
        # Events whose data are one JSON each, with no empty line between them.
        for line in text.split("\n") if "\n" in text else ():
            yield from _parsed(line)
        if "\n" not in text:
            yield None


def _is_whole(part: dict[str, Any]) -> bool:
    """Whether an event holds a completion, and not a part of one."""
    choice = at(part, "choices", 0)
    return isinstance(at(choice, "message"), dict) and at(choice, "delta") is None


def _merged(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return joined deltas: the texts in order, and the last value of other fields that is not null."""
    body: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    for part in parts:
        body |= {name: value for name, value in part.items() if name != "choices" and value is not None}
        for listed in part["choices"]:
            if isinstance(listed, dict):
                index = listed.get("index")
                _add(choices.setdefault(index if type(index) is int else 0, {}), listed)
    for index, choice in choices.items():
        choice["index"] = index
    body["choices"] = [choices[index] for index in sorted(choices)]
    return body


def _add(choice: dict[str, Any], part: dict[str, Any]) -> None:
    """Add a part of a choice."""
    delta = part.get("delta")
    if isinstance(delta, dict):
        message = choice.setdefault("message", {"role": "assistant", "content": ""})
        for name in _TEXTS:
            if isinstance(delta.get(name), str):
                message[name] = (message.get(name) or "") + delta[name]
    if isinstance(part.get("text"), str):
        choice["text"] = choice.get("text", "") + part["text"]
    if part.get("finish_reason") is not None:
        choice["finish_reason"] = part["finish_reason"]
    logprobs = part.get("logprobs")
    if isinstance(logprobs, dict):
        kept = choice.setdefault("logprobs", {})
        for name in ("content", *_LISTS):
            if isinstance(logprobs.get(name), list):
                kept[name] = [*kept.get(name, ()), *logprobs[name]]
