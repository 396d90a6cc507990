#!/bin/sh
# polars 2.1.0 and DuckDB 2.0.1 sort a score of NaN above all others, so that it ranks first, where pandas 3.1.1 puts it last.
# The cosine of an empty text's vector is NaN. Lists that polars or DuckDB rank begin with such documents, and their ranks look
# sound. judgekit refuses scores that are not finite (judgekit/data/runs.py); of ranks alone it cannot know.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet polars==2.1.0 duckdb==2.0.1 pandas==3.1.1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import sys
from importlib.metadata import version

import duckdb
import pandas as pd
import polars as pl

print("polars", version("polars"), "duckdb", version("duckdb"), "pandas", version("pandas"))
docs, scores = ["d1", "empty", "d2"], [1.0, float("nan"), 2.0]
frame = pl.DataFrame({"doc": docs, "score": scores})
table = pd.DataFrame({"doc": docs, "score": scores})
run = "VALUES ('d1', 1.0::DOUBLE), ('empty', 'nan'::DOUBLE), ('d2', 2.0::DOUBLE)"
best = {
    "polars sort": frame.sort("score", descending=True)["doc"][0],
    "polars top_k": frame.top_k(1, by="score")["doc"][0],
    "duckdb": duckdb.sql(f"SELECT doc FROM ({run}) AS run(doc, score) ORDER BY score DESC LIMIT 1").fetchall()[0][0],
    "pandas": table.sort_values("score", ascending=False)["doc"].iloc[0],
}
print("expected d2 first; seen:", best)
sys.exit(best != {"polars sort": "empty", "polars top_k": "empty", "duckdb": "empty", "pandas": "d2"})
PYTHON
