"""Values per run, measure and query as other tools print them, read as scores or as quality.

Recognised are the output of trec_eval (``measure query value``, with ``-q`` or without), of ir_measures (``measure
value``, ``query measure value``, JSON lines) and the leaderboards of TREC Auto-Judge: ``tot`` (``run measure query
value``), ``ir_measures`` (``run query measure value``), ``ranking`` (``query Q0 run rank value measure``) and JSON
lines. Where a file does not name its run, the file's name does. A folder is one leaderboard, a file a run.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from judgekit.data.fields import Source
from judgekit.data.forms import FORMS, opened
from judgekit.data.records import Record, as_number, kind_of, records
from judgekit.data.streams import given, head, lines, stem
from judgekit.data.tables import ALL, ANSWERS, QUALITY, SCORES, Table
from judgekit.errors import DataError
from judgekit.spec import Spec, parse, split_form

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LAYOUTS", "other_form"]

_EXPECTED: Final = "values by measure and query"
LAYOUTS: Final[Mapping[str, tuple[str, ...]]] = {
    "trec_eval": ("measure", "query_id", "value"),
    "ir_measures": ("query_id", "measure", "value"),
    "means": ("measure", "value"),
    "tot": ("run", "measure", "query_id", "value"),
    "ir_measures_of_runs": ("run", "query_id", "measure", "value"),
    "ranking": ("query_id", "", "run", "", "value", "measure"),
}
"""The columns of each layout of plain text."""
_JSON: Final = {
    "run": ("run_id", "run"),
    "query_id": ("topic_id", "query_id"),
    "measure": ("measure",),
    "value": ("value",),
}
_COUNTS: Final = ("runid", "num_q", "num_ret", "num_rel", "num_rel_ret", "num_nonrel_judged_ret")
_NAMES: Final = {"map": "AP", "ndcg": "nDCG", "recip_rank": "RR", "bpref": "Bpref", "gm_map": "gm_map"}
_CUT: Final = {"P": "P", "recall": "R", "ndcg_cut": "nDCG", "map_cut": "AP", "success": "Success"}
_MEASURE: Final = re.compile(r".+@\d+$|(?:" + "|".join([*_NAMES, *(f"{name}_" for name in _CUT)]) + ")", re.ASCII)


class _Value(NamedTuple):
    run: str
    query_id: str
    measure: str
    value: float


def _spelled(measure: str) -> str:
    """Return trec_eval's name of a measure as this program spells it: ``nDCG@10`` for ``ndcg_cut_10``."""
    match = re.fullmatch(r"([A-Za-z_]+?)_(\d+)", measure)
    if match and match[1] in _CUT:
        return f"{_CUT[match[1]]}@{match[2]}"
    return _NAMES.get(measure, measure)


def other_form(table: Table, source: str | Path, format: str = "auto") -> pd.DataFrame | None:
    """Return what a file of another form holds of a table: scores, quality or answers; None if it is a table itself.

    Raises:
        DataError: it is of another form, and a line of it is wrong.
    """
    import pandas as pd

    form, text = split_form(source)
    name = parse(form if form and format == "auto" else format).name
    if table.name == ANSWERS.name:
        if name not in ("auto", *FORMS):
            return None
        found = opened(source, "answer", format)
        if not found.form:
            return None
        rows = [(found.source.id(r), _answer(found.source, r)) for r in found.records]
        return pd.DataFrame(rows, columns=["query_id", "answer"])
    if table.name not in (SCORES.name, QUALITY.name) or name not in ("auto", *LAYOUTS):
        return None
    path = given(text)
    if not path.exists():
        return None
    files = sorted(p for p in path.iterdir() if p.is_file() and p.name[:1] not in "._") if path.is_dir() else [path]
    if not files or any(file.suffix == ".parquet" for file in files):
        return None
    values: list[_Value] = []
    names_runs = False
    for file in files:
        layout = _layout(file, name)
        if not layout:
            return None
        names_runs = names_runs or "run" in layout
        values += _json_values(file) if layout == ("run", "json") else _values(file, layout)
    if not values:
        raise DataError("holds no values of measures", path)
    frame = pd.DataFrame(values)
    if table.name == SCORES.name:
        return frame.assign(labeling=stem(path) if names_runs or path.is_dir() else "scores")
    return frame.rename(columns={"measure": "metric"})


