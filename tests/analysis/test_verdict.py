"""The verdict: one for each use, in words that say which comparison is meant."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from judgekit.analysis import compare
from judgekit.analysis.controls import RETRIEVER
from judgekit.analysis.uses import _outweighs
from judgekit.labelers.base import Needs

RUNS = ("bm25", "dense", "rrf", "tfidf")


def world(
    labelings: dict[str, tuple[float, float]], n: int = 400, runs: tuple[str, ...] = RUNS, seed: int = 0, skill=0.4
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Answers that depend on how easy a question is and on the run; per labeling how much of each its scores hold."""
    rng = np.random.default_rng(seed)
    ease, run = rng.normal(size=n), np.linspace(-skill, skill, len(runs))[:, None]
    luck = rng.normal(size=(len(runs), n)) * 0.7
    right = (ease + run + luck > 0.3).astype(float)
    ids = [f"q{i:04d}" for i in range(n)]
    scores, quality = [], []
    for row, name in enumerate(runs):
        quality.append(
            pd.DataFrame({"run": name, "depth": 5, "model": "m", "query_id": ids, "metric": "em", "value": right[row]})
        )
    for labeling, (easy, own) in labelings.items():
        value = easy * ease + own * (run + luck) + (0.5 * rng.normal(size=(len(runs), n)) if own else 0)
        for row, name in enumerate(runs):
            scores.append(
                pd.DataFrame(
                    {"labeling": labeling, "run": name, "measure": "nDCG@5", "query_id": ids, "value": value[row]}
                )
            )
    return pd.concat(scores, ignore_index=True), pd.concat(quality, ignore_index=True)


def costs(**requests: float) -> pd.DataFrame:
    return pd.DataFrame({"labeling": list(requests), "requests": list(requests.values())})


def test_the_same_label_for_every_document_of_a_question_never_wins_the_choice_of_runs() -> None:
    found = compare(*world({"easy": (1.0, 0.0), "own": (0.0, 1.0)}), resamples=999)
    choose, find = found.verdicts["choose-runs"], found.verdicts["find-questions"]
    assert found.verdict is choose
    assert choose.winner == "own"
    assert find.winner == "easy"
    gains = found.gains[found.gains["without"] == ""].set_index("labeling")["gain"]
    assert gains["easy"] == 0
    assert gains["own"] > 0.02


def test_the_first_sentence_says_which_comparison_is_meant_and_where_the_other_use_has_another_leader() -> None:
    found = compare(*world({"easy": (1.0, 0.0), "own": (0.0, 1.0)}), resamples=999)
    headline = found.verdict.headline
    assert headline.startswith("To choose between retrievers (these 4 runs; they differ on ")
    assert "on the same question 'own' puts the better-answered run first" in headline
    assert "to find the questions that fail, 'easy' leads instead" in headline
    other = compare(*world({"easy": (1.0, 0.0), "own": (0.0, 1.0)}), use="find-questions", resamples=999).verdict
    assert other.headline.startswith("To find the questions that fail (400 questions): of two questions of each of")
    assert "to choose runs, 'own' leads instead" in other.headline


def test_one_run_can_only_be_asked_which_questions_fail() -> None:
    found = compare(*world({"own": (0.5, 1.0)}, runs=("bm25",)), resamples=200)
    assert found.verdict.primary.use == "find-questions"
    assert list(found.gains["labeling"]) == []


def test_labels_at_random_are_not_called_a_guide() -> None:
    scores, quality = world({"own": (0.0, 1.0)})
    noise = scores.assign(labeling="noise", value=np.random.default_rng(1).normal(size=len(scores)))
    found = compare(pd.concat([scores, noise]), quality, resamples=999)
    assert "'noise' is not shown to be better than chance" in found.verdict.text
    alone = compare(noise, quality, resamples=999).verdict
    assert alone.winner is None
    assert alone.leaders == ()
    assert "it is not shown to be better than chance" in alone.text or "none is shown" in alone.text


