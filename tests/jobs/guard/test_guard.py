import json
import os
import re
import shlex
import subprocess
from contextlib import nullcontext
from pathlib import Path
from textwrap import dedent
from typing import Any

import pandas as pd
import pytest

import judgekit as jk
from judgekit.errors import DataError, UsageError
from judgekit.jobs.guard.gate import markdown
from tests.cli.test_cli_models import as_model
from tests.conftest import ROOT
from tests.jobs.guard.conftest import docs_of, write_run
from tests.mock import URL
from tests.servers import FaultServer
from tests.small import Judgekit

FILES = ["--queries", "queries.jsonl", "--docs", "docs.jsonl"]


def test_a_planted_loss_fails_the_build_and_a_harmless_change_passes(judgekit: Judgekit, repository: Path) -> None:
    planted = ("guard", "base.trec", "worse.trec", *FILES, "--labeler", "containment")
    assert len(judgekit(*planted, code=1).out.splitlines()) <= 10
    content = json.loads(judgekit(*planted, "--json", "--markdown", "g.md", code=1).out)
    assert (content["command"], content["outcome"], content["exit_code"]) == ("guard", "fail", 1)
    assert (len(content["changes"]), content["questions"]["worse"], content["mean"]["queries"]) == (15, 15, 300)
    assert content["changes"][0]["moved"].startswith("d0a [1] 1 → 5")
    mean = content["mean"]
    assert (mean["least"], mean["low"], mean["high"]) == pytest.approx((0.0307, 0.0133, 0.0477), abs=1e-4)
    page = (repository / "g.md").read_text()
    assert page.startswith("### judgekit guard: fail\n")
    assert "```text\nfail: " in page
    assert "\n  q0  loses " in page
    judgekit("guard", "base.trec", "harmless.trec", *FILES, "--labeler", "containment", code=0)


@pytest.mark.parametrize("new", ["few-harmless.trec", "few-worse.trec"])
def test_twenty_questions_are_inconclusive_and_it_is_said_how_many_would_settle_it(
    new: str, judgekit: Judgekit, repository: Path
) -> None:
    asked = ["--queries", "few.jsonl", "--docs", "docs.jsonl", "--labeler", "containment"]
    mean = json.loads(judgekit("guard", "few-base.trec", new, *asked, "--json", code=5).out)["mean"]
    assert mean["needed"] > 20
    assert mean["low"] is mean["high"] is None, "of so few that differ they would say nothing"
    assert not mean["open"]


def test_documents_without_a_label_are_never_zero_in_silence(judgekit: Judgekit, repository: Path) -> None:
    gold = (repository / "gold.qrels").read_text().splitlines(keepends=True)
    (repository / "sparse.qrels").write_text("".join(line for line in gold if line.endswith(" 1\n")))
    asked = ["guard", "base.trec", "harmless.trec", "--qrels", "sparse.qrels"]
    said = judgekit(*asked, code=5).out
    assert "--unjudged nonrelevant" in said
    assert any("240" in line for line in said.splitlines())
    assert "--unjudged nonrelevant" not in judgekit(*asked, "--unjudged", "nonrelevant", code=0).out
    read = judgekit("guard", "base.trec", "harmless.trec", *FILES, "--labeler", "provenance(qrels='sparse.qrels')")
    assert read.code == 5, "what the reader of a file takes for 0 is not judged either"
    assert any("240" in line for line in read.out.splitlines())


@pytest.mark.parametrize(
    ("base", "qrels"), [("base.trec", {f"q{i}": {f"d{i}a": 1} for i in range(300)}), ("few-base.trec", "gold.qrels")]
)
def test_where_both_show_the_same_documents_nothing_changed_whatever_their_labels_are(
    base: str, qrels: Any, repository: Path
) -> None:
    guarded = jk.guard(base, base, labels=qrels)
    assert (guarded.outcome, guarded.exit_code, guarded.mean.unknown, guarded.mean.most) == ("pass", 0, 0, 0)
    assert guarded.losses.same


def test_a_change_of_questions_without_a_score_is_no_sign_that_nothing_changed(repository: Path) -> None:
    labels = {f"q{i}": {f"d{i}a": 1} for i in range(1, 300)}
    write_run(repository / "first.trec", 300, worse={0})
    guarded = jk.guard("base.trec", "first.trec", gate=jk.Gate(suite=True), labels=labels, queries="queries.jsonl")
    assert not guarded.losses.same
    assert len(guarded.losses.table) == 299
    assert len(guarded.losses.notes) == 1


