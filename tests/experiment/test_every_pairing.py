"""Whatever an experiment is made of, it ends with a report: every labeler alone and in pairs, every answer metric."""

from __future__ import annotations

import json
from itertools import combinations, cycle
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pandas as pd
import pytest

from judgekit.answers.quality import catalog as answer_metrics
from judgekit.errors import ConfigError
from judgekit.experiment.file import parse_config
from judgekit.experiment.run import Finished, run
from judgekit.labelers.base import catalog as labelers
from judgekit.metrics import DEFINITIONS
from judgekit.report import print_tables
from judgekit.report.formatting import meaning
from judgekit.report.model import Cost
from judgekit.spec import parse
from tests.mock import URL

MOCK = {"base_url": URL, "model": "mock"}
"""What answers in place of an LLM."""

TOWNS = ["Arlen", "Borvik", "Cantry", "Dulse", "Elmshire", "Farrow", "Garth", "Holme"]
YEARS = ["1412", "1533", "1674", "1781", "1850", "1903", "1911", "1927"]

LABELERS = {
    "cascade(first='judge(endpoint=one)',then='judge(endpoint=two,prompt=useful)')": "binary",
    "containment": "binary",
    "judge": "binary",
    "judge(jury=one+two)": "binary",
    "judge(prompt=graded)": "grades",
    "judge(prompt=graded,samples=2,vote=mean)": "unit",
    "judge(read=logprobs)": "unit",
    "utility": "binary",
    "utility(quality=f1)": "unit",
    "utility(variant=signed-gain)": "signed",
    "provenance(qrels=gold.qrels)": "grades",
    "provenance(qrels=nothing.qrels)": "binary",
    "human(file=votes.csv)": "unit",
}
"""The labelers, each with its kind of scale; one of each kind and scale meets all the others."""

PAIRED = list({(parse(spelling).name, scale): spelling for spelling, scale in LABELERS.items()}.values())
MINE = """
import judgekit as jk

@jk.measure("Middle", rewards="a good document in the middle")
def middle(ranked, judged, cutoff):
    return len(ranked) > 1 and ranked[1] > 0
"""

