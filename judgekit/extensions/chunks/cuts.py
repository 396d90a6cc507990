"""The section of a run's report about documents that are different chunks of the same pages."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

import pandas as pd

from judgekit import Measure
from judgekit.extend import Section, State, UsageError, where


def cuts(state: State) -> Iterable[Section]:
    """Yield a table by labeling and run, if documents have spans: the evidence found, and its cost."""
    depth, collection = state.cell.depth, state.prepared.collection
    if depth < 1:
        return
    rows, spans = [], False
    for run in collection.runs:
        doc_ids = chain.from_iterable(run.top(query_id, depth) for query_id in collection.queries)
        docs = collection.docs.get(list(doc_ids))
        spans = spans or any(map(where, docs))
        size = sum(len(doc.text) for doc in docs) / max(len(docs), 1)
        rows.append({"run": run.name, "characters per document": size, **_taken(state, run.name)})
    found = _found(state) if spans else None
    if found is not None:
        yield Section(
            "The same evidence, cut differently",
            f"Evidence counts once, however many of the top {depth} documents hold it: as a gain where it appears first"
            " (nDCG), and as a share of all evidence in the pool (recall). Beside them: the quality of the answers from"
            f" the top {depth}, the tokens per prompt, and the cost of all prompts in the currency of the prices.",
            found.merge(pd.DataFrame(rows), on="run").dropna(axis=1, how="all"),
        )


def _found(state: State) -> pd.DataFrame | None:
    """Return the evidence found by each run, by labeling; None if no relevant document has a span."""
    depth = state.cell.depth
    names = {f"nDCG(unit=evidence)@{depth}": "evidence nDCG", f"R(unit=evidence)@{depth}": "evidence recall"}
    measures = [Measure(name) for name in names]
    try:
        evaluation = state.score(measures)
    # No relevant document has a span, so there is no evidence to count.
    except UsageError:
        return None
    means = evaluation.means().pivot(index=["labeling", "run"], columns="measure", values="value")
    return means[list(names)].rename(columns=names).reset_index()


def _taken(state: State, run: str) -> dict[str, float | None]:
    """Return the quality and cost of the answers from a run's documents."""
    cell, quality = state.cell, state.first_mode()
    stage = next((name for name, way in state.prepared.answering.items() if way.model == cell.model), "")
    spent = state.taken(f"{stage} {run}")
    reported = spent.requests - spent.unreported
    return {
        cell.metric: quality.loc[quality["run"] == run, "value"].mean(),
        "tokens per prompt": spent.prompt_tokens / reported if reported else None,
        "cost": spent.money if spent.requests else None,
    }
