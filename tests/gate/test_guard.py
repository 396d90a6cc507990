"""`judgekit guard` and `jk.guard`: what a repository with a gate sees."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import judgekit as jk
from judgekit.data.readers import read_column
from judgekit.errors import DataError, UsageError
from tests.conftest import ROOT
from tests.gate.conftest import Judgekit, write_run
from tests.scripted import Scripted, completion
from tests.servers import FaultServer

FILES = ["--queries", "queries.jsonl", "--docs", "docs.jsonl"]


def test_a_planted_loss_fails_the_build(judgekit: Judgekit, repository: Path) -> None:
    said = judgekit("guard", "base.trec", "worse.trec", *FILES, "--labeler", "containment")
    assert said.code == 1, said.err
    assert said.out.startswith("fail: a loss is shown. nDCG@10 by 'containment', base against worse, on 300 questions")
    assert "Questions: 15 lose, 285 do not change." in said.out
    assert "q0  61.31  What is town 0?" in said.out
    assert "1. d0a [1], 2. d0b [0]" in said.out


def test_docs_may_stand_in_several_files(judgekit: Judgekit, repository: Path) -> None:
    lines = Path("docs.jsonl").read_text().splitlines(keepends=True)
    Path("first.jsonl").write_text("".join(lines[:700]))
    Path("second.jsonl").write_text("".join(lines[700:]))
    asked = ["guard", "base.trec", "worse.trec", "--queries", "queries.jsonl", "--labeler", "containment"]
    whole = judgekit(*asked, "--docs", "docs.jsonl")
    assert judgekit(*asked, "--docs", "first.jsonl", "--docs", "second.jsonl").out == whole.out
    lacking = judgekit(*asked, "--docs", "first.jsonl")
    assert lacking.code == 2
    assert "Where docs stand in several files, give them all" in lacking.err


def test_a_harmless_change_passes(judgekit: Judgekit, repository: Path) -> None:
    said = judgekit("guard", "base.trec", "harmless.trec", *FILES, "--labeler", "containment")
    assert said.code == 0, said.err
    assert said.out.startswith("pass: the loss is shown to be below the limit.")


@pytest.mark.parametrize("new", ["few-harmless.trec", "few-worse.trec"])
def test_twenty_questions_are_inconclusive_and_it_is_said_how_many_would_settle_it(
    new: str, judgekit: Judgekit, repository: Path
) -> None:
    asked = [
        "guard",
        "few-base.trec",
        new,
        "--queries",
        "few.jsonl",
        "--docs",
        "docs.jsonl",
        "--labeler",
        "containment",
    ]
    said = judgekit(*asked)
    assert said.code == 5, said.err
    assert said.out.startswith("inconclusive: the data show neither a loss nor that it is below the limit.")
    assert "questions like these would settle it." in said.out
    assert judgekit(*asked, "--strict").code == 1


def test_the_gate_of_an_experiment_file_and_its_options(judgekit: Judgekit, repository: Path) -> None:
    text = """
