"""``autorag``: the table of questions of AutoRAG, with lists of the passages that answer each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from judgekit.data.forms.entry import listed_in
from judgekit.data.forms.tool import Tool


def _retrieval_gt(fields: Mapping[str, Any]) -> list[Any] | None:
    groups = listed_in(fields.get("retrieval_gt"))
    if groups is None:
        return None
    ids = []
    for group in groups:
        alternatives = group if isinstance(group, list) else [group]
        if len(alternatives) != 1:
            # Any of them answers: a judgment is of one document, and says nothing of another.
            raise ValueError(
                f"'retrieval_gt' holds the group {group!r:.60}: judgments cannot say that one passage stands for"
                " another. Keep one of them, or write each as a list of its own if all are needed"
            )
        ids += alternatives
    return ids or None


AUTORAG: Final = Tool(
    "autorag",
    tells=("query", "retrieval_gt"),
    question=("query",),
    id=("qid",),
    reference=("generation_gt",),
    gold_ids=(_retrieval_gt,),
    example='{"qid": "q1", "query": "Who?", "retrieval_gt": [["d1"], ["d2"]], "generation_gt": ["Ann"]}\n',
)
