"""What of a reply is reasoning, and what stands behind its end, so that neither is taken for what it says."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

__all__ = ["blanked", "without_reasoning"]

_THINK: Final = re.compile(
    r"<(/)?(?:\w{1,20}:)?(?:think|thinking|thought|reasoning)\b[^<>]*>|[\[◁](/)?think[\]▷]", re.IGNORECASE
)
"""Tags that mean reasoning wherever they stand. A group has matched where the tag ends a block."""

_OPENING: Final = re.compile(
    r"\s*+<(?P<bar>[|｜]?)(?:(?:begin|start)_(?:of_)?)?"
    r"(?P<name>[\w:.-]{0,30}?(?:think|thought|reason|reflect|analysis|scratchpad|internal)[\w:.-]{0,30})"
    r"(?:\s[^<>=]{1,40}=[^<>]{0,200})?[|｜]?>|\s*+<unused\d{1,4}>thought\b",
    re.IGNORECASE,
)
"""An element whose name says that it is reasoning: that is taken for it only at the very start of a reply."""

_UNUSED: Final = re.compile(r"<unused\d{1,4}>(?!thought\b)()|<unused\d{1,4}>thought\b", re.IGNORECASE)
_MOST_KINDS: Final = 6
_CONTROL: Final = re.compile(
    r"</?s>|<[|｜][^\s<>|｜]{1,40}[|｜]>|<end_?of_?\w{1,20}>|</?(?:eos|bos|eod|eot|eom|pad)>|\[(?:eos|bos|pad|/?inst)\]",
    re.IGNORECASE,
)
"""Tokens by which chat templates end a turn, as servers leak them."""

_BEGIN: Final = re.compile(r"\s*+<[|｜](?:begin|start)_of_[^\s<>|｜]{1,40}[|｜]>", re.IGNORECASE)
_CHANNEL: Final = re.compile(r"<\|channel\|>\s{0,9}(?P<name>\w+)[^\n]{0,80}?<\|message\|>", re.IGNORECASE)
_TURN_ENDS: Final = re.compile(r"<\|(?:end|return|call|im_end|eot_id|endoftext|end_of_turn)\|>.*", re.DOTALL)
_LEAKED: Final = ("analysis", "commentary")
_LEAKED_FINAL: Final = "assistantfinal"


def without_reasoning(text: str) -> str:
    """Return ``text`` with its reasoning blanked; every character keeps its place.

    Reasoning stands in ``<think>`` tags, in an element at the very start whose name says so (``<scratchpad>``), or in
    channels (``<|channel|>analysis<|message|>…``), of which only ``final`` is the reply. A block that is never closed
    reaches to the end, one that was never opened began before the reply. A second opening inside a block is part of
    the block. What stands behind the token that ends the turn is no part of the reply, nor are such tokens at its end.
    """
    text = _final_channel(text)
    if not any(c in text for c in "<[◁"):
        return text
    text = _without_blocks(text, _THINK)
    for _ in range(_MOST_KINDS):
        opening = _OPENING.match(text)
        if opening is None:
            break
        text = _without_blocks(text, _tags(opening))
    return _without_control(text)


def _tags(opening: re.Match[str]) -> re.Pattern[str]:
    """Return what opens and, with a group, what closes blocks of the kind that ``opening`` opens."""
    if opening["name"] is None:
        return _UNUSED
    bar = "[|｜]" if opening["bar"] else ""
    name = re.escape(opening["name"])
    return re.compile(
        rf"<{bar}(?:(?:begin|start)_(?:of_)?|(/|end_(?:of_)?))?{name}(?:\s[^<>]{{0,240}})?{bar}>", re.IGNORECASE
    )


def _without_blocks(text: str, tags: re.Pattern[str]) -> str:
    blanks: list[tuple[int, int]] = []
    begun: int | None = None
    for tag in tags.finditer(text):
        if tag.lastindex is None:
            begun = tag.start() if begun is None else begun
        elif begun is None:
            blanks = [(0, tag.end())]
        else:
            blanks.append((begun, tag.end()))
            begun = None
    if begun is not None:
        blanks.append((begun, len(text)))
    return blanked(text, blanks)


def _without_control(text: str) -> str:
    """Return ``text`` with the control tokens at its end blanked, and with one that begins the reply proper."""
    end = len(text)
    for token in reversed(list(_CONTROL.finditer(text))):
        if text[token.end() : end].strip():
            break
        end = token.start()
    begin = _BEGIN.match(text, 0, end)
    return blanked(text, [(0, begin.end() if begin else 0), (end, len(text))])


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
