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
"""Beginnings of cells that a spreadsheet reads as a formula or as a guarded text."""

_MARKS: Final = {
    "manifest.json": b'{\n "judgekit": ',
    "resolved.toml": b"# Paths are relative to ",
}
"""Beginnings of the files that mark a folder as ours."""


def check_folder(folder: Path, names: Iterable[str], overwrite: bool | None = None) -> None:
    """Refuse a results folder that is a file, or in which other files than judgekit's would be lost.

    ``overwrite`` is the user's permission; None if the command does not ask.
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
    """Return a cell that is safe for spreadsheets: texts that would be formulas get an apostrophe in front."""
    # A spreadsheet would run a reply that begins with =HYPERLINK.
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value


def of_cell(value: Any) -> Any:
    """Return the value from which `as_cell` made a cell."""
    if isinstance(value, str) and value.startswith("'") and value[1:].startswith(_FORMULA):
        return value[1:]
    return value


def cache_folder() -> Path:
    """Return the default folder of replies and indexes: ``$JUDGEKIT_CACHE``, else the platform's cache."""
    if named := os.environ.get("JUDGEKIT_CACHE"):
        return Path(named).expanduser()
    variable, place = _CACHES.get(sys.platform, ("XDG_CACHE_HOME", ".cache"))
    return Path(os.environ.get(variable) or Path.home() / place) / "judgekit"


_CACHES: Final = {"win32": ("LOCALAPPDATA", "AppData/Local"), "darwin": ("", "Library/Caches")}
"""By platform: the variable for the cache folder, and its default below the home folder."""


def is_results_folder(folder: Path) -> bool:
    """Return whether a folder holds results of judgekit, even of a killed run."""
    for name, mark in _MARKS.items():
        file = folder / name
        if file.is_file() and file.read_bytes().startswith(mark):
            return True
    return False


def command_of(folder: Path) -> str:
    """Return the command that filled a folder of results; "" if unknown."""
    try:
        content = json.loads((folder / "manifest.json").read_bytes())
        if "command" in content:
            return str(content["command"])
    except (OSError, ValueError, TypeError):
        content = {}
    # 0.3.0 did not record it. There `build` may have replaced a run's manifest, while the other files belong to the
    # run.
    if (folder / "resolved.toml").is_file():
        return "choose" if (folder / "choice.json").is_file() else "run"
    return "build" if "experiment" in content else ""


def inline(text: str) -> str:
    """Return foreign text as part of a Markdown line: it cannot end a cell or line, or open a tag."""
    return clean(text).replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
