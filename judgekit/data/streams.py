"""Opening files for reading and writing: packed ones by content, errors as sentences, writes that are whole or absent.

``-`` is standard input. It is copied to a temporary file once, because files are read more than once.
"""

from __future__ import annotations

import bz2
import gzip
import io
import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, cast

from judgekit.data.outputs import check_outputs, note_read
from judgekit.errors import DataError, nearest

__all__ = [
    "Line",
    "check_file",
    "file_error",
    "files_of",
    "given",
    "head",
    "is_json",
    "lines",
    "open_atomic",
    "open_binary",
    "packing",
    "parquet_parts",
    "read_bytes",
    "stem",
    "sync_folder",
    "temporary",
    "write_atomic",
]

_BOM: Final = b"\xef\xbb\xbf"
_PACKED: Final = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
"""How packed files begin, with the names that Arrow has for the packing."""
_ENDINGS: Final = (".trec", ".run", ".txt", ".qrels", ".qrel", ".tsv", ".csv", ".parquet", ".jsonl", ".json", ".eval")
_PACKED_ENDINGS: Final = (".gz", ".bz2", ".zst", ".zstd")
_FOREIGN: Final = {
    b"PK\x03\x04": "a zip archive",
    b"\xfd7zXZ\x00": "compressed with xz",
    b"\x04\x22\x4d\x18": "compressed with lz4",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}


class Line(NamedTuple):
    """One line of a text file."""

    number: int
    """1-based."""
    start: int
    """Offset of its first byte in the (decompressed) file."""
    text: str


@cache
def _standard_input() -> Path:
    """Copy standard input to a file that disappears with the process; it can be read only once."""
    if sys.stdin is None:
        raise DataError("standard input ('-') is closed")
    folder = tempfile.TemporaryDirectory(prefix="judgekit-")
    path = Path(folder.name, "stdin")
    _KEPT.append(folder)
    with path.open("wb") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
    return path


_KEPT: Final[list[tempfile.TemporaryDirectory[str]]] = []


def given(path: str | Path) -> Path:
    """Return the file that a path stands for: itself, or what came in through standard input for ``-``."""
    return _standard_input() if str(path) == "-" else Path(path)


def _missing(path: Path, expected: str) -> DataError:
    slashed = Path(str(path).replace("\\", "/"))
    if slashed != path and slashed.exists():
        hint = f" Did you mean {str(slashed)!r}?"
    elif not path.parent.is_dir():
        hint = f" Its folder {str(path.parent)!r} does not exist either."
    else:
        hint = nearest(path.name, (entry.name for entry in path.parent.iterdir()))
    return DataError(f"no such file; expected {expected}.{hint}", path)


def file_error(error: OSError, path: Path, expected: str) -> DataError:
    """Return the sentence for what the operating system or an unpacker said about a file."""
    if isinstance(error, FileNotFoundError):
        return _missing(path, expected)
    if isinstance(error, IsADirectoryError):
        return DataError(f"is a folder; expected {expected}", path)
    if "truncated" in str(error).lower():
        return DataError("the compressed data ends early: the file was cut off", path)
    if error.errno is None:
        return DataError(f"the compressed data is damaged: {error}", path)
    return DataError(f"cannot be opened: {error.strerror or error}; expected {expected}", path)


