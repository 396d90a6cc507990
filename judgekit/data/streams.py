"""Opening files for reading and writing: gzip by content, errors as sentences, writes that are whole or absent."""

from __future__ import annotations

import gzip
import io
import os
import secrets
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, cast

from judgekit.data.outputs import check_outputs, note_read
from judgekit.errors import DataError, nearest

__all__ = [
    "Line",
    "check_file",
    "file_error",
    "head",
    "is_gzip",
    "is_json",
    "lines",
    "open_atomic",
    "open_binary",
    "open_text",
    "read_bytes",
    "stem",
    "sync_folder",
    "temporary",
    "write_atomic",
]

_BOM: Final = b"\xef\xbb\xbf"
_ENDINGS: Final = (".trec", ".run", ".txt", ".qrels", ".qrel", ".tsv", ".csv", ".parquet", ".jsonl", ".json")
_FOREIGN: Final = {
    b"PK\x03\x04": "a zip archive",
    b"\x28\xb5\x2f\xfd": "compressed with zstd",
    b"\xfd7zXZ\x00": "compressed with xz",
    b"BZh": "compressed with bzip2",
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


def _missing(path: Path, expected: str) -> DataError:
    hint = ""
    folder = path.parent
    if str(path) == "-":
        hint = " '-' does not stand for standard input: files are read more than once. Write it to a file first."
    elif not folder.is_dir():
        slashed = Path(str(path).replace("\\", "/"))
        hint = (
            f" Did you mean {str(slashed)!r}?" if slashed.exists() else f" There is no folder {str(folder)!r} either."
        )
    elif "\\" in path.name and Path(str(path).replace("\\", "/")).exists():
        hint = f" Did you mean {str(path).replace(chr(92), '/')!r}?"
    else:
        hint = nearest(path.name, (entry.name for entry in folder.iterdir()))
    return DataError(f"there is no such file; expected {expected}.{hint}", path)


def file_error(error: OSError | EOFError | zlib.error, path: Path, expected: str) -> DataError:
    """Return the sentence for what the operating system or gzip said about a file."""
    if isinstance(error, FileNotFoundError):
        return _missing(path, expected)
    if isinstance(error, IsADirectoryError):
        return DataError(f"is a folder; expected {expected}", path)
    if isinstance(error, EOFError):
        return DataError("the gzip data ends early: the file was cut off", path)
    if isinstance(error, gzip.BadGzipFile | zlib.error):
        return DataError(f"the gzip data is damaged: {error}", path)
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
            f"is {kind}, and files are read more than once; expected {expected}: write it to a file first"
            " (gzip is read directly)",
            path,
        )
    note_read(path)


@contextmanager
def open_binary(path: str | Path, expected: str = "a file") -> Iterator[BinaryIO]:
    """Open a file for reading bytes, decompressed if it is gzip (by its first bytes, whatever its name).

    Args:
        path: the file.
        expected: what it should be, for the error message: ``"a run file"``.

    Raises:
        DataError: the file is missing, a folder, a pipe, unreadable, cut off or damaged; also while it is being read
            inside of the ``with`` block.
    """
    path = Path(path)
    try:
        check_file(path, expected)
        with path.open("rb") as raw:
            magic = raw.peek(6)[:6]
            for start, kind in _FOREIGN.items():
                if magic.startswith(start):
                    raise DataError(f"is {kind}; expected {expected}, as UTF-8 or gzip", path)
            if magic.startswith(b"\x1f\x8b"):
                with gzip.open(raw) as unpacked:
                    yield cast(BinaryIO, io.BufferedReader(unpacked, 1 << 18))
            else:
                yield raw
    except (OSError, EOFError, zlib.error) as error:
        raise file_error(error, path, expected) from error


def is_gzip(path: str | Path) -> bool:
    """Return whether a file is gzip, by its first bytes."""
    with Path(path).open("rb") as stream:
        return stream.read(2) == b"\x1f\x8b"


def read_bytes(path: str | Path, expected: str = "a file") -> bytes:
    """Return the content of a file, decompressed if it is gzip, without a UTF-8 byte order mark."""
    with open_binary(path, expected) as stream:
        return stream.read().removeprefix(_BOM)


def head(path: str | Path, expected: str = "a file", size: int = 1 << 16) -> bytes:
    """Return the first ``size`` bytes of a file, decompressed, without a UTF-8 byte order mark."""
    with open_binary(path, expected) as stream:
        return stream.read(size).removeprefix(_BOM)


def is_json(path: str | Path, expected: str = "a file") -> bool:
    """Return whether a file begins as JSON or JSON lines do."""
    return head(path, expected, 4096).lstrip()[:1] in (b"[", b"{")


@contextmanager
def open_text(path: str | Path, expected: str = "a text file") -> Iterator[io.TextIOWrapper]:
    """Open a UTF-8 file for reading text, decompressed if it is gzip; a byte order mark is dropped.

    Line ends are kept as they are. For line numbers in errors use `lines`.

    Raises:
        DataError: as for `open_binary`, or the bytes are not UTF-8.
    """
    with open_binary(path, expected) as stream:
        try:
            yield io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        except UnicodeDecodeError as error:
            raise DataError(f"is not UTF-8 text: {error.reason}", path) from error


def lines(path: str | Path, expected: str = "a text file", *, ends: bool = False) -> Iterator[Line]:
    r"""Yield the lines of a UTF-8 file; gzip and byte order mark as above.

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


def stem(path: str | Path) -> str:
    """Return a file's name without the endings that say what it is: ``bm25`` for ``runs/bm25.trec.gz``."""
    name = Path(path).name.removesuffix(".gz")
    ending = next((e for e in _ENDINGS if name.endswith(e) and name != e), "")
    return name.removesuffix(ending)


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
    time stamp, so that equal content gives equal files.

    Raises:
        DataError: the file cannot be written.
        UsageError: it is an input of the command, see `judgekit.data.outputs`.
    """
    target = Path(path)
    check_outputs(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_symlink():
            target = target.resolve()
        if target.is_dir():
            raise DataError("is a folder; a file was to be written there", path)
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
