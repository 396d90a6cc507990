"""Separates reasoning, and text after the end of a turn, from the reply proper."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_THINK: Final = re.compile(
    r"<(/)?(?:\w{1,20}:)?(?:think|thinking|thought|reasoning)\b[^<>]*>|[\[◁](/)?think[\]▷]", re.IGNORECASE
)
"""Tags that mean reasoning anywhere. A group matches if the tag ends a block."""

# Tags with a name for reasoning. They count only at the beginning of a reply, which may mention an <analysis> later.
_BLOCK: Final = re.compile(
    r"[<\[◁][|｜]?(?:(/|end_(?:of_)?)|(?:begin|start)_(?:of_)?)?[\w:.-]{0,30}?"
    r"(?:think|thought|reason|reflect|analysis|scratchpad|internal)[\w:.-]{0,30}(?:\s[^<>=]{1,40}=[^<>]{0,200})?"
    r"[|｜]?[>\]▷]|<unused\d{1,4}>(?!thought\b)()|<unused\d{1,4}>thought\b",
    re.IGNORECASE,
)

_CONTROL: Final = re.compile(
    r"</?s>|<[|｜][^\s<>|｜]{1,40}[|｜]>|<end_?of_?\w{1,20}>|</?(?:eos|bos|eod|eot|eom|pad)>|\[(?:eos|bos|pad|/?inst)\]",
    re.IGNORECASE,
)
"""Tokens with which chat templates end a turn, as leaked by servers."""

TOKEN: Final = re.compile(
    r"<\s*(?:\||\w{1,20}\s*[|｜]\s*>|"  # <|im_start|>, <|channel|>, <|START_OF_TURN_TOKEN|>, <｜User｜>, <channel|>
    r"/?\s*(?:(?:\w{1,20}\s*:\s*)?(?:think(?:ing)?|thoughts?|reason(?:ing)?(?:_content)?|reflection|scratchpad|analysis"
    r"|internal(?:_\w{1,20})?|tool_(?:call|response)s?|function_calls?)(?:\s[^<>]{0,60}=[^<>]{0,60})?\s*/?\s*>"
    r"|(?:seed:)?(?:s|bos|eos|eod|eot|eom|pad|eoh|eoa|sop|eop)(?:_token)?\s*>|(?:start|end)_?of_?\w{1,20}\s*>"
    r"|(?:unused|reserved_|extra_id_|special_)\d{1,4}\s*>|<\s*/?\s*sys\s*>))"
    r"|\[\s*(?:\||/?\s*(?:inst|think|system_prompt|available_tools|tool_calls|tool_results|eos|bos|pad|gmask)\s*\]|e~\[)"
    r"|\]~!?b[\[\]]|◁\s*/?\s*think\s*▷",
    re.IGNORECASE,
)
"""The beginning of a token with which a family of models separates turns, channels or reasoning."""

_BEGIN: Final = re.compile(r"\s*+<[|｜](?:begin|start)_of_[^\s<>|｜]{1,40}[|｜]>", re.IGNORECASE)
_CHANNEL: Final = re.compile(r"<\|channel\|>\s{0,9}(?P<name>\w+)[^\n]{0,80}?<\|message\|>", re.IGNORECASE)
_TURN_ENDS: Final = re.compile(r"<\|(?:end|return|call|im_end|eot_id|endoftext|end_of_turn)\|>.*", re.DOTALL)
_LEAKED: Final = ("analysis", "commentary")
_LEAKED_FINAL: Final = "assistantfinal"
_FINAL: Final = re.compile(r"(?:^|<\|end\|>)\s*(?:<\|start\|>\s*assistant\s*)?<\|channel\|>\s*final\b", re.IGNORECASE)
_QUOTING: Final = ('"', "'", "“", "‘", "„", "«", "`")
_LEAKED_START: Final = re.compile(r"^\s*(?:analysis|commentary)[A-Z].*[.!?)\]…\s]assistantfinal$", re.DOTALL)


def without_reasoning(text: str) -> str:
    """Return ``text`` with its reasoning blanked; every character keeps its place."""
    text = _final_channel(text)
    if not any(c in text for c in "<[◁"):
        return text
    first = _BLOCK.match(text, len(text) - len(text.lstrip()))
    text = _without_blocks(text, _THINK if first is None or first.lastindex else _BLOCK)
    return _without_control(text)


def plain_reply(text: str, thinks: bool = False) -> str | None:
    """Return ``text`` `without_reasoning`; None if reply and reasoning cannot be told apart."""
    # A quoted token looks like a real one. So a block that was never opened counts only if the model ``thinks``; one
    # that is closed in a quotation never counts, nor do two final channels or text after the end of the turn.
    rest = without_reasoning(text)
    begun = len(rest) - len(rest.lstrip())
    end = len(rest.rstrip())
    before, behind = text[:begun], text[end:]
    if begun == len(rest):
        return rest
    if text[begun:end] != rest[begun:end] or TOKEN.search(rest) or _CONTROL.sub("", behind).strip():
        return None
    channels = [channel["name"].casefold() for channel in _CHANNEL.finditer(before)]
    if channels:
        final = _FINAL.search(before)
        if final is None or channels.count("final") != 1 or not before.lstrip().startswith("<|"):
            return None
        return None if _quotes(before[: final.start()]) else rest
    if before.lstrip().startswith(_LEAKED):
        if before.count(_LEAKED_FINAL) == 1 and _LEAKED_START.search(before):
            return rest
        return None
    tags = list(_BLOCK.finditer(before))
    closes = [tag for tag in tags if tag.lastindex]
    opened = not closes or (tags[0] is not closes[0] and not _BEGIN.sub("", before[: tags[0].start()]).strip())
    if not (opened and 2 * len(closes) <= len(tags)) and not (thinks and tags == closes[:1]):
        return None
    return None if closes and _quotes(before[: closes[-1].start()]) else rest


def _quotes(text: str) -> bool:
    """Whether a quotation is open at the end of a text, judging by its last line."""
    line = text.rpartition("\n")[2].rstrip()
    return line.count('"') % 2 == 1 or line.endswith(_QUOTING)


def _without_blocks(text: str, tags: re.Pattern[str]) -> str:
    blanks: list[tuple[int, int]] = []
    begun: int | None = None
    for tag in tags.finditer(text):
        if tag.lastindex is None:
            if begun is None:
                begun = tag.start()
        elif begun is None:
            blanks = [(0, tag.end())]
        else:
            blanks.append((begun, tag.end()))
            begun = None
    if begun is not None:
        blanks.append((begun, len(text)))
    return blanked(text, blanks)


def _without_control(text: str) -> str:
    """Return ``text`` with control tokens blanked at its end, and at the beginning of the reply proper."""
    end = len(text)
    for token in reversed(list(_CONTROL.finditer(text))):
        if text[token.end() : end].strip():
            break
        end = token.start()
    begin = _BEGIN.match(text, 0, end)
    return blanked(text, [(0, begin.end() if begin else 0), (end, len(text))])


def _final_channel(text: str) -> str:
    """Return ``text`` with everything blanked except the last ``final`` channel, up to the end of its turn."""
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
        # Servers that drop the control tokens leave the channels' names.
        begin = text.rfind(_LEAKED_FINAL) + len(_LEAKED_FINAL)
    if begin:
        return blanked(text, [(0, begin)])
    return text


def blanked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return ``text`` with ordered spans replaced by line ends."""
    parts: list[str] = []
    done = 0
    for start, end in spans:
        parts += (text[done:start], "\n" * (end - start))
        done = end
    return "".join((*parts, text[done:]))
