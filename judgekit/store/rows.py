"""The database of a store: diskcache's tables with texts and bytes only, and all SQL of ours on them.

`TextCache` is `diskcache.Cache`: it makes the tables, adds, replaces and deletes rows, and carries out transactions.
SQL in `Rows` does the rest: looking up many rows, walking through them in order, rewriting the file, and reading a file
without writing to it (a `Cache` writes whenever it opens one). Anybody with write access to a store's folder can put
anything into its tables. diskcache would unpickle rows, open and delete files named in rows, and set any attribute from
its settings (GHSA-w8v5-vhqr-4h9v). `TextDisk` refuses every row that is not text or bytes inside of the database, and
foreign settings are refused before diskcache reads them.
"""

from __future__ import annotations

import os
import random
import re
import sqlite3
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import diskcache

from judgekit.store.tally import END as COUNT, Tally, open_beside

SETTINGS: Final[dict[str, Any]] = {
    "eviction_policy": "none",  # "least-recently-stored" would delete replies beyond a size limit
    "cull_limit": 0,
    "size_limit": 2**62,
    "statistics": 0,
    "tag_index": 0,
    "sqlite_journal_mode": "wal",
    "sqlite_synchronous": 1,
    "sqlite_auto_vacuum": 0,
    "sqlite_mmap_size": 0,
    "sqlite_cache_size": -8000,
    "sqlite_wal_autocheckpoint": 2000,  # 16 MB of log, four times SQLite's default: fewer pages are written twice
    "disk_min_file_size": 2**15,
    "disk_pickle_protocol": 5,
}
"""diskcache's settings, all of them, so that none is taken from a file."""

_KNOWN: Final = (*SETTINGS, *diskcache.core.METADATA)
# Rows of a kilobyte or two leave a third of SQLite's usual pages (4 KB) empty; larger pages are slower to write, since
# each new row changes a random page of the index.
_PAGE: Final = 8192

_LOCK: Final = "-lock"
_LOCK_S: Final = 1800.0
"""Seconds that another process may take to save the rows of a damaged store."""

_NEW_PAGES: Final = 16
"""More pages than an empty store has."""

_IN: Final = 512
"""Number of rows that one query returns."""

# Read as bytes: Python's sqlite3 refuses a whole query for one text that is not UTF-8, and quotes it.
_VALUE: Final = "CAST(value AS BLOB)"

OURS: Final = f"raw = 1 AND mode = {diskcache.core.MODE_RAW} AND filename IS NULL"
"""A row that `TextDisk` wrote. Every query asks for these alone."""

# A row of another mode is read as an empty one, so that it is noticed as damaged.
_IF_OURS: Final = f"CASE WHEN {OURS} THEN {_VALUE} ELSE x'' END"

_REPLIES: Final = "raw = 1 AND length(CAST(key AS BLOB)) = 64"
_WAITING: Final = "raw = 1 AND length(CAST(key AS BLOB)) > 64"
_FOREIGN_SETTINGS: Final = (
    "SELECT count(*) FROM Settings NOT INDEXED WHERE typeof(key) != 'text' OR key NOT IN"
    f" ({', '.join('?' * len(_KNOWN))})"
)
# Rows missing from the index are never found, and SQLite does not notice.
_MISCOUNTED: Final = (
    "SELECT 1 FROM Settings NOT INDEXED WHERE key = 'count' AND typeof(value) = 'integer'"
    " AND value != (SELECT count(key) FROM Cache INDEXED BY Cache_key_raw)"
)

# A damaged index may hold invalid keys. Looking for them takes two seconds for a million rows, so it is done once.
_MISSPELLED: Final = (
    "SELECT 1 FROM Cache INDEXED BY Cache_key_raw WHERE length(key) = 64 AND key GLOB '*[^0-9a-f]*' LIMIT 1"
)

_CLAIMED: Final = "CREATE TABLE IF NOT EXISTS Claimed (process TEXT PRIMARY KEY, time REAL, keys TEXT)"

# A trigger counts what judgekit 0.3 deletes, too.
_REMOVED: Final = (
    "CREATE TABLE IF NOT EXISTS Removed (rows INTEGER)",
    "INSERT INTO Removed SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM Removed)",
    "CREATE TRIGGER IF NOT EXISTS Removed_rows AFTER DELETE ON Cache FOR EACH ROW BEGIN"
    " UPDATE Removed SET rows = rows + 1; END",
)

