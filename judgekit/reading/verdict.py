"""From a reply to its verdict: only what a prompt asked for is read, and all else is not a verdict.

A wrong label that looks right is worse than a missing one, and what people may write is without end. So a prompt
declares the form of its replies (`Form`), and a reply is read by that form alone. The whole grammar, after reasoning
in ``<think>`` tags or channels is gone (`without_reasoning`):

* any form: the whole reply, without markup, is a verdict: ``Yes``, ``**2**.``;
* ``json``: the whole reply is one JSON object (code fences are stripped) in which the declared key occurs once, at
  whatever depth, and no key that has it in its name (``final_score``); its value is a verdict. Where the prompt
  declares all keys there are no others, and the verdict's comes last;
* ``line``: the last line is the declared label, a colon and a verdict, ``Final grade: 2``. No line above it has the
  label, another scale, another verdict that is a number, or a word of the label together with another verdict, and
  none is another verdict. Where the prompt declares its steps, each line above begins with one of them; a line that
  is a step, a colon and a number, ``Match: 3``, grades that step;
* ``explained``: the first word is the verdict, set off by punctuation or the end of its line. Behind it stands no
  other verdict, no word that takes back what was said, and, unless the verdict is the lowest, no negation.

A verdict is one of the form's words, whatever their case. A reply that states none is asked about once more
(`Form.again`). ``finish_reason`` is looked at first: a reply that is not known to be complete has no verdict, whatever
it says. Time is linear in the length of the reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple

from judgekit.data.tables import Status
from judgekit.wire.reasoning import without_reasoning
from judgekit.wire.types import Failure, Outcome

__all__ = ["INVISIBLE", "Form", "Unread", "Verdict", "read", "read_outcome", "unfinished", "without_reasoning"]

INVISIBLE: Final = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
_MARKUP: Final = "*_`\"'“”‘’«»" + INVISIBLE
_BLANK: Final = " \t\n\r\v\f\x1c\x1d\x1e\x85\u00a0\u2028\u2029\u3000" + INVISIBLE
_EDGES: Final = _BLANK + _MARKUP
_SPACES: Final = str.maketrans(dict.fromkeys(_MARKUP + "#", " "))
_STOPS: Final = (".", "!", "。")
_FENCED: Final = re.compile(r"\s*```\w*\s(?P<body>.*?)```\s*", re.DOTALL)
_SET_OFF: Final = re.compile(
    r"[*_`\"'”’»]*(?:(?P<stop>[.,;:!])[*_`\"'”’»]*(?:\s|$)|[^\S\n]*(?:\n|$)|\s*(?:—|[-–]\s))(?!\s*\d)"
)
_TAKES_BACK: Final = re.compile(
    r"\b(?:but|however|(?:al)?though|yet|except|unless|otherwise|instead|rather|actually|wait|hmm+|scratch|sorry"
    r"|correction|kidding|reconsider|second thoughts?)\b"
)
_NEGATION: Final = re.compile(
    r"\b(?:no|not|nor|none|never|neither|nothing|nobody|nowhere|cannot|without|hardly|barely|scarcely|lack\w*|fail\w*"
    r"|miss(?:es|ing)|wrong|false|un(?:clear|sure|related|helpful)|ir?relevan\w+|in(?:correct|sufficient|complete))\b"
    r"|n['’]t\b"
)
_SCALE: Final = re.compile(r"\bscale\b|\bout of\b|\d[- ]points?\b|(?<![\d/])\d{1,2} ?/ ?\d{1,2}(?![\d/])")
_MANY: Final = 7
"""More grades than these are told as a range."""

_COMPLETE: Final = frozenset({"", "stop", "stop_sequence", "eos", "eos_token", "end_turn", "complete"})
"""What servers send as ``finish_reason`` of a reply that is complete, besides null."""

_FILTERED: Final = frozenset(
    {"content_filter", "safety", "refusal", "recitation", "prohibited_content", "blocklist", "sensitive", "spii"}
)


_REMEMBERED: Final = 256


class Verdict(NamedTuple):
    """What a reply states: its value in the prompt's `Form`, and where a reply that is one word says so."""

    value: int
    start: int = 0


@dataclass(frozen=True, slots=True)
class Unread:
    """Why a reply has no verdict."""

    status: Status
    reason: str


