r"""Prompt files: every prompt is one TOML file that declares what kind of reply it asks for.

The shipped ones lie in ``prompts/`` of the checkout, which the wheel carries as ``judgekit/prompts``; a user's own
is named by its path. A file says::

    kind = "judge"                    # judge, answer, correctness, grounded, merge or task
    about = "one sentence"
    max_tokens = 256                  # the room for a reply; asked again with more where it was cut off
    closed_book = "closed-book"       # answer prompts: the sibling that is used where there is no document
    merge = "./my-merge.toml"         # answer prompts: the sibling by which answers are merged, in place of ours
    guideline = "…"                   # judges: what people are told who give the same grades (`annotate sample`)
    system = '...'                    # optional
    user = '... {question} ... {passages} ...'

    [output]                          # what the reply is
    type = "yes/no"                   # judges: yes/no, grade or choice; answers: short, long or class
    names = ["off", "near", "full"]   # grades: their names, the lowest first; ``low`` is its number (0)
    choices = { low = 0, high = 1 }   # choices: the words and their grades
    abstain = "unknown"               # answers: the phrase that stands for "I cannot say"

The reply to a judge is one word (or number), and nothing else is read, unless the file declares one of these::

    json = "score"                    # one JSON object with the verdict under this key; or all of its keys, the
                                      # verdict's last: ["reason", "score"], the others holding texts
    line = "Final grade"              # steps, and as the last line "Final grade: 2"
    steps = ["Match", "Trust"]        # with line: what the lines above the last begin with, in their order; such a line
                                      # may be a grade of its own, "Match: 3"

Last, and optional, is a table of further fields of the request body::


    [params]                          # not model, messages, n or stream

The placeholders are ``{question}``, ``{passages}``, ``{references}``, ``{answer}`` and ``{answers}``, and
``{query.NAME}`` for a further column of the queries (``{query.history}`` also is what was said before, where queries
have ``messages``). A further column of the documents stands in what each passage is made of::

    passage = "Published {doc.date}\n{doc}"          # instead of {doc}: title and text, as they are rendered

Other braces are literal, so that a prompt can show JSON. The fixed text comes first, then the question, then the
passages, which lets a server reuse its work on the common beginning. What is filled in is fenced by tags and cannot
close them: see `neutral`.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

from judgekit.data.documents import Doc, Fields, Query, render
from judgekit.data.labelings import Scale
from judgekit.data.streams import read_bytes
from judgekit.errors import ConfigError, DataError, UsageError, nearest, not_among
from judgekit.reading.verdict import Form
from judgekit.wire.jsontext import canonical
from judgekit.wire.reasoning import TOKEN
from judgekit.wire.types import SHOWN

Kind = Literal["judge", "answer", "correctness", "merge", "grounded", "task"]
OutputType = Literal["yes/no", "grade", "choice", "short", "long", "class"]

_VERDICTS: Final = ("yes/no", "grade", "choice")
_ANSWERS: Final = ("short", "long", "class")
_KINDS: Final[Mapping[str, tuple[frozenset[str], tuple[str, ...]]]] = {
    "judge": (frozenset({"question", "passages"}), _VERDICTS),
    "answer": (frozenset({"question"}), _ANSWERS),
    "correctness": (frozenset({"question", "references", "answer"}), _VERDICTS),
    "merge": (frozenset({"question", "answers"}), _ANSWERS),
    "grounded": (frozenset({"question", "passages", "answer"}), _VERDICTS),
    "task": (frozenset({"question"}), ("long",)),
}
"""Per kind the placeholders that must be there (an answer prompt may show passages besides), and the types of reply.
A task is whatever a plug-in asks: it fills in what it likes, and reads the reply itself."""
_SIBLINGS: Final = ("closed_book", "merge")
_KEYS: Final = frozenset(
    ("kind", "about", "max_tokens", "params", "system", "user", "passage", "output", "guideline", *_SIBLINGS)
)
_OURS: Final[Mapping[str, str]] = {
    "model": "the model is the endpoint's",
    **dict.fromkeys(SHOWN.values(), "what is asked is made of system and user"),
    "n": "one reply is read; judges have the option samples",
    "stream": "replies are read whole",
}
"""Fields of the request body that a prompt may not set, and why."""

_FORMS: Final = ("json", "line")
_VERDICT_KEYS: Final = frozenset({"type", "steps", *_FORMS})
_OUTPUT_KEYS: Final[Mapping[str, frozenset[str]]] = {
    "yes/no": _VERDICT_KEYS,
    "grade": _VERDICT_KEYS | {"names", "low", "min_rel"},
    "choice": _VERDICT_KEYS | {"choices", "min_rel"},
    "short": frozenset({"type", "abstain"}),
    "long": frozenset({"type", "abstain"}),
    "class": frozenset({"type", "abstain", "classes"}),
}
_YES_NO: Final = (("Yes", 1), ("No", 0))
_TRUE_FALSE: Final = (("true", 1), ("false", 0))
_PLACEHOLDER: Final = re.compile(r"\{([a-z_]+|query\.[\w-]+)\}", re.ASCII)
_IN_PASSAGE: Final = re.compile(r"\{(doc(?:\.[\w-]+)?)\}", re.ASCII)
_FENCE: Final = re.compile(r"<\s*/?\s*(?:passages?|question|references?|answers?)\b", re.IGNORECASE)
_OPENER: Final = re.compile(r"[<＜﹤\[［\]］◁]")
_UNSEEN: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u0300-\u036f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]+"
)
"""What can be strewn into a word and is not seen."""

_SEEN: Final = 400
"""As far as one looks for the end of a token: none is as long, whatever is strewn into it."""


@dataclass(frozen=True)
class Output:
    """What a prompt declares of its replies.

    Attributes:
        type: yes/no, grade or choice for verdicts; short, long or class for answers.
        form: the verdicts that are possible and how they are written; for a class answer its classes, numbered, and
            the abstention, which is the last; without options for free text.
        scale: the scale of the labels, for verdicts.
        abstain: the phrase that stands for "I cannot say", for answers.
    """

    type: OutputType
    form: Form = field(default_factory=Form)
    scale: Scale | None = None
    abstain: str = ""


@dataclass(frozen=True)
class Prompt:
    """A prompt file, read and checked.

    Attributes:
        name: the file's stem, or the path that the user gave.
        kind: what it is for.
        user, system: the templates of the messages; an empty system message is not sent.
        output: what it declares of the replies.
        about: one sentence for lists of prompts.
        params: further fields of the request body, ``max_tokens`` among them; an endpoint's own go before them.
        closed_book: the prompt for the same kind of answer without documents, for answer prompts with passages.
        passage: the template of each passage, "" for the rendered document alone.
        guideline: what people are told who give the same grades, or "".
        merge: the prompt by which answers to this one are merged, for answer prompts with passages; "" for ours.
    """

    name: str
    kind: Kind
    user: str
    output: Output
    system: str = ""
    about: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    closed_book: str = ""
    passage: str = ""
    guideline: str = ""
    merge: str = ""

    def values(self, query: Query, docs: Sequence[Doc] = (), fields: Fields = "title+text") -> dict[str, str]:
        """Return what of a query and of documents the prompt shows, `neutral`."""
        values = {name: neutral(query.column(column)) for name, column in self._columns}
        values["question"] = neutral(query.text)
        if docs:
            values["passages"] = passages(docs, fields, self.passage)
        return values

    @cached_property
    def placeholders(self) -> frozenset[str]:
        """The names of the placeholders in both templates."""
        return frozenset(_PLACEHOLDER.findall(self.system + self.user))

    @cached_property
    def _columns(self) -> list[tuple[str, str]]:
        """The placeholders that show a column of the queries, and the names of these columns."""
        return [(name, name.removeprefix("query.")) for name in self.placeholders if name.startswith("query.")]

    def messages(self, values: Mapping[str, str]) -> list[dict[str, str]]:
        """Return the chat messages with the placeholders filled in; values must be `neutral` already."""
        templates = (("system", self.system), ("user", self.user))
        filled = ((role, _PLACEHOLDER.sub(lambda name: values[name[1]], text)) for role, text in templates if text)
        return [{"role": role, "content": text} for role, text in filled]


def neutral(text: str) -> str:
    """Return ``text`` in which nothing looks like one of the prompts' own delimiters or like a chat-control token."""
    plain = text.isascii() and not ("<" in text or "[" in text or "]~" in text)  # most are, and this is faster
    return text if plain else _OPENER.sub(_entity, text)


