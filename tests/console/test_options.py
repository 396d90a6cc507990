import json
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer

from judgekit.cli.app import app_for
from judgekit.client.asking import Asking
from judgekit.console.jobs import JobOptions
from tests.mock import URL
from tests.small import EXPERIMENT, edited, toml

DATA = ["--queries", "queries.jsonl", "--docs", "docs.jsonl", "--run", "good.trec"]
MOCK = ["--endpoint", URL, "--model", "mock"]
LABEL = ["label", "judge", *DATA, "--depth", 4, "--out", "out.qrels", "--cache", "store"]
ANSWER = ["answer", *DATA, "--depth", 0, "--depth", 2, "--out", "out.csv", "--cache", "store"]


def machine(said: Any) -> dict[str, Any]:
    assert said.code == 0, said.err
    found: dict[str, Any] = json.loads(said.out)
    return found


def priced(folder: Path, prompt: float, completion: float) -> str:
    """Return a file with the endpoint of the experiment and a price of its model."""
    prices = {"mock": {"prompt": prompt, "completion": completion}}
    (folder / "priced_server.toml").write_text(
        toml(endpoints={"local": {"base_url": URL, "model": "mock"}}, prices=prices)
    )
    return "priced_server.toml"


def total(said: Any) -> str:
    """Return the line of a dry run that is about all stages."""
    assert said.code == 0, said.err
    (line,) = [line for line in said.out.splitlines() if line.startswith("all ")]
    return " ".join(line.split()[2:])


@pytest.mark.parametrize("command", [LABEL, ANSWER])
def test_a_dry_run_of_a_stage_counts_what_the_stage_then_sends(judgekit, folder, command):
    planned = total(judgekit(*command, *MOCK, "--dry-run"))
    requests, stored, at_least = re.fullmatch(r"(\d+) (\d+) at least (\d+).*", planned).groups()  # type: ignore[union-attr]
    assert (stored, at_least) == ("0", requests)
    assert not (folder / "store").exists()
    assert not list(folder.glob("out*"))
    assert f"{requests} sent, 0 from the store" in judgekit(*command, *MOCK, code=0).err
    assert total(judgekit(*command, *MOCK, "--dry-run")).startswith(f"{requests} {requests} 0")


def test_a_dry_run_says_how_many_requests_are_left_and_how_many_it_may_become(judgekit, folder):
    assert judgekit(*LABEL, "--depth", 1, *MOCK).code == 0
    left = "18 6 at least 12; up to 24"
    told = "each of those that are left may be asked again, none of those that are stored"
    assert total(judgekit(*LABEL, *MOCK, "--dry-run")).startswith(left), told


def test_a_dry_run_prints_about_how_much_money_it_takes(judgekit, folder):
    command = [*LABEL, "--endpoint", priced(folder, 1000000.0, 2000000.0)]
    shown = judgekit(*command, "--dry-run").out
    assert "by the length and script of the prompts" in shown
    about, low, high = re.findall(r"about ([\d,]+) \(([\d,]+) to ([\d,]+)\)", total(judgekit(*command, "--dry-run")))[
        -1
    ]
    low, about, high = (float(number.replace(",", "")) for number in (low, about, high))
    assert low < about < high
    spent = float(re.search(r"spent: ([\d.e+,]+)", judgekit(*command, code=0).err)[1].replace(",", ""))  # type: ignore[index]
    assert low <= spent <= high
    (folder / "priced.toml").write_text(EXPERIMENT + toml(prices={"mock": {"prompt": 1.0, "completion": 2.0}}))
    for name in ("priced", "experiment"):
        assert ("money" in judgekit("run", f"{name}.toml", "--dry-run").out) == (name == "priced")


def test_a_dry_run_fails_where_the_key_is_not_in_the_environment(judgekit, folder):
    server = ["--endpoint", "experiment.toml:local"]
    edited(folder / "experiment.toml", f'"{URL}"', '"http://localhost:9/v1"\napi_key_env = "NO_SUCH_KEY"')
    for command in (["run", "experiment.toml"], [*LABEL, *server], [*ANSWER, *server]):
        assert "NO_SUCH_KEY" in judgekit(*command, "--dry-run", code=2).err


