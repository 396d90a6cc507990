"""Puts the 480 cells of the eRAG paper's Table 1 beside one's own.

    python beside.py results/nq results/triviaqa ... > beside.csv

Rows ``dataset, run, labeling, measure, coefficient, paper, here, ci_low, ci_high``, a row for each cell of the paper;
empty where one's own results lack it. Further runs, labelings and measures of one's own have no row.

Results folders have the names of the data sets (`nq`), labelings and runs those of the experiments here.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

DEPTH = 50
KEYS = ["dataset", "run", "labeling", "measure", "coefficient"]


def paper() -> pd.DataFrame:
    """Return the paper's cells."""
    wide = pd.read_csv(Path(__file__).with_name("paper.csv")).melt(["labeling", "measure"], value_name="paper")
    wide[["dataset", "run", "coefficient"]] = wide["variable"].str.split(" ", expand=True)
    return wide[[*KEYS, "paper"]]


def own(folder: Path) -> pd.DataFrame:
    """Return the same cells of a results folder."""
    table = pd.read_csv(folder / "comparison.csv", keep_default_na=False, na_values=[""])
    table = table[(table["level"] == "query") & (table["depth"] == DEPTH) & (table["run"] != "all")]
    named = table.assign(dataset=folder.name, measure=table["measure"].str.removesuffix(f"@{DEPTH}"))
    return named.rename(columns={"value": "here"})[[*KEYS, "here", "ci_low", "ci_high"]]


def main(folders: list[str]) -> pd.DataFrame:
    """Return the paper's cells with those of results folders, which are named as the data sets are."""
    rows = pd.concat([own(Path(folder)) for folder in folders])
    cells = paper()
    spelled = {name.lower(): name for name in cells["dataset"]}
    return cells.merge(rows.assign(dataset=rows["dataset"].str.lower().map(spelled)), on=KEYS, how="left")


if __name__ == "__main__":
    main(sys.argv[1:]).to_csv(sys.stdout, index=False)
