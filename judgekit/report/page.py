"""The HTML page: one file that opens from disk, with no script and nothing fetched.

Every text goes through `clean` and autoescaping, and the page's own content security policy forbids scripts and
requests, so that a document or a model cannot do anything with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup

from judgekit.data.files import write_atomic
from judgekit.report import figures, paper, svg, words
from judgekit.report.grids import Cell, Grid, grids, is_primary, records
from judgekit.report.model import Cost, LabelingInfo, Results
from judgekit.report.needs import missing, shares

__all__ = ["render", "write_html"]

MOST_TABLES = 60
"""Slices of the comparison that the page shows in full; what is beyond is in comparison.csv."""

MOST_ROWS = 500
"""Rows of one generic table on the page."""


def write_html(results: Results, path: str | Path) -> None:
    """Write the page to ``path``, atomically. The same results give the same bytes."""
    write_atomic(Path(path), render(results))


def render(results: Results) -> str:
    """Return the page as text."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("judgekit.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    for function in (words.count, words.number, words.interval, words.money, words.seconds, words.marks, words.rewards):
        environment.filters[function.__name__] = function
    environment.filters |= {
        "shares": shares,
        "missing": missing,
        "spark": figures.spark,
        "spark_range": figures.spark_range,
    }
    style = Markup(environment.get_template("style.css").render())  # our own file, no value of a user's in it
    return environment.get_template("report.html").render(r=results, style=style, **_context(results)) + "\n"


def _finalize(value: Any) -> Any:
    """Make control characters visible in every text on its way out; autoescaping comes after it."""
    return words.clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _context(results: Results) -> dict[str, Any]:
    every = grids(results)
    primary = [g for g in every if is_primary(g.part, results.primary)]
    others = [g for g in every if g.part.run == results.primary.run and not is_primary(g.part, results.primary)]
    order = {info.name: i for i, info in enumerate(results.labelings)}
    for name in dict.fromkeys(results.comparison["labeling"]):
        order.setdefault(str(name), len(order))
    main = primary[0] if primary else None
    return {
        "main": primary,
        "others": _by_level(others[:MOST_TABLES]),
        "left_out": max(0, len(others) - MOST_TABLES),
        "flags": words.FLAGS,
        "undefined": words.UNDEFINED,
        "figure_measure": "" if main is None else _figure_measure(results, main),
        "markers": {name: _swatch(i) for name, i in order.items()},
        "forest": _forest(results, main, every, order),
        "by_depth": _by_depth(results, main, every, order),
        "frontier": _frontier(results, main, order),
        "coefficients": _coefficients(primary),
        "per_run": paper.per_run(results),
        "matrix": paper.matrix(results),
        "measures": [m for m in dict.fromkeys(results.comparison["measure"]) if words.rewards(m)],
        "statuses": _statuses(results.labelings),
        "quality": _quality(results.quality),
        "score_means": _scores(results.scores),
        "generic": _generic,
        "ratio": _ratio(results),
    }


def _swatch(index: int) -> Markup:
    point = svg.marker(8, 8, index, size=5)
    return svg.tag("svg", point, viewBox="0 0 16 16", width=16, height=16, aria_hidden="true")


def _measure_at(measure: str, depth: int) -> str:
    """The same measure at another cutoff, if it has one."""
    name, at, _ = measure.rpartition("@")
    return f"{name}@{depth}" if at else measure


def _figure_measure(results: Results, main: Grid) -> str:
    """The measure that the figures show: the primary one, or the first where the verdict is about each best one."""
    return results.primary.measure if results.primary.measure in main.measures else main.measures[0]


def _forest(results: Results, main: Grid | None, every: list[Grid], order: dict[str, int]) -> Markup | None:
    if main is None:
        return None
    measure = _figure_measure(results, main)
    cells = [main.cells[name, measure] for name in main.labelings if (name, measure) in main.cells]
    if not cells:
        return None
    cells.sort(key=lambda c: (c.constructed, -c.value if c.defined else math.inf))
    runs: dict[str, list[Cell]] = {c.labeling: [] for c in cells}
    for single in every:
        if single.part.run != main.part.run and replace(single.part, run=main.part.run) == main.part:
            for name, row in runs.items():
                if (name, measure) in single.cells:
                    row.append(single.cells[name, measure])
    told = "; ".join(f"{c.labeling} {words.number(c.value)} {words.interval(c.low, c.high)}".rstrip() for c in cells)
    return figures.forest("forest", cells, runs, order, f"{measure}: {told}.")


def _by_depth(results: Results, main: Grid | None, every: list[Grid], order: dict[str, int]) -> Markup | None:
    if main is None:
        return None
    measure = _figure_measure(results, main)
    series: dict[str, list[tuple[int, Cell]]] = {}
    for g in sorted(every, key=lambda g: g.part.depth):
        depth = g.part.depth
        if depth < 1 or replace(g.part, depth=main.part.depth) != main.part:
            continue
        here = _measure_at(measure, depth)
        for name in g.labelings:
            if (name, here) in g.cells:
                series.setdefault(name, []).append((depth, g.cells[name, here]))
    depths = {k for row in series.values() for k, c in row if c.defined}
    if len(depths) < 2:
        return None
    told = "; ".join(
        f"{name}: " + ", ".join(f"{words.number(c.value)} at {k}" for k, c in row) for name, row in series.items()
    )
    return figures.by_depth("depth", series, order, told + ".")


