# /// script
# dependencies = ["python-terrier==1.0"]
# ///
"""PyTerrier: the frame of an experiment by query, and what a retriever returned with its texts."""

import sys
from pathlib import Path

import pandas as pd
import pyterrier as pt
from halls import QUESTIONS, RUNS

OUT = Path(sys.argv[1])
topics = pd.DataFrame({"qid": [q.id for q in QUESTIONS], "query": [q.text for q in QUESTIONS]})
qrels = pd.DataFrame({"qid": [q.id for q in QUESTIONS], "docno": [q.gold.id for q in QUESTIONS], "label": 1})
results = {}
for run in RUNS:
    rows = []
    for question in QUESTIONS:
        for rank, passage in enumerate(question.found(run)):
            rows.append(
                {"qid": question.id, "docid": 10 * rank, "docno": passage.id, "rank": rank, "score": 3.0 - rank}
                | {"query": question.text, "text": passage.text}
            )
    results[run] = pd.DataFrame(rows)
    results[run].to_csv(OUT / f"{run}.csv", index=False)
table = pt.Experiment(
    list(results.values()), topics, qrels, ["recip_rank", "ndcg_cut_3"], names=list(results), perquery=True
)
table.to_csv(OUT / "perquery.csv", index=False)