def _entity(opener: re.Match[str]) -> str:
    text, start = opener.string, opener.start()
    if not (_FENCE.match(text, start) or TOKEN.match(text, start)):
        seen = text[start : start + _SEEN]
        seen = "" if seen.isascii() and seen.isprintable() else unicodedata.normalize("NFKC", _UNSEEN.sub("", seen))
        if not (_FENCE.match(seen) or TOKEN.match(seen)):
            return opener[0]
    return "&lt;" if opener[0] in "<＜﹤" else f"&#{ord(opener[0])};"


def passages(docs: Iterable[Doc], fields: Fields = "title+text", template: str = "") -> str:
    """Return documents as fenced passages, in the order given; what would close a fence is made `neutral`."""
    if not template:
        return "\n\n".join([f"<passage>\n{neutral(render(doc, fields))}\n</passage>" for doc in docs])

    def shown(doc: Doc, name: str) -> str:
        return neutral(render(doc, fields) if name == "doc" else doc.column(name.removeprefix("doc.")))

    def filled(doc: Doc) -> str:
        return _IN_PASSAGE.sub(lambda name: shown(doc, name[1]), template)

    return "\n\n".join([f"<passage>\n{filled(doc)}\n</passage>" for doc in docs])


def prompt_folder() -> Path:
    """Return the folder of the shipped prompts: inside the installed package, else the checkout's own."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "prompts"
    return inside if inside.is_dir() else package.parent / "prompts"


def list_prompts() -> list[Prompt]:
    """Return all shipped prompts by name."""
    return [load_prompt(name) for name in sorted(path.stem for path in prompt_folder().glob("*.toml"))]


def load_prompt(name_or_path: str | Path) -> Prompt:
    """Read a shipped prompt by its name, or a user's own by its path (with a ``/`` or the suffix ``.toml``)."""
    name = str(name_or_path)
    if isinstance(name_or_path, Path) or _is_path(name):
        return _read(Path(name_or_path), name)
    path = prompt_folder() / f"{name}.toml"
    if not path.is_file():
        known = [p.stem for p in prompt_folder().glob("*.toml")]
        note = "; name a file of yours by its path, prompts/mine.toml"
        if name.casefold() == "umbrela":
            note = f"{note}. 'graded' has UMBRELA's form (arXiv 2406.06519): intent, match, trust, then a grade"
        raise UsageError(not_among("prompt", name, sorted(known), note=note))
    return _read(path, name)


