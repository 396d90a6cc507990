"""Opening files for reading and writing: packed ones by content, errors as sentences, writes that are whole or absent.

Every file that is opened for reading inside of `recording_inputs` is noted, whoever opens it: queries, a labeler's
qrels, the labels that are missing beside them, a prompt. So no command has to list its inputs for them to be safe.
Commands call `check_outputs` before they ask for anything; whatever is written later is held to the same rule.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import secrets
import socket
import stat
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from glob import escape
from itertools import product
from os.path import exists, samefile  # False, not an error, for a name that is too long
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, Self, cast

from judgekit.errors import DataError, UsageError, nearest
from judgekit.spec import split_form

BOM: Final = b"\xef\xbb\xbf"
_PACKED: Final = {rb"\x1f\x8b": "gzip", rb"BZh": "bz2", rb"\x28\xb5\x2f\xfd": "zstd"}
"""How packed files begin, as expressions, with the names that Arrow has for the packing."""
_UNPACK: Final = ". Unpack it first"
_TABLE: Final = ". Write its table as Parquet, CSV or JSON lines"
_FOREIGN: Final = {
    rb"PK\x03\x04": ("a zip archive", _UNPACK),
    rb"\xfd7zXZ\x00": ("compressed with xz", _UNPACK),
    rb"\x04\x22\x4d\x18": (
        "compressed with lz4",
        ". Unpack it first; a run of ranx is no text: write ranx.Run.from_file(…).save('run.json')",
    ),
    rb"\x89PNG": ("a picture", ""),
    rb"%PDF": ("a PDF file", ""),
    # Files of Arrow, and its streams, as Hugging Face saves datasets.
    rb"ARROW1|\xff{4}": ("a table of Arrow or Feather", _TABLE),
    rb"\x80[\x02-\x05]": ("a pickle of Python", _TABLE),
    rb"SQLite format 3\0": ("a database of SQLite", _TABLE),
    rb"\x93NUMPY": ("an array of NumPy", _TABLE),
    rb"\xd0\xcf\x11\xe0": ("an Excel file of the old kind", ". Save it as .xlsx, or as CSV (UTF-8)"),
    # With a byte order mark, or two characters of ASCII.
    rb"\xff\xfe|\xfe\xff|[^\0]\0[^\0]\0|\0[^\0]\0[^\0]": (
        "UTF-16 text",
        ". Convert the file: iconv -f UTF-16 -t UTF-8 OLD > NEW",
    ),
}
"""How files begin that are not read: what they are, and what to do."""


_WORDS: Final = re.compile(rb"[^\s,;\"]+")


class Line(NamedTuple):
    """One line of a text file."""

    number: int
    """1-based."""
    text: str


_READ: Final[ContextVar[dict[Path, None] | None]] = ContextVar("_READ", default=None)


@contextmanager
def recording_inputs() -> Iterator[Collection[Path]]:
    """Note the files that are opened for reading inside of the ``with`` block; an inner block adds to the outer one."""
    noted = _READ.get()
    if noted is None:
        noted = {}
    token = _READ.set(noted)
    try:
        yield noted.keys()
    finally:
        _READ.reset(token)


def note_read(path: Path) -> None:
    """Note that a file is read."""
    if (noted := _READ.get()) is not None:
        noted[path] = None


def check_outputs(*paths: Path) -> None:
    """Refuse to write where something was read, also through a link, or into a folder that was read as one table."""
    noted = [read for read in _READ.get() or () if exists(read)]
    for path, read in product(paths, noted):
        if any(samefile(place, read) for place in filter(exists, (path, path.parent))):
            name = "" if path == read else f" ({read})"
            raise UsageError(f"{path} is an input of this command{name} and is never replaced: choose another name")


def file_error(error: OSError, path: Path, expected: str) -> DataError:
    """Return the sentence for what the operating system or an unpacker said about a file."""
    reason = f"cannot be opened: {error.strerror or error}; expected {expected}"
    if isinstance(error, FileNotFoundError):
        split_form(path)  # of an address it says how to download it
        hint = f" Its folder {str(path.parent)!r} does not exist either."
        if path.parent.is_dir():
            hint = nearest(path.name, (entry.name for entry in path.parent.iterdir()))
        reason = f"no such file; expected {expected}.{hint}"
    elif isinstance(error, IsADirectoryError):
        reason = f"is a folder; expected {expected}"
    elif "truncated" in str(error).lower():
        reason = "the compressed data ends early: the file was cut off"
    elif error.errno is None:
        reason = f"the compressed data is damaged: {error}"
    return DataError(reason, path)


_POINTER: Final = b"version https://git-lfs.github.com/spec/"
_POINTER_MOST: Final = 1024
"""Bytes that a pointer of Git LFS has at most."""


def check_file(path: Path, expected: str) -> None:
    """Note that a file is read; refuse a pipe or device before it is opened: opening a pipe waits for its writer."""
    # Files are read more than once, which would lose the beginning of a pipe, that of a shell's <(...) too.
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise DataError(
            f"is a pipe or a device, but files are read more than once; expected {expected}: write it to a file first"
            " (compressed files are read directly)",
            path,
        )
    note_read(path)
    if stat.S_ISREG(mode) and path.stat().st_size < _POINTER_MOST:
        with path.open("rb") as stream:
            if stream.read(len(_POINTER)) == _POINTER:
                raise DataError(
                    "is a pointer of Git LFS, and the file itself is not here; fetch it with `git lfs pull`", path
                )


@contextmanager
def open_binary(path: Path, expected: str = "a file") -> Iterator[BinaryIO]:
    """Open a file for reading bytes, unpacked if it is gzip, bzip2 or zstd (by its first bytes, whatever its name)."""
    try:
        check_file(path, expected)
        packed = packing(path, expected)
        with path.open("rb") as raw:
            if packed is None:
                yield raw
            else:
                import pyarrow as pa

                with pa.CompressedInputStream(pa.PythonFile(raw, "r"), packed) as unpacked:
                    yield cast(BinaryIO, io.BufferedReader(unpacked, 1 << 18))
    except OSError as error:
        raise file_error(error, path, expected) from error


def packing(path: Path, expected: str = "a file") -> str | None:
    """Return how a file is packed, ``gzip``, ``bz2`` or ``zstd``, by its first bytes; None if it is not."""
    with path.open("rb") as raw:
        start = raw.read(16)
    for magic, (kind, cure) in _FOREIGN.items():
        if re.match(magic, start):
            if path.suffix == ".eval":
                cure = f". It is a log of Inspect: inspect log convert {path} --to json --output-dir FOLDER"
            raise DataError(f"is {kind}; expected {expected}, as UTF-8, gzip, bzip2 or zstd{cure}", path)
    return next((kind for magic, kind in _PACKED.items() if re.match(magic, start)), None)


def read_bytes(path: str | Path, expected: str = "a file") -> bytes:
    """Return the content of a file, unpacked, without a UTF-8 byte order mark."""
    with open_binary(Path(path), expected) as stream:
        return stream.read().removeprefix(BOM)


def head(path: Path, expected: str = "a file", size: int = 1 << 16) -> bytes:
    """Return the first ``size`` bytes of a file, unpacked, without a UTF-8 byte order mark."""
    with open_binary(path, expected) as stream:
        return stream.read(size).removeprefix(BOM)


ZIP: Final = b"PK\x03\x04"
PARQUET: Final = b"PAR1"


@dataclass(frozen=True)
class Beginning:
    """How a file or folder begins, which tells its form.

    Attributes:
        path: where it is.
        expected: what it should be, for messages.
        start: its first 64 KiB, unpacked, without blanks in front; of a folder that of its Parquet parts, or b"".
        row: its first line.
        packing: how it is packed, as Arrow calls it; None if it is not.
    """

    path: Path
    expected: str
    start: bytes = b""
    row: str = ""
    packing: str | None = None

    @classmethod
    def of(cls, path: Path, expected: str) -> Self:
        """Look at a file or folder."""
        if path.is_dir():
            return cls(path, expected, PARQUET if any(path.glob("*.parquet")) else b"")
        if path.suffix == ".xlsx" and path.is_file():
            check_file(path, expected)
            with path.open("rb") as stream:
                if stream.read(len(ZIP)) == ZIP:  # which is refused below
                    return cls(path, expected, ZIP)
        start = head(path, expected).lstrip()
        row = start.split(b"\n", 1)[0].decode(errors="replace").rstrip()
        return cls(path, expected, start, row, packing(path, expected))


def lines(path: str | Path, expected: str = "a text file", *, ends: bool = False) -> Iterator[Line]:
    r"""Yield the lines of a UTF-8 file; packing and byte order mark as above."""
    # Only \n ends a line, never the other separators of Unicode. A NUL character is refused with its line.
    path = Path(path)
    with open_binary(path, expected) as stream:
        for number, raw in enumerate(stream, 1):
            try:
                text = raw.decode()
            except UnicodeDecodeError as error:
                reason = f"byte {error.start + 1} of the line is not UTF-8{_encoding_of(raw, error.start)}"
                raise DataError(reason, path, number) from error
            # Databases and C programs end a text there, and the rest would silently be lost.
            if "\0" in text:
                raise DataError("holds a NUL character", path, number)
            if number == 1:
                text = text.removeprefix("\ufeff")
            if not ends:
                text = text.removesuffix("\n").removesuffix("\r")
            yield Line(number, text)


def text_of(path: Path) -> str:
    """Return the content of a UTF-8 file, checked as its lines are."""
    return "".join(line.text for line in lines(path, ends=True))


def _encoding_of(raw: bytes, start: int) -> str:
    """Return what a line in another encoding probably is, and how to convert it."""
    readings = []
    if _BESIDE_EACH_OTHER.search(raw):
        readings = [f"{name} ({language}: {word[:30]!r})" for name, language, word in _readings(raw)]
    if readings:
        cure = "Convert the file from the encoding that you can read: iconv -f NAME -t UTF-8 OLD > NEW"
        return f": it may be {', '.join(readings)}. {cure}"
    # Excel on Windows saves CSV so. Five bytes have no meaning in it, so that not everything passes for it.
    with suppress(UnicodeDecodeError):
        word = next(match[0] for match in _WORDS.finditer(raw) if match.end() > start).decode("cp1252")
        if not word.isprintable():
            return ": it is not a text file"
        read = f": it is probably cp1252 (Windows), in which the word reads {word[:30]!r}"
        return f"{read}. Convert the file: iconv -f CP1252 -t UTF-8 OLD > NEW"
    return "; save the file as UTF-8"


_BESIDE_EACH_OTHER: Final = re.compile(rb"(?:[\x80-\xff][\x40-\xff]?){3}")
"""Letters beyond ASCII one behind the other, which no word of a western language has."""
_ELSEWHERE: Final = (
    ("CP1252", "western", "À-ÖØ-öø-ÿŒœŠšŽžŸ"),
    ("CP932", "Japanese", "\u3040-\u30ff\u4e00-\u9fff"),
    ("EUC-JP", "Japanese", "\u3040-\u30ff\u4e00-\u9fff"),
    ("GB18030", "Chinese", "\u4e00-\u9fff"),
    ("BIG5", "Chinese", "\u4e00-\u9fff"),
    ("CP949", "Korean", "\uac00-\ud7a3"),
    ("CP1251", "Cyrillic", "\u0400-\u045f"),
    ("CP1253", "Greek", "\u0386-\u03ce"),
)


def _readings(raw: bytes) -> Iterator[tuple[str, str, str]]:
    """Yield the encodings in which all that is not ASCII is of their script, the language, and the first such word."""
    for name, language, letters in _ELSEWHERE:
        with suppress(UnicodeDecodeError):
            words = re.findall(r"[^\x00-\x7f]+", raw.decode(name))
            # Marks of East Asia stand beside the letters of each script.
            if all(re.fullmatch(f"[{letters}\u3000-\u303f\uff00-\uff65]+", word) for word in words):
                yield name, language, words[0]


def parquet_parts(path: Path) -> list[Path]:
    """Return the Parquet files of a path: itself, or the parts of a folder in the order of their names."""
    if not path.is_dir():
        return [path]
    note_read(path)
    parts = sorted(p for p in path.glob("*.parquet") if not p.name.startswith((".", "_")))
    if not parts:
        raise DataError("is a folder without Parquet parts (*.parquet): give a file", path)
    return parts


def temporary(path: Path) -> Path:
    """Return a fresh hidden name beside ``path``, for what is renamed to ``path`` once it is whole.

    What killed processes left under such a name is deleted.
    """
    name, here = path.name[:200], f"{zlib.crc32(socket.gethostname().encode()):08x}"
    for left in path.parent.glob(f".{escape(name)}.*.tmp"):
        # A folder may be shared with other machines, whose processes cannot be looked up.
        whose = re.fullmatch(r"([0-9a-f]{8})-(\d+)-[0-9a-f]{8}\.tmp", left.name[len(name) + 2 :])
        if whose and whose[1] == here and has_ended(int(whose[2])):
            left.unlink(missing_ok=True)
    return path.with_name(f".{name}.{here}-{os.getpid()}-{secrets.token_hex(4)}.tmp")


def has_ended(process: int) -> bool:
    """Return whether a process of this machine has ended; on Windows that cannot be asked, so that it never has."""
    if os.name != "posix":
        return False
    try:
        os.kill(process, 0)
    except OSError as problem:  # another user's may not be asked
        return isinstance(problem, ProcessLookupError)
    return False


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
    """Open a file for writing bytes that appears under its name only once it is whole."""
    # They go to a hidden file beside it, flushed and renamed at the end; an exception leaves an older file as it was. A
    # link is followed.
    target = Path(path)
    check_outputs(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_symlink() and (target.is_file() or not target.exists()):
            target = target.resolve()
        if target.is_dir():
            raise DataError("is a folder: name a file to write", path)
        # A rename would put a file in the place of /dev/stdout or /dev/null, where the user may do so.
        if target.exists() and not target.is_file():
            raise DataError("is a pipe or a device: name a file to write", path)
        partial = temporary(target)
        try:
            with partial.open("xb") as stream:
                # Without a time stamp, so that equal content makes equal files.
                is_packed = target.suffix == ".gz"
                with gzip.GzipFile("", "wb", fileobj=stream, mtime=0) if is_packed else nullcontext(stream) as packed:
                    yield cast(BinaryIO, packed)
                stream.flush()
                os.fsync(stream.fileno())
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
        sync_folder(target.parent)
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror or error}", path) from error


def write_atomic(path: str | Path, content: str | bytes) -> None:
    """Write a file that is whole or absent; text as UTF-8 with the line ends it has."""
    if isinstance(content, str):
        content = content.encode()
    with open_atomic(path) as stream:
        stream.write(content)
