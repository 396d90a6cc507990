"""Whatever an experiment is made of, it ends with a report: every labeler alone and in pairs, every answer metric."""

import re
from collections.abc import Mapping
from itertools import cycle
from typing import Any

import pandas as pd
import pytest

from judgekit.answers.quality import METRICS as ANSWER_METRICS
from judgekit.errors import ConfigError
from judgekit.experiment.run import RunResult
from judgekit.labelers.base import kinds as labelers
from judgekit.report import print_tables
from judgekit.report.formatting import meaning
from judgekit.report.model import Cost
from judgekit.spec import parse

LABELERS = {
    "cascade(first='judge(endpoint=one)',then='judge(endpoint=two,prompt=useful)')": "binary",
    "containment": "binary",
    "judge": "binary",
    "judge(jury=one+two)": "binary",
    "judge(prompt=graded)": "grades",
    "judge(prompt=graded,samples=2,vote=mean)": "unit",
    "judge(read=logprobs)": "unit",
    "needed": "signed",
    "rerank(endpoint=ranker)": "unit",
    "utility": "binary",
    "utility(quality=f1)": "unit",
    "utility(variant=signed-gain)": "signed",
    "provenance(qrels=graded.qrels)": "grades",
    "provenance(qrels=nothing.qrels)": "binary",
    "human(file=votes.csv)": "unit",
}
"""The labelers, each with its kind of scale."""

MIXED = {"good": "good.trec", "mixed": "mixed.trec"}
"""Runs with the same lists for three of six queries."""

METRICS = [
    *("accuracy", "contains", "em", "f1", "rouge-1", "rouge-2", "rouge-l"),
    *("correct(endpoint=two)", "grounded(endpoint=two)"),
]


def own(classes: Mapping[str, type]) -> set[str]:
    """Return the kinds that no plug-in adds."""
    return {name for name, kind in classes.items() if not kind.__module__.startswith("judgekit.extensions")}


def test_every_labeler_and_metric_is_tried_here():
    assert {parse(spelling).name for spelling in LABELERS} == own(labelers())
    assert {parse(spelling).name for spelling in METRICS} == own(ANSWER_METRICS.kinds())


@pytest.mark.parametrize(("spelling", "metric"), list(zip(LABELERS, cycle(METRICS))))
def test_every_labeler_and_every_answer_metric_alone_end_with_a_report(finish, spelling, metric):
    finished = finish([spelling], answers={"depths": [1, 3], "closed_book": True, "metrics": [metric]})
    assert [labeling.scale.kind for labeling in finished.labelings.values()] == [LABELERS[spelling]]
    rated = finished.quality[finished.quality["depth"] > 0]
    assert set(rated["metric"]) == {metric}
    assert rated["value"].notna().all()


@pytest.mark.parametrize(
    ("spellings", "changes"),
    [
        ([*LABELERS], {}),
        (["containment", "judge"], {"runs": {"good": "good.trec"}}),
        (["containment", "utility(quality=f1)"], {"data": {"limit": 1}}),
    ],
    ids=["all labelers", "one run", "one query"],
)
def test_the_largest_and_the_least_experiments_end_with_a_report(finish, spellings, changes):
    finish(spellings, **changes)


def test_a_chosen_confidence_reaches_the_decision_every_table_and_every_word(finish, tmp_path, capsys):
    ranked: dict[str, Any] = {"answers": {"depths": [1, 2]}, "metrics": {"measures": ["nDCG"]}}
    analysis = {"primary": "nDCG@1", "use": "find-questions"}
    finish(["containment", "judge"], "0.95", analysis=analysis, **ranked)
    finished = finish(["containment", "judge"], "0.6", analysis=analysis | {"confidence": 0.6}, **ranked)
    # On so few questions no difference has an interval; tests/analysis/test_confidence.py looks at those.
    for table in ("agreement.csv", "comparison.csv"):
        narrow, wide = (pd.read_csv(tmp_path / str(c) / table) for c in (0.6, 0.95))
        there = narrow["ci_low"].notna()
        assert there.any()
        assert (narrow["ci_low"] >= wide["ci_low"])[there].all()
        assert (narrow["ci_high"] <= wide["ci_high"])[there].all()
        assert not narrow.equals(wide)
    print_tables(finished.results)
    for text in (capsys.readouterr().out, (tmp_path / "0.6" / "report.html").read_text()):
        assert "60 % interval" in text
        assert "95 % interval" not in text.replace(meaning("coverage"), "")