@pytest.mark.parametrize(
    ("new", "max_drop", "code", "loss"), [("worse", 1, 1, 0.0307), ("worse", 4, 0, 0.0307), ("harmless", 0, 0, 0.0)]
)
def test_a_fixed_suite_is_about_its_questions_alone(
    new: str, max_drop: float, code: int, loss: float, judgekit: Judgekit, repository: Path
) -> None:
    asked = ["--qrels", "gold.qrels", "--queries", "few.jsonl", "--suite", "--max-drop", max_drop, "--json"]
    mean = json.loads(judgekit("guard", "few-base.trec", f"few-{new}.trec", *asked, code=code).out)["mean"]
    assert (mean["least"], mean["most"]) == pytest.approx((loss, loss), abs=1e-4)


def test_in_a_suite_missing_labels_decide_only_where_they_may(repository: Path) -> None:
    gold = {f"q{i}": {f"d{i}{c}": int(c == "a") for c in "abcde"} for i in range(20)}
    del gold["q0"]["d0d"]
    strict, loose = (
        jk.guard("few-base.trec", "few-harmless.trec", jk.Gate(suite=True, max_drop=drop), labels=gold)
        for drop in (0.0, 10.0)
    )
    assert (strict.outcome, loose.outcome) == ("inconclusive", "pass")
    assert (strict.mean.open, loose.mean.open) == (True, False)


def test_questions_of_a_group_count_once(repository: Path) -> None:
    rows = [{"query_id": f"q{i}", "text": f"What is {i}?", "town": f"t{min(i, 10)}"} for i in range(20)]
    asked = {"labels": "gold.qrels", "queries": rows}
    write_run(repository / "new.trec", 20, worse=set(range(10, 15)))
    alone, grouped = (
        jk.guard("few-base.trec", "new.trec", jk.Gate(suite=True, groups=groups), **asked) for groups in (None, "town")
    )
    loss = alone.changes["least"][0]
    assert alone.mean.least == pytest.approx(loss * 5 / 20)
    assert grouped.mean.least == pytest.approx(loss * 5 / 10 / 11)
    assert (grouped.mean.queries, grouped.counts["worse"], grouped.counts["unchanged"]) == (11, 5, 15)


def test_what_left_and_what_came_under_a_measure_of_whole_lists(repository: Path) -> None:
    versions = [{"q": {doc: -rank for rank, doc in enumerate(docs)}} for docs in ("abc", "cbx")]
    guarded = jk.guard(*versions, jk.Gate(suite=True, measure="AP"), labels={"q": {"a": 2, "b": 0, "c": 0, "x": 1}})
    assert guarded.changes["moved"].tolist() == ["a [2] 1 → –, c [0] 3 → 1 and 1 more"]
    assert guarded.mean.least == pytest.approx(1 / 2 - 1 / 6)


