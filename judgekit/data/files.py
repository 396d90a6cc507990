"""Reading and writing the tables of `judgekit.data.tables`: CSV, JSON and Parquet, a file or a folder of parts.

Whatever is written can be read back unchanged: ids such as ``007``, ``NA`` or ``1e5`` stay strings, floats keep all
their digits, NaN is an empty cell.

Values per run, measure and query as other tools print them are read as scores or as quality. Recognised are the
output of trec_eval (``measure query value``, with ``-q`` or without), of ir_measures (``measure value``, ``query
measure value``, JSON lines) and the leaderboards of TREC Auto-Judge: ``tot`` (``run measure query value``),
``ir_measures`` (``run query measure value``), ``ranking`` (``query Q0 run rank value measure``) and JSON lines. Where
a file does not name its run, the file's name does. A folder is one leaderboard, a file a run.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from judgekit.data.fields import TABULAR
from judgekit.data.forms import form_named, forms, records
from judgekit.data.forms.delimited import CSV, delimiter_of
from judgekit.data.outputs import as_cell, of_cell
from judgekit.data.records import HALF, as_number, kind_of, parquet_file
from judgekit.data.sources import opened, stem
from judgekit.data.streams import given, head, lines, open_atomic, parquet_parts, read_bytes
from judgekit.data.tables import ALL, ANSWERS, NULLS, QUALITY, RATED, SCHEMA_VERSION, SCORES, Table
from judgekit.errors import DataError, UsageError
from judgekit.spec import Spec, form_of

if TYPE_CHECKING:
    import pandas as pd

    from judgekit.data.labelings import Labeling

_VERSION_KEY: Final = b"judgekit.schema_version"

_GUARDED: Final = re.compile(rb"[,\t\n]'[=+@\t\r'-]")
"""A cell that `as_cell` may have made."""

_ROW_GROUP: Final = 1 << 20
"""Rows that Arrow puts into a row group of Parquet: blocks of so many leave no trace in a file."""


def read_table(table: Table, path: str | Path, *, numbered: bool = False) -> pd.DataFrame:
    """Read a table, checked: its columns first, in order, with their dtypes; further columns behind them.

    Args:
        table: what the file should hold, e.g. ``judgekit.data.tables.SCORES``.
        path: CSV, TSV, JSON lines, a JSON array (plain or packed), a Parquet file or a folder of Parquet parts, or what
            other tools print (`other_form`); ``csv(query_id=qid, value=stars):FILE`` names your own columns.
        numbered: give the rows of a text file their lines as index, named ``line``.

    Raises:
        DataError: the file is missing or is not such a table; text files with line, Parquet with row.
        UsageError: there is no such form.
    """
    import pandas as pd

    other = other_form(table, path)
    if other is not None:
        return table.check(other, path)
    spec, text = form_of(path)
    path = given(text)
    own = {**table.columns, **table.optional}
    options = CSV.options if spec.name == "auto" else form_named(spec.name).options
    renamed: dict[str, str] = {}
    for key, value in spec.params:
        if key not in (*own, *options):
            raise UsageError(
                f"format '{spec}': the {table.name} table has no column {key!r} (it has: {', '.join(own)})"
            )
        if key not in options:
            renamed[str(value)] = key
    expected = f"a {table.name} table (columns {', '.join(table.columns)})"
    form, rows = records(path, spec, expected)
    if form == "parquet":
        parts = [table.check(_read_part(part, expected).rename(columns=renamed), part) for part in parquet_parts(path)]
        return pd.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0]
    delimiter = delimiter_of(form, head(path)) if form in ("csv", "tsv") else ""
    if delimiter and not spec.params:
        plain = _read_plain(table, path, delimiter, expected)
        if plain is not None:
            # No cell is quoted, so that each row is a line, below the header's.
            return plain.set_index(pd.RangeIndex(2, len(plain) + 2, name="line")) if numbered else plain
    columns: dict[str, list[Any]] = {}
    numbers: list[int] = []
    for record in rows:
        fields = {renamed.get(name, name): cell for name, cell in record.fields.items()}
        if not numbers:
            table.known(fields, path)
            columns = {name: [] for name in fields}
        numbers.append(record.line)
        for name, cell in fields.items():
            if name not in columns:
                raise DataError(f"has a field {name!r} that earlier records lack", path, record.line)
            if isinstance(cell, str) and HALF.search(cell):
                reason = f"column {name!r}: holds half of a surrogate pair, which is not a character"
                raise DataError(reason, path, record.line)
        for name, cells in columns.items():
            cell = fields.get(name)
            cells.append(of_cell(cell) if form in TABULAR else cell)
    if not numbers:
        first = next(lines(path), None)
        if first is None:
            raise DataError(f"is empty; expected {expected}", path)
        columns = {name: [] for name in next(csv.reader([first.text], delimiter=delimiter or ","))}
    known = table.known(columns, path)
    series = {name: pd.Series(cells, dtype="object" if name in known else None) for name, cells in columns.items()}
    checked = table.check(pd.DataFrame(series), path, numbers)
    return checked.set_index(pd.Index(numbers, name="line")) if numbered and numbers else checked


def _read_plain(table: Table, path: Path, delimiter: str, expected: str) -> pd.DataFrame | None:
    """Read a CSV file without any quotes at full speed; None where the strict reader has to look."""
    from pyarrow import csv as arrow_csv

    data = read_bytes(path, expected)
    header = data[: data.find(b"\n") + 1 or None].decode(errors="replace").rstrip("\r\n").split(delimiter)
    if b'"' in data or b"\0" in data or _GUARDED.search(data) or len(set(header)) < len(header):
        return None
    # In Arrow's own memory: its reading thread may let go of the data after this returns, and data of Python's
    # would abort the process if the program ends just then.
    copied = pa.BufferOutputStream()
    copied.write(data.rstrip(b"\r\n") + b"\n")
    kinds = {**table.columns, **table.optional}
    try:
        columns = arrow_csv.read_csv(
            pa.BufferReader(copied.getvalue()),
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter, quote_char=False, ignore_empty_lines=False),
            convert_options=arrow_csv.ConvertOptions(
                column_types={c: pa.float64() if kinds.get(c) in ("int", "float") else pa.string() for c in header},
                null_values=list(NULLS),
                strings_can_be_null=False,
            ),
        )
        return table.check(columns.to_pandas(), path)
    except (pa.ArrowException, UnicodeDecodeError, DataError):
        return None


def _read_part(part: Path, expected: str) -> pd.DataFrame:
    """Read a Parquet file that no newer version wrote."""
    with parquet_file(part, expected) as file:
        version = int((file.schema_arrow.metadata or {}).get(_VERSION_KEY, SCHEMA_VERSION))
        if version > SCHEMA_VERSION:
            reason = f"was written by a newer judgekit (schema version {version}; this version reads {SCHEMA_VERSION})"
            raise DataError(reason, part)
        frame: pd.DataFrame = file.read().to_pandas(ignore_metadata=True)
    return frame


def check_target(path: str | Path, *, table: bool = False) -> None:
    """Refuse the name of a file to be written, before work is done that would then be lost."""
    path = Path(path)
    if table and path.suffix != ".parquet" and not path.name.removesuffix(".gz").endswith((".csv", ".tsv")):
        raise UsageError(f"{path}: the name of a table file must end in .csv, .tsv (plain or .gz) or .parquet")
    if path.is_dir():
        raise UsageError(f"{path} is a folder: name a file to write")


def write_labels(labeling: Labeling, path: str | Path) -> None:
    """Write a labeling's table as Parquet, piece by piece."""
    _write_parquet(labeling.blocks(rows=_ROW_GROUP), path)


