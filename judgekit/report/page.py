"""The HTML page: one file that opens from disk and fetches nothing.

Every text goes through `clean` and autoescaping, and the page's own content security policy forbids requests and every
script but the page's, whose hash it names, so that a document or a model cannot do anything with it. Without a browser
that runs scripts all of it can be read but the queries.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup

from judgekit.analysis.resampling import percent
from judgekit.data.streams import write_atomic
from judgekit.data.tables import ALL
from judgekit.report.charts import figures
from judgekit.report.drawing import COEFFICIENTS
from judgekit.report.formatting import (
    UNDEFINED,
    count,
    in_words,
    interval,
    marks,
    meaning,
    money,
    number,
    p_value,
    rewards,
    seconds,
    shown,
    split_flags,
    times,
)
from judgekit.report.grids import HEADLINE, Cell, at_primary, grids, labelled, per_run, records, speed_up
from judgekit.report.model import DETAILS, Answers, LabelingInfo, Results
from judgekit.report.queries import Backing, Packed, pack
from judgekit.report.svg import linear

SCRIPTS = ("state.js", "tables.js", "explorer.js", "figures.js")

FIGURES = {
    "run": "against the best, points",
    "follows": "r",
    "gain": "gain, points",
    "by kind": "r by kind",
    "finds": "worse answered question found, share",
}
"""The claims with figures that the page lists, by kind, and their unit."""

MOST_ROWS = 500
"""Rows of one generic table on the page."""


def write_html(results: Results, path: str | Path, backing: Backing | None = None) -> None:
    """Write the page to ``path``, atomically, and what it cannot hold into ``queries/`` beside it."""
    # The same results give the same bytes.
    path = Path(path)
    packed = None if backing is None else pack(results, backing)
    for old in path.parent.glob("queries/[0-9][0-9][0-9][0-9]*.js"):
        old.unlink()
    if packed is not None and packed.beside:
        (path.parent / "queries").mkdir(parents=True, exist_ok=True)
        for number, block in enumerate(packed.blocks):
            write_atomic(path.parent / "queries" / f"{number:04}.js", f'judgekit.rows({number}, "{block}");\n')
    write_atomic(path, render(results, packed))


def render(results: Results, packed: Packed | None = None) -> str:
    """Return the page as text, without what it cannot hold."""
    return shell("report.html", packed, r=results, **_context(results))


def shell(template: str, packed: Packed | None = None, **context: Any) -> str:
    """Return a page with the style sheet and the script of the house, and with the rows of its queries."""
    environment = _environment()
    folder = files("judgekit.report") / "templates"
    style, *scripts = ((folder / name).read_text(encoding="utf-8") for name in ("style.css", *SCRIPTS))
    opened = "window.judgekit = { rows, found, marked, stateOf, fragment };"  # to the files beside it, and to tests
    script = "\n".join(["(() => {", '"use strict";', *scripts, opened, "})();", ""])
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
        finalize=shown,
    )
    filters = (count, number, interval, money, seconds, marks, meaning, in_words, rewards, times, percent, spark_range)
    environment.filters |= {function.__name__: function for function in filters}
    return environment


def spark_range(cells: Iterable[Cell]) -> tuple[float, float]:
    """Return the range on which the small pictures of one table are drawn; chance is in it."""
    value = COEFFICIENTS[HEADLINE]
    numbers = [number for cell in cells for number in (cell.value, cell.low, cell.high)]
    axis = linear([*numbers, *value.held], 0, 330, floor=value.floor, ceiling=value.ceiling)
    return axis.low, axis.high


def _context(results: Results) -> dict[str, Any]:
    every = grids(results)
    infos: list[LabelingInfo | Answers] = [*results.labelings, *results.answers]
    primary = [g for g in every if g.primary]
    # nDCG@5 and nDCG@10 reward the same.
    names = (str(measure).rpartition("@")[0] or str(measure) for measure in results.comparison["measure"].unique())
    timed = partial(speed_up, results)
    return {
        "found": _found(results),
        "main": primary,
        "others": [g for g in every if not g.primary],
        "undefined": UNDEFINED,
        "figures": figures(results),
        "coefficients": _coefficients(results),
        "differences": _differences(results),
        "per_run": per_run(results),
        "measures": [m for m in dict.fromkeys(names) if rewards(m)],
        "statuses": list(dict.fromkeys(["ok", *(s for info in infos for s, n in info.counts.items() if n)])),
        "outside": any(info.outside_pool is not None for info in results.labelings),
        "quality": _quality(results.quality),
        "score_means": _scores(results.scores),
        "generic": partial(generic, confidence=results.facts.confidence),
        "labelled": labelled(results),
        "speed_up": timed,
        "timed": any(timed(info.spending.standalone) for info in results.labelings),
    }


def _found(results: Results) -> pd.DataFrame | None:
    """Return what was found of each run and labeling, with its figures: the claims that have any."""
    rows = []
    for claim in results.claims:
        if claim.kind not in FIGURES or not claim.subject:
            continue
        row: dict[str, Any] = {"figure": FIGURES[claim.kind], "of": claim.subject, "against": claim.against}
        rows.append(
            row | {"value": claim.value, "value_low": claim.low, "value_high": claim.high, "shown": claim.shown}
        )
    return pd.DataFrame(rows) if rows else None


def _coefficients(results: Results) -> pd.DataFrame:
    """Return all coefficients of the primary cells, with what stands behind them and notes in words."""
    primary = results.primary
    table = at_primary(results.comparison, primary, level=primary.level, model=primary.model)
    if results.details is not None:
        more = {"tau_b_max": "largest tau-b attainable", "lacking": "share of cases lacking"}
        keys = [c for c in DETAILS.columns if c not in more]
        table = table.merge(results.details[[*keys, *more]].rename(columns=more), how="left", on=keys)
    notes = table["flags"].map(lambda flags: "; ".join(map(meaning, split_flags(flags)))) + table["undefined_reason"]
    same = ["run", "level", "depth", "quality_metric", "model", "flags", "undefined_reason"]
    return table.drop(columns=same).assign(notes=notes)


def _quality(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Per model and metric: runs x depths."""
    tables = []
    mode = frame["mode"] if "mode" in frame.columns else pd.Series("", frame.index)
    whose = frame["model"].where(mode == "", frame["model"] + " (" + mode + ")")
    for (model, metric), rows in frame.groupby([whose, frame["metric"]], sort=False):
        cells = {(row["run"], row["depth"]): row for row in records(rows)}
        closed = cells.pop((ALL, 0), None)
        table = {"model": model, "metric": metric, "cells": cells, "closed": closed}
        table["depths"] = sorted({depth for _, depth in cells})
        table["runs"] = list(dict.fromkeys(run for run, _ in cells))
        tables.append(table)
    return tables


