import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import judgekit as jk
from judgekit.analysis.power import questions_for, race_length, shown_lead, shown_lead_of_means
from judgekit.data.runs import Run
from judgekit.errors import DataError, UsageError
from judgekit.experiment import plan as planning
from judgekit.experiment.file import load
from judgekit.experiment.plan import PilotPlan, distances, smallest_r
from judgekit.experiment.prepare import prepare
from judgekit.experiment.run import asked
from judgekit.job import count
from judgekit.sample import EXPERIMENT as SAMPLED
from tests.small import MOCK, QUICK, edited, toml

SAMPLE = SAMPLED.parent
DATA = toml(
    data={"queries": f"{SAMPLE}/queries.jsonl", "docs": f"{SAMPLE}/docs.jsonl", "depth": 3},
    runs={name: f"{SAMPLE}/runs/{name}.trec" for name in ("bm25", "rrf")},
)
REST = toml(
    endpoints={"local": MOCK},
    labelers=[{"kind": "containment"}, {"kind": "judge"}, {"name": "erag", "kind": "utility"}],
    answers={"depths": [3]},
    metrics={"measures": ["nDCG"]},
    analysis=QUICK,
    prices={"mock": {"prompt": 1, "completion": 2}},
)


@pytest.fixture
def experiment(folder: Path) -> Path:
    path = folder / "experiment.toml"
    path.write_text(DATA + REST)
    return path


def planned(experiment: Path, **options: Any) -> PilotPlan:
    return jk.plan(experiment, asking=jk.Asking(cache=experiment.parent / "cache"), **options)


def costs(plan: PilotPlan, column: str, questions: str = "pilot") -> dict[str, float]:
    rows = plan.costs[plan.costs["questions"] == questions]
    return dict(zip(rows["strategy"], rows[column], strict=True))


def run_of(name: str, **lists: str) -> Run:
    rows = [(query, doc, -place) for query, docs in lists.items() for place, doc in enumerate(docs)]
    return Run(name, *map(list, zip(*rows, strict=True)))  # type: ignore[arg-type]  # three lists


def test_lists_differ_by_the_gain_that_they_do_not_share():
    one = run_of("one", same="ab", turned="ab", other="ab", short="a")
    two = run_of("two", same="ab", turned="ba", other="cd", short="b", lacking="b")
    first, second = 1, 1 / np.log2(3)
    far = distances([one, two], ["same", "turned", "other", "short", "lacking"], 2)
    expected = [0, (first - second) / (first + second), 1, first / (first + second), first / (first + second) / 2]
    assert far == pytest.approx(expected)
    third = run_of("three", same="ab", turned="ab", other="ab")
    assert distances([one, two, third], ["other"], 2) == pytest.approx([2 / 3])


def test_what_a_pilot_can_show_has_the_forms_of_the_statistics():
    assert [round(smallest_r(n, 6)[0], 2) for n in (50, 200)] == [0.22, 0.11]
    assert round(smallest_r(200, 2)[1], 2) == 0.33


def test_questions_are_drawn_by_the_square_of_how_far_their_lists_differ_and_weights_undo_it():
    ids, far = [f"q{i}" for i in range(12)], np.array([0, 0, *np.linspace(0.2, 0.6, 10)])
    values = np.random.default_rng(3).random(12)
    drawn, sums, asked = Counter[str](), [], {"q1", "q5"}
    for seed in range(500):
        lists = planning._Lists({name: [name] for name in ids}, far, 3, 2, asked if seed % 2 else frozenset())
        sample = lists.drawn(4, seed)
        weights = dict(zip(sample["query_id"], sample["weight"], strict=True))
        assert len(weights.keys() - asked if seed % 2 else weights) == 4
        drawn.update(() if seed % 2 else list(weights))
        assert ("q1" in weights) == bool(seed % 2), "equal lists are never drawn, and stay where they were asked"
        if seed % 2:
            sums.append(sum(weight * values[ids.index(q)] for q, weight in weights.items()))
    probability = 4 * far**2 / (far**2).sum()
    assert [drawn[q] / 250 for q in ids] == pytest.approx(probability.tolist(), abs=0.1)
    error = np.std(sums) / np.sqrt(len(sums))
    assert np.mean(sums) == pytest.approx(values[1] + values[2:].sum(), abs=4 * error), "however the first were chosen"


def test_the_counts_are_those_of_the_dry_run_of_the_pilot(experiment, tmp_path):
    plan = planned(experiment, questions=20).write(tmp_path / "pilot.csv")
    found = {"pilot": costs(plan, "requests"), "all": costs(plan, "requests", "all")}
    for questions, sample in (("pilot", "pilot.csv"), ("all", None)):
        prepared = prepare(load(experiment).updated(data={"sample": sample}))
        counted = count(asked(prepared), tmp_path / "cache")
        requests = {name: one.requests for name, one in counted.items()}
        assert found[questions] == {
            **{name: requests[f"label {name}"] for name in ("containment", "judge", "erag")},
            "people": 0,
            "answers": requests["answer"],
            "pilot together": requests["all"],
        }
    assert max(map(len, str(plan).splitlines())) <= 120
    assert f"{found['pilot']['judge']:.0f} / {found['all']['judge']:.0f}" in str(plan)
    assert " 0 / 0" not in str(plan), "equal numbers stand there once"
    assert costs(plan, "judgments", "all")["people"] == counted["label judge"].units


