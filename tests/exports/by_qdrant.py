# /// script
# dependencies = ["qdrant-client==1.20.0"]
# ///
"""Qdrant: what ``query_points`` returns for one question, dumped beside it: points with their payload."""

import hashlib
import json
import sys
from pathlib import Path

from halls import QUESTIONS, RUNS
from qdrant_client import QdrantClient, models

OUT = Path(sys.argv[1])


def embedded(text: str, run: str) -> list[float]:
    """Return a vector of counted words."""
    vector = [0.0] * 32
    for word in text.lower().replace("?", "").replace(".", "").split():
        vector[hashlib.md5(f"{run if word in ('hall', 'was') else ''}{word}".encode()).digest()[0] % 32] += 1.0
    return vector


for run in RUNS:
    client = QdrantClient(":memory:")
    client.create_collection("halls", vectors_config=models.VectorParams(size=32, distance=models.Distance.DOT))
    passages = [passage for question in QUESTIONS for passage in question.passages]
    points = []
    for number, passage in enumerate(passages):
        payload = {"doc_id": passage.id, "text": passage.text}
        points.append(models.PointStruct(id=number, vector=embedded(passage.text, run), payload=payload))
    client.upsert("halls", points)
    found = []
    for question in QUESTIONS:
        head = {"query_id": question.id, "question": question.text, "answer": question.answer(run)}
        points = client.query_points("halls", query=embedded(question.text, run), limit=3).model_dump(mode="json")
        found.append({**head, "reference": question.reference, **points})
    (OUT / f"points-{run}.json").write_text(json.dumps(found, indent=1))
