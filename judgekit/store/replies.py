"""The store: a map from the identity of a request to the raw reply, in a file of diskcache's, as texts and bytes only.

diskcache makes the file, and does no more. Its ``get`` unpickles values, so that reading a crafted row runs code, and
its ``add`` drops whatever exceeds 1 GiB in silence (``eviction_policy="none"`` keeps everything; ``cull_limit=0`` alone
does not). So rows are written to its table and looked up in it here, many at a time, and what is pickled is no row.

A killed process loses nothing that `Store.put_many` returned for. After a power cut the last seconds may be missing
(SQLite's ``synchronous=NORMAL``), and the file is whole.

A folder and files that are made here are for their owner alone (0700 and 0600), as they hold prompts with passages; a
user who opens them to a group later finds them left as they are.

Every row holds a checksum of its identity and its reply, so that damage is noticed: a damaged row is asked for
again, and a damaged file is moved aside and its whole rows are saved (see `judgekit.store.recovery`). While that is
done the file lies in a folder of another name, so that a recovery that was interrupted is finished by the next process.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from itertools import islice
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, TypeVar
from uuid import uuid4

import diskcache

from judgekit.data.outputs import cache_folder
from judgekit.errors import StoreError
from judgekit.store.records import Record, looked_up
from judgekit.store.recovery import Remains
from judgekit.wire.jsontext import parse_json
from judgekit.wire.quirks import unusable
from judgekit.wire.types import Reply

_MODE_RAW: Final = 1

_SETTINGS: Final[dict[str, Any]] = {
    "eviction_policy": "none",
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
}

_PRAGMAS: Final = "PRAGMA synchronous = 1; PRAGMA cache_size = -8000; PRAGMA wal_autocheckpoint = 2000"
"""The settings that each connection makes for itself."""

_PAGE: Final = 8192
"""Bytes. Rows of a kilobyte or two leave a third of SQLite's usual pages empty; larger ones are slower to write, since
a new row changes a page of the index wherever its key happens to stand."""


def has_store(path: str | Path) -> bool:
    """Whether there is a store in a folder."""
    return Path(path, diskcache.core.DBNAME).is_file()


def default_store_path() -> Path:
    """Return where the store lies unless the user says: ``$JUDGEKIT_CACHE``, else the platform's cache folder."""
    return cache_folder()


_ERRORS: Final = (diskcache.Timeout, sqlite3.DatabaseError, UnicodeDecodeError)
"""The last where SQLite quotes a damaged list of tables in its message, which Python then cannot read."""

_WAITING: Final = "batch:"
_SUBMITTED: Final = "submitted:"
_VALUE: Final = "CAST(value AS BLOB)"
"""Read as bytes: Python's sqlite3 refuses a whole query for one text that is not UTF-8, and quotes it."""

_ROWS: Final = f"raw = 1 AND mode = {_MODE_RAW}"
_REPLIES: Final = f"{_ROWS} AND length(CAST(key AS BLOB)) = 64"
_BATCHED: Final = f"{_ROWS} AND length(CAST(key AS BLOB)) > 64"
_MISCOUNTED: Final = (
    "SELECT 1 FROM Settings NOT INDEXED WHERE key = 'count' AND typeof(value) = 'integer'"
    " AND value != (SELECT count(key) FROM Cache INDEXED BY Cache_key_raw)"
)
"""Whether the index lacks rows that diskcache counted: what it lacks is never found, and SQLite does not notice."""

_MISSPELLED: Final = (
    "SELECT 1 FROM Cache INDEXED BY Cache_key_raw WHERE length(key) = 64 AND key GLOB '*[^0-9a-f]*' LIMIT 1"
)
"""Whether the index holds what is no key: two seconds for a million, so once, and only where something is not found."""

_IN: Final = 512
_PUT: Final = "INSERT INTO Cache (key, raw, store_time, access_time, mode, value) VALUES (?, 1, ?, ?, ?, ?) ON CONFLICT"
"""A row as diskcache writes it."""

