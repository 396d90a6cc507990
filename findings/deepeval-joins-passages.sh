#!/bin/sh
# deepeval 4.3.1 saves a data set as CSV with its passages joined by "|", so that passages that hold the mark cannot be told.
# EvaluationDataset.save_as writes lists as JSON arrays only with file_type="json". In csv and jsonl a list of passages is one
# text: a passage with a table of Markdown reads back as several, and whoever expects a list gets one passage for all.
# judgekit splits such cells where the file confirms the number of parts, and asks otherwise (judgekit/data/forms/joined.py).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet deepeval==4.3.1
cd "$folder"
DEEPEVAL_TELEMETRY_OPT_OUT=YES "$folder/venv/bin/python" - <<'PYTHON'
import csv
import json
import sys
from importlib.metadata import version

from deepeval.dataset import EvaluationDataset
from deepeval.test_case import LLMTestCase

passages = ["One table: a|b", "Two"]
data = EvaluationDataset()
data.add_test_case(LLMTestCase(input="Which?", actual_output="a", retrieval_context=passages))
for form in ("csv", "jsonl", "json"):
    data.save_as(file_type=form, directory=".", file_name="saved", include_test_cases=True)
with open("saved.csv", newline="") as file:
    of_csv = next(csv.DictReader(file))["retrieval_context"]
with open("saved.jsonl") as file:
    of_jsonl = json.loads(file.readline())["retrieval_context"]
with open("saved.json") as file:
    of_json = json.load(file)[0]["retrieval_context"]
print("deepeval", version("deepeval"))
print("expected:", passages)
print("in CSV:", repr(of_csv), "in JSON lines:", repr(of_jsonl), "in JSON:", of_json)
sys.exit(not (of_csv == of_jsonl == "One table: a|b|Two" and of_json == passages))
PYTHON
