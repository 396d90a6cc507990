"""Scoring runs with labelings: what `evaluate` returns and refuses."""

from __future__ import annotations

import pandas as pd
import pytest

from judgekit.data.labelings import Labeling, Scale
from judgekit.data.runs import Run
from judgekit.errors import UsageError
from judgekit.metrics import evaluate


def run_of(name: str = "run", **lists: str) -> Run:
    rows = [(q, d, float(-i)) for q, docs in lists.items() for i, d in enumerate(docs.split())]
    return Run(name, [r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows])


def labeling_of(scale: str = "binary", name: str = "qrels", **labels: dict[str, float]) -> Labeling:
    rows = [(q, d, v) for q, of in labels.items() for d, v in of.items()]
    return Labeling(name, Scale.parse(scale), pd.DataFrame(rows, columns=["query_id", "doc_id", "relevance"]))


def test_one_list_under_the_measures_of_the_first_hour() -> None:
    run = run_of(q="d6 d2 d3 d4 d5")
    qrels = labeling_of(q={"d2": 1, "d3": 1, "d7": 1})
    means = evaluate([run], [qrels], ["P@5", "R@5", "F1@5", "Success@5", "RR", "AP"]).means()
    values = dict(zip(means["measure"], means["value"], strict=True))
    assert values == pytest.approx(
        {"P@5": 2 / 5, "R@5": 2 / 3, "F1@5": 1 / 2, "Success@5": 1, "RR": 1 / 2, "AP": (1 / 2 + 2 / 3) / 3}
    )


def test_two_runs_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="two runs named 'run'"):
        evaluate([run_of(q="a"), run_of(q="b")], [labeling_of(q={"a": 1})], ["P@1"])
