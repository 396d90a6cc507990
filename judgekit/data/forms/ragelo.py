"""``ragelo``: the judgments of a RAGElo judge. ``ragelo_experiment``: its questions with several runs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from operator import itemgetter
from typing import Any, Final

from judgekit.data.forms.entry import Entry
from judgekit.data.forms.tool import Tool, at
from judgekit.data.records import Fields, as_number
from judgekit.registry import DataForm


def _judged(fields: Fields) -> Entry:
    grade = at(fields, "answer.score")
    if grade is None:
        reason = str(fields.get("exception") or "no score")[:80]
        raise ValueError(f"RAGElo has no judgment of this passage ({reason}): have it judged again, or remove the line")
    return {"rows": [(fields["qid"], fields["did"], grade)]}


RAGELO: Final = DataForm(
    "ragelo",
    _judged,
    ("qrels",),
    marks=lambda fields: fields.keys() >= {"qid", "did", "evaluator_name", "answer"},
    nested=True,
    example='{"qid": "q1", "did": "d1", "evaluator_name": "reasoner", "exception": null, "answer": {"score": 2}}\n',
)


def _by_agent(fields: Fields) -> Iterator[Fields]:
    """Yield what each agent retrieved for a question, the best first, and answered."""
    docs, answers = fields.get("retrieved_docs") or {}, fields.get("answers") or {}
    if not isinstance(docs, dict) or not isinstance(answers, dict):
        raise ValueError("'retrieved_docs' and 'answers' must be objects")
    found: dict[str, list[tuple[float, Any]]] = {agent: [] for agent in answers}
    for name, doc in docs.items():
        retrieved_by = doc.get("retrieved_by") if isinstance(doc, dict) else None
        if not isinstance(retrieved_by, dict):
            raise ValueError(f"document {name!r} must have an object 'retrieved_by' of agents and scores")
        for agent, score in retrieved_by.items():
            if not math.isfinite(as_number(score)):
                raise ValueError(f"document {name!r}, agent {agent!r}: the score must be a number, not {score!r:.60}")
            found.setdefault(agent, []).append((as_number(score), doc))
    for agent, scored in found.items():
        # Without scores all are 1, and the order of insertion counts.
        scored.sort(key=itemgetter(0), reverse=True)
        said = {"answers": answers[agent]} if agent in answers else {}
        yield {**fields, "agent": agent, "passages": [doc for _, doc in scored], **said}


EXPERIMENT: Final = Tool(
    "ragelo_experiment",
    release="0.7.0",
    exports="`experiment.save()`",
    tells=("qid", "query", "retrieved_docs"),
    question="query",
    id="qid",
    answer="answers.text",
    passages="passages",
    passage_ids="passages[].did",
    run="agent",
    rows="queries.*",
    each=_by_agent,
    example='{"queries": {"q1": {"qid": "q1", "query": "Who?", "retrieved_docs": {"d1": {"did": "d1", "text": "by Ann",'
    ' "retrieved_by": {"bm25": 2.0}}}}}}\n',
)