[data]
queries = "queries.jsonl"
docs = "docs.jsonl"
depth = 5
[runs]
old = "base.trec"
new = "worse.trec"
[[labelers]]
kind = "containment"
[guard]
base = "old"
new = "new"
measure = "RR@5"
max_drop = 5
"""
    (repository / "gate.toml").write_text(text)
    said = judgekit("guard", "gate.toml")
    assert (said.code, said.out.split(".")[0]) == (1, "fail: a loss is shown"), said.err
    assert "RR@5 by 'containment', old against new" in said.out
    assert "the limit is 5." in said.out
    assert judgekit("guard", "gate.toml", "--max-drop", 20).code == 0
    (repository / "gate.toml").write_text(text.replace('new = "new"', 'new = "newer"'))
    assert "name two of the runs as base and new (there are: old, new)" in judgekit("guard", "gate.toml").err
    (repository / "gate.toml").write_text(text.replace("max_drop = 5", "max_drop = 0"))
    refused = judgekit("guard", "gate.toml")
    assert refused.code == 2
    assert "max_drop must be above 0 and at most 100 (hundredths of the measure's range), not 0" in refused.err


def test_a_state_that_the_command_line_names_lies_where_the_command_runs(judgekit: Judgekit, repository: Path) -> None:
    (repository / "elsewhere").mkdir()
    (repository / "elsewhere" / "gate.toml").write_text(
        '[data]\nqueries = "../queries.jsonl"\ndocs = "../docs.jsonl"\ndepth = 5\n'
        '[runs]\nold = "../base.trec"\nnew = "../harmless.trec"\n[[labelers]]\nkind = "containment"\n'
        '[guard]\nbase = "old"\nnew = "new"\nsequential = "own.json"\nmax_drop = 10\n'
    )
    assert judgekit("guard", "elsewhere/gate.toml").code == 0
    assert judgekit("guard", "elsewhere/gate.toml", "--sequential", "given.json").code == 0
    assert (repository / "elsewhere" / "own.json").is_file()
    assert (repository / "given.json").is_file()


def test_documents_without_a_label_are_never_zero_in_silence(judgekit: Judgekit, repository: Path) -> None:
    gold = (repository / "gold.qrels").read_text().splitlines(keepends=True)
    (repository / "sparse.qrels").write_text("".join(line for line in gold if line.endswith(" 1\n")))
    asked = ["guard", "base.trec", "harmless.trec", "--qrels", "sparse.qrels"]
    said = judgekit(*asked)
    assert said.code == 5, said.err
    assert "240 documents in questions whose lists differ have no label: they can be anything on the scale." in said.out
    assert "The outcome depends on documents without a label (all questions): label them." in said.out
    taken = judgekit(*asked, "--unjudged", "nonrelevant")
    assert taken.code == 0
    assert "they count as not relevant." in taken.out
    read = judgekit("guard", "base.trec", "harmless.trec", *FILES, "--labeler", "provenance(qrels='sparse.qrels')")
    assert read.code == 5, "what the reader of a file takes for 0 is not judged either"
    assert "240 documents in questions whose lists differ have no label" in read.out


def test_where_both_show_the_same_documents_nothing_is_lost_whatever_their_labels_are(repository: Path) -> None:
    found = jk.guard("base.trec", "base.trec", labels={f"q{i}": {f"d{i}a": 1} for i in range(300)})
    assert found.outcome == "pass"
    assert (found.all.unknown, found.all.least, found.all.most) == (0, 0, 0)


def test_every_group_is_guarded_and_the_bounds_hold_together(judgekit: Judgekit, repository: Path) -> None:
    write_run(repository / "fi.trec", 300, worse=set(range(0, 60, 2)))
    asked = ["guard", "base.trec", "fi.trec", *FILES, "--labeler", "containment", "--by", "language"]
    said = judgekit(*asked, "--max-drop", 10)
    assert said.code == 1, said.err
    assert "fi: fail, 150 questions" in said.out
    assert "de: pass, 150 questions" in said.out
    assert said.out.startswith("fail: a loss is shown in fi.")
    found = jk.guard("base.trec", "fi.trec", labels="gold.qrels", queries="queries.jsonl", by="language", max_drop=10)
    alone = jk.guard("base.trec", "fi.trec", labels="gold.qrels", max_drop=10)
    assert (found.outcome, alone.outcome) == ("fail", "pass")
    assert judgekit(*asked[:-1], "nothing").code == 2


def test_the_answers_of_both_can_be_guarded_instead(judgekit: Judgekit, repository: Path) -> None:
    for name, wrong in (("old", 0), ("new", 40)):
        rows = [{"query_id": f"q{i}", "value": float(i >= wrong), "metric": "em"} for i in range(300)]
        (repository / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = judgekit("guard", "--quality", "base=old.jsonl", "--quality", "new=new.jsonl", "--max-drop", "2")
    assert said.code == 1, said.err
    assert "em of the answers, base against new, on 300 questions: the loss is 13.33" in said.out
    assert judgekit("guard", "--quality", "base=old.jsonl").code == 2
    both = judgekit("guard", "--quality", "base=old.jsonl", "--quality", "new=new.jsonl", "--qrels", "gold.qrels")
    assert "a gate sees a loss by one of them" in both.err


def test_of_several_modes_of_answering_one_is_named(repository: Path) -> None:
    import pandas as pd

    rows = [(f"q{i}", mode, float(mode == "vote" or i >= 40)) for mode in ("together", "vote") for i in range(300)]
    new = pd.DataFrame(rows, columns=["query_id", "mode", "value"])
    old = new.assign(value=1.0)
    with pytest.raises(UsageError, match=r"the base answers have several modes \(together, vote\): name one \(mode\)"):
        jk.guard(quality=(old, new))
    assert [jk.guard(quality=(old, new), answer_mode=mode).outcome for mode in ("together", "vote")] == ["fail", "pass"]
    with pytest.raises(UsageError, match="unknown mode 'merge'"):
        jk.guard(quality=(old, new), answer_mode="merge")


def test_missing_answers_can_be_anything(repository: Path) -> None:
    import pandas as pd

    old = pd.DataFrame({"query_id": [f"q{i}" for i in range(300)], "value": 1.0})
    new = old.assign(value=[None if i < 12 else 1.0 for i in range(300)])
    found = jk.guard(quality=(old, new))
    assert (found.outcome, found.all.open) == ("inconclusive", True)
    assert "12 answers are missing: they can be anything from 0 to 1." in str(found)


def test_it_writes_json_junit_and_markdown(judgekit: Judgekit, repository: Path) -> None:
    outputs = ["--json", "g.json", "--junit", "g.xml", "--markdown", "g.md"]
    said = judgekit(
        "guard", "base.trec", "worse.trec", *FILES, "--labeler", "containment", "--by", "language", *outputs
    )
    assert said.code == 1, said.err
    found = json.loads((repository / "g.json").read_text())
    assert (found["outcome"], found["exit_code"], len(found["regressed"])) == ("fail", 1, 15)
    assert set(found["groups"]) == {"fi", "de"}
    assert found["regressed"][0]["gone"][0] == [1, "d0a", "1"]
    suite = ElementTree.parse(repository / "g.xml").getroot()
    assert (suite.get("tests"), len(suite.findall("testcase"))) == ("3", 3)
    assert int(suite.get("failures", 0)) == len(suite.findall("testcase/failure")) >= 1
    page = (repository / "g.md").read_text()
    assert page.startswith("### judgekit guard: fail\n")
    assert "| `q0 What is town 0?` | 61.31 |" in page


def test_what_questions_say_cannot_break_the_comment_or_the_xml(repository: Path) -> None:
    from judgekit.gate.formatting import junit, markdown

    nasty = "a `b` | c\n</details> <img src=x> @all \x1b"
    queries = [{"query_id": f"q{i}", "text": nasty} for i in range(300)]
    found = jk.guard("base.trec", "worse.trec", labels="gold.qrels", queries=queries)
    rows = [line for line in markdown(found).splitlines() if line.startswith("| `q0 ")]
    assert rows[0].count("`") == 4
    assert "\\|" in rows[0]
    ElementTree.fromstring(junit(found).split("?>", 1)[1])


def test_files_made_from_other_questions_are_refused(judgekit: Judgekit, repository: Path) -> None:
    label = ["label", "containment", "--docs", "docs.jsonl", "--run", "base.trec", "--quiet"]
    assert judgekit(*label, "--queries", "queries.jsonl", "--out", "made.qrels").code == 0
    asked = ["guard", "base.trec", "worse.trec", "--qrels", "made.qrels"]
    assert judgekit(*asked, "--queries", "queries.jsonl").code == 1
    refused = judgekit(*asked, "--queries", "few.jsonl")
    assert refused.code == 2
    assert "made from different queries" in refused.err
    assert "A gate compares like with like" in refused.err


def test_a_sequential_gate_keeps_its_state_and_spends_less_on_every_further_change(
    judgekit: Judgekit, repository: Path
) -> None:
    asked = ["--qrels", "gold.qrels", "--sequential", "state.json", "--max-drop", "10"]
    assert judgekit("guard", "base.trec", "harmless.trec", *asked).code == 0
    assert json.loads((repository / "state.json").read_text())["change"] == 1
    said = judgekit("guard", "base.trec", "harmless.trec", *asked)
    assert "this is change 1" in said.out, "another look at the same change"
    worse = judgekit("guard", "base.trec", "worse.trec", *asked)
    assert "this is change 2" in worse.out
    other = judgekit("guard", "base.trec", "worse.trec", *asked[:-1], "5")
    assert other.code == 2
    assert "holds the state of another gate" in other.err
    (repository / "state.json").write_text("{}")
    for state in ("state.json", "."):
        refused = judgekit("guard", "base.trec", "worse.trec", *asked[:3], state, *asked[4:])
        assert "does not hold the state of a sequential gate" in refused.err


def test_new_documents_are_labelled_through_the_store_and_no_more_than_allowed(
    judgekit: Judgekit, repository: Path
) -> None:
    mock = ["--labeler", "judge", "--base-url", "mock:", "--model", "mock"]
    first = judgekit("guard", "base.trec", "worse.trec", *FILES, *mock)
    assert "75 requests sent" in first.out, first.err
    assert "75 requests to send, for 15 questions whose lists differ" in first.err
    again = judgekit("guard", "base.trec", "worse.trec", *FILES, *mock)
    assert "0 requests sent (0 tokens), 75 replies from the store" in again.out
    capped = judgekit("guard", "base.trec", "harmless.trec", *FILES, *mock, "--max-requests", 20)
    assert capped.code == 5
    assert "20 requests sent" in capped.out
    assert "documents were not asked about, to stay within 20 requests" in capped.out
    assert "205 documents in questions whose lists differ have no label" in capped.out
    assert "on 300 questions" in capped.out, "those that nobody was asked about are not left out"


def test_two_results_folders(judgekit: Judgekit, repository: Path) -> None:
    experiment = """
