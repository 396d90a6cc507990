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
    # The only run that has each pair or list, "" if several do.
    pairs: dict[tuple[str, str], str] = {}
    lists: dict[tuple[str, tuple[str, ...]], str] = {}
    for query_id in query_ids:
        asked = query_id if question is None else question[query_id]
        for run in runs:
            top = tuple(run.top(query_id, depth))
            lists[asked, top] = _alone(lists.get((asked, top)), run.name)
            for doc_id in top:
                pairs[asked, doc_id] = _alone(pairs.get((asked, doc_id)), run.name)
    labels_alone, answers_alone = Counter(pairs.values()), Counter(lists.values())
    names = [run.name for run in runs] if len(runs) > 1 else []
    return {
        "pairs": len(pairs),
        "lists": len(lists),
        "labels_again": tuple(labels_alone[name] for name in names),
        "answers_again": tuple(answers_alone[name] for name in names),
    }


def _alone(brought_by: str | None, run: str) -> str:
    """Return the only run that has something, "" if several do; ``brought_by`` is None at first."""
    return run if brought_by in (None, run) else ""