@dataclass(frozen=True)
class Form:
    """The form of a prompt's replies: one word, unless it declares keys, a label or explanations.

    Attributes:
        options: (word, value) of each verdict, as the prompt asks for it.
        others: further words for the same verdicts: the names of grades, ``true`` for ``Yes``.
        keys: the keys of the JSON object, the verdict's last; () for a reply without one. One key alone may have
            others beside it.
        label: what the last line begins with, if the reply is to consist of steps.
        explained: whether an explanation may follow the verdict.
        constrained: whether the server is told the form, so that it can hold the model to it.
        steps: what every line above the last one begins with; such a line may be a grade of its step.
    """

    options: tuple[tuple[str, int], ...] = ()
    others: tuple[tuple[str, int], ...] = ()
    keys: tuple[str, ...] = ()
    label: str = ""
    explained: bool = False
    constrained: bool = False
    steps: tuple[str, ...] = ()

    @cached_property
    def values(self) -> Mapping[str, int]:
        """The value of each word, case-folded."""
        return {_plain(word): value for word, value in (*self.others, *self.options)}

    @cached_property
    def read(self) -> Callable[[str], Verdict | Unread]:
        """What `read` makes of a text in this form. The last texts are remembered: a million replies are few words."""
        return lru_cache(_REMEMBERED)(lambda text: read(text, self))

    @property
    def one_word(self) -> bool:
        """Whether nothing but the verdict is asked for."""
        return not (self.keys or self.label or self.explained)

    @cached_property
    def wanted(self) -> str:
        """The verdicts in words: ``Yes or No``, ``0, 1, 2 or 3``."""
        words = ["true", "false"] if self.keys and "true" in self.values else [word for word, _ in self.options]
        if len(words) > _MANY and all(map(_is_number, words)):
            return f"a whole number from {words[0]} to {words[-1]}"
        return " or ".join([", ".join(words[:-1]), words[-1]])

    @property
    def again(self) -> str:
        """What is said to a model whose reply does not have this form."""
        if self.keys:
            return f'Reply with one JSON object only, in which "{self.keys[-1]}" is {self.wanted}.'
        if self.label:
            return f'Reply with one line only, "{self.label}: N", where N is {self.wanted}.'
        return f"Reply with {self.wanted} only."

    @cached_property
    def constraint(self) -> dict[str, Any]:
        """The fields of a request body by which a server holds the model to this form; {} unless `constrained`."""
        if not self.constrained:
            return {}
        words = [word for word, _ in self.options]
        if not self.keys:
            return {"structured_outputs": {"choice": words}}
        verdict: dict[str, Any] = {"type": "string", "enum": words}
        if "true" in self.values:
            verdict = {"type": "boolean"}
        elif all(map(_is_number, words)):
            verdict = {"type": "integer", "enum": [int(word) for word in words]}
        properties = {**{key: {"type": "string"} for key in self.keys[:-1]}, self.keys[-1]: verdict}
        schema = {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
        return {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "verdict", "strict": True, "schema": schema},
            }
        }

    @cached_property
    def word(self) -> re.Pattern[str]:
        """Any of the words, wherever it stands in a case-folded text."""
        words = [r"\s+".join(map(re.escape, word.split())) for word in sorted(self.values, key=len, reverse=True)]
        return re.compile(rf"(?<!\w)(?:{'|'.join(words)})(?!\w)")

    @cached_property
    def numbered(self) -> re.Pattern[str]:
        """The number in a list that stands before a step: ``2. Match``."""
        return re.compile(rf"^\d+[.)] (?=(?:{self._steps}) ?:)")

    @cached_property
    def step(self) -> re.Pattern[str]:
        """A line that grades one step and says nothing else: ``Match: 3``."""
        return re.compile(rf"(?:\d+[.)] )?(?:{self._steps}) ?: ?\d+\.?")

    @cached_property
    def stepped(self) -> re.Pattern[str]:
        """A line that begins with one of the steps."""
        return re.compile(rf"(?:\d+[.)] |[-•] )?(?:{self._steps}) ?:")

    @cached_property
    def _steps(self) -> str:
        return "|".join(re.escape(_plain(step)) for step in self.steps) or "(?!)"


def _is_number(word: str) -> bool:
    return word.removeprefix("-").isdecimal()


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def read_outcome(outcome: Outcome, form: Form, complete: Collection[str] = ()) -> Verdict | Unread:
    """Read the verdict out of what became of a request; a failure or a refusal has none."""
    if isinstance(outcome, Failure):
        return Unread(outcome.status, outcome.reason)
    if outcome.refusal is not None:
        return Unread(Status.REFUSED, f"the model declined: {outcome.refusal[:200]}")
    return unfinished(outcome.finish_reason, complete) or form.read(outcome.text)


def unfinished(finish_reason: str | None, complete: Collection[str] = ()) -> Unread | None:
    """Return why a reply with this ``finish_reason`` cannot be read, or None if it is complete.

    Only what is known to mean complete does: null, the words in `_COMPLETE`, and the endpoint's own ``complete``.
    """
    if finish_reason is None or finish_reason == "stop":
        return None
    reason = finish_reason.strip().casefold()
    if reason in _COMPLETE or any(reason == word.strip().casefold() for word in complete):
        return None
    if re.sub(r"\W", "_", reason) in _FILTERED:
        return Unread(Status.REFUSED, f"the reply was filtered (finish_reason: {finish_reason[:80]})")
    return Unread(Status.TRUNCATED, f"the reply is not complete (finish_reason: {finish_reason[:80]})")


