#!/bin/sh
# ir_measures 0.4.3 with cwl-eval 1.0.12: RBP of documents with equal scores depends on the order in which their lines stand in the run.
# Sorting a run file by anything else then changes a published number; P and AP of the same run stay. judgekit orders equal
# scores by document id, whatever the order of lines (judgekit/data/runs.py).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet ir-measures==0.4.3 cwl-eval==1.0.12
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import sys
from importlib.metadata import version

import ir_measures
from ir_measures import AP, RBP, Qrel, ScoredDoc

print("ir_measures", version("ir_measures"))
qrels = [Qrel("q", "a", 1), Qrel("q", "b", 0), Qrel("q", "c", 2)]
lines = [ScoredDoc("q", "a", 1.0), ScoredDoc("q", "b", 1.0), ScoredDoc("q", "c", 0.5)]
seen = {}
for name, run in {"a before b": lines, "b before a": [lines[1], lines[0], lines[2]]}.items():
    values = ir_measures.calc_aggregate([RBP(rel=1), AP], qrels, run)
    seen[name] = [round(float(values[measure]), 3) for measure in (RBP(rel=1), AP)]
    print(f"{name}: RBP, AP = {seen[name]}")
print("the same scores in another order of lines: both measures are expected to stay")
sys.exit(0 if seen == {"a before b": [0.328, 0.583], "b before a": [0.288, 0.583]} else 1)
PYTHON
