# /// script
# dependencies = ["pinecone==10.2.0"]
# ///
"""Pinecone: responses as its client reads them from a server's JSON, each saved with its question."""

import json
import sys
from pathlib import Path

import msgspec
from halls import QUESTIONS, RUNS
from pinecone.models.vectors.responses import QueryResponse

OUT = Path(sys.argv[1])


def served(question, run):
    """Return what a server sends for a question."""
    matches = [
        {"id": passage.id, "score": 0.9 - place / 10, "values": [], "metadata": {"text": passage.text, "page": 2}}
        for place, passage in enumerate(question.found(run))
    ]
    return json.dumps({"matches": matches, "namespace": "", "usage": {"readUnits": 5}}).encode()


for run in RUNS:
    lines = []
    for question in QUESTIONS:
        response = msgspec.json.decode(served(question, run), type=QueryResponse)
        lines.append(json.dumps({"query_id": question.id, "question": question.text, **response.to_dict()}) + "\n")
    (OUT / f"{run}.jsonl").write_text("".join(lines))
