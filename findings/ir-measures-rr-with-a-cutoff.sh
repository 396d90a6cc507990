#!/bin/sh
# ir_measures 0.4.3 breaks ties for RR@3 the other way than for RR, so RR@3 can be larger than RR of the same list.
# Two providers compute them: trec_eval's order is by id, descending, MS MARCO's by the lines. judgekit's RR and RR@k share
# one order (judgekit/data/runs.py).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet ir-measures==0.4.3
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import sys
from importlib.metadata import version

import ir_measures
from ir_measures import RR, Qrel, ScoredDoc

print("ir_measures", version("ir_measures"))
qrels = [Qrel("q", "a", 1), Qrel("q", "b", 0)]
run = [ScoredDoc("q", "a", 1.0), ScoredDoc("q", "b", 1.0)]
seen = {str(measure): float(ir_measures.calc_aggregate([measure], qrels, run)[measure]) for measure in (RR, RR @ 3)}
print("two documents with equal scores, of which a is relevant; a cutoff that cuts nothing should change nothing")
print(seen)
sys.exit(0 if seen == {"RR": 0.5, "RR@3": 1.0} else 1)
PYTHON