def find_prompt(name: str, path: Callable[[str], Path]) -> Prompt:
    """Read the prompt that a spelling names: a shipped one, or a file where ``path`` finds it."""
    return replace(load_prompt(path(name)), name=name) if _is_path(name) else load_prompt(name)


def _is_path(name: str) -> bool:
    return "/" in name or "\\" in name or name.endswith(".toml")


def _read(path: Path, name: str) -> Prompt:
    try:
        table = tomllib.loads(read_bytes(path, "a prompt").decode())
    except DataError as error:
        raise ConfigError(error.reason, path) from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"is not TOML in UTF-8: {error}", path) from None
    reader = _Table(table, path)
    kind = reader.choice("kind", [*_KINDS])
    reader.only(_KEYS)
    system, user = reader.text("system", ""), reader.text("user")
    shown = frozenset(_PLACEHOLDER.findall(system + user))
    needed, with_passages = _KINDS[kind][0], "passages" in shown
    known = needed | {"passages"} if kind == "answer" else needed
    for word in sorted(shown - known):
        if kind != "task" and not word.startswith("query."):
            have = ", ".join(f"{{{w}}}" for w in sorted(known))
            raise reader.error(f"{{{word}}} is not a placeholder of a {kind} prompt (there are: {have})", "user")
    for word in sorted(needed - shown):
        raise reader.error(f"lacks the placeholder {{{word}}}, which a {kind} prompt needs", "user")
    passage = reader.text("passage", "")
    if passage and ("{doc}" not in passage or not with_passages):
        raise reader.error("is what each of {passages} is made of, and shows the document as {doc}", "passage")
    if _IN_PASSAGE.search(system + user):
        raise reader.error("shows a document: {doc} and its columns stand in passage", "user")
    params = _params(_Table(reader.table("params", {}), path, "params."))
    if "max_tokens" in table:
        params["max_tokens"] = reader.whole("max_tokens", 1)
    siblings = {key: reader.text(key, "") for key in _SIBLINGS}
    for key, sibling in siblings.items():
        if sibling and (kind != "answer" or not with_passages):
            raise reader.error("makes sense only for an answer prompt with {passages}", key)
        siblings[key] = str(path.parent / sibling) if _is_path(sibling) else sibling
    if kind == "answer" and with_passages and not siblings["closed_book"]:
        raise reader.error("is missing: the prompt to use where there is no document, e.g. closed-book", "closed_book")
    guideline = " ".join(reader.text("guideline", "").split())
    if guideline and kind != "judge":
        raise reader.error("is for people who grade passages, so for a judge prompt", "guideline")
    output = _output(_Table(reader.table("output"), path, "output."), kind)
    return Prompt(
        name,
        kind=kind,  # type: ignore[arg-type]  # kind is one of Kind
        user=user.strip(),
        output=output,
        system=system.strip(),
        about=reader.text("about", ""),
        params=params,
        passage=passage,
        guideline=guideline,
        **siblings,
    )