def _frontier(results: Results, main: Grid | None, order: dict[str, int]) -> dict[str, Any] | None:
    """The figure, with what could not be placed in it."""
    if main is None:
        return None
    measure = _figure_measure(results, main)
    cells = {n: main.cells[n, measure] for n in main.labelings if (n, measure) in main.cells}
    costs = {i.name: i for i in results.labelings if i.name in cells and cells[i.name].defined}
    automatic = [i for i in costs.values() if not i.people]
    unit, of = _unit(automatic, results.currency)
    known = {i.name: c for i in automatic if (c := of(i.spending.standalone)) is not None}
    if len(known) < 2 or not any(known.values()):
        return None
    free = [n for n in known if not cells[n].constructed]
    best = {n for n in free if not any(_dominates(m, n, known, cells) for m in free if m != n)}
    points = [figures.Point(cells[n], c, n in best) for n, c in known.items()]
    whole = [c for a in results.answers if (c := of(a.spending.standalone)) is not None]
    told = "; ".join(f"{n} costs {words.count(c)} {unit} for {words.number(cells[n].value)}" for n, c in known.items())
    picture = figures.frontier("frontier", points, unit, sum(whole) if whole else None, order, told + ".")
    return {"picture": picture, "unplaced": [n for n in cells if n not in known], "unit": unit}


def _dominates(other: str, name: str, cost: dict[str, float], cells: dict[str, Cell]) -> bool:
    """Whether ``other`` is at most as dear and at least as good, and better in one of the two."""
    a, b = (cost[other], -cells[other].value), (cost[name], -cells[name].value)
    return a[0] <= b[0] and a[1] <= b[1] and a != b


def _unit(infos: list[LabelingInfo], currency: str) -> tuple[str, Any]:
    """The most telling unit in which every labeling's cost is known: money, else tokens, else requests."""
    spent = [i.spending.standalone for i in infos]
    if spent and all(c.money is not None for c in spent):
        return currency or "money", lambda c: c.money
    if spent and all(c.prompt_tokens is not None and c.completion_tokens is not None for c in spent):
        return "tokens", _tokens
    return "requests", lambda c: float(c.requests)


def _coefficients(grids: list[Grid]) -> dict[str, Any]:
    """All coefficients of the primary slices, one row per labeling and measure."""
    cells = [c for g in grids for c in g.cells.values()]
    return {"names": list(dict.fromkeys(name for c in cells for name in c.others)), "cells": cells}


def _statuses(labelings: tuple[LabelingInfo, ...]) -> list[str]:
    return list(dict.fromkeys(s for info in labelings for s in info.counts))


def _quality(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Per model and metric: runs x depths."""
    out = []
    for (model, metric), rows in frame.groupby(["model", "metric"], sort=False):
        depths = sorted(set(rows["depth"]))
        runs = sorted(dict.fromkeys(rows["run"]), key=lambda run: run == "all")
        cells = {(r["run"], r["depth"]): r for r in rows.to_dict("records")}
        out.append({"model": model, "metric": metric, "depths": depths, "runs": runs, "cells": cells})
    return out


def _scores(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Per labeling: measures x runs."""
    out = []
    for labeling, rows in frame.groupby("labeling", sort=False):
        cells = {(r["measure"], r["run"]): r["value"] for r in rows.to_dict("records")}
        measures, runs = list(dict.fromkeys(rows["measure"])), list(dict.fromkeys(rows["run"]))
        out.append({"labeling": labeling, "measures": measures, "runs": runs, "cells": cells})
    return out


def _by_level(members: list[Grid]) -> list[tuple[str, list[Grid]]]:
    levels = dict.fromkeys(g.part.level for g in members)
    return [(level, [g for g in members if g.part.level == level]) for level in levels]


def _tokens(cost: Cost) -> int | None:
    known = cost.prompt_tokens is not None and cost.completion_tokens is not None
    return (cost.prompt_tokens or 0) + (cost.completion_tokens or 0) if known else None


def _ratio(results: Results) -> Callable[[Cost], str]:
    """Return a function that gives the tokens of a cost as a share of answering end to end with all models."""
    parts = [_tokens(a.spending.standalone) for a in results.answers]
    whole = sum(p for p in parts if p is not None)

    def ratio(cost: Cost) -> str:
        tokens = _tokens(cost)
        return words.UNKNOWN if tokens is None or None in parts or not whole else f"{tokens / whole:.0%}"

    return ratio


def _generic(frame: pd.DataFrame) -> dict[str, Any]:
    """Return a table with any columns as texts; ``ci_low`` and ``ci_high`` become one column."""
    numeric = {str(c): pd.api.types.is_numeric_dtype(frame[c].dtype) for c in frame.columns}
    both = {"ci_low", "ci_high"} <= set(numeric)
    columns = {
        "95 % interval" if both and c == "ci_low" else c: n for c, n in numeric.items() if not (both and c == "ci_high")
    }
    rows = []
    for row in records(frame.head(MOST_ROWS)):
        row["95 % interval"] = words.interval(row["ci_low"], row["ci_high"]) if both else ""
        rows.append([_text(c, row[c]) for c in columns])
    return {"columns": columns, "rows": rows, "left_out": max(0, len(frame) - MOST_ROWS)}


def _text(column: str, value: Any) -> str:
    """Return one value of such a table as text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return words.p_value(value) if column == "p" or column.startswith("p_") else words.number(value)
    if isinstance(value, int):
        return words.count(value)
    return "" if value is None else str(value)
