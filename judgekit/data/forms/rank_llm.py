"""``rank_llm``: the requests and results that Castorini's tools pass on, a question with its candidates."""

from typing import Final

from judgekit.data.forms.tool import Tool, with_texts

RANK_LLM: Final = Tool(
    "rank_llm",
    release="0.25.7",
    exports="`DataWriter(results).write_in_jsonl_format(…)`",
    tells=("query.text", "query.qid", "candidates"),
    question="query.text",
    id="query.qid",
    passages="candidates[].doc",
    reads={"passages": with_texts},
    passage_ids="candidates[].docid",
    example='{"query": {"text": "Who?", "qid": "q1"}, "candidates": [{"docid": "d1", "score": 2.5,'
    ' "doc": {"contents": "by Ann"}}]}\n',
)
