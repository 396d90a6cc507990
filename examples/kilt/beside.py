"""Puts the 480 cells of the eRAG paper's Table 1 beside one's own.

    python beside.py results/nq results/triviaqa ... > beside.csv

Rows ``dataset, run, labeling, measure, coefficient, paper, here, ci_low, ci_high, depth``, a row for each cell of the
paper; empty where one's own results lack it. Further runs, labelings and measures of one's own have no row. The paper's
depth is 50; of one's own results the deepest answers count, with the measure cut there: column ``depth``.

Results folders have the names of the data sets (`nq`), labelings and runs those of the experiments here.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

KEYS = ["dataset", "run", "labeling", "measure", "coefficient"]


def paper() -> pd.DataFrame:
    """Return the paper's cells."""
    wide = pd.read_csv(Path(__file__).with_name("paper.csv")).melt(["labeling", "measure"], value_name="paper")
    wide[["dataset", "run", "coefficient"]] = wide["variable"].str.split(" ", expand=True)
    return wide[[*KEYS, "paper"]]


def own(folder: Path) -> pd.DataFrame:
    """Return the same cells of a results folder, at the depth of its deepest answers."""
    table = pd.read_csv(folder / "comparison.csv", keep_default_na=False, na_values=[""])
    table = table[(table["level"] == "query") & (table["run"] != "all")]
    depth = table["depth"].max()
    cut = f"@{depth}"
    table = table[(table["depth"] == depth) & table["measure"].str.endswith(cut)]
    named = table.assign(dataset=folder.name, measure=table["measure"].str.removesuffix(cut))
    return named.rename(columns={"value": "here"})[[*KEYS, "here", "ci_low", "ci_high", "depth"]]


def main(folders: list[str]) -> pd.DataFrame:
    """Return the paper's cells with those of results folders, which are named as the data sets are.

    Raises:
        SystemExit: a folder has no cell of the paper's.
    """
    cells = paper()
    spelled = {name.lower(): name for name in cells["dataset"]}
    parts = []
    for folder in folders:
        rows = own(Path(folder))
        rows = rows.assign(dataset=rows["dataset"].str.lower().map(spelled))
        if rows.merge(cells, on=KEYS).empty:
            datasets, runs, labelings = (", ".join(cells[name].unique()) for name in ("dataset", "run", "labeling"))
            sys.exit(
                f"{folder} holds none of the paper's cells: name the folder as one of {datasets}, in any case; the "
                f"experiment's runs {runs}; its labelings {labelings}"
            )
        parts.append(rows)
    return cells.merge(pd.concat(parts), on=KEYS, how="left")


if __name__ == "__main__":
    main(sys.argv[1:]).to_csv(sys.stdout, index=False)
