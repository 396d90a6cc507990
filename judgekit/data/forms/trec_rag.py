"""``trec_rag``: answers to TREC's RAG track. ``nuggetizer``: nuggets assigned to such an answer."""

from __future__ import annotations

from typing import Final

from judgekit.data.forms.tool import Tool, sentences

# An answer's references are citations without an order of relevance, so they are no run.
TREC_RAG: Final = Tool(
    "trec_rag",
    exports="answers to TREC's RAG track, 2024 and 2025",
    tells=("references", "answer", "metadata.narrative | metadata.narrative_id | topic_id"),
    question="metadata.narrative | topic",
    id="metadata.narrative_id | topic_id",
    answer="answer[].text",
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
