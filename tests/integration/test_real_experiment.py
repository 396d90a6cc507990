"""A whole experiment on the sample's questions, passages and runs, answered by a real model over HTTP."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import judgekit
from judgekit.client.asking import Asking
from judgekit.client.sync import run_sync
from judgekit.experiment.prepare import prepare
from judgekit.experiment.run import asked as stages
from judgekit.job import count
from judgekit.reading.check import check_endpoint
from judgekit.wire.types import Endpoint
from tests.small import FILES, QUICK, toml

MODEL = "minilm-l6-reader"
QUERIES, DEPTH = 8, 4
RUNS = ("bm25", "rrf", "bm25_title")
SAMPLE = Path(judgekit.__file__).parent / "sample"


def _experiment(folder: Path, base_url: str) -> Path:
    reader = {"base_url": base_url, "namespace": "reader", "model": MODEL, "concurrency": 4}
    text = toml(
        data={**{name: f"{SAMPLE}/{file}" for name, file in FILES.items()}, "depth": DEPTH, "limit": QUERIES},
        runs={name: f"{SAMPLE}/runs/{name}.trec" for name in RUNS},
        endpoints={"reader": reader},
        labelers=[
            {"kind": "containment"},
            {"name": "judge", "kind": "judge"},
            {"name": "erag", "kind": "utility"},
            {"name": "provenance", "kind": "provenance", "qrels": f"{SAMPLE}/provenance.qrels"},
        ],
        answers={"depths": [1, DEPTH]},
        metrics={"measures": ["nDCG", "P", "RR"]},
        analysis=QUICK,
    )
    (folder / "experiment.toml").write_text(text)
    return folder / "experiment.toml"


def test_a_real_experiment_pays_once_and_says_the_same_under_faults(
    real_endpoint: Callable[..., Any], tmp_path: Path
) -> None:
    server = real_endpoint()
    path = _experiment(tmp_path, server.base_url)
    plan = count(stages(prepare(path)), tmp_path / "store")["all"]
    asked = sum(server.get("/stats")["requests"].values())
    first = judgekit.run(path, out=tmp_path / "first", asking=Asking(cache=tmp_path / "store"))
    sent = sum(server.get("/stats")["requests"].values()) - asked
    assert first.missing == ()
    assert sent == plan.requests
    pairs = sum(map(len, prepare(path).collection.pairs.values()))
    assert {name: len(labeling) for name, labeling in first.labelings.items()} == dict.fromkeys(first.labelings, pairs)

    again = judgekit.run(path, out=tmp_path / "again", asking=Asking(cache=tmp_path / "store"))
    assert sum(server.get("/stats")["requests"].values()) - asked == sent
    assert again.comparison.table.equals(first.comparison.table)

    rates = {"--error-rate": "0.1", "--truncate-rate": "0.1", "--drop-rate": "0.1", "--throttle-rate": "0.02"}
    faulty = real_endpoint(*(word for rate in rates.items() for word in rate))
    third = judgekit.run(
        _experiment(tmp_path, faulty.base_url), out=tmp_path / "third", asking=Asking(cache=tmp_path / "new")
    )
    assert third.missing == ()
    assert {"500", "truncated", "dropped"} <= set(faulty.get("/stats")["faults"])
    for name in ("labels/judge.parquet", "labels/erag.qrels", "scores.parquet", "comparison.csv"):
        assert (tmp_path / "third" / name).read_bytes() == (tmp_path / "first" / name).read_bytes(), name


def test_the_check_says_what_the_model_can_do(real_endpoint: Callable[..., Any]) -> None:
    found = run_sync(check_endpoint(Endpoint("real", real_endpoint().base_url, MODEL)))
    works = {check.name.split(" (")[0]: check.works for check in found}
    assert works["list of models"] == works["chat completion"] == works["log-probabilities"] == "yes"
