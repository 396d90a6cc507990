"""vLLM itself, on CPU, with a tiny random model: what it replies is no sense, but of the form that was asked for."""

import json
import os
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import judgekit as jk
from judgekit.client import routes
from judgekit.client.sync import run_sync
from judgekit.data.files import read_table
from judgekit.data.tables import LABELS
from judgekit.experiment.prepare import prepare
from judgekit.experiment.run import asked
from judgekit.job import count
from judgekit.reading.check import check_endpoint
from judgekit.wire.types import Endpoint
from tests.integration.serving import Server, free_port, serving, started
from tests.integration.tiny_model import WORDS, write_model
from tests.small import FILES, QUICK, RUNS, Judgekit, make_experiment, toml

WAIT_S = 600.0
"""After so many seconds vLLM is given up; it takes 35 on an idle machine, minutes on a busy one."""

ENDPOINT = {"namespace": "vllm", "model": "tiny", "timeout_s": 600, "params": {"temperature": 0}}
CHAT, TEXT = {"kind": "judge", "endpoint": "chat"}, {"kind": "judge", "endpoint": "text"}
LABELERS = {
    "binary": CHAT,
    "probable": CHAT | {"read": "logprobs"},
    "line": CHAT | {"prompt": "graded"},
    "object": CHAT | {"prompt": "graded-json"},
    "votes": CHAT | {"samples": 3},
    "erag": CHAT | {"kind": "utility"},
    "text": TEXT,
    "probable-text": TEXT | {"read": "logprobs"},
}


class Vllm:
    """An executable of vLLM, a model, and how to start it."""

    def __init__(self, executable: str, folder: Path) -> None:
        self.executable, self.folder = executable, folder
        self.model = folder / "model"
        self.model.mkdir()
        write_model(self.model)
        home = {"HOME": str(folder), "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
        self.env = {**os.environ, **home}

    def command(self, what: str, *options: str) -> list[str]:
        model = ["--served-model-name", "tiny", "--dtype", "float32", "--max-model-len", "8192", "--enforce-eager"]
        return [self.executable, what, *options, *model]


@pytest.fixture(scope="module")
def vllm(tmp_path_factory: pytest.TempPathFactory) -> Vllm:
    """vLLM, if ``JUDGEKIT_VLLM`` is the path of its executable."""
    executable = os.environ.get("JUDGEKIT_VLLM")
    if not executable or shutil.which(executable) is None:
        pytest.skip("needs JUDGEKIT_VLLM, the executable of vLLM")
    return Vllm(executable, tmp_path_factory.mktemp("vllm"))


@pytest.fixture(scope="module")
def server(vllm: Vllm) -> Iterator[Server]:
    """A server of the model, where it starts in time."""
    port = free_port()
    command = vllm.command("serve", str(vllm.model), "--host", "127.0.0.1", "--port", str(port))
    with serving(command, port, "/health", vllm.folder / "log", vllm.env, wait_s=WAIT_S, give_up=pytest.skip) as found:
        yield found


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is busy is no server without these routes."""
    monkeypatch.setattr(routes, "_TRY_S", 600.0)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Six questions whose answer is yes, eighteen passages and two runs, in the folder where commands run."""
    make_experiment(tmp_path)
    queries = [json.loads(line) for line in (tmp_path / "queries.jsonl").read_text().splitlines()]
    (tmp_path / "queries.jsonl").write_text("".join(json.dumps({**q, "answers": ["Yes"]}) + "\n" for q in queries))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def experiment(base_url: str, *names: str) -> None:
    chat = ENDPOINT | {"base_url": base_url}
    text = toml(
        data=FILES | {"depth": 4},
        runs=RUNS,
        endpoints={"chat": chat, "text": chat | {"api": "completions"}},
        labelers=[{"name": name, **LABELERS[name]} for name in names],
        answers={"endpoint": "chat", "depths": [1, 4]},
        metrics={"measures": ["nDCG", "P"]},
        analysis=QUICK,
    )
    Path("experiment.toml").write_text(text)


def label(folder: Path, spec: str, server: Server, model: str = "tiny", **options: Any) -> Any:
    """Label the pool of one run with an endpoint of these options."""
    endpoint = Endpoint("here", server.base_url, model, timeout_s=600, **options)
    files = {"queries": folder / "queries.jsonl", "docs": folder / "docs.jsonl", "runs": [folder / "good.trec"]}
    return jk.label(spec, **files, endpoints=endpoint, asking=jk.Asking(cache=folder / "store")).table


def answered(server: Server) -> float:
    """How many requests the server says that it has answered."""
    with urllib.request.urlopen(server.base_url.removesuffix("/v1") + "/metrics", timeout=60) as response:
        lines = response.read().decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("vllm:request_success_total{"))


