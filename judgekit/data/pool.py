"""The pool: every (query, doc) pair that any run of the experiment retrieved in its top ``depth``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from judgekit.data.runs import Run

__all__ = ["pool"]


def pool(runs: Sequence[Run], query_ids: Iterable[str], depth: int) -> dict[str, list[str]]:
    """Return the pooled doc ids per query, ascending, over the top ``depth`` of all runs.

    A pair is there once, however many runs hold it. Queries that no run retrieved anything for get [].
    """
    return {q: sorted({d for run in runs for d in run.top(q, depth)}) for q in query_ids}