@pytest.mark.parametrize("command", [LABEL, ANSWER])
def test_a_stage_keeps_to_its_budget(judgekit, folder, command):
    assert "[prices.'mock']" in judgekit(*command, *MOCK, "--max-cost", 1, code=2).err
    said = judgekit(*command, "--endpoint", priced(folder, 1.0, 1.0), "--max-cost", 0.0001, code=3)
    assert "would exceed the budget of 0.0001" in said.err


def test_an_endpoint_is_an_address_a_spelling_a_name_or_a_file(judgekit, folder, fault_server):
    url = fault_server.base_url
    settings = {"base_url": url, "model": "m", "timeout_s": 30.0, "params": {"temperature": 0.5}}
    other = settings | {"model": "n"}
    (folder / "mine.toml").write_text(toml(endpoints={"a": settings, "b": other}))
    edited(folder / "experiment.toml", f'"{URL}"', f'"{url}"')
    asked = [
        ([url, "--model", "m"], {"model": "m"}),
        ([f"here(base_url={url}, model=m)", "--concurrency", "2"], {"model": "m"}),
        (["local"], {"model": "mock"}),
        (["local", "--model", "k"], {"model": "k"}),
        (["mine.toml:a"], {"model": "m", "temperature": 0.5}),
        (["mine.toml:b", "--model", "k"], {"model": "k", "temperature": 0.5}),
        (["experiment.toml"], {"model": "mock"}),
    ]
    for number, (given, sent) in enumerate(asked):
        command = [*LABEL[:-1], f"store{number}", "--endpoint", *given]
        before = len(fault_server.seen)
        judgekit(*command, code=0)
        assert {name: fault_server.seen[before].get(name) for name in sent} == sent


@pytest.mark.parametrize(
    ("endpoint", "told"),
    [
        (["local(base_url=http://h/v1, model=m, timout_s=3)"], "Did you mean 'timeout_s'"),
        (["local(base_url=http://h/v1, model=m, timeout_s=long)"], "endpoints.local.timeout_s"),
        (["local(base_url=http://h/v1)"], "model is empty"),
        (["http://h/v1"], "model is empty"),
        (["locla"], "unknown endpoint of experiment.toml 'locla': choose from local. Did you mean 'local'"),
        (["nowhere.toml"], "nowhere.toml: no such file"),
        (["two.toml", "--model", "m"], "--model sets an option of one endpoint"),
        (["two.toml:c"], "choose from a, b"),
        (["none.toml"], "none.toml: [endpoints] is missing"),
        (["local(base_url=http://h/v1"], "expected"),
    ],
)
def test_an_endpoint_that_is_none_is_a_sentence(judgekit, folder, endpoint, told):
    settings = {"base_url": "http://h/v1", "model": "m"}
    (folder / "two.toml").write_text(toml(endpoints={"a": settings, "b": settings}))
    (folder / "none.toml").write_text('title = "empty"\n')
    said = judgekit(*LABEL, "--endpoint", *endpoint, code=2)
    assert told in said.err
    assert "Traceback" not in said.err


def test_an_experiment_tells_machines_its_decision(judgekit, folder):
    found = machine(judgekit("run", "experiment.toml", "--out", "results", "--json"))
    assert set(found) > {"command", "folder", "report", "decision", "missing", "warnings"}, "those of 0.3"
    assert set(found["decision"]) == {"text", "lines", "claims"}
    choose = found["decision"]["lines"]["Choose"]
    assert choose in " ".join(found["decision"]["text"].split())
    claimed = [row["sentence"] for row in found["decision"]["claims"] if row["line"] == "Choose"]
    assert claimed
    assert all(sentence in choose for sentence in claimed)
    compared = judgekit("compare", "--scores", "results/scores.parquet", "--quality",
                        "results/answers/answer-short.parquet", "--outcome", "em", "--json")  # fmt: skip
    follows = [row["subject"] for row in machine(compared)["decision"]["claims"] if row["kind"] == "follows"]
    assert set(follows) == {"containment", "judge", "erag"}
    assert machine(compared)["comparison"][0]["coefficient"]
    scored = machine(judgekit("score", "--run", "good.trec", "--qrels", "gold.qrels", "-m", "RR P@1", "--json"))
    assert {(row["measure"], row["value"]) for row in scored["scores"]} == {("RR", 1.0), ("P@1", 1.0)}


