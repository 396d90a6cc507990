"""The HTML page: one file that opens from disk and fetches nothing.

Every text goes through `clean` and autoescaping, and the page's own content security policy forbids requests and every
script but the page's, whose hash it names, so that a document or a model cannot do anything with it. Without a browser
that runs scripts all of it can be read but the queries.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup

from judgekit.analysis.primary import CHOOSE_RUNS, FIND_QUESTIONS, USES
from judgekit.analysis.resampling import percent
from judgekit.data.files import write_atomic
from judgekit.data.tables import ALL
from judgekit.report import charts, erag_tables, formatting
from judgekit.report.charts import tokens
from judgekit.report.grids import HEADLINE, Cell, Grid, at_primary, grids, records, where
from judgekit.report.model import Answers, Cost, LabelingInfo, Results, Use
from judgekit.report.queries import Backing, Packed, pack

__all__ = ["render", "shell", "write_html"]

MOST_ROWS = 500
"""Rows of one generic table on the page."""


def write_html(results: Results, path: str | Path, backing: Backing | None = None) -> None:
    """Write the page to ``path``, atomically, and what it cannot hold into ``queries/`` beside it.

    The same results give the same bytes.
    """
    path = Path(path)
    packed = None if backing is None else pack(results, backing)
    for old in path.parent.glob("queries/[0-9][0-9][0-9][0-9]*.js"):
        old.unlink()
    if packed is not None and packed.beside:
        (path.parent / "queries").mkdir(parents=True, exist_ok=True)
        for number, block in enumerate(packed.blocks):
            write_atomic(path.parent / "queries" / f"{number:04}.js", f'judgekit.rows({number}, "{block}");\n')
    write_atomic(path, shell("report.html", packed, r=results, **_context(results)))


def render(results: Results, backing: Backing | None = None) -> str:
    """Return the page as text, without what it cannot hold."""
    packed = None if backing is None else pack(results, backing)
    return shell("report.html", packed, r=results, **_context(results))


def shell(template: str, packed: Packed | None = None, **context: Any) -> str:
    """Return a page with the style sheet and the script of the house, and with the rows of its queries."""
    environment = _environment()
    folder = files("judgekit.report") / "templates"
    style, state, tables, explorer = (
        (folder / name).read_text(encoding="utf-8") for name in ("style.css", "state.js", "tables.js", "explorer.js")
    )
    opened = "window.judgekit = { rows, found, marked, stateOf, fragment };"  # to the files beside it, and to tests
    script = f'(() => {{\n"use strict";\n{state}\n{tables}\n{explorer}\n{opened}\n}})();\n'
    allowed = f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
    if packed is not None and packed.beside:
        allowed += " 'strict-dynamic'"  # what the page's own script loads
    own = {"style": Markup(style), "script": Markup(script), "allowed": Markup(allowed)}  # no value of a user's in them
    return environment.get_template(template).render(packed=packed, **own, **context) + "\n"


@cache
def _environment() -> jinja2.Environment:
    """Return the compiled templates' environment, the same for every page."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("judgekit.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    shown = (formatting.count, formatting.number, formatting.interval, formatting.money, formatting.seconds,
             formatting.marks, formatting.meaning, formatting.rewards, formatting.times, percent, charts.spark,
             charts.spark_range)  # fmt: skip
    environment.filters |= {function.__name__: function for function in shown}
    return environment


def _finalize(value: Any) -> Any:
    """Make control characters visible in every text on its way out; autoescaping comes after it."""
    return formatting.clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _context(results: Results) -> dict[str, Any]:
    every = grids(results)
    infos: list[LabelingInfo | Answers] = [*results.labelings, *results.answers]
    primary = [g for g in every if g.primary]
    names = (str(m).rpartition("@")[0] or str(m) for m in results.comparison["measure"].unique())
    return {
        "uses": [_use(results, use) for use in results.uses or [_first(results)]],
        "main": primary,
        "others": [g for g in every if not g.primary],
        "undefined": formatting.UNDEFINED,
        "figures": charts.figures(results),
        "coefficients": _coefficients(results, primary),
        "differences": _differences(results),
        "per_run": erag_tables.per_run(results),
        "measures": [m for m in dict.fromkeys(names) if formatting.rewards(m)],
        "statuses": list(dict.fromkeys(["ok", *(s for info in infos for s, n in info.counts.items() if n)])),
        "outside": any(info.outside_pool is not None for info in results.labelings),
        "quality": _quality(results.quality),
        "score_means": _scores(results.scores),
        "generic": partial(_generic, confidence=results.facts.confidence),
        "ratio": partial(_ratio, [a.at_verdict for a in results.answers if a.at_verdict is not None]),
        "speed_up": partial(erag_tables.speed_up, results),
        "timed": any(erag_tables.speed_up(results, info.spending.standalone) for info in results.labelings),
    }


