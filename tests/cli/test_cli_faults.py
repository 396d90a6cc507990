import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from judgekit.cli import main
from tests.commands import Judgekit, Said
from tests.mock import URL
from tests.scripted import Scripted, completion
from tests.servers import FaultServer
from tests.small import edited

LABEL = ["label", "judge", "--queries", "queries.jsonl", "--docs", "docs.jsonl", "--run", "good.trec", "--depth", 3]


def _label(judgekit: Judgekit, server: FaultServer, code: int | None = None) -> Said:
    endpoint = ["--endpoint", server.base_url, "--model", "m", "--cache", "store"]
    return judgekit(*LABEL, "--out", "judge.qrels", *endpoint, code=code)


VERDICTS = {
    "unparsed": "It depends on the reader.",
    "truncated": completion("Let me", finish_reason="length"),
    "refused": completion(None, message={"content": None, "refusal": "No."}),
}


@pytest.mark.parametrize(("status", "answer"), VERDICTS.items(), ids=VERDICTS)
def test_a_label_that_could_not_be_had_is_missing_and_the_exit_code_says_so(
    judgekit, folder, fault_server, status, answer
):
    fault_server.answer = lambda body, seen: answer if "market of Arlen" in str(body) else "Yes"
    said = _label(judgekit, fault_server, code=1)
    assert f"17 ok, 1 {status}" in said.out
    assert "1 label is missing" in said.err
    assert len((folder / "judge.qrels").read_text().splitlines()) == 17
    assert (folder / "judge.missing.tsv").read_text().splitlines()[1].split("\t")[:2] == ["q0", "d0b"]
    score = ["score", "--run", "good.trec", "--qrels", "judge.qrels", "--scale", "judge=binary", "-m", "P@1"]
    assert "note: judge: labels are missing for 1 of 6 queries" in judgekit(*score, code=0).err


def test_what_is_missing_is_told_with_its_commonest_reasons(judgekit, folder, fault_server):
    def answer(body: dict[str, Any], seen: int) -> Scripted | str:
        text = str(body["messages"])
        if "market of Arlen" in text or "market of Dulse" in text:
            return Scripted(200, b"<html>Log in</html>")
        return "It depends." if "mill" in text else "Yes"

    fault_server.answer = answer
    edited(folder / "experiment.toml", f'"{URL}"', f'"{fault_server.base_url}"\nmax_retries = 0')
    said = judgekit("run", "experiment.toml", "--out", "results", "--cache", "store", code=1)
    [line] = [line for line in said.err.splitlines() if "labels of judge" in line]
    assert "6 unparsed, 2 failed: 6 × " in line
    assert "2 × 200 with an HTML page (login?) where a chat completion should be: Log in (see labels/)" in line
    for option in (("--json", "--out", "results"), ("--part", "1/1")):
        judgekit("run", "experiment.toml", *option, "--cache", "store", code=1)
    fault_server.answer = lambda body, seen: "It depends." if "mill" in str(body["messages"]) else "Yes"
    said = _label(judgekit, fault_server, code=1)
    assert "6 labels are missing: 6 × " in said.err
    assert "(all are in judge.qrels.parquet)" in said.err


def test_what_running_again_would_not_change_is_not_advised(judgekit, fault_server):
    fault_server.answer = lambda body, seen: "Hard to tell." if "mill" in str(body) else "Yes"
    said = _label(judgekit, fault_server, code=1)
    assert "Run the same command again" not in said.err
    assert "try another prompt or model, or ask for everything again into another store" in said.err
    before = len(fault_server.seen)
    _label(judgekit, fault_server, code=1)
    assert len(fault_server.seen) == before