def decided_answers(finished: RunResult) -> Cost:
    [answers] = finished.results.answers
    assert answers.at_decision is not None
    return answers.at_decision


def test_labels_are_compared_with_the_answers_of_the_decision_whatever_else_is_answered(finish):
    few = finish(["judge"], "few", runs=MIXED)
    more = {"runs": MIXED, "answers": {"depths": [1, 2, 3], "closed_book": True}}
    many = finish(["judge"], "many", analysis={"primary": "P@3"}, **more)
    assert re.findall(r"(\w+)=", repr(many)) == ["folder", "missing", "incomplete"], "tables are slow to write out"
    assert decided_answers(few) == decided_answers(many)
    assert decided_answers(few).requests == 6 + 3
    assert many.results.answers[0].spending.standalone.requests > 9
    (cost,) = [claim for claim in many.results.of("cost") if claim.subject == "answers"]
    assert cost.value == 9, "for as many questions"
    first = decided_answers(finish(["judge"], "first", analysis={"primary": "P@1"}, **more))
    assert first.requests == 9
    assert first.prompt_tokens < decided_answers(few).prompt_tokens


def test_answers_that_an_llm_rates_cost_what_it_takes_to_rate_them(finish):
    free = finish(["judge"], "free", answers={"depths": [1, 3]})
    answers = {"depths": [1, 3], "metrics": ["em", "correct(endpoint=two)"], "outcome": "correct(endpoint=two)"}
    analysis = {"primary": "P@3"}
    rated = finish(["judge"], "rated", answers=answers, analysis=analysis)
    assert decided_answers(rated).requests > decided_answers(free).requests
    other = finish(["judge"], "other", answers=answers | {"outcome": "em"}, analysis={"primary": "P@3"})
    assert decided_answers(other) == decided_answers(free), "the decision's metric asks nobody"


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"runs": {"good": "good.trec"}, "analysis": {"use": "choose-runs"}}, "analysis.use"),
        ({"metrics": {"measures": ["P@7"]}}, "metrics.measures"),
        ({"metrics": {"measures": ["nowhere.py:Middle"]}}, "metrics.measures"),
        ({"metrics": {"measures": ["P", "P@1"]}, "analysis": {"primary": "P@1"}}, "analysis.primary"),
    ],
)
def test_an_experiment_that_cannot_be_compared_is_refused_before_anything_is_paid(finish, tmp_path, changes, key):
    with pytest.raises(ConfigError) as error:
        finish(["containment", "judge"], **changes)
    assert error.value.key == key
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("metrics", [[], ["em"]])
def test_ratings_decide_beside_answers_that_are_rated_here_and_say_nothing_of_abstentions(finish, data, metrics):
    rows = [f"{run},q{i},3,{(i + place) % 3 > 0}" for i in range(6) for place, run in enumerate(("good", "poor"))]
    (data / "stars.csv").write_text("\n".join(["run,query_id,depth,value", *rows]) + "\n")
    finished = finish(["containment", "judge"], answers={"metrics": metrics, "ratings": ["stars.csv"]})
    primary = finished.results.primary
    assert (primary.metric, primary.model) == ("rating", "undeclared")
    means = finished.results.quality.set_index(["metric", "run"])
    assert set(means.index) == {(metric, run) for metric in [*metrics, "rating"] for run in ("good", "poor")}
    assert (means.loc["rating", ["abstained", "seems_abstained", "missing", "not_applicable"]] == 0).all(axis=None)
    assert means.loc["rating", "n"].tolist() == [6, 6]