def _answer(source: Source, record: Record) -> object:
    """Return an answer, a text or a number (0 is one); "" where there is none."""
    answer = record.fields["answer"]
    if isinstance(answer, list | dict):
        raise source.error(record, f"the answer must be a text, not {kind_of(answer)}")
    return "" if answer is None else answer


def _layout(path: Path, told: str) -> tuple[str, ...]:
    """Return the columns of a file, or () if it is not of these forms."""
    start = head(path, _EXPECTED).lstrip()
    if start[:1] in (b"{", b"["):
        first = next(records(path, Spec("auto"), _EXPECTED)[1], Record(0, {}))
        keys = set(first.fields)
        return ("run", "json") if {"measure", "value"} <= keys and not keys & {"labeling", "run"} else ()
    last = -1 if len(start) > 60_000 else None  # it may be cut off
    rows = [line.split() for line in start.decode(errors="replace").splitlines()[:last]]
    rows = [row for row in rows if row and row[0] not in _COUNTS]
    if not rows or not all(len(row) == len(rows[0]) for row in rows) or "," in rows[0][0]:
        return LAYOUTS[told] if told != "auto" else ()
    fitting = [n for n in LAYOUTS if _fits(rows, LAYOUTS[n])] if told == "auto" else [told]
    if len(fitting) > 1:
        # The measure is the column whose words look like measures, or that holds fewer different ones.
        columns = {name: {row[LAYOUTS[name].index("measure")] for row in rows} for name in fitting}
        rank = {name: (not all(map(_MEASURE.match, words)), len(words)) for name, words in columns.items()}
        fitting.sort(key=rank.__getitem__)
        if rank[fitting[0]] == rank[fitting[1]]:
            have = " or ".join(f"{n} ({' '.join(LAYOUTS[n])})" for n in fitting)
            told = f"put one in front of its name, {fitting[0]}:{path.name}"
            raise DataError(f"may be of the form {have}: {told}", path)
    return LAYOUTS[fitting[0]] if fitting else ()


def _fits(rows: list[list[str]], layout: tuple[str, ...]) -> bool:
    if len(rows[0]) != len(layout) or not all(math.isfinite(as_number(r[layout.index("value")])) for r in rows):
        return False
    if layout == LAYOUTS["ranking"] and not all(row[1] == "Q0" and row[3] == "0" for row in rows):
        return False  # a TREC run looks so; a leaderboard with ranks must not be taken for one
    if all(row[1] == "0" for row in rows):
        return False  # TREC qrels
    measures = {row[layout.index("measure")] for row in rows}
    # A measure is a word, with @ and a number perhaps; the mean over queries is called all.
    return ALL not in measures and not any(math.isfinite(as_number(name)) for name in measures)


def _values(path: Path, layout: tuple[str, ...]) -> Iterator[_Value]:
    # trec_eval names the run behind the values of its queries.
    named = (words for words in (line.text.split() for line in lines(path, _EXPECTED)) if words[:1] == ["runid"])
    run = next((words[-1] for words in named), stem(path)) if "run" not in layout else ""
    for line in lines(path, _EXPECTED):
        words = line.text.split()
        if not words or words[0] in _COUNTS:
            continue
        if len(words) != len(layout):
            expected = " ".join(name or "-" for name in layout)
            raise DataError(f"has {len(words)} columns, expected {expected}: {line.text[:80]!r}", path, line.number)
        said = dict(zip(layout, words, strict=True))
        number = as_number(said["value"])
        if not math.isfinite(number):
            raise DataError(f"the value {said['value']!r} is not a finite number", path, line.number)
        yield _Value(said.get("run", run), said.get("query_id", ALL), _spelled(said["measure"]), number)


def _json_values(path: Path) -> Iterator[_Value]:
    for record in records(path, Spec("auto"), _EXPECTED)[1]:
        said = {
            key: next((record.fields[n] for n in names if n in record.fields), None) for key, names in _JSON.items()
        }
        number = as_number(said["value"])
        if not isinstance(said["measure"], str) or not math.isfinite(number):
            reason = f"expected an object with a measure and its value, found {said['measure']!r} and {said['value']!r}"
            raise DataError(reason, path, record.line)
        run = said["run"] if isinstance(said["run"], str) else stem(path)
        query = ALL if said["query_id"] is None else str(said["query_id"])
        yield _Value(run, query, _spelled(said["measure"]), number)
