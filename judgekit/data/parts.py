"""Parquet tables: one file, or a folder of parts that together are one table."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from judgekit.data.outputs import check_outputs, note_read
from judgekit.data.streams import check_file, file_error, sync_folder, temporary
from judgekit.data.tables import SCHEMA_VERSION, Table
from judgekit.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TableWriter", "parquet_parts", "read_parts"]

_VERSION_KEY: Final = b"judgekit.schema_version"
_PART: Final = re.compile(r"part-\d{5,}\.parquet")


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
        raise DataError("is a folder without Parquet parts (*.parquet)", path)
    return parts


def read_parts(table: Table, path: Path, expected: str) -> pd.DataFrame:
    """Read and check a table from a Parquet file or a folder of parts.

    Raises:
        DataError: a part is unreadable, no such table, or written by a newer version; it is named.
    """
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    frames: list[pd.DataFrame] = []
    for part in parquet_parts(path):
        try:
            check_file(part, expected)
            with pq.ParquetFile(part) as file:  # read_table() would take a k=v in the path for a column
                found = file.read()
        except pa.ArrowException as error:
            raise DataError(f"is not a readable Parquet file ({error}); expected {expected}", part) from error
        except OSError as error:
            raise file_error(error, part, expected) from error
        version = int((found.schema.metadata or {}).get(_VERSION_KEY, SCHEMA_VERSION))
        if version > SCHEMA_VERSION:
            reason = f"was written by a newer judgekit (schema version {version}, this one knows {SCHEMA_VERSION})"
            raise DataError(reason, part)
        frames.append(table.check(found.to_pandas(ignore_metadata=True), part))
    return pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0]


class TableWriter:
    """Writes a table chunk by chunk as Parquet; the result is whole or absent.

    A table of up to ``rows_per_part`` rows becomes one file, a longer one a folder of parts of that name; the readers
    here and pandas read both. Use it as a context manager: after an exception nothing is left behind, and an older
    table stays as it was::

        with TableWriter(SCORES, "scores.parquet") as writer:
            for frame in chunks:
                writer.write(frame)

    Attributes:
        rows: how many rows were written so far.
    """

    def __init__(self, table: Table | None, path: str | Path, *, rows_per_part: int = 5_000_000) -> None:
        """Prepare to write.

        Args:
            table: what each chunk is checked against, if anything.
            path: the file or folder to make.
            rows_per_part: rows after which a new part begins.
        """
        self.rows = 0
        self._table = table
        self._path = Path(path).resolve() if Path(path).is_symlink() else Path(path)
        self._rows_per_part = rows_per_part
        self._folder = temporary(self._path)
        self._parts: list[Path] = []
        self._schema: Any = None
        self._writer: Any = None
        self._in_part = 0

    def __enter__(self) -> Self:
        check_outputs(self._path)
        if self._path.is_dir() and not all(_PART.fullmatch(p.name) for p in self._path.iterdir()):
            raise DataError("is a folder that holds more than the parts of a table; it is not replaced", self._path)
        try:
            self._folder.mkdir(parents=True)
        except OSError as error:
            raise self._unwritable(error) from error
        return self

    def write(self, frame: pd.DataFrame) -> None:
        """Append rows.

        Raises:
            DataError: the chunk is no such table, differs in columns from the first one, or cannot be written.
        """
        import pyarrow as pa

        try:
            frame = self._table.check(frame) if self._table else frame
            chunk = pa.Table.from_pandas(frame, schema=self._schema, preserve_index=False)
        except (pa.ArrowException, KeyError) as error:
            raise DataError(f"the rows do not fit the table: {error}", self._path) from error
        if self._schema is None:
            self._schema = chunk.schema.with_metadata({_VERSION_KEY: str(SCHEMA_VERSION)})
        elif set(map(str, frame.columns)) != set(self._schema.names):
            raise DataError(f"the rows have other columns than earlier ones: {list(frame.columns)}", self._path)
        if self._parts and not chunk.num_rows:
            return
        try:
            self._append(chunk.replace_schema_metadata(self._schema.metadata))
        except OSError as error:
            raise self._unwritable(error) from error

    def _append(self, chunk: Any) -> None:
        import pyarrow.parquet as pq

        start = 0
        while True:
            if self._writer is None:
                self._parts.append(self._folder / f"part-{len(self._parts):05}.parquet")
                self._writer = pq.ParquetWriter(self._parts[-1], self._schema)
                self._in_part = 0
            rows = min(chunk.num_rows - start, self._rows_per_part - self._in_part)
            self._writer.write_table(chunk.slice(start, rows))
            start += rows
            self._in_part += rows
            self.rows += rows
            if self._in_part >= self._rows_per_part:
                self._end_part()
            if start >= chunk.num_rows:
                return

    def _end_part(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            with self._parts[-1].open("rb+") as file:
                os.fsync(file.fileno())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                if self._schema is None and self._table is not None:
                    self.write(self._table.empty())
                self._end_part()
                if self._parts:
                    self._publish()
        except OSError as problem:
            raise self._unwritable(problem) from problem
        finally:
            if self._writer is not None:
                self._writer.close()
            shutil.rmtree(self._folder, ignore_errors=True)

    def _publish(self) -> None:
        """Put the finished part or folder under its name; what was there before is moved aside, then removed."""
        made = self._parts[0] if len(self._parts) == 1 else self._folder
        aside = temporary(self._path)
        if self._path.is_dir() or (self._path.exists() and made.is_dir()):
            self._path.rename(aside)
        sync_folder(self._folder)
        made.replace(self._path)
        sync_folder(self._path.parent)
        if aside.is_dir():
            shutil.rmtree(aside)
        else:
            aside.unlink(missing_ok=True)

    def _unwritable(self, error: OSError) -> DataError:
        return DataError(f"cannot be written: {error.strerror or error}", self._path)
