"""Saving and loading what a report shows, as files in the results folder.

``comparison.csv``, ``differences.csv`` and ``details.csv`` are the tables as the user gets them; ``report.json`` holds
everything else that the page shows. From these four ``judgekit report DIR`` draws the same page again, byte for byte.
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

import numpy as np
import pandas as pd

from judgekit.analysis.primary import USES
from judgekit.data.files import read_table, write_atomic, write_table
from judgekit.data.outputs import is_results_folder
from judgekit.data.tables import COMPARISON
from judgekit.errors import DataError
from judgekit.report.model import DETAILS, DIFFERENCES, Results, Section

__all__ = ["load", "save", "with_section"]

SCHEMA: Final = 1
"""Raised when the meaning of a field of ``report.json`` changes."""

TABLES: Final = {"comparison": COMPARISON, "differences": DIFFERENCES, "details": DETAILS}
"""The fields of `Results` that are CSV files of their own, by their names."""

REPORT_FILE: Final = "report.json"


def save(results: Results, folder: str | Path) -> None:
    """Write the files into ``folder``, which must exist; each is replaced atomically, a table that is None removed."""
    folder = Path(folder)
    text = _json(results)
    for name in TABLES:
        frame = getattr(results, name)
        path = folder / f"{name}.csv"
        if frame is None:
            path.unlink(missing_ok=True)
        else:
            write_table(frame, path)
    write_atomic(folder / REPORT_FILE, text)


def with_section(folder: str | Path, section: Section) -> Results:
    """Put a section before the others of a saved report, in place of one of its title; the tables stay as they are.

    Raises:
        DataError: as for `load`.
    """
    results = load(folder)
    others = tuple(one for one in results.sections if one.title != section.title)
    results = dataclasses.replace(results, sections=(section, *others))
    write_atomic(Path(folder) / REPORT_FILE, _json(results))
    return results


def _json(results: Results) -> str:
    fields = {f.name: _plain(getattr(results, f.name)) for f in dataclasses.fields(results) if f.name not in TABLES}
    # ASCII only: a lone surrogate, as a model's broken escape makes one, has no UTF-8 form.
    return json.dumps({"schema": SCHEMA, **fields}, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def load(folder: str | Path) -> Results:
    """Read what `save` wrote.

    Raises:
        DataError: a file is missing, is not what `save` writes, or was written under another schema.
    """
    path = Path(folder) / REPORT_FILE
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if is_results_folder(Path(folder)):
            raise DataError("the run was not finished: start it again, and it goes on", folder) from None
        raise DataError(f"no {REPORT_FILE} there, so this is not a results folder of judgekit", folder) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}; expected a results folder", folder) from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"is not the JSON that judgekit writes: {error}", path) from error
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        have = value.get("schema") if isinstance(value, dict) else None
        raise DataError(f"has schema {have}, this judgekit reads {SCHEMA}: run the experiment again", path)
    fields = _as_today({k: v for k, v in value.items() if k != "schema"})
    frames: dict[str, pd.DataFrame] = {}
    for name, table in TABLES.items():
        file = Path(folder) / f"{name}.csv"
        if name == "comparison" or file.exists():
            frames[name] = read_table(table, file)
    try:
        results: Results = _record(Results, fields, "", **frames)
    except _Problem as problem:
        raise DataError(str(problem), path) from None
    return results


def _as_today(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a folder of version 0.1 under the names of today; its cell had a level where a use is."""
    cell, verdict = fields.get("primary"), fields.get("verdict")
    uses = {level: use for use, level in USES.items()}
    if isinstance(cell, dict) and cell.get("level") in uses and "quality_metric" in cell:
        rest = {k: v for k, v in cell.items() if k not in ("quality_metric", "level")}
        fields = fields | {"primary": rest | {"metric": cell["quality_metric"], "use": uses[cell["level"]]}}
    if isinstance(verdict, dict) and "headline" in verdict:
        words = [verdict["headline"], *verdict.get("details", [])]
        fields = fields | {"verdict": words, "leaders": verdict.get("best", []), "cheapest": verdict.get("cheapest")}
    return fields


class _Problem(Exception):
    """Something in the JSON that is not what the model says."""


def _plain(value: Any) -> Any:
    """Return a value of the model as JSON can hold it."""
    if isinstance(value, pd.DataFrame):
        kinds = {"b": "bool", "i": "int", "f": "float"}
        columns = {str(c): kinds.get(value[c].dtype.kind, "str") for c in value.columns}
        return {
            "columns": columns,
            "rows": [[_plain(v) for v in row] for row in value.itertuples(index=False, name=None)],
        }
    if dataclasses.is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def _frame(value: Any, where: str) -> pd.DataFrame:
    if not isinstance(value, dict) or set(value) != {"columns", "rows"}:
        raise _Problem(f"{where} is not a table")
    dtypes: dict[str, Any] = {"bool": "bool", "int": "int64", "float": "float64", "str": "str"}
    try:
        return pd.DataFrame(
            {
                name: pd.Series([row[i] for row in value["rows"]], dtype="object").astype(dtypes[kind])
                for i, (name, kind) in enumerate(value["columns"].items())
            }
        )
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise _Problem(f"the table {where} cannot be read: {error}") from error


def _record(cls: type[Any], value: Any, where: str, **given: Any) -> Any:
    """Build the dataclass ``cls`` from a JSON object."""
    if not isinstance(value, dict):
        raise _Problem(f"{where or 'the file'} is not an object")
    hints = get_type_hints(cls)
    unknown = sorted(set(value) - set(hints))
    if unknown:
        raise _Problem(f"{where}.{unknown[0]} is unknown".lstrip("."))
    fields = {k: _typed(hints[k], v, f"{where}.{k}".lstrip(".")) for k, v in value.items()}
    try:
        return cls(**fields, **given)
    except TypeError as error:
        raise _Problem(f"{where or 'the file'}: {error}") from error


def _typed(hint: Any, value: Any, where: str) -> Any:
    """Return a JSON value as the type ``hint``, one of those that the model uses."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in args:
            return None
        return _typed(next(a for a in args if a is not type(None)), value, where)
    if dataclasses.is_dataclass(hint):
        return _record(hint, value, where)  # type: ignore[arg-type]  # a hint that is a dataclass is a class
    if hint is pd.DataFrame:
        return _frame(value, where)
    if origin is tuple:
        items = args[:1] * len(value) if isinstance(value, list) and args[1:] == (Ellipsis,) else args
        if not isinstance(value, list) or len(value) != len(items):
            raise _Problem(f"{where} is not a list of the right length")
        return tuple(_typed(a, v, f"{where}[{i}]") for i, (a, v) in enumerate(zip(items, value, strict=True)))
    if origin is Mapping:
        if not isinstance(value, dict):
            raise _Problem(f"{where} is not an object")
        return {k: _typed(args[1], v, f"{where}.{k}") for k, v in value.items()}
    if hint is float and value is None:
        return math.nan
    if hint is float and (value in ("inf", "-inf") or type(value) is int):
        return float(value)
    if type(value) is not hint:
        raise _Problem(f"{where} is {value!r}, expected {hint.__name__}")
    return value