def test_the_answers_of_both_can_be_guarded_instead(judgekit: Judgekit, repository: Path) -> None:
    for name, wrong in (("old", 0), ("new", 40)):
        rows = [{"query_id": f"q{i}", "value": float(i >= wrong), "metric": "em"} for i in range(300)]
        (repository / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    content = json.loads(judgekit("guard", "old.jsonl", "new.jsonl", "--max-drop", "2", "--json", code=1).out)
    assert content["mean"]["least"] == pytest.approx(40 / 300)
    assert (content["questions"]["worse"], content["questions"]["unchanged"]) == (40, 260)
    judgekit("guard", "old.jsonl", "old.jsonl", code=0)
    assert "to compare runs a gate needs labels" in judgekit("guard", "base.trec", "worse.trec").err
    assert "are not for ratings" in judgekit("guard", "old.jsonl", "new.jsonl", "-m", "RR").err


def test_the_questions_that_lose_most_come_first_and_those_that_win_are_not_named() -> None:
    new = {"q0": 0.8, "q1": 0.1, "q2": 0.5, "q3": 1.0}
    tables = [pd.DataFrame({"query_id": list(new), "value": values}) for values in ([0.9] * 4, list(new.values()))]
    guarded = jk.guard(*tables, jk.Gate(suite=True))
    assert list(guarded.changes["query_id"]) == ["q1", "q2", "q0", "q3"]
    assert re.findall(r"q\d  loses [\d.]+", str(guarded)) == ["q1  loses 80", "q2  loses 40", "q0  loses 10"]


def rated(metric: str, value: float) -> pd.DataFrame:
    """300 rated questions, of which 40 have this value and the others 0.2."""
    values = [value] * 40 + [0.2] * 260
    return pd.DataFrame({"query_id": [f"q{i}" for i in range(300)], "value": values, "metric": metric})


@pytest.mark.parametrize(
    ("metric", "gate"), [("noise_sensitivity", {}), ("hallucination", {"reverse": "hallucination"})]
)
def test_what_rises_is_a_loss_where_low_values_are_the_good_ones(metric: str, gate: dict[str, str]) -> None:
    worse, better = (jk.guard(rated(metric, 0.2), rated(metric, value), jk.Gate(**gate)) for value in (0.9, 0.0))
    assert (worse.outcome, worse.counts["worse"], worse.counts["better"]) == ("fail", 40, 0)
    assert worse.mean.least == pytest.approx(0.7 * 40 / 300)
    assert (better.outcome, better.counts["better"]) == ("pass", 40)


def test_a_direction_on_which_tools_disagree_is_asked_for(judgekit: Judgekit, repository: Path) -> None:
    for name, value in (("old", 0.2), ("new", 0.9)):
        rated("hallucination", value).to_json(repository / f"{name}.jsonl", orient="records", lines=True)
    said = judgekit("guard", "old.jsonl", "new.jsonl", code=2).err
    assert "hallucination: tools disagree on its direction; say `--reverse hallucination`" in said
    assert judgekit("guard", "old.jsonl", "new.jsonl", "--as-given", "hallucination", code=0).out.startswith("pass")
    assert judgekit("guard", "old.jsonl", "new.jsonl", "--reverse", "hallucination", code=1).out.startswith("fail")
    assert (
        "unknown metric 'halucination'" in judgekit("guard", "old.jsonl", "new.jsonl", "--reverse", "halucination").err
    )
    refused = judgekit("guard", "base.trec", "worse.trec", "--qrels", "gold.qrels", "--reverse", "nDCG", code=2)
    assert "reverse and as_given are for ratings of answers" in refused.err


def test_several_answers_to_a_question_count_by_their_mean() -> None:
    def answered(good: float) -> pd.DataFrame:
        rows = [(f"q{i}", sample, float(sample < good)) for i in range(300) for sample in range(4)]
        return pd.DataFrame(rows, columns=["query_id", "sample", "value"])

    guarded = jk.guard(answered(3), answered(2))
    assert (guarded.outcome, guarded.mean.least) == ("fail", pytest.approx(0.25))
    assert len(guarded.losses.table) == 300
    with pytest.raises(UsageError, match="'q0' twice: several answers need a column 'sample' that numbers them"):
        jk.guard(answered(3).drop(columns="sample"), answered(2))


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"value": [0, 1.2]}, "the value 1.2 needs a scale"),
        ({"metric": ["f1", "f1"]}, "rated by 'em' and by 'f1', which are not comparable"),
        ({"depth": [1, 5]}, "the new answers have several depths (1, 5): keep one"),
        ({"model": ["a", "b"]}, "several models"),
        ({"run": ["a", "b"]}, "several runs"),
        ({"query_id": ["q0", "q0"]}, "question 'q0'"),
        ({"query_id": ["x0", "x1"]}, "no question in common"),
    ],
)
def test_ratings_that_cannot_be_compared_are_refused(changed: dict[str, Any], says: str) -> None:
    table = pd.DataFrame({"query_id": ["q0", "q1"], "value": [0.0, 1.0], "metric": "em"})
    with pytest.raises((UsageError, DataError), match=re.escape(says)):
        jk.guard(table, table.assign(**changed))


def test_a_question_that_a_metric_does_not_apply_to_has_lost_no_answer() -> None:
    rows = {"query_id": ["q0", "q1"], "value": [1.0, None], "status": ["ok", "not_applicable"]}
    guarded = jk.guard(pd.DataFrame(rows), pd.DataFrame(rows), jk.Gate(suite=True))
    assert guarded.losses.table["query_id"].tolist() == ["q0"]


def test_a_labeler_is_asked_about_no_more_documents_than_the_measure_looks_at(
    judgekit: Judgekit, repository: Path
) -> None:
    mock = ["--labeler", "judge", "--endpoint", URL, "--model", "mock", "-m", "nDCG@3"]
    said = judgekit("guard", "few-base.trec", "few-worse.trec", "--queries", "few.jsonl", "--docs", "docs.jsonl", *mock)
    assert "4 requests to send, for 1 questions whose lists differ" in said.err, "a to c, and b to d"