def test_a_plan_proposes_200_questions_and_writes_nothing_by_itself(experiment, tmp_path):
    docs = ("a", "b")
    queries = "".join(json.dumps({"query_id": f"q{i}", "text": f"What is {i}?"}) + "\n" for i in range(210))
    (tmp_path / "queries.jsonl").write_text(queries)
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps({"doc_id": d, "text": d}) + "\n" for d in docs))
    for name, doc in (("one", "a"), ("two", "b")):
        (tmp_path / f"{name}.trec").write_text("".join(f"q{i} Q0 {doc} 1 1 r\n" for i in range(210)))
    data = toml(
        data={"queries": "queries.jsonl", "docs": "docs.jsonl", "depth": 3}, runs={"one": "one.trec", "two": "two.trec"}
    )
    experiment.write_text(data + REST)
    before = sorted(tmp_path.iterdir())
    assert len(planned(experiment).sample) == 200
    assert sorted(tmp_path.iterdir()) == before


def test_a_run_takes_what_the_plan_wrote_and_further_questions_are_new(experiment, tmp_path, judgekit):
    cache = ("--cache", tmp_path / "cache")
    said = judgekit("plan", experiment, "--questions", 12, *cache, code=0)
    assert "Pilot     12 questions" in said.out
    assert 'sample = "pilot.csv"' in said.out
    assert max(map(len, said.out.splitlines())) <= 125
    first = set(pd.read_csv(tmp_path / "pilot.csv")["query_id"])
    edited(experiment, "[runs]", 'sample = "pilot.csv"\n[runs]')
    # The mock's answers are all wrong, and then nothing is chosen.
    app = [f"q{n:03},{run},{n % 3 if run == 'rrf' else n % 2}" for n in range(1, 105) for run in ("bm25", "rrf")]
    (experiment.parent / "thumbs.csv").write_text("\n".join(["query_id,run,value", *app]).replace(",2", ",1"))
    edited(experiment, "[answers]", '[answers]\nratings = ["thumbs.csv"]\nmetrics = ["em"]')
    # So few questions may have no verdict, which is 1.
    assert judgekit("run", experiment, "--out", tmp_path / "out", *cache).code in (0, 1)
    kinds = pd.read_csv(tmp_path / "out" / "claims.csv").set_index("kind")["qualifies"]
    assert kinds["drawn"] == "choose", "the decision counts alike what was not drawn alike"
    more = ("plan", experiment, "--results", tmp_path / "out", "--more", 9, *cache)
    said = judgekit(*more)
    assert "Pilot     21 questions, 9 of them new" in said.out
    sample = pd.read_csv(tmp_path / "pilot.csv").set_index("query_id")["weight"]
    assert len(sample) == 21
    assert (sample[sorted(first)] == 1).all()
    assert judgekit(*more).out == said.out, "the same questions again"
    plans = planned(experiment, questions=21), planned(experiment, results=tmp_path / "out", questions=9)
    whole, added = (costs(plan, "requests")["judge"] for plan in plans)
    assert added < whole, "what was asked is in the store"


def test_the_sample_of_an_experiment_is_never_replaced_by_one_that_lacks_its_questions(experiment, tmp_path, judgekit):
    plan = ("plan", experiment, "--cache", tmp_path / "cache", "--questions")
    edited(experiment, "[runs]", 'sample = "mine.csv"\n[runs]')
    said = judgekit(*plan, 12)
    before = (tmp_path / "mine.csv").read_text()
    assert (said.code, "In [data] write" in said.out, (tmp_path / "pilot.csv").exists()) == (0, False, False)
    refused = judgekit(*plan, 5, code=2).err
    assert "mine.csv is the sample of this experiment, and the plan leaves out " in refused
    assert (tmp_path / "mine.csv").read_text() == before
    (tmp_path / "other.csv").write_text(before)
    judgekit(*plan, 5, "--out", tmp_path / "other.csv", code=0)
    assert len(pd.read_csv(tmp_path / "other.csv")) == 5


def test_references_that_are_not_there_are_counted_once(experiment, tmp_path):
    queries = [json.loads(line) for line in (SAMPLE / "queries.jsonl").read_text().splitlines()]
    whole = planned(experiment, questions=30)
    for query in queries[::2]:
        query["answers"] = []
    (tmp_path / "queries.jsonl").write_text("".join(json.dumps(query) + "\n" for query in queries))
    money = '[money]\ncurrency = "USD"\nreference = 2\njudgment = 0.5\nprice = { containment = 0.25 }\n'
    experiment.write_text((DATA + REST + money).replace(f"{SAMPLE}/queries.jsonl", "queries.jsonl"))
    plan = planned(experiment, questions=30)
    assert costs(plan, "requests") == costs(whole, "requests")
    half = len(queries[::2])
    assert costs(plan, "references", "all") == {
        **{"containment": half, "judge": 0, "erag": half, "people": 0, "answers": half, "pilot together": half}
    }
    money, tokens = costs(plan, "money", "all"), costs(plan, "tokens", "all")
    pairs = costs(plan, "judgments", "all")["people"]
    assert money["people"] == pairs * 0.5
    assert money["containment"] == pytest.approx(pairs * 0.25 + half * 2)
    for name, labels in (("erag", 0), ("pilot together", pairs * 0.25)):
        asked = money[name] - half * 2 - labels
        assert tokens[name] < asked * 1e6 < 2 * tokens[name], (
            "a token of a reply costs twice as much as one of a prompt"
        )
        assert costs(plan, "money_low", "all")[name] < money[name] < costs(plan, "money_high", "all")[name]
    assert "Tokens and money in USD: about, with replies." in str(plan)


