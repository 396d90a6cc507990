#!/bin/sh
# trectools 0.0.50 under pandas 3: the R-precision of a run is above 1, although it is a share.
# With pandas 2 the same call gives the right number. pip installs pandas 3, and no warning is printed. judgekit's Rprec
# (judgekit/metrics/formulas.py) is compared with the values under pandas 2.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for pandas in 2.3.3 3.1.1; do
    python3 -m venv "$folder/$pandas"
    "$folder/$pandas/bin/python" -m pip install --quiet trectools==0.0.50 "pandas==$pandas" setuptools==80.9.0
done
cat > "$folder/rprec.py" <<'PYTHON'
import sys
from importlib.metadata import version
from pathlib import Path

from trectools import TrecEval, TrecQrel, TrecRun

folder = Path(sys.argv[1])
# Two queries that share their documents; each list has one of the two relevant documents among its top two.
(folder / "qrels").write_text("1 0 a 1\n1 0 b 1\n2 0 c 1\n2 0 a 1\n")
lists = {"1": "acdb", "2": "abdc"}
rows = [f"{query} Q0 {doc} {rank} {9 - rank} t\n" for query, docs in lists.items() for rank, doc in enumerate(docs, 1)]
(folder / "run").write_text("".join(rows))
values = TrecEval(TrecRun(str(folder / "run")), TrecQrel(str(folder / "qrels"))).get_rprec(per_query=True)
said = [float(value) for value in values.iloc[:, 0]]
print(f"trectools {version('trectools')}, pandas {version('pandas')}: R-precision", said, "(right: 0.5, 0.5)")
sys.exit(0 if said == [float(number) for number in sys.argv[2:]] else 1)
PYTHON
"$folder/2.3.3/bin/python" -W ignore "$folder/rprec.py" "$folder" 0.5 0.5
"$folder/3.1.1/bin/python" -W ignore "$folder/rprec.py" "$folder" 1.5 1.5