@pytest.mark.parametrize(("base", "new"), [(1.0, None), (None, 0.0), (None, None)])
@pytest.mark.parametrize("suite", [False, True])
@pytest.mark.parametrize("listed", [False, True])
def test_missing_answers_can_be_anything(listed: bool, suite: bool, base: float | None, new: float | None) -> None:
    tables = [pd.DataFrame({"query_id": map(str, range(300)), "value": [v] * 12 + [1.0] * 288}) for v in (base, new)]
    guarded = jk.guard(*(tables if listed else [table.dropna() for table in tables]), jk.Gate(suite=suite))
    if base is new and not listed:
        assert len(guarded.losses.table) == 288, "nobody answered the others"
        return
    assert (guarded.outcome, guarded.mean.open) == ("inconclusive", True)
    assert guarded.counts["unknown"] == 12
    first = guarded.changes.iloc[0]
    assert (first["query_id"], first["least"], first["most"]) == ("0", -1.0 if base is new else 0.0, 1.0)


def test_what_questions_say_cannot_break_the_comment_or_the_lines(repository: Path) -> None:
    queries = [{"query_id": f"q{i}", "text": f"a `b` | c{i}\n</details> <img src=x> @all"} for i in range(300)]
    guarded = jk.guard("base.trec", "worse.trec", labels="gold.qrels", queries=queries)
    assert markdown(guarded).count("`") == 6, "nothing ends the code before its end"
    assert len(str(guarded).splitlines()) == 7


def test_files_made_from_other_questions_are_refused(judgekit: Judgekit, repository: Path) -> None:
    label = ["label", "containment", "--docs", "docs.jsonl", "--run", "base.trec"]
    assert judgekit(*label, "--queries", "queries.jsonl", "--out", "made.qrels").code == 0
    asked = ["guard", "base.trec", "worse.trec", "--qrels", "made.qrels"]
    assert judgekit(*asked, "--queries", "queries.jsonl").code == 1
    refused = judgekit(*asked, "--queries", "few.jsonl", code=2)
    assert "made from different queries" in refused.err
    assert "A gate compares like with like" in refused.err


def test_new_documents_are_labelled_through_the_store(judgekit: Judgekit, repository: Path) -> None:
    mock = ["--labeler", "judge", "--endpoint", URL, "--model", "mock"]
    first = judgekit("guard", "base.trec", "worse.trec", *FILES, *mock)
    assert "75 requests sent" in first.out, first.err
    assert "75 requests to send, for 15 questions whose lists differ" in first.err
    again = judgekit("guard", "base.trec", "worse.trec", *FILES, *mock)
    assert "0 requests sent (0 tokens), 75 replies from the store" in again.out
    same = judgekit("guard", "base.trec", "base.trec", *FILES, *mock)
    assert (same.code, "0 requests sent" in same.out) == (0, True)
    whole = json.loads(judgekit("guard", "base.trec", "base.trec", *FILES, *mock, "--json").out)
    assert whole["questions"]["unchanged"] == 300, "those that nobody was asked about are not left out"


def test_results_folders_are_no_versions(judgekit: Judgekit, repository: Path) -> None:
    (repository / "out").mkdir()
    (repository / "out" / "resolved.toml").write_text("# Paths are relative to here")
    refused = judgekit("guard", "out", "few-worse.trec", "--qrels", "gold.qrels", code=2)
    assert "give the runs with --labeler" in refused.err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"gate": jk.Gate(measure="DCG@5")}, "has no fixed range"),
        ({"gate": jk.Gate(groups="topic"), "queries": "queries.jsonl"}, "unknown column 'topic': choose from language"),
        ({"labels": None}, "to compare runs a gate needs labels"),
        ({"labeler": "containment"}, "give labels or a labeler"),
        ({"labels": None, "labeler": "containment"}, "needs the queries and the documents"),
        ({"labels": {"qx": {"d": 1}}}, "has none of the 1 questions"),
    ],
)
def test_what_makes_no_sense_is_said(options: dict[str, object], says: str, repository: Path) -> None:
    given: dict[str, object] = {"base": "base.trec", "new": "worse.trec", "labels": "gold.qrels"}
    with pytest.raises((UsageError, DataError), match=says):
        jk.guard(**(given | options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"max_drop": 0}, "max_drop must be above 0"),
        ({"max_drop": 101}, "max_drop must be a number from 0 to 100, not 101"),
        ({"unjudged": "zero"}, "unjudged must be one of bounds, nonrelevant, not 'zero'"),
    ],
)
def test_a_gate_that_cannot_be_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        jk.Gate(**options)