_TABLES: Final = {"Cache", "Settings", "Claimed", "Removed"}
# diskcache's triggers and ours only count. Any other trigger could delete replies.
_COUNTING: Final = re.compile(
    r"CREATE TRIGGER \w+ AFTER (INSERT|UPDATE|DELETE) ON Cache FOR EACH ROW BEGIN UPDATE"
    r' (Settings SET value = value[-+ .\w]* WHERE key = "(count|size)"|Removed SET rows = rows \+ 1); END'
)
_STORED: Final = (
    "SELECT (SELECT value FROM Settings NOT INDEXED WHERE key = 'count' AND typeof(value) = 'integer'),"
    " (SELECT sum(rows) FROM Removed)"
)
# In a file with auto-vacuum, as judgekit 0.1 made it, the second page is a map. A changed byte of the head makes SQLite
# write such a map over the table there.
_ROOT_ON_MAP: Final = "SELECT 1 FROM sqlite_master WHERE rootpage = 2"

# A diskcache file with rows, but none of a store.
_OTHER_ROWS: Final = (
    "SELECT 1 FROM Cache WHERE NOT EXISTS (SELECT 1 FROM Cache WHERE raw = 1 AND"
    " (length(CAST(key AS BLOB)) >= 64 OR key GLOB 'submitted:*')) LIMIT 1"
)

ERRORS: Final = (diskcache.Timeout, sqlite3.DatabaseError, UnicodeDecodeError)
"""The last if SQLite quotes a damaged list of tables in its message, which Python then cannot read."""

_DAMAGE: Final = ("malformed", "not a database", "UTF-8", "too big", "no such table", "no such column", "file format")
"""SQLite's messages about damaged files."""


class TextDisk(diskcache.Disk):  # type: ignore[misc]  # diskcache has no types
    """Texts and bytes inside of the database, as they are: no pickles, and no files beside it."""

    def put(self, key: object) -> tuple[str, bool]:
        """Return a key as it is stored."""
        if not isinstance(key, str):
            raise TypeError(f"a key is a text, not {type(key).__name__}")
        return key, True

    def get(self, key: object, raw: object) -> str:
        """Return a key that was stored."""
        if not (raw == 1 and isinstance(key, str)):
            raise ValueError("the key of a row is no text")
        return key

    def store(self, value: object, read: bool, key: object = None) -> tuple[int, int, None, str | bytes]:
        """Return the columns (size, mode, filename, value) of a row."""
        if read or not isinstance(value, str | bytes):
            raise TypeError(f"a value is a text or bytes, not {type(value).__name__}")
        return 0, diskcache.core.MODE_RAW, None, value

    def fetch(self, mode: object, filename: object, value: object, read: bool) -> str | bytes:
        """Return the value of a row."""
        if mode != diskcache.core.MODE_RAW or filename is not None or read or not isinstance(value, str | bytes):
            raise ValueError("a row holds neither text nor bytes")
        return value

    def remove(self, file_path: str) -> None:
        """Delete nothing: our rows have no files, so a file name in a row is an attack."""


class TextCache(diskcache.Cache):  # type: ignore[misc]
    """diskcache's cache with `TextDisk`, on a connection of ours.

    A `Cache` opens a connection for each thread and closes none of them if the file is damaged; here threads take turns
    with one, which its store closes.
    """

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self._connection = connection
        try:
            super().__init__(str(folder), timeout=60, disk=TextDisk, **SETTINGS)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as problem:
            raise sqlite3.DatabaseError(f"its settings are malformed: {problem}") from None
        except sqlite3.OperationalError as problem:
            # A byte of the head makes SQLite treat a writable file as read-only.
            if "readonly" in str(problem) and os.access(folder / diskcache.core.DBNAME, os.W_OK):
                raise sqlite3.DatabaseError("the beginning of its file is malformed") from None
            raise

    @property
    def _con(self) -> sqlite3.Connection:
        return self._connection

    def add(self, key: str, value: str | bytes) -> bool:  # type: ignore[override,unused-ignore]
        """Add a row; return False if there is one, which stays."""
        try:
            return bool(super().add(key, value))
        except TypeError as problem:  # the existing row has an invalid expiry time
            raise sqlite3.DatabaseError(f"a row is malformed: {problem}") from None


