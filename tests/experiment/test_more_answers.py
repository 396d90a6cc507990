"""What a plan says of several answers to each question, beside further questions."""

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, strategies as st

import judgekit as jk
from judgekit.analysis.samples import worth
from judgekit.analysis.wording import Ranged
from judgekit.experiment.file import load
from judgekit.experiment.more_answers import MoreAnswers
from judgekit.sample import EXPERIMENT
from tests.commands import Judgekit
from tests.small import MOCK, QUICK, edited, toml

SAMPLE = EXPERIMENT.parent
DATA: dict[str, Any] = {
    "data": {"queries": f"{SAMPLE}/queries.jsonl", "docs": f"{SAMPLE}/docs.jsonl", "depth": 3},
    "runs": {name: f"{SAMPLE}/runs/{name}.trec" for name in ("bm25", "rrf")},
    "metrics": {"measures": ["nDCG"]},
    "analysis": QUICK,
}
# Cochran's optimum, worked out apart from this code: by share of chance what 2, 3, 5 and 10 answers are worth in
# percent, and the best number of answers where a further question costs 1, 3, 10 and 30 times a further answer.
TABLE = {
    0.1: ((5, 7, 9, 10), (1, 1, 1, 2)),
    0.2: ((11, 15, 19, 22), (1, 1, 2, 3)),
    0.3: ((18, 25, 32, 37), (1, 1, 2, 4)),
    0.4: ((25, 36, 47, 56), (1, 1, 3, 4)),
    0.5: ((33, 50, 67, 82), (1, 2, 3, 5)),
    0.6: ((43, 67, 92, 117), (1, 2, 4, 7)),
}


@pytest.fixture
def experiment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    path = folder / "experiment.toml"
    path.write_text(
        toml(
            **DATA,
            endpoints={"local": MOCK},
            labelers=[{"kind": "containment"}, {"kind": "judge"}],
            answers={"depths": [3], "closed_book": False},
            prices={"mock": {"prompt": 1, "completion": 2}},
        )
    )
    return path


def more(experiment: Path, **options: Any) -> MoreAnswers:
    planned = jk.plan(experiment, asking=jk.Asking(cache=experiment.parent / "cache"), **options)
    assert planned.more_answers is not None
    return planned.more_answers


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("share", TABLE)
def test_worth_and_the_cheapest_number_are_those_of_sampling_in_two_stages(share: float) -> None:
    worths, cheapest = TABLE[share]
    assert tuple(round(100 * worth(share, answers)) for answers in (2, 3, 5, 10)) == worths
    known = Ranged(share, share, share)
    assert tuple(MoreAnswers(1, known, ratio, 1).cheapest for ratio in (1, 3, 10, 30)) == cheapest


@given(st.floats(0.01, 0.99), st.floats(0, 50), st.integers(2, 10))
def test_the_share_from_which_on_answers_pay_is_where_both_ways_cost_the_same(
    share: float, question: float, answers: int
) -> None:
    about = MoreAnswers(answers, Ranged(share), question, 1, left=1)
    # What limits of equal width take: once for each answer, and as many more questions with one answer each.
    several, single = question + answers, (question + 1) * (1 + worth(share, answers))
    if abs(share - about.pays_from) > 1e-9:
        assert (several < single) == (share > about.pays_from)
        assert (about.taken < worth(share, answers)) == (share > about.pays_from)


def test_a_plan_says_what_a_second_answer_is_worth_and_takes(judgekit: Judgekit, experiment: Path) -> None:
    said = words(judgekit("plan", experiment, "--questions", 20, "--cache", "cache").out)
    assert "is not known: answer 50 questions twice (`samples = 2` under [answers])." in said
    assert (
        "If it is 10, 30 or 50 %, a second answer to each question is worth 5, 18 or 33 % more questions, and" in said
    )
    found = more(experiment, questions=20)
    assert found.left == 34, "54 differ"
    # Equal lists share their answer, so that a question whose lists are equal has fewer answers.
    by_question = jk.plan(experiment, asking=jk.Asking(cache="cache"), questions=20).costs.set_index("strategy")
    of_pilot = by_question[by_question["questions"] == "pilot"]["money"]
    assert found.answer / found.question == pytest.approx(of_pilot["answers"] / of_pilot["judge"], rel=0.2)
    assert f"as much as {100 * found.answer / (found.answer + found.question):.0f} % more questions" in said
    assert f"cheaper, unless more than {100 * found.pays_from:.0f} % is chance" in said


def test_what_is_stored_already_is_priced_as_if_it_were_asked_for(experiment: Path) -> None:
    before = more(experiment, questions=20)
    edited(experiment, 'model = "mock"', 'model = "mock"\ntransport = "yes.py:Yes"')
    (experiment.parent / "yes.py").write_text(
        "class Yes:\n"
        "    async def send(self, endpoint, body):\n"
        '        return 200, {}, b\'{"choices": [{"message": {"content": "Yes"}, "finish_reason": "stop"}]}\'\n'
    )
    unmarked = jk.Asking(cache="cache")
    with_carrier = load(experiment)
    jk.run(with_carrier, out="out", asking=unmarked)
    after = more(experiment, questions=20)
    # Stored replies tell how long further ones are, and take nothing off the number of requests.
    for now, then in ((after.question, before.question), (after.answer, before.answer)):
        assert 0.7 * then < now <= then


