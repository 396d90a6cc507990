#!/bin/sh
# pandas 3.1.1 reads the JSON string "0012" as the number 12, and datasets 5.2.0 the string "2020-01-02" as a time, where one expects that strings stay strings.
# JSON lines are chosen for qrels and collections since quotes keep ids as they are. After reading, ids match nothing, or those of
# other documents: "7" and "007" are one. judgekit reads JSON itself, and refuses ids that are no strings (judgekit/data/tables.py).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet datasets==5.2.0 pandas==3.1.1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import os
import sys
from importlib.metadata import version

os.environ["HF_HOME"] = os.path.abspath("home")
import pandas as pd
from datasets import Dataset, disable_progress_bars

disable_progress_bars()
print("pandas", version("pandas"), "datasets", version("datasets"))
with open("docs.jsonl", "w") as file:
    file.write('{"doc_id": "0012", "text": "one"}\n{"doc_id": "12", "text": "two"}\n')
with open("days.jsonl", "w") as file:
    file.write('{"doc_id": "2020-01-02", "text": "one"}\n{"doc_id": "2021-03-04", "text": "two"}\n')
numbers = pd.read_json("docs.jsonl", lines=True)["doc_id"].tolist()
times = [str(day) for day in Dataset.from_json("days.jsonl")["doc_id"]]
print("pandas: expected ['0012', '12'] seen", numbers)
print("datasets: expected ['2020-01-02', '2021-03-04'] seen", times)
sys.exit(numbers != [12, 12] or times != ["2020-01-02 00:00:00", "2021-03-04 00:00:00"])
PYTHON