def _scores(frame: pd.DataFrame) -> pd.DataFrame | None:
    """Return the mean scores: labelings and measures x runs."""
    rows: dict[tuple[str, str], dict[str, object]] = {}
    for row in records(frame):  # pandas before 3 takes texts for equal that differ behind a NUL
        key = {"labeling": row["labeling"], "measure": row["measure"]}
        rows.setdefault((row["labeling"], row["measure"]), key)[row["run"]] = row["value"]
    return pd.DataFrame([*rows.values()]) if rows else None


def _differences(results: Results) -> pd.DataFrame | None:
    """Return the paired differences of the primary cell in the headline coefficient."""
    primary = results.primary
    if results.differences is None:
        return None
    fixed = {"level": primary.level, "model": primary.model, "measure": primary.measure, "coefficient": HEADLINE}
    frame = at_primary(results.differences, primary, **fixed)
    return None if frame.empty else frame.drop(columns=["depth", "quality_metric", "run", *fixed])


def generic(frame: pd.DataFrame, confidence: float) -> dict[str, Any]:
    """Return a table with any columns as texts; what has a ``_low`` and ``_high`` is one column with its interval."""
    shown = frame.head(MOST_ROWS)
    numeric: dict[str, bool] = {}
    texts: dict[str, list[str]] = {}
    for name in map(str, frame.columns):
        if (frame[name].notna() & (frame[name] != "")).any():
            numeric[name] = pd.api.types.is_numeric_dtype(frame[name].dtype)
            texts[name] = [_text(name, value) for value in shown[name].tolist()]
    titles = {name: name.replace("_", " ") for name in texts}
    for low in [name for name in texts if name.endswith("_low")]:
        value = low.removesuffix("_low")
        high = f"{value}_high"
        if not numeric.get(high):
            continue
        intervals = [interval(*ends) for ends in zip(shown[low].tolist(), shown[high].tolist(), strict=True)]
        if value in texts:
            texts[value] = [f"{text} {ends}".strip() for text, ends in zip(texts[value], intervals, strict=True)]
            del texts[low]
        else:
            texts[low], titles[low] = intervals, f"{percent(confidence)} interval"
        del texts[high]
    columns = {titles[name]: numeric[name] for name in texts}
    rows = [list(row) for row in zip(*texts.values(), strict=True)]
    return {"columns": columns, "rows": rows, "left_out": max(0, len(frame) - MOST_ROWS)}


def _text(column: str, value: Any) -> str:
    """Return one value of such a table as text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return p_value(value) if column == "p" or column.startswith("p_") else number(value)
    if isinstance(value, int):
        return count(value)
    return "" if value is None else str(value)
