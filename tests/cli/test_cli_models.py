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
    assert "Choose    There is no decision. label judge" in said.out
    assert "accept_mixed_models = true" in " ".join(said.err.split())
    page = (folder / "out" / "report.html").read_text()
    assert "judge-2026-01 (" in page
    models = set(pq.read_table(folder / "out" / "labels" / "judge.parquet")["reply_model"].to_pylist())
    assert models == {"judge-2026-01", "judge-2026-09"}

    sent = len(fault_server.seen)
    accepted = judgekit(*experiment(folder, fault_server, ("resamples", "accept_mixed_models = true\nresamples")))
    assert accepted.code == 0, accepted.err
    assert "There is no decision" not in accepted.out
    assert "come from 2 models" in accepted.err
    assert len(fault_server.seen) == sent
