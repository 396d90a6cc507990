"""A whole experiment on real questions, passages and runs, answered by a real model over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pandas as pd
import pytest

import judgekit
from judgekit.data.files import read_table
from judgekit.data.tables import COMPARISON, SCORES
from judgekit.experiment.asking import asked as stages, count
from judgekit.experiment.prepare import prepare
from judgekit.experiment.run import Finished
from tests.small import FILES, QUICK, toml

QUERIES, DEPTH = 8, 4
RUNS = ("bm25", "dense", "bm25_shuffled200")


def _experiment(folder: Path, shared: Path, base_url: str) -> Path:
    data = shared / "data" / "dev"
    reader = {"base_url": base_url, "namespace": "reader", "model": "minilm-l6-reader", "concurrency": 4}
    text = toml(
        data={**{name: f"{data}/{file}" for name, file in FILES.items()}, "depth": DEPTH, "limit": QUERIES},
        runs={name: f"{data}/runs/{name}.trec" for name in RUNS},
        endpoints={"reader": reader},
        labelers=[
            {"kind": "containment"},
            {"name": "judge", "kind": "judge"},
            {"name": "erag", "kind": "utility"},
            {"name": "provenance", "kind": "provenance", "qrels": f"{data}/provenance.qrels"},
        ],
        answers={"depths": [1, DEPTH]},
        metrics={"measures": ["nDCG", "P", "RR"]},
        analysis=QUICK,
    )
    (folder / "experiment.toml").write_text(text)
    return folder / "experiment.toml"


def test_a_real_experiment_pays_once_and_says_the_same_under_faults(
    real_endpoint: Callable[..., Any], shared: Path, tmp_path: Path
) -> None:
    server = real_endpoint()
    path = _experiment(tmp_path, shared, server.base_url)
    plan = count(stages(prepare(path)), tmp_path / "store")["all"]
    asked = sum(server.get("/stats")["requests"].values())
    first = judgekit.run(path, out=tmp_path / "first", cache=tmp_path / "store")
    sent = sum(server.get("/stats")["requests"].values()) - asked
    assert first.missing == ()
    assert sent == plan.requests
    pairs = sum(map(len, prepare(path).collection.pairs.values()))
    assert {name: len(labeling) for name, labeling in first.labelings.items()} == dict.fromkeys(first.labelings, pairs)

    again = judgekit.run(path, out=tmp_path / "again", cache=tmp_path / "store")
    assert sum(server.get("/stats")["requests"].values()) - asked == sent
    assert again.comparison.table.equals(first.comparison.table)

    faulty = real_endpoint("--error-rate", "0.1", "--truncate-rate", "0.1", "--drop-rate", "0.05")
    third = judgekit.run(_experiment(tmp_path, shared, faulty.base_url), out=tmp_path / "third", cache=tmp_path / "new")
    assert third.missing == ()
    for name in ("labels/judge.parquet", "labels/erag.qrels", "scores.parquet", "comparison.csv"):
        assert (tmp_path / "third" / name).read_bytes() == (tmp_path / "first" / name).read_bytes(), name

    _labels_mean_what_they_say(first, tmp_path / "first")


def _labels_mean_what_they_say(finished: Finished, folder: Path) -> None:
    """At k = 1 utility is the outcome; and ir_measures reads the qrels and agrees on the scores."""
    scores = read_table(SCORES, folder / "scores.parquet")
    p1 = scores[(scores["labeling"] == "erag") & (scores["measure"] == "P@1") & (scores["query_id"] != "all")]
    em = finished.quality[(finished.quality["metric"] == "em") & (finished.quality["depth"] == 1)]
    both = p1.merge(em, on=["run", "query_id"], suffixes=("_score", "_quality"))
    assert len(both) == QUERIES * len(RUNS)
    assert np.array_equal(both["value_score"], both["value_quality"])

    qrels = list(ir_measures.read_trec_qrels(str(folder / "labels" / "judge.qrels")))
    run = finished_run(folder, "dense")
    theirs = ir_measures.calc_aggregate([ir_measures.nDCG @ DEPTH], qrels, run)[ir_measures.nDCG @ DEPTH]
    chosen = (scores["labeling"] == "judge") & (scores["run"] == "dense") & (scores["measure"] == f"nDCG@{DEPTH}")
    ours = float(scores[chosen & (scores["query_id"] == "all")]["value"].iloc[0])
    assert ours == pytest.approx(theirs, abs=1e-12)

    table = read_table(COMPARISON, folder / "comparison.csv")
    at_one = table[(table["labeling"] == "erag") & (table["measure"] == "P@1") & (table["quality_metric"] == "em")]
    assert at_one["flags"].str.contains("by_construction").all()


def finished_run(folder: Path, name: str) -> list[Any]:
    """Return the first queries of a run, cut to the depth, as ir_measures wants it."""
    prepared = prepare(folder.parent / "experiment.toml")
    frame: pd.DataFrame = next(run for run in prepared.collection.runs if run.name == name).frame()
    return [ir_measures.ScoredDoc(q, d, s) for q, d, s in frame.itertuples(index=False)]
