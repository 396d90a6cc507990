"""``autorag``: the table of questions of AutoRAG, with lists of the passages that answer each."""

from __future__ import annotations

from typing import Any, Final

from judgekit.data.forms.entry import listed_in
from judgekit.data.forms.tool import Tool


def _ids(written: Any) -> list[Any] | None:
    """Return the ids of the needed passages; a tuple if any of several will do."""
    groups = listed_in(written)
    if not groups:
        return None
    return [tuple(group) if isinstance(group, list) else group for group in groups]


AUTORAG: Final = Tool(
    "autorag",
    tells=("query", "retrieval_gt"),
    question="query",
    id="qid",
    reference="generation_gt",
    gold_ids="retrieval_gt",
    reads={"gold_ids": _ids},
    options=("alternatives",),
    example='{"qid": "q1", "query": "Who?", "retrieval_gt": [["d1"], ["d2"]], "generation_gt": ["Ann"]}\n',
)
