"""What a command may write: never a file that it reads, and nothing of the user's in silence.

Every file that is opened for reading inside of `noting_reads` is noted, whoever opens it: queries, a labeler's qrels,
the labels that are missing beside them, a prompt. So no command has to list its inputs for them to be safe. Commands
call `check_outputs` before they ask for anything; whatever is written later is held to the same rule.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from os.path import exists, samefile  # False, not an error, for a name that is too long
from pathlib import Path
from typing import Final

from judgekit.errors import UsageError

__all__ = ["cache_folder", "check_folder", "check_outputs", "is_results_folder", "note_read", "noting_reads"]

_READ: Final[ContextVar[dict[Path, None] | None]] = ContextVar("_READ", default=None)

_MARKS: Final = {
    "manifest.json": b'{\n "judgekit": ',
    "resolved.toml": b"# Paths are relative to ",
    "report.json": b'{\n "schema": ',
}
"""How the files begin that make a folder one of ours; ``report.json`` alone for those of 0.1.0."""


@contextmanager
def noting_reads() -> Iterator[Collection[Path]]:
    """Note the files that are opened for reading inside of the ``with`` block; an inner block adds to the outer one."""
    outer = _READ.get()
    noted: dict[Path, None] = {} if outer is None else outer
    token = _READ.set(noted)
    try:
        yield noted.keys()
    finally:
        _READ.reset(token)


def note_read(path: Path) -> None:
    """Note that a file is read."""
    noted = _READ.get()
    if noted is not None:
        noted[path] = None


def check_outputs(*paths: Path) -> None:
    """Refuse to write where something was read, also through a link, or into a folder that was read as one table.

    Raises:
        UsageError: one of the paths is a file noted by `noting_reads`.
    """
    noted = [read for read in _READ.get() or () if exists(read)]
    for path in paths:
        for place in filter(exists, (path, path.parent)):
            read = next((read for read in noted if samefile(place, read)), None)
            if read is not None:
                name = "" if path == read else f" ({read})"
                raise UsageError(
                    f"{path}: is an input of this command{name} and is never replaced: choose another name"
                )


def check_folder(folder: Path, names: Iterable[str], *, overwrite: bool = False) -> None:
    """Refuse a folder for results that is a file, or that would lose files which are not results of judgekit.

    Args:
        folder: where the results are to go; it need not exist.
        names: the results, relative to it.
        overwrite: replace files of those names, whoever made them; never an input.

    Raises:
        UsageError: with the path that is in the way.
    """
    if any(exists(part) and not part.is_dir() for part in (folder, *folder.parents)):
        raise UsageError(f"--out {folder} is a file; the results need a folder")
    there = [path for path in (folder / name for name in names) if exists(path)]
    check_outputs(*there)
    if there and not overwrite and not is_results_folder(folder):
        more = f" and {len(there) - 1:,} more" if len(there) > 1 else ""
        raise UsageError(
            f"{there[0]}{more} would be replaced, and {folder} does not hold results of judgekit: choose another --out,"
            " or add --overwrite"
        )


def cache_folder() -> Path:
    """Return where replies and indexes lie unless the user says: ``$JUDGEKIT_CACHE``, else the platform's cache."""
    if named := os.environ.get("JUDGEKIT_CACHE"):
        return Path(named).expanduser()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "judgekit"


def is_results_folder(folder: Path) -> bool:
    """Return whether a folder holds results of judgekit, those of a run that was killed included."""
    for name, mark in _MARKS.items():
        path = folder / name
        if path.is_file():
            with path.open("rb") as stream:
                if stream.read(len(mark)) == mark:
                    return True
    return False
