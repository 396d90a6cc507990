"""Repeated questions count once, whatever command counts them, and the order of rows changes nothing."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from judgekit.data.questions import UNKNOWN
from tests.commands import Judgekit
from tests.small import toml

RUNS = "ab"
QUESTIONS = 40


def write_lines(name: str, rows: list[Any], random: random.Random) -> None:
    random.shuffle(rows)
    lines = [row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows]
    Path(name).write_text("".join(lines))


def make(copies: int, shuffle: int = 0, **analysis: object) -> None:
    """Forty questions in so many copies, two runs, their answers, judgments and ratings; rows in random order."""
    drawn, order = random.Random(3), random.Random(shuffle)
    queries, docs, qrels, answers = [], [], [], []
    lists: dict[str, list[Any]] = {run: [] for run in RUNS}
    rated: dict[str, list[Any]] = {run: [] for run in RUNS}
    for i in range(QUESTIONS):
        good = {"a": drawn.random() < 0.7, "b": drawn.random() < 0.45}
        docs += [{"doc_id": f"d{i}", "text": f"It is n{i}."}, {"doc_id": f"x{i}", "text": f"Nothing here {i}."}]
        for copy in range(copies):
            query_id = f"q{i:02}" + f"-{copy}" * (copy > 0)
            text = f"What is item {i}" + ("?" if copy % 2 else " ")
            queries.append({"query_id": query_id, "text": text, "answers": [f"n{i}"]})
            qrels.append(f"{query_id} 0 d{i} 1\n")
            for run in RUNS:
                lists[run].append(f"{query_id} Q0 {'d' if good[run] else 'x'}{i} 1 1 {run}\n")
                answers.append({"query_id": query_id, "run": run, "depth": 1, "answer": f"n{i}" if good[run] else "no"})
                rated[run].append({"query_id": query_id, "value": float(good[run])})
    write_lines("q.jsonl", queries, order)
    write_lines("d.jsonl", docs, order)
    write_lines("g.qrels", qrels, order)
    write_lines("answers.jsonl", answers, order)
    for run in RUNS:
        write_lines(f"{run}.trec", lists[run], order)
        write_lines(f"{run}.jsonl", rated[run], order)
    content = toml(
        data={"queries": "q.jsonl", "docs": "d.jsonl", "depth": 1},
        runs={run: f"{run}.trec" for run in RUNS},
        labelers=[{"kind": "containment"}],
        answers={"import": "answers.jsonl", "answered_by": "m", "depths": [1], "metrics": ["em"]},
        metrics={"measures": ["nDCG"]},
        analysis={"resamples": 100, **analysis},
    )
    Path("e.toml").write_text(content)


def claims_of_run(judgekit: Judgekit, out: str) -> list[dict[str, Any]]:
    said = json.loads(judgekit("run", "e.toml", "--out", out, "--json", code=0).out)
    return [claim for claim in said["decision"]["claims"] if claim["kind"] != "questions"]


def test_copies_and_the_order_of_rows_change_nothing_of_a_run(judgekit: Judgekit) -> None:
    make(1)
    once = claims_of_run(judgekit, "once")
    make(5, shuffle=1)
    often = judgekit("run", "e.toml", "--out", "often", "--json", code=0)
    said = json.loads(often.out)
    assert [claim for claim in said["decision"]["claims"] if claim["kind"] != "questions"] == once
    counted = next(claim for claim in said["decision"]["claims"] if claim["kind"] == "questions")
    assert (counted["value"], counted["shown"]) == (QUESTIONS, True)
    assert "200 rows, 40 different questions" in counted["sentence"]
    assert "200 rows, 40 different questions" in often.err + json.dumps(said["warnings"])
    make(5, shuffle=2, groups="none")
    parted = claims_of_run(judgekit, "parted")
    assert any(claim["kind"] == "choose" and claim["shown"] for claim in parted), "rows alone would show a best run"
    # What is there can be compared anew, and replayed as a choice.
    assert judgekit("choose", "--replay", "often").out == judgekit("choose", "--replay", "once").out


def test_a_plan_counts_questions(judgekit: Judgekit) -> None:
    said = []
    for copies in (1, 3):
        make(copies, shuffle=copies)
        said.append(judgekit("plan", "e.toml", "--out", f"pilot{copies}.csv", code=0).out)
    once, often = said
    kept = [line for line in often.splitlines() if not line.startswith(("Beware", "Pilot "))]
    assert kept == [line for line in once.splitlines() if not line.startswith("Pilot ")]
    assert "120 rows, 40 different questions" in often
    assert "17 questions in 51 rows" in often
    sample = Path("pilot3.csv").read_text().splitlines()[1:]
    assert len(sample) == 51, "all rows of a question are asked"


@pytest.mark.parametrize("labels", [("--qrels", "g.qrels", "--queries", "q.jsonl"), ()])
def test_a_gate_counts_questions(judgekit: Judgekit, labels: tuple[str, ...]) -> None:
    versions = ("a.trec", "b.trec", *labels) if labels else ("a.jsonl", "b.jsonl", "--queries", "q.jsonl")
    found = []
    for copies in (1, 5):
        make(copies, shuffle=copies)
        found.append(json.loads(judgekit("guard", *versions, "--max-drop", "5", "--json").out))
    once, often = found
    assert often["notes"][0].startswith("200 rows, 40 different questions")
    assert often["mean"] == once["mean"]
    assert often["questions"] == once["questions"]
    lost = [{**change, "moved": "", "text": ""} for change in once["changes"]]
    assert [{**change, "moved": "", "text": ""} for change in often["changes"]] == lost
    parted = json.loads(judgekit("guard", *versions, "--max-drop", "5", "--groups", "none", "--json").out)
    assert parted["mean"]["queries"] == 200
    unknown = [name for name in versions if name not in ("--queries", "q.jsonl")]
    assert UNKNOWN in judgekit("guard", *unknown).out


def test_a_baseline_counts_questions_and_shows_the_p_of_rows_beside(judgekit: Judgekit) -> None:
    asked = ("score", "--run", "a.trec", "--run", "b.trec", "--qrels", "g.qrels", "-m", "P@1", "--baseline", "a")
    make(1)
    once = json.loads(judgekit(*asked, "--json").out)
    assert any(UNKNOWN in warning for warning in once["warnings"])
    make(5, shuffle=1)
    rows = json.loads(judgekit(*asked, "--json").out)["against"][0]
    said = json.loads(judgekit(*asked, "--queries", "q.jsonl", "--json").out)
    assert not any(UNKNOWN in warning for warning in said["warnings"])
    grouped = said["against"][0]
    assert (grouped.pop("rows"), grouped.pop("p_t_rows")) == (200, pytest.approx(rows["p_t"]))
    assert rows["p_t"] < grouped["p_t"] / 10
    for key, value in once["against"][0].items():
        assert grouped[key] == (pytest.approx(value) if isinstance(value, float) else value), key
    parted = judgekit(*asked, "--queries", "q.jsonl", "--groups", "none", "--json").out
    assert json.loads(parted)["against"][0] == rows
    assert "--baseline NAME" in judgekit("score", "--run", "a.trec", "--qrels", "g.qrels", "--queries", "q.jsonl").err


def test_tables_are_compared_by_the_texts_of_their_queries(judgekit: Judgekit) -> None:
    make(5, shuffle=1)
    judgekit("run", "e.toml", "--out", "res", code=0)
    tables = ("compare", "--scores", "res/scores.parquet", "--quality", "res/answers/answer-short.parquet")
    tables = (*tables, "--primary", "nDCG@1", "--outcome", "em", "--json")
    unknown = json.loads(judgekit(*tables, code=0).out)["decision"]["claims"]
    assert UNKNOWN in [claim["sentence"] for claim in unknown if claim["kind"] == "questions"]
    known = json.loads(judgekit(*tables, "--queries", "q.jsonl", code=0).out)["decision"]["claims"]
    assert not any(claim["kind"] == "choose" and claim["shown"] for claim in known)
    assert any(claim["kind"] == "choose" and claim["shown"] for claim in unknown)


def test_rows_of_one_question_that_contradict_each_other_are_counted_with_the_cure(judgekit: Judgekit) -> None:
    make(2)
    gold = Path("g.qrels").read_text()
    Path("g.qrels").write_text(gold.replace("q00-1 0 d0 1", "q00-1 0 x0 1").replace("q01-1 0 d1 1", "q01-1 0 x1 1"))
    queries = Path("q.jsonl").read_text().splitlines()
    other = [line.replace('["n5"]', '["m5"]') if '"q05-1"' in line else line for line in queries]
    Path("q.jsonl").write_text("".join(f"{line}\n" for line in other))
    labelers = '[[labelers]]\nkind = "provenance"\nqrels = "g.qrels"\n[[labelers]]'
    Path("e.toml").write_text(Path("e.toml").read_text().replace("[[labelers]]", labelers, 1))
    said = json.loads(judgekit("run", "e.toml", "--out", "out", "--json").out)
    counted = next(claim["sentence"] for claim in said["decision"]["claims"] if claim["kind"] == "questions")
    assert "1 repeated text has different reference answers; 2 repeated texts have different relevant" in counted
    assert 'groups = "none" counts them apart' in counted


def test_every_command_that_reads_judgments_counts_repeats_whose_relevant_documents_differ(
    judgekit: Judgekit,
) -> None:
    make(2)
    gold = Path("g.qrels").read_text()
    apart = gold.replace("q00-1 0 d0 1", "q00-1 0 x0 1").replace("q01-1 0 d1 1", "q01-1 0 x1 1")
    Path("g.qrels").write_text(apart)
    labelers = '[[labelers]]\nkind = "provenance"\nqrels = "g.qrels"\n[[labelers]]'
    Path("e.toml").write_text(Path("e.toml").read_text().replace("[[labelers]]", labelers, 1))
    runs = ("--run", "a.trec", "--run", "b.trec")
    data = ("--queries", "q.jsonl", "--docs", "d.jsonl", *runs, "--depth", 1)
    commands = (
        ("plan", "e.toml"),
        ("label", "provenance(qrels='g.qrels')", *data, "--out", "l.qrels"),
        ("score", *runs, "--qrels", "g.qrels", "--baseline", "a", "--queries", "q.jsonl", "-m", "RR"),
    )
    for command in commands:
        said = judgekit(*command)
        assert "2 repeated texts have different relevant documents" in " ".join((said.out + said.err).split()), command
    Path("g.qrels").write_text(gold)
    for command in commands:
        said = judgekit(*command)
        assert "relevant documents" not in " ".join((said.out + said.err).split()), command
