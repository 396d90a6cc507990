"""From a reply to its verdict: what the prompt asked for, or a verdict that is stated as plainly.

A wrong label that looks right is worse than a missing one, and what people may write is without end. So a prompt
declares the form of its replies (`ReplyFormat`), and a reply is read by that form first. The whole grammar, of a text
that is plainly the model's own (`plain_reply`):

* ``json``: the whole reply is one JSON object (code fences are stripped) that repeats no key and has the declared key
  once, at whatever depth, and no other that has it in its name (``final_score``); its value is a verdict. Where the
  prompt declares all keys there are no others, and the verdict's comes last;
* ``line``: the last line is the declared label, a colon and a verdict, ``Final grade: 2``, and the label stands nowhere
  else. Where the prompt declares its steps, the lines above are these, in their order, or there are none; a step that
  is a number and nothing else, ``Match: 3``, grades that step;
* any form: the whole reply is a verdict, without markup, behind ``Answer:`` or a word like it, or beside ✅ or ❌.

Text beside a verdict, above its line or in other fields, must not be about the reply itself, another scale or another
grade (`contests`): it could retract the verdict in ways nobody can foresee. A verdict is one of the form's words, in
any case. Where there is none, what the reply repeats of the prompt is masked (`PromptEcho`), and the rest is read in
the same way, then in a few further shapes (`SecondReading`). A reply that still states none is asked about once more
(`ReplyFormat.again`). ``finish_reason`` is checked first: a reply that is not known to be complete has no verdict,
whatever it says. Time is linear in the length of the reply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from judgekit.data.tables import Status
from judgekit.reading.ambiguity import BLANK, EDGES, INVISIBLE, STOPS, contests
from judgekit.reading.echo import PromptEcho
from judgekit.reading.json_object import names_and_texts, parse_object
from judgekit.reading.question import is_open
from judgekit.wire.reasoning import plain_reply
from judgekit.wire.types import Failure, Outcome, Reply

if TYPE_CHECKING:
    from judgekit.reading.prompts import Output, Prompt
    from judgekit.reading.sentence import Grammar

_SPACES: Final = str.maketrans(dict.fromkeys("*_`#" + INVISIBLE, " "))
_WIDE: Final = {0xFEE0 + code: code for code in range(0x21, 0x7F)}
"""The full-width forms of ASCII."""

_FENCED: Final = re.compile(r"\s*```\w*\s(?P<body>.*?)```\s*", re.DOTALL)
_ANNOUNCED: Final = re.compile(
    r"(?:(?:my|the|final|overall) )*(?:answer|verdict|grade|score|rating|decision|judge?ment|label|relevance)"
)
_MARKED: Final = re.compile(r"(?:(?P<yes>[✅✔☑👍])|(?P<no>[❌✖✗👎🚫]))\ufe0f?[ \t]*")

_LIST_BEGUN: Final = re.compile(r"\s*\d+\. +")
"""The number of an empty list item: "1. " is no grade."""

_MANY: Final = 7
"""Above this many grades, messages give a range."""

_COMPLETE: Final = frozenset(
    {"", "stop", "stop_sequence", "eos", "eos_token", "end_turn", "complete", "completed", "done", "finished"}
)
"""Values of ``finish_reason`` for a complete reply, besides null."""

_FILTERED: Final = frozenset(
    {"content_filter", "safety", "refusal", "recitation", "prohibited_content", "blocklist", "sensitive", "spii"}
)


_REMEMBERED: Final = 256
_PROMPTS: Final = 16

ReadBy = Literal["form", "sentence", "second request"]
"""How a label was read: in the requested form, as a plain sentence, or after asking again."""


class Verdict(NamedTuple):
    """What a reply states: its value in the prompt's `ReplyFormat`, and where a reply that is one word says so.

    ``words`` state it in another form than requested. They may merely repeat the prompt, which states nothing: see
    `stated`.
    """

    value: int
    start: int = 0
    words: str = ""
    by: ReadBy = "form"


@dataclass(frozen=True, slots=True)
class Unread:
    """Why a reply has no verdict."""

    status: Status
    reason: str


@dataclass(frozen=True)
class ReplyFormat:
    """The form of a prompt's replies: one word, unless it declares keys or a label.

    Attributes:
        options: (word, value) of each verdict, as requested.
        others: further words for the same verdicts: the names of grades, ``true`` for ``Yes``. A name whose words all
            occur in another name does not count: "correct" may be short for "correct and dense".
        keys: the keys of the JSON object, the verdict's last; () without JSON. If there is only one, further keys may
            stand beside it.
        label: the beginning of the last line, if the reply consists of steps.
        steps: the beginnings of the lines above the last one, in order; such a line may hold a grade of its step.
    """

    options: tuple[tuple[str, int], ...] = ()
    others: tuple[tuple[str, int], ...] = ()
    keys: tuple[str, ...] = ()
    label: str = ""
    steps: tuple[str, ...] = ()

    @cached_property
    def values(self) -> Mapping[str, int]:
        """The value of each word, case-folded."""
        values: dict[str, int] = {}
        words_of = [set(re.findall(r"\w+", word.casefold())) for word, _ in self.others]
        for (word, value), own in zip(self.others, words_of, strict=True):
            if not own or sum(map(own.issubset, words_of)) == 1:
                values[_plain(word)] = value
        for word, value in self.options:
            values[_plain(word)] = value
        return values

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The least and the largest value."""
        return min(self.values.values()), max(self.values.values())

    @cached_property
    def _asked(self) -> frozenset[str]:
        """The requested words, case-folded, and JSON's own."""
        return frozenset({"true", "false", *(_plain(word) for word, _ in self.options)})

    @cached_property
    def read(self) -> Callable[[str], Verdict | Unread]:
        """Reads a text in this form, with a cache: a million replies hold few different words."""
        return lru_cache(_REMEMBERED)(lambda text: read(text, self))

    @property
    def one_word(self) -> bool:
        """Whether only the verdict is requested."""
        return not (self.keys or self.label)

    @cached_property
    def graded(self) -> bool:
        """Whether the verdicts are numbers."""
        return any(_is_number(word) for word, _ in self.options)

    @cached_property
    def wanted(self) -> str:
        """The verdicts in words: ``Yes or No``, ``0, 1, 2 or 3``."""
        words = [word for word, _ in self.options]
        if self.keys and "true" in self.values:
            words = ["true", "false"]
        if len(words) > _MANY and all(map(_is_number, words)):
            return f"a whole number from {words[0]} to {words[-1]}"
        return " or ".join([", ".join(words[:-1]), words[-1]])

    @property
    def again(self) -> str:
        """The message to a model whose reply does not have this form."""
        if self.keys:
            return f'Reply with one JSON object only, in which "{self.keys[-1]}" is {self.wanted}.'
        if self.label:
            return f'Reply with one line only, "{self.label}: N", where N is {self.wanted}.'
        return f"Reply with {self.wanted} only."

    def constraint(self, again: bool = False) -> dict[str, Any]:
        """Return the fields of a request body that constrain the model to this form, or to that of `again`.

        Steps are free text, so only requests for the line alone are constrained.
        """
        words = [word for word, _ in self.options]
        if self.keys:
            schema = {"name": "verdict", "strict": True, "schema": self._schema(words, verdict_alone=again)}
            return {"response_format": {"type": "json_schema", "json_schema": schema}}
        if self.label:
            words = [f"{self.label}: {word}" for word in words] if again else []
        return {"structured_outputs": {"choice": words}} if words else {}

    def _schema(self, words: list[str], verdict_alone: bool) -> dict[str, Any]:
        """Return the JSON schema of an object with the declared keys, in their order."""
        properties: dict[str, Any] = {}
        if not verdict_alone:
            properties = {key: {"type": "string"} for key in self.keys[:-1]}
        if "true" in self.values:
            verdict: dict[str, Any] = {"type": "boolean"}
        elif all(map(_is_number, words)):
            verdict = {"type": "integer", "enum": list(map(int, words))}
        else:
            verdict = {"type": "string", "enum": words}
        properties[self.keys[-1]] = verdict
        required = list(properties)
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    @cached_property
    def step(self) -> re.Pattern[str]:
        """A line that begins with one of the steps, possibly numbered: ``2. Match: all``."""
        steps = "|".join(re.escape(_plain(step)) for step in self.steps) or "(?!)"
        return re.compile(rf"(?:\d+[.)] |[-•] )?(?P<name>{steps}) ?:(?P<said>.*)")


