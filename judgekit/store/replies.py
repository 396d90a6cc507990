"""The store: a map from the identity of a request to its raw reply, in a diskcache file.

After `Store.put_many` returns, a killed process loses nothing. A power cut may cost the last seconds (SQLite's
``synchronous=NORMAL``), but the file stays intact. The number of rows ever stored is noted beside the file, so that a
loss is reported before anything is paid again (see `judgekit.store.tally`).

New folders and files are private to their owner (0700 and 0600), since they hold prompts with passages; later changes
by the user stay.

Every row holds a checksum of its identity and its reply, so that damage is noticed: a damaged row is requested again,
and a damaged file is moved aside and its readable rows are saved (see `judgekit.store.recovery`). Meanwhile the file
lies in a folder with another name, so that the next process finishes an interrupted recovery.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import islice
from pathlib import Path
from sqlite3 import Connection, DatabaseError, OperationalError
from typing import Final, TypeVar
from uuid import uuid4

import diskcache

from judgekit.data.outputs import cache_folder
from judgekit.errors import StoreError
from judgekit.store import log, tally
from judgekit.store.records import Record, looked_up
from judgekit.store.recovery import lay_out, page_sizes, rows_counted, rows_of_pages, rows_of_table
from judgekit.store.rows import ERRORS, Rows, TextCache, connect, is_damage, lock, make_file, said
from judgekit.wire.jsontext import parse_json
from judgekit.wire.quirks import unusable
from judgekit.wire.types import Reply


def has_store(path: str | Path) -> bool:
    """Whether there is a store in a folder."""
    return Path(path, diskcache.core.DBNAME).is_file()


def default_store_path() -> Path:
    """Return the store's default folder: ``$JUDGEKIT_CACHE``, else the platform's cache folder."""
    return cache_folder()


_WAITING: Final = "batch:"
_SUBMITTED: Final = "submitted:"
_UNFINISHED: Final = "recovering-"
_ASIDE: Final = "damaged-"
_COPY: Final = "copy-"
_PART: Final = 512
"""Number of rows looked up or stored at once."""

T = TypeVar("T")


class Store:
    """Raw replies by identity. Safe for several processes at once, and for several threads in turn.

    Attributes:
        path: the folder.
        readonly: whether it was opened for reading only.
        counted: whether the number of stored rows was noted, so that a loss would be noticed.
    """

    def __init__(
        self, path: str | Path, *, readonly: bool = False, note: Callable[[str], None] = lambda _: None
    ) -> None:
        """Open the store in a folder; create the folder if needed."""
        self.path = Path(os.path.expandvars(Path(path).expanduser()))
        self.readonly = readonly
        self._note = note
        self._noted_unreadable = self._index_checked = False
        self._inode = 0
        self._is_alone = False
        self.counted = False
        self._database = self.path / diskcache.core.DBNAME
        self._reason = "it was moved aside, and then that was interrupted"
        self._lock = threading.RLock()
        self._opened = ExitStack()
        try:
            self._refuse_another_program()
            with self._alone():
                self._guarded(self._open)
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        self._opened.close()
        noted = tally.noted(self._database)  # before the rows are counted, which others add to meanwhile
        if self.readonly:
            self._rows = self._open_reader()
            self._rows.refuse_miscounted()
            self._compare(noted)
            return
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        make_file(self._database)
        self._inode = self._database.stat().st_ino
        log.refuse_unread_log(self._database)
        connection = self._connect("mode=rw")
        self._rows = Rows(connection)
        if not self._database.stat().st_size:
            raise DatabaseError("its file is empty, so it is malformed")
        self._rows.refuse_foreign()
        log.refuse_cut_log(self._database, connection)
        self._cache = TextCache(self.path, connection)
        self._rows.refuse_miscounted()
        self._rows.prepare()
        if self._compare(noted):
            self._note_tally()
        for folder in self.path.glob(f"{_UNFINISHED}*"):
            self._save_rows(folder)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other processes from opening the store or saving its rows meanwhile."""
        if self.readonly or self._is_alone:
            yield
            return
        with ExitStack() as held:
            # Without permission to lock, the store is read-only or shared, which is reported on opening.
            with suppress(OSError, *ERRORS):
                held.enter_context(closing(lock(self._database)))
            self._is_alone = True
            try:
                yield
            finally:
                self._is_alone = False

    def _refuse_another_program(self) -> None:
        # Read without its log and without locks: SQLite changes a file even by closing it.
        with suppress(*ERRORS), closing(connect(self._database, "mode=ro&immutable=1")) as alone:
            if Rows(alone).is_of_another_program():
                raise StoreError(
                    f"{self._database} belongs to another program and was not touched: name another folder with"
                    " --cache or JUDGEKIT_CACHE"
                )

    def _compare(self, noted: tally.Tally | None) -> bool:
        """Tell the user if stored rows are lost; return whether they are."""
        now = self._rows.tally()
        self.counted = False
        if noted is None or now is None or noted.store != now.store:
            return False
        self.counted = True
        if noted.ever <= now.ever:
            return False
        self._note(
            f"the store {self.path} holds {now.rows:,} rows, {noted.ever - now.ever:,} fewer than were stored: its log"
            f" ({self._database.name}{log.END}) is lost or was cut off; a run asks and pays again for the lost replies"
            " that it needs"
        )
        return True

    def _note_tally(self) -> None:
        """Note the number of stored rows, while nobody else writes."""
        with self._lock, suppress(*ERRORS), self._rows.locked():
            now = self._rows.tally()
            if now is not None:
                tally.write(self._database, now)

    def _connect(self, mode: str) -> Connection:
        connection = connect(self._database, mode)
        self._opened.callback(connection.close)
        return connection

    def _open_reader(self) -> Rows:
        if not self._database.is_file():
            raise StoreError(f"{self.path} holds no store")
        reader = self._connect("mode=ro")
        log.refuse_unread_log(self._database)
        try:
            reader.execute("SELECT count(*) FROM Settings").fetchone()
        except OperationalError as problem:
            if "no such" in str(problem):
                raise self._damaged(str(problem)) from None
            # SQLite notes beside the file who reads it.
            raise StoreError(
                f"the store {self.path} cannot be read ({problem}): copy it to a folder that you can write to"
            ) from None
        rows = Rows(reader)
        rows.refuse_foreign()
        return rows

    def _guarded(self, action: Callable[[], T]) -> T:
        """Run an action on the files; repair damage once, and report errors of SQLite and the system as sentences."""
        for attempt in (1, 2):
            try:
                return action()
            except ERRORS as problem:
                text = said(problem)
                if attempt == 1 and self._moved():
                    continue
                if attempt == 1 and is_damage(text):
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
                " JUDGEKIT_CACHE"
            )
        return StoreError(f"the store {self.path} cannot be used: {text}")

    def _damaged(self, reason: str) -> StoreError:
        return StoreError(
            f"the store {self.path} is damaged ({reason}): `judgekit cache --repair` saves what can be read"
        )

    def _follow(self) -> None:
        """Reopen if another process moved the file aside."""
        if self._moved():
            with self._alone():
                self._guarded(self._open)

    def _moved(self) -> bool:
        """Whether another file, or none, is now in the place of the opened one."""
        if self.readonly:
            return False
        try:
            return bool(self._database.stat().st_ino != self._inode)
        except FileNotFoundError:
            return True

    def recover(self, reason: str) -> None:
        """Move the files aside, and begin a new store with their intact rows."""
        if self.readonly:
            raise self._damaged(reason)
        with self._alone():
            if not self._moved():  # by another process, which saved its rows
                self._move_aside()
                self._reason = reason
            try:
                self._open()
            except ERRORS as problem:
                raise self._sentence(said(problem)) from None

    def _move_aside(self) -> None:
        folder = self.path / f"{_UNFINISHED}{time.strftime('%Y%m%d-%H%M%S')}-{uuid4().hex[:8]}"
        folder.mkdir(mode=0o700)
        # SQLite deletes the log on closing the file, even if it could not read it.
        with suppress(FileNotFoundError):
            shutil.copyfile(f"{self._database}{log.END}", folder / f"{self._database.name}{log.END}")
        # Closed before moving, since SQLite looks for the log under the file's old name.
        self._opened.close()
        for end in ("", log.END, "-shm", tally.END):
            name = f"{self._database.name}{end}"
            with suppress(FileNotFoundError):
                (self.path / name).rename(folder / name)

    def _save_rows(self, folder: Path) -> None:
        """Store the intact rows of a damaged file, and tell the user how many were saved and lost."""
        aside = folder.with_name(folder.name.replace(_UNFINISHED, _ASIDE, 1))
        saved: set[str] = set()
        try:
            counted = self._copy_rows(folder / self._database.name, saved)
            folder.rename(aside)
        except FileNotFoundError:  # another process saved the same rows, and says so
            return
        for copy in aside.glob(f"{_COPY}*"):
            copy.unlink(missing_ok=True)
        if counted is None or counted < len(saved):
            counts = f"{len(saved):,} rows were saved; any others are lost, and their number is unknown"
        else:
            gone = counted - len(saved)
            counts = f"it held {counted:,} rows; {len(saved):,} were saved, {gone:,} are lost"
        if counted != len(saved):
            counts += "; a run asks and pays again for the lost replies that it needs"
        self._note(f"the store {self.path} was damaged ({self._reason}): {counts}; the old file is in {aside}")

    def _copy_rows(self, damaged: Path, saved: set[str]) -> int | None:
        """Store the intact rows of a damaged file and add their names to ``saved``; return its number of rows."""
        noted = tally.noted(damaged)
        counts = [] if noted is None else [noted.rows]
        for page_size in page_sizes(damaged):
            copy = damaged.with_name(f"{_COPY}{uuid4().hex}")
            lay_out(damaged, copy, page_size)
            with closing(connect(copy, "mode=ro")) as rows:
                rows.execute("PRAGMA writable_schema = ON")  # reads a file that was cut off, which SQLite else refuses
                counted = rows_counted(rows, copy.stat().st_size)
                if counted is not None:
                    counts.append(counted)
                if not saved:
                    self._save(rows_of_table(rows), saved)
            if not counts or len(saved) < max(counts) or log.read_log(damaged):
                self._save(rows_of_pages(copy, page_size), saved)
            if counts and len(saved) >= max(counts):
                break
        return max(counts, default=None)

    def _save(self, rows: Iterator[tuple[bytes, bytes]], saved: set[str]) -> None:
        """Store the intact rows, and add their names to the saved ones."""
        while part := list(islice(rows, _PART)):
            values = _whole_rows(part, saved)
            self._add(values)
            saved.update(values)

    def get_many(self, keys: Sequence[str]) -> dict[str, Reply]:
        """Return the replies to these requests, without those that are damaged."""
        replies: dict[str, Reply] = {}
        for key, value in self._select(keys):
            try:
                raw, seconds, stored_at = looked_up(value, key)
                body = parse_json(raw)
                reply = Reply(key, raw.decode(), True, body, seconds, stored_at)
                whole = reply.finish_reason == "stop" and reply.text and b'"error"' not in raw
                if not whole and unusable(body) is not None:
                    raise ValueError
                replies[key] = reply
            except (AttributeError, IndexError, KeyError, TypeError, ValueError):
                self._note_unreadable()
        return replies

    def _select(self, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        for start in range(0, len(names), _PART):
            part = names[start : start + _PART]
            rows = self._read(lambda rows, part=part: rows.values(part))  # type: ignore[misc]
            if len(rows) < len(part) and not self._index_checked:  # once, since it takes long
                self._index_checked = True
                self._read(Rows.refuse_misspelled)
                rows = self._read(lambda rows, part=part: rows.values(part))  # type: ignore[misc]
            yield from rows

    def _note_unreadable(self) -> None:
        if not self._noted_unreadable:
            self._noted_unreadable = True
            self._note(f"the store {self.path} holds damaged replies or errors; they are asked for again")

    def put_many(self, records: Sequence[Record]) -> dict[str, Reply]:
        """Store records in one transaction: all of them are there when it returns."""
        # An existing reply stays, so that all users of a shared store continue with the same one.
        named = {_name(record): record for record in records}
        values = {name: record.stored() for name, record in named.items()}
        present = self._add(values)
        if not present:
            return {}
        earlier = self.get_many([named[name].key for name in present])
        damaged = {name: values[name] for name in present if named[name].key not in earlier}
        if damaged:
            self._replace(damaged)
        return earlier

    def put_waiting(self, records: Sequence[Record]) -> None:
        """Store requests that wait for a batch's replies, replacing earlier ones."""
        self._replace({_name(record): record.stored() for record in records})

    def _add(self, values: Mapping[str, bytes | str]) -> list[str]:
        """Store values; return the names of existing ones, which stay."""
        present = self.written(lambda _: [name for name, value in values.items() if not self._cache.add(name, value)])
        if len(present) < len(values):
            self._note_tally()
        return present

    def _replace(self, values: Mapping[str, bytes | str]) -> None:
        def replace(_: Rows) -> None:
            for name, value in values.items():
                self._cache.set(name, value)

        self.written(replace)
        self._note_tally()

    def waiting(self, keys: Sequence[str]) -> dict[str, Record]:
        """Return the records that were exported to a batch file and have no reply yet."""
        return self.records(keys, _WAITING)

    def records(self, keys: Sequence[str], before: str = "") -> dict[str, Record]:
        """Return the intact records of these requests; ``before`` is the prefix of waiting ones."""
        records = {}
        for name, value in self._select([before + key for key in keys]):
            try:
                record = Record.parse(value)
            except ValueError:
                self._note_unreadable()
                continue
            if name == before + record.key:
                records[record.key] = record
        return records

    def forget(self, keys: Iterable[str], *, waiting: bool = False) -> None:
        """Delete records: replies, or those that wait for one."""
        names = [(_WAITING + key if waiting else key).encode("utf-8", "surrogateescape") for key in keys]
        self.written(lambda rows: rows.delete(names))
        self._note_tally()

    def compact(self) -> None:
        """Rewrite the file and its log, which would keep traces of deleted rows."""
        self._read(Rows.compact)

    def note_submission(self, name: str, text: str) -> None:
        """Keep a note of a submission to a batch service, replacing an earlier note of that name."""
        self._replace({_SUBMITTED + name: text})

    def forget_submission(self, name: str) -> None:
        """Delete the note of that name."""
        self.written(lambda _: self._cache.delete(_SUBMITTED + name))

    def submissions(self) -> list[bytes]:
        """Return all notes of submissions to a batch service."""
        return self._read(lambda rows: rows.values_of(_SUBMITTED))

    def texts(self, *, waiting: bool = False) -> Iterator[tuple[str, bytes]]:
        """Yield (key, stored bytes) of the replies, or of waiting requests, ordered by key."""
        before = _WAITING if waiting else ""
        first = before.encode()
        last = first + b"\xff" * 65
        while True:
            rows = self._read(lambda rows, first=first: rows.after(first, last, waiting=waiting))  # type: ignore[misc]
            if not rows:
                return
            for key, value in rows:
                if key < first:  # a damaged index leads round in circles
                    raise self._damaged("its index is out of order")
                yield key.decode("utf-8", "surrogateescape").removeprefix(before), value
                first = key + b"\0"  # sorts behind that key and before all others

    def count(self, *, waiting: bool = False) -> int:
        """Return the number of replies, or of waiting requests."""
        return self._read(lambda rows: rows.count(waiting=waiting))

    def check(self) -> str:
        """Return what SQLite says about its own structure: ``ok`` or the first problems."""
        with self._lock:
            return self._rows.integrity()

    def _read(self, query: Callable[[Rows], T]) -> T:
        def reading() -> T:
            with self._lock:
                self._follow()
                return query(self._rows)

        return self._guarded(reading)

    def written(self, work: Callable[[Rows], T]) -> T:
        """Do some work on the rows in one transaction; return its result."""
        if self.readonly:
            raise StoreError(f"the store {self.path} was opened for reading only")

        def transaction() -> T:
            with self._lock:
                while True:
                    self._follow()
                    with self._cache.transact():
                        result = work(self._rows)
                    # A process that moved the file aside meanwhile may have read it before this write.
                    if not self._moved():
                        return result

        return self._guarded(transaction)

    def close(self) -> None:
        """Close the files."""
        with self._lock:
            self._opened.close()


def _name(record: Record) -> str:
    return record.key if record.reply is not None else _WAITING + record.key


def _whole_rows(rows: Iterable[tuple[bytes, bytes]], saved: Collection[str]) -> dict[str, bytes | str]:
    """Return the intact rows of a damaged file that are not saved yet, by name."""
    whole: dict[str, bytes | str] = {}
    for key, value in rows:
        with suppress(ValueError):
            name = key.decode()
            if name in saved:
                continue
            if name.startswith(_SUBMITTED):
                whole.setdefault(name, value.decode())
            else:
                whole.setdefault(_name(Record.parse(value)), value)
    return whole
