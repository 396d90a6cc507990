"""The eRAG paper's own Table 1, drawn by the report, shows the paper's numbers."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pandas as pd

from judgekit import report
from judgekit.analysis.primary import FIND_QUESTIONS, Primary
from judgekit.data.tables import COMPARISON
from tests.report.conftest import make_results, parse_page


def published(shared: Path) -> pd.DataFrame:
    rows = json.loads((shared / "vectors" / "erag_table1.json").read_text())
    frame = pd.DataFrame(rows, columns=["labeling", "measure", "run", "dataset", "coefficient", "value"])
    frame["coefficient"] = frame["coefficient"].map({"tau": "tau_b", "rho": "rho"})
    frame["value"] = frame["value"].astype(float)
    frame["undefined_reason"] = frame["value"].isna().map({True: "not applicable: no short answer", False: ""})
    return frame


def test_the_page_draws_the_published_table_with_data_sets_over_runs(shared):
    frame = published(shared).assign(
        level="query", depth=50, quality_metric="em", model="t5", ci_low=math.nan, ci_high=math.nan, ci_method="", n=0,
        flags="",
    )  # fmt: skip
    results = make_results(
        comparison=COMPARISON.check(frame),
        primary=Primary("P", "em", "t5", 50, FIND_QUESTIONS),
        labelings=(),
        models=None,
    )
    rows = parse_page(report.render(results)).rows
    header = next(i for i, row in enumerate(rows) if row[:2] == ["Labeling", "Measure"] and row[2:4] == ["τ", "ρ"])
    assert rows[header - 2][1:] == list(dict.fromkeys(frame["dataset"]))
    assert rows[header - 1][1:] == [run for _ in range(5) for run in dict.fromkeys(frame["run"])]
    shown = [cell for row in rows[header + 1 : header + 25] for cell in row[-20:]]
    values = [f"{v:.3f}" for v in frame["value"] if not math.isnan(v)]
    assert sorted(c for c in shown if not c.startswith("not applicable")) == sorted(values)
    assert sum(c.startswith("not applicable") for c in shown) == 480 - len(values)