METRICS = [
    *("accuracy", "contains", "em", "f1", "rouge-1", "rouge-2", "rouge-l"),
    *("correct(endpoint=two)", "grounded(endpoint=two)"),
]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight questions, three passages each, two runs, judgments of a file and of people, and a store for all tests."""
    folder = tmp_path_factory.mktemp("pairings")
    queries, docs, runs = [], [], {"good": [], "poor": []}
    for i, (town, year) in enumerate(zip(TOWNS, YEARS, strict=True)):
        queries.append({"query_id": f"q{i}", "text": f"When was the bridge of {town} built?", "answers": [year]})
        when = f"in {year}" if i % 4 else "long ago"
        texts = f"The bridge of {town} was built {when}.", f"The market of {town} is old.", f"A flood in {year}."
        docs += [{"doc_id": f"d{i}{j}", "title": town, "text": text} for j, text in enumerate(texts)]
        orders = {"good": "012" if i % 3 else "201", "poor": "120" if i % 2 else "210"}
        for name, order in orders.items():
            runs[name] += [f"q{i} Q0 d{i}{j} {n} {3 - n} {name}\n" for n, j in enumerate(order)]
    for name, rows in (("queries", queries), ("docs", docs)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, lines in runs.items():
        (folder / f"{name}.trec").write_text("".join(lines))
    (folder / "gold.qrels").write_text("".join(f"q{i} 0 d{i}0 {1 + i % 2}\n" for i in range(8)))
    (folder / "nothing.qrels").write_text("".join(f"q{i} 0 d{i}{j} 0\n" for i in range(8) for j in range(3)))
    votes = [f"q{i},d{i}0|d{i}{1 + i % 2},none\n" for i in range(8)]
    (folder / "votes.csv").write_text("query_id,shown,chosen\n" + "".join(votes))
    return folder


def finish(data: Path, out: Path, spellings: list[str], /, **changes: dict[str, object]) -> Finished:
    """Run an experiment to its end; ``changes`` are further keys of its tables, or other runs."""
    specs = [parse(spelling) for spelling in spellings]
    asked = [{"endpoint": "one"} if s.name in ("judge", "utility") and "jury" not in s.options else {} for s in specs]
    content: dict[str, Any] = {
        "data": {"queries": "queries.jsonl", "docs": "docs.jsonl", "depth": 3},
        "runs": {"good": "good.trec", "poor": "poor.trec"},
        "endpoints": {"one": MOCK, "two": {**MOCK, "namespace": "two"}},
        "labelers": [
            {"kind": s.name, "name": str(s), **s.options, **endpoint} for s, endpoint in zip(specs, asked, strict=True)
        ],
        "answers": {"endpoint": "one", "depths": [3], "metrics": ["em"], "closed_book": False},
        "metrics": {"measures": ["P"]},
        "analysis": {"resamples": 100},
    }
    for table, change in changes.items():
        content[table] = change if table == "runs" else {**content[table], **change}
    finished = run(parse_config(content, data / "experiment.toml"), out=out, cache=data / "store")
    assert (out / "report.html").read_text().rstrip().endswith("</html>")
    assert finished.comparison.decision.text
    assert set(finished.comparison.table["labeling"]) == {str(spec) for spec in specs}
    return finished


def test_every_labeler_and_metric_is_tried_here() -> None:
    assert {parse(spelling).name for spelling in LABELERS} == set(labelers())
    assert {parse(spelling).name for spelling in METRICS} == set(answer_metrics())


@pytest.mark.parametrize(
    ("spelling", "scale", "metric"), [(*one, m) for one, m in zip(LABELERS.items(), cycle(METRICS))]
)
def test_every_labeler_and_every_answer_metric_alone_end_with_a_report(
    data: Path, tmp_path: Path, spelling: str, scale: str, metric: str
) -> None:
    answers = {"depths": [1, 3], "closed_book": True, "metrics": [metric]}
    finished = finish(data, tmp_path, [spelling], answers=answers)
    assert [labeling.scale.kind for labeling in finished.labelings.values()] == [scale]
    rated = finished.quality[finished.quality["depth"] > 0]
    assert set(rated["metric"]) == {metric}
    assert rated["value"].notna().all()
    assert list(pd.read_csv(tmp_path / "agreement.csv").columns[:4]) == ["first", "second", "on", "coefficient"]


def tables() -> list[tuple[str, ...]]:
    """Seat four labelers at a table, so that each meets every other one at some table."""
    seated, unseated = [], set(combinations(PAIRED, 2))
    while unseated:
        new = max(combinations(PAIRED, 4), key=lambda four: len(unseated & set(combinations(four, 2))))
        unseated -= set(combinations(new, 2))
        seated.append(new)
    return seated


@pytest.mark.parametrize("together", tables(), ids=" and ".join)
def test_every_two_labelers_end_with_a_report(data: Path, tmp_path: Path, together: tuple[str, ...]) -> None:
    finish(data, tmp_path, list(together))


def test_an_experiment_with_one_run_ends_with_a_report(data: Path, tmp_path: Path) -> None:
    finish(data, tmp_path, ["containment", "judge"], runs={"good": "good.trec"}, analysis={})


def test_an_experiment_with_one_query_ends_with_a_report(data: Path, tmp_path: Path) -> None:
    finish(data, tmp_path, ["containment", "utility(quality=f1)"], data={"limit": 1})


def test_a_chosen_confidence_reaches_the_decision_every_table_and_every_word(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finished = {}
    for c in (0.6, 0.95):
        analysis = {"confidence": c, "primary": "nDCG@1", "use": "find-questions"}
        ranked = {"answers": {"depths": [1, 2]}, "metrics": {"measures": ["nDCG"]}}
        finished[c] = finish(data, tmp_path / str(c), ["containment", "judge"], analysis=analysis, **ranked)
    for table in ("agreement.csv", "comparison.csv", "differences.csv"):
        narrow, wide = (pd.read_csv(tmp_path / str(c) / table) for c in (0.6, 0.95))
        there = narrow["ci_low"].notna()
        assert there.any()
        assert (narrow["ci_low"] >= wide["ci_low"])[there].all()
        assert (narrow["ci_high"] <= wide["ci_high"])[there].all()
        assert (narrow["ci_high"] - narrow["ci_low"])[there].sum() < (wide["ci_high"] - wide["ci_low"])[there].sum()
    print_tables(finished[0.6].results)
    for text in (capsys.readouterr().out, (tmp_path / "0.6" / "report.html").read_text()):
        assert "60 % interval" in text
        assert "95 % interval" not in text.replace(meaning("coverage"), "")


def decided_answers(finished: Finished) -> Cost:
    [answers] = finished.results.answers
    assert answers.at_decision is not None
    return answers.at_decision


def test_labels_are_compared_with_the_answers_of_the_decision_whatever_else_is_answered(
    data: Path, tmp_path: Path
) -> None:
    few = finish(data, tmp_path / "few", ["judge"])
    more = {"depths": [1, 2, 3], "closed_book": True}
    many = finish(data, tmp_path / "many", ["judge"], answers=more, analysis={"primary": "P@3"})
    assert decided_answers(few) == decided_answers(many)
    assert decided_answers(few).requests == 16, "8 queries, 2 runs with another order"
    assert many.results.answers[0].spending.standalone.requests > 16
    first = finish(data, tmp_path / "first", ["judge"], answers=more, analysis={"primary": "P@1"})
    assert decided_answers(first).requests == 8 + 8 - 2, "two runs, of which two queries share the first document"


def test_answers_that_an_llm_rates_cost_what_it_takes_to_rate_them(data: Path, tmp_path: Path) -> None:
    free = finish(data, tmp_path / "free", ["judge"], answers={"depths": [1, 3]})
    metrics = {"depths": [1, 3], "metrics": ["em", "correct(endpoint=two)"]}
    analysis = {"primary": "P@3", "primary_metric": "correct(endpoint=two)"}
    rated = finish(data, tmp_path / "rated", ["judge"], answers=metrics, analysis=analysis)
    assert decided_answers(rated).requests > decided_answers(free).requests
    whole, alone = rated.results.answers[0].spending, free.results.answers[0].spending
    assert whole.standalone.requests - alone.standalone.requests >= (
        decided_answers(rated).requests - decided_answers(free).requests
    )
    other = finish(data, tmp_path / "other", ["judge"], answers=metrics, analysis={"primary": "P@3"})
    assert decided_answers(other) == decided_answers(free), "the decision's metric asks nobody"


def test_request_seconds_survive_running_again(data: Path, tmp_path: Path) -> None:
    first = finish(data, tmp_path / "first", ["judge"], data={"limit": 5})
    again = finish(data, tmp_path / "again", ["judge"], data={"limit": 5})
    for one, other in zip(first.results.labelings, again.results.labelings, strict=True):
        assert one.spending.standalone.request_seconds == pytest.approx(other.spending.standalone.request_seconds)
        assert other.spending.incurred.requests == 0
    seconds = decided_answers(first).request_seconds
    assert seconds == pytest.approx(decided_answers(again).request_seconds)
    assert seconds is not None
    assert seconds > 0


def test_an_experiment_names_a_measure_of_your_own_with_its_file(data: Path, tmp_path: Path) -> None:
    (data / "mine.py").write_text(MINE)
    with patch.dict(DEFINITIONS):
        changes = {"metrics": {"measures": ["mine.py:Middle", "P"]}, "analysis": {"primary": "mine.py:Middle@3"}}
        finished = finish(data, tmp_path, ["containment", "judge"], **changes)
        page = (tmp_path / "report.html").read_text()
    scores = finished.scores
    assert set(scores["measure"]) == {"Middle@3", "P@3"}
    assert set(scores[(scores["measure"] == "Middle@3") & (scores["query_id"] != "all")]["value"]) == {0.0, 1.0}
    assert 'primary = "Middle@3"' in (tmp_path / "resolved.toml").read_text()
    assert "a good document in the middle" in page


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"runs": {"good": "good.trec"}, "analysis": {"use": "choose-runs"}}, "analysis.use"),
        ({"metrics": {"measures": ["P@7"]}}, "metrics.measures"),
        ({"metrics": {"measures": ["nowhere.py:Middle"]}}, "metrics.measures"),
        ({"metrics": {"measures": ["P", "P@1"]}, "analysis": {"primary": "P@1"}}, "analysis.primary"),
    ],
)
def test_an_experiment_that_cannot_be_compared_is_refused_before_anything_is_paid(
    data: Path, tmp_path: Path, changes: dict[str, dict[str, object]], key: str
) -> None:
    with pytest.raises(ConfigError) as error:
        finish(data, tmp_path / "out", ["containment", "judge"], **changes)
    assert error.value.key == key
    assert not (tmp_path / "out").exists()