def test_labels_the_wrong_way_round_are_worse_than_chance() -> None:
    scores, quality = world({"own": (0.0, 1.0)})
    turned = scores.assign(labeling="turned", value=-scores["value"])
    text = compare(pd.concat([scores, turned]), quality, resamples=999).verdict.text
    assert "'turned' does worse than chance: high scores go with the worse answers" in text


def test_the_cheapest_that_keeps_half_of_the_gain_is_named_and_not_the_free_one_that_does_not() -> None:
    data = world({"free": (1.0, 0.0), "cheap": (0.0, 0.9), "dear": (0.0, 1.0)}, n=600)
    found = compare(*data, costs=costs(free=0, cheap=10, dear=1000), resamples=999).verdict
    assert found.cheapest == "cheap"
    assert "Cheapest that keeps at least 50% of what the best wins: 'cheap' (may lose at most" in found.text
    assert "'dear' costs more and is not shown to be better than 'cheap'" in found.text


def test_where_the_choice_is_worth_less_than_the_margin_no_labels_are_needed() -> None:
    data = world({"own": (0.0, 1.0), "other": (0.0, 0.8)}, n=600, skill=0.02)
    found = compare(*data, costs=costs(own=1, other=2), margin_points=8, resamples=999).verdict
    assert found.cheapest == ""
    assert "worth less than 8 points: no labels are needed" in found.text


def test_without_costs_nothing_is_said_of_the_cheapest() -> None:
    assert "heapest" not in compare(*world({"a": (0, 1.0), "b": (0, 0.9)}), resamples=200).verdict.text


def test_the_run_that_carries_the_gain_is_named() -> None:
    scores, quality = world({"own": (0.0, 1.0)}, skill=0.01)
    bad = quality["run"] == "tfidf"
    quality = quality.assign(value=quality["value"].mask(bad & (quality.index % 3 > 0), 0.0))
    low = scores["run"] == "tfidf"
    scores = scores.assign(value=scores["value"].mask(low, scores["value"] - 2))
    text = compare(scores, quality, resamples=999).verdict.text
    assert "Without 'tfidf', choosing between the other runs by 'own' wins" in text
    assert "they are too alike" in text


def test_a_question_only_twin_stands_beside_the_number_that_it_takes_away() -> None:
    scores, quality = world({"easy": (1.0, 0.0)})
    twin = scores[scores["run"] == "bm25"].set_index("query_id")["value"].to_dict()
    found = compare(scores, quality, twins={"easy": twin}, resamples=200).verdicts["find-questions"]
    value = 100 * found.found.standings[0].concordance
    assert f"'easy': {value:.0f} times in 100; the same label for every document of a question gives" in found.text
    assert "it tells easy questions from hard ones" in found.text


def test_a_labeling_that_says_what_the_ranks_say_adds_nothing_to_them() -> None:
    scores, quality = world({"own": (0.0, 1.0)})
    ranks = scores.assign(labeling=RETRIEVER)
    found = compare(pd.concat([scores, ranks]), quality, controls=[RETRIEVER], resamples=200)
    assert "'own' is not shown to add anything to the runs' own ranks" in found.verdict.text
    assert found.verdict.ranking == ("own",), "a control never wins"
    assert set(found.controls["control"]) == {RETRIEVER}


def test_a_closed_book_control_that_is_empty_says_so() -> None:
    scores, quality = world({"own": (0.5, 1.0)})
    none = quality[quality["run"] == "bm25"].assign(run="all", depth=0, value=0.0)
    text = compare(scores, pd.concat([quality, none]), resamples=200).verdicts["find-questions"].text
    assert "closed-book control says nothing: all closed-book answers have the same quality" in text


def test_what_a_labeling_shares_with_the_outcome_is_said() -> None:
    needs = {"own": Needs(references=True, outcome_metric="em")}
    text = compare(*world({"own": (0.0, 1.0)}), needs=needs, resamples=200).verdict.text
    assert "With the outcome, 'own' shares the metric and the reference answers." in text