def test_the_check_finds_that_everything_works(server: Server) -> None:
    checks = run_sync(check_endpoint(Endpoint("here", server.base_url, "tiny", timeout_s=600)))
    works = {check.name.split(" (")[0]: check.works for check in checks}
    assert works == dict.fromkeys(("list of models", "chat completion", "log-probabilities"), "yes")


def test_an_experiment_has_every_label_in_its_form_and_costs_nothing_again(
    server: Server, folder: Path, judgekit: Judgekit
) -> None:
    experiment(server.base_url, *LABELERS)
    planned = count(asked(prepare("experiment.toml")))["all"]
    before = answered(server)
    judgekit("run", "experiment.toml", "--out", "first", code=0)
    sent = answered(server) - before
    assert sent >= planned.requests - planned.cached
    judgekit("run", "experiment.toml", "--out", "again", code=0)
    assert answered(server) - before == sent

    tables = {name: read_table(LABELS, folder / "first" / "labels" / f"{name}.parquet") for name in LABELERS}
    for name, table in tables.items():
        assert set(table["status"]) == {"ok"}, name
        assert table["relevance"].nunique() > 1, name
    said_by = {name: set(table["raw"]) for name, table in tables.items()}
    assert said_by["binary"] == said_by["text"] == said_by["erag"] == {"Yes", "No"}
    assert all(re.fullmatch("Final grade: [0-3]", text) for text in said_by["line"])
    assert {tuple(json.loads(text)) for text in said_by["object"]} == {("reason", "score")}
    assert {len(json.loads(text)) for text in said_by["votes"]} == {3}

    probable = tables["probable"]["relevance"]
    sure = abs(probable - 0.5) > 0.1
    assert sure.sum() > 9
    assert ((probable > 0.5) == (tables["binary"]["relevance"] == 1))[sure].all()
    # The chat template writes what a completion of the same messages is asked.
    assert tables["probable-text"]["relevance"].to_list() == pytest.approx(probable.to_list(), abs=0.01)


def test_a_verdict_that_is_cut_off_is_none(server: Server, folder: Path) -> None:
    cut = label(folder, "utility", server, params={"ignore_eos": True, "max_tokens": 4})
    assert set(cut["status"]) == {"truncated"}
    assert set(cut["raw"]) <= set(WORDS)
    before = answered(server)
    asked_again = label(folder, "judge", server, params={"max_tokens": 1})
    assert set(asked_again["status"]) == {"ok"}
    assert answered(server) - before == 2 * len(asked_again)


def test_a_prompt_that_does_not_fit_fails_alone(server: Server, folder: Path) -> None:
    rows = [json.loads(line) for line in (folder / "docs.jsonl").read_text().splitlines()]
    rows[0]["text"] *= 300
    (folder / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = label(folder, "judge", server)
    failed = table[table["status"] != "ok"]
    assert failed[["query_id", "doc_id", "status"]].values.tolist() == [["q0", rows[0]["doc_id"], "failed"]]
    assert "400: This model's maximum context length is 8192 tokens" in failed["reason"].iloc[0]


def test_run_batch_answers_what_was_exported(server: Server, vllm: Vllm, folder: Path, judgekit: Judgekit) -> None:
    # Nobody is there: what the batch left unanswered cannot be had later.
    experiment("http://127.0.0.1:9/v1", "binary", "probable", "object", "erag")
    judgekit("batch", "export", "experiment.toml", "--out", "batch.jsonl", code=0)
    command = vllm.command("run-batch", "-i", "batch.jsonl", "-o", "replies.jsonl", "--model", str(vllm.model))
    with started(command, folder / "log", vllm.env) as process:
        try:
            process.wait(WAIT_S)
        except subprocess.TimeoutExpired:
            pytest.skip(f"vllm run-batch has not ended after {WAIT_S:g} s")
    assert process.returncode == 0, (folder / "log").read_text(errors="replace")[-3000:]
    judgekit("batch", "import", "replies.jsonl", code=0)
    judgekit("run", "experiment.toml", "--out", "out", code=0)
