"""Several results beside each other: data sets as in Table 1 of the eRAG paper, ways of answering as in Figure 3."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pandas as pd

from judgekit.analysis.primary import CHOOSE_RUNS, FIND_QUESTIONS, USES
from judgekit.data.files import write_atomic
from judgekit.report.charts import IN_WORDS, Dot, dot, places, rows_of_dots
from judgekit.report.erag_tables import per_run_rows, table_1
from judgekit.report.figures import Figure
from judgekit.report.grids import HEADLINE, at_primary, records
from judgekit.report.model import Results
from judgekit.report.page import shell

__all__ = ["beside", "write_beside"]

_AT_ONCE: Final = 3
"""Folders that one figure holds well."""


def write_beside(found: Mapping[str, Results], path: str | Path) -> None:
    """Write the page to ``path``, atomically. The same results give the same bytes."""
    write_atomic(Path(path), beside(found))


def beside(found: Mapping[str, Results]) -> str:
    """Return a page that holds results, by the name of each, against each other: each in its own primary cell."""
    rows = [per_run_rows(results).assign(dataset=name) for name, results in found.items()]
    table = pd.concat(rows, ignore_index=True)
    measures = [m for results in found.values() for m in dict.fromkeys(results.scores["measure"])]
    context: dict[str, Any] = {
        "found": found,
        "drawings": [figure for use in (CHOOSE_RUNS, FIND_QUESTIONS) for figure in _figures(found, use)],
        "table": None if table.empty else table_1(table, list(_names(found)), list(dict.fromkeys(measures))),
        "differ": len({(one.primary.measure, one.primary.metric, one.primary.depth) for one in found.values()}) > 1,
    }
    return shell("beside.html", **context)


def _names(found: Mapping[str, Results]) -> dict[str, int]:
    """Return the labelings of all, each with its place, which gives it its colour."""
    names = dict.fromkeys(name for results in found.values() for name in places(results))
    return {name: place for place, name in enumerate(names)}


def _figures(found: Mapping[str, Results], use: str) -> Iterator[Figure]:
    """Yield how well each labeling follows the answers of each of them, a few side by side."""
    panels = [(name, dots) for name, results in found.items() if (dots := _dots(results, use))]
    for place in range(0, len(panels), _AT_ONCE):
        some = dict(panels[place : place + _AT_ONCE])
        title = f"{IN_WORDS[use]}: how often the better answer has the higher score"
        caption = f"{IN_WORDS[use]}: concordance in the primary cell of each (0.5 is chance), with its interval."
        yield rows_of_dots(f"{use}-{place}", title, caption, some, _names(found))


def _dots(results: Results, use: str) -> list[Dot]:
    primary = results.primary
    fixed = {"level": USES[use], "measure": primary.measure, "model": primary.model, "coefficient": HEADLINE}
    return [dot(row, math.nan) for row in records(at_primary(results.comparison, primary, **fixed))]