def write_table(frame: pd.DataFrame, path: str | Path, table: Table | None = None) -> None:
    """Write a table as CSV, TSV or Parquet, by the name's ending (``.csv.gz`` is compressed); whole or absent.

    Args:
        frame: the rows; the index is not written.
        path: the file to make; folders on the way are created.
        table: what the rows are, if they are to be checked.

    Raises:
        DataError: the rows are not such a table, or the file cannot be written.
        UsageError: the name ends otherwise.
    """
    import pandas as pd

    path = Path(path)
    check_target(path, table=True)
    if table is not None:
        frame = table.check(frame)
    if path.suffix == ".parquet":
        _write_parquet([frame], path)
        return
    cells, returns = frame.copy(deep=False), False
    for name, dtype in frame.dtypes.items():
        if not pd.api.types.is_numeric_dtype(dtype):
            cells[name] = frame[name].map(as_cell, na_action="ignore")
            returns = returns or bool(cells[name].astype("str").str.contains("\r", regex=False).any())
    with open_atomic(path) as stream:
        cells.to_csv(
            stream,
            mode="wb",
            index=False,
            sep="\t" if path.name.removesuffix(".gz").endswith(".tsv") else ",",
            lineterminator="\n",
            # csv.writer leaves a lone carriage return unquoted, and readers take it for a line end.
            quoting=csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL,
        )


