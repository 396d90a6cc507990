# /// script
# dependencies = ["chromadb==1.5.9"]
# ///
"""Chroma: what ``collection.query`` returns for one question, saved beside it: lists in lists, and without these.

And what it returns for all questions at once, as it is.
"""

import hashlib
import json
import os
import sys
from pathlib import Path

OUT = Path(sys.argv[1])
os.environ["ANONYMIZED_TELEMETRY"] = "False"

import chromadb  # noqa: E402
from halls import QUESTIONS, RUNS  # noqa: E402


def embedded(text: str, run: str) -> list[float]:
    """Return a vector of counted words, and of the text as a whole: equal distances come in any order."""
    whole = hashlib.md5(text.encode()).digest()
    vector = [0.0] * 32 + [whole[0] / 2560, whole[1] / 2560]
    for word in text.lower().replace("?", "").replace(".", "").split():
        vector[hashlib.md5(f"{run if word in ('hall', 'was') else ''}{word}".encode()).digest()[0] % 32] += 1.0
    return vector


for run in RUNS:
    collection = chromadb.EphemeralClient().create_collection(f"halls-{run}")
    passages = [passage for question in QUESTIONS for passage in question.passages]
    collection.add(
        ids=[passage.id for passage in passages],
        documents=[passage.text for passage in passages],
        embeddings=[embedded(passage.text, run) for passage in passages],
        metadatas=[{"hall": passage.id.split("-")[0]} for passage in passages],
    )
    nested, flat = [], []
    for question in QUESTIONS:
        found = collection.query(query_embeddings=[embedded(question.text, run)], n_results=3)
        kept = {name: found[name] for name in ("ids", "documents", "distances", "metadatas")}
        kept["distances"] = [[round(float(distance), 4) for distance in distances] for distances in kept["distances"]]
        head = {"question": question.text, "answer": question.answer(run), "reference": question.reference}
        nested.append({**head, **kept})
        flat.append({**head, **{name: lists[0] for name, lists in kept.items()}})
    (OUT / f"query-{run}.json").write_text(json.dumps(nested, indent=1))
    (OUT / f"first-{run}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in flat))
    vectors = [embedded(question.text, run) for question in QUESTIONS]
    whole = dict(collection.query(query_embeddings=vectors, n_results=3))
    whole["distances"] = [[round(float(distance), 4) for distance in distances] for distances in whole["distances"]]
    (OUT / f"batch-{run}.json").write_text(json.dumps(whole))
