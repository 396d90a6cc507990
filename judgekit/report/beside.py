"""Several results beside each other: what changed, and data sets or ways of answering as the eRAG paper shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from judgekit.data.labelings import Scale
from judgekit.data.streams import write_atomic
from judgekit.data.tables import Status
from judgekit.report.charts import paper_figures
from judgekit.report.formatting import count, number
from judgekit.report.grids import per_run_rows, records, table_1, where
from judgekit.report.model import Results
from judgekit.report.page import generic, shell
from judgekit.report.queries import Backing

MOST = 10
"""Questions that are named as won, and as lost."""


@dataclass(frozen=True)
class Changes:
    """What differs between two results, in sentences and tables; a table of nothing is empty."""

    sentences: tuple[str, ...]
    decision: tuple[tuple[str, str, str], ...]
    labels: pd.DataFrame
    runs: pd.DataFrame
    questions: pd.DataFrame


def changes(before: tuple[Results, Backing], after: tuple[Results, Backing]) -> Changes:
    """Return what changed from one result, and what lies behind it, to another."""
    old, new = (dict(results.decision) for results, _ in (before, after))
    lines = ((title, old.get(title, ""), new.get(title, "")) for title in dict.fromkeys([*old, *new]))
    decision = tuple(line for line in lines if line[1] != line[2])
    labels = pd.DataFrame([*_labels(before, after)])
    said = [
        f"The decision differs in {', '.join(line[0] for line in decision)}."
        if decision
        else "The decision is the same."
    ]
    moved = [
        f"{r['labeling']} {count(r['changed'])} of {count(r['pairs in both'])}" for r in records(labels) if r["changed"]
    ]
    said.append(f"Labels that changed: {', '.join(moved) or 'none'}.")
    pairs, problem = _answers(before, after)
    by_run = pairs.groupby("run", sort=False)
    runs = by_run.agg(questions=("before", "size"), before=("before", "mean"), after=("after", "mean"),
                      won=("won", "sum"), lost=("lost", "sum")).reset_index()  # fmt: skip
    means = pairs.groupby("query_id", sort=False)[["before", "after"]].mean().reset_index()
    means["change"] = means["after"] - means["before"]
    won, lost = (
        means[means["change"] * sign > 0].sort_values("change", ascending=sign < 0, kind="stable") for sign in (1, -1)
    )
    if not problem:
        ends = f"{number(means['before'].mean())} to {number(means['after'].mean())}"
        problem = (
            f"Questions won: {count(len(won))}, lost: {count(len(lost))}, of {count(len(means))} in both; mean"
            f" {before[0].primary.metric}, runs in both: {ends}."
        )
    queries = {**before[1].queries, **after[1].queries}
    some = pd.concat([lost.head(MOST), won.head(MOST)])
    some.insert(1, "question", [queries[q].text if q in queries else "" for q in some["query_id"]])
    return Changes((*said, problem), decision, labels, runs, some.rename(columns={"query_id": "query"}))


def _labels(before: tuple[Results, Backing], after: tuple[Results, Backing]) -> Iterator[Mapping[str, object]]:
    """Yield for each labeling of both how many labels of the same pairs are others now."""
    (results, was), (_, now) = before, after
    scales = {info.name: Scale.parse(info.scale) for info in results.labelings if info.scale}
    key = ["query_id", "doc_id"]
    for name in was.labels:
        if name not in now.labels:
            continue
        old, new = was.labels[name], now.labels[name]
        there = old.merge(new, on=key, suffixes=("", "_now"))
        first, second = (
            there["relevance"].where(there["status"] == Status.OK.value),
            there["relevance_now"].where(there["status_now"] == Status.OK.value),
        )
        least = scales.get(name, Scale("binary")).threshold
        yield {
            "labeling": name,
            "pairs in both": len(there),
            "changed": int(((first != second) & (first.notna() | second.notna())).sum()),
            "relevant now": int(((second >= least) & ~(first >= least)).sum()),
            "no longer relevant": int(((first >= least) & ~(second >= least)).sum()),
            "only before": len(old) - len(there),
            "only after": len(new) - len(there),
        }


def _answers(before: tuple[Results, Backing], after: tuple[Results, Backing]) -> tuple[pd.DataFrame, str]:
    """Return the quality of the answers of both, by run and question, or why there is none."""
    tables, empty = [], pd.DataFrame({"run": [], "query_id": [], "before": [], "after": [], "won": [], "lost": []})
    for results, behind in (before, after):
        if behind.quality is None:
            return empty, "Questions won and lost are unknown: the answers of one folder are gone."
        primary = results.primary
        fixed = {"metric": primary.metric, "depth": primary.depth, "model": primary.model}
        tables.append(where(behind.quality, **fixed)[["run", "query_id", "value"]].dropna())
    cells = [(results.primary.metric, results.primary.depth) for results, _ in (before, after)]
    if cells[0] != cells[1]:
        return empty, "Questions won and lost are not counted: the decisions are about another metric or depth."
    pairs = tables[0].merge(tables[1], on=["run", "query_id"]).set_axis(["run", "query_id", "before", "after"], axis=1)
    if pairs.empty:
        return empty, "Questions won and lost are not counted: no run has a question in both."
    return pairs.assign(won=pairs["after"] > pairs["before"], lost=pairs["after"] < pairs["before"]), ""


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