def _write_parquet(frames: Iterable[pd.DataFrame], path: str | Path) -> None:
    """Write frames of the same columns, at least one, one below the other; whole or absent."""
    import pyarrow.parquet as pq

    schema: Any = None
    with ExitStack() as stack:
        stream = stack.enter_context(open_atomic(path))
        for frame in frames:
            try:
                chunk = pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
            except pa.ArrowException as error:
                raise DataError(f"the rows do not fit the table: {error}", path) from error
            if schema is None:
                schema = chunk.schema.with_metadata({_VERSION_KEY: str(SCHEMA_VERSION)})
                writer = stack.enter_context(pq.ParquetWriter(stream, schema))
            writer.write_table(chunk.replace_schema_metadata(schema.metadata))


_EXPECTED: Final = "values by measure and query"
_JSON: Final = ("run", "JSON")
LAYOUTS: Final[Mapping[str, tuple[str, ...]]] = {
    "trec_eval": ("measure", "query_id", "value"),
    "ir_measures": ("query_id", "measure", "value"),
    "means": ("measure", "value"),
    "tot": ("run", "measure", "query_id", "value"),
    "ir_measures_of_runs": ("run", "query_id", "measure", "value"),
    "ranking": ("query_id", "", "run", "", "value", "measure"),
}
"""The columns of each layout of plain text."""
_COUNTS: Final = ("runid", "num_q", "num_ret", "num_rel", "num_rel_ret", "num_nonrel_judged_ret")
_NAMES: Final = {"map": "AP", "ndcg": "nDCG", "recip_rank": "RR", "bpref": "Bpref", "gm_map": "gm_map"}
_CUT: Final = {"P": "P", "recall": "R", "ndcg_cut": "nDCG", "map_cut": "AP", "success": "Success"}
_MEASURE: Final = re.compile(r".+@\d+$|(?:" + "|".join([*_NAMES, *(f"{name}_" for name in _CUT)]) + ")", re.ASCII)


def _spelled(measure: str) -> str:
    """Return trec_eval's name of a measure as this program spells it: ``nDCG@10`` for ``ndcg_cut_10``."""
    match = re.fullmatch(r"([A-Za-z_]+?)_(\d+)", measure)
    if match and match[1] in _CUT:
        return f"{_CUT[match[1]]}@{match[2]}"
    return _NAMES.get(measure, measure)


def other_form(table: Table, source: str | Path) -> pd.DataFrame | None:
    """Return what a file of another form holds of a table: scores, quality or answers; None if it is a table itself."""
    import pandas as pd

    spec, text = form_of(source)
    if table.name == ANSWERS.name and (spec.name == "auto" or (spec.name in forms() and form_named(spec.name).nested)):
        return _answers(source)
    path = given(text)
    if table.name not in (SCORES.name, QUALITY.name) or spec.name not in ("auto", *LAYOUTS) or not path.exists():
        return None
    files = [path]
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith((".", "_")))
    if any(file.suffix == ".parquet" for file in files):
        return None
    layouts = {file: _layout(file, spec.name) for file in files}
    if not layouts or () in layouts.values():
        return None
    rows: list[dict[str, Any]] = []
    for file, layout in layouts.items():
        rows += _values(file, layout)
    if not rows:
        raise DataError("holds no values of measures", path)
    frame = pd.DataFrame(rows)
    if table.name == QUALITY.name:
        return frame.rename(columns={"measure": "metric"})
    named = path.is_dir() or "run" in layouts[path]
    return frame.assign(labeling=stem(path) if named else "scores")


