"""Collections of documents that are not held in memory: large files with an index on disk, and users' own look-ups.

The index of a file says where the line of each doc is: 16 bytes a doc, mapped into memory, so that memory stays flat.
It lies beside the reply store, one for a path, and holds as long as size, modification time and a sample of the content
are the same; each look-up checks that the line holds the id that was asked for. JSON lines are read where they are; a
file that is compressed or of another form (Parquet row group by row group) is unpacked beside its index.
"""

from __future__ import annotations

import glob
import hashlib
import json
import shutil
import tempfile
import threading
import time
import weakref
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from io import BufferedIOBase
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt

from judgekit.data.documents import Doc
from judgekit.data.fields import DOC, Source, doc_of
from judgekit.data.forms import Opened, opened
from judgekit.data.outputs import cache_folder
from judgekit.data.records import Record, parse_object
from judgekit.data.streams import Line, packing, temporary
from judgekit.errors import DataError, UsageError

__all__ = ["DiskDocs", "GivenDocs", "fingerprint", "large", "on_disk"]

MEMORY_LIMIT: Final = 8 << 20
"""Bytes of a collection's file above which it stays on disk; compressed files count fourfold."""
_VERSION: Final = 1
_HEADER: Final = 4096
"""Bytes in front of the numbers of an index."""
_BUCKETS: Final = 64
"""Parts in which an index is sorted, so that it is never in memory as a whole."""
_ROWS: Final = 4096
_SAMPLE: Final = 1 << 16
_ABANDONED_S: Final = 86_400


def _files(path: Path) -> list[Path]:
    return sorted(part for part in path.iterdir() if part.is_file()) if path.is_dir() else [path]


def large(path: Path, limit: int | None = None) -> bool:
    """Return whether a collection is to stay on disk."""
    if not (path.is_file() or path.is_dir()):
        return False
    size = sum(part.stat().st_size for part in _files(path))
    packed = path.is_dir() or packing(path) is not None or path.suffix == ".parquet"
    return size * (4 if packed else 1) > (MEMORY_LIMIT if limit is None else limit)


def _hash(doc_id: str) -> int:
    """Return 64 bits of a hash that is the same in every process."""
    return int.from_bytes(hashlib.blake2b(doc_id.encode(errors="replace"), digest_size=8).digest(), "little")


class _Places:
    """The places of docs while they are being collected: hash, offset and line, in buckets by the hash's first bits."""

    def __init__(self, folder: str) -> None:
        self.rows = [(Path(folder, str(bucket)), array("Q")) for bucket in range(_BUCKETS)]

    def add(self, doc_id: str, start: int, line: int) -> None:
        key = _hash(doc_id)
        path, rows = self.rows[key * _BUCKETS >> 64]
        rows.extend((key, start, line))
        if len(rows) >= 3 * _ROWS:
            with path.open("ab") as stream:
                rows.tofile(stream)
            del rows[:]

    def sorted(self) -> Iterator[npt.NDArray[np.uint64]]:
        """Yield the rows by hash and line, a bucket at a time, shape (N, 3)."""
        for path, rows in self.rows:
            written = np.fromfile(path, np.uint64) if path.exists() else np.empty(0, np.uint64)
            found = np.append(written, np.array(rows, np.uint64)).reshape(-1, 3)
            yield found[np.lexsort((found[:, 2], found[:, 0]))]


class DiskDocs:
    """A collection in a file, one doc a line, that is not loaded; see `judgekit.data.readers.read_docs`.

    It is safe to use from several threads. The files are closed when the collection is no longer in use.
    """

    def __init__(self, stream: IO[bytes], hashes: Any, starts: Any, load: Callable[[bytes], Doc]) -> None:
        """Wrap an open file.

        Args:
            stream: the file.
            hashes: the hashes of its doc ids, ascending, shape (N,).
            starts: where their lines start, shape (N,).
            load: turns a line into a doc.
        """
        self._hashes, self._starts = hashes, starts
        self._stream, self._load, self._lock = stream, load, threading.Lock()
        weakref.finalize(self, stream.close)

    def _at(self, start: int) -> Doc:
        with self._lock:
            self._stream.seek(start)
            line = self._stream.readline()
        return self._load(line)

    def _row(self, value: int) -> int | None:
        """Return the first row with a hash."""
        key = np.uint64(value)
        row = int(np.searchsorted(self._hashes, key))
        return row if row < len(self._hashes) and self._hashes[row] == key else None

    def _get(self, doc_id: str) -> Doc:
        value = _hash(doc_id)
        row = self._row(value)
        if row is None:
            raise DataError(f"doc {doc_id!r} is not in the collection")
        while row < len(self._hashes) and int(self._hashes[row]) == value:
            doc = self._at(int(self._starts[row]))
            if doc.doc_id == doc_id:
                return doc
            row += 1
        raise DataError(f"doc {doc_id!r} has moved: its file was changed while in use")

    def get(self, doc_ids: Sequence[str]) -> list[Doc]:
        """Return the documents in the order asked for; an unknown id is a `DataError`."""
        return [self._get(doc_id) for doc_id in doc_ids]

    def __contains__(self, doc_id: object) -> bool:
        """Compare hashes only, without reading: an unknown id passes for known once in 2**64 / len(self) times."""
        return isinstance(doc_id, str) and self._row(_hash(doc_id)) is not None

    def __len__(self) -> int:
        return len(self._hashes)

    def __iter__(self) -> Iterator[Doc]:
        """Read the documents in the order of the file."""
        return map(self._at, np.sort(self._starts).tolist())


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
    key = fingerprint(path, f"{file} {format}")
    name = hashlib.sha256(f"{path.resolve()} {format} {file}".encode()).hexdigest()[:24]
    folder = Path(cache_folder() if index is None else index) / "docs"
    in_place = found.source.format == "jsonl" and not found.form and packing(path) is None
    wanted = {"key": key, "in_place": in_place}
    with ExitStack() as stack:
        try:
            for made in (folder.parent, folder):
                made.mkdir(mode=0o700, parents=True, exist_ok=True)  # as the store's, which makes it otherwise
            probe = temporary(folder / name)
            probe.touch()
            probe.unlink()
        except OSError:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="judgekit-")))
        places, texts = folder / f"{name}.idx", path if in_place else folder / f"{name}.jsonl"
        if _header(places).get("made_from") != wanted or not texts.exists():
            _build(found, places, None if in_place else texts, wanted)
        count = int(_header(places)["docs"])
        numbers = np.asarray(np.memmap(places, np.uint64, "r", _HEADER, (2, count)))  # still mapped
        # Open files outlive their names.
        return DiskDocs(texts.open("rb"), numbers[0], numbers[1], _loader(found.source, path, in_place))


