#!/bin/sh
# json_repair 0.64.6 makes a number of an undecided one: a score of `2 or 3` becomes 2, and 007 becomes 7.
# A judge that could not decide then has a verdict, and an id loses its zeros. judgekit refuses such objects and asks again
# (judgekit/reading).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet json-repair==0.64.6
"$folder/venv/bin/python" - <<'PYTHON'
import sys
from importlib.metadata import version

import json_repair

print("json_repair", version("json_repair"))
cases = {'{"score": 2 or 3}': {"score": 2}, '{"score": ~2}': {"score": 2}, '{"id": 007}': {"id": 7}}
print("none of these states one value; an error or a text is expected")
seen = {text: json_repair.loads(text) for text in cases}
for text, value in seen.items():
    print(f"{text} -> {value}")
sys.exit(0 if seen == cases else 1)
PYTHON
