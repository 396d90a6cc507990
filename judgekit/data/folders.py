"""Folders that are one collection (parts of a table, or text files), and which files a walk through a folder skips."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from judgekit.data.outputs import is_results_folder
from judgekit.data.streams import file_error, packing

TEXTS: Final = (".md", ".markdown", ".txt", ".html", ".htm")
_UNPACKED: Final = 4
"""How much larger data is in memory than in a packed file."""


def walk(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder and its subfolders, by name, without hidden ones and results of judgekit."""
    for place, folders, names in os.walk(folder):
        # Results may lie beside the data: read as data, the labels of one run would be input of the next.
        shown = [name for name in folders if not name.startswith((".", "_"))]
        folders[:] = sorted(name for name in shown if not is_results_folder(Path(place, name)))
        yield from (Path(place, name) for name in sorted(names) if not name.startswith((".", "_", "~$")))


def text_files(folder: Path) -> list[Path]:
    """Return the text files in a folder and its subfolders."""
    return [path for path in walk(folder) if path.suffix.lower() in TEXTS]


def size_of(path: Path) -> int:
    """Return the size in bytes of a file, or of a folder that is one table."""
    return sum(part.stat().st_size for part in files_of(path))


def unpacked_size(path: Path, expected: str) -> int:
    """Return about how many bytes of data a file or folder holds, of which nothing may be there: packed ones fourfold.

    Raises:
        DataError: the file cannot be opened, or is none of data, which ``expected`` says for the message.
    """
    try:
        if not (path.is_file() or path.is_dir()):
            return 0
        packed = path.is_dir() or path.suffix in (".parquet", ".xlsx") or packing(path, expected) is not None
        return size_of(path) * (_UNPACKED if packed else 1)
    except OSError as error:
        raise file_error(error, path, expected) from error


def files_of(path: Path) -> list[Path]:
    """Return the files of a folder that is one collection, by name; for a file, the file itself."""
    if not path.is_dir():
        return [path]
    parts = sorted(part for part in path.iterdir() if part.is_file())
    if ".parquet" in (part.suffix for part in parts):
        return parts
    return text_files(path) or parts
