"""The degradation ladder: copies that are known to be worse, and which labels would notice."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from judgekit.data.documents import Doc, MemoryDocs
from judgekit.data.runs import Run
from judgekit.errors import UsageError
from judgekit.gate.decision import decide
from judgekit.gate.ladder import Earlier, Lists, degraded, notice, parse_steps
from judgekit.spec import parse
from tests.gate.conftest import Judgekit

RUN = Run("r", ["q1"] * 6 + ["q2"] * 3, [*"abcdef", *"xyz"], [6, 5, 4, 3, 3, 1, 3, 2, 1])
DOCS = MemoryDocs([Doc(d, f"text of {d}", page_id=f"p{d}") for d in "abcdefxyz"])
OLD = MemoryDocs([Doc("a", "text of old a"), Doc("b", "text of b", page_id="pb")])
LISTS = Lists(RUN, 4, ("q1", "q2"), {"q1": frozenset("ac")}, OLD, DOCS)


@pytest.mark.parametrize(
    ("step", "first", "second"),
    [
        ("demote(n=2)", "ceab", "zxy"),
        ("demote(n=1)", "bace", "yxz"),
        ("drop", "bedf", "xyz"),
        ("drop(source=a)", "bced", "xyz"),
        ("drop(source='p[xy]')", "abce", "z"),
        ("truncate(k=2)", "ab", "xy"),
        ("distract(n=1)", "xabc", "axyz"),
        ("distract(n=1, rank=5)", "dabc", "xyz"),
        ("identity", "abcd", "xyz"),
    ],
)
def test_each_step_makes_the_lists_that_its_spelling_says(step: str, first: str, second: str) -> None:
    found = degraded(parse_steps([step], 4)[0], LISTS)
    assert ["".join(found.top(q)) for q in ("q1", "q2")] == [first, second]


def test_stale_shows_the_earlier_version_of_what_has_changed_under_an_id_of_its_own() -> None:
    found = degraded(parse_steps(["stale"], 4)[0], LISTS).top("q1")
    assert found == ["earlier version of a", "b", "c", "e"]
    both = Earlier(DOCS, OLD)
    assert [doc.text for doc in both.get(found[:2])] == ["text of old a", "text of b"]
    assert "earlier version of a" in both
    assert "earlier version of c" not in both


def test_steps_have_one_spelling_and_what_is_none_is_said() -> None:
    for step in parse_steps(["demote", "drop", "truncate(k=3)", "distract(rank=50)", "balanced"], 10):
        assert parse_steps([str(step)], 10) == [step]
        assert parse(str(step)) == step
    assert str(parse_steps(["demote"], 5)[0]) == "demote(n=2)", "no more than half of the list"
    for wrong in ("demotion", "demote(k=3)", "truncate(k=0)", "demote(n=a)"):
        with pytest.raises(UsageError, match=r"step|option"):
            parse_steps([wrong], 10)


@pytest.mark.parametrize("noise", [0.0, 10.0])
def test_power_is_that_of_the_gate_itself(noise: float) -> None:
    rng = np.random.default_rng(3)
    loss = np.where(rng.random(200) < 0.7, rng.uniform(0, 1, 200), -0.1)
    found = notice(loss, shares=(2, 5, 10), noise=noise)
    for share, power in found.power.items():
        shown = 0
        for _ in range(400):
            drawn = np.zeros(200)
            drawn[: int(2 * share)] = rng.choice(loss, int(2 * share))
            others = round(noise / 100 * 200)
            drawn[100 : 100 + others] = rng.choice(loss, others) * rng.choice([-1, 1], others)
            shown += decide(drawn, drawn, 1e-9).p <= 0.05
        assert power == pytest.approx(shown / 400, abs=0.08)
    assert found.power[2] <= found.power[5] <= found.power[10]
    assert found.low <= found.smallest <= found.high


def test_a_control_raises_few_false_alarms_and_a_step_without_effect_is_never_noticed() -> None:
    loss = np.random.default_rng(1).uniform(0, 1, 300)
    control = notice(loss, both=True)
    assert max(control.power.values()) <= 0.05
    nothing = notice(np.zeros(300))
    assert set(nothing.power.values()) == {0.0}
    assert nothing.smallest == nothing.queries == float("inf")


EXPERIMENT = """
[data]
queries = "queries.jsonl"
docs = "docs.jsonl"
depth = 5
limit = 60
[runs]
old = "base.trec"
new = "worse.trec"
[endpoints.local]
base_url = "mock:"
model = "mock"
[[labelers]]
kind = "containment"
[[labelers]]
name = "judge"
kind = "judge"
[[labelers]]
name = "gold"
kind = "provenance"
qrels = "gold.qrels"
[answers]
depths = [5]
metrics = ["em"]
[metrics]
measures = ["nDCG"]
[analysis]
use = "guard"
resamples = 100
[guard]
steps = ["demote(n=2)", "drop", "distract", "balanced(n=2)", "identity"]
answer = 10
"""


def test_an_experiment_for_the_use_guard_says_what_its_labels_would_notice(
    judgekit: Judgekit, repository: Path
) -> None:
    (repository / "exp.toml").write_text(EXPERIMENT)
    planned = judgekit("run", "exp.toml", "--dry-run")
    assert planned.code == 0, planned.err
    assert "label judge, ladder" in planned.out, "documents that only the ladder shows are planned"
    said = judgekit("run", "exp.toml", "--out", "out", "--quiet")
    assert said.code == 0, said.err
    assert "Verdict: To guard (nDCG@5): On 60 of your questions" in said.out
    assert "'gold' " in said.out
    assert "drop removes what 'gold' calls relevant, which favours 'gold'." in said.out
    table = pd.read_csv(repository / "out" / "ladder.csv")
    assert set(table["labeling"]) == {"containment", "judge", "gold"}
    assert set(table["step"]) == {"demote(n=2)", "drop", "distract(n=1)", "balanced(n=2)", "identity"}
    steps = table[table["labeling"] == "gold"].set_index("step")
    assert steps.loc["drop", "power_20"] > 0.9
    assert steps.loc["balanced(n=2)", [c for c in table if c.startswith("power_")]].max() <= 0.05
    assert np.isfinite(steps.loc["drop", "quality"]), "ten changed questions were answered"
    scores = pd.read_parquet(repository / "out" / "scores.parquet")
    assert set(scores["run"]) - {"all"} == {"old", "new"}, "copies are never among the runs"
    report = json.loads((repository / "out" / "report.json").read_text())
    assert [use["use"] for use in report["uses"]] == ["guard", "choose-runs", "find-questions"]
    assert "The degradation ladder" in (repository / "out" / "report.html").read_text()
    again = judgekit("report", "out")
    assert again.code == 0, again.err
    assert "The degradation ladder" in (repository / "out" / "report.html").read_text()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"drop", "distract"', '"drp"', "unknown step 'drp'"),
        (
            "[guard]",
            '[guard]\nbase = "odl"',
            "[guard.base] unknown name 'odl': choose from old, new. Did you mean 'old'?",
        ),
        ("[guard]", '[guard]\nrelevant = "people"', "[guard.relevant] unknown name 'people'"),
        ('"drop", "distract"', '"stale"', "stale needs guard.earlier"),
        ("answer = 10", "answers = 10", "Did you mean 'answer'?"),
        ("answer = 10", "noise = 101", "less than or equal to 100"),
    ],
)
def test_a_ladder_that_cannot_be_made_is_refused_before_anything_is_sent(
    old: str, new: str, says: str, judgekit: Judgekit, repository: Path
) -> None:
    (repository / "exp.toml").write_text(EXPERIMENT.replace(old, new))
    said = judgekit("run", "exp.toml", "--out", "out")
    assert said.code == 2
    assert says in said.err


def test_compare_says_that_the_ladder_needs_the_run(judgekit: Judgekit, repository: Path) -> None:
    pd.DataFrame(
        [("gold", r, "P@1", f"q{i}", float(i % 2)) for r in ("a", "b") for i in range(20)],
        columns=["labeling", "run", "measure", "query_id", "value"],
    ).to_csv("scores.csv", index=False)
    pd.DataFrame(
        [(r, 1, f"q{i}", float(i % 2)) for r in ("a", "b") for i in range(20)],
        columns=["run", "depth", "query_id", "value"],
    ).to_csv("quality.csv", index=False)
    said = judgekit("compare", "--scores", "scores.csv", "--quality", "quality.csv", "--use", "guard")
    assert said.code == 2
    assert "needs the run itself: use `judgekit run`" in said.err
