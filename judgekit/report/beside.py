"""Several results beside each other: what changed, and data sets or ways of answering as the eRAG paper shows them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd

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
    decision = []
    for title in dict.fromkeys([*old, *new]):
        line = title, old.get(title, ""), new.get(title, "")
        if line[1] != line[2]:
            decision.append(line)
    same = "The decision is the same."
    if decision:
        same = f"The decision differs in {', '.join(title for title, _, _ in decision)}."
    labels = pd.DataFrame([*_labels(before[1], after[1])])
    moved = []
    for row in records(labels):
        if row["changed"]:
            moved.append(f"{row['labeling']} {count(row['changed'])} of {count(row['pairs in both'])}")
    labels_changed = f"Labels that changed: {', '.join(moved) or 'none'}."
    pairs, problem = _answers(before, after)
    pairs = pairs.assign(won=pairs["after"] > pairs["before"], lost=pairs["after"] < pairs["before"])
    by_run = pairs.groupby("run", sort=False)
    # Runs that only one folder has take no part: their questions were neither won nor lost.
    runs = by_run[["before", "after"]].mean().join(by_run[["won", "lost"]].sum())
    runs.insert(0, "questions", by_run.size())
    means = pairs.groupby("query_id", sort=False)[["before", "after"]].mean().reset_index()
    means["change"] = means["after"] - means["before"]
    ordered = means.sort_values("change", kind="stable")
    lost, won = ordered[ordered["change"] < 0], ordered[ordered["change"] > 0]
    if not problem:
        ends = f"{number(means['before'].mean())} to {number(means['after'].mean())}"
        problem = (
            f"Questions won: {count(len(won))}, lost: {count(len(lost))}, of {count(len(means))} in both; mean"
            f" {before[0].primary.metric}, runs in both: {ends}."
        )
    # Either folder may have lost its questions; the texts are the same where both have them.
    queries = {**before[1].queries, **after[1].queries}
    texts = {query_id: query.text for query_id, query in queries.items()}
    questions = pd.concat([lost.head(MOST), won.tail(MOST)[::-1]])
    questions.insert(1, "question", questions["query_id"].map(texts).fillna(""))
    questions = questions.rename(columns={"query_id": "query"})
    return Changes((same, labels_changed, problem), tuple(decision), labels, runs.reset_index(), questions)


def _labels(before: Backing, after: Backing) -> Iterator[Mapping[str, object]]:
    """Yield for each labeling of both how many labels of the same pairs are others now."""
    for name, old in before.labels.items():
        if name in after.labels:
            new = after.labels[name]
            pairs = old.merge(new, on=["query_id", "doc_id"], suffixes=("", "_now"))
            # A label that is missing differs from every number and equals another that is missing: infinity does so.
            was = pairs["relevance"].where(pairs["status"] == Status.OK.value, math.inf)
            now = pairs["relevance_now"].where(pairs["status_now"] == Status.OK.value, math.inf)
            yield {
                "labeling": name,
                "pairs in both": len(pairs),
                "changed": int((was != now).sum()),
                "only before": len(old) - len(pairs),
                "only after": len(new) - len(pairs),
            }


def _answers(before: tuple[Results, Backing], after: tuple[Results, Backing]) -> tuple[pd.DataFrame, str]:
    """Return the quality of the answers of both, by run and question, or why there is none."""
    tables, empty = [], pd.DataFrame({"run": [], "query_id": [], "before": [], "after": []})
    for results, behind in (before, after):
        if behind.quality is None:
            return empty, "Questions won and lost are unknown: the answers of one folder are gone."
        primary = results.primary
        rows = where(behind.quality, metric=primary.metric, depth=primary.depth, model=primary.model)
        tables.append(rows[["run", "query_id", "value"]].dropna())
    old, new = before[0].primary, after[0].primary
    # A value of another metric, or of answers from another depth, is no better or worse than this one.
    if (old.metric, old.depth) != (new.metric, new.depth):
        return empty, "Questions won and lost are not counted: the decisions are about another metric or depth."
    pairs = tables[0].merge(tables[1], on=["run", "query_id"])
    if pairs.empty:
        return empty, "Questions won and lost are not counted: no run has a question in both."
    return pairs.rename(columns={"value_x": "before", "value_y": "after"}), ""


def write_beside(found: Mapping[str, tuple[Results, Backing]], path: str | Path) -> dict[str, Changes]:
    """Write the page to ``path``, atomically, and return what changed from the first of them to each other."""
    # The same results give the same bytes.
    (_, first), *others = found.items()
    changed = {name: changes(first, other) for name, other in others}
    write_atomic(Path(path), beside({name: results for name, (results, _) in found.items()}, changed))
    return changed


def beside(found: Mapping[str, Results], changed: Mapping[str, Changes]) -> str:
    """Return a page that holds results, by the name of each, against each other: each in its own primary cell."""
    parts, cells = [], set()
    labelings, measures = dict[str, None](), dict[str, None]()
    for name, results in found.items():
        primary = results.primary
        parts.append(per_run_rows(results).assign(dataset=name))
        cells.add((primary.measure, primary.metric, primary.depth))
        labelings |= dict.fromkeys(info.name for info in results.labelings)
        measures |= dict.fromkeys(results.scores["measure"])
    table = pd.concat(parts, ignore_index=True)
    return shell(
        "beside.html",
        found=found,
        changed=changed,
        generic=partial(generic, confidence=0.95),
        figures=paper_figures(found),
        table=None if table.empty else table_1(table, labelings, measures),
        differ=len(cells) > 1,
    )