def _params(reader: _Table) -> dict[str, Any]:
    for key, reason in _OURS.items():
        if key in reader.entries:
            raise reader.error(f"is not a prompt's to set: {reason}", key)
    for key, value in reader.entries.items():
        try:
            canonical(value)
        except (TypeError, ValueError) as problem:
            raise reader.error(f"cannot be sent as JSON: {problem}", key) from None
    return dict(reader.entries)


def _output(reader: _Table, kind: str) -> Output:
    type_ = reader.choice("type", _KINDS[kind][1])
    reader.only(_OUTPUT_KEYS[type_])
    if type_ in ("short", "long"):
        return Output(type_, abstain=reader.text("abstain", "unknown"))  # type: ignore[arg-type]  # checked above
    if type_ == "class":
        classes, abstain = tuple(reader.texts("classes")), reader.text("abstain", "unknown")
        known = {word.casefold() for word in classes} | {""}
        words = classes if abstain.casefold() in known else (*classes, abstain)
        form = Form(tuple((word, i) for i, word in enumerate(words)))
        return Output("class", form, abstain=abstain)
    if type_ == "yes/no":
        return Output("yes/no", _form(reader, _YES_NO, _TRUE_FALSE), Scale("binary"))
    if type_ == "choice":
        choices = reader.wholes("choices")
        high = max(choices.values())
        scale = Scale("grades", high, 0, reader.whole("min_rel", 1, 1)) if high > 1 else Scale("binary")
        return Output("choice", _form(reader, tuple(choices.items())), reader.scaled(scale, choices.values()))
    low, names = reader.whole("low", None, 0), reader.texts("names")
    grades = range(low, low + len(names))
    form = _form(reader, tuple((str(g), g) for g in grades), tuple(zip(names, grades, strict=True)))
    scale = Scale("grades", max(grades), min(0, low), reader.whole("min_rel", 1, 1))
    return Output("grade", form, reader.scaled(scale, grades))


