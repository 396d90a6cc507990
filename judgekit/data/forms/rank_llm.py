"""``rank_llm``: the requests and results that Castorini's tools pass on, a question with its candidates."""

from typing import Final

from judgekit.data.forms.stores import documents_in, ids_in
from judgekit.data.forms.tool import Tool

RANK_LLM: Final = Tool(
    "rank_llm",
    release="0.25.7",
    exports="`DataWriter(results).write_in_jsonl_format(…)`",
    tells=("query.text", "query.qid", "candidates"),
    question="query.text",
    id="query.qid",
    passages="candidates",
    passage_ids="candidates",
    reads={"passages": documents_in, "passage_ids": ids_in},
    example='{"query": {"text": "Who?", "qid": "q1"}, "candidates": [{"docid": "d1", "score": 2.5,'
    ' "doc": {"contents": "by Ann"}}]}\n',
)
