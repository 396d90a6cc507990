"""Utility labels of all kinds in one run: they share their requests, and the report compares them."""

from pathlib import Path

import pandas as pd

import judgekit as jk
from tests.mock import MockTransport
from tests.small import FILES, MOCK, QUICK, RUNS, make_experiment, toml

KINDS = {
    "erag": {},
    "reads": {"variant": "reads"},
    "own": {"reference": "own", "top": 4},
    "distraction": {"variant": "distraction"},
}


class Counting(MockTransport):
    """Counts how often each body is sent."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    async def send(self, endpoint, body):  # type: ignore[no-untyped-def]
        self.sent.append(body)
        return await super().send(endpoint, body)


def test_labels_of_all_kinds_send_each_request_once(tmp_path: Path) -> None:
    make_experiment(tmp_path)
    counting = Counting()
    data = {name: tmp_path / file for name, file in FILES.items()}
    runs = {"good": tmp_path / RUNS["good"]}
    llm = jk.Endpoint("local", transport=counting, **MOCK)
    asking = jk.Asking(cache=tmp_path / "cache")
    kinds = ["utility", "utility(variant=reads)", "utility(reference=own, top=4)", "utility(variant=distraction)"]
    labelings = {}
    for kind in kinds:
        labelings[kind] = jk.label(kind, runs=runs, depth=4, endpoints=llm, asking=asking, **data)
    jk.answer(runs=runs, depths=[1, 4], endpoints=llm, asking=asking, **data)
    assert len(counting.sent) == len(set(counting.sent))
    pairs, questions = len(labelings["utility"]), labelings["utility"].table["query_id"].nunique()
    # One for each pair; of one run the list together is the answer at depth 4, and the first pair that at depth 1.
    assert len(counting.sent) == pairs + questions


def test_a_run_compares_them_and_says_what_they_lack(tmp_path: Path) -> None:
    make_experiment(tmp_path)
    labelers = [{"name": name, "kind": "utility", **options} for name, options in KINDS.items()]
    (tmp_path / "experiment.toml").write_text(
        toml(
            data=FILES | {"depth": 4},
            runs=RUNS,
            endpoints={"local": MOCK},
            labelers=labelers,
            answers={"depths": [4]},
            metrics={"measures": ["nDCG", "P", "UDCG"]},
            analysis=QUICK | {"primary": "P@4"},
        )
    )
    jk.run(tmp_path / "experiment.toml", out=tmp_path / "out", asking=jk.Asking(cache=tmp_path / "cache"))
    rows = pd.read_csv(tmp_path / "out" / "comparison.csv", keep_default_na=False)
    flagged = {name for name, flags in zip(rows["labeling"], rows["flags"], strict=True) if "no_reference" in flags}
    assert flagged == {"reads", "own"}
    scored = pd.read_parquet(tmp_path / "out" / "scores.parquet")
    assert set(scored.loc[scored["measure"] == "UDCG@4", "labeling"]) >= set(KINDS)