def _first(results: Results) -> Use:
    """Return the verdict of a folder that says it in one piece."""
    primary, (headline, *more) = results.primary, results.verdict
    return Use(primary.use, primary.model, headline, tuple(more), (), results.leaders, results.cheapest)


def _use(results: Results, use: Use) -> dict[str, Any]:
    """Return the verdict for a use in a sentence, and beside it a row per labeling, the best first."""
    primary = results.primary
    fixed = {"level": USES.get(use.use), "model": use.model, "measure": primary.measure, "coefficient": HEADLINE}
    frame = at_primary(results.comparison, primary, **fixed).dropna(subset="value")
    found = records(frame.sort_values("value", ascending=False, kind="stable"))
    found = [row for row in found if "by_construction" not in formatting.split_flags(row["flags"])]
    gains: dict[str, dict[str, Any]] = {}
    if results.gains is not None and use.use == CHOOSE_RUNS:
        gains = {row["labeling"]: row | {"value": row["gain"]} for row in records(where(results.gains, without=""))}
    known = {info.name: info for info in results.labelings}
    priced = any(info.spending.standalone.money for info in results.labelings)
    rows: list[dict[str, Any]] = []
    for row in found:
        info, gain = known.get(row["labeling"], LabelingInfo("", "")), gains.get(row["labeling"])
        cost = info.spending.standalone
        asked = formatting.money(cost.money, results.currency) if priced else formatting.count(tokens(cost))
        rows.append(
            {
                "cell": Cell(row["labeling"], row["measure"], row["value"], row["ci_low"], row["ci_high"]),
                "times": _points(row),
                "gain": gain and _points(gain, 1),
                "cost": "people" if info.people else asked,
            }
        )
    whose = f", by answers of {use.model}" if use.model != primary.model else ""
    return {
        "use": use,
        "title": charts.IN_WORDS.get(use.use, use.use) + whose,
        "advice": _advice(use, len(rows)),
        "does": _DOES.get(use.use, ""),
        "rows": rows if use.found else [],
        "gains": bool(gains),
        "unit": "money" if priced else "tokens",
    }


_DOES = {
    CHOOSE_RUNS: "puts the better-answered run first, times in 100",
    FIND_QUESTIONS: "scores the better-answered question higher, times in 100",
}


def _points(row: Mapping[str, Any], digits: int = 0) -> tuple[str, str]:
    """Return a value in hundredths, and its interval."""
    value, low, high = (formatting.number(100 * row[name], digits) for name in ("value", "ci_low", "ci_high"))
    return value, "" if formatting.UNDEFINED in (low, high) else f"{low} to {high}"


def _advice(use: Use, compared: int) -> str:
    """Return what a reader should do, in a sentence or two."""
    names = [repr(name) for name in use.leaders]
    if not use.found or compared < 2:
        return ""
    if not names:
        said = "No labeling is shown to be better than a coin for this."
    elif len(names) == 1:
        said = f"{names[0]} is the best labeling for this."
    elif len(names) == compared:
        said = "The labelings cannot be told apart for this."
    else:
        said = f"{', '.join(names[:-1])} and {names[-1]} lead, and cannot be told apart."
    if use.cheapest == "":
        return "No labels are needed: the choice between these runs is worth too little."
    if use.cheapest and [use.cheapest] == list(use.leaders):
        return f"{use.cheapest!r} is the best labeling for this, and the cheapest that will do."
    return f"{said} {use.cheapest!r} is the cheapest that will do.".strip() if use.cheapest else said


