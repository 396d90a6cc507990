"""Tables that people rated in part: a labeling that scores all answers, corrected by the ratings."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from judgekit.analysis.comparison import Comparison, compare
from judgekit.rules import DeclaredOutcome, Rules
from tests.analysis.record_corrected import QUESTIONS, RATED, TABLES, digits, world
from tests.analysis.worlds import claims
from tests.commands import Judgekit

RECORDED = json.loads(TABLES.read_text())
FEW_RESAMPLES = Rules(resamples=100)


def values(rows: list[str]) -> np.ndarray:
    return np.array([[np.nan if cell == "." else float(cell) for cell in row] for row in rows])


def table_of(people: np.ndarray, **columns: np.ndarray) -> pd.DataFrame:
    runs, n = people.shape
    ids = [f"q{place:04}" for place in range(n)]
    keys = pd.DataFrame({"id": ids * runs, "run": np.repeat(list("abcdef")[:runs], n), "human": people.ravel()})
    return keys.assign(**{name: scores.ravel() for name, scores in columns.items()})


def compared(table: pd.DataFrame, drawn: str | None = "random", rules: Rules = FEW_RESAMPLES) -> Comparison:
    return compare(table, outcome=DeclaredOutcome("human", drawn=drawn), rules=rules)


@pytest.mark.parametrize("seed", range(10))
def test_the_corrected_lead_is_that_of_cje_and_truescore_within_a_point(seed: int) -> None:
    recorded = RECORDED["worlds"][seed]
    people, judge = values(recorded["people"]), values(recorded["judge"])
    rng = np.random.default_rng(seed)
    found = compared(table_of(people, judge=judge, other=rng.normal(size=judge.shape))).decision
    (lead,) = claims(found, "corrected lead").values()
    ahead = lead.value / 100 if lead.subject == "a" else -lead.value / 100
    assert ahead == pytest.approx(recorded["cje"], abs=0.01)
    assert ahead == pytest.approx(recorded["truescore"], abs=0.01)
    assert claims(found, "partly rated")["judge"].value == RATED


def test_the_recorded_worlds_are_told_apart_by_the_check() -> None:
    gaps = []
    for recorded in RECORDED["worlds"]:
        people, judge = values(recorded["people"]), values(recorded["judge"])
        alone = float(np.nanmean(people[0]) - np.nanmean(people[1])), float(judge[0].mean() - judge[1].mean())
        gaps.append([abs(lead - recorded["truescore"]) for lead in alone])
    assert (np.max(gaps, axis=0) > 0.02).all(), "people alone and the judge alone differ from what others correct"
    people, judge = world(3)
    assert RECORDED["worlds"][3]["people"] == digits(people)
    assert RECORDED["worlds"][3]["judge"] == digits(judge)
    assert people.shape == (2, QUESTIONS)


def rated_in_part(rated: int, n: int = 300, seed: int = 0, runs: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    skill = np.linspace(0.2, -0.2, runs)[:, None]
    right = (rng.normal(size=n) + skill + rng.normal(size=(runs, n)) > 0).astype(float)
    judge = np.where(rng.random(right.shape) < 0.1, 1 - right, right)
    people = np.full(right.shape, np.nan)
    drawn = rng.choice(n, rated, replace=False)
    people[:, drawn] = right[:, drawn]
    return people, judge


def test_declared_random_the_corrected_quality_decides_beside_the_bound_of_the_rated_questions() -> None:
    people, judge = rated_in_part(75)
    found = compared(table_of(people, judge=judge)).decision
    ratings_alone = table_of(people, judge=judge).dropna()
    alone = compared(ratings_alone, drawn=None).decision
    by_ratings = claims(alone, "run")
    corrected = claims(found, "run")
    leader = min(by_ratings, key=lambda run: -by_ratings[run].low)
    beside = claims(found, "rated alone")
    assert beside[leader].high == pytest.approx(-by_ratings[leader].low)
    assert max(-claim.low for claim in corrected.values()) != max(-claim.low for claim in by_ratings.values())
    said = dict(found.lines)["Choose"]
    assert "People rated all answers to 75 of 300 questions, drawn at random: judge, which scores all, is" in said
    assert "By the rated questions alone" in said


def test_not_declared_random_the_rated_questions_decide_alone_and_that_is_said() -> None:
    people, judge = rated_in_part(75)
    whole = table_of(people, judge=judge)
    found, rated = (
        compare(table, outcome=DeclaredOutcome("human"), rules=FEW_RESAMPLES).decision
        for table in (whole, whole[whole["human"].notna()])
    )
    assert "People rated all answers to 75 of 300 questions, and these alone decide." in dict(found.lines)["Choose"]
    assert "`--drawn random`" in dict(found.lines)["Choose"]
    assert {run: claim.sentence.partition(":")[0] for run, claim in claims(found, "run").items()} == {
        run: claim.sentence.partition(":")[0] for run, claim in claims(rated, "run").items()
    }
    assert not claims(found, "corrected lead")
    assert not claims(rated, "partly rated")


def test_a_judge_corrected_by_fewer_than_fifty_rated_questions_decides_nothing() -> None:
    people, judge = rated_in_part(49)
    found = compared(table_of(people, judge=judge)).decision
    assert claims(found, "corrected lead")
    assert not claims(found, "rated alone")
    assert "which decide alone: from 50 on, judge corrected by them does." in dict(found.lines)["Choose"]
    undeclared = compared(table_of(people, judge=judge), drawn=None).decision
    assert "then from 50 of them on judge, which scores all, counts too" in dict(undeclared.lines)["Choose"]
    people, judge = rated_in_part(50)
    assert claims(compared(table_of(people, judge=judge)).decision, "rated alone")


def test_the_scale_of_a_judge_changes_nothing() -> None:
    people, judge = rated_in_part(80, runs=3)
    plain, stars = (
        claims(compared(table_of(people, judge=scores)).decision, "corrected lead") for scores in (judge, 1 + 4 * judge)
    )
    assert plain == stars


def test_copies_of_questions_are_counted_once() -> None:
    people, judge = rated_in_part(60)
    table = table_of(people, judge=judge)
    table["question"] = "What is " + table["id"] + "?"
    copies = pd.concat([table.assign(id=table["id"] + f"-{copy}") for copy in range(3)])
    once, thrice = (claims(compared(each).decision, "corrected lead") for each in (table, copies))
    assert once == thrice


def test_a_judge_that_lacks_many_scores_is_not_corrected_and_that_is_said() -> None:
    people, judge = rated_in_part(75)
    lacking = judge.copy()
    lacking[0, :20] = np.nan
    found = compared(table_of(people, judge=lacking))
    assert not claims(found.decision, "partly rated")
    assert any("No labeling is corrected by the rated questions." in warning for warning in found.warnings)


def test_where_most_answers_are_rated_nobody_is_asked_how_they_were_drawn() -> None:
    people, judge = rated_in_part(160)
    assert not claims(compared(table_of(people, judge=judge), drawn=None).decision, "partly rated")


def test_the_command_takes_how_rated_questions_were_drawn(judgekit: Judgekit, tmp_path: Path) -> None:
    people, judge = rated_in_part(75)
    table_of(people, judge=judge).to_csv(tmp_path / "answers.csv", index=False)
    asked = ("compare", "--scores", tmp_path / "answers.csv", "--outcome", "human", "--resamples", 100)
    assert "these alone decide" in " ".join(judgekit(*asked, code=0).out.split())
    out = judgekit(*asked, "--drawn", "random", code=0).out
    assert "judge, which scores all, is corrected by them and decides." in " ".join(out.split())


def test_one_lead_with_two_intervals_says_why() -> None:
    people, judge = rated_in_part(50, 400, seed=3)
    found = compared(table_of(people, judge=judge)).decision
    (lead,) = claims(found, "corrected lead").values()
    (choice,) = claims(found, "choose").values()
    assert lead.value == pytest.approx(choice.value)
    assert lead.low < choice.low
    assert (
        "This interval has two sides; what to ship is a question of one side, whose limit is narrower." in lead.sentence
    )
    undecided, judge = rated_in_part(49)
    assert "two sides" not in str(compared(table_of(undecided, judge=judge)).decision)


def test_a_bound_of_the_ratings_alone_that_is_narrower_does_not_decide_afterwards() -> None:
    told = {False: 0, True: 0}
    for seed in range(12):
        people, judge = rated_in_part(50, 120, seed=seed)
        noise = np.random.default_rng(seed).random(judge.shape)
        found = compared(table_of(people, judge=np.where(noise < 0.35, 1 - judge, judge))).decision
        if not claims(found, "rated alone"):
            continue
        ((run, alone),) = claims(found, "rated alone").items()
        corrected = -claims(found, "run")[run].low
        narrower = alone.high < corrected
        assert ("That is narrower than judge corrected, which decides even so" in alone.sentence) == narrower
        told[narrower] += 1
    assert told[True]
    assert told[False]


def test_no_lead_is_larger_than_all_there_is() -> None:
    people, judge = rated_in_part(6)
    (lead,) = claims(compared(table_of(people, judge=judge)).decision, "corrected lead").values()
    assert -100 <= lead.low <= lead.value <= lead.high <= 100