_ADD: Final = f"{_PUT} (key, raw) DO NOTHING"
_REPLACE: Final = (
    f"{_PUT} (key, raw) DO UPDATE SET store_time = excluded.store_time, mode = excluded.mode, value = excluded.value"
)

_DAMAGE: Final = ("malformed", "not a database", "UTF-8", "too big", "no such table", "no such column", "file format")
"""What SQLite says of damaged files."""

_UNFINISHED: Final = "recovering-"
_ASIDE: Final = "damaged-"
_NEW_PAGES: Final = 16
"""More than a store has in which nothing is stored yet."""

P = ParamSpec("P")
T = TypeVar("T")


class Store:
    """Raw replies by identity. Safe for several processes at once, and for several threads in turn."""

    def __init__(
        self, path: str | Path, *, readonly: bool = False, note: Callable[[str], None] = lambda _: None
    ) -> None:
        """Open the store in a folder, which is created if it is not there."""
        self.path = Path(os.path.expandvars(Path(path).expanduser()))
        self.readonly = readonly
        self._note = note
        self._told = self._looked = False
        self._database = self.path / diskcache.core.DBNAME
        self._reason = "it was moved aside, and then that was interrupted"
        self._log = self.path / f"{self._database.name}-wal"
        self._files = [f"{self._database.name}{end}" for end in ("", "-wal", "-shm")]
        self._lock = threading.RLock()
        self._opened = ExitStack()
        try:
            self._guarded(self._open)
        except StoreError:
            self.close()
            raise

    def _open(self) -> None:
        self._opened.close()
        if self.readonly:
            self._rows = self._opened.enter_context(closing(self._open_reader()))
        else:
            self._create()
            self._rows = self._opened.enter_context(closing(self._connect("mode=rw")))
            # Says what is damaged before diskcache opens the file and leaves a connection open.
            self._look_for_damage()
            try:
                diskcache.Cache(str(self.path), timeout=60, **_SETTINGS).close()
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as problem:
                raise sqlite3.DatabaseError(f"its settings are malformed: {problem}") from None
            self._rows.executescript(_PRAGMAS)
        self._rows.execute(f"SELECT {_VALUE} FROM Cache WHERE {_ROWS} LIMIT 1").fetchone()
        if self._rows.execute(_MISCOUNTED).fetchone():
            raise sqlite3.DatabaseError("its index is malformed")
        self._inode = self._database.stat().st_ino
        if not self.readonly:
            for folder in self.path.glob(f"{_UNFINISHED}*"):
                self._save_rows(folder)

    def _look_for_damage(self) -> None:
        """Look for what SQLite passes over."""
        if not self._database.stat().st_size:
            raise sqlite3.DatabaseError("its file is empty, so it is malformed")
        tables = {name for (name,) in self._rows.execute("SELECT name FROM sqlite_master")}
        pages = self._rows.execute("PRAGMA page_count").fetchone()[0]
        if "Cache" not in tables and pages > _NEW_PAGES:
            raise sqlite3.DatabaseError("its list of tables is malformed")
        if self._log.exists() and self._log.stat().st_size:
            self._rows.execute("BEGIN IMMEDIATE")  # nobody adds to the log meanwhile
            try:
                if Remains(self._database).log_damaged():
                    raise sqlite3.DatabaseError("its log is malformed")
            finally:
                self._rows.rollback()

    def _create(self) -> None:
        """Make the folder and an empty file, if they are not there; SQLite gives its log the rights of the file."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._database.exists():
            return
        new = self.path / f"new-{uuid4().hex}"  # is renamed, so that an empty file is never that of a new store
        try:
            os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with closing(sqlite3.connect(new)) as rows:  # diskcache sets the journal's mode first, and then the
                rows.execute(f"PRAGMA page_size = {_PAGE}")  # size stays
                rows.execute("VACUUM")
            with suppress(FileExistsError):  # another process was earlier
                os.link(new, self._database)
        finally:
            new.unlink(missing_ok=True)

    def _connect(self, mode: str) -> sqlite3.Connection:
        uri = f"{self._database.resolve().as_uri()}?{mode}"
        return sqlite3.connect(uri, uri=True, timeout=60, isolation_level=None, check_same_thread=False)

    def _open_reader(self) -> sqlite3.Connection:
        if not self._database.is_file():
            raise StoreError(f"{self.path} holds no store")
        problem = ""
        for mode in ("mode=ro", "immutable=1"):
            reader = self._connect(mode)
            try:
                reader.execute("SELECT count(*) FROM Settings").fetchone()
            except sqlite3.OperationalError as error:
                reader.close()
                problem = str(error)
                continue
            if mode == "immutable=1" and self._log.exists() and self._log.stat().st_size:
                self._note(
                    f"the store {self.path} cannot be written to, so its latest replies (in {self._log.name}) are"
                    " not read"
                )
            return reader
        raise (
            self._damaged(problem)
            if "no such" in problem
            else StoreError(f"the store {self.path} cannot be read: {problem}")
        )

    def _guarded(self, action: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do something with the files; turn what SQLite and the system say into sentences, and heal damage."""
        for attempt in (1, 2):
            try:
                return action(*args, **kwargs)
            except _ERRORS as problem:
                text = _said(problem)
                if attempt == 1 and any(word in text for word in _DAMAGE):
                    self.recover(text)
                    continue
                raise self._sentence(text) from None
            except OSError as problem:
                raise self._sentence(problem.strerror or str(problem)) from None
        raise AssertionError("unreachable")

    def _sentence(self, text: str) -> StoreError:
        if "full" in text or "No space" in text:
            return StoreError(
                f"the disk of the store {self.path} is full. All replies stored so far are kept;"
                " make room and run again"
            )
        if any(word in text.casefold() for word in ("readonly", "read-only", "permission", "unable to open")):
            return StoreError(
                f"the store {self.path} cannot be written to ({text}). Name another folder with --cache or"
                " JUDGEKIT_CACHE, or only read it with mode='read-only' in Python"
            )
        return StoreError(f"the store {self.path} cannot be used: {text}")

    def _damaged(self, reason: str) -> StoreError:
        return StoreError(
            f"the store {self.path} is damaged ({reason}): `judgekit cache verify --repair` saves what can be read"
        )

    def _follow(self) -> None:
        """Reopen if another process moved the file aside."""
        with suppress(FileNotFoundError):
            if self.readonly or self._database.stat().st_ino == self._inode:
                return
        self._open()

    def recover(self, reason: str) -> None:
        """Move the files aside, and start again with those of their rows that are whole."""
        if self.readonly:
            raise self._damaged(reason)
        folder = self.path / f"{_UNFINISHED}{time.strftime('%Y%m%d-%H%M%S')}-{uuid4().hex[:8]}"
        folder.mkdir(mode=0o700)
        with suppress(FileNotFoundError):
            shutil.copyfile(self._log, folder / self._log.name)  # SQLite deletes it when it closes the database
        self._opened.close()
        for name in self._files:
            with suppress(FileNotFoundError):
                (self.path / name).rename(folder / name)
        self._reason = reason
        try:
            self._open()
        except _ERRORS as problem:
            raise self._sentence(_said(problem)) from None

    def _save_rows(self, folder: Path) -> None:
        """Store the whole rows of a damaged file, and say what was saved and what is gone."""
        remains = Remains(folder / self._database.name)
        saved: set[str] = set()
        rows = remains.rows()
        while part := list(islice(rows, _IN)):
            whole: dict[str, bytes | str] = {}
            for key, value in part:
                with suppress(ValueError):
                    name = key.decode()
                    text = value.decode() if name.startswith(_SUBMITTED) else value
                    whole.setdefault(name if isinstance(text, str) else _name(Record.parse(value)), text)
            self.written(_insert, {name: value for name, value in whole.items() if name not in saved})
            saved |= whole.keys()
        aside = folder.with_name(folder.name.replace(_UNFINISHED, _ASIDE, 1))
        try:
            folder.rename(aside)
        except FileNotFoundError:  # another process saved the same rows, and says so
            return
        held = remains.held if remains.held is not None and remains.held >= len(saved) else None
        if held is None:
            told = f"how many rows it held cannot be known; {len(saved):,} were saved, and what else it held is gone"
        else:
            told = f"it held {held:,} rows; {len(saved):,} were saved, {held - len(saved):,} are gone"
        paid = "" if held == len(saved) else "; a run asks and pays again for what is gone and needed"
        self._note(f"the store {self.path} was damaged ({self._reason}): {told}{paid}; the old file is in {aside}")

    def get_many(self, keys: Sequence[str], since: float = 0.0) -> dict[str, Reply]:
        """Return the replies to these requests; what is missing, unusable or older than ``since`` is left out."""
        found: dict[str, Reply] = {}
        for key, value in self._select(keys):
            try:
                raw, stored, seconds = looked_up(value, key)
                if not (seconds is None or seconds >= 0):
                    raise ValueError
                if stored >= since:
                    body = parse_json(raw)
                    reply = Reply(key, raw.decode(), True, body, seconds)
                    whole = reply.finish_reason == "stop" and reply.text and b'"error"' not in raw
                    if not whole and unusable(body) is not None:
                        raise ValueError
                    found[key] = reply
            except (AttributeError, IndexError, KeyError, TypeError, ValueError):
                self._unreadable()
        return found

    def _select(self, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        for start in range(0, len(names), _IN):
            part = names[start : start + _IN]
            yield from self._guarded(self._found, part)

    def _found(self, names: Sequence[str]) -> list[tuple[str, bytes]]:
        query = f"SELECT key, {_VALUE} FROM Cache WHERE key IN ({','.join('?' * len(names))}) AND {_ROWS}"
        rows = self._query(query, names)
        if len(rows) < len(names) and not self._looked:
            self._looked = True
            if self._query(_MISSPELLED):
                raise sqlite3.DatabaseError("its index is malformed")
        return rows

    def _unreadable(self) -> None:
        if not self._told:
            self._told = True
            self._note(f"the store {self.path} holds damaged replies or errors; they are asked for again")

    def put_many(self, records: Sequence[Record], *, replace: bool = False) -> dict[str, Reply]:
        """Store records in one transaction: all of them are there when it returns."""
        # A reply that is there already stays, so that everybody who shares the store goes on with the same one.
        named = {_name(record): record for record in records}
        values = {name: record.stored() for name, record in named.items()}
        there = {name: named[name].key for name in self.written(_insert, values, replace)}
        kept = self.get_many([*there.values()]) if there else {}
        if damaged := {name: values[name] for name, key in there.items() if key not in kept}:
            self.written(_insert, damaged, replace=True)
        return kept

    def waiting(self, keys: Sequence[str]) -> dict[str, Record]:
        """Return the records without a reply, those that were exported to a batch file."""
        return self.records(keys, _WAITING)

    def records(self, keys: Sequence[str], before: str = "") -> dict[str, Record]:
        """Return the whole records of these requests; ``before`` stands before the keys of those that wait."""
        found = {}
        for name, value in self._select([before + key for key in keys]):
            try:
                record = Record.parse(value)
            except ValueError:
                self._unreadable()
                continue
            if name == before + record.key:
                found[record.key] = record
        return found

    def forget(self, keys: Iterable[str], *, waiting: bool = False) -> None:
        """Delete records: replies, or those that wait for one."""
        names = [(_WAITING + key if waiting else key).encode("utf-8", "surrogateescape") for key in keys]
        self.written(_delete, names)

    def compact(self) -> None:
        """Rewrite the file: traces of what was deleted would be left in it and in its log."""
        for statement in ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
            self._guarded(self._query, statement)

    def note_submission(self, name: str, text: str) -> None:
        """Keep a note of what was submitted to a batch service, replacing an earlier one of that name."""
        self.written(_insert, {_SUBMITTED + name: text}, replace=True)

    def forget_submission(self, name: str) -> None:
        """Delete the note of that name."""
        self.written(_delete, [(_SUBMITTED + name).encode()])

    def submissions(self) -> list[bytes]:
        """Return all notes of what was submitted to a batch service."""
        query = f"SELECT {_VALUE} FROM Cache WHERE key >= ? AND key < ? AND {_ROWS} ORDER BY key"
        return [text for (text,) in self._guarded(self._query, query, (_SUBMITTED, _SUBMITTED + "~"))]

    def texts(self, prefix: str = "", *, waiting: bool = False) -> Iterator[tuple[str, bytes]]:
        """Yield (key, stored bytes) of the replies, or of what waits for one, whose key starts with a prefix."""
        query = (
            f"SELECT CAST(key AS BLOB) AS name, {_VALUE} FROM Cache WHERE key >= CAST(? AS TEXT)"
            f" AND key < CAST(? AS TEXT) AND {_BATCHED if waiting else _REPLIES} ORDER BY key LIMIT {_IN}"
        )
        before = _WAITING if waiting else ""
        first = (before + prefix).encode()
        last = first + b"\xff" * 65
        while rows := self._guarded(self._query, query, (first, last)):
            for key, value in rows:
                if key < first:  # a damaged index leads round in circles
                    raise self._damaged("its index is out of order")
                yield key.decode("utf-8", "surrogateescape").removeprefix(before), value
                first = key + b"\0"  # sorts behind that key and before all others

    def count(self, *, waiting: bool = False) -> int:
        """Return the number of replies, or of records that wait for one."""
        where = _BATCHED if waiting else _REPLIES
        return int(self._guarded(self._query, f"SELECT count(*) FROM Cache WHERE {where}")[0][0])

    def _query(self, query: str, values: Sequence[bytes | str] = ()) -> list[tuple[Any, ...]]:
        with self._lock:
            self._follow()
            return self._rows.execute(query, values).fetchall()

    def written(self, work: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what some work with the database returns, done as one transaction."""
        if self.readonly:
            raise StoreError(f"the store {self.path} was opened for reading only")

        def transaction() -> T:
            with self._lock:
                self._follow()
                with self._rows:
                    self._rows.execute("BEGIN IMMEDIATE")
                    return work(self._rows, *args, **kwargs)

        return self._guarded(transaction)

    def check(self) -> str:
        """Return what SQLite says about its own structure: ``ok`` or the first problems."""
        with self._lock:
            try:
                rows = self._rows.execute("PRAGMA integrity_check(5)").fetchall()
            except _ERRORS as problem:
                return _said(problem)
        if Remains(self._database).log_damaged():
            return "its log is malformed"
        return "; ".join(line for row in rows for line in str(row[0]).splitlines())

    def close(self) -> None:
        """Close the files."""
        with self._lock:
            self._opened.close()


def _insert(rows: sqlite3.Connection, values: Mapping[str, bytes | str], replace: bool = False) -> list[str]:
    """Store values as diskcache does; return the names of those that were there already and stay."""
    there, now = list[str](), time.time()
    for name, value in values.items():
        stored = rows.execute(_REPLACE if replace else _ADD, (name, now, now, _MODE_RAW, value)).rowcount
        there += [] if stored else [name]
    return there


def _delete(rows: sqlite3.Connection, names: Iterable[bytes]) -> None:
    rows.executemany("DELETE FROM Cache WHERE key = CAST(? AS TEXT) AND raw = 1", [(name,) for name in names])


def _name(record: Record) -> str:
    return record.key if record.reply is not None else _WAITING + record.key


def _said(problem: Exception) -> str:
    """Return what SQLite said, which diskcache hides behind a timeout or the rollback that follows a full disk."""
    if isinstance(problem, diskcache.Timeout) or "rollback" in str(problem):
        problem = problem.__context__ if isinstance(problem.__context__, Exception) else problem
    # What SQLite says of a text that is not UTF-8 quotes that text.
    return "it holds text that is not UTF-8" if "UTF-8" in str(problem).upper() else str(problem)
