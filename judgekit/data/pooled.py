"""How much there is to label and to answer of runs, and what each of them alone would have added to the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from judgekit.data.runs import Run


def counts_of(
    runs: Sequence[Run], query_ids: Iterable[str], depth: int, question: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return how many pairs and different lists there are within a depth, and of each run those that it alone brings.

    ``question`` says which queries are one question, by query id: what they share is asked once.
    """
    # By pair and by list the run that alone brings it, "" where several do: what it would have added to the others.
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
    """Return the run that alone brings something, "" where several do; ``brought_by`` is None for nobody so far."""
    return run if brought_by in (None, run) else ""
