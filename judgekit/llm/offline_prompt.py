"""How the offline stand-in reads a prompt: question, passages, task, form of the reply, abstention phrase.

The convention is that of the prompt files: the question in ``<question>`` tags, each passage in ``<passage>`` tags
with an optional ``title`` attribute. A line ``Task: answer``, ``Task: judge`` or ``Task: grade`` settles the task;
without one it is read off the instructions: a number scale asks for a grade, the words *yes* and *no* for a
verdict, anything else for an answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, Literal

__all__ = ["Instructions", "Prompt", "PromptReader", "content_text", "read_instructions"]

Task = Literal["answer", "judge", "grade"]

_QUESTION = re.compile(r"<(question|query)>((?:[^<]+|<(?!/?\1>))*+)</\1>")
_PASSAGE = re.compile(r"<(passage|document|doc)((?:\s[^<>]*)?)>((?:[^<]+|<(?!/?\1[\s>]))*+)</\1>")
_ANSWER = re.compile(r"<answer>((?:[^<]+|<(?!/?answer>))*+)</answer>")
_REFERENCES = re.compile(r"<(references?)>((?:[^<]+|<(?!/?\1>))*+)</\1>")
_TITLE = re.compile(r"""\btitle\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_TASK = re.compile(r"^[ \t]*task:\s*(answer|judge|grade)\b", re.IGNORECASE | re.MULTILINE)
_SCALE = (
    re.compile(r"\b(?:from\s+)?0\s*(?:to|-|–)\s*(\d{1,2})\b"),
    re.compile(r"\b0(?:,\s?\d){0,9},?\sor\s(\d)\b"),
)
_LEVEL = re.compile(r"^[^\w\n]*(\d)\s*(?:=|:|-|–)\s+\w", re.MULTILINE)
_QUOTED = re.compile(r"""\"([^"\n]{2,60})\"|“([^”\n]{2,60})”|`([^`\n]{2,60})`|(?<!\w)'([^'\n]{2,60})'(?!\w)""")
_ABSTAIN = re.compile(r"\b(?:not|no|none|cannot|can't|don't|doesn't|unless|otherwise|without|neither)\b", re.IGNORECASE)
_MARKER = re.compile(
    r"^[^\w\n]*((?:final |overall )?(?:grade|score|rating)):[ \t]*(?:N|…|a number)?[ \t.]*$|(##final score)(?=:)",
    re.IGNORECASE | re.MULTILINE,
)
_SENTENCES = re.compile(r"\b(?:two|three|four|five|\d)\s(?:complete\s|full\s|short\s)?sentences\b", re.IGNORECASE)
_BARS: Final[Mapping[str, float]] = MappingProxyType({"strict": 0.06, "useful": -0.03})
"""Words of a prompt that move the bar of its verdicts, so that studies of prompts have something to find."""
_OBJECT = re.compile(r"\{[^{}]*\}")


@dataclass(frozen=True, slots=True)
class Instructions:
    """What the fixed part of a prompt asks for.

    Attributes:
        task: what to do.
        top: the largest grade, for ``grade``.
        abstain: the phrase to answer where the passages do not say.
        fields: the keys of the JSON object to reply with and an example value each, or None for plain text.
        marker: text to put before the verdict (``Final grade: ``), usually "".
        sentences: whether the answer is to be in whole sentences.
        classes: what to say of a claim that is right and of one that is wrong, where there is a claim to check.
        bar: how much more than usual it takes to be relevant, on the scale of the reader's score.
    """

    task: Task
    top: int = 3
    abstain: str = "unknown"
    fields: Mapping[str, Any] | None = None
    marker: str = ""
    sentences: bool = False
    classes: tuple[str, str] | None = None
    bar: float = 0.0


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt, read.

    Attributes:
        question: the question's text.
        passages: (title, text) of each passage, in prompt order; empty is closed book.
        instructions: what is to be done.
        answers: proposed answers (``<answer>``): to choose from, or one to compare with the references.
        references: reference answers (``<references>``, one a line).
    """

    question: str
    passages: tuple[tuple[str, str], ...]
    instructions: Instructions
    answers: tuple[str, ...] = ()
    references: tuple[str, ...] = ()


class PromptReader:
    """Reads prompts. Keeps the instructions read last, which changes the speed and nothing else."""

    def __init__(self) -> None:
        self._instructions = lru_cache(maxsize=256)(read_instructions)

    def read(self, messages: Sequence[Mapping[str, Any]], response_format: Mapping[str, Any] | None = None) -> Prompt:
        """Read the messages of a chat completion, whose contents must be strings or lists of text parts."""
        text = "\n".join(content_text(m) for m in messages if m.get("role") != "assistant")
        asked = list(_QUESTION.finditer(text))
        passages = list(_PASSAGE.finditer(text))
        question = asked[-1][2].strip() if asked else _loose_question(text)
        if len(asked) > 1:
            # Worked examples come first: only what belongs to the last question counts.
            behind = [p for p in passages if p.start() > asked[-1].end()]
            passages = behind or [p for p in passages if p.start() > asked[-2].end()]
        answers, references = (_ANSWER.findall(text), _REFERENCES.findall(text)) if "<answer>" in text else ([], [])
        fixed = _outside(text, [*asked, *_PASSAGE.finditer(text), *_ANSWER.finditer(text), *_REFERENCES.finditer(text)])
        return Prompt(
            question=_plain(question),
            passages=tuple((_title(p[2]), _plain(p[3].strip())) for p in passages),
            instructions=self._instructions(fixed, json.dumps(response_format)),
            answers=tuple(_plain(a.strip()) for a in answers),
            references=tuple(_plain(r) for _, block in references for r in _lines(block)),
        )


def read_instructions(text: str, response_format: str = "null") -> Instructions:
    """Read the text of a prompt outside of its question and passages, and the JSON of its ``response_format``."""
    task, top = _task(text)
    fields = _fields(text, json.loads(response_format))
    marker = _MARKER.search(text)
    return Instructions(
        task=task,
        top=top,
        abstain=_abstention(text),
        fields=fields,
        marker=f"{marker[1] or marker[2]}: " if marker and fields is None else "",
        sentences=_SENTENCES.search(text) is not None,
        classes=("SUPPORTS", "REFUTES") if "SUPPORTS" in text and "REFUTES" in text else None,
        bar=next((bar for word, bar in _BARS.items() if word in text), 0.0),
    )


def _outside(text: str, spans: Sequence[re.Match[str]]) -> str:
    """Return the text without the spans, one blank for each run of them."""
    parts, done = [], 0
    for start, end in sorted(s.span() for s in spans):
        if start >= done:
            parts.append(text[done:start].strip())
            done = end
    parts.append(text[done:].strip())
    return " ".join(p for p in parts if p)


def content_text(message: Mapping[str, Any]) -> str:
    """Return the text of a message's content, a string or a list of text parts."""
    content = message["content"]
    return content if isinstance(content, str) else "\n".join(str(part.get("text", "")) for part in content)


