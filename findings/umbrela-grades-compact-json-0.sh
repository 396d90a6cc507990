#!/bin/sh
# umbrela 0.0.7 grades a reply of valid JSON with 0 if no blank follows the colon, and writes a reply that it cannot read as 0, too.
# Its prompt asks for a JSON dictionary of scores (M, T, O), which models also write without blanks; such a passage becomes not
# relevant, and no column says so. judgekit refuses a 0 that the reply does not bear out (judgekit/data/forms/umbrela.py).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --no-deps umbrela==0.0.7
"$folder/venv/bin/python" - <<'PYTHON'
import sys
from importlib.metadata import version

from umbrela.utils.common_utils import prepare_judgments

print("umbrela", version("umbrela"))
replies = ['{"M": 3, "T": 3, "O": 3}', '{"M":3,"T":3,"O":3}', "I cannot tell."]
rows = prepare_judgments(replies, [("Who?", "by Ann")] * 3, [""] * 3, "m")
seen = [row["judgment"] for row in rows]
print("3, 3 and no judgment are expected of", replies)
print("judgments:", seen, "columns:", [*rows[2]])
sys.exit(0 if seen == [3, 0, 0] and "result_status" not in rows[2] else 1)
PYTHON