def read(text: str, form: Form) -> Verdict | Unread:
    """Read the verdict out of the text of a complete reply. Never raises, whatever the text.

    Args:
        text: the reply, without any reasoning that the endpoint gave apart from it.
        form: the form that the prompt declares.
    """
    said = without_reasoning(text)
    verdict = _whole(said, form)
    if verdict is None and form.keys:
        verdict = _object(said, form)
    elif verdict is None and form.label:
        verdict = _last_line(said, form)
    elif verdict is None and form.explained:
        verdict = _first_word(said, form)
    if verdict is not None:
        return verdict
    shown = " ".join(said.split())
    what = f"is not in the form that was asked for: {shown[:80]!r}" if shown else "is empty"
    return Unread(Status.UNPARSED, f"the reply {what} (expected {form.wanted if form.options else 'nothing'})")


def _whole(text: str, form: Form) -> Verdict | None:
    begun = text.lstrip(_EDGES)
    said = begun.rstrip(_EDGES)
    if said.endswith(_STOPS):
        said = said[:-1].rstrip(_EDGES)
    value = form.values.get(_plain(said))
    return None if value is None else Verdict(value, len(text) - len(begun))


def _object(text: str, form: Form) -> Verdict | None:
    names: list[str] = []

    def noted(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names.extend(name.casefold() for name, _ in pairs)
        return {name.casefold(): value for name, value in pairs}

    fenced = _FENCED.fullmatch(text)
    try:
        body = fenced["body"] if fenced else text.strip(_BLANK)
        found = json.loads(body, object_pairs_hook=noted, parse_float=_exact)
    except (ValueError, RecursionError):
        return None
    *others, key = (key.casefold() for key in form.keys)
    if not isinstance(found, dict) or [name for name in names if key in name and name not in others] != [key]:
        return None
    if others and (not found.keys() <= {*others, key} or next(reversed(found)) != key):
        return None  # a reason behind its verdict may take it back
    verdict = found.get(key)
    if not isinstance(verdict, (str, int)):
        return None
    value = form.values.get(_plain(str(verdict)))  # a truth value is True or False
    return None if value is None else Verdict(value)


def _exact(number: str) -> int | str:
    """Return a number with a point as a whole one if it is written as such, ``2.0``; else its text, no verdict."""
    whole, _, rest = number.partition(".")
    return int(whole) if rest and not rest.strip("0") else number


def _last_line(text: str, form: Form) -> Verdict | None:
    lines = [plain for line in text.splitlines() if (plain := _plain(line.translate(_SPACES)))]
    label = _plain(form.label.translate(_SPACES))
    if not lines or not lines[-1].startswith(label):
        return None
    colon, _, said = lines.pop()[len(label) :].replace("：", ":").partition(":")
    value = form.values.get(said.removesuffix(".").strip())
    if colon.strip() or value is None:
        return None
    if form.steps and not all(map(form.stepped.match, lines)):
        return None  # a line that is not one of the steps may take the last line back: "It should not be"
    parts = set(re.findall(r"\w+", label))
    for line in lines:
        if label in line or _other_scale(line, form):
            return None
        if form.step.fullmatch(line):
            continue
        text = form.numbered.sub("", line)
        rivals = {word for word in map(_plain, form.word.findall(text)) if form.values[word] != value}
        named = parts & set(re.findall(r"\w+", text)) or text.removesuffix(".") in rivals
        if rivals and (named or any(map(_is_number, rivals))):
            return None
    return Verdict(value)


def _other_scale(line: str, form: Form) -> bool:
    """Whether a line speaks of a scale with a number that the form does not have."""
    numbers = [number for number in re.findall(r"\d+", line) if number not in form.values]
    return bool(numbers and any(map(_is_number, form.values)) and _SCALE.search(line))


def _first_word(text: str, form: Form) -> Verdict | None:
    text = text.casefold().lstrip(_BLANK + "*_")  # what is quoted may be about something else
    first = form.word.match(text)
    set_off = _SET_OFF.match(text, first.end()) if first else None
    if first is None or set_off is None:
        return None
    behind = text[set_off.end() :]
    if set_off["stop"] == "." and _is_number(first[0]) and behind.strip():
        return None  # "1. The passage" may begin a list
    value = form.values[_plain(first[0])]
    if any(form.values[_plain(other)] != value for other in form.word.findall(behind)):
        return None
    if _TAKES_BACK.search(behind) or (value != min(form.values.values()) and _NEGATION.search(behind)):
        return None
    return Verdict(value)
