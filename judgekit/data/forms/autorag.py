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
    # AutoRAG takes ids outside of inner lists for one group, too.
    if not any(isinstance(group, list) for group in groups):
        return [tuple(groups)]
    return [tuple(group) if isinstance(group, list) else group for group in groups]


AUTORAG: Final = Tool(
    "autorag",
    release="0.3.27",
    exports="`qa.to_parquet(…)`, the questions",
    tells=("query", "retrieval_gt"),
    question="query",
    id="qid",
    reference="generation_gt",
    gold_ids="retrieval_gt",
    reads={"gold_ids": _ids},
    options=("alternatives",),
    example='{"qid": "q1", "query": "Who?", "retrieval_gt": [["d1"], ["d2"]], "generation_gt": ["Ann"]}\n',
)
