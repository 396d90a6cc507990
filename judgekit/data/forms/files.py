"""``files``: a folder with a file for each question, such as responses of a search engine, named by its id."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from judgekit.data.records import DataRecord, parse_object
from judgekit.data.streams import Beginning, Line, text_of
from judgekit.errors import DataError
from judgekit.registry import DataForm


def _files(folder: Path) -> list[Path]:
    """Return the files of a folder, by name, if all of them hold JSON; else []."""
    files = sorted(path for path in folder.glob("*") if not path.name.startswith("."))
    return files if all(path.suffix == ".json" and path.is_file() for path in files) else []


def _read(folder: Path) -> Iterator[DataRecord]:
    files = _files(folder)
    if not files:
        raise DataError("is not a folder whose files are all JSON, one for each question (q1.json)", folder)
    for file in files:
        yield DataRecord(1, {"query_id": file.stem, **parse_object(Line(1, text_of(file)), file)}, inside=file.name)


def _marks(beginning: Beginning) -> bool:
    return beginning.path.is_dir() and bool(_files(beginning.path))


FILES: Final = DataForm("files", _read, marks=_marks)