def _coefficients(results: Results, main: list[Grid]) -> pd.DataFrame:
    """All coefficients of the primary slices, one row per labeling and measure, with what stands behind them."""
    primary, nothing = results.primary, {"tau_b_max": math.nan, "lacking": math.nan}
    details = [] if results.details is None else records(at_primary(results.details, primary))
    behind = {tuple(row[key] for key in ("labeling", "measure", "level", "model")): row for row in details}
    rows = []
    for part, c in ((g, c) for g in main for c in g.cells.values()):
        more = behind.get((c.labeling, c.measure, part.level, part.model), nothing)
        notes = [*map(formatting.meaning, c.flags), c.reason]
        notes += [f"{name}: {formatting.meaning(flag)}" for name, flags in c.remarks.items() for flag in flags]
        rows.append(
            {"labeling": c.labeling, "measure": c.measure, HEADLINE: c.value, "ci_low": c.low, "ci_high": c.high}
            | c.others
            | {"largest tau-b attainable": more["tau_b_max"], "share of cases lacking": more["lacking"]}
            | {"n": c.n, "interval method": c.method, "notes": "; ".join(filter(None, notes))}
        )
    return pd.DataFrame(rows)


def _quality(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Per model and metric: runs x depths."""
    out = []
    mode = frame["mode"] if "mode" in frame.columns else pd.Series("", frame.index)
    whose = frame["model"].where(mode == "", frame["model"] + " (" + mode + ")")
    for (model, metric), rows in frame.groupby([whose, frame["metric"]], sort=False):
        cells = {(r["run"], r["depth"]): r for r in records(rows)}
        closed = cells.pop((ALL, 0), None)
        depths, runs = sorted({depth for _, depth in cells}), list(dict.fromkeys(run for run, _ in cells))
        out.append({"model": model, "metric": metric, "depths": depths, "runs": runs, "cells": cells, "closed": closed})
    return out


def _scores(frame: pd.DataFrame) -> pd.DataFrame | None:
    """Return the mean scores: labelings and measures x runs."""
    rows: dict[tuple[str, str], dict[str, object]] = {}
    for row in records(frame):  # pandas before 3 takes texts for equal that differ behind a NUL
        key = {"labeling": row["labeling"], "measure": row["measure"]}
        rows.setdefault((row["labeling"], row["measure"]), key)[row["run"]] = row["value"]
    return pd.DataFrame([*rows.values()]) if rows else None


def _ratio(whole: Sequence[Cost], cost: Cost) -> str:
    """Return the tokens of a cost as a share of the whole; one of which only a part is known has no share."""
    mine, of = tokens(cost), sum(tokens(part) or 0 for part in whole)
    if mine is None or of == 0 or any(part.unreported for part in (cost, *whole)):
        return formatting.UNKNOWN
    return f"{mine / of:.0%}"


def _differences(results: Results) -> pd.DataFrame | None:
    """Return the paired differences of the primary cell in the headline coefficient."""
    primary = results.primary
    if results.differences is None:
        return None
    fixed = {"level": primary.level, "model": primary.model, "measure": primary.measure, "coefficient": HEADLINE}
    frame = at_primary(results.differences, primary, **fixed)
    return None if frame.empty else frame.drop(columns=["depth", "quality_metric", "run", *fixed])


def _generic(frame: pd.DataFrame, confidence: float) -> dict[str, Any]:
    """Return a table with any columns as texts; ``ci_low`` and ``ci_high`` become one column."""
    frame = frame.loc[:, [bool((frame[c].notna() & (frame[c] != "")).any()) for c in frame.columns]]
    numeric = {str(c): pd.api.types.is_numeric_dtype(frame[c].dtype) for c in frame.columns}
    both = {"ci_low", "ci_high"} <= set(numeric)
    ends = f"{percent(confidence)} interval"
    columns = {ends if both and c == "ci_low" else c: n for c, n in numeric.items() if not (both and c == "ci_high")}
    rows = []
    for row in records(frame.head(MOST_ROWS)):
        row[ends] = formatting.interval(row["ci_low"], row["ci_high"]) if both else ""
        rows.append([_text(c, row[c]) for c in columns])
    return {"columns": columns, "rows": rows, "left_out": max(0, len(frame) - MOST_ROWS)}


def _text(column: str, value: Any) -> str:
    """Return one value of such a table as text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return formatting.p_value(value) if column == "p" or column.startswith("p_") else formatting.number(value)
    if isinstance(value, int):
        return formatting.count(value)
    return "" if value is None else str(value)
