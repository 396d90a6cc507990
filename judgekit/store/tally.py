"""How many rows were ever stored, noted outside of SQLite, so that rows that vanish without a trace are missed.

A log that a copy left out, that was cut off or exchanged leaves a whole database with fewer rows. The file beside the
database says how many rows were ever stored: those that are there, and those that were deleted, which a trigger counts.
That number never falls, whoever adds or deletes, also a judgekit that does not know the file. It is written after a
commit, while nobody else can write: a process that is killed in between leaves a number that is too low, never one
that is too high.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

END: Final = "-count"
"""What is added to the name of the database."""


class Tally(NamedTuple):
    """What is noted of a database."""

    store: int
    """The number that the database was given when it was made."""
    rows: int
    """Rows that are there."""
    ever: int
    """Rows that are there or were deleted."""


def noted(database: Path) -> Tally | None:
    """Return what was noted last; None if nothing was, or if it cannot be read."""
    with suppress(OSError, TypeError, ValueError):
        return Tally(*map(int, Path(f"{database}{END}").read_bytes().split()))
    return None


def write(database: Path, tally: Tally) -> None:
    """Note a tally. Failing is no error: a number that is too low raises no alarm."""
    # One write in place, so that no reader and no killed process sees half of it.
    line = f"{tally.store:>12} {tally.rows:>16} {tally.ever:>16}\n".encode()
    with suppress(OSError):
        file = open_beside(database, END)
        try:
            os.write(file, line)
        finally:
            os.close(file)


def open_beside(database: Path, end: str) -> int:
    """Open a file beside a database for writing; a new one has the rights of the database, as SQLite's log has."""
    path = f"{database}{end}"
    try:
        return os.open(path, os.O_WRONLY)
    except FileNotFoundError:
        file = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
        with suppress(FileNotFoundError):
            os.chmod(path, stat.S_IMODE(database.stat().st_mode))
        return file
