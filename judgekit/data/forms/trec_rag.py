"""``trec_rag``: answers to TREC's tracks RAG and RAGTIME. ``nuggetizer``: nuggets assigned to such an answer."""

from __future__ import annotations

from typing import Final

from judgekit.data.forms.tool import Tool, sentences

# An answer's references may be its citations, without an order of relevance, so they are not a run.
TREC_RAG: Final = Tool(
    "trec_rag",
    release="by Ragnarök 0.0.1 and Auto-Judge 1.0.0",
    exports="answers to TREC's tracks RAG, 2024 to 2026, and RAGTIME, as they are submitted",
    tells=(
        "references | metadata.run_id",
        "answer | responses",
        "metadata.narrative_id | metadata.topic_id | topic_id",
    ),
    question="metadata.narrative | topic",
    id="metadata.narrative_id | metadata.topic_id | topic_id",
    answer="answer | responses[].text",
    reads={"answer": sentences},
    run="metadata.run_id | run_id",
    example='{"metadata": {"run_id": "a", "narrative_id": "1", "narrative": "Who?"}, "references": ["d1"],'
    ' "answer": [{"text": "Ann.", "citations": [0]}]}\n',
)
NUGGETIZER: Final = Tool(
    "nuggetizer",
    release="0.0.5",
    exports="nuggets that are assigned to answers",
    tells=("query", "qid", "answer_text", "nuggets"),
    question="query",
    id="qid",
    answer="answer_text",
    run="run_id",
    example='{"query": "Who?", "qid": "q1", "answer_text": "Ann", "run_id": "a", "nuggets": []}\n',
)
