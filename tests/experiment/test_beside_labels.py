"""What an experiment says that no label can see: nested lists, and questions that nothing answers."""

import json
from pathlib import Path

import pandas as pd
import pytest

import judgekit as jk
from judgekit.experiment.file import config_of
from tests.analysis.worlds import claims
from tests.small import RUNS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two depths of one retriever as two runs, 40 questions with an answer and 20 without, answers imported."""
    queries, docs, answers, golds = [], [], [], []
    lists: dict[str, list[str]] = {"top1": [], "top3": []}
    for number in range(60):
        query, answerable = f"q{number:02}", number < 40
        queries.append(
            {"query_id": query, "text": f"Who built {number}?", "answers": ["Ada"], "answerable": answerable}
        )
        names = [f"d{number:02}{part}" for part in "abc"]
        docs += [{"doc_id": name, "text": f"Ada built {name}."} for name in names]
        golds += [f"{query} 0 {names[number % 3]} 1\n"] * answerable
        for run, depth in (("top1", 1), ("top3", 3)):
            lists[run] += [f"{query} Q0 {name} 0 {-rank} {run}\n" for rank, name in enumerate(names[:depth])]
            right = number % 4 < depth
            # Nothing answers the last 20: the short list gives up on most, the long one on few.
            abstains = number % 20 < (18 if run == "top1" else 6)
            answer = "Ada" if right and answerable else "Bob" if answerable or not abstains else "I don't know."
            answers.append({"query_id": query, "run": run, "depth": 3, "answer": answer, "context": names[:depth]})
    for name, rows in {"queries": queries, "docs": docs, "answers": answers}.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for run, lines in lists.items():
        (tmp_path / f"{run}.trec").write_text("".join(lines))
    (tmp_path / "gold.qrels").write_text("".join(golds))
    (tmp_path / "experiment.toml").write_text("""
[data]
queries = "queries.jsonl"
docs = "docs.jsonl"
depth = 3
[runs]
top1 = "top1.trec"
top3 = "top3.trec"
[[labelers]]
name = "gold"
kind = "provenance"
qrels = "gold.qrels"
[answers]
import = "answers.jsonl"
answered_by = "reader"
depths = [3]
metrics = ["em"]
[metrics]
measures = ["R", "nDCG"]
[analysis]
primary = "R@3"
resamples = 200
""")
    return tmp_path


def test_the_decision_says_what_nesting_and_questions_without_an_answer_do(folder: Path) -> None:
    finished = jk.run(folder / "experiment.toml", out=folder / "out", asking=jk.Asking(cache=folder / "store"))
    text = " ".join(finished.comparison.decision.text.split())
    assert "On 100 % of the questions one list contains the other (top1 within top3)." in text
    assert "All comparisons leave out 20 unanswerable questions." in finished.comparison.warnings
    table = pd.read_csv(folder / "out" / "comparison.csv")
    recall, gains = (table[(table["measure"] == name) & (table["level"] == "system")] for name in ("R@3", "nDCG@3"))
    assert recall["flags"].str.contains("nested").all()
    assert not gains["flags"].fillna("").str.contains("nested").any()
    assert table["n"].max() == 40, "questions that nothing answers are compared nowhere"
    assert "one list contains the other" in (folder / "out" / "report.html").read_text()


def test_a_judge_that_reranked_a_run_is_said_to_favour_it(finish, tmp_path: Path) -> None:
    reranked = {"good": {"file": RUNS["good"], "model": "mock"}, "poor": RUNS["poor"]}
    decision = finish(["judge(prompt=binary)", "containment"], runs=reranked).comparison.decision
    (claim,) = (claim for claim in decision.claims if claim.kind == "reranked")
    assert claim.sentence == "judge(prompt=binary) asks the model that reranked good, and may favour it."
    assert claim.qualifies == "keep: judge(prompt=binary)"
    assert not claims(finish(["judge(prompt=binary)"], "plain", runs=RUNS).comparison.decision, "reranked")
    kept = config_of(tmp_path / "out")
    assert [(run.file, run.model) for run in kept.runs.values()] == [("good.trec", "mock"), ("poor.trec", None)]
    assert 'poor = "poor.trec"' in (tmp_path / "plain" / "resolved.toml").read_text()


def test_runs_of_equal_lists_have_the_same_answers_and_neither_can_lose_against_the_other(finish) -> None:
    decision = finish(["containment"], runs={"good": RUNS["good"], "again": RUNS["good"]}).comparison.decision
    assert dict(decision.lines)["Choose"].startswith("Ship the cheapest of these 2 runs: none is more")
    assert {claim.low for claim in claims(decision, "run").values()} == {0}
