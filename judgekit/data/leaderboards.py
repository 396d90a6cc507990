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
from typing import TYPE_CHECKING, Any, Final

from judgekit.data.forms import FORMS
from judgekit.data.records import as_number, kind_of, records
from judgekit.data.sources import opened
from judgekit.data.streams import given, head, lines, stem
from judgekit.data.tables import ALL, ANSWERS, QUALITY, SCORES, Table
from judgekit.errors import DataError
from judgekit.spec import Spec, form_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LAYOUTS", "other_form"]

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
_ALIASES: Final = {"run_id": "run", "topic_id": "query_id"}
"""What comes first in JSON, by name."""
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


def other_form(table: Table, source: str | Path, format: str = "auto") -> pd.DataFrame | None:
    """Return what a file of another form holds of a table: scores, quality or answers; None if it is a table itself."""
    import pandas as pd

    spec, text = form_of(source, format)
    if table.name == ANSWERS.name and spec.name in ("auto", *FORMS):
        return _answers(source, format)
    path = given(text)
    if table.name not in (SCORES.name, QUALITY.name) or spec.name not in ("auto", *LAYOUTS) or not path.exists():
        return None
    files = sorted(p for p in path.iterdir() if p.is_file() and p.name[:1] not in "._") if path.is_dir() else [path]
    if any(file.suffix == ".parquet" for file in files):
        return None
    layouts = [_layout(file, spec.name) for file in files]
    if not layouts or () in layouts:
        return None
    frame = pd.DataFrame([row for file, layout in zip(files, layouts, strict=True) for row in _values(file, layout)])
    if frame.empty:
        raise DataError("holds no values of measures", path)
    if table.name == SCORES.name:
        named = path.is_dir() or any("run" in layout for layout in layouts)
        return frame.assign(labeling=stem(path) if named else "scores")
    return frame.rename(columns={"measure": "metric"})


def _answers(source: str | Path, format: str) -> pd.DataFrame | None:
    """Return the answers of a nested form, each a text or a number (0 is one), "" where there is none."""
    import pandas as pd

    origin, entries = opened(source, "answer", format)
    if not origin.form:
        return None
    rows = []
    for record in entries:
        answer = "" if record.fields["answer"] is None else record.fields["answer"]
        if isinstance(answer, list | dict):
            raise origin.error(record, f"the answer must be a text, not {kind_of(answer)}")
        rows.append({**record.fields, "query_id": origin.get(record, "id"), "answer": answer})
    return pd.DataFrame(rows, columns=["query_id", "answer", *(["run"] if any("run" in row for row in rows) else [])])


def _layout(path: Path, named: str) -> tuple[str, ...]:
    """Return the columns of a file, or () if it is not of these forms."""
    start = head(path, _EXPECTED).lstrip()
    if start[:1] in (b"{", b"["):
        first = next(records(path, Spec("auto"), _EXPECTED)[1], None)
        keys = set(first.fields if first else ())
        return _JSON if {"measure", "value"} <= keys and not keys & {"labeling", "run"} else ()
    last = -1 if len(start) > 60_000 else None  # it may be cut off
    every = map(str.split, start.decode(errors="replace").splitlines()[:last])
    rows = [row for row in every if row and row[0] not in _COUNTS]
    if not rows or not all(len(row) == len(rows[0]) for row in rows) or "," in rows[0][0]:
        return LAYOUTS.get(named, ())
    fitting = [name for name in LAYOUTS if _fits(rows, LAYOUTS[name])] if named == "auto" else [named]
    if len(fitting) > 1:
        # The measure is the column whose words look like measures, or that holds fewer different ones.
        columns = {name: {row[LAYOUTS[name].index("measure")] for row in rows} for name in fitting}
        rank = {name: (not all(map(_MEASURE.match, words)), len(words)) for name, words in columns.items()}
        fitting.sort(key=rank.__getitem__)
        if rank[fitting[0]] == rank[fitting[1]]:
            have = " or ".join(f"{n} ({' '.join(LAYOUTS[n])})" for n in fitting)
            raise DataError(f"may be of the form {have}: put one in front of its name, {fitting[0]}:{path.name}", path)
    return LAYOUTS[fitting[0]] if fitting else ()


def _fits(rows: list[list[str]], layout: tuple[str, ...]) -> bool:
    """Return whether rows are of a layout; no TREC run or qrels, which look so, is taken for a leaderboard."""
    if len(rows[0]) != len(layout) or not all(math.isfinite(as_number(r[layout.index("value")])) for r in rows):
        return False
    ranked = layout == LAYOUTS["ranking"] and not all(row[1] == "Q0" and row[3] == "0" for row in rows)
    if ranked or all(row[1] == "0" for row in rows):
        return False
    measures = {row[layout.index("measure")] for row in rows}
    # A measure is a word, with @ and a number perhaps; the mean over queries is called all.
    return ALL not in measures and not any(math.isfinite(as_number(name)) for name in measures)


def _values(path: Path, layout: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Yield run, query, measure and value of each line; a file that does not say it is of its own run, over all."""
    rows: list[tuple[int, Mapping[str, Any]]] = []
    run = stem(path)
    if layout == _JSON:
        rows += ((record.line, record.fields) for record in records(path, Spec("auto"), _EXPECTED)[1])
    for line in lines(path, _EXPECTED) if layout != _JSON else ():
        words = line.text.split()
        if words[:1] == ["runid"]:  # trec_eval's, behind the values of its queries
            run = words[-1]
        elif words and words[0] not in _COUNTS:
            if len(words) != len(layout):
                expected = " ".join(name or "-" for name in layout)
                raise DataError(f"has {len(words)} columns, expected {expected}: {line.text[:80]!r}", path, line.number)
            rows.append((line.number, dict(zip(layout, words, strict=True))))
    for number, fields in rows:
        own, query = (fields.get(name, fields.get(column)) for name, column in _ALIASES.items())
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