def _plain(text: str) -> str:
    """Undo the escapes that keep a passage from closing its own tag, and no others."""
    return text.replace("&lt;", "<").replace("&gt;", ">") if "&" in text else text


def _lines(block: str) -> list[str]:
    return [line.strip(" -*\t") for line in re.sub(r"<[^<>]*>", "\n", block).splitlines() if line.strip(" -*\t")]


def _title(attributes: str) -> str:
    match = _TITLE.search(attributes)
    return _plain((match[1] or match[2] or "").strip()) if match else ""


def _loose_question(text: str) -> str:
    lines = [line.strip() for line in _PASSAGE.sub("\n", text).splitlines() if line.strip()]
    for line in reversed(lines):
        if line.endswith("?"):
            return re.sub(r"^(?:question|query)\s*:\s*", "", line, flags=re.IGNORECASE)
    return lines[-1] if lines else ""


def _task(instructions: str) -> tuple[Task, int]:
    top = _top_grade(instructions)
    named = _TASK.search(instructions)
    if named:
        task: Task = named[1].lower()  # type: ignore[assignment]  # the pattern admits exactly the three tasks
        return task, top or 3
    if top is not None:
        return "grade", top
    words = set(re.findall(r"[a-z]+", instructions.lower()))
    if {"yes", "no"} <= words or "##final score" in instructions:
        return "judge", 1
    return "answer", 1


def _top_grade(instructions: str) -> int | None:
    for pattern in _SCALE:
        found = pattern.search(instructions)
        if found and int(found[1]) > 1:
            return int(found[1])
    levels = [int(m[1]) for m in _LEVEL.finditer(instructions)]
    return max(levels) if {0, 1} < set(levels) else None


def _abstention(instructions: str) -> str:
    for sentence in re.split(r"(?<=[.!?:])\s+|\n\s*\n", instructions):
        if _ABSTAIN.search(sentence):
            quoted = ["".join(groups) for groups in _QUOTED.findall(sentence)]
            if quoted:
                return quoted[-1].rstrip(".")
    return "unknown"


def _fields(instructions: str, response_format: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    kind = (response_format or {}).get("type")
    if kind == "json_schema":
        schema = (response_format or {}).get("json_schema") or {}
        properties = (schema.get("schema") or {}).get("properties") or {}
        return {key: _example(rule) for key, rule in properties.items()} or {"answer": ""}
    if kind != "json_object" and not re.search(r"\bJSON\b", instructions, re.IGNORECASE):
        return None
    for found in _OBJECT.finditer(instructions):
        try:
            example = json.loads(found[0])
        except ValueError:
            example = dict.fromkeys(re.findall(r'"(\w+)"\s*:', found[0]))
        if example:
            return dict(example)
    return {"answer": None}


def _example(rule: Mapping[str, Any]) -> Any:
    if rule.get("enum"):
        return rule["enum"][0]
    return {"boolean": True, "integer": 0, "number": 0, "string": ""}.get(str(rule.get("type")))
