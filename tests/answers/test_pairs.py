"""Answers compared two by two: what each run's share is, what is refused, and what is said of it."""

import itertools
import json
import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

import judgekit as jk
from judgekit.answers.imported import read_ratings
from judgekit.answers.pairs import wins
from judgekit.data.recognise import recognise
from judgekit.errors import DataError
from tests.commands import Judgekit
from tests.servers import FaultServer
from tests.small import FILES, QUICK, RUNS, make_experiment, toml

EXAMPLE = Path(__file__).parents[2] / "examples" / "pairs.py"


def table(*rows: str, columns: str = "query_id,run_a,run_b,winner") -> pd.DataFrame:
    return pd.DataFrame([row.split(",") for row in rows], columns=columns.split(","))


def shares(*rows: str, **options: Any) -> dict[tuple[str, str], float]:
    found = wins(table(*rows, **options)).table
    return dict(zip(zip(found["query_id"], found["run"], strict=True), found["value"], strict=True))


def test_a_win_counts_one_a_tie_a_half_and_a_blank_nothing() -> None:
    found = shares(
        "q1,x,y,x",
        "q2,x,y,b",
        "q3,x,y,tie",
        "q4,x,y,",
        "q5,x,y,RUN_A",
        "q6,y,x,A",
        "q7,x,y,model_b",
        "q8,x,y,tie (bothbad)",
    )
    assert found == {
        **{("q1", "x"): 1.0, ("q1", "y"): 0.0, ("q2", "x"): 0.0, ("q2", "y"): 1.0},
        **{("q3", "x"): 0.5, ("q3", "y"): 0.5, ("q5", "x"): 1.0, ("q5", "y"): 0.0},
        **{("q6", "y"): 1.0, ("q6", "x"): 0.0, ("q7", "x"): 0.0, ("q7", "y"): 1.0, ("q8", "x"): 0.5, ("q8", "y"): 0.5},
    }


def test_a_judge_who_follows_the_order_says_nothing() -> None:
    rows = table("q1,x,y,a", "q1,y,x,a", "q2,x,y,a", "q2,y,x,b", "q3,x,y,a")
    found, notes = wins(rows)
    values = {(row.query_id, row.run): row.value for row in found.itertuples()}
    assert values["q1", "x"] == values["q1", "y"] == 0.5
    assert (values["q2", "x"], values["q2", "y"]) == (1.0, 0.0)
    assert [*notes] == [
        "Compared in both orders: 2 pairs of answers. In 1 of them the winner changed with the order; each order"
        " counts half."
    ]


@given(st.lists(st.permutations(list("wxyz")), min_size=1, max_size=5))
def test_of_whole_rankings_it_is_the_borda_score(rankings: list[list[str]]) -> None:
    rows = [
        f"q,{a},{b},{a if ranking.index(a) < ranking.index(b) else b},{person}"
        for person, ranking in enumerate(rankings)
        for a, b in itertools.combinations("wxyz", 2)
    ]
    rated, notes = wins(table(*rows, columns="query_id,run_a,run_b,winner,user"))
    found = rated.set_index("run")["value"]
    for run in "wxyz":
        points = [len(ranking) - 1 - ranking.index(run) for ranking in rankings]
        assert found[run] == pytest.approx(np.mean(points) / 3)
    assert not notes


def test_runs_that_met_other_rivals_are_named() -> None:
    _, notes = wins(table("q1,x,y,a", "q1,x,z,a", "q2,x,y,a", "q2,x,z,a", "q2,y,z,a"))
    assert [*notes] == [
        "On 1 of 2 questions, some pairs of runs met more often than others: there a run's share of wins depends on its"
        " opponents."
    ]