def test_several_answers_cost_as_much_each_as_one(experiment: Path) -> None:
    once = more(experiment, questions=20)
    edited(experiment, "depths = [3]", "depths = [3]\nsamples = 3")
    thrice = more(experiment, questions=20)
    # A request that sets a temperature is some tokens longer.
    assert (thrice.question, thrice.answer) == pytest.approx((once.question, once.answer), rel=0.01)
    assert thrice.looked_at == 3
    assert "is not known before the run. If it is 10, 30 or 50 %, three answers to each question are worth 7" in str(
        thrice
    )


def test_references_that_further_questions_lack_make_answers_cheaper(experiment: Path) -> None:
    with_references = more(experiment, questions=20)
    queries = pd.read_json(SAMPLE / "queries.jsonl", lines=True).drop(columns="answers")
    queries.to_json(experiment.parent / "queries.jsonl", orient="records", lines=True)
    edited(experiment, f"{SAMPLE}/queries.jsonl", "queries.jsonl")
    assert pd.isna(more(experiment, questions=20).taken), "the price of a reference is not known"
    experiment.write_text(experiment.read_text() + "\n[money]\nreference = 2\n")
    lacking = more(experiment, questions=20)
    assert lacking.question == pytest.approx(with_references.question + 2)
    assert lacking.answer == pytest.approx(with_references.answer)


def test_an_earlier_run_says_how_much_is_chance(judgekit: Judgekit, experiment: Path) -> None:
    rng = random.Random(1)
    lines = []
    for query in pd.read_json(SAMPLE / "queries.jsonl", lines=True).to_dict("records"):
        good = {"bm25": rng.random(), "rrf": rng.random()}
        for run, chance in good.items():
            for sample in (1, 2):
                answer = query["answers"][0] if rng.random() < chance else "no"
                lines.append(
                    {"query_id": query["query_id"], "run": run, "depth": 3, "sample": sample, "answer": answer}
                )
    pd.DataFrame(lines).to_csv("answers.csv", index=False)
    data = DATA | {"data": DATA["data"] | {"limit": 60}}
    answers = {"depths": [3], "metrics": ["em"], "import": "answers.csv", "answered_by": "app"}
    Path("pilot.toml").write_text(toml(**data, labelers=[{"kind": "containment"}], answers=answers))
    judgekit("run", "pilot.toml", "--out", "results")
    decision = jk.run("pilot.toml", out="again").comparison.decision
    (measured,) = (claim for claim in decision.claims if claim.kind == "samples")
    assert 20 < measured.value < 80

    said = words(judgekit("plan", experiment, "--results", "results", "--more", 5, "--cache", "cache").out)
    share = f"{measured.value:.0f} % ({measured.low:.0f} to {measured.high:.0f})"
    assert f"Answers {share} of the differences between runs is chance between answers to the same question." in said
    found = more(experiment, results="results", questions=5)
    assert found.share == pytest.approx((measured.value / 100, measured.low / 100, measured.high / 100))
    assert f"worth {100 * worth(found.share.value, 2):.0f} % more questions, and takes as much as" in said
    used_up = more(experiment, results="results")
    assert used_up.left == 0
    assert "No further questions with different lists are left: five answers to each narrow the limits by" in str(
        used_up
    )


def test_where_nothing_is_drawn_anew_nothing_is_said(experiment: Path) -> None:
    edited(experiment, 'model = "mock"', 'model = "mock"\nparams = {temperature = 0}')
    assert jk.plan(experiment).more_answers is None


def test_answers_of_an_application_are_numbered(experiment: Path) -> None:
    rows = [f"q{place:03},{run},3,no" for place in range(1, 105) for run in ("bm25", "rrf")]
    Path("answers.csv").write_text("\n".join(["query_id,run,depth,answer", *rows]))
    edited(experiment, "depths = [3]", 'depths = [3]\nimport = "answers.csv"\nanswered_by = "app"')
    assert "have 50 questions answered twice, and number the answers in a column `sample`." in str(more(experiment))


def test_wording() -> None:
    known = Ranged(0.31, 0.21, 0.41)
    dear = str(MoreAnswers(1, known, question=10, answer=1, left=5))
    assert dear == (
        "31 % (21 to 41) of the differences between runs is chance between answers to the same question. A second"
        " answer to each question is worth 18 % more questions, and takes as much as 9 % more questions. For limits of"
        " the same width two answers to each question take least."
    )
    assert str(MoreAnswers(1, known, 1, 1, 5)).endswith(
        "takes as much as 50 % more questions: further questions are cheaper."
    )
    assert str(MoreAnswers(3, known, left=5)).endswith("Three answers to each question are worth 26 % more questions.")
    assert str(MoreAnswers(1, question=0, answer=1, left=1)).endswith("Further questions are cheaper in any case.")
    shares = [MoreAnswers(answers, known, 10, 1).taken for answers in (2, 3, 4)]
    assert all(one < other for one, other in pairwise(shares))