def test_nothing_is_claimed_from_labels_of_two_models_under_one_name(
    judgekit: Judgekit, repository: Path, fault_server: FaultServer
) -> None:
    write_run(repository / "first.trec", 300, worse={0, 20})
    asked = [*FILES, "--labeler", "judge", "--endpoint", fault_server.base_url, "--model", "judge"]
    fault_server.answer = as_model("old")
    assert judgekit("guard", "base.trec", "first.trec", *asked).code == 0
    fault_server.answer = as_model("new")
    said = judgekit("guard", "base.trec", "worse.trec", *asked, code=5)
    assert "Nothing is claimed: label judge" in said.out
    assert "10 replies from the store" in said.out


def test_the_fixture_of_the_page_guards_a_repository(repository: Path) -> None:
    code = (ROOT / "docs" / "guard.md").read_text().split("```python\n")[1].split("```")[0]
    code = code.replace('@pytest.fixture(scope="session")\n', "").replace("runs/main", "base")
    failed = pytest.raises(AssertionError, match="fail: a loss is shown")
    for branch, raised in (("harmless", nullcontext()), ("worse", failed)):
        names: dict[str, Any] = {}
        exec(code.replace("runs/branch", branch), names)
        with raised:
            names["test_answers_do_not_get_worse"](names["guarded"]())


def test_questions_that_neither_version_lists_do_not_water_a_loss_down() -> None:
    lists = {f"q{i}": {f"good{i}": 2.0, f"bad{i}": 1.0} for i in range(40)}
    worse = {q: dict(zip(docs, (1.0, 2.0), strict=True)) if q < "q2" else docs for q, docs in lists.items()}
    labels = {q: {doc: int(doc.startswith("good")) for doc in docs} for q, docs in lists.items()}
    more = labels | {f"z{i}": {f"good{i}": 1} for i in range(400)}
    alone, with_others = (jk.guard(lists, worse, jk.Gate(measure="RR@2"), labels=given) for given in (labels, more))
    assert with_others.mean == alone.mean
    assert len(with_others.losses.table) == 40
    assert any("neither version returns results for 400 questions" in note for note in with_others.losses.notes)


@pytest.mark.parametrize(
    ("comments", "asked"), [("", "issues/7/comments"), ("31\\n12", "--method PATCH .*issues/comments/31")]
)
def test_the_workflow_posts_one_comment_and_updates_it(
    comments: str, asked: str, judgekit: Judgekit, repository: Path
) -> None:
    text = (ROOT / "examples" / "guard.yml").read_text()
    parts = text.split("- name: guard\n")[1].split("- if: always()")
    gate, post = (dedent(part.split("run: |\n")[1]) for part in parts)
    Path("suite").mkdir()
    for name, there in (("base.trec", "suite/main.trec"), ("worse.trec", "new.trec")):
        Path(name).rename(there)
    for name in ("queries.jsonl", "docs.jsonl"):
        Path(name).rename(f"suite/{name}")
    assert judgekit(*shlex.split(gate.replace("\\\n", ""))[1:]).code == 1
    Path("gh").write_text(f'#!/bin/sh\necho "$@" >> asked\ncase "$*" in *--jq*) printf "{comments}";; esac\n')
    Path("gh").chmod(0o755)
    environment = {"PATH": f"{repository}:{os.environ['PATH']}", "API": "repos/o/r/issues", "PR": "7"}
    subprocess.run(["bash", "-e", "-c", post], env=environment, check=True)
    first, second = Path("asked").read_text().splitlines()
    assert 'startswith("### judgekit guard")' in first
    assert re.fullmatch(f"api .*{asked} -F body=@guard.md", second), second
    assert Path("guard.md").read_text().startswith("### judgekit guard: fail\n")


def test_what_makes_a_pass_worthless_is_said(judgekit: Judgekit, repository: Path) -> None:
    asked = ["guard", "few-base.trec", "few-harmless.trec", "--suite", "--unjudged", "nonrelevant", "--qrels"]
    gold = Path("gold.qrels").read_text()
    Path("foreign.qrels").write_text(gold.replace(" d", " x"))
    assert "labels none of the returned documents" in judgekit(*asked, "foreign.qrels").err
    Path("barren.qrels").write_text(gold.replace(" 1\n", " 0\n"))
    assert "has no relevant document for 20 questions" in judgekit(*asked, "barren.qrels").out
    rows = [f"q{i} Q0 {doc} {rank} {rank} far\n" for i in range(20) for rank, doc in enumerate(docs_of(i))]
    Path("few-harmless.trec").write_text("".join(rows))
    assert "its scores contradict its ranks" in judgekit(*asked, "gold.qrels").out
