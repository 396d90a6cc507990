"""Tables of scores by query: judgekit's own, those of trec_eval and PyTerrier, and Auto-Judge's five formats."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from judgekit.data.files import column_names, read_table
from judgekit.data.records import NUMBER
from judgekit.data.sources import stem
from judgekit.data.streams import Line, lines
from judgekit.data.tables import ALL, SCORES
from judgekit.errors import DataError
from judgekit.spec import Spec, form_of

if TYPE_CHECKING:
    import pandas as pd

_NAMES: Final = {
    "run": ("run", "run_id", "name", "system"),
    "query_id": ("query_id", "qid", "topic_id", "topic"),
    "measure": ("measure", "metric"),
    "value": ("value", "score"),
}
"""Names of each column, here and in other tools; the first existing one counts."""
_SAID_ELSEWHERE: Final = ("labeling", "run")
"""Columns that a file may lack: the user names the labeling, the file's name the run."""
_READ: Final = replace(
    SCORES,
    columns={name: kind for name, kind in SCORES.columns.items() if name not in _SAID_ELSEWHERE},
    optional=dict.fromkeys(_SAID_ELSEWHERE, "name"),
)
_RANKED: Final = 6
"""Columns of scores that Auto-Judge writes as a TREC run, with the system instead of the document."""
_RUN: Final = "runid"
"""The line of trec_eval that names the run."""


def as_scores(source: str | Path | pd.DataFrame, labeling: str | None = None) -> pd.DataFrame:
    """Return a table of scores, checked.

    Args:
        source: a file or a table. Columns may have PyTerrier's and Auto-Judge's names. Lines without a header are those
            of ``trec_eval -q`` (measure, query, value), of ir_measures (query, measure, value; of means measure and
            value) or of Auto-Judge (run, measure, query, value; run, query, measure, value; or as in a TREC run, with
            the measure in its last column).
        labeling: the labels behind the scores; None if the table names them.

    Returns:
        The table with the columns of `judgekit.data.tables.SCORES` first. If nothing names a run, the file's name does.

    Raises:
        DataError: the file holds no scores, nothing names the labels, or columns are ambiguous; with the line.
    """
    path = source if isinstance(source, str | Path) else None
    table = _listed(path) if path is not None else None
    if table is None:
        table = _with_header(source)
    if labeling is not None:
        table = table.assign(labeling=labeling)
    if "labeling" not in table.columns:
        cure = "name them, --scores NAME=FILE (in Python {NAME: table}), or add a column 'labeling'"
        raise DataError(f"does not say which labels its scores are by: {cure}", path)
    return SCORES.check(table, path)


def _with_header(source: str | Path | pd.DataFrame) -> pd.DataFrame:
    """Return a table whose columns have names."""
    if not isinstance(source, str | Path):
        found = _called({*map(str, source.columns)})
        table = source.rename(columns={theirs: ours for ours, theirs in found.items()})
        if "measure" in table.columns:  # objects of ir_measures stand for their names
            table["measure"] = table["measure"].map(lambda one: str(one) if callable(one) else one)
        return table
    spec, path = form_of(source)
    called = _called(column_names(source, "a scores table (columns run, measure, query_id, value)"))
    renamed = Spec(spec.name, (*spec.params, *called.items()))
    table = read_table(_READ, f"{renamed}:{path}" if renamed.params else source)
    return table if "run" in table.columns else table.assign(run=stem(path))


def _called(columns: set[str]) -> dict[str, str]:
    """Return the table's own names of columns, by our names."""
    found = {}
    for ours, names in _NAMES.items():
        theirs = next((name for name in names if name in columns), ours)
        if theirs != ours:
            found[ours] = theirs
    return found


def _listed(path: str | Path) -> pd.DataFrame | None:
    """Return the scores of a file without a header; None for other files."""
    import pandas as pd

    spec, file = form_of(path)
    if spec.name != "auto" or spec.params or not Path(file).is_file() or Path(file).suffix in (".parquet", ".xlsx"):
        return None
    rows = [(line, _cells(line)) for line in lines(file) if line.text.strip()]
    if not rows:
        return None
    columns = _columns(rows[0][1])
    if columns is None:
        return None
    run = stem(file)
    kept: list[dict[str, Any]] = []
    numbers = []
    for line, cells in rows:
        if len(cells) != len(columns):
            raise DataError(f"has {len(cells)} columns, and earlier lines have {len(columns)}", path, line.number)
        row = dict(zip(columns, cells, strict=True))
        if len(columns) == 3 and _RUN in cells:
            run = row["value"]
            continue
        kept.append(row)
        numbers.append(line.number)
    if len(columns) == _RANKED and {row["rank"] for row in kept} != {"0"}:
        raise DataError("is a run, by its ranks: score it with judgekit score", path)
    if len(columns) == 4 and {row["measure"] for row in kept} <= {"0", "Q0"}:
        raise DataError("is qrels, by its second column: score runs by them with judgekit score", path)
    frame = pd.DataFrame(kept)
    if "query_id" in columns:
        _tell_apart(frame, path)
    else:
        frame["query_id"] = ALL
    if "run" not in frame.columns:
        frame["run"] = run
    return _READ.check(frame.drop(columns=["Q0", "rank"], errors="ignore"), path, numbers)


def _cells(line: Line) -> list[str]:
    # trec_eval fills the names of measures with blanks; those of ir_measures may hold blanks.
    cells = line.text.split("\t") if "\t" in line.text else line.text.split()
    return [cell.strip() for cell in cells]


def _columns(cells: list[str]) -> tuple[str, ...] | None:
    """Return the columns of a first line that is not a header."""
    if len(cells) == _RANKED and cells[1] == "Q0" and NUMBER.fullmatch(cells[4]):
        return "query_id", "Q0", "run", "rank", "value", "measure"
    if len(cells) == 2 and NUMBER.fullmatch(cells[1]):
        return "measure", "value"
    if len(cells) == 3 and (NUMBER.fullmatch(cells[2]) or cells[0] == _RUN):
        return "measure", "query_id", "value"
    if len(cells) == 4 and NUMBER.fullmatch(cells[3]):
        return "run", "measure", "query_id", "value"
    return None


def _tell_apart(frame: pd.DataFrame, path: str | Path) -> None:
    """Swap the columns of measures and queries if lines of means show it; refuse a file without such lines."""
    summed = [name for name in ("measure", "query_id") if (frame[name] == ALL).any()]
    if summed == ["measure"]:
        frame[["measure", "query_id"]] = frame[["query_id", "measure"]].to_numpy()
    elif len(summed) != 1 and "Q0" not in frame.columns:
        raise DataError(
            "nothing says which column holds the measures and which the queries: no line has 'all' in place of a"
            f" query. Write a first line with their names: {', '.join(frame.columns)} between tabs, in the order of the"
            " columns",
            path,
        )
