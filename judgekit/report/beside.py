"""Several results beside each other: what changed, and data sets or ways of answering as the eRAG paper shows them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from judgekit.data.streams import write_atomic
from judgekit.report.changes import Changes, changes
from judgekit.report.charts import paper_figures
from judgekit.report.erag_tables import per_run_rows, table_1
from judgekit.report.model import Results
from judgekit.report.page import generic, shell
from judgekit.report.queries import Backing

__all__ = ["beside", "write_beside"]


def write_beside(found: Mapping[str, tuple[Results, Backing]], path: str | Path) -> dict[str, Changes]:
    """Write the page to ``path``, atomically, and return what changed from the first of them to each other."""
    # The same results give the same bytes.
    (_, first), *others = found.items()
    changed = {name: changes(first, other) for name, other in others}
    write_atomic(Path(path), beside({name: results for name, (results, _) in found.items()}, changed))
    return changed


def beside(found: Mapping[str, Results], changed: Mapping[str, Changes]) -> str:
    """Return a page that holds results, by the name of each, against each other: each in its own primary cell."""
    rows = [per_run_rows(results).assign(dataset=name) for name, results in found.items()]
    table = pd.concat(rows, ignore_index=True)
    labelings = dict.fromkeys(info.name for results in found.values() for info in results.labelings)
    measures = dict.fromkeys(measure for results in found.values() for measure in results.scores["measure"])
    context: dict[str, Any] = {
        "found": found,
        "changed": changed,
        "generic": partial(generic, confidence=0.95),
        "figures": paper_figures(found),
        "table": None if table.empty else table_1(table, list(labelings), list(measures)),
        "differ": len({(one.primary.measure, one.primary.metric, one.primary.depth) for one in found.values()}) > 1,
    }
    return shell("beside.html", **context)
