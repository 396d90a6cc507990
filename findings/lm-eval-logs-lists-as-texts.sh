#!/bin/sh
# lm-evaluation-harness 0.4.13 logs several right answers of a sample as the text of a Python list, and numbers as texts.
# Read as a reference, "['Ann', 'Anne']" matches no answer, and exact match is 0 throughout; log-probabilities and truths are
# texts ("-1.5", "False", which is true in Python). judgekit reads both as meant (judgekit/data/forms/lm_eval.py).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet lm-eval==0.4.13
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import json
import sys
from importlib.metadata import version
from pathlib import Path

from lm_eval.loggers import EvaluationTracker

print("lm-eval", version("lm-eval"))
asked = [("Who?", " Ann"), ("Who?", " Bob")]
sample = {"doc_id": 0, "doc": {"question": "Who?"}, "target": ["Ann", "Anne"], "arguments": asked}
sample |= {"resps": [[(-1.5, False)], [(-2.5, False)]], "filtered_resps": [(-1.5, False), (-2.5, False)], "filter": "none"}
tracker = EvaluationTracker(output_path="results.json")
tracker.date_id = "now"
tracker.save_results_samples("task", [dict(sample)])
(written,) = Path().glob("samples_task_*.jsonl")
logged = json.loads(written.read_text())
print("a list of texts, and numbers, are expected:", sample["target"], sample["filtered_resps"])
print("logged:", [logged["target"]], logged["filtered_resps"])
sys.exit(0 if logged["target"] == "['Ann', 'Anne']" and logged["filtered_resps"][0] == ["-1.5", "False"] else 1)
PYTHON
