#!/bin/sh
# ranx 0.3.21 keeps documents with equal scores as they came in lists of up to 15 only; longer ones it shuffles.
# Its order of ties is told to be that of the input: an MRR of small tests is then reproduced, and that of real lists is not.
# No spelling gives it; docs/coming-from.md says so, and `--ties run-order` is the order up to 15 (docs/peers.toml).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet ranx==0.3.21
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import sys
from importlib.metadata import version

from ranx import Run

print("ranx", version("ranx"))
print("lists in which every third document has the score 1 and the others 0; the order of the input is expected")
kept = {}
for length in (10, 15, 16, 40):
    docs = [f"d{number}" for number in range(length)]
    run = Run({"q": {doc: float(number % 3 == 0) for number, doc in enumerate(docs)}})
    wanted = sorted(docs, key=lambda doc: int(doc[1:]) % 3 != 0)
    kept[length] = list(run.run["q"]) == wanted
    print(f"{length} documents: {'as they came' if kept[length] else 'in another order'}")
sys.exit(0 if kept == {10: True, 15: True, 16: False, 40: False} else 1)
PYTHON