def _form(reader: _Table, options: tuple[tuple[str, int], ...], others: tuple[tuple[str, int], ...] = ()) -> Form:
    """Return the form that an output table declares for these verdicts."""
    declared = [key for key in _FORMS if reader.entries.get(key)]
    if len(declared) > 1:
        raise reader.error(f"cannot be declared together with {declared[0]}: a reply has one form", declared[1])
    form = Form(
        options,
        others,
        reader.keys("json") if "json" in declared else (),
        reader.text("line", ""),
        tuple(reader.texts("steps")) if "steps" in reader.entries else (),
    )
    if form.steps and not form.label:
        raise reader.error("are the lines above the last, so they go with line", "steps")
    return form


@dataclass(frozen=True)
class _Table:
    """A TOML table that is read strictly: a missing or wrong entry is an error that names file and key."""

    entries: Mapping[str, Any]
    path: Path
    prefix: str = ""

    def error(self, reason: str, key: str) -> ConfigError:
        return ConfigError(reason, self.path, self.prefix + key)

    def only(self, known: Iterable[str]) -> None:
        names = sorted(known)
        for key in self.entries:
            if key not in names:
                raise self.error(f"is not a key here (there are: {', '.join(names)}).{nearest(key, names)}", key)

    def get(self, key: str, what: str, good: Callable[[Any], bool], default: Any = None) -> Any:
        value = self.entries.get(key, default)
        if value is None:
            raise self.error(f"is missing: expected {what}", key)
        if not good(value):
            raise self.error(f"must be {what}, not {value!r}", key)
        return value

    def text(self, key: str, default: str | None = None) -> str:
        return str(self.get(key, "a text", lambda value: isinstance(value, str), default))

    def whole(self, key: str, least: int | None, default: int | None = None) -> int:
        what = "a whole number" if least is None else f"a whole number of at least {least}"
        return int(self.get(key, what, lambda value: _is_whole(value, least), default))

    def table(self, key: str, default: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        value: Mapping[str, Any] = self.get(key, "a table", lambda value: isinstance(value, dict), default)
        return value

    def choice(self, key: str, known: Sequence[str]) -> str:
        value = self.text(key)
        if value not in known:
            raise self.error(f"must be one of {', '.join(known)}, not {value!r}.{nearest(value, known)}", key)
        return value

    def texts(self, key: str, least: int = 2) -> list[str]:
        what = (
            "a list of at least two distinct texts"
            if least > 1
            else "a key or a list of distinct keys, the verdict's last"
        )
        return list(self.get(key, what, lambda value: _are_distinct(value, least)))

    def keys(self, key: str) -> tuple[str, ...]:
        value = self.entries[key]
        return (value,) if isinstance(value, str) and value.strip() else tuple(self.texts(key, 1))

    def wholes(self, key: str) -> dict[str, int]:
        def good(values: Any) -> bool:
            return all(_is_whole(value, 0) for value in values.values()) and len(set(values.values())) > 1

        self.table(key)
        return dict(self.get(key, "words with at least two different grades from 0 up", good))

    def scaled(self, scale: Scale, values: Iterable[int]) -> Scale:
        """Return ``scale`` if its threshold parts the values into two."""
        threshold = scale.min_rel or 1
        if not min(values) < threshold <= max(values):
            raise self.error(f"{threshold} must lie above the smallest and not above the largest grade", "min_rel")
        return scale


def _is_whole(value: Any, least: int | None = None) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and (least is None or value >= least)


def _are_distinct(values: Any, least: int) -> bool:
    texts = isinstance(values, list) and all(isinstance(value, str) and value.strip() for value in values)
    return texts and len({value.casefold().strip() for value in values}) == len(values) >= least
