"""The HTML page: one file that opens from disk and fetches nothing.

Every text goes through `clean` and autoescaping, and the page's content security policy forbids requests and all
scripts except the page's own, by its hash, so documents and models cannot do anything with it. Without scripts,
everything but the queries can be read.
"""

from __future__ import annotations

import base64
import hashlib
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import pandas as pd
from markupsafe import Markup

from judgekit.analysis.resampling import percent
from judgekit.data.streams import write_atomic
from judgekit.data.tables import ALL
from judgekit.report.charts import figures
from judgekit.report.formatting import UNDEFINED, count, interval, number, p_value, rewards
from judgekit.report.grids import HEADLINE, Grid, at_primary, grids, labelled, per_run, records, speed_up
from judgekit.report.markup import fill
from judgekit.report.model import Answers, LabelingInfo, Results
from judgekit.report.queries import Backing, Packed, pack

SCRIPTS: Final = ("state.js", "tables.js", "explorer.js", "scatter.js", "figures.js")
MOST_ROWS: Final = 500
"""Rows of one generic table on the page."""
MANY_RUNS: Final = 8
"""From this many runs on, the page shows the system level; comparison.csv always has its numbers."""


def write_html(results: Results, path: str | Path, backing: Backing | None = None) -> None:
    """Write the page to ``path``, atomically; the same results give the same bytes."""
    path = Path(path)
    for old in path.parent.glob("queries/[0-9][0-9][0-9][0-9]*.js"):
        old.unlink()  # 0.2 put texts there, which must not stay beside a page without texts
    write_atomic(path, render(results, None if backing is None else pack(results, backing)))


def render(results: Results, packed: Packed | None = None) -> str:
    """Return the page as text."""
    return shell("report.html", packed, r=results, **_context(results))


def shell(template: str, packed: Packed | None = None, **context: Any) -> str:
    """Return a page with judgekit's style sheet and script, and with the rows of its queries."""
    # One script, by its hash in the policy; scripts in documents do not run.
    folder = files("judgekit.report") / "templates"
    style, *scripts = ((folder / name).read_text(encoding="utf-8") for name in ("style.css", *SCRIPTS))
    opened = "window.judgekit = { found, marked, stateOf, fragment, placesOf };"  # to tests
    script = "\n".join(["(() => {", '"use strict";', *scripts, opened, "})();", ""])
    allowed = f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
    # None of these holds a user's value.
    own = {"style": Markup(style), "script": Markup(script), "allowed": Markup(allowed)}
    return fill(template, packed=packed, **own, **context) + "\n"


def _context(results: Results) -> dict[str, Any]:
    infos: list[LabelingInfo | Answers] = [*results.labelings, *results.answers]
    statuses = {"ok": None}
    for info in infos:
        statuses |= dict.fromkeys(status for status, n in info.counts.items() if n)
    timed = partial(speed_up, results)
    return {
        "grids": _telling(grids(results), len(results.facts.runs)),
        "undefined": UNDEFINED,
        "figures": figures(results),
        "differences": _differences(results),
        "per_run": per_run(results),
        "measures": _rewarding(results),
        "statuses": list(statuses),
        "outside": any(info.outside_pool is not None for info in results.labelings),
        "quality": _quality(results.quality),
        "score_means": _scores(results.scores),
        "generic": partial(generic, confidence=results.facts.confidence),
        "labelled": labelled(results),
        "speed_up": timed,
        "timed": any(timed(info.spending.standalone) for info in results.labelings),
    }


def _telling(found: list[Grid], runs: int) -> list[Grid]:
    """Leave out the system level of few runs if there is another level, since their order may be chance."""
    shown = [grid for grid in found if grid.level != "system" or runs >= MANY_RUNS]
    return shown or found


def _rewarding(results: Results) -> list[str]:
    """Return the measures to describe, without cutoffs: nDCG@5 and nDCG@10 reward the same."""
    names: dict[str, None] = {}
    for measure in results.comparison["measure"].unique():
        name = str(measure).rpartition("@")[0] or str(measure)
        if rewards(name):
            names[name] = None
    return list(names)


def _quality(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Per model and metric: runs x depths."""
    tables: dict[tuple[str, str], dict[str, Any]] = {}
    for row in records(frame):
        model = f"{row['model']} ({row['mode']})" if row.get("mode") else row["model"]
        fresh = {"model": model, "metric": row["metric"], "cells": {}, "closed": None, "runs": {}, "depths": set()}
        table = tables.setdefault((model, row["metric"]), fresh)
        # Closed-book answers are the same for every run, so they have their own row.
        if (row["run"], row["depth"]) == (ALL, 0):
            table["closed"] = row
            continue
        table["cells"][row["run"], row["depth"]] = row
        table["runs"][row["run"]] = None
        table["depths"].add(row["depth"])
    return list(tables.values())


def _scores(frame: pd.DataFrame) -> pd.DataFrame | None:
    """Return the mean scores: labelings and measures x runs."""
    rows: dict[tuple[str, str], dict[str, object]] = {}
    for row in records(frame):  # pandas before 3 treats texts as equal that differ after a NUL
        key = {"labeling": row["labeling"], "measure": row["measure"]}
        rows.setdefault((row["labeling"], row["measure"]), key)[row["run"]] = row["value"]
    return pd.DataFrame([*rows.values()]) if rows else None


def _differences(results: Results) -> pd.DataFrame | None:
    """Return the paired differences of the primary cell in the main coefficient."""
    primary = results.primary
    if results.differences is None:
        return None
    fixed = {"level": primary.level, "model": primary.model, "measure": primary.measure, "coefficient": HEADLINE}
    frame = at_primary(results.differences, primary, **fixed)
    return None if frame.empty else frame.drop(columns=["depth", "quality_metric", "run", *fixed])


def generic(frame: pd.DataFrame, confidence: float) -> dict[str, Any]:
    """Return a table with any columns as texts; ``_low`` and ``_high`` become one column with the interval."""
    # A plug-in's section may have a row per label; the file beside the page has all of them.
    shown = frame.head(MOST_ROWS)
    columns: dict[str, bool] = {}
    texts: list[list[str]] = []
    for name in frame.columns:
        if not (frame[name].notna() & (frame[name] != "")).any():
            continue
        what, _, end = name.rpartition("_")
        column, title = [_text(name, value) for value in shown[name].tolist()], name.replace("_", " ")
        if end in ("low", "high") and {f"{what}_low", f"{what}_high"} <= set(frame.columns):
            if end == "high":
                continue
            ends = shown[[f"{what}_low", f"{what}_high"]]
            column = [interval(low, high) for low, high in ends.itertuples(index=False)]
            title = f"{percent(confidence)} interval"
            if what != "ci":
                title = f"{title} of {what}"
        columns[title] = pd.api.types.is_numeric_dtype(frame[name].dtype)
        texts.append(column)
    rows = list(zip(*texts, strict=True))
    return {"columns": columns, "rows": rows, "left_out": max(0, len(frame) - MOST_ROWS)}


def _text(column: str, value: Any) -> str:
    """Return one value of such a table as text."""
    # Before whole numbers, because Python counts truth values as such.
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return p_value(value) if column == "p" or column.startswith("p_") else number(value)
    if isinstance(value, int):
        return count(value)
    return "" if value is None else str(value)
