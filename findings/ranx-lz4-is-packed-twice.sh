#!/bin/sh
# ranx 0.3.21 packs the runs that it saves as .lz4 twice, and what is inside is CBOR: `lz4 -d` gives another LZ4 file, where one expects JSON.
# Whoever unpacks a shared run to score it with another tool gets bytes that no reader of JSON or TREC runs takes. judgekit refuses
# files packed with lz4, and says what to write in their place (judgekit/data/streams.py).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet ranx==0.3.21 numba==0.68.1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import json
import sys
from importlib.metadata import version

import cbor2
import lz4.frame
import ranx

print("ranx", version("ranx"))
content = {"q1": {"d1": 2.0, "d2": 1.0}}
ranx.Run(content, name="bm25").save("run.lz4")
packed = open("run.lz4", "rb").read()
once = lz4.frame.decompress(packed)
print("packed:", packed[:4], "unpacked once:", once[:4])
try:
    json.loads(once)
    is_json = True
except ValueError as error:
    is_json = False
    print("as JSON:", type(error).__name__)
inside = cbor2.loads(lz4.frame.decompress(once))
print("unpacked twice, as CBOR:", inside)
sys.exit(is_json or once[:4] != packed[:4] or inside != content)
PYTHON