class Rows:
    """Reads and maintains the rows of a database with our own SQL."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Use a connection, which its opener closes."""
        self.connection = connection
        self._sql = connection.execute
        self._number = 0

    def values(self, names: Sequence[str]) -> list[tuple[str, bytes]]:
        """Return (key, value) of the existing ones among up to 512 rows."""
        marks = ",".join("?" * len(names))
        query = f"SELECT key, {_IF_OURS} FROM Cache WHERE key IN ({marks}) AND raw = 1"
        return self._sql(query, names).fetchall()

    def after(self, first: bytes, last: bytes, *, waiting: bool = False) -> list[tuple[bytes, bytes]]:
        """Return (key, value) of up to 512 rows from a first key on and before a last one, in order."""
        query = (
            f"SELECT CAST(key AS BLOB) AS name, {_IF_OURS} FROM Cache WHERE key >= CAST(? AS TEXT)"
            f" AND key < CAST(? AS TEXT) AND {_WAITING if waiting else _REPLIES} ORDER BY key LIMIT {_IN}"
        )
        return self._sql(query, (first, last)).fetchall()

    def values_of(self, prefix: str) -> list[bytes]:
        """Return the values of all rows with a key prefix, ordered by key."""
        query = f"SELECT {_VALUE} FROM Cache WHERE key >= ? AND key < ? AND {OURS} ORDER BY key"
        return [value for (value,) in self._sql(query, (prefix, prefix + "~"))]

    def count(self, *, waiting: bool = False) -> int:
        """Return the number of replies, or of waiting requests."""
        return int(self._sql(f"SELECT count(*) FROM Cache WHERE {_WAITING if waiting else _REPLIES}").fetchone()[0])

    def delete(self, names: Iterable[bytes]) -> None:
        """Delete rows, even those whose key is not UTF-8, which `Cache.delete` cannot name."""
        query = "DELETE FROM Cache WHERE key = CAST(? AS TEXT) AND raw = 1"
        self.connection.executemany(query, [(name,) for name in names])

    def compact(self) -> None:
        """Rewrite the file, and empty its log."""
        self._sql("VACUUM")
        self._sql("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def integrity(self) -> str:
        """Return what SQLite says about the structure of the file: ``ok`` or the first problems."""
        try:
            problems = self._sql("PRAGMA integrity_check(5)").fetchall()
        except ERRORS as problem:
            return said(problem)
        return "; ".join(line for (text,) in problems for line in str(text).splitlines())

    def refuse_foreign(self) -> None:
        """Raise an error if the tables are not a store's, before diskcache opens them."""
        listed = self._sql("SELECT type, name, sql FROM sqlite_master").fetchall()
        names = {name for _, name, _ in listed}
        pages = self._sql("PRAGMA page_count").fetchone()[0]
        if "Cache" not in names and pages > _NEW_PAGES:
            raise sqlite3.DatabaseError("its list of tables is malformed")
        if self._sql("PRAGMA auto_vacuum").fetchone()[0] and self._sql(_ROOT_ON_MAP).fetchone():
            raise sqlite3.DatabaseError("the beginning of its file is malformed")
        if any(_is_foreign(*each) for each in listed):
            raise sqlite3.DatabaseError("it holds a trigger, view or table that is not a store's, so it is malformed")
        if "Settings" in names and self._sql(_FOREIGN_SETTINGS, _KNOWN).fetchone()[0]:
            raise sqlite3.DatabaseError("settings in it are not judgekit's, so they are malformed")

    def is_of_another_program(self) -> bool:
        """Whether this is an intact database, but not a store."""
        names = [str(name) for (name,) in self._sql("SELECT name FROM sqlite_master")]
        if "Cache" in names and "Settings" in names:
            return not self.number() and bool(self._sql(_OTHER_ROWS).fetchone())
        return bool(names) and not any(name.startswith(tuple(_TABLES)) for name in names)

    def number(self) -> int:
        """Return the number that the file was given when it was made; 0 if it has none."""
        self._number = self._number or int(self._sql("PRAGMA application_id").fetchone()[0])
        return self._number

    def prepare(self) -> None:
        """Give the file a number and count deleted rows; files of judgekit 0.3 have neither."""
        names = {name for (name,) in self._sql("SELECT name FROM sqlite_master")}
        if self.number() and "Removed_rows" in names:
            return
        with self.locked():
            if not self.number():
                self._sql(f"PRAGMA application_id = {_new_number()}")
            for statement in _REMOVED:
                self._sql(statement)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others from writing meanwhile."""
        self._sql("BEGIN IMMEDIATE")
        with self.connection:
            yield

    def tally(self) -> Tally | None:
        """Return the numbers of present and deleted rows; None if unknown."""
        try:
            rows, removed = self._sql(_STORED).fetchone()
        except sqlite3.OperationalError:  # judgekit 0.3 made it and has no table for them
            return None
        if not (isinstance(rows, int) and isinstance(removed, int)):
            return None
        return Tally(self.number(), rows, rows + removed)

    def refuse_miscounted(self) -> None:
        """Raise an error if the index lacks rows."""
        self._sql(f"SELECT {_VALUE} FROM Cache WHERE {OURS} LIMIT 1").fetchone()
        if self._sql(_MISCOUNTED).fetchone():
            raise sqlite3.DatabaseError("its index is malformed")

    def refuse_misspelled(self) -> None:
        """Raise an error if the index holds an invalid key."""
        if self._sql(_MISSPELLED).fetchone():
            raise sqlite3.DatabaseError("its index is malformed")

    def version(self) -> int:
        """Return a number that changes whenever another connection writes to the file."""
        return int(self._sql("PRAGMA data_version").fetchone()[0])

    def claims_of_others(self, process: str) -> list[tuple[str, float, str]]:
        """Return (process, time, keys) of the claims of all other processes."""
        self._sql(_CLAIMED)
        return self._sql("SELECT process, time, keys FROM Claimed WHERE process <> ?", (process,)).fetchall()

    def claim(self, process: str, keys: Collection[str], now: float) -> None:
        """Set the claims of a process, replacing earlier ones."""
        self._sql(_CLAIMED)
        self._sql("REPLACE INTO Claimed VALUES (?, ?, ?)", (process, now, " ".join(keys)))

    def unclaim(self, process: str) -> None:
        """Delete the claims of a process."""
        self._sql("DELETE FROM Claimed WHERE process = ?", (process,))


def connect(database: Path, mode: str) -> sqlite3.Connection:
    """Return a connection to a file: ``mode=rw``, ``mode=ro``, or ``mode=ro&immutable=1``, which locks nothing."""
    uri = f"{database.resolve().as_uri()}?{mode}"
    return sqlite3.connect(uri, uri=True, timeout=60, isolation_level=None, check_same_thread=False)


def make_file(database: Path) -> None:
    """Make an empty private database, if there is none; SQLite gives its log the file's permissions."""
    if database.exists():
        return
    new = database.with_name(f"new-{uuid4().hex}")  # is renamed, so that an empty file is never that of a new store
    try:
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(sqlite3.connect(new)) as connection:  # the size stays if it is set before the journal's mode
            connection.execute(f"PRAGMA page_size = {_PAGE}")
            connection.execute(f"PRAGMA application_id = {_new_number()}")
            connection.execute("VACUUM")
        with suppress(FileExistsError):  # another process was earlier
            os.link(new, database)
    finally:
        new.unlink(missing_ok=True)


def lock(database: Path) -> sqlite3.Connection:
    """Return a connection that locks a separate file beside the database until it is closed, or its process ends."""
    path = Path(f"{database}{_LOCK}")
    if not path.exists():  # closing a file gives up the locks that this process has on it
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(open_beside(database, _LOCK))
    with suppress(OSError):  # the user may have opened the store to a group
        for end in (_LOCK, COUNT):
            os.chmod(f"{database}{end}", stat.S_IMODE(database.stat().st_mode))
    connection = sqlite3.connect(path, timeout=_LOCK_S, isolation_level=None)
    try:
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _new_number() -> int:
    return random.SystemRandom().randrange(1, 2**31)


def _is_foreign(kind: object, name: object, statement: object) -> bool:
    """Whether an entry in the list of tables is foreign: not ours, diskcache's or SQLite's own."""
    if kind == "trigger":
        return not _COUNTING.fullmatch(str(statement))
    if kind == "index":
        return False
    return kind != "table" or not (name in _TABLES or str(name).startswith("sqlite_"))


def said(problem: Exception) -> str:
    """Return SQLite's message, which diskcache hides behind a timeout or the rollback after a full disk."""
    if isinstance(problem, diskcache.Timeout) or "rollback" in str(problem):
        problem = problem.__context__ if isinstance(problem.__context__, Exception) else problem
    # SQLite's message about a text that is not UTF-8 quotes that text.
    return "it holds text that is not UTF-8" if "UTF-8" in str(problem).upper() else str(problem)


def is_damage(text: str) -> bool:
    """Return whether SQLite's message is about a damaged file."""
    return any(word in text for word in _DAMAGE)
