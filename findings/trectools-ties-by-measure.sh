#!/bin/sh
# trectools 0.0.50 orders documents with equal scores one way for P and RR, and the other way for nDCG.
# P@1 and nDCG@1 of one list then contradict each other: 0 and 1. judgekit orders a run once, for all measures
# (judgekit/data/runs.py).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet trectools==0.0.50
"$folder/venv/bin/python" -W ignore - "$folder" <<'PYTHON'
import sys
from importlib.metadata import version
from pathlib import Path

from trectools import TrecEval, TrecQrel, TrecRun

folder = Path(sys.argv[1])
(folder / "qrels").write_text("1 0 a 1\n1 0 b 0\n")
print("trectools", version("trectools"))
print("two documents with equal scores, of which a is relevant; one order is expected for all measures")
same = True
for name, lines in {"a first": "a b", "b first": "b a"}.items():
    first, second = lines.split()
    (folder / "run").write_text(f"1 Q0 {first} 1 1.0 t\n1 Q0 {second} 2 1.0 t\n")
    scored = TrecEval(TrecRun(str(folder / "run")), TrecQrel(str(folder / "qrels")))
    seen = scored.get_precision(depth=1), scored.get_ndcg(depth=1), scored.get_reciprocal_rank()
    print(f"lines with {name}: P@1 {seen[0]}, nDCG@1 {seen[1]}, RR {seen[2]}")
    same = same and seen == (0.0, 1.0, 0.5)
sys.exit(0 if same else 1)
PYTHON
