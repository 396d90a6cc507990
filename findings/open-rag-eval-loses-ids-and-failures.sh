#!/bin/sh
# open-rag-eval 0.3.0 reads the id "007" of a question as 7, and leaves a question whose answer failed out of its results.
# Its scores then join no other table by id, and the mean of an application leaves out what it failed on. The tables that its
# connectors write have both, and judgekit reads them as well (judgekit/data/forms/openrageval.py).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet pandas==2.2.3 numpy==2.2.6
"$folder/venv/bin/python" -m pip install --quiet --no-deps open-rag-eval==0.3.0
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import csv
import sys
from importlib.metadata import version

from open_rag_eval.rag_results_loader import RAGResultsLoader
from open_rag_eval.utils.constants import API_ERROR

print("open-rag-eval", version("open-rag-eval"))
columns = ["query_id", "query", "query_run", "passage_id", "passage", "generated_answer"]
rows = [
    ("007", "Who built it?", 1, "[1]", "It was built by Ann.", "Ann [1]"),
    ("008", "When?", 1, "ERROR", "Runtime error: no connection", API_ERROR),
    ("009", "Where?", 1, "[1]", "It stands in Ghent.", "In Ghent [1]"),
]
with open("answers.csv", "w", newline="") as file:
    csv.writer(file).writerows([columns, *rows])
seen = [str(result.query_id) for result in RAGResultsLoader("answers.csv").load()]
print("expected:", [row[0] for row in rows], "seen:", seen)
sys.exit(0 if seen == ["7", "9"] else 1)
PYTHON
