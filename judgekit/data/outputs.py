"""Output rules: never a user's file without `--overwrite`, never text that a program would execute."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable
from os.path import exists  # False, not an error, for a name that is too long
from pathlib import Path
from typing import Any, Final

from judgekit.data.streams import check_outputs
from judgekit.errors import UsageError

_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "'")
"""How the cells begin that a spreadsheet takes for a formula, or for a text that was guarded."""

_MARKS: Final = {
    "manifest.json": b'{\n "judgekit": ',
    "resolved.toml": b"# Paths are relative to ",
}
"""How the files begin that make a folder one of ours."""


def check_folder(folder: Path, names: Iterable[str], overwrite: bool | None = None) -> None:
    """Refuse a folder for results that is a file, or that would lose files which are not results of judgekit.

    ``overwrite`` is what the user says of that; None where the command does not ask.
    """
    if any(exists(part) and not part.is_dir() for part in (folder, *folder.parents)):
        raise UsageError(f"--out {folder} is a file; the results need a folder")
    there = [path for path in (folder / name for name in names) if exists(path)]
    check_outputs(*there)
    # A folder of the user's that holds a scores.csv of their own is not ours to write over.
    if there and not overwrite and not is_results_folder(folder):
        more = advice = ""
        if len(there) > 1:
            more = f" and {len(there) - 1:,} more"
        if overwrite is not None:
            advice = ", or add --overwrite"
        raise UsageError(
            f"{there[0]}{more} would be replaced, and {folder} does not hold results of judgekit: choose another"
            f" --out{advice}"
        )


def clean(text: str) -> str:
    r"""Return a text with control characters and direction overrides made visible."""

    def visible(match: re.Match[str]) -> str:
        code = ord(match[0])
        if code < 0x20:
            return chr(0x2400 + code)
        return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"

    return _CONTROL.sub(visible, text.replace("\r\n", "\n"))


def as_json(text: str) -> str:
    """Return a JSON text with such characters escaped, so that it means the same."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def as_cell(value: Any) -> Any:
    """Return a cell of a file for spreadsheets: an apostrophe stands before a text that would be a formula."""
    # A reply that begins with =HYPERLINK would be run by the spreadsheet of whoever opens the table.
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value


def of_cell(value: Any) -> Any:
    """Return what `as_cell` made a cell of."""
    if isinstance(value, str) and value.startswith("'") and value[1:].startswith(_FORMULA):
        return value[1:]
    return value


def cache_folder() -> Path:
    """Return where replies and indexes lie unless the user says: ``$JUDGEKIT_CACHE``, else the platform's cache."""
    if named := os.environ.get("JUDGEKIT_CACHE"):
        return Path(named).expanduser()
    variable, place = _CACHES.get(sys.platform, ("XDG_CACHE_HOME", ".cache"))
    return Path(os.environ.get(variable) or Path.home() / place) / "judgekit"


_CACHES: Final = {"win32": ("LOCALAPPDATA", "AppData/Local"), "darwin": ("", "Library/Caches")}
"""By platform: the variable that names the folder of caches, and where it is in the home unless that is set."""


def is_results_folder(folder: Path) -> bool:
    """Return whether a folder holds results of judgekit, those of a run that was killed included."""
    for name, mark in _MARKS.items():
        file = folder / name
        if file.is_file() and file.read_bytes().startswith(mark):
            return True
    return False


def command_of(folder: Path) -> str:
    """Return which command filled a folder of results; "" where nothing says so."""
    try:
        content = json.loads((folder / "manifest.json").read_bytes())
        if "command" in content:
            return str(content["command"])
    except (OSError, ValueError, TypeError):
        content = {}
    # 0.3.0 did not say it. `build` may have replaced a run's manifest there, whose other files are those of the run.
    if (folder / "resolved.toml").is_file():
        return "choose" if (folder / "choice.json").is_file() else "run"
    return "build" if "experiment" in content else ""


def inline(text: str) -> str:
    """Return a text of somebody else for one line of Markdown: it ends no cell and no line, and opens no tag."""
    return clean(text).replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