def _is_number(word: str) -> bool:
    return word.removeprefix("-").isdecimal()


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def stated(
    prompt: Prompt,
    outcome: Outcome,
    values: Callable[[], Mapping[str, str]] = dict,
    *,
    thinks: bool = False,
) -> Verdict | Unread:
    """Return the verdict that a reply states under a prompt, or why it states none: the one way from text to label.

    ``values`` returns what was filled into the prompt; without it only the requested form is read.
    """
    reply = usable(outcome)
    if isinstance(reply, Unread):
        return reply
    form = prompt.output.form
    # Only short replies recur: with reasoning, no two replies are alike.
    verdict = read(reply.text, form, thinks) if thinks else form.read(reply.text)
    if prompt.output.scale is None or (isinstance(verdict, Verdict) and not verdict.words):
        return verdict  # most replies are in the form that was asked for, and are read without what was filled in
    filled = values()
    if isinstance(verdict, Verdict):
        for text in _shown(prompt, verdict, filled):
            if PromptEcho(text).holds(verdict.words):
                return Unread(Status.UNPARSED, f"the reply {verdict.words[:80]!r} repeats what the model was shown")
        return verdict
    if not filled:
        return verdict
    shown = PromptEcho("\n".join(message["content"] for message in prompt.messages(filled)))
    own_words = _own_words(
        reply.text,
        thinks,
        prompt.output,
        shown,
        PromptEcho("\n".join(filled.values()), prompt.user),
        question=filled.get("question", ""),
        judges_passage="answer" not in filled,
    )
    return own_words or verdict


