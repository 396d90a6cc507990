"""Everything judgekit raises on purpose.

The tree, with the exit code of the command line beside it::

    JudgekitError            2
    ├── UsageError           2   an option, a spelling, a combination that makes no sense
    ├── DataError            2   a file: carries path and line
    ├── ConfigError          2   the experiment file: carries the path of the key
    └── StoppedError         3   a run had to stop; what was paid for is kept
        ├── EndpointError    3   the endpoint cannot serve this run (key, model, address)
        ├── BudgetError      3   the next request would exceed the user's budget
        └── StoreError       3   the store cannot be read or written (damaged, read-only, disk full)

A message says what was wrong, where, and what to do. These are the only exceptions that the command line
turns into a sentence; any other is a bug and keeps its traceback.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

DISTRIBUTION: Final = "judgekit-qrels"
"""The name for package installers; `judgekit` alone is another project."""


class JudgekitError(Exception):
    """Base of all errors that judgekit raises on purpose."""

    exit_code = 2


class UsageError(JudgekitError):
    """An invalid option, spelling or combination."""


class DataError(JudgekitError):
    """An invalid file or table.

    Args:
        reason: what is wrong and, where it helps, what was expected.
        path: the file, if the data came from one.
        line: 1-based line in that file.
    """

    def __init__(self, reason: str, path: str | Path | None = None, line: int | None = None) -> None:
        self.reason = reason
        self.path = None if path is None else Path(path)
        self.line = line
        if path is None:
            where = ""
        elif line is None:
            where = f"{path}: "
        else:
            where = f"{path}, line {line}: "
        super().__init__(where + reason)


class ConfigError(JudgekitError):
    """An invalid experiment file; ``key`` is the dotted path of the entry."""

    def __init__(self, reason: str, path: str | Path | None = None, key: str | None = None) -> None:
        self.reason = reason
        self.path = None if path is None else Path(path)
        self.key = key
        if key:
            reason = f"[{key}] {reason}"
        super().__init__(reason if path is None else f"{path}: {reason}")


class StoppedError(JudgekitError):
    """A run that stopped early; everything paid for is kept."""

    exit_code = 3


class EndpointError(StoppedError):
    """An endpoint that cannot serve this run: wrong key, unknown model, no server at the address."""


class BudgetError(StoppedError):
    """The next request would exceed the budget that the user set."""


class StoreError(StoppedError):
    """The store of replies cannot be read or written: damaged, read-only, disk full."""


def nearest(word: str, candidates: Iterable[str]) -> str:
    """Return ``" Did you mean 'x'?"`` for the candidate nearest to ``word``, else ``""``."""
    names = sorted(candidates)
    # A column named "text " looks right in every editor, so the blank must be pointed out.
    if blank := next((name for name in names if name != word == name.strip()), None):
        return f" {blank!r} has blanks around it: write {word!r}."
    folded = {name.casefold(): name for name in names}
    # Ignoring case: `ndcg` or `Judge` mean the existing names.
    for close in difflib.get_close_matches(word.casefold(), list(folded), n=1, cutoff=0.6):
        return f" Did you mean {folded[close]!r}?"
    return ""


def not_among(what: str, name: str, known: Iterable[str], *, also: Iterable[str] = (), note: str = "") -> str:
    """Return the message for an unknown name, with the known ones."""
    known = list(known)
    # The whole list, however long, since the intended word is in it.
    choice = f"choose from {', '.join(known)}" if known else "none are defined"
    return f"unknown {what} {name!r}: {choice}{note}.{nearest(name, [*known, *also])}"


def install(extra: str) -> str:
    """Return the command that installs an extra of judgekit."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


_MUST: Final = re.compile(r"^(?:Input|String|List|Tuple|Dictionary|Set|Value) should ")


def in_our_words(message: str) -> str:
    """Return pydantic's message about a value in plain terms: "must be …" for "Input should be …"."""
    said = message.removeprefix("Value error, ").replace(" after validation", "")
    must = _MUST.sub("must ", said, count=1)
    # Names in capitals stay: "URL scheme".
    return must if must[1:2].isupper() else must[:1].lower() + must[1:]
