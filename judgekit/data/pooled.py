"""The amounts to label and to answer for some runs, and what each run adds to the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from judgekit.data.runs import Run


def counts_of(
    runs: Sequence[Run], query_ids: Iterable[str], depth: int, question: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the numbers of pairs and of different lists within a depth, and of those that only one run has.

    ``question`` names each query's question, by query id: shared pairs are asked once.
    """
    rows_of: dict[str, list[str]] = {}
    for query_id in query_ids:
        rows_of.setdefault(query_id if question is None else question[query_id], []).append(query_id)
    labels_alone, answers_alone = Counter[str](), Counter[str]()
    # One question after the other: the pairs of all of them would take more memory than the runs.
    for rows in rows_of.values():
        # The only run that has each document or list, "" if several do.
        docs: dict[str, str] = {}
        lists: dict[tuple[str, ...], str] = {}
        for query_id in rows:
            for run in runs:
                top = tuple(run.top(query_id, depth))
                lists[top] = _alone(lists.get(top), run.name)
                for doc_id in top:
                    docs[doc_id] = _alone(docs.get(doc_id), run.name)
        labels_alone.update(docs.values())
        answers_alone.update(lists.values())
    names = [run.name for run in runs] if len(runs) > 1 else []
    return {
        "pairs": labels_alone.total(),
        "lists": answers_alone.total(),
        "labels_again": tuple(labels_alone[name] for name in names),
        "answers_again": tuple(answers_alone[name] for name in names),
    }


def _alone(brought_by: str | None, run: str) -> str:
    """Return the only run that has something, "" if several do; ``brought_by`` is None at first."""
    return run if brought_by in (None, run) else ""