def test_people_and_judges_stand_apart() -> None:
    columns = "query_id,run_a,run_b,winner,user,judge"
    rows = ["q1,x,y,x,ann,", "q1,x,y,y,bob,", "q1,x,y,x,,gpt", "q1,y,x,x,,gpt"]
    found = wins(table(*rows, columns=columns)).table.set_index(["metric", "run"])["value"]
    assert found.to_dict() == {
        ("wins", "x"): 0.5,
        ("wins", "y"): 0.5,
        ("wins (by an LLM)", "x"): 1.0,
        ("wins (by an LLM)", "y"): 0.0,
    }
    by_user = wins(table(*rows[:2], columns=columns), cluster="user").table
    assert by_user.set_index(["user", "run"])["value"].to_dict() == {
        **{("ann", "x"): 1.0, ("ann", "y"): 0.0, ("bob", "x"): 0.0, ("bob", "y"): 1.0}
    }


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["q1,x,x,a"], "query 'q1': compares run 'x' with itself"),
        (["q1,x,y,z"], "query 'q1': the winner 'z' is none of x, y, a, b and tie"),
        (["q1,x,y,X"], "the winner 'X' is none of x, y"),
        (["q1,b,a,a"], "the winner 'a' is the name of one run and stands for something else"),
        (["q1,tie,y,tie"], "is the name of one run and stands for something else"),
        (["q1,x,y,a", "q1,x,y,b"], r"compares 'x' with 'y' twice, with different winners \(first"),
        (
            ["q1,x,y,a", "q1,x,y,x"],
            r"compares 'x' with 'y' twice \(first in line 2\)\. If several people",
        ),
    ],
)
def test_what_contradicts_itself_is_refused_with_its_line(tmp_path: Path, rows: list[str], said: str) -> None:
    file = tmp_path / "pairs.csv"
    file.write_text("query_id,run_a,run_b,winner\n" + "\n".join(rows) + "\n")
    with pytest.raises(DataError, match=said) as caught:
        read_ratings(file)
    assert caught.value.line == len(rows) + 1


def test_a_run_may_be_called_a_where_nothing_is_in_doubt() -> None:
    assert shares("q1,a,b,a", "q2,a,b,b") == {("q1", "a"): 1, ("q1", "b"): 0, ("q2", "a"): 0, ("q2", "b"): 1}


def test_every_form_and_names_of_ones_own_are_read(tmp_path: Path) -> None:
    rows = table("q1,x,y,x", "q2,x,y,tie")
    rows.to_csv(tmp_path / "p.csv", index=False)
    rows.to_parquet(tmp_path / "p.parquet")
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows.to_dict("records")))
    rows.rename(columns={"query_id": "qid", "winner": "better"}).to_csv(tmp_path / "own.csv", index=False)
    wanted = read_ratings(tmp_path / "p.csv").table
    assert set(wanted["metric"]) == {"wins"}
    own = f"csv(query_id=qid,winner=better):{tmp_path / 'own.csv'}"
    for path in (tmp_path / "p.parquet", tmp_path / "p.jsonl", own):
        found = read_ratings(path).table.reset_index(drop=True)
        pd.testing.assert_frame_equal(found, wanted.reset_index(drop=True), check_dtype=False)
    assert recognise(tmp_path / "p.csv").kinds == ("ratings",)


