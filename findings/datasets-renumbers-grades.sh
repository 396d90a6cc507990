#!/bin/sh
# datasets 5.2.0 turns the grades -1, 0, 1, 2, 10 into 0, 1, 2, 4, 3 by class_encode_column, also where they were numbers: their places in the order of texts.
# A document judged as spam (-1) becomes "not relevant", one that is not relevant (0) becomes relevant, and 2 counts for more than 10;
# CSV and JSON hold these numbers only. judgekit reads the names of the classes, from Parquet and from objects
# (judgekit/data/records.py).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet datasets==5.2.0
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import sys
from importlib.metadata import version

from datasets import Dataset, disable_progress_bars

disable_progress_bars()
print("datasets", version("datasets"))
grades = [-1, 0, 1, 2, 10]
encoded = Dataset.from_dict({"relevance": grades}).class_encode_column("relevance")
encoded.to_csv("judged.csv")
seen = [*encoded["relevance"]]
print("expected:", grades, "seen:", seen, "names:", encoded.features["relevance"].names)
written = [int(row) for row in open("judged.csv").read().split()[1:]]
print("in CSV:", written)
sys.exit(not seen == written == [0, 1, 2, 4, 3])
PYTHON
