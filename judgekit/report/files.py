"""Saving and loading a report's content, as files in the results folder.

``comparison.csv``, ``claims.csv``, ``differences.csv`` and ``details.csv`` are the tables for the user; ``report.json``
holds everything else on the page. From these five, ``judgekit report DIR`` draws exactly the same page.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import pandas as pd
from pydantic import TypeAdapter, ValidationError

from judgekit.analysis.claims import CLAIMS, claims_of, claims_table
from judgekit.data.files import read_table, write_table
from judgekit.data.outputs import is_results_folder
from judgekit.data.streams import write_atomic
from judgekit.data.tables import COMPARISON
from judgekit.errors import DataError, in_our_words
from judgekit.report.model import DETAILS, DIFFERENCES, Answers, Cost, LabelingInfo, Results, Section

B = TypeVar("B", LabelingInfo, Answers)

SCHEMA: Final = 3
"""Increased when the meaning of a field of ``report.json`` changes."""

TABLES: Final = {"comparison": COMPARISON, "claims": CLAIMS, "differences": DIFFERENCES, "details": DETAILS}
"""The fields of `Results` with their own CSV files."""

REPORT_FILE: Final = "report.json"


def save(results: Results, folder: str | Path) -> None:
    """Write the files into ``folder``, which must exist; each is replaced atomically, or removed if None."""
    folder = Path(folder)
    text = _json(results)
    for name in TABLES:
        frame = claims_table(results.claims) if name == "claims" else getattr(results, name)
        path = folder / f"{name}.csv"
        if frame is None:
            path.unlink(missing_ok=True)
        else:
            write_table(frame, path)
    write_atomic(folder / REPORT_FILE, text)


def with_section(folder: str | Path, section: Section) -> Results:
    """Put a section before the others of a saved report, replacing one with the same title; the tables stay."""
    # The tables stay: a plug-in that adds a section must not change what the run wrote.
    results = load(folder)
    others = tuple(one for one in results.sections if one.title != section.title)
    results = dataclasses.replace(results, sections=(section, *others))
    write_atomic(Path(folder) / REPORT_FILE, _json(results))
    return results


def told_before(results: Results, folder: str | Path) -> Results:
    """Return results for which nothing was sent as in the folder's report, if everything else is the same.

    Payments and notes about servers belong to the session that sent something. So a run that finds all replies in the
    store, and all else unchanged, writes the same files again.
    """
    try:
        saved = (Path(folder) / REPORT_FILE).read_text(encoding="utf-8")
        before = json.loads(saved)
        told = dataclasses.replace(
            results,
            labelings=tuple(_billed(results.labelings, before["labelings"])),
            answers=tuple(_billed(results.answers, before["answers"])),
            retries=tuple((str(what), int(times)) for what, times in before["retries"]),
        )
        # Findings without requests, such as a damaged store, are new.
        if {*results.notices} <= {*before["notices"]}:
            told = dataclasses.replace(told, notices=tuple(before["notices"]))
    except (OSError, LookupError, TypeError, ValueError):
        return results  # there is no report, or one that another version wrote
    return told if _json(told) == saved else results


def _billed(now: Sequence[B], before: Sequence[Mapping[str, Any]]) -> Iterator[B]:
    """Yield labelings or answers with their earlier payments."""
    for one, earlier in zip(now, before, strict=True):
        bill = earlier["spending"]
        paid = {name: bill[name] for name in ("cached", "failed")}
        yield dataclasses.replace(
            one, spending=dataclasses.replace(one.spending, incurred=Cost(**bill["incurred"]), **paid)
        )


def _json(results: Results) -> str:
    fields = {name: value for name, value in _plain(results).items() if name not in TABLES}
    # ASCII only: lone surrogates, from a model's broken escapes, have no UTF-8 form.
    return json.dumps({"schema": SCHEMA, **fields}, indent=1, default=_plain, allow_nan=False) + "\n"


def load(folder: str | Path) -> Results:
    """Read the files written by `save`."""
    path = Path(folder) / REPORT_FILE
    try:
        value = json.loads(path.read_text(encoding="utf-8"), object_hook=_frame)
    except FileNotFoundError:
        if is_results_folder(Path(folder)):
            raise DataError("the run did not finish: start it again to continue", folder) from None
        raise DataError(f"holds no {REPORT_FILE}: give the folder that judgekit run wrote (--out)", folder) from None
    except NotADirectoryError:
        raise DataError("is a file: give the folder that judgekit run wrote (--out)", folder) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}; expected a results folder", folder) from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise DataError(f"is not the JSON that judgekit writes: {error}", path) from error
    have = value.pop("schema", None) if isinstance(value, dict) else None
    if have != SCHEMA:
        raise DataError(f"has schema {have}, this judgekit reads {SCHEMA}: run the experiment again", path)
    # An optional table without a file was None when saved.
    for name, table in TABLES.items():
        file = Path(folder) / f"{name}.csv"
        if name in ("comparison", "claims") or file.exists():
            value[name] = read_table(table, file)
    # The claims are only in their CSV, since two copies of the decision could differ.
    value["claims"] = claims_of(value["claims"])
    try:
        return TypeAdapter(Results).validate_python(value)
    except ValidationError as error:
        problem = error.errors(include_input=False)[0]
        where = ".".join(map(str, problem["loc"]))
        raise DataError(f"{where}: {in_our_words(problem['msg'])}", path) from None


def _frame(value: dict[str, Any]) -> Any:
    """Return the table in a JSON object; any other object unchanged."""
    if value.keys() != {"columns", "rows"}:
        return value
    columns = {}
    for place, (name, kind) in enumerate(value["columns"].items()):
        column = pd.Series([row[place] for row in value["rows"]], dtype="object")
        columns[name] = column.astype(_DTYPES[kind])
    return pd.DataFrame(columns)


_DTYPES: Final[dict[str, Any]] = {"bool": "bool", "int": "int64", "float": "float64", "str": "str"}
_KINDS: Final = {"b": "bool", "i": "int", "f": "float"}


def _plain(value: Any) -> Any:
    """Return the model's non-JSON values as JSON: a table's NaN as null, infinity as a text."""
    if isinstance(value, pd.DataFrame):
        columns = {str(name): _KINDS.get(value[name].dtype.kind, "str") for name in value.columns}
        # In NumPy, because pandas 2 guesses types again when it replaces values.
        plain = value.astype("object").to_numpy(copy=True)
        plain[value.isna().to_numpy()] = None
        for number in (math.inf, -math.inf):
            plain[plain == number] = str(number)
        return {"columns": columns, "rows": plain.tolist()}
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return value.item() if isinstance(value, np.generic) else dict(value)
