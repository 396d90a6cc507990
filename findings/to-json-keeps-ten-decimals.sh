#!/bin/sh
# pandas 3.1.1 and datasets 5.2.0 write numbers with ten decimals by to_json: scores of 3e-11 and 1.5e-12 both become 0.0, where CSV and Parquet keep all digits.
# Probabilities of a reranker are often that small: every list is then one tie, and documents are ordered by their ids. polars and
# DuckDB write all digits. judgekit cannot know what the scores were; it notes ties beside ranks (judgekit/data/checks.py).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet datasets==5.2.0 pandas==3.1.1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import json
import sys
from importlib.metadata import version

import pandas as pd
from datasets import Dataset, disable_progress_bars

disable_progress_bars()
print("pandas", version("pandas"), "datasets", version("datasets"))
run = pd.DataFrame({"query_id": ["q1"] * 3, "doc_id": ["d1", "d2", "d3"], "score": [1.5e-12, 3e-11, 2e-11]})
run.to_json("pandas.json", orient="records", lines=True)
Dataset.from_pandas(run).to_json("datasets.json")
run.to_csv("pandas.csv", index=False)
scores = {}
for name in ("pandas", "datasets"):
    scores[name] = [json.loads(line)["score"] for line in open(f"{name}.json")]
    print(f"{name} to_json: expected", run["score"].tolist(), "seen", scores[name])
print("pandas to_csv:", pd.read_csv("pandas.csv")["score"].tolist())
sys.exit(scores != {"pandas": [0.0] * 3, "datasets": [0.0] * 3})
PYTHON
