"""`judgekit choose`: what it asks and what not, that it goes on where it was killed, and what it says."""

import json
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import judgekit as jk
from judgekit.analysis.claims import plain
from judgekit.analysis.race import RaceRules, RunAnswers, race
from judgekit.errors import BudgetError, UsageError
from judgekit.experiment.choice import ChoiceResult, Spent
from judgekit.experiment.choose import contest, replay_results
from judgekit.experiment.file import load
from judgekit.experiment.run import run
from judgekit.job import count
from tests.scripted import Scripted, completion
from tests.servers import FaultServer
from tests.small import MOCK, edited, toml

NAMES = ("good", "near", "fair", "poor")
PRICES = {"m": {"prompt": 1000, "completion": 0}}


def make(folder: Path, endpoint: dict[str, Any], questions: int = 160, **tables: dict[str, Any]) -> Path:
    """Questions in threes of a page, and runs that put the passage with the answer first for some of them."""
    folder.mkdir(exist_ok=True)
    draw = np.random.default_rng(1)
    queries, docs, runs = [], [], {name: [] for name in NAMES}
    for x in range(questions):
        text = f"When was the bridge of Town{x} built?"
        queries.append({"query_id": f"q{x:03}", "text": text, "answers": [str(1000 + x)], "page": f"p{x // 3}"})
        docs.append(
            {"doc_id": f"d{x}a", "title": f"Town{x}", "text": f"The bridge of Town{x} was built in {1000 + x}."}
        )
        docs.append({"doc_id": f"d{x}b", "title": f"Town{x}", "text": f"The market of Town{x} is held every week."})
        hard = draw.random()
        for name, share in zip(NAMES, (0.8, 0.78, 0.5, 0.2), strict=True):
            right = 0.5 * hard + 0.5 * draw.random() < share
            for rank, doc in enumerate("ab" if right else "ba"):
                runs[name].append(f"q{x:03} Q0 d{x}{doc} 0 {2 - rank} r\n")
    for name, rows in (("queries", queries), ("docs", docs)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, lines in runs.items():
        (folder / f"{name}.trec").write_text("".join(lines))
    content: dict[str, Any] = {
        "data": {"queries": "queries.jsonl", "docs": "docs.jsonl", "depth": 2},
        "runs": {name: f"{name}.trec" for name in NAMES},
        "endpoints": {"here": endpoint},
        "labelers": [{"kind": "containment"}],
        "answers": {"depths": [1], "metrics": ["em"], "closed_book": False},
        "metrics": {"measures": ["P"]},
        "analysis": {"resamples": 100, "margin_points": 10.0},
        "prices": PRICES,
    }
    for table, change in tables.items():
        content[table] = content[table] | change
    (folder / "experiment.toml").write_text(toml(**content))
    return folder / "experiment.toml"


def answered(delay_s: float = 0.0) -> Any:
    """Answer with the year in the passage."""

    def answer(body: dict[str, Any], _: int) -> Scripted:
        year = re.search(r"built in (\d{4})", json.dumps(body["messages"]))
        said = json.loads(completion(year[1] if year else "unknown").body)
        said["usage"] = {"prompt_tokens": 100, "completion_tokens": 1, "total_tokens": 101}
        return Scripted(200, json.dumps(said).encode(), delay_s=delay_s)

    return answer


@pytest.fixture
def experiment(tmp_path: Path, fault_server: FaultServer) -> Path:
    """An experiment answered by a server that counts."""
    fault_server.answer = answered()
    return make(tmp_path / "contest", {"base_url": fault_server.base_url, "model": "m", "concurrency": 4})


def asked(server: FaultServer) -> Counter[str]:
    return Counter(json.dumps(body["messages"]) for body in server.seen)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_it_asks_what_a_run_asks_but_of_runs_that_are_left_only(experiment, fault_server, tmp_path):
    lines: list[str] = []
    out, store = tmp_path / "choice", tmp_path / "store"
    chosen = jk.choose(
        experiment, out=out, asking=jk.Asking(cache=store, progress=lambda event: lines.append(event.note))
    )
    assert chosen.run == "good"
    assert chosen.choice.stopped
    assert 0 < chosen.bound <= 10
    mine = asked(fault_server)
    assert set(mine.values()) == {1}
    assert sum(mine.values()) == chosen.spent.requests < 0.7 * 2 * 160
    told = [line for line in lines if line.startswith("block ")]
    assert ", 2 runs; " in told[-1]
    assert told[-1].endswith(" spent")
    claims = json.loads((out / "choice.json").read_text())["claims"]
    dropped = [claim for claim in claims if claim["kind"] == "dropped"]
    assert {claim["subject"] for claim in dropped} == {"fair", "poor"}
    assert all(claim["low"] > 0 for claim in dropped)
    results = tmp_path / "results"
    finished = run(experiment, out=results, asking=jk.Asking(cache=store))
    assert not finished.missing
    assert set(asked(fault_server).values()) == {1}, "a run finds what the choice has paid for"
    replayed, names, rules = replay_results(results)
    assert names[replayed.choice.chosen] == chosen.run
    assert rules.margin == 0.1
    assert [shown.bound for shown in replayed.choice.looks] == [shown.bound for shown in chosen.choice.looks]


def test_what_it_says(experiment, tmp_path):
    chosen = jk.choose(experiment, out=tmp_path / "choice", asking=jk.Asking(cache=tmp_path / "store"))
    said = " ".join(str(chosen).split())
    questions = chosen.choice.last.questions
    assert re.search(r"Ship good\. It is at most \d+\.\d points below the best of all 4 runs\.", said)
    assert f"Asking stopped after {questions} of 160 questions: that is within the margin of 10 points." in said
    assert "All limits hold together in 95 of 100 choices" in said
    assert re.search(r"poor: dropped after 40 questions, \d+\.\d points behind good \(\d+\.\d to \d+\.\d\)\.", said)
    assert re.search(
        rf"near: −?\d+\.\d points behind good \(−?\d+\.\d to \d+\.\d\) after {questions} questions\.", said
    )
    assert re.search(r"The choice took [\d.]+\. Asking everything takes about [\d.]+\.", said)
    kept = json.loads((tmp_path / "choice" / "choice.json").read_text())
    assert kept["run"] == "good"
    assert [claim["sentence"] for claim in kept["claims"]] == [claim.sentence for claim in chosen.claims]
    assert chosen._repr_html_().startswith("<pre>Choose ")


def test_another_margin_or_other_runs_are_another_choice(experiment, tmp_path):
    out, store = tmp_path / "choice", tmp_path / "store"
    jk.choose(experiment, out=out, asking=jk.Asking(cache=store))
    before = files(out)
    jk.choose(experiment, margin=10, out=out, asking=jk.Asking(cache=store))
    assert files(out) == before
    with pytest.raises(UsageError, match=r"another choice \(margin_points was 10\.0, is 3\.0\)"):
        jk.choose(experiment, margin=3, out=out, asking=jk.Asking(cache=store))
    edited(experiment.parent / "docs.jsonl", "was built in 1007", "was begun in 1007")
    with pytest.raises(UsageError, match=r"another choice \(docs was"):
        jk.choose(experiment, out=out, asking=jk.Asking(cache=store))
    edited(experiment.parent / "docs.jsonl", "was begun in 1007", "was built in 1007")
    edited(experiment, 'poor = "poor.trec"\n', "")
    with pytest.raises(UsageError, match="run poor was"):
        jk.choose(experiment, out=out, asking=jk.Asking(cache=store))
    assert files(out) == before
    three = jk.choose(experiment, out=tmp_path / "three", asking=jk.Asking(cache=store))
    assert len(three.runs) == 3


def test_the_budget_counts_what_is_in_the_store_and_may_be_raised(experiment, fault_server, tmp_path):
    out, store = tmp_path / "choice", tmp_path / "store"
    whole = jk.choose(experiment, asking=jk.Asking(cache=tmp_path / "other"), margin=2)
    fault_server.seen.clear()
    poor = jk.choose(experiment, margin=2, asking=jk.Asking(max_requests=120, cache=store), out=out)
    assert len(fault_server.seen) <= 120
    assert poor.out_of_money
    assert "The budget ended after" in " ".join(str(poor).split())
    before = files(out)
    again = jk.choose(experiment, margin=2, asking=jk.Asking(max_requests=120, cache=store), out=out)
    assert len(fault_server.seen) <= 120
    assert files(out) == before
    assert again.spent.requests <= 120
    further = jk.choose(experiment, margin=2, asking=jk.Asking(max_requests=10_000, cache=store), out=out)
    assert set(asked(fault_server).values()) == {1}
    assert list(plain(further.claims)) == list(plain(whole.claims))
    with pytest.raises(BudgetError, match="first block"):
        jk.choose(experiment, asking=jk.Asking(max_requests=3, cache=tmp_path / "third"))


def test_money_is_a_limit_and_prices_are_needed(experiment, fault_server, tmp_path):
    whole = jk.choose(experiment, margin=2, asking=jk.Asking(cache=tmp_path / "whole")).spent.money
    fault_server.seen.clear()
    chosen = jk.choose(experiment, margin=2, asking=jk.Asking(max_cost=whole / 2, cache=tmp_path / "store"))
    assert chosen.out_of_money
    assert whole / 4 < chosen.spent.money <= whole / 2
    assert chosen.spent.requests <= len(fault_server.seen) <= chosen.spent.requests + 40
    edited(experiment, "[prices.m]", "[prices.another]")
    with pytest.raises(UsageError, match="price"):
        jk.choose(experiment, asking=jk.Asking(max_cost=1.0, cache=tmp_path / "other"))


@pytest.mark.parametrize("kills", [2, pytest.param(60, marks=(pytest.mark.many, pytest.mark.timeout(1800)))])
def test_killed_at_random_blocks_it_asks_nothing_twice_and_chooses_the_same(experiment, fault_server, tmp_path, kills):
    edited(experiment, "margin_points = 10.0", "margin_points = 4.0")
    whole = jk.choose(experiment, out=tmp_path / "whole", asking=jk.Asking(cache=tmp_path / "other"))
    total, draw = len(fault_server.seen), random.Random(kills)
    for round_ in range(max(kills // 5, 1)):
        fault_server.seen.clear()
        fault_server.answer = answered(0.01)
        out, store = tmp_path / f"choice {round_}", tmp_path / f"store {round_}"
        command = [
            sys.executable,
            "-m",
            "judgekit",
            "choose",
            str(experiment),
            "--cache",
            str(store),
            "--out",
            str(out),
        ]
        for at in sorted(draw.sample(range(5, total - 20), min(kills, 5))):
            killed = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            end = time.monotonic() + 60
            while len(fault_server.seen) < at and killed.poll() is None and time.monotonic() < end:
                time.sleep(0.005)
            killed.send_signal(signal.SIGKILL)
            killed.wait()
        fault_server.answer = answered()
        jk.choose(experiment, out=out, asking=jk.Asking(cache=store))
        assert len(fault_server.seen) - total <= 5 * 12, "only what was in flight or not stored yet is asked again"
        assert files(out) == files(tmp_path / "whole")
        assert whole.run == json.loads((out / "choice.json").read_text())["run"]


def test_groups_are_asked_whole(tmp_path, fault_server):
    fault_server.answer = answered()
    endpoint = {"base_url": fault_server.base_url, "model": "m"}
    path = make(tmp_path, endpoint, analysis={"groups": "page", "resamples": 100, "margin_points": 2.0})
    made = contest(path, None)
    blocks = np.split(made.order.places, made.order.ends[:-1])
    pages = Counter(page for block in blocks for page in {int(made.questions[place][1:]) // 3 for place in block})
    assert set(pages.values()) == {1}
    chosen = jk.choose(path, asking=jk.Asking(cache=tmp_path / "store"))
    assert chosen.choice.looks[1].bound == np.inf, "40 groups are more than 40 questions"
    few = make(tmp_path, endpoint, questions=50, analysis={"groups": "page"})
    with pytest.raises(UsageError, match="at least 20 groups"):
        contest(few, None)


def test_missing_answers_are_said_and_do_not_stop_it(experiment, fault_server, tmp_path, judgekit):
    right = answered()

    def sometimes(body: dict[str, Any], seen: int) -> Scripted:
        if "Town7" in json.dumps(body):
            return Scripted(400, b'{"error": {"message": "no"}}')
        return right(body, seen)

    fault_server.answer = sometimes
    said = judgekit("choose", experiment, "--cache", tmp_path / "store", "--out", tmp_path / "choice")
    assert said.code == 1
    assert re.search(r"\d+ answers are missing; these limits hold whatever they are", " ".join(said.out.split()))


def test_the_command_replays_counts_and_refuses(experiment, tmp_path, judgekit):
    store = ("--cache", tmp_path / "store")
    said = judgekit("choose", experiment, "--dry-run", *store)
    assert said.code == 0
    assert "this is the most" in said.err
    every = count(contest(load(experiment), None).asked(), tmp_path / "store")["all"].requests
    assert f"{every:,}" in said.out
    judgekit("run", experiment, "--out", tmp_path / "results", *store)
    said = judgekit("choose", "--replay", tmp_path / "results", "--margin", "10")
    text = " ".join(said.out.split())
    assert re.search(r"It would have stopped after \d+ of 160 questions with good, at most \d+\.\d points", text)
    assert "Asking everything says good." in text
    assert re.search(r"In 200 random orders \d+ chose a run within 10 points, \d+ stopped early, \w+ broke its", text)
    judgekit("choose", experiment, *store)
    assert json.loads((tmp_path / "choice" / "choice.json").read_text())["run"] == "good"
    about = json.loads((tmp_path / "choice" / "choice.json").read_text())["choice"]
    assert about["margin_points"] == 10.0, "that of the file where none is given"
    assert judgekit("choose").code == 2
    assert judgekit("choose", experiment, "--replay", tmp_path / "results").code == 2
    assert "margin" in judgekit("choose", experiment, "--margin", "0", *store).err


def test_answers_and_ratings_that_are_there_are_not_raced(tmp_path):
    path = make(tmp_path, MOCK)
    rows = [{"query_id": f"q{x:03}", "run": name, "depth": 1, "answer": "?"} for x in range(160) for name in NAMES]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    edited(path, "closed_book = false", 'import = ["answers.jsonl"]')
    with pytest.raises(UsageError, match="--replay"):
        jk.choose(path, asking=jk.Asking(cache=tmp_path / "store"))
    ratings = [{"query_id": r["query_id"], "run": r["run"], "depth": 1, "metric": "rating", "value": 1} for r in rows]
    (tmp_path / "ratings.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ratings))
    edited(path, 'import = ["answers.jsonl"]', 'ratings = ["ratings.jsonl"]')
    edited(path, "[answers]", '[answers]\noutcome = "rating"')
    with pytest.raises(UsageError, match="--replay"):
        jk.choose(path, asking=jk.Asking(cache=tmp_path / "store"))


def test_a_function_of_ones_own_is_asked_by_the_same_loop(tmp_path):
    code = "import re\n\n\ndef answer(question, documents, **_):\n"
    code += "    found = re.search(r'built in (\\d+)', str(documents))\n    return found[1] if found else 'unknown'\n"
    (tmp_path / "my_app.py").write_text(code)
    path = make(tmp_path, {"target": "my_app.py:answer"})
    chosen = jk.choose(path, asking=jk.Asking(cache=tmp_path / "store"), trust=True)
    assert chosen.run == "good"
    assert chosen.choice.stopped
    assert chosen.spent.requests > 100


def test_a_single_run_is_no_choice(experiment, tmp_path):
    text = experiment.read_text()
    for name in NAMES[1:]:
        text = text.replace(f'{name} = "{name}.trec"\n', "")
    experiment.write_text(text)
    with pytest.raises(UsageError, match="two or more runs"):
        jk.choose(experiment, asking=jk.Asking(cache=tmp_path / "store"))


def test_copies_of_questions_change_no_choice_and_cost_nothing(fault_server, tmp_path):
    fault_server.answer = answered()
    path = make(tmp_path / "once", {"base_url": fault_server.base_url, "model": "m"}, questions=60)
    copied = make(tmp_path / "often", {"base_url": fault_server.base_url, "model": "m"}, questions=60)
    for file in [copied.parent / "queries.jsonl", *copied.parent.glob("*.trec")]:
        lines = file.read_text().splitlines(keepends=True)
        again = [re.sub(r"\b(q\d{3})\b", r"\1-x", line) for line in lines]
        file.write_text("".join(random.Random(1).sample(lines + again, 2 * len(lines))))
    found = []
    for number, file in enumerate((path, copied)):
        chosen = jk.choose(file, margin=2, asking=jk.Asking(cache=tmp_path / f"store{number}"))
        claims = [claim for claim in plain(chosen.claims) if claim["kind"] != "questions"]
        found.append((chosen.run, chosen.bound, chosen.spent.requests, claims))
    assert found[1] == found[0]
    assert "120 rows, 60 different questions" in str(chosen).replace("\n          ", " ")
    parted = load(copied).updated(analysis={"groups": "none"})
    rows = jk.choose(parted, margin=2, asking=jk.Asking(cache=tmp_path / "store2"))
    assert rows.choice.last.questions > 60


@pytest.mark.parametrize(
    ("right", "said"), [(60, "a and b answer alike so far; take a."), (61, "b answers best so far.")]
)
def test_of_runs_that_answer_alike_none_answers_best(right: int, said: str) -> None:
    quality = np.zeros((2, 120))
    quality[0, :60] = quality[1, 120 - right :] = 1
    rules = RaceRules(0.02, resamples=200)
    order = np.random.default_rng(1).permutation(120)
    result = ChoiceResult(
        ("a", "b"), race(RunAnswers(quality[:, order]), [60, 120], rules), 120, rules, Spent(1, None, 1.0)
    )
    assert str(result).split("\n")[0].removeprefix("Choose").strip().startswith(said)
