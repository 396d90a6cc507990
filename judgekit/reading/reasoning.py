"""What of a reply is reasoning, and what stands behind its end, so that neither is taken for what it says."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

__all__ = ["blanked", "without_reasoning"]

_THINK: Final = re.compile(
    r"<(?P<xml>/?)(?:think|thinking|thought|reasoning)\b[^<>]*>|[\[◁](?P<other>/?)think[\]▷]", re.IGNORECASE
)
_CHANNEL: Final = re.compile(r"<\|channel\|>\s{0,9}(?P<name>\w+)[^\n]{0,80}?<\|message\|>", re.IGNORECASE)
_TURN_ENDS: Final = re.compile(r"<\|(?:end|return|call|im_end|eot_id|endoftext|end_of_turn)\|>.*", re.DOTALL)
_LEAKED: Final = ("analysis", "commentary")
_LEAKED_FINAL: Final = "assistantfinal"


def without_reasoning(text: str) -> str:
    """Return ``text`` with its reasoning blanked; every character keeps its place.

    Reasoning stands in ``<think>`` tags or in channels (``<|channel|>analysis<|message|>…``), of which only
    ``final`` is the reply. A block that is never closed reaches to the end, one that was never opened began before
    the reply. A second opening inside a block is part of the block. What stands behind the token that ends the turn
    is no part of the reply.
    """
    text = _final_channel(text)
    if not any(c in text for c in "<[◁"):
        return text
    blanks: list[tuple[int, int]] = []
    begun: int | None = None
    for tag in _THINK.finditer(text):
        if not (tag["xml"] or tag["other"]):
            begun = tag.start() if begun is None else begun
        elif begun is None:
            blanks = [(0, tag.end())]
        else:
            blanks.append((begun, tag.end()))
            begun = None
    if begun is not None:
        blanks.append((begun, len(text)))
    return blanked(text, blanks)


def _final_channel(text: str) -> str:
    """Return ``text`` with all channels but the last ``final`` one blanked, and what stands behind its turn."""
    begin = 0
    if "<|" in text:
        channels = list(_CHANNEL.finditer(text))
        finals = [c.end() for c in channels if c["name"].casefold() == "final"]
        if finals:
            begin = finals[-1]
        elif channels:
            return blanked(text, [(channels[0].start(), len(text))])
        ended = _TURN_ENDS.search(text, begin)
        if ended:
            text = blanked(text, [ended.span()])
    elif text.lstrip().startswith(_LEAKED) and _LEAKED_FINAL in text:
        # Servers that drop the control tokens leave the names of the channels behind.
        begin = text.rfind(_LEAKED_FINAL) + len(_LEAKED_FINAL)
    return blanked(text, [(0, begin)]) if begin else text


def blanked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return ``text`` with the spans, which stand in order, turned into line ends."""
    parts: list[str] = []
    done = 0
    for start, end in spans:
        parts += (text[done:start], "\n" * (end - start))
        done = end
    return "".join((*parts, text[done:]))
