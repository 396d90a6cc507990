#!/bin/sh
# pyNTCIREVAL 0.0.3 divides AP at a cutoff by the cutoff where that is smaller than the number of relevant documents.
# trec_eval's map_cut divides by all relevant documents, so that the same list has another AP@2 under the same name.
# judgekit's AP@k is trec_eval's (judgekit/metrics/formulas.py).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet pyNTCIREVAL==0.0.3 pytrec-eval-terrier==0.5.11
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import sys
from importlib.metadata import version

import pytrec_eval
from pyNTCIREVAL import Labeler
from pyNTCIREVAL.metrics import AP

print("pyNTCIREVAL", version("pyNTCIREVAL"), "and pytrec-eval-terrier", version("pytrec-eval-terrier"))
qrels = {"a": 1, "b": 1, "c": 1}
labeler = Labeler(qrels)
levels = labeler.compute_per_level_doc_num(2)
at_2 = AP(levels, [1], cutoff=2).compute(labeler.label(["a", "x", "b"]))
trec = pytrec_eval.RelevanceEvaluator({"q": qrels}, {"map_cut_2"}).evaluate({"q": {"a": 3.0, "x": 2.0, "b": 1.0}})
print("three relevant documents, one of them first and one third; AP at 2 is expected to be 1/3 in both")
print(f"pyNTCIREVAL {at_2:.4f}, trec_eval's map_cut_2 {trec['q']['map_cut_2']:.4f}")
sys.exit(0 if (round(at_2, 4), round(trec["q"]["map_cut_2"], 4)) == (0.5, 0.3333) else 1)
PYTHON