def test_a_budget_pays_for_a_pilot_of_half_of_it_and_for_labels(experiment):
    free = planned(experiment)
    spent = costs(free, "money")["pilot together"]
    plan = planned(experiment, budget=spent)
    taken = costs(plan, "money")["pilot together"]
    assert 0.35 * spent < taken <= 0.55 * spent
    assert "is left." in str(plan)
    assert "does not pay" in str(planned(experiment, budget=spent / 9, questions=50))
    edited(experiment, "[prices.mock]\nprompt = 1\ncompletion = 2\n", "")
    with pytest.raises(UsageError, match="a budget needs prices"):
        planned(experiment, budget=10)


def test_it_says_what_choosing_takes(experiment):
    plan = planned(experiment)
    questions = plan.questions
    assert plan.power["differ"].tolist() == [0.1, 0.2, 0.4]
    assert plan.power["ahead"].tolist() == [min(race_length(0.02, 2, d, 0.1), questions) for d in (0.1, 0.2, 0.4)]
    assert plan.power["bound"][1] == pytest.approx(questions_for(0.02, 2, 0.2), rel=0.05)
    said = " ".join(str(plan).split())
    assert "judgekit choose is not likely to end before all 104 questions are asked" in said, "nothing would be saved"
    assert f"leads by {100 * shown_lead(len(plan.sample), 2, 0.1):.0f}, " in said


def test_ratings_of_one_run_each_show_a_larger_lead_and_nothing_of_labels(experiment):
    (experiment.parent / "thumbs.csv").write_text("query_id,run,value\nq001,bm25,1\nq002,rrf,0\n")
    edited(experiment, "[answers]", '[answers]\nratings = ["thumbs.csv"]\nassigned = "random"')
    plan = planned(experiment)
    size = len(plan.sample)
    assert plan.power["lead"].tolist() == [100 * shown_lead_of_means(size, 2, good) for good in (0.5, 0.7, 0.9)]
    assert plan.power["lead"].min() > 100 * shown_lead(size, 2, 0.1), "two ratings of a question would show less"
    said = " ".join(str(plan).split())
    assert "Nothing of labels" in said
    assert "judgekit choose" not in said, "it reads no ratings"


def test_one_run_has_nothing_to_choose_between(experiment):
    edited(experiment, f'rrf = "{SAMPLE}/runs/rrf.trec"\n', "")
    plan = planned(experiment, questions=10)
    assert len(plan.power) == 0
    assert plan.sample["weight"].tolist() == pytest.approx([10.4] * 10)
    assert "nothing to choose between" in str(plan)


def test_equal_lists_and_wrong_numbers_are_said(experiment, tmp_path, judgekit):
    with pytest.raises(UsageError, match="5,000 questions were requested"):
        planned(experiment, questions=5000)
    with pytest.raises(DataError, match="does not hold results"):
        planned(experiment, results=tmp_path)
    (tmp_path / "pilot.csv").write_text("mine")
    assert "is not a sample" in judgekit("plan", experiment, "--cache", tmp_path / "cache", code=2).err
    (tmp_path / "same.trec").write_bytes((SAMPLE / "runs" / "bm25.trec").read_bytes())
    edited(experiment, f"{SAMPLE}/runs/rrf.trec", "same.trec")
    with pytest.raises(UsageError, match="the same lists at depth 3"):
        planned(experiment)


def test_it_is_shown_in_notebooks(experiment):
    plan = planned(experiment)
    assert {*plan.costs["strategy"]} >= {"judge", "people", "answers"}
    assert plan.power["differ"].tolist() == [0.1, 0.2, 0.4]
    html = plan._repr_html_()
    assert html.startswith("<pre>Lists ")
    assert "<" not in html[5:-6]


def test_a_plan_is_its_claims_with_their_numbers(experiment):
    plan = planned(experiment, questions=12)
    claims = {claim.kind: claim for claim in plan.claims}
    assert (claims["lists differ"].value, claims["pilot"].value) == (plan.differ, plan.drawn)
    assert claims["can show"].low == plan.power["lead"].min() < claims["can show"].high == plan.power["lead"].max()
    text = " ".join(str(plan).split())
    assert all(f"{claim.line} {claim.sentence}" in text for claim in plan.claims)
    assert not any(claim.shown for claim in plan.claims), "a plan shows nothing yet"