def test_equal_labelings_are_not_told_apart_and_decide_alike() -> None:
    scores, quality = world({"a": (0.0, 1.0)})
    found = compare(pd.concat([scores, scores.assign(labeling="b")]), quality, resamples=200).verdict
    assert "they cannot be told apart" in found.headline
    assert not found.found.better
    assert found.winner is None


def test_how_many_questions_it_takes_counts_all_of_them_and_has_a_range() -> None:
    found = compare(*world({"a": (0.0, 1.0), "b": (0.3, 0.7)}, n=150), resamples=999).verdict
    for needed in found.found.needed.values():
        assert needed is None or found.found.queries < needed[0] <= needed[1]


def test_a_claim_needs_twenty_questions_on_which_labelings_differ() -> None:
    found = compare(*world({"a": (0.0, 1.0), "b": (0.0, 0.1)}, n=24), resamples=999).verdict
    assert found.found.better == frozenset()
    assert "fewer than 20 such questions cannot tell them apart" in found.headline


def test_a_labeling_that_is_ahead_on_nearly_every_question_is_better() -> None:
    """With many runs hardly any question favours the weaker labeling, and nothing is left to doubt."""
    runs = tuple(f"run{number:02}" for number in range(30))
    found = compare(*world({"weak": (0.0, 0.1), "own": (0.0, 1.0)}, n=60, runs=runs, skill=2), resamples=999)
    assert found.verdict.winner == "own"
    assert found.verdict.found.needed == {}


def test_rare_questions_on_which_a_labeling_loses_all_may_be_missing_from_those_at_hand() -> None:
    ahead_by_little = np.full(60, 0.05)
    assert not _outweighs(ahead_by_little, 59, 0.975), "three questions of a hundred may undo it"
    assert _outweighs(np.full(60, 0.2), 59, 0.975)
    assert _outweighs(np.full(600, 0.05), 599, 0.975)


def test_queries_that_go_together_are_resampled_together() -> None:
    scores, quality = world({"a": (0.0, 1.0)}, n=60)
    copies = [frame.assign(query_id=frame["query_id"] + f"-{copy}") for copy in range(5) for frame in (scores,)]
    answers = [quality.assign(query_id=quality["query_id"] + f"-{copy}") for copy in range(5)]
    many = pd.concat(copies), pd.concat(answers)
    groups = {query: query.partition("-")[0] for query in many[0]["query_id"].unique()}
    alone = compare(scores, quality, resamples=999).verdict.found.standings[0]
    grouped = compare(*many, groups=groups, resamples=999).verdict.found.standings[0]
    blind = compare(*many, resamples=999).verdict.found.standings[0]
    assert grouped.high - grouped.low == pytest.approx(alone.high - alone.low, rel=0.15)
    assert blind.high - blind.low < 0.6 * (alone.high - alone.low)


def test_few_groups_are_a_warning_and_claim_nothing() -> None:
    scores, quality = world({"a": (0.0, 1.0), "b": (0.0, 0.1)}, n=400)
    groups = {query: str(int(query[1:]) % 10) for query in scores["query_id"].unique()}
    found = compare(scores, quality, groups=groups, resamples=999)
    assert any("Only 10 groups" in warning for warning in found.warnings)
    assert found.verdict.found.better == frozenset()


def test_answers_of_a_model_that_no_labeling_used_have_their_own_verdict() -> None:
    scores, quality = world({"own": (0.0, 1.0)})
    second = quality.assign(model="other")
    endpoint = pytest.importorskip("judgekit").Endpoint("x", "http://localhost:1/v1", "m")
    needs = {"own": Needs(endpoints=(endpoint,))}
    found = compare(scores, pd.concat([quality, second]), primary_model="m", needs=needs, resamples=200)
    assert set(found.independent) == {"other"}
    assert found.independent["other"]["choose-runs"].primary.model == "other"
    assert compare(scores, quality, needs=needs, resamples=200).independent == {}
