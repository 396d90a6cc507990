#!/bin/sh
# BEIR 2.2.0 averages NDCG over the queries of the results and MRR over those of the qrels, and takes self-matches out of your results.
# One call's NDCG@10 rises when a query is left out, the other call's MRR@10 falls; MRR is another number before `evaluate` than
# after it, which removes documents that are the query from the dictionary it was given. judgekit says which queries and
# documents count by options (`--like beir`, `--drop-self`; docs/peers.toml).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --no-deps beir==2.2.0 pytrec-eval-terrier==0.5.11 numpy tqdm
"$folder/venv/bin/python" - <<'PYTHON'
import sys
from importlib.metadata import version

from beir.retrieval.evaluation import EvaluateRetrieval

print("beir", version("beir"))
qrels = {"a": {"d1": 1}, "b": {"d1": 1}}
results = {"a": {"a": 2.0, "d1": 1.0}}
mean = {}
mean["MRR before"] = EvaluateRetrieval.evaluate_custom(qrels, results, [10], "mrr")["MRR@10"]
mean["NDCG"] = EvaluateRetrieval.evaluate(qrels, results, [10])[0]["NDCG@10"]
mean["MRR after"] = EvaluateRetrieval.evaluate_custom(qrels, results, [10], "mrr")["MRR@10"]
print("two queries; the results hold one, whose first document is itself and whose second is relevant")
print("means over the same queries and documents are expected;", mean, "results:", results)
expected = {"MRR before": 0.25, "NDCG": 1.0, "MRR after": 0.5}
sys.exit(0 if mean == expected and results == {"a": {"d1": 1.0}} else 1)
PYTHON