@lru_cache(_REMEMBERED)
def _own_words(
    text: str,
    thinks: bool,
    output: Output,
    shown: PromptEcho,
    filled: PromptEcho,
    *,
    question: str,
    judges_passage: bool,
) -> Verdict | None:
    """Read the model's own words: in the requested form, else a plainly stated verdict."""
    said = plain_reply(text, thinks)
    if said is None:
        return None
    # Only what stands beside a verdict is another where it is masked.
    verdict = None if output.form.one_word else _in_form(said, output.form, shown.own, filled.words)
    if verdict is not None:
        return verdict
    if _LIST_BEGUN.fullmatch(said) or output.type not in ("yes/no", "grade"):
        return None  # the words of other choices may mean anything
    # Most commands read no reply of their own, or none in other words.
    from judgekit.reading.sentence import SecondReading

    grammar = _grammar(output, filled.except_for)
    reading = SecondReading(
        grammar,
        shown,
        filled,
        open_question=grammar.clauses.graded or is_open(question),
        judges_passage=judges_passage,
    )
    value = reading.read(said)
    return None if value is None else Verdict(value, by="sentence")


@lru_cache(_PROMPTS)
def _grammar(output: Output, prompt: str) -> Grammar:
    """Return the patterns that state a verdict under a prompt with this text."""
    from judgekit.reading.clause import Clauses
    from judgekit.reading.sentence import Grammar
    from judgekit.reading.stating import Stating, words_of

    form, graded = output.form, output.type == "grade"
    names = {value: _plain(word) for word, value in form.others} if graded else {}
    words = words_of(form.values, graded=graded)
    # "One" is a grade in a clause that states one, and any word elsewhere.
    clauses = Clauses(graded, form.values if graded else words, prompt, frozenset(names.values()))
    stating = Stating(graded, words, names, clauses.adjective)
    return Grammar(clauses, stating, names, tuple(map(_plain, form.steps)))


def _shown(prompt: Prompt, verdict: Verdict, values: Mapping[str, str]) -> Iterable[str]:
    """Return the texts that a verdict in other words may repeat: prompts often explain grades by name."""
    if ":" not in verdict.words:
        return values.values()
    filled = {name: f"{{{name}}}" for name in prompt.placeholders} | dict(values)
    return [message["content"] for message in prompt.messages(filled)]


def usable(outcome: Outcome) -> Reply | Unread:
    """Return the reply to a request, or why it cannot be read: failures and refusals say nothing."""
    if isinstance(outcome, Failure):
        return Unread(outcome.status, outcome.reason)
    if outcome.refusal is not None:
        return Unread(Status.REFUSED, f"the model declined: {outcome.refusal[:200]}")
    if outcome.finish_reason == "stop":
        return outcome
    return unfinished(outcome.finish_reason) or outcome


def unfinished(finish_reason: str | None) -> Unread | None:
    """Return why a reply with this ``finish_reason`` cannot be read, or None if it is complete."""
    if finish_reason is None or finish_reason == "stop":
        return None
    reason = finish_reason.strip().casefold()
    if reason in _COMPLETE:
        return None
    if re.sub(r"\W", "_", reason) in _FILTERED:
        return Unread(Status.REFUSED, f"the reply was filtered (finish_reason: {finish_reason[:80]})")
    return Unread(Status.TRUNCATED, f"the reply is not complete (finish_reason: {finish_reason[:80]})")