def check_file(path: Path, expected: str) -> None:
    """Note that a file is read; refuse a pipe or device before it is opened: opening a pipe waits for its writer.

    Files are read more than once, which would silently lose the beginning of a pipe; that of a shell's ``<(...)`` too.

    Raises:
        OSError: there is nothing of that name.
        DataError: it is a pipe, a device or a socket.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        kind = "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
        raise DataError(
            f"is {kind}, but files are read more than once; expected {expected}: write it to a file first"
            " (compressed files are read directly), or send it to standard input and give -",
            path,
        )
    note_read(path)


@contextmanager
def open_binary(path: str | Path, expected: str = "a file") -> Iterator[BinaryIO]:
    """Open a file for reading bytes, unpacked if it is gzip, bzip2 or zstd (by its first bytes, whatever its name).

    Args:
        path: the file.
        expected: what it should be, for the error message: ``"a run file"``.

    Raises:
        DataError: the file is missing, a folder, a pipe, unreadable, cut off or damaged; also while it is being read
            inside of the ``with`` block.
    """
    path = given(path)
    try:
        check_file(path, expected)
        with path.open("rb") as raw:
            magic = raw.peek(6)[:6]
            for start, kind in _FOREIGN.items():
                if magic.startswith(start):
                    raise DataError(f"is {kind}; expected {expected}, as UTF-8, gzip, bzip2 or zstd", path)
            packed = _packing(magic)
            if packed is None:
                yield raw
            else:
                import pyarrow as pa

                with pa.CompressedInputStream(pa.PythonFile(raw, "r"), packed) as unpacked:
                    yield cast(BinaryIO, io.BufferedReader(unpacked, 1 << 18))
    except OSError as error:
        raise file_error(error, path, expected) from error


def _packing(start: bytes) -> str | None:
    return next((name for magic, name in _PACKED.items() if start.startswith(magic)), None)


def packing(path: Path) -> str | None:
    """Return how a file is packed, ``gzip``, ``bz2`` or ``zstd``, by its first bytes; None if it is not."""
    with path.open("rb") as stream:
        return _packing(stream.read(4))


def read_bytes(path: str | Path, expected: str = "a file") -> bytes:
    """Return the content of a file, unpacked, without a UTF-8 byte order mark."""
    with open_binary(path, expected) as stream:
        return stream.read().removeprefix(_BOM)


def head(path: str | Path, expected: str = "a file", size: int = 1 << 16) -> bytes:
    """Return the first ``size`` bytes of a file, unpacked, without a UTF-8 byte order mark."""
    with open_binary(path, expected) as stream:
        return stream.read(size).removeprefix(_BOM)


def is_json(path: str | Path, expected: str = "a file") -> bool:
    """Return whether a file begins as JSON or JSON lines do."""
    return head(path, expected, 4096).lstrip()[:1] in (b"[", b"{")


def lines(path: str | Path, expected: str = "a text file", *, ends: bool = False) -> Iterator[Line]:
    r"""Yield the lines of a UTF-8 file; packing and byte order mark as above.

    Only ``\n`` ends a line, never the other separators of Unicode. Empty lines are yielded. Line ends (``\n`` or
    ``\r\n``) are kept with ``ends``, else dropped.

    Raises:
        DataError: as for `open_binary`; a line is not UTF-8 or holds a NUL character (with its number).
    """
    with open_binary(path, expected) as stream:
        start = 0
        for number, raw in enumerate(stream, 1):
            try:
                text = (raw.removeprefix(_BOM) if number == 1 else raw).decode()
            except UnicodeDecodeError as error:
                reason = f"byte {error.start + 1} of the line is not UTF-8 ({error.reason})"
                raise DataError(f"{reason}; save the file as UTF-8", path, number) from error
            if "\0" in text:
                raise DataError("holds a NUL character", path, number)
            yield Line(number, start, text if ends else text.removesuffix("\n").removesuffix("\r"))
            start += len(raw)


def files_of(path: Path) -> list[Path]:
    """Return the files of a folder in the order of their names; of a file, itself."""
    return sorted(part for part in path.iterdir() if part.is_file()) if path.is_dir() else [path]


def parquet_parts(path: Path) -> list[Path]:
    """Return the Parquet files of a path: itself, or the parts of a folder in the order of their names.

    Raises:
        DataError: a folder that holds no ``.parquet`` file.
    """
    if not path.is_dir():
        return [path]
    note_read(path)
    parts = sorted(p for p in path.glob("*.parquet") if not p.name.startswith((".", "_")))
    if not parts:
        raise DataError("is a folder without Parquet parts (*.parquet): give a file", path)
    return parts


def stem(path: str | Path) -> str:
    """Return a file's name without the endings that say what it is: ``bm25`` for ``runs/bm25.trec.gz``."""
    name = Path(path).name
    for endings in (_PACKED_ENDINGS, _ENDINGS):
        name = name.removesuffix(next((e for e in endings if name.endswith(e) and name != e), ""))
    return name


def temporary(path: Path) -> Path:
    """Return a fresh hidden name beside ``path``, for what is renamed to ``path`` once it is whole."""
    return path.with_name(f".{path.name[:200]}.{os.getpid()}-{secrets.token_hex(4)}.tmp")


def sync_folder(folder: Path) -> None:
    """Make a rename inside ``folder`` durable, where the platform can."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def open_atomic(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for writing bytes that appears under its name only once it is whole.

    The bytes go to a hidden file beside it, which is flushed to disk and renamed at the end of the ``with`` block;
    after an exception it is removed and an older file stays as it was. Folders on the way are created, a symbolic
    link is followed, a device or pipe is written directly. A name that ends in ``.gz`` is compressed, without a
    time stamp, so that equal content gives equal files; so is one in ``.bz2``.

    Raises:
        DataError: the file cannot be written.
        UsageError: it is an input of the command, see `judgekit.data.outputs`.
    """
    target = Path(path)
    check_outputs(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_symlink() and (target.is_file() or not target.exists()):
            target = target.resolve()
        if target.is_dir():
            raise DataError("is a folder: name a file to write", path)
        if target.exists() and not target.is_file():
            with target.open("wb") as stream:
                yield stream
            return
        partial, whole = temporary(target), False
        try:
            with partial.open("xb") as stream:
                if target.suffix == ".gz":
                    with gzip.GzipFile("", "wb", fileobj=stream, mtime=0) as packed:
                        yield cast(BinaryIO, packed)
                elif target.suffix == ".bz2":
                    with bz2.BZ2File(stream, "wb") as packed:
                        yield cast(BinaryIO, packed)
                else:
                    yield stream
                stream.flush()
                os.fsync(stream.fileno())
            partial.replace(target)
            whole = True
        finally:
            if not whole:
                partial.unlink(missing_ok=True)
        sync_folder(target.parent)
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror or error}", path) from error


def write_atomic(path: str | Path, content: str | bytes) -> None:
    """Write a file that is whole or absent; text as UTF-8 with the line ends it has. See `open_atomic`."""
    with open_atomic(path) as stream:
        stream.write(content.encode() if isinstance(content, str) else content)
