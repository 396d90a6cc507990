"""The one spelling of measures and labelers: ``name(key=value, ...)@cutoff``.

``nDCG@10``, ``P(rel=2)@5`` and ``judge(prompt=graded)`` are at once command-line
arguments, column values, dictionary keys and (as slugs) file names. The law ``parse(str(x)) == x`` holds for every
`Spec`. The measure names and keys are those of ir_measures, of whose grammar this one is a superset.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Final

from judgekit.errors import JudgekitError, UsageError

Value = bool | int | float | str

MAX_CUTOFF = 1_000_000_000
"""Deeper than any list, and within what arrays can count."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_+-]*")
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_VALUE = re.compile(
    r"(?P<quoted>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"|\{[^{}]*\}"  # a mapping, {0:0,1:1}, as ir_measures writes gains: it is kept as text
    r"|[^,()'\"\s=](?:[^,()'\"=]*[^,()'\"=\s])?",
    re.S,
)
_OPEN, _CLOSE = re.compile(r"\(\s*"), re.compile(r"\)")
_KEY = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*=\s*")
_NEXT = re.compile(r"\s*(?:,\s*|(?=\)))")
_CUTOFF = re.compile(r"\d{1,12}(?!\d)")
_GAP = re.compile(r"[\s,]+")
_WORDS: dict[str, bool] = {"True": True, "true": True, "False": False, "false": False}
_PREFIX = re.compile(
    r"((?:[^()'\":]+\.py:[A-Za-z_]\w*|[a-z_][a-z0-9_]*)(?:\((?:[^()'\"]|'[^']*'|\"[^\"]*\")*\))?):(?=.)"
)
_REMOTE = re.compile(r"(https?|hf|s3|gs|ftp):/+")
_NAMED = re.compile(r"((?:[^=/()]|\((?:[^()]|\([^()]*\))*\))+)=")
_ESCAPES = {"n": "\n", "t": "\t"}


@dataclass(frozen=True, slots=True)
class Spec:
    """A parsed spelling: a name, parameters sorted by key, and a cutoff.

    Attributes:
        name: ``nDCG``, ``judge``, …
        params: (key, value) pairs, sorted by key; values are bool, int, float or str.
        cutoff: the number behind ``@``, at least 1, or None.
    """

    name: str
    params: tuple[tuple[str, Value], ...] = ()
    cutoff: int | None = None

    def __post_init__(self) -> None:
        keys = [key for key, _ in self.params]
        for key in keys:
            if keys.count(key) > 1:
                raise UsageError(f"{self.name}: {key!r} is given twice")
        # Sorted, so that one labeler has one name whatever order somebody wrote its options in.
        object.__setattr__(self, "params", tuple(sorted(self.params)))

    @property
    def options(self) -> Mapping[str, Value]:
        """The parameters as a dictionary."""
        return dict(self.params)

    def at(self, cutoff: int | None) -> Spec:
        """Return the same spelling with another cutoff."""
        return Spec(self.name, self.params, cutoff)

    def __str__(self) -> str:
        text = self.name
        if self.params:
            text += f"({', '.join(f'{key}={_write(value)}' for key, value in self.params)})"
        if self.cutoff is not None:
            text += f"@{self.cutoff}"
        return text


def _write(value: Value) -> str:
    if not isinstance(value, str):
        return repr(value)
    if _BARE.fullmatch(value) and value not in _WORDS and value not in ("inf", "nan"):
        return value
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t")
    return f"'{escaped}'"


FORM: Final = "The form is name(key=value, ...)@cutoff, e.g. nDCG@10 or P(rel=2)@5."


class _Reader:
    """Reads spellings off a text, from left to right."""

    def __init__(self, text: str, form: str = FORM) -> None:
        self.text = text
        self.pos = 0
        self._form = form

    def fail(self, expected: str) -> UsageError:
        character = self.text[self.pos : self.pos + 1]
        quoting = ""
        # A value such as an address with "?" has to be quoted; a name cannot be.
        if character and "(" in self.text[: self.pos]:
            quoting = f" Put a value that holds {character!r} into quotes: key='...'."
        return UsageError(
            f"cannot read {self.text!r}: expected {expected} at character {self.pos + 1}.{quoting} {self._form}"
        )

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.text, self.pos)
        if match is not None:
            self.pos = match.end()
        return match

    def need(self, pattern: re.Pattern[str], expected: str) -> re.Match[str]:
        match = self.take(pattern)
        if match is None:
            raise self.fail(expected)
        return match

    def spec(self) -> Spec:
        name = self.need(_NAME, "a name")[0]
        params: list[tuple[str, Value]] = []
        if self.take(_OPEN):
            while not self.take(_CLOSE):
                key = self.need(_KEY, "key=value or ')'")[1]
                params.append((key, self.value()))
                self.need(_NEXT, "',' or ')'")
        if not self.text.startswith("@", self.pos):
            return Spec(name, tuple(params))
        self.pos += 1
        cutoff = self.take(_CUTOFF)
        if cutoff is None or not 1 <= int(cutoff[0]) <= MAX_CUTOFF:
            raise self.fail(f"a cutoff from 1 to {MAX_CUTOFF:,}")
        return Spec(name, tuple(params), int(cutoff[0]))

    def value(self) -> Value:
        start = self.text[self.pos : self.pos + 1]
        match = self.need(_VALUE, f"the closing {start}" if start in ("'", '"') else "a value")
        text = match[0]
        if match["quoted"]:
            return re.sub(r"\\(.)", lambda escaped: _ESCAPES.get(escaped[1], escaped[1]), text[1:-1], flags=re.S)
        if text in _WORDS:
            return _WORDS[text]
        if re.fullmatch(r"[+-]?\d+", text):
            return int(text)
        if _NUMBER.fullmatch(text):
            return float(text)
        return text