def test_a_command_waits_for_its_server(judgekit, fault_server):
    states = [(503, {}), (503, {}), (200, {"data": [{"id": "m"}]})]
    fault_server.other = lambda path, body: states.pop(0) if len(states) > 1 else states[0]
    said = judgekit("check-endpoint", "--endpoint", fault_server.base_url, "--model", "m", "--wait", 20)
    assert "waiting for the server" in said.err
    assert len(states) == 1


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["run", "experiment.toml", "--limit", 0], "Invalid value for '--limit'"),
        (["run", "experiment.toml", "--max-cost", -0.5], "judgekit: max_cost must be a number of at least 0, not -0.5"),
        ([*ANSWER, "--depth", -1], "Invalid value for '--depth'"),
        (
            ["compare", "--scores", "s", "--quality", "q", "--resamples", 9],
            "judgekit: resamples must be a whole number from 100 to 100,000",
        ),
    ],
)
def test_a_number_out_of_its_range_is_refused_and_the_help_names_the_range(judgekit, command, told):
    assert told in judgekit(*command, code=2).err
    help_ = " ".join(judgekit(command[0], "--help").out.split())
    assert "at least " in help_
    assert "x>=" not in help_


ASKING = ["run", "choose", "build", "label", "answer", "guard", "audit", "nuggets", "judge-test"]
SHARED = {"max_cost", "max_requests", "wait_s", "cache", "ask_again", "dry_run", "part", "batch", "as_json"}


def options_of(command: str) -> dict[str, tuple[tuple[str, ...], str]]:
    """Return the spelling and the help of each option of a command, by the name of its parameter."""
    found = typer.main.get_command(app_for([command])).commands[command]  # type: ignore[attr-defined]
    return {param.name: (tuple(param.opts), param.help) for param in found.params if hasattr(param, "help")}


def test_every_command_that_asks_has_the_same_options() -> None:
    declared = {option.name for option in fields(JobOptions)}
    settings = {setting.name for setting in fields(Asking)} - {"progress", "prices"}
    assert declared == SHARED
    assert settings <= declared, "what Asking declares is an option of each command"
    told = [{name: options_of(command).get(name) for name in SHARED} for command in ASKING]
    assert all(None not in one.values() for one in told)
    assert all(one == told[0] for one in told), "spelled and explained alike"


def test_a_gate_is_counted_and_limited_like_everything_that_asks(judgekit, folder):
    gate = ["guard", "good.trec", "poor.trec", *DATA[:4], "--labeler", "judge"]
    planned = total(judgekit(*gate, *MOCK, "--cache", "store", "--dry-run"))
    requests = planned.split()[0]
    assert planned.startswith(f"{requests} 0 at least {requests}")
    assert not (folder / "store").exists()
    stopped = judgekit(*gate, *MOCK, "--cache", "store", "--max-requests", 2, code=3)
    assert "the budget of 2 requests is used up" in stopped.err
    dear = [*gate, "--endpoint", priced(folder, 1000000.0, 2000000.0), "--cache", "other", "--max-cost", 1]
    assert "would exceed the budget of 1;" in judgekit(*dear, code=3).err
    assert f"{int(requests) - 2} requests to send" in judgekit(*gate, *MOCK, "--cache", "store", code=5).err


@pytest.mark.parametrize("command", [["--help"], ["run", "--help"], ["list", "labelers"]], ids=" ".join)
def test_python_without_docstrings_shows_the_same_help(command: list[str]) -> None:
    plain, stripped = (
        subprocess.run([sys.executable, *flags, "-m", "judgekit", *command], capture_output=True, text=True)
        for flags in ([], ["-OO"])
    )
    assert plain.returncode == stripped.returncode == 0, stripped.stderr
    assert stripped.stdout == plain.stdout