# An interrupt that the parent ignores is ignored by its children too, unless they say otherwise.
MAIN = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("judgekit", run_name="__main__")
"""


def test_an_interrupt_while_it_is_starting_ends_in_a_sentence(capfd, monkeypatch):
    def interrupted(name: str, *_: Any) -> None:
        if name == "judgekit.cli.app":
            raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "judgekit.cli.app", raising=False)
    monkeypatch.setattr(sys, "meta_path", [SimpleNamespace(find_spec=interrupted), *sys.meta_path])
    with pytest.raises(SystemExit) as ended:
        main(["list", "metrics"])
    assert (ended.value.code, capfd.readouterr().err) == (130, "judgekit: interrupted before it began\n")


@pytest.mark.usefixtures("ignored_interrupt")
def test_an_interrupted_run_goes_on_where_it_was(judgekit, folder, fault_server):
    stopped = False

    def answer(body: dict[str, Any], seen: int) -> Scripted:
        """Hold back the pairs of one query, so that the run cannot end before it is stopped, however late that is."""
        return completion("Yes", delay_s=20 if "bridge of Farrow built?" in str(body) and not stopped else 0.05)

    fault_server.answer = answer
    command = [*map(str, LABEL), "--out", "judge.qrels", "--endpoint", fault_server.base_url, "--model", "m"]
    command += ["--cache", "store", "--concurrency", "2"]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    started = [sys.executable, "-c", MAIN, *command]
    process = subprocess.Popen(started, cwd=folder, env=env, stderr=subprocess.PIPE, text=True)
    while len(fault_server.seen) < 8:
        time.sleep(0.02)
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    stopped = True
    _, told = process.communicate(timeout=120)
    assert process.returncode == 130, told
    assert "Traceback" not in told
    assert "interrupted; replies are saved" in told
    assert not (folder / "judge.qrels").exists()
    assert len(fault_server.seen) < 18
    judgekit(*command, code=0)
    assert len(fault_server.seen) <= 18 + 2, "at most those in flight are sent again"
    labels = (folder / "judge.qrels").read_bytes()
    judgekit(*command[:-4], "--cache", "fresh", code=0)
    assert (folder / "judge.qrels").read_bytes() == labels


def test_answers_that_read_like_abstentions_are_scored_and_counted_on_screen_and_in_the_report(
    judgekit, folder, fault_server
):
    fault_server.answer = lambda body, seen: completion("The passages do not say.")
    endpoint = ["--endpoint", fault_server.base_url, "--model", "m", "--cache", "store"]
    data = ["--queries", "queries.jsonl", "--docs", "docs.jsonl", "--run", "good.trec"]
    said = judgekit("answer", *data, "--depth", 1, "--out", "quality.csv", *endpoint, code=0)
    assert "6 of 6 answers read like abstentions" in " ".join(said.err.split())
    edited(folder / "experiment.toml", URL, fault_server.base_url)
    edited(folder / "experiment.toml", 'name = "judge"\nkind = "judge"', 'kind = "containment(max_words=9)"')
    # With every answer wrong there is nothing to tell runs apart by.
    said = judgekit("run", "experiment.toml", "--out", "results", "--cache", "store", code=0)
    assert "the quality of all runs is the same on every query" in " ".join(said.out.split())
    assert "n 6, 6 scored that read like abstentions" in (folder / "results" / "report.html").read_text()


@pytest.mark.parametrize(("length", "fits"), [(700, False), (100_000, True), ("700", True)])
def test_a_dry_run_says_which_requests_are_longer_than_the_server_takes(judgekit, folder, fault_server, length, fits):
    fault_server.other = lambda path, body: (
        (200, {"data": [{"id": "mock", "max_model_len": length}]}) if path == "/v1/models" else (404, {})
    )
    edited(folder / "experiment.toml", URL, fault_server.base_url)
    edited(folder / "docs.jsonl", "is held on the square", "is held " * 200)
    said = judgekit("run", "experiment.toml", "--dry-run", code=0)
    assert fault_server.seen == [], "no model was asked"
    assert ("will not fit" not in said.err) == fits
    told = r"answer: about \d+ requests will not fit: .* local takes 700 .* or set context_tokens under \[answers"
    assert fits or re.search(told, said.err)


def test_a_share_of_missing_labels_may_be_accepted_by_each_labeling(judgekit, folder, fault_server):
    fault_server.answer = lambda body, seen: "It depends." if "market of Arlen" in str(body["messages"]) else "Yes"
    path = folder / "experiment.toml"
    edited(path, f'"{URL}"', f'"{fault_server.base_url}"')
    text = path.read_text()
    command = ["run", "experiment.toml", "--out", "results", "--cache", "store"]
    said = judgekit(*command, code=1)
    [line] = [line.strip() for line in said.err.splitlines() if "unparsed" in line]
    assert "labels of judge: 1 unparsed" in line
    sent = len(fault_server.seen)
    share = 1 / len(pd.read_parquet(folder / "results" / "labels" / "judge.parquet"))
    for accepted, code in ((0.9 * share, 1), (share, 0)):
        path.write_text(f"accept_missing = {accepted!r}\n{text}")
        said = judgekit(*command, code=code)
        assert line in said.err, "told in any case"
        assert ("accept_missing allows for what is missing" in said.err) == (code == 0)
        assert json.loads(judgekit(*command, "--json", code=code).out)["missing"] == [line]
    assert len(fault_server.seen) == sent, "it decides on nothing but the exit code"
    judgekit("build", "results", "--labeling", "judge", "--out", "final", "--cache", "store", code=1)
    path.write_text(f"accept_missing = 1.0\n{text}")
    assert "accept_missing" in judgekit(*command, code=2).err