def parse(text: str, form: str = FORM) -> Spec:
    """Parse one spelling; ``form`` is the sentence that an error ends with."""
    reader = _Reader(text.strip(), form)
    spec = reader.spec()
    if reader.pos != len(reader.text):
        raise reader.fail("the end")
    return spec


def parse_many(text: str) -> list[Spec]:
    """Parse several spellings separated by white space or commas: ``"nDCG@10 P(rel=2)@5, AP"``."""
    reader = _Reader(text)
    specs: list[Spec] = []
    while True:
        gap = reader.take(_GAP)
        if reader.pos == len(text):
            return specs
        if specs and not gap:
            raise reader.fail("a space or ','")
        specs.append(reader.spec())


def slug(text: str) -> str:
    """Return a file name for a spelling: readable, without ``/`` or ``=``, distinct for distinct texts."""
    # Plain names (letters, digits, ``.``, ``_``, ``-``, ``@``) are kept; anything else is reduced to those and gets
    # eight hexadecimal digits of its SHA-256, so that two spellings never share a file.
    if re.fullmatch(r"[A-Za-z0-9_@-][A-Za-z0-9._@-]{0,99}", text):
        return text
    short = re.sub(r"[^A-Za-z0-9._@-]+", "-", text).strip("-.")[:80]
    return f"{short or 'x'}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def split_named(text: str) -> tuple[str | None, str]:
    """Split ``NAME=FILE``; an ``=`` inside parentheses or after a ``/`` does not split."""
    match = _NAMED.match(text)
    if match is None:
        return None, text
    return match[1], text[match.end() :]


def split_file(text: str) -> tuple[str | None, str]:
    """Split a spelling that begins with a user's Python file."""
    match = re.match(r"([^()'\"]+\.py):(?=[A-Za-z_])", text)
    if match is None:
        return None, text
    return match[1], text[match.end() :]


def split_form(text: str | Path) -> tuple[str, str]:
    """Split ``FORM:PATH``; the form is "" where there is none. A file of just that name is a file."""
    source = str(text)
    if os.path.exists(source):  # False, not an error, for a name that is too long
        return "", source
    # "https" looks like a form in front of a path, and would be refused as an unknown one.
    if _REMOTE.match(source):
        raise UsageError(f"{source}: judgekit reads files on this machine. Download it first")
    match = _PREFIX.match(source)
    if match is None:
        # Taken for a path, it would only be missing.
        if re.match(r"[a-z]\w*\(.*\):.", source, re.IGNORECASE):
            raise UsageError(
                f"cannot read the form in front of the file in {source!r}: put a name that holds spaces, brackets or"
                " commas into quotes, e.g. csv(value='rating (1-5)'):FILE"
            )
        return "", source
    return match[1], source[match.end() :]


def form_of(source: str | Path) -> tuple[Spec, str]:
    """Return the form in which a source is read, ``auto`` if none stands in front of its path, and the path."""
    form, path = split_form(source)
    file, text = split_file(form or "auto")
    spec = parse(text)
    if file is not None:
        spec = replace(spec, name=f"{file}:{spec.name}")
    return spec, path


def with_options(text: str, options: Iterable[tuple[str, Value]]) -> str:
    """Return a spelling, which may begin with a user's file, with further options."""
    file, rest = split_file(text)
    given = parse(rest)
    spelled = Spec(given.name, (*given.params, *options), given.cutoff)
    return str(spelled) if file is None else f"{file}:{spelled}"


def run_file(path: Path) -> ModuleType:
    """Run a user's Python file and return it as a module; one that has not changed since is not run again."""
    # The module's name is the file's absolute path, so that files of one name in two folders stay apart.
    name = str(path.resolve())
    try:
        source = Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from None
    known = sys.modules.get(name)
    if known is not None and known.__dict__["__source__"] == source:
        return known
    module = ModuleType(name)
    module.__dict__.update(__file__=name, __source__=source)
    # Where it belongs before it runs: dataclasses look their module up.
    sys.modules[name] = module
    try:
        with user_code(lambda: name, name):
            exec(compile(source, name, "exec"), module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module


@contextmanager
def user_code(what: Callable[[], str], file: str) -> Iterator[None]:
    """Say what a user's own code could not do, and on which line of its file."""
    try:
        yield
    except JudgekitError:
        raise
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
        where = f" ({Path(file).name}, line {lines[-1]})" if lines else ""
        raise UsageError(f"{what()}: {type(error).__name__}: {error}{where}") from error
