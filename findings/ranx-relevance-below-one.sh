#!/bin/sh
# ranx 0.3.21 cuts a relevance with decimals down to a whole number: .9 counts as not relevant at all, and 1.9 as 1.
# Probabilities of a judge, or means of several, then score 0 without a word. judgekit asks what decimals mean
# (--scale NAME=unit or means:G:M; judgekit/data/labelings.py).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet ranx==0.3.21
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import sys
from importlib.metadata import version

from ranx import Qrels, Run, evaluate

print("ranx", version("ranx"))
run = Run({"q": {"a": 0.9, "b": 0.5}})
print("a document with relevance .9 stands first, one with relevance 1 second; RR is expected to be 1, or a refusal")
seen = {}
for relevance in (0.9, 1.9):
    qrels = Qrels({"q": {"a": relevance, "b": 1}})
    seen[relevance] = [float(value) for value in evaluate(qrels, run, ["mrr", "precision@1"]).values()]
    print(f"relevance {relevance}: RR, P@1 = {seen[relevance]}")
sys.exit(0 if seen == {0.9: [0.5, 0.0], 1.9: [1.0, 1.0]} else 1)
PYTHON
