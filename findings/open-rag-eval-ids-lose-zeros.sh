#!/bin/sh
# open-rag-eval 0.3.0 reads the query ids of its own connectors' table as numbers: 007 becomes 7, and 7 and 007 become one query.
# Judgments and runs by the ids of one's queries then meet none of its scored rows, or those of another query. judgekit reads the
# connector's table, whose ids are whole (judgekit/data/forms/openrageval.py).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet pandas==2.3.3 numpy==2.3.5
"$folder/venv/bin/python" -m pip install --quiet --no-deps open-rag-eval==0.3.0
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import csv
import sys
from importlib.metadata import version

from open_rag_eval.rag_results_loader import RAGResultsLoader

print("open-rag-eval", version("open-rag-eval"))
columns = ["query_id", "query", "query_run", "passage_id", "passage", "generated_answer"]
asked = {"007": "Who built it?", "7": "When was it built?"}
with open("answers.csv", "w", newline="") as file:
    rows = [[query_id, text, 1, "[1]", "By Ann in 1912.", "Ann [1]"] for query_id, text in asked.items()]
    csv.writer(file).writerows([columns, *rows])
seen = [(str(result.query_id), result.query, len(result.rag_results)) for result in RAGResultsLoader("answers.csv").load()]
print("two queries are expected:", asked)
print("read, with the number of answers:", seen)
sys.exit(0 if seen == [("7", "Who built it?", 1)] else 1)
PYTHON