def read(text: str, form: ReplyFormat, thinks: bool = False) -> Verdict | Unread:
    """Read the verdict from the text of a complete reply, if it has the requested form."""
    said = plain_reply(text, thinks)
    if said is None:
        shown = " ".join(text.split())[:80]
        hint = ""
        if "/" in text and not thinks:
            hint = " (if the model thinks in its replies, set thinks = true)"
        return Unread(Status.UNPARSED, f"reasoning and answer cannot be told apart: {shown!r}{hint}")
    verdict = _in_form(said, form)
    if verdict is not None:
        return verdict
    problem = "is empty"
    if said.strip():
        problem = f"is not in the form that was asked for: {' '.join(said.split())[:80]!r}"
    return Unread(Status.UNPARSED, f"the reply {problem} (expected {form.wanted if form.options else 'nothing'})")


def _in_form(
    said: str, form: ReplyFormat, own: Callable[[str], str] = str, topic: frozenset[str] = frozenset()
) -> Verdict | None:
    """Return the verdict of a reply without reasoning, if it has the requested form.

    ``own`` returns the model's own words of a text; ``topic`` are the words of what was filled into the prompt.
    """
    verdict = None
    if form.keys:
        verdict = _object(said, form, own, topic)
    elif form.label:
        verdict = _last_line(said, form, own, topic)
    if verdict is None and _LIST_BEGUN.fullmatch(said) is None:
        verdict = _whole(said, form)
    return verdict


def unfenced(text: str) -> str:
    """Return a text without the code fence around it."""
    fenced = _FENCED.fullmatch(text)
    return fenced["body"] if fenced else text


def _whole(text: str, form: ReplyFormat) -> Verdict | None:
    text = text.translate(_WIDE)
    rest = text.lstrip(BLANK + "*_`#")
    icon = _MARKED.match(rest) if len(set(form.values.values())) == 2 else None
    if icon:
        rest = rest[icon.end() :]
    label, _, behind = rest.partition(":")
    announced = _ANNOUNCED.fullmatch(_plain(label.strip(BLANK + "*_`")))
    if announced:
        rest = behind
    rest = rest.lstrip(EDGES)
    verdict = rest.rstrip(EDGES)
    if verdict.endswith(STOPS):
        verdict = verdict[:-1].rstrip(EDGES)
    value = form.values.get(_plain(verdict))
    if value is None or (icon and (value == form.ends[0]) != bool(icon["no"])):
        return None
    words = ""
    if announced:
        words = f"{label.strip(EDGES)}: {verdict}"
    elif _plain(verdict) not in form._asked:
        words = verdict
    return Verdict(value, len(text) - len(rest), words)


def _object(text: str, form: ReplyFormat, own: Callable[[str], str], topic: frozenset[str]) -> Verdict | None:
    entries = parse_object(unfenced(text).strip(BLANK))
    *others, key = (key.casefold() for key in form.keys)
    if entries is None or key not in entries:
        return None
    if others and (not entries.keys() <= {*others, key} or next(reversed(entries)) != key):
        return None  # a reason behind its verdict may take it back
    verdict = entries.pop(key)
    if not isinstance(verdict, (str, int)):
        return None
    value = form.values.get(_plain(str(verdict)))  # a truth value is True or False
    if value is None:
        return None
    names, texts = names_and_texts(entries)
    for name in names:
        if key in name and name not in others:
            return None
    for beside in (*names, *texts):
        if contests(own(beside), form.values, value, form.graded, above=bool(others), topic=topic):
            return None
    return Verdict(value)


def _last_line(text: str, form: ReplyFormat, own: Callable[[str], str], topic: frozenset[str]) -> Verdict | None:
    text = unfenced(text).translate(_WIDE)
    if "```" in text:
        return None
    lines = [" ".join(line.split()) for line in text.translate(_SPACES).splitlines() if line.strip()]
    label = _plain(form.label.translate(_SPACES))
    last = lines.pop() if lines else ""
    if not lines:
        last = last.strip(EDGES)
    if not last.casefold().startswith(label):
        return None
    colon, _, verdict = last[len(label) :].partition(":")
    value = form.values.get(_plain(verdict).removesuffix(".").strip())
    if colon.strip() or value is None or sum(line.count('"') for line in lines) % 2:
        return None
    # Replies to a prompt with steps often number them or repeat their names in bold.
    steps = [form.step.match(line.casefold()) for line in lines]
    names = [step and step["name"] for step in steps]
    if form.steps and lines and names != [_plain(step) for step in form.steps]:
        return None  # a line that is not one of the steps may take the last line back: "It should not be"
    for line, step in zip(lines, steps, strict=True):
        beside = line
        if step:
            beside = line[step.start("said") :].strip()
            if beside.casefold().removesuffix(".") in form.values:
                continue
        if label in line.casefold():
            return None
        if contests(own(beside), form.values, value, form.graded, above=line is lines[-1], topic=topic):
            return None
    return Verdict(value)
