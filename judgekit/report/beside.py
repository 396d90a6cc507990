"""Several results side by side: what changed, and data sets or modes of answering as in the eRAG paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd

from judgekit.analysis.samples import means_of
from judgekit.data.streams import write_atomic
from judgekit.report.charts import paper_figures
from judgekit.report.formatting import count, number
from judgekit.report.grids import per_run_rows, table_1, where
from judgekit.report.model import Results
from judgekit.report.page import generic, shell
from judgekit.report.queries import Backing

MOST = 10
"""The number of questions to name as won, and as lost."""


@dataclass(frozen=True)
class Changes:
    """The differences between two results: sentences, lines of the decision, and a table of questions."""

    sentences: tuple[str, ...]
    decision: tuple[tuple[str, str, str], ...]
    questions: pd.DataFrame


def changes(before: tuple[Results, Backing], after: tuple[Results, Backing]) -> Changes:
    """Return what changed from one result, with the data behind it, to another."""
    old, new = dict(before[0].decision), dict(after[0].decision)
    decision = []
    for title in dict.fromkeys([*old, *new]):
        was, now = old.get(title, ""), new.get(title, "")
        if was != now:
            decision.append((title, was, now))
    said = "The decision is the same."
    if decision:
        said = f"The decision differs in {', '.join(title for title, _, _ in decision)}."
    pairs, problem = _answers(before, after)
    # The mean over the runs of both folders: a run of only one folder neither wins nor loses a question.
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
    # Either folder may have lost its questions; otherwise the texts are the same.
    queries = {**before[1].queries, **after[1].queries}
    texts = {query_id: query.text for query_id, query in queries.items()}
    questions = pd.concat([lost.head(MOST), won.tail(MOST)[::-1]])
    questions.insert(1, "question", questions["query_id"].map(texts).fillna(""))
    return Changes((said, problem), tuple(decision), questions.rename(columns={"query_id": "query"}))


def _answers(before: tuple[Results, Backing], after: tuple[Results, Backing]) -> tuple[pd.DataFrame, str]:
    """Return the answer quality of both, by run and question, or why there is none."""
    tables, empty = [], pd.DataFrame({"run": [], "query_id": [], "before": [], "after": []})
    for results, behind in (before, after):
        if behind.quality is None:
            return empty, "Questions won and lost are unknown: the answers of one folder are gone."
        primary = results.primary
        rows = where(behind.quality, metric=primary.metric, depth=primary.depth, model=primary.model)
        tables.append(means_of(rows)[["run", "query_id", "value"]].dropna())
    old, new = before[0].primary, after[0].primary
    # Values of another metric, or of answers from another depth, cannot be compared.
    if (old.metric, old.depth) != (new.metric, new.depth):
        return empty, "Questions won and lost are not counted: the decisions are about another metric or depth."
    pairs = tables[0].merge(tables[1], on=["run", "query_id"])
    if pairs.empty:
        return empty, "Questions won and lost are not counted: no run has a question in both."
    return pairs.rename(columns={"value_x": "before", "value_y": "after"}), ""


def write_beside(found: Mapping[str, tuple[Results, Backing]], path: str | Path) -> dict[str, Changes]:
    """Write the page to ``path``, atomically, and return what changed from the first result to each other."""
    # The same results give the same bytes.
    (_, first), *others = found.items()
    changed = {name: changes(first, other) for name, other in others}
    write_atomic(Path(path), beside({name: results for name, (results, _) in found.items()}, changed))
    return changed


def beside(found: Mapping[str, Results], changed: Mapping[str, Changes]) -> str:
    """Return a page that compares named results, each in its own primary cell."""
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
