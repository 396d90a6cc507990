import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.scripted import Scripted, completion
from tests.servers import FaultServer
from tests.small import FILES, QUICK, RUNS, toml

EXPERIMENT = toml(
    data=FILES | {"depth": 3},
    runs=RUNS,
    endpoints={"local": {"base_url": "URL", "model": "judge"}},
    labelers=[{"kind": "containment"}, {"name": "judge", "kind": "judge"}],
    answers={"depths": [1, 3], "outcome": "f1"},
    metrics={"measures": ["P"]},
    analysis=QUICK | {"primary": "P@3"},
)


def as_model(name: str, turned: bool = False) -> Any:
    """Return what a server does that finds the year in the passages, and calls itself by a name."""

    def answer(body: dict[str, Any], seen: int) -> Scripted:
        text = body["messages"][-1]["content"]
        year = re.search(r"was built in (\d{4})", text)
        verdict = "Yes" if bool(year) != turned else "No"
        said = completion(verdict if "Reply with Yes or No" in text else year[1] if year else "unknown")
        return Scripted(200, json.dumps({**json.loads(said.body), "model": name}).encode())

    return answer


def experiment(folder: Path, server: FaultServer, *changes: tuple[str, str]) -> list[str]:
    """Write the experiment file; return the command that runs it."""
    text = EXPERIMENT.replace("URL", server.base_url)
    for old, new in changes:
        text = text.replace(old, new)
    (folder / "models.toml").write_text(text)
    return ["run", "models.toml", "--out", "out", "--cache", "store"]


def test_no_decision_rests_on_two_models_under_one_name_until_the_user_accepts_it(judgekit, folder, fault_server):
    run = experiment(folder, fault_server)
    fault_server.answer = as_model("judge-2026-01")
    assert judgekit(*run, "--limit", 3).code == 0
    fault_server.answer = as_model("judge-2026-09")
    said = judgekit(*run, code=1)
    assert "label judge: the replies of the endpoint 'local' come from 2 models" in said.err
    assert "Do        No decision." in said.out
    assert "accept_mixed_models = true" in " ".join(said.err.split())
    page = (folder / "out" / "report.html").read_text()
    assert "judge-2026-01 (" in page
    models = set(pq.read_table(folder / "out" / "labels" / "judge.parquet")["reply_model"].to_pylist())
    assert models == {"judge-2026-01", "judge-2026-09"}

    sent = len(fault_server.seen)
    accepted = judgekit(*experiment(folder, fault_server, ("resamples", "accept_mixed_models = true\nresamples")))
    assert accepted.code == 0, accepted.err
    assert "No decision.\n" not in accepted.out
    assert "come from 2 models" in accepted.err
    assert len(fault_server.seen) == sent


def canary(pairs: int) -> tuple[str, str]:
    """The table that makes a run ask again, in front of another one."""
    return "[answers]", f"[canary]\npairs = {pairs}\n[answers]"


def test_a_canary_says_how_many_stored_labels_come_out_otherwise_and_leaves_them(judgekit, folder, fault_server):
    run = experiment(folder, fault_server, canary(5))
    fault_server.answer = as_model("judge-2026-01")
    assert "canary judge: no stored replies to compare with yet" in judgekit(*run).out
    labels = (folder / "out" / "labels" / "judge.qrels").read_text()
    sent = len(fault_server.seen)

    assert "canary judge: 0 of 5 labels differ (0.0%, 95 % interval 0.0% to 43.4%)\n" in judgekit(*run).out
    assert len(fault_server.seen) == sent + 5

    fault_server.answer = as_model("judge-2026-09", turned=True)
    turned = judgekit(*experiment(folder, fault_server, canary(1000)))
    pairs = len(labels.splitlines())
    assert f"canary judge: {pairs} of {pairs} labels differ (100.0%, 95 % interval" in turned.out
    assert "the stored replies name judge-2026-01, the new ones judge-2026-09" in turned.out
    assert turned.code == 0, turned.err  # the labels are those of one model: the stored ones
    assert (folder / "out" / "labels" / "judge.qrels").read_text() == labels
    assert "labels differ" in (folder / "out" / "report.html").read_text()
    assert len(fault_server.seen) == sent + 5 + pairs


def test_a_canary_keeps_to_the_budget_and_sends_nothing_in_a_dry_run(judgekit, folder, fault_server):
    fault_server.answer = as_model("judge")
    assert judgekit(*experiment(folder, fault_server), "--limit", 3).code == 0
    sent = len(fault_server.seen)
    run = experiment(folder, fault_server, canary(5))
    assert judgekit(*run, "--dry-run").code == 0
    assert "budget" in judgekit(*run, "--max-requests", 4, code=3).err
    assert len(fault_server.seen) == sent + 4
