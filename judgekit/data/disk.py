"""Collections of documents that are not held in memory: large files with an index on disk, and users' own look-ups.

The index of a file is an SQLite table that says where the line of each doc is, so that memory stays flat. It lies
beside the reply store, one for a path, and holds as long as size, modification time and a sample of the content are the
same; each look-up checks that the line holds the id that was asked for. JSON lines are read where they are; the docs of
a file that is compressed or of another form (Parquet row group by row group) are unpacked into the index.
"""

from __future__ import annotations

import glob
import hashlib
import json
import sqlite3
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, Final

from judgekit.data.documents import Doc
from judgekit.data.fields import DOC, Source, doc_of
from judgekit.data.forms import Opened, opened
from judgekit.data.outputs import cache_folder
from judgekit.data.records import Record, parse_object
from judgekit.data.streams import Line, files_of, packing, temporary
from judgekit.errors import DataError, UsageError

__all__ = ["DiskDocs", "GivenDocs", "fingerprint", "large", "on_disk"]

MEMORY_LIMIT: Final = 8 << 20
"""Bytes of a collection's file above which it stays on disk; compressed files count fourfold."""
_VERSION: Final = 1
_SAMPLE: Final = 1 << 16
_ABANDONED_S: Final = 86_400
_TABLES: Final = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE docs (doc_id TEXT PRIMARY KEY, line INTEGER, place);
CREATE TABLE made (made_from TEXT, docs INTEGER);
BEGIN
"""
"""The tables of an index, in the order of the file; ``place`` is an offset in it, or the doc itself as JSON."""


def large(path: Path, limit: int | None = None) -> bool:
    """Return whether a collection is to stay on disk."""
    if not (path.is_file() or path.is_dir()):
        return False
    size = sum(part.stat().st_size for part in files_of(path))
    packed = path.is_dir() or packing(path) is not None or path.suffix == ".parquet"
    return size * (4 if packed else 1) > (MEMORY_LIMIT if limit is None else limit)


class DiskDocs:
    """A collection in a file, one doc a line, that is not loaded; see `judgekit.data.readers.read_docs`.

    It is safe to use from several threads. The files are closed when the collection is no longer in use.
    """

    def __init__(self, index: sqlite3.Connection, count: int, stream: IO[bytes], load: Callable[[bytes], Doc]) -> None:
        """Wrap open files.

        Args:
            index: says where the line of each doc starts, or holds the doc.
            count: how many docs there are.
            stream: the file.
            load: turns a line into a doc.
        """
        self._index, self._count, self._stream, self._load = index, count, stream, load
        self._lock = threading.Lock()
        weakref.finalize(self, index.close)
        weakref.finalize(self, stream.close)

    def _place(self, doc_id: str) -> int | str | None:
        with self._lock:
            query = self._index.execute("SELECT place FROM docs WHERE doc_id = ?", (doc_id,))
            found: tuple[int | str] | None = query.fetchone()
        return found[0] if found else None

    def _at(self, place: int | str) -> Doc:
        if isinstance(place, str):
            return Doc(**json.loads(place))
        with self._lock:
            self._stream.seek(place)
            line = self._stream.readline()
        return self._load(line)

    def _get(self, doc_id: str) -> Doc:
        place = self._place(doc_id)
        if place is None:
            raise DataError(f"doc {doc_id!r} is not in the collection")
        doc = self._at(place)
        if doc.doc_id != doc_id:
            raise DataError(f"doc {doc_id!r} has moved: its file was changed while in use")
        return doc

    def get(self, doc_ids: Sequence[str]) -> list[Doc]:
        """Return the documents in the order asked for; an unknown id is a `DataError`."""
        return [self._get(doc_id) for doc_id in doc_ids]

    def __contains__(self, doc_id: object) -> bool:
        return isinstance(doc_id, str) and self._place(doc_id) is not None

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Doc]:
        """Read the documents in the order of the file."""
        return (self._at(place) for (place,) in self._index.execute("SELECT place FROM docs ORDER BY rowid"))


def on_disk(file: str | Path, format: str, path: Path, index: str | Path | None) -> DiskDocs:
    """Open a collection by its index, which is built where there is none that fits.

    Args:
        file: the file as it was given.
        format: its form.
        path: the file.
        index: the folder for the index; the cache folder by default. Where it cannot be written, the index is a
            temporary one.

    Raises:
        DataError: see `judgekit.data.readers.read_docs`.
    """
    found = opened(file, "doc", format)
    in_place = found.source.format == "jsonl" and not found.form and packing(path) is None
    made_from = f"{fingerprint(path, f'{file} {format}')} {in_place}"
    name = hashlib.sha256(f"{path.resolve()} {format} {file}".encode()).hexdigest()[:24]
    folder = Path(cache_folder() if index is None else index) / "docs"
    with ExitStack() as stack:
        try:
            for made in (folder.parent, folder):
                made.mkdir(mode=0o700, parents=True, exist_ok=True)  # as the store's, which makes it otherwise
            probe = temporary(folder / name)
            probe.touch()
            probe.unlink()
        except OSError:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="judgekit-")))
        places = folder / f"{name}.idx"
        if (known := _opened(places, made_from)) is None:
            _build(found, places, in_place, made_from)
            known = _opened(places, made_from)
        if known is None:
            raise DataError(f"its index was changed while in use: {places}", path)
        # Open files outlive their names.
        return DiskDocs(*known, (path if in_place else places).open("rb"), _loader(found.source, path))


def _opened(places: Path, made_from: str) -> tuple[sqlite3.Connection, int] | None:
    """Return an index and its number of docs if it is whole and of these docs, else None."""
    index = None
    try:
        index = sqlite3.connect(f"{places.absolute().as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False)
        ((known, count),) = index.execute("SELECT made_from, docs FROM made")
        ((size,),) = index.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
        if known == made_from and places.stat().st_size == size:
            return index, count
    except (sqlite3.Error, OSError, ValueError):
        pass
    if index is not None:
        index.close()
    return None


def fingerprint(path: Path, spelled: str) -> str:
    """Return what changes with the file: the size and modification time of its parts, and a sample of their bytes."""
    digest = hashlib.sha256(f"{_VERSION} {spelled}".encode())
    for part in files_of(path):
        known = part.stat()
        digest.update(f"{part.name} {known.st_size} {known.st_mtime_ns}".encode())
        with part.open("rb") as stream:
            for start in (0, known.st_size // 2, max(0, known.st_size - _SAMPLE)):
                stream.seek(start)
                digest.update(stream.read(_SAMPLE))
    return digest.hexdigest()


def _loader(source: Source, path: Path) -> Callable[[bytes], Doc]:
    def load(line: bytes) -> Doc:
        try:
            return doc_of(source, Record(0, parse_object(Line(0, 0, line.decode("utf-8-sig")), path)))
        except (DataError, UnicodeDecodeError) as error:
            raise DataError("was changed while in use", path) from error

    return load


def _build(found: Opened, places: Path, in_place: bool, made_from: str) -> None:
    """Read a collection once, check it, and write its index, with the docs themselves if they are to be unpacked.

    Raises:
        DataError: a doc is there twice (in a nested form only if it differs), or the index cannot be written.
    """
    source = found.source
    partial = temporary(places)
    for left in places.parent.glob(f".{glob.escape(places.name)}.*.tmp"):  # of a command that was killed
        if left.stat().st_mtime < time.time() - _ABANDONED_S:
            left.unlink()
    try:
        with closing(sqlite3.connect(partial, isolation_level=None)) as index:
            index.executescript(_TABLES)
            count = 0
            for record in found.records:
                doc = doc_of(source, record)
                place = record.start if in_place else json.dumps(asdict(doc))
                row = (doc.doc_id, record.line, place)
                added = index.execute("INSERT OR IGNORE INTO docs VALUES (?, ?, ?)", row).rowcount
                count += added
                if not added:
                    query = index.execute("SELECT line, place FROM docs WHERE doc_id = ?", row[:1])
                    first, before = query.fetchone()
                    if not found.form:
                        raise source.repeated(record, doc.doc_id, first)
                    if before != place:
                        raise source.error(record, f"doc {doc.doc_id!r} has a different title or text than before")
            if not count:
                raise source.nothing("docs")
            index.execute("INSERT INTO made VALUES (?, ?)", (made_from, count))
            index.execute("COMMIT")
        partial.replace(places)
    except sqlite3.Error as error:
        raise DataError(f"its index cannot be written to {places.parent}: {error}", source.path) from error
    finally:
        partial.unlink(missing_ok=True)


class GivenDocs:
    """The user's own collection: what it returns for ids is checked, and every problem says which doc it is about.

    Attributes:
        source: an object with ``get(ids)``, or a function of ids. It returns docs in the order asked for, or by id:
            each a `Doc`, a text, or a dictionary with ``text`` and perhaps ``title``.
    """

    def __init__(self, source: Any) -> None:
        """Wrap a look-up."""
        self._look_up: Callable[[list[str]], Any] = getattr(source, "get", source)
        self._known: Callable[[str], bool] | None = getattr(source, "__contains__", None)
        self._size: Callable[[], int] | None = getattr(source, "__len__", None)

    def get(self, doc_ids: Sequence[str]) -> list[Doc]:
        """Return the documents in the order asked for.

        Raises:
            DataError: an id is unknown.
            UsageError: the look-up returns something else.
        """
        try:
            found = self._look_up(list(doc_ids))
        except KeyError as error:
            raise DataError(f"doc {error.args[0]!r} is not in the collection") from None
        if isinstance(found, Mapping):
            found = [found.get(doc_id) for doc_id in doc_ids]
        found = list(found) if isinstance(found, Iterable) and not isinstance(found, str | bytes) else [found]
        if len(found) != len(doc_ids):
            raise UsageError(f"get(ids) of your docs returned {len(found)} docs for {len(doc_ids)} ids")
        return [self._doc(doc_id, one) for doc_id, one in zip(doc_ids, found, strict=True)]

    def _doc(self, doc_id: str, found: Any) -> Doc:
        if found is None:
            raise DataError(f"doc {doc_id!r} is not in the collection")
        if isinstance(found, str):
            return Doc(doc_id, found)
        doc = found
        if isinstance(found, Mapping):
            doc = doc_of(Source(None, "frame", DOC, "doc"), Record(1, {"doc_id": doc_id, **found}))
        if not isinstance(doc, Doc) or doc.doc_id != doc_id:
            raise UsageError(f"get(ids) of your docs returned {found!r:.80} where doc {doc_id!r} was asked for")
        return doc

    def __contains__(self, doc_id: object) -> bool:
        if self._known is not None:
            return bool(self._known(str(doc_id)))
        try:
            return bool(self.get([str(doc_id)]))
        except DataError:
            return False

    def __len__(self) -> int:
        return 0 if self._size is None else self._size()
