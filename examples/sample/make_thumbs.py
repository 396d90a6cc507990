"""Make the tutorial's thumbs from the demo's answers: ``python -m examples.sample.make_thumbs judgekit-demo``.

A thumb is up where the answer is right (exact match), but for about one in 25, as readers err.
"""

from __future__ import annotations

import sys
import zlib
from pathlib import Path

import pandas as pd

RUNS = {"tfidf": "full", "bm25_title": "titles"}
DEPTH = 5
WRONG_OF_100 = 4
OUT = Path(__file__).resolve().parents[2] / "judgekit" / "sample" / "thumbs.csv"


def main(results: str) -> None:
    """Write the thumbs."""
    answers = pd.concat(map(pd.read_parquet, sorted(Path(results, "answers").glob("*.parquet"))))
    answers = answers[(answers["metric"] == "em") & (answers["depth"] == DEPTH) & answers["run"].isin([*RUNS])]
    rows = []
    for query_id, run, value in answers.sort_values(["query_id", "run"])[["query_id", "run", "value"]].to_numpy():
        errs = zlib.crc32(f"{query_id} {run}".encode()) % 100 < WRONG_OF_100
        rows.append((query_id, RUNS[run], "up" if (value > 0.5) != errs else "down"))
    pd.DataFrame(rows, columns=["query_id", "run", "value"]).to_csv(OUT, index=False)


if __name__ == "__main__":
    main(sys.argv[1])