[data]
queries = "queries.jsonl"
docs = "docs.jsonl"
depth = 5
[runs]
mine = "{run}"
[[labelers]]
kind = "containment"
[answers]
ratings = ["ratings.csv"]
[metrics]
measures = ["nDCG@5"]
[analysis]
resamples = 100
"""
    rows = "".join(f"q{i},{i % 2}\n" for i in range(300))
    (repository / "ratings.csv").write_text("query_id,value\n" + rows)
    for name in ("base", "worse"):
        (repository / f"{name}.toml").write_text(experiment.format(run=f"{name}.trec"))
        judgekit("run", f"{name}.toml", "--out", f"out/{name}", "--quiet")
    said = judgekit("guard", "out/base", "out/worse")
    assert said.code == 1, said.err
    assert "nDCG@5 by 'containment', out/base against out/worse, on 300 questions" in said.out
    assert "unknown labeling 'judge'" in judgekit("guard", "out/base", "out/worse", "--labeler", "judge").err
    write_run(repository / "worse.trec", 300)
    assert "made from different files of run mine" in judgekit("guard", "out/base", "out/worse").err
    assert "does not hold results" in judgekit("guard", "out", "out/base").err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"measure": "DCG@5"}, "has no fixed range"),
        ({"max_drop": 0}, "above 0 and at most 100"),
        ({"alpha": 1}, "alpha must be above 0"),
        ({"unjudged": "zero"}, "unjudged must be one of bounds, nonrelevant"),
        ({"max_group_drop": 3}, "needs groups"),
        ({"by": "language"}, "the queries have no column 'language'"),
        ({"by": {"q1": "a"}}, "has no group"),
        ({"labels": None}, "a gate sees a loss by one of them"),
        ({"labels": {"qx": {"d": 1}}}, "has none of the 1 questions"),
        ({"new": None}, "needs two runs"),
    ],
)
def test_what_makes_no_sense_is_said(options: dict[str, object], says: str, repository: Path) -> None:
    given: dict[str, object] = {"base": "base.trec", "new": "worse.trec", "labels": "gold.qrels"}
    with pytest.raises((UsageError, DataError), match=says):
        jk.guard(**(given | options))  # type: ignore[arg-type]


def test_a_measure_where_lower_is_better_or_a_whole_list_counts_is_turned_round(repository: Path) -> None:
    found = jk.guard("base.trec", "worse.trec", labels="gold.qrels", measure="AP")
    assert found.outcome == "fail"
    assert found.all.least == pytest.approx(0.05 * 0.8)


def test_measures_that_look_at_documents_get_them(repository: Path) -> None:
    found = jk.guard("base.trec", "worse.trec", labels="gold.qrels", docs="docs.jsonl", measure="nDCG@20t")
    assert found.outcome == "fail"


def test_nothing_is_claimed_from_labels_of_two_models_under_one_name(
    judgekit: Judgekit, repository: Path, fault_server: FaultServer
) -> None:
    def as_model(name: str) -> Any:
        def answer(body: dict[str, Any], seen: int) -> Scripted:
            said = completion("Yes" if "It is town" in body["messages"][-1]["content"] else "No")
            return Scripted(200, json.dumps({**json.loads(said.body), "model": name}).encode())

        return answer

    write_run(repository / "first.trec", 300, worse={0, 20})
    asked = [*FILES, "--labeler", "judge", "--base-url", fault_server.base_url, "--model", "judge", "--cache", "store"]
    fault_server.answer = as_model("old")
    assert judgekit("guard", "base.trec", "first.trec", *asked).code == 5
    fault_server.answer = as_model("new")
    said = judgekit("guard", "base.trec", "worse.trec", *asked)
    assert said.code == 5, said.err
    assert "Nothing is claimed: label judge" in said.out
    assert "10 replies from the store" in said.out


@pytest.mark.parametrize(("new", "code"), [("harmless.trec", 0), ("worse.trec", 1)])
def test_the_fixture_of_the_page_guards_a_repository(new: str, code: int, repository: Path) -> None:
    page = (ROOT / "docs" / "guard.md").read_text()
    (repository / "test_answers.py").write_text(page.split("```python\n")[1].split("```")[0])
    (repository / "runs").mkdir()
    (repository / "base.trec").rename(repository / "runs" / "main.trec")
    (repository / new).rename(repository / "runs" / "branch.trec")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".", "test_answers.py"]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=repository, check=False)
    assert ran.returncode == code, ran.stdout + ran.stderr
    assert code == 0 or "fail: a loss is shown" in ran.stdout


@pytest.mark.parametrize(
    ("column", "said"), [("answers", "must be a text or a whole number"), ("answer", "Did you mean")]
)
def test_a_column_that_names_no_groups_is_told_from_one_that_is_missing(tmp_path: Path, column: str, said: str) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_text('{"query_id": "q1", "text": "where", "answers": ["here"]}\n')
    with pytest.raises(DataError, match=said):
        read_column(path, column)


def test_two_outputs_never_replace_each_other(judgekit: Judgekit) -> None:
    said = judgekit("guard", "base.trec", "new.trec", "--qrels", "gold.qrels", "--json", "out", "--markdown", "out")
    assert (said.code, "a file of their own" in said.err) == (2, True)


def test_questions_that_neither_version_lists_do_not_water_a_loss_down() -> None:
    lists = {f"q{i}": {f"good{i}": 2.0, f"bad{i}": 1.0} for i in range(40)}
    worse = {q: dict(zip(docs, (1.0, 2.0), strict=True)) if q < "q2" else docs for q, docs in lists.items()}
    labels = {q: {doc: int(doc.startswith("good")) for doc in docs} for q, docs in lists.items()}
    more = labels | {f"z{i}": {f"good{i}": 1} for i in range(400)}
    alone, with_others = (jk.guard(lists, worse, labels=given, measure="RR@2") for given in (labels, more))
    assert with_others.all == alone.all
    assert len(with_others.losses.query_ids) == 40
    assert any("neither version has results for 400 questions" in note for note in with_others.losses.notes)