def _answers(source: str | Path) -> pd.DataFrame | None:
    """Return the answers of a nested form, each a text or a number (0 is one), "" where there is none."""
    import pandas as pd

    origin, entries = opened(source, "answer")
    if not origin.form:
        return None
    rows = []
    for record in entries:
        answer = record.fields["answer"]
        if isinstance(answer, list | dict):
            raise origin.error(record, f"the answer must be a text, not {kind_of(answer)}")
        row = {**record.fields, "query_id": origin.get(record, "id"), "answer": "" if answer is None else answer}
        rows.append(row)
    further = [name for name in ("run", *RATED) if any(name in row for row in rows)]
    return pd.DataFrame(rows, columns=["query_id", "answer", *further])


def _layout(path: Path, named: str) -> tuple[str, ...]:
    """Return the columns of a file, or () if it is not of these forms."""
    start = head(path, _EXPECTED).lstrip()
    if start.startswith((b"{", b"[")):
        first = next(records(path, Spec("auto"), _EXPECTED)[1], None)
        keys = {*first.fields} if first else set[str]()
        return _JSON if {"measure", "value"} <= keys and not keys & {"labeling", "run"} else ()
    texts = start.decode(errors="replace").splitlines()
    if len(start) > 60_000:
        texts.pop()  # it may be cut off
    rows = [words for words in map(str.split, texts) if words and words[0] not in _COUNTS]
    if not rows or any(len(words) != len(rows[0]) for words in rows) or "," in rows[0][0]:
        return LAYOUTS.get(named, ())
    if named != "auto":
        return LAYOUTS[named]

    def unlikely(name: str) -> tuple[bool, int]:
        """Return less for a layout whose column of measures looks like measures, or holds fewer different words."""
        words = {row[LAYOUTS[name].index("measure")] for row in rows}
        return not all(map(_MEASURE.match, words)), len(words)

    fitting = sorted((name for name, layout in LAYOUTS.items() if _fits(rows, layout)), key=unlikely)
    if not fitting:
        return ()
    if len(fitting) > 1 and unlikely(fitting[0]) == unlikely(fitting[1]):
        have = " or ".join(f"{name} ({' '.join(LAYOUTS[name])})" for name in fitting)
        raise DataError(f"may be of the form {have}: put one in front of its name, {fitting[0]}:{path.name}", path)
    return LAYOUTS[fitting[0]]


def _fits(rows: list[list[str]], layout: tuple[str, ...]) -> bool:
    """Return whether rows are of a layout; no TREC run or qrels, which look so, is taken for a leaderboard."""
    if len(rows[0]) != len(layout) or all(row[1] == "0" for row in rows):
        return False
    if layout == LAYOUTS["ranking"] and not all(row[1] == "Q0" and row[3] == "0" for row in rows):
        return False
    value, measure = layout.index("value"), layout.index("measure")
    for row in rows:
        # A measure is a word, with @ and a number perhaps; the mean over queries is called all.
        if row[measure] == ALL or math.isfinite(as_number(row[measure])) or not math.isfinite(as_number(row[value])):
            return False
    return True


def _values(path: Path, layout: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Yield run, query, measure and value of each line; a file that does not say it is of its own run, over all."""
    rows: list[tuple[int, Mapping[str, Any]]] = []
    run = stem(path)
    if layout == _JSON:
        rows += ((record.line, record.fields) for record in records(path, Spec("auto"), _EXPECTED)[1])
    else:
        for line in lines(path, _EXPECTED):
            words = line.text.split()
            if words[:1] == ["runid"]:  # trec_eval's, behind the values of its queries
                run = words[-1]
            elif words and words[0] not in _COUNTS:
                if len(words) != len(layout):
                    expected = " ".join(name or "-" for name in layout)
                    reason = f"has {len(words)} columns, expected {expected}: {line.text[:80]!r}"
                    raise DataError(reason, path, line.number)
                rows.append((line.number, dict(zip(layout, words, strict=True))))
    for number, fields in rows:
        own, query = fields.get("run_id", fields.get("run")), fields.get("topic_id", fields.get("query_id"))
        measure, value = fields.get("measure"), fields.get("value")
        if not isinstance(measure, str):
            reason = f"expected an object with a measure, found {measure!r} and the value {value!r}"
            raise DataError(reason, path, number)
        if not math.isfinite(as_number(value)):
            raise DataError(f"the value {value!r} is not a finite number", path, number)
        yield {
            "run": own if isinstance(own, str) else run,
            "query_id": ALL if query is None else str(query),
            "measure": _spelled(measure),
            "value": as_number(value),
        }
