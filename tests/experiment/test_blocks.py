"""``stop = "decided"``: random blocks of queries, and an end as soon as the verdict is decided."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from judgekit.errors import ConfigError
from judgekit.experiment.blocks import confidence_at
from judgekit.experiment.run import run

QUERIES = 150
SETTINGS = """
[data]
queries = "queries.jsonl"
docs = "docs.jsonl"
depth = 3
[runs]
a = "a.trec"
b = "b.trec"
c = "c.trec"
[[labelers]]
name = "gold"
kind = "provenance"
qrels = "gold.qrels"
[[labelers]]
name = "other"
kind = "provenance"
qrels = "{other}.qrels"
[answers]
depths = [3]
ratings = ["ratings.csv"]
[metrics]
measures = ["P"]
[analysis]
resamples = 200
{stop}
"""


@pytest.fixture
def experiment(tmp_path: Path):
    """Three runs whose answers are as good as the share of gold documents that they show, up to a little noise."""
    random = np.random.default_rng(1)
    gold = {(q, d): int(random.random() < 0.4) for q in range(QUERIES) for d in range(6)}
    noise = {pair: int(random.random() < 0.4) for pair in gold}
    lines = [json.dumps({"query_id": f"q{q}", "text": f"question {q}"}) for q in range(QUERIES)]
    (tmp_path / "queries.jsonl").write_text("\n".join(lines))
    docs = [json.dumps({"doc_id": f"q{q}d{d}", "text": f"text {q} {d}"}) for q, d in gold]
    (tmp_path / "docs.jsonl").write_text("\n".join(docs))
    for name, labels in (("gold", gold), ("noise", noise)):
        (tmp_path / f"{name}.qrels").write_text("".join(f"q{q} 0 q{q}d{d} {v}\n" for (q, d), v in labels.items()))
    rated = []
    for run_name in "abc":
        rows = []
        for q in range(QUERIES):
            top = random.permutation(6)[:3]
            rows += [f"q{q} Q0 q{q}d{d} 0 {-rank} {run_name}\n" for rank, d in enumerate(top)]
            rated.append((run_name, 3, f"q{q}", "rating", sum(gold[q, d] for d in top) / 3 + random.normal(0, 0.1)))
        (tmp_path / f"{run_name}.trec").write_text("".join(rows))
    table = pd.DataFrame(rated, columns=["run", "depth", "query_id", "metric", "value"])
    table.assign(model="people", answer="").to_csv(tmp_path / "ratings.csv", index=False)

    def write(other: str, stop: str = 'stop = "decided"') -> Path:
        path = tmp_path / "experiment.toml"
        path.write_text(SETTINGS.format(other=other, stop=stop))
        return path

    return write


def test_a_run_ends_when_its_verdict_is_decided_and_its_intervals_hold_for_all_looks(experiment, tmp_path):
    done = run(experiment("noise"), out=tmp_path / "out", cache=tmp_path / "store")
    labelled = done.labelings["gold"].table["query_id"].nunique()
    assert labelled < QUERIES
    assert labelled % (QUERIES // 5) == 0
    assert done.comparison.verdict.winner == "gold"
    look = labelled // (QUERIES // 5)
    assert done.comparison.settings["confidence"] == confidence_at(look, 5, 0.95) > 0.95
    (said,) = [line for line in done.results.warnings if line.startswith("Labelled in blocks")]
    assert f"after {look} of 5 looks, {labelled} of {QUERIES} queries, the verdict was decided" in said
    assert set(done.scores["query_id"]) - {"all"} == set(done.labelings["gold"].table["query_id"])


def test_where_nothing_can_be_told_apart_every_block_is_labelled(experiment, tmp_path):
    done = run(experiment("gold"), out=tmp_path / "out", cache=tmp_path / "store")
    assert done.labelings["gold"].table["query_id"].nunique() == QUERIES
    assert done.comparison.verdict.winner is None
    plain = run(experiment("gold", ""), out=tmp_path / "plain", cache=tmp_path / "store")
    for file in ("labels/gold.qrels", "labels/other.qrels"):
        assert (tmp_path / "out" / file).read_bytes() == (tmp_path / "plain" / file).read_bytes()
    pd.testing.assert_frame_equal(done.scores, plain.scores)
    assert plain.comparison.settings["confidence"] == 0.95


def test_the_last_look_costs_little_and_the_first_much():
    levels = [confidence_at(look, 5, 0.95) for look in range(1, 6)]
    assert levels == sorted(levels, reverse=True)
    assert levels[-1] == pytest.approx(0.9625, abs=1e-3)
    assert levels[0] > 0.99999
    assert confidence_at(1, 1, 0.9) == 0.9


def test_stop_knows_one_word(experiment, tmp_path):
    with pytest.raises(ConfigError, match=r"analysis\.stop"):
        run(experiment("gold", 'stop = "soon"'), out=tmp_path / "out")
