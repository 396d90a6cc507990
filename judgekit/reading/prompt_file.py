"""Reads and checks a prompt file; `judgekit.reading.prompts` describes its format."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from judgekit.data.labelings import Scale
from judgekit.data.streams import read_bytes
from judgekit.errors import ConfigError, DataError, in_our_words, nearest
from judgekit.reading.prompts import IN_PASSAGE, PLACEHOLDER, Kind, Output, Prompt, is_path
from judgekit.reading.verdict import ReplyFormat
from judgekit.wire.jsontext import canonical
from judgekit.wire.types import SHOWN

# Answer prompts may show passages, too. A task is a plug-in's own: it fills in its values and reads the reply itself.
_NEEDED: Final[Mapping[Kind, frozenset[str]]] = {
    "judge": frozenset({"question", "passages"}),
    "answer": frozenset({"question"}),
    "correctness": frozenset({"question", "references", "answer"}),
    "merge": frozenset({"question", "answers"}),
    "grounded": frozenset({"question", "passages", "answer"}),
    "task": frozenset({"question"}),
}

_VERDICTS: Final = ("yes/no", "grade", "choice")
_ANSWERS: Final = ("short", "long", "class")

_OURS: Final[Mapping[str, str]] = {
    "model": "the endpoint names the model",
    **dict.fromkeys(SHOWN.values(), "system and user are the prompt"),
    "n": "judgekit reads one reply; judges have the option samples",
    "stream": "judgekit reads whole replies",
}
"""Fields of the request body that a prompt may not set, and why."""


def _distinct(texts: tuple[str, ...]) -> tuple[str, ...]:
    folded = {text.casefold().strip() for text in texts}
    if "" in folded or len(folded) < len(texts):
        raise ValueError("must be distinct texts")
    return texts


def _several(texts: tuple[str, ...]) -> tuple[str, ...]:
    if len(_distinct(texts)) < 2:
        raise ValueError("must be a list of at least two distinct texts")
    return texts


def _graded(choices: dict[str, int]) -> dict[str, int]:
    grades = set(choices.values())
    if len(grades) < 2 or min(grades) < 0:
        raise ValueError("must be words with at least two different grades from 0 up")
    return choices


_Texts = Annotated[tuple[str, ...], Field(strict=False)]
_Several = Annotated[_Texts, AfterValidator(_several)]
_Keys = Annotated[
    _Texts, AfterValidator(_distinct), BeforeValidator(lambda keys: [keys] if isinstance(keys, str) else keys)
]
_FromOne = Annotated[int, Field(ge=1)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Verdict(_Table):
    """The declared form of verdicts of all types."""

    keys: Annotated[_Keys, Field(alias="json")] = ()
    line: str = ""
    steps: _Several = ()

    def form(self, options: tuple[tuple[str, int], ...], others: tuple[tuple[str, int], ...] = ()) -> ReplyFormat:
        return ReplyFormat(options, others, self.keys, self.line, self.steps)


class _YesNo(_Verdict):
    type: Literal["yes/no"]

    def output(self) -> Output:
        form = self.form((("Yes", 1), ("No", 0)), (("true", 1), ("false", 0)))
        return Output("yes/no", form, Scale("binary"))


class _Grade(_Verdict):
    type: Literal["grade"]
    names: _Several
    low: int = 0
    min_rel: _FromOne = 1

    def output(self) -> Output:
        grades = range(self.low, self.low + len(self.names))
        form = self.form(tuple((str(grade), grade) for grade in grades), tuple(zip(self.names, grades, strict=True)))
        return Output("grade", form, Scale("grades", max(grades), min(0, self.low), self.min_rel))


class _ChoiceVerdict(_Verdict):
    type: Literal["choice"]
    choices: Annotated[dict[str, int], AfterValidator(_graded)]
    min_rel: _FromOne = 1

    def output(self) -> Output:
        high = max(self.choices.values())
        scale = Scale("grades", high, 0, self.min_rel) if high > 1 else Scale("binary")
        return Output("choice", self.form(tuple(self.choices.items())), scale)


class _Answer(_Table):
    type: Literal["short", "long"]
    abstain: str = "unknown"

    def output(self) -> Output:
        return Output(self.type, abstain=self.abstain)


class _Class(_Table):
    type: Literal["class"]
    classes: _Several
    abstain: str = "unknown"

    def output(self) -> Output:
        words = self.classes
        if self.abstain and self.abstain.casefold() not in {word.casefold() for word in words}:
            words = (*words, self.abstain)
        return Output(
            "class", ReplyFormat(tuple((word, number) for number, word in enumerate(words))), abstain=self.abstain
        )


class _File(_Table):
    kind: Kind
    user: str
    output: Annotated[_YesNo | _Grade | _ChoiceVerdict | _Answer | _Class, Field(discriminator="type")]
    system: str = ""
    about: str = ""
    max_tokens: _FromOne | None = None
    params: dict[str, Any] = {}
    passage: str = ""
    closed_book: str = ""
    merge: str = ""
    guideline: str = ""


def read_prompt(path: Path, name: str) -> Prompt:
    """Read the prompt in a file.

    Raises:
        ConfigError: it cannot be read, or a key is invalid.
    """
    try:
        table = tomllib.loads(read_bytes(path, "a prompt").decode())
        file = _File.model_validate(table)
    except DataError as error:
        raise ConfigError(error.reason, path) from None
    except ValidationError as error:
        raise _spoken(error, path) from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"is not TOML in UTF-8: {error}", path) from None
    output = file.output.output()
    _check_messages(file, path)
    _check_output(file, output, path)
    siblings = {"closed_book": file.closed_book, "merge": file.merge}
    for key, sibling in siblings.items():
        if is_path(sibling):
            siblings[key] = str(path.parent / sibling)
    return Prompt(
        name,
        kind=file.kind,
        user=file.user.strip(),
        output=output,
        system=file.system.strip(),
        about=file.about,
        params=_params(file, path),
        passage=file.passage,
        guideline=" ".join(file.guideline.split()),
        **siblings,
    )


def _check_messages(file: _File, path: Path) -> None:
    """Raise an error for unknown or missing placeholders in the messages."""
    shown = set(PLACEHOLDER.findall(file.system + file.user))
    needed = _NEEDED[file.kind]
    known = needed | {"passages"} if file.kind == "answer" else needed
    for word in sorted(shown - known):
        if file.kind != "task" and not word.startswith("query."):
            there = ", ".join(f"{{{placeholder}}}" for placeholder in sorted(known))
            reason = f"{{{word}}} is not a placeholder of a {file.kind} prompt (there are: {there})"
            raise ConfigError(reason, path, "user")
    for word in sorted(needed - shown):
        raise ConfigError(f"lacks the placeholder {{{word}}}, which a {file.kind} prompt needs", path, "user")
    if file.passage and ("{doc}" not in file.passage or "passages" not in shown):
        raise ConfigError("must show the document as {doc}, and the prompt must hold {passages}", path, "passage")
    if IN_PASSAGE.search(file.system + file.user):
        raise ConfigError("shows a document: move {doc} and its columns into passage", path, "user")
    if file.kind == "answer" and "passages" in shown and not file.closed_book:
        reason = "is missing: the prompt to use where there is no document, e.g. closed-book"
        raise ConfigError(reason, path, "closed_book")


def _check_output(file: _File, output: Output, path: Path) -> None:
    """Raise an error if the declared replies contradict themselves or the kind of prompt."""
    types: tuple[str, ...] = _VERDICTS
    if file.kind in ("answer", "merge"):
        types = _ANSWERS
    elif file.kind == "task":
        types = ("long",)
    if output.type not in types:
        raise ConfigError(f"must be one of {', '.join(types)}, not {output.type!r}", path, "output.type")
    form, scale = output.form, output.scale
    if form.keys and form.label:
        raise ConfigError("cannot be declared together with json: a reply has one form", path, "output.line")
    if form.steps and not form.label:
        raise ConfigError("are the lines above the last one, so declare line too", path, "output.steps")
    if scale is not None and scale.min_rel is not None:
        low, high = form.ends
        if not low < scale.min_rel <= high:
            reason = f"{scale.min_rel} must be above the smallest grade and at most the largest"
            raise ConfigError(reason, path, "output.min_rel")


def _params(file: _File, path: Path) -> dict[str, Any]:
    """Return the further fields of the request body."""
    for key, value in file.params.items():
        if key in _OURS:
            raise ConfigError(f"cannot be set by a prompt: {_OURS[key]}", path, f"params.{key}")
        try:
            canonical(value)
        except (TypeError, ValueError) as problem:
            raise ConfigError(f"cannot be sent as JSON: {problem}", path, f"params.{key}") from None
    if file.max_tokens is None:
        return file.params
    return {**file.params, "max_tokens": file.max_tokens}


def _spoken(error: ValidationError, path: Path) -> ConfigError:
    """Return the first problem that pydantic found as an error that names file and key."""
    problem = error.errors(include_url=False)[0]
    kind, given = problem["type"], problem["input"]
    steps = [str(step) for step in problem["loc"]]
    if steps[0] == "output" and len(steps) > 1:
        del steps[1]  # pydantic names the type there
    reason = f"{in_our_words(problem['msg'])}, not {given!r}"
    if kind in ("missing", "union_tag_not_found"):
        reason = "is missing"
    elif kind == "extra_forbidden":
        reason = "is not a key here"
    elif kind == "literal_error":
        reason += nearest(str(given), list(_NEEDED))
    if kind.startswith("union_tag"):
        steps.append("type")
    return ConfigError(reason, path, ".".join(steps))
