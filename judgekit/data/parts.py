"""Runs and labels in partitions of their queries, on disk: what is larger than memory is worked on part by part.

All rows of a query are in one part, in the order in which they were read. A Parquet file, or a folder of them, whose
columns are ``query_id, doc_id, score`` (``relevance`` in labels) streams through; everything else is read as a whole
first, by the reader for it.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from judgekit.data.columns import numbers, run_lengths, strings
from judgekit.data.labelings import Labeling, Scale, check_grades
from judgekit.data.ordering import Ties
from judgekit.data.outputs import note_read
from judgekit.data.runs import Run
from judgekit.data.streams import check_file, parquet_parts
from judgekit.data.tables import LABELS
from judgekit.data.trec import read_qrels, read_run
from judgekit.errors import DataError

__all__ = ["Parts", "count_rows"]

_BATCH: Final = 1 << 18
_IDS: Final = ("query_id", "doc_id")


def count_rows(path: Path) -> int | None:
    """Return how many rows a run in Parquet has that can be streamed, None of anything else."""
    found = _files(path, "score")
    if found is None:
        return None
    import pyarrow.parquet as pq

    return sum(int(pq.read_metadata(file).num_rows) for file in found)


def _files(path: Path, value: str) -> list[Path] | None:
    """Return the files of a table whose columns are as they should be, None of anything else."""
    if not path.exists() or (path.is_file() and path.suffix != ".parquet"):
        return None
    # Scoring small files of other forms takes a tenth less without it.
    import pyarrow.parquet as pq

    try:
        files = parquet_parts(path)
        schemas = [pq.read_schema(file) for file in files]
    except (DataError, OSError, pa.ArrowException):
        return None
    wanted = {*_IDS, value}
    if not all(wanted <= set(schema.names) for schema in schemas):
        return None
    return files if all(_is_text(schema.field(name).type) for schema in schemas for name in _IDS) else None


def _is_text(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


@dataclass
class Parts:
    """Runs and labels in so many parts, written into a folder.

    Attributes:
        folder: where the parts are kept.
        count: how many there are.
    """

    folder: Path
    count: int

    def add_run(self, path: Path, name: str, ties: Ties) -> None:
        """Divide a run.

        Raises:
            DataError: as for `judgekit.data.trec.read_run`, but for what only shows within a part.
        """
        files = _files(path, "score")
        tables = [_plain(read_run(path, name, ties).frame())] if files is None else _stream(files, (*_IDS, "score"))
        self._divide(f"run {name}", tables)

    def add_labels(self, path: Path, name: str, scale: Scale | None) -> Scale:
        """Divide labels; return their scale, by the largest grade seen where it is not declared.

        Raises:
            DataError: as for `judgekit.data.trec.read_qrels`, but for what only shows within a part.
        """
        files = _files(path, "relevance")
        if files is None:
            whole = read_qrels(path, name, scale)
            self._divide(f"labels {name}", (_plain(block) for block in whole.blocks()))
            return whole.scale
        low, high = math.inf, -math.inf

        def seen(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
            nonlocal low, high
            for table in tables:
                values = table["relevance"].drop_null().to_numpy()
                values = values[~np.isnan(values)]
                if scale is None:
                    check_grades(values, path)
                low, high = min(low, values.min(initial=low)), max(high, values.max(initial=high))
                yield table

        self._divide(f"labels {name}", seen(_stream(files, (*LABELS.columns, *LABELS.optional))))
        return scale or Scale.of_grades(np.array([low, high] if low <= high else [], np.float64))

    def run(self, part: int, name: str, ties: Ties) -> Run:
        """Return a run in one part.

        Raises:
            DataError: as for `Run`.
        """
        found = self._table(f"run {name}", part)
        queries, docs = (strings(found[column]) for column in _IDS)
        return Run.from_columns(name, run_lengths(queries), docs, numbers(found["score"], np.float64), ties=ties)

    def labels(self, part: int, name: str, scale: Scale, *, declared: bool) -> Labeling:
        """Return labels in one part.

        Raises:
            DataError: as for `Labeling`.
        """
        found = self._table(f"labels {name}", part)
        if "status" not in found.column_names:
            found = found.append_column("status", pa.array(np.full(len(found), "ok", object), pa.string()))
        labeling = Labeling.from_table(name, scale, found)
        labeling.declared = declared
        return labeling

    def _divide(self, what: str, tables: Iterable[pa.Table]) -> None:
        with ExitStack() as opened:
            writers: list[Any] = []
            for table in tables:
                for part in range(0 if writers else self.count):
                    file = opened.enter_context(pa.OSFile(str(self._path(what, part)), "wb"))
                    writers.append(opened.enter_context(pa.ipc.new_stream(file, table.schema)))
                coded = pc.dictionary_encode(table["query_id"].combine_chunks())
                places = [zlib.crc32(query.encode()) % self.count for query in coded.dictionary.to_pylist()]
                place = np.array(places, np.int16)[numbers(coded.indices, np.int32)]
                ordered = table.take(pa.array(np.argsort(place, kind="stable")))
                ends = np.cumsum(np.bincount(place, minlength=self.count)).tolist()
                for writer, start, end in zip(writers, [0, *ends], ends, strict=False):
                    if end > start:
                        writer.write_table(ordered.slice(start, end - start))
            if not writers:
                raise DataError(f"{what}: holds no rows")

    def _table(self, what: str, part: int) -> pa.Table:
        with pa.OSFile(str(self._path(what, part)), "rb") as file:
            return pa.ipc.open_stream(file).read_all().combine_chunks()

    def _path(self, what: str, part: int) -> Path:
        return self.folder / f"{zlib.crc32(what.encode()):08x}-{part}.arrow"


def _plain(frame: Any) -> pa.Table:
    return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()


def _stream(files: list[Path], names: tuple[str, ...]) -> Iterator[pa.Table]:
    """Yield a table in pieces, ids as plain strings and numbers as 64-bit floats.

    Raises:
        DataError: an id is missing, or a file cannot be read.
    """
    import pyarrow.parquet as pq

    for path in files:
        note_read(path)
        check_file(path, f"a table {', '.join(names[:3])}")
        try:
            with pq.ParquetFile(path) as file:
                known = [name for name in names if name in file.schema_arrow.names]
                schema = pa.schema([(name, _kind(name)) for name in known])
                for batch in file.iter_batches(_BATCH, columns=known):
                    table = pa.Table.from_batches([batch]).select(known).cast(schema)
                    empty = [name for name in (*_IDS, "score") if name in known and table[name].null_count]
                    if empty:
                        raise DataError(f"a {empty[0]} is missing (null)", path)
                    yield table
        except pa.ArrowException as error:
            raise DataError(f"is not a readable table {', '.join(names[:3])} ({error})", path) from error


def _kind(name: str) -> pa.DataType:
    number = name == "score" or {**LABELS.columns, **LABELS.optional}.get(name) == "float"
    return pa.float64() if number else pa.string()