def fingerprint(path: Path, spelled: str) -> str:
    """Return what changes with the file: the size and modification time of its parts, and a sample of their bytes."""
    digest = hashlib.sha256(f"{_VERSION} {spelled}".encode())
    for part in _files(path):
        known = part.stat()
        digest.update(f"{part.name} {known.st_size} {known.st_mtime_ns}".encode())
        with part.open("rb") as stream:
            for start in (0, known.st_size // 2, max(0, known.st_size - _SAMPLE)):
                stream.seek(start)
                digest.update(stream.read(_SAMPLE))
    return digest.hexdigest()


def _header(places: Path) -> dict[str, Any]:
    try:
        with places.open("rb") as stream:
            found = json.loads(stream.read(_HEADER))
        size = _HEADER + 16 * found["docs"]
        return found if isinstance(found, dict) and places.stat().st_size == size else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _loader(source: Source, path: Path, in_place: bool) -> Callable[[bytes], Doc]:
    def load(line: bytes) -> Doc:
        try:
            if not in_place:
                return Doc(**json.loads(line))
            return doc_of(source, Record(0, parse_object(Line(0, 0, line.decode("utf-8-sig")), path)))
        except (DataError, UnicodeDecodeError, ValueError, TypeError) as error:
            raise DataError("was changed while in use", path) from error

    return load


def _build(found: Opened, places: Path, texts: Path | None, made_from: Mapping[str, Any]) -> None:
    """Read a collection once, check it, and write its index (and its texts, where they are to be unpacked)."""
    source = found.source
    assert source.path is not None  # a file's
    partial = [temporary(places), temporary(places.with_suffix(".texts"))]
    for left in places.parent.glob(f".{glob.escape(places.stem)}.*.tmp"):  # of a command that was killed
        if left.stat().st_mtime < time.time() - _ABANDONED_S:
            shutil.rmtree(left) if left.is_dir() else left.unlink()
    with ExitStack() as stack:
        for path in partial:
            stack.callback(path.unlink, missing_ok=True)
        rows = _Places(stack.enter_context(tempfile.TemporaryDirectory(".tmp", f".{places.name}.", places.parent)))
        stream = stack.enter_context(partial[1].open("w+b") if texts else source.path.open("rb"))
        end, count = 0, 0
        for record in found.records:
            doc = doc_of(source, record)
            rows.add(doc.doc_id, end if texts else record.start, record.line)
            if texts:
                end += stream.write(json.dumps(asdict(doc)).encode() + b"\n")
        load = _loader(source, source.path, texts is None)
        with partial[0].open("w+b") as index, tempfile.TemporaryFile(dir=places.parent) as starts:
            index.seek(_HEADER)
            for some in rows.sorted():
                some = _once(some, stream, load, found)
                count += len(some)
                index.write(np.ascontiguousarray(some[:, 0]).tobytes())
                starts.write(np.ascontiguousarray(some[:, 1]).tobytes())
            if not count:
                raise source.nothing("docs")
            starts.seek(0)
            shutil.copyfileobj(starts, index)
            index.seek(0)
            index.write(json.dumps({"made_from": made_from, "docs": count}).encode().ljust(_HEADER))
        if texts:
            stream.close()
            partial[1].replace(texts)
        partial[0].replace(places)


def _once(
    rows: npt.NDArray[np.uint64], stream: IO[bytes] | BufferedIOBase, load: Callable[[bytes], Doc], found: Opened
) -> npt.NDArray[np.uint64]:
    """Return the rows with each doc once.

    Raises:
        DataError: a doc is there twice; in a nested form only if it differs.
    """
    same = rows[1:, 0] == rows[:-1, 0]
    first: dict[str, tuple[int, Doc]] = {}
    again: list[int] = []
    wrong: list[tuple[int, str, int]] = []
    for row in np.flatnonzero(np.append(same, False) | np.append(False, same)).tolist():
        stream.seek(int(rows[row, 1]))
        doc, line = load(stream.readline()), int(rows[row, 2])
        before, known = first.setdefault(doc.doc_id, (line, doc))
        if known is not doc and found.form and known == doc:
            again.append(row)
        elif known is not doc:
            wrong.append((line, doc.doc_id, before))
    if wrong:
        line, doc_id, before = min(wrong)
        if found.form:
            raise found.source.error(Record(line, {}), f"doc {doc_id!r} has a different title or text than before")
        raise found.source.repeated(Record(line, {}), doc_id, before)
    return np.delete(rows, again, axis=0) if again else rows


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