def test_without_pairs_or_values_a_table_is_refused_as_before(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text("query_id,run_a\nq1,x\n")
    with pytest.raises(DataError, match="lacks column 'value'"):
        read_ratings(tmp_path / "q.csv")


def compared(folder: Path, judge: str = "") -> Path:
    lines = ["query_id,run_a,run_b,winner,judge"]
    for number in range(6):
        lines.append(f"q{number},good,poor,{['good', 'tie', 'good', 'poor', 'good', 'good'][number]},{judge}")
    (folder / "pairs.csv").write_text("\n".join(lines) + "\n")
    return folder / "pairs.csv"


@pytest.mark.parametrize("judge", ["", "gpt"])
def test_a_run_takes_them_for_the_outcome(tmp_path: Path, judge: str) -> None:
    make_experiment(tmp_path)
    compared(tmp_path, judge)
    (tmp_path / "experiment.toml").write_text(
        toml(
            data=FILES | {"depth": 4},
            runs=RUNS,
            labelers=[{"kind": "containment"}],
            answers={"ratings": ["pairs.csv"], "depths": [4], "answered_by": "app"},
            metrics={"measures": ["P"]},
            analysis=QUICK | {"primary": "P@4"},
        )
    )
    done = jk.run(tmp_path / "experiment.toml", out=tmp_path / "out", asking=jk.Asking(cache=tmp_path / "cache"))
    quality = done.quality.set_index(["run", "query_id"])["value"]
    assert quality["good"].to_list() == [1.0, 0.5, 1.0, 0.0, 1.0, 1.0]
    assert (quality["good"] + quality["poor"]).eq(1).all()
    text = " ".join(done.comparison.decision.text.split())
    assert ("by an LLM" in text or "LLM" in text) is bool(judge), text


def test_init_finds_them_and_a_run_says_what_is_to_be_known(judgekit: Judgekit, folder: Path) -> None:
    (folder / "experiment.toml").unlink()
    (folder / "gold.qrels").unlink()
    file = compared(folder)
    file.write_text(file.read_text() + "q0,poor,good,poor,\n")
    assert judgekit("init").code == 0
    written = (folder / "experiment.toml").read_text()
    assert 'ratings = ["pairs.csv"]' in written
    assert 'outcome = "wins"' in written
    said = judgekit("run", "experiment.toml", "--dry-run", code=0)
    assert "Compared in both orders: 1 pairs of answers. In 1 of them the winner changed" in " ".join(
        (said.out + said.err).split()
    )


def test_init_takes_them_under_other_names(judgekit: Judgekit, folder: Path) -> None:
    (folder / "experiment.toml").unlink()
    (folder / "gold.qrels").unlink()
    file = compared(folder)
    header, *rows = file.read_text().splitlines()
    names = header.replace("query_id", "question_id").replace("run_", "model_")
    file.write_text("\n".join([names, *rows]) + "\n")
    assert "(query_id=…,run_a=…,run_b=…,winner=…) for answers compared two by two" in judgekit("init", code=0).out
    named = "csv(query_id=question_id,run_a=model_a,run_b=model_b):pairs.csv"
    judgekit("init", ".", named, "--overwrite", code=0)
    assert f'ratings = ["{named}"]' in (folder / "experiment.toml").read_text()
    judgekit("run", "experiment.toml", "--dry-run", code=0)


def test_tables_of_scores_are_compared_with_them(tmp_path: Path) -> None:
    make_experiment(tmp_path)
    pairs = pd.read_csv(compared(tmp_path), keep_default_na=False)
    scores = pd.DataFrame(
        [
            {"labeling": "l", "run": run, "measure": "P@4", "query_id": f"q{number}", "value": float(run == "good")}
            for run in ("good", "poor")
            for number in range(6)
        ]
    )
    given = [pairs, tmp_path / "pairs.csv"]
    found = [jk.compare(scores, quality, jk.Rules(resamples=100)).table for quality in given]
    pd.testing.assert_frame_equal(*found)
    within = found[0].query("level == 'within-query' and coefficient == 'concordance'")["value"]
    # Of the five questions with a winner good wins four, and has the higher score on all.
    assert within.iloc[0] == pytest.approx(0.8)


def test_the_example_asks_in_both_orders_and_writes_what_is_read(
    folder: Path, fault_server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "app.csv").write_text(
        "query_id,run,answer\n" + "".join(f"q{i},{run},{run} {i}\n" for i in range(3) for run in ("good", "poor"))
    )

    def answer(body: dict[str, Any], seen: int) -> str:
        prompt = body["messages"][0]["content"]
        if "bridge of Cantry" in prompt:  # it likes what it reads first
            return "A"
        return "A." if "Answer A: good" in prompt else "**B**"

    fault_server.answer = answer
    monkeypatch.chdir(folder)
    words = ["pairs.py", "queries.jsonl", "app.csv", "pairs.csv", "--base-url", fault_server.base_url, "--model", "m"]
    monkeypatch.setattr("sys.argv", words)
    example = runpy.run_path(str(EXAMPLE))
    for _ in range(2):
        example["main"]()
    assert len(fault_server.seen) == 6, "two orders of three questions, asked once"
    found = read_ratings("pairs.csv").table
    assert set(found["metric"]) == {"wins (by an LLM)"}
    assert found.set_index(["query_id", "run"])["value"]["q0", "good"] == 1.0
    assert found.set_index(["query_id", "run"])["value"]["q2"].to_list() == [0.5, 0.5]


@pytest.mark.parametrize(("right", "wrong"), [("run_b", "runb"), ("winner", "winer")])
def test_a_misspelled_column_is_named(right: str, wrong: str, tmp_path: Path) -> None:
    rows = table("q1,x,y,x").rename(columns={right: wrong})
    rows.to_csv(tmp_path / "pairs.csv", index=False)
    says = f"compared two by two, but lacks column '{right}' .*Did you mean '{wrong}'"
    with pytest.raises(DataError, match=says):
        read_ratings(tmp_path / "pairs.csv")
    scores = pd.DataFrame({"labeling": "l", "run": ["x", "y"], "measure": "P@1", "query_id": "q1", "value": 1.0})
    with pytest.raises(DataError, match=says):
        jk.compare(scores, rows)


def test_runs_that_are_called_as_the_places_are_told_apart_by_the_places() -> None:
    assert shares("q1,a,b,a", "q2,b,a,run_a") == {("q1", "a"): 1, ("q1", "b"): 0, ("q2", "b"): 1, ("q2", "a"): 0}
    with pytest.raises(DataError, match="stands for something else: write run_a, run_b or tie"):
        shares("q1,b,a,a")


@pytest.mark.parametrize("judge", [{}, {"judge": "m"}])
def test_a_run_without_scores_is_refused_where_the_others_were_compared_with_it(judge: dict[str, str]) -> None:
    ids = [f"q{i}" for i in range(6)]
    keys = [(run, query) for run in ("good", "poor") for query in ids]
    scores = pd.DataFrame(keys, columns=["run", "query_id"]).assign(labeling="l", measure="P@1", value=[0.5, 1.0] * 6)
    rows = pd.DataFrame({"query_id": ids, "run_a": "good", "run_b": "poor", "winner": ["a", "b"] * 3, **judge})
    jk.compare(scores, rows)
    with pytest.raises(DataError, match=r"those of run 'god', which has no scores\. Did you mean 'good'"):
        jk.compare(scores, pd.concat([rows, rows.assign(run_b="god")]))
    other = pd.DataFrame(
        {"query_id": ids * 3, "run": ["good"] * 6 + ["poor"] * 6 + ["god"] * 6, "value": [0.0, 1.0, 1.0] * 6}
    )
    assert any("'god'" in warning for warning in jk.compare(scores, other).warnings), "ratings say nothing of others"


def test_names_of_chatbot_arenas_are_refused_with_the_form_that_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("question_id,model_a,model_b,winner\nq1,x,y,model_a\nq2,x,y,tie (bothbad)\n")
    named = "csv(query_id=question_id, run_a=model_a, run_b=model_b):"
    with pytest.raises(DataError, match=re.escape(named)):
        read_ratings(path)
    found = read_ratings(f"{named}{path}").table
    assert dict(zip(zip(found["query_id"], found["run"], strict=True), found["value"], strict=True)) == {
        **{("q1", "x"): 1.0, ("q1", "y"): 0.0},
        **{("q2", "x"): 0.5, ("q2", "y"): 0.5},
    }
    # In a table of Python's, too, and with the question's own name where that is right already.
    rows = table("q1,x,y,model_a", columns="query_id,model_a,model_b,winner")
    scores = pd.DataFrame({"labeling": "l", "run": ["x", "y"], "measure": "P@1", "query_id": "q1", "value": 1.0})
    with pytest.raises(DataError, match=re.escape("csv(run_a=model_a, run_b=model_b):")):
        jk.compare(scores, rows)
