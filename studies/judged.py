"""The comparison that the page lacks: an LLM judge beside gold labels and containment, against answers that are there.

python -m studies.judged FOLDER      writes queries, passages, runs, answers and the experiment
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from studies import contexts

RUNS = {name: f"llama3/{name.lower()}_top5_esit.json" for name in ("ADORE", "BM25", "Contriever")}
EXPERIMENT = """\
title = "An LLM judge on 2WikiMultihopQA, against answers of Llama-3-8B"

[data]
queries = "queries.jsonl"
docs = "docs.jsonl"
depth = 5

[runs]
ADORE = "ADORE.trec"
BM25 = "BM25.trec"
Contriever = "Contriever.trec"

[endpoints.judge]
base_url = "http://localhost:8000/v1"
model = "Qwen/Qwen3-8B"
params = { temperature = 0 }
concurrency = 64

[[labelers]]
name = "judge"
kind = "judge"
prompt = "graded"

[[labelers]]
kind = "containment"

[[labelers]]
name = "gold"
kind = "provenance"
qrels = "gold.qrels"

[answers]
import = "answers.jsonl"
answered_by = "Llama-3-8B"
depths = [5]
metrics = ["contains", "em", "f1"]
outcome = "contains"

[metrics]
measures = ["nDCG", "P", "R", "Success"]

[analysis]
primary = "nDCG@5"
by = "kind"
"""


def pairs() -> int:
    """Return how many pairs of a question and a passage the judge would label."""
    runs = [contexts.run(name) for name in RUNS.values()]
    return sum(len(set().union(*(run[query] for run in runs))) for query in contexts.ids())


def write(folder: Path) -> None:
    """Write what `judgekit run` needs."""
    folder.mkdir(parents=True, exist_ok=True)
    kinds = contexts.kinds()
    queries = [one | {"kind": kinds[one["query_id"]]} for one in contexts.queries().to_dict("records")]
    docs = [{"doc_id": name} | one for name, one in contexts.docs(RUNS.values()).items()]
    answers = contexts.answered({("Llama-3-8B", run): name for run, name in RUNS.items()}).drop(columns="model")
    for name, rows in {"queries": queries, "docs": docs, "answers": answers.assign(depth=5).to_dict("records")}.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    for run, name in RUNS.items():
        ranked = [(query, doc, score) for query, docs in contexts.run(name).items() for doc, score in docs.items()]
        (folder / f"{run}.trec").write_text(
            "".join(f"{query} Q0 {doc} 0 {score} {run}\n" for query, doc, score in ranked)
        )
    golds = [(query, doc) for query, docs in contexts.gold().items() for doc in docs]
    (folder / "gold.qrels").write_text("".join(f"{query} 0 {doc} 1\n" for query, doc in golds))
    (folder / "experiment.toml").write_text(EXPERIMENT)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
