"""The number of rows ever stored, noted outside of SQLite, so that vanished rows are noticed.

A missing, truncated or exchanged log leaves an intact database with fewer rows. A file beside the database holds the
number of rows ever stored: the present ones, and the deleted ones, which a trigger counts. That number never falls,
even if a judgekit that does not know the file adds or deletes rows. It is written after a commit, while nobody else can
write: a process killed in between leaves a number that is too low, never too high.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

END: Final = "-count"
"""The suffix of the database's name."""


class Tally(NamedTuple):
    """The noted numbers of a database."""

    store: int
    """The number that the database was given when it was made."""
    rows: int
    """Present rows."""
    ever: int
    """Present and deleted rows."""


def noted(database: Path) -> Tally | None:
    """Return the last note; None if there is none, or if it cannot be read."""
    with suppress(OSError, TypeError, ValueError):
        return Tally(*map(int, Path(f"{database}{END}").read_bytes().split()))
    return None


def write(database: Path, tally: Tally) -> None:
    """Write a tally. Failure is no error: a number that is too low raises no alarm."""
    # One write in place, so that no reader and no killed process sees half of it.
    line = f"{tally.store:>12} {tally.rows:>16} {tally.ever:>16}\n".encode()
    with suppress(OSError):
        file = open_beside(database, END)
        try:
            os.write(file, line)
        finally:
            os.close(file)


def open_beside(database: Path, end: str) -> int:
    """Open a file beside a database for writing; a new one gets the database's permissions, like SQLite's log."""
    path = f"{database}{end}"
    try:
        return os.open(path, os.O_WRONLY)
    except FileNotFoundError:
        file = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
        with suppress(FileNotFoundError):
            os.chmod(path, stat.S_IMODE(database.stat().st_mode))
        return file
