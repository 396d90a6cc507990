"""``files``: a folder of objects, each in a file named by its id: a search engine's responses by question, or docs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from judgekit.data.fields import DOC
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
        raise DataError("is not a folder whose files are all JSON, one for each question or doc (q1.json)", folder)
    for file in files:
        held = parse_object(Line(1, text_of(file)), file)
        # A doc keeps an id of its own.
        named = {"query_id": file.stem} if {*DOC["id"]} & {*held} else {"query_id": file.stem, "id": file.stem}
        yield DataRecord(1, {**named, **held}, inside=file.name)


def _marks(beginning: Beginning) -> bool:
    return beginning.path.is_dir() and bool(_files(beginning.path))


FILES: Final = DataForm("files", _read, marks=_marks)
