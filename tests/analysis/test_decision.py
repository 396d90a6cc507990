"""The decision: what it says in each situation, and what it never says."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import judgekit as jk
from judgekit.analysis.background import RETRIEVER, Background
from judgekit.analysis.claims import Claim
from judgekit.analysis.comparison import compare, decide
from judgekit.analysis.decision import Decision
from judgekit.analysis.intervals import least_leads
from judgekit.analysis.leakage import AnsweredBy
from judgekit.analysis.money import Money, StrategyCost, check_costs
from judgekit.collection import Pool
from judgekit.errors import DataError, UsageError
from judgekit.labelers.base import Needs
from judgekit.rules import Rules, Source, SourcedOutcome
from tests.analysis.worlds import RUNS, claims, finder, tables, world
from tests.commands import Judgekit, in_process

Tables = tuple[pd.DataFrame, pd.DataFrame]
READER = jk.Endpoint("x", "http://localhost:1/v1", "m")
COSTS = pd.DataFrame({"labeling": ["own", "other", "answers"], "requests": [1000.0, 0.0, 300.0]})
CHEAP = COSTS.assign(requests=[1000.0, 100.0, 300.0])
POOL = Pool(100, 500, 1000, 100, (5, 40, 20, 22), (20, 30, 25, 26))


@pytest.fixture
def judgekit(capfd: pytest.CaptureFixture[str]) -> Judgekit:
    return in_process(capfd)


def decided(data: Tables, **options: Any) -> tuple[Decision, dict[str, str]]:
    """Return the decision on two tables, and its lines."""
    decision = compare(*data, **({"rules": Rules(resamples=300)} | options)).decision
    return decision, dict(decision.lines)


def written(folder: Path, scores: pd.DataFrame, quality: pd.DataFrame) -> list[object]:
    """Return the arguments of `judgekit compare` on two tables, which are written."""
    scores.to_csv(folder / "scores.csv", index=False)
    quality.to_csv(folder / "quality.csv", index=False)
    return ["compare", "--scores", folder / "scores.csv", "--quality", folder / "quality.csv"]


def one_ahead(runs: int = 12, n: int = 400, ahead: float = 0.25) -> Tables:
    """Twelve runs, one of which answers far better; the labels are noise."""
    rng = np.random.default_rng(1)
    quality = (rng.random((runs, n)) < 0.4).astype(float)
    quality[3] = rng.random(n) < 0.4 + ahead
    names = tuple(f"r{i:02d}" for i in range(runs))
    return tables({"noise": rng.normal(size=quality.shape)}, quality, names)


def flattering(n: int = 300) -> Tables:
    """Labels that follow the answers and put one run far too high; others that follow less and favour nobody."""
    rng = np.random.default_rng(3)
    quality = (rng.random((6, n)) < np.linspace(0.4, 0.6, 6)[:, None]).astype(float)
    own = quality + 0.7 * rng.normal(size=quality.shape)
    own[0] += 1.0
    fair = quality + 1.5 * rng.normal(size=quality.shape)
    return tables({"own": own, "fair": fair}, quality, tuple("abcdef"))


def test_the_best_of_twelve_is_named_where_a_mean_over_pairs_hides_it(judgekit: Judgekit, tmp_path: Path) -> None:
    decision, lines = decided(one_ahead())
    assert lines["Choose"].startswith("Ship r03: it is shown to be the best of 12, ")
    assert decision.leader == "r03"
    assert "keep the cheap" not in decision.text
    assert "Next" not in lines, "the choice is made"
    out = judgekit(*written(tmp_path, *one_ahead()), "--resamples", 300).out
    assert "Ship r03: it is shown to be the best of 12" in out


def test_keep_the_cheapest_is_said_only_if_every_runs_bound_is_below_the_margin() -> None:
    rng = np.random.default_rng(0)
    right = (rng.random(3000) < 0.5).astype(float)
    quality = np.stack([np.where(rng.random(3000) < 0.01, 1 - right, right) for _ in range(3)])
    data = tables({"own": quality + rng.normal(size=quality.shape)}, quality, ("a", "b", "c"))
    decision, lines = decided(data)
    assert lines["Choose"].startswith("Ship the cheapest of these 3 runs: none is more than ")
    worst = max(-claim.low for claim in claims(decision, "run").values())
    assert claims(decision, "any")[""].value == worst <= 2
    _, strict = decided(data, rules=Rules(resamples=300, margin_points=worst - 0.01))
    assert "cheapest" not in strict["Choose"]


def test_the_rule_leaves_out_labels_that_flatter_their_pick_and_keeps_those_that_follow_less() -> None:
    decision, lines = decided(flattering())
    follows = claims(decision, "follows")
    assert follows["own"].value > follows["fair"].value, "by r alone it would be kept"
    assert decision.kept == "fair"
    assert "Do not choose runs by own: " in lines["Keep"]
    assert "keep own" not in decision.text


@pytest.mark.parametrize(
    ("n", "best", "noise", "favour", "seed", "why"),
    [
        (100, 0.5, 0.7, 0.8, 0, "Do not choose runs by own: it is shown to flatter bm25, its own pick."),
        (300, 0.62, 1.0, 0.17, 1, "own picks bm25, which the answers show to be worse than the best."),
    ],
)
def test_each_reason_alone_leaves_out_labels_that_follow_closely(
    n: int, best: float, noise: float, favour: float, seed: int, why: str
) -> None:
    rng = np.random.default_rng(seed)
    quality = (rng.random((4, n)) < np.array([[0.5], [0.5], [0.5], [best]])).astype(float)
    own = quality + noise * rng.normal(size=quality.shape)
    own[0] += favour
    decision, lines = decided(tables({"own": own}, quality))
    assert claims(decision, "run")["bm25"].shown == ("worse" in why)
    assert claims(decision, "follows")["own"].low > 0
    assert why in lines["Keep"]
    assert lines["Keep"].count("bm25") == 1
    assert not decision.kept


def test_a_price_says_nothing_about_accuracy(judgekit: Judgekit, tmp_path: Path) -> None:
    scores, quality = world({"own": (0.0, 1.0), "other": (0.8, 0.2)}, n=200)
    for own, other in ((900.0, 1.0), (1.0, 900.0), (208.03, 208.04), (208.04, 208.03)):
        costs = COSTS.assign(money=[own, other, 300.0])
        decision, _ = decided((scores, quality), background=Background(costs=costs, pool=POOL))
        assert decision.kept == "own"
        assert "safer" not in decision.text
    assert not claims(decision, "cheaper"), "a cent is no difference"
    assert "safer" not in judgekit(*written(tmp_path, scores, quality), "--resamples", 100).out


def test_a_less_expensive_labeling_is_offered_only_within_one_standard_error() -> None:
    rng = np.random.default_rng(1)
    quality = (rng.random((4, 300)) < 0.5).astype(float)
    for noise, offered in ((0.85, True), (2.0, False)):
        own, other = (quality + size * rng.normal(size=quality.shape) for size in (0.8, noise))
        ranks = quality + 0.8 * rng.normal(size=quality.shape)
        scores, answers = tables({"own": own, "other": other, "ranks": ranks}, quality)
        data = scores.replace({"ranks": RETRIEVER}), answers
        decision, lines = decided(data, background=Background(controls=[RETRIEVER], costs=CHEAP, pool=POOL))
        assert "other" in claims(decision, "no better")
        assert ("other is not shown to follow more closely than the runs' own ranks" in lines["Keep"]) == offered
        (cheaper,) = claims(decision, "cheaper").values()
        assert (decision.kept, cheaper.subject, cheaper.shown) == ("own", "other", offered)
        assert ("To save requests, keep other instead: " in lines["Keep"]) == offered
        assert (" but its r is" in lines["Keep"]) != offered
        assert "10 requests for other" in lines["Cost"] or "50 for other" in lines["Cost"]
        # The interval is that of the claim "closer": both say whether the difference is shown.
        assert cheaper.low <= cheaper.value < 0
        assert (cheaper.high < 0) == bool(claims(decision, "closer"))
        assert "which may be chance" not in lines["Keep"]


def test_a_less_expensive_labeling_that_is_not_shown_to_be_useful_is_not_even_described() -> None:
    rng = np.random.default_rng(0)
    quality = (rng.random((4, 300)) < 0.5).astype(float)
    own, other = (quality + size * rng.normal(size=quality.shape) for size in (0.8, 15.0))
    decision, _ = decided(tables({"own": own, "other": other}, quality), background=Background(costs=COSTS, pool=POOL))
    follows = claims(decision, "follows")["other"]
    assert follows.low < 0 < follows.value
    assert not claims(decision, "cheaper")


@pytest.mark.parametrize(
    ("costs", "needs", "said", "saves"),
    [
        ({"requests": [900.0, 900.0]}, {"own": Needs(references=True)}, "no reference answers", "reference answers"),
        (
            {"requests": [900.0, 300.0]},
            {"own": Needs(references=True)},
            "fewer requests and no reference answers",
            "requests and reference answers",
        ),
        ({"requests": [900.0, 300.0]}, {}, "fewer requests", "requests"),
        ({"requests": [900.0, 90.0], "money": [9.0, 0.9]}, {}, "", "money"),
    ],
)
def test_what_a_less_expensive_labeling_saves_is_named_and_money_only_where_prices_are_known(
    costs: dict[str, list[float]], needs: dict[str, Needs], said: str, saves: str
) -> None:
    rng = np.random.default_rng(1)
    quality = (rng.random((4, 300)) < 0.5).astype(float)
    own, other = (quality + size * rng.normal(size=quality.shape) for size in (0.8, 0.85))
    table = pd.DataFrame({"labeling": ["own", "other"], **costs})
    background = Background(costs=table, pool=POOL, needs=needs)
    _, lines = decided(tables({"own": own, "other": other}, quality), background=background)
    less = f"needs {said}" if said else "costs less"
    assert f" To save {saves}, keep other instead: it {less}, and its r is " in lines["Keep"]


@pytest.mark.parametrize("source", ["references", "people", "trusted"])
def test_new_answers_need_what_rates_them_and_choose_is_named_only_where_it_rates_them(source: Source) -> None:
    scores, quality = world({"own": (0.0, 1.0), "other": (0.0, 0.5)}, n=100, skill=0.05)
    needs = {"own": Needs(references=True)}
    money = Money("EUR", reference=2.0)
    costs = COSTS.assign(money=[10.0, 0.0, 3.0])
    background = Background(costs=costs, needs=needs, money=money, pool=replace(POOL, at_hand=5000))
    outcome = SourcedOutcome("em", source=source)
    lines = decided((scores, quality), background=background, outcome=outcome)[1]
    asked = source == "references"
    assert ("All but other need reference answers (€2.00 each)." in lines["Cost"]) == asked
    assert (" own needs reference answers (€2.00 each)." in lines["Cost"]) != asked
    assert ("New answers need new ratings." in lines["Cost"]) == (source == "people")
    assert (" `judgekit choose` asks only as many of your 5,000 " in lines["Next"]) == asked
    sampled = replace(background, weights=dict.fromkeys(quality["query_id"], 1.0))
    lines = decided((scores, quality), background=sampled, outcome=outcome)[1]
    assert "judgekit choose" not in lines["Next"], "it asks the questions of the sample only"


def test_points_of_a_pilot_whose_questions_were_not_equally_likely_say_so() -> None:
    scores, quality = world({"own": (0.0, 1.0)}, n=100)
    ids = quality["query_id"].drop_duplicates()
    said = "Points count each question of the sample once, though some were likelier to be drawn than others."
    for weights, there in (({}, False), (dict.fromkeys(ids, 3.0), False), (dict.fromkeys(ids[:50], 5.0), True)):
        decision, lines = decided((scores, quality), background=Background(weights=weights))
        assert (said in lines["Choose"]) == there == bool(claims(decision, "drawn"))


@pytest.mark.parametrize("name", ["x", "judge(prompt=graded,endpoint=a-very-long-name-that-nobody-types)"])
def test_what_a_claim_hinges_on_stands_beside_it_however_long_names_are(name: str) -> None:
    rng = np.random.default_rng(5)
    quality = np.zeros((4, 120))
    quality[3] = rng.random(120) < 0.5  # only one run ever answers
    scores = 1.5 * quality + rng.normal(size=quality.shape)
    runs = tuple(f"{name}-{i}" for i in range(4))
    needs = {name: Needs(endpoints=(READER,), references=True)}
    background = Background(needs=needs, answering={"m": AnsweredBy("m", "")}, costs=None, pool=POOL)
    decision, lines = decided(tables({name.replace(" ", ""): scores}, quality, runs), background=background)
    assert decision.kept == name
    assert f"Without {runs[3]}, {name} would not be shown to follow the answers." in lines["Hinges"]
    assert f"{name} asks the answering model: with another one it may do worse." in lines["Keep"]
    flat = " ".join(decision.text.split())
    assert all(text in flat for text in lines.values())


def test_two_runs_are_compared_with_their_bounds_and_seldom_show_a_labeling() -> None:
    rng = np.random.default_rng(7)
    right = rng.random(200) < 0.6
    quality = np.where(rng.random((2, 200)) < 0.1, ~right, right).astype(float)
    noise = rng.normal(size=quality.shape)
    decision, lines = decided(tables({"own": 0.1 * quality + noise}, quality, ("dense", "bm25")))
    better, worse = sorted(claims(decision, "run"), key=lambda run: -claims(decision, "run")[run].value)
    assert lines["Choose"].startswith(f"If you ship now, ship {better}: it answers best so far, and is at most ")
    assert f"{better} or {worse} may be the best of these 2 runs; none is shown to be worse." in lines["Choose"]
    assert -claims(decision, "run")[worse].low > -claims(decision, "run")[better].low
    assert lines["Keep"].startswith("Do not choose runs by these labels yet: none is shown to follow the answers.")
    assert " own comes closest, with r = " in lines["Keep"]
    variants = "variants of yours, such as another chunk size, depth or reranker"
    assert f" Two runs seldom suffice: add {variants}. Until then, buy no labels" in lines["Keep"]
    assert decision.kept == ""
    assert "New run" not in lines
    assert "To ship a run within 2 points of the best takes about " in lines["Next"]


def right_on(*of_runs: range, questions: int = 40) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([[float(question in own) for question in range(questions)] for own in of_runs])


@pytest.mark.parametrize(
    ("of_runs", "margin", "said"),
    [
        (
            (range(20), range(10, 30)),
            2.0,
            "If you ship now, ship a or b: they answer alike so far, and are at most 20.9 ",
        ),
        ((range(20), range(10, 30)), 50.0, "Ship the cheapest of these 2 runs: none is more than 20.9 points worse"),
        ((range(20), range(10, 30), range(3)), 50.0, "Ship a or b: they answer alike so far, and are at most 20.9 "),
        ((range(20), range(10, 31)), 2.0, "If you ship now, ship b: it answers best so far, and is at most "),
    ],
)
def test_of_runs_that_answer_alike_none_answers_best(of_runs: tuple[range, ...], margin: float, said: str) -> None:
    quality = right_on(*of_runs)
    scores = np.random.default_rng(3).normal(size=quality.shape)
    given = tables({"own": scores}, quality, tuple("abc"[: len(of_runs)]))
    decision = compare(*given, rules=Rules(resamples=1000, margin_points=margin)).decision
    chosen = dict(decision.lines)["Choose"]
    assert chosen.startswith(said)
    tied = "best so far" not in chosen
    assert tied == (len(of_runs[0]) == len(of_runs[1]))
    assert ("Only more questions can tell them apart." in chosen) == (tied and margin == 2.0)
    if "cheapest" in said:
        assert "a and b answer alike so far, and are at most 20.9 points worse than the best." in chosen


@pytest.mark.parametrize(
    ("asked", "right", "said"),
    [
        (range(12), range(2, 12), "If you ship now, ship a: it may lose least, and is at most "),
        (range(12), range(9), "If you ship now, ship a: it answers as well as any so far, and is at most "),
        (range(20), range(2, 20), "If you ship now, ship a: it answers best so far, and is at most "),
    ],
    ids=["a higher mean over fewer questions", "the same mean over fewer questions", "worse on those of both as well"],
)
def test_means_over_different_questions_choose_no_run(asked: range, right: range, said: str) -> None:
    quality = right_on(range(30) if asked == range(12) else range(37), right)
    quality[1, len(asked) :] = np.nan
    scores = np.random.default_rng(3).normal(size=quality.shape)
    decision = compare(*tables({"own": scores}, quality, ("a", "b")), rules=Rules(margin_points=2.0)).decision
    chosen = dict(decision.lines)["Choose"]
    assert chosen.startswith(said)
    assert "answers are missing: this holds whatever they are" in chosen
    runs = claims(decision, "run")
    assert runs["a"].low > runs["b"].low, "it may lose less"
    assert np.isnan(runs["b"].value)


def test_of_runs_that_answer_alike_only_those_within_the_margin_are_named_to_ship() -> None:
    quality = right_on(range(20), range(10, 30), range(10))
    quality[2, 31:40] = 1  # nearly as good, and seldom right where b is
    scores = np.random.default_rng(3).normal(size=quality.shape)
    decision = compare(*tables({"own": scores}, quality, ("a", "b", "c")), rules=Rules(margin_points=25.0)).decision
    loss = {name: -claim.low for name, claim in claims(decision, "run").items()}
    assert loss["a"] < 25 < loss["b"]
    assert dict(decision.lines)["Choose"].startswith(
        f"Ship a: it answers as well as any so far, and is at most {loss['a']:.1f}"
    )


def test_runs_whose_lists_are_equal_are_not_told_apart_by_more_questions() -> None:
    quality = right_on(range(20), range(20), range(10, 28))
    scores = np.random.default_rng(3).normal(size=quality.shape)
    ids = [f"q{query:04}" for query in range(40)]
    lists = []
    for name, doc in (("a", "x"), ("b", "x"), ("c", "y")):
        lists.append(jk.Run.from_frame(pd.DataFrame({"query_id": ids, "doc_id": doc, "score": 1.0}), name))
    given = tables({"own": scores}, quality, ("a", "b", "c"))
    chosen = dict(compare(*given, background=Background(lists=tuple(lists))).decision.lines)["Choose"]
    assert "ship a or b: they answer alike so far" in chosen
    assert "more questions" not in chosen


@pytest.mark.parametrize(
    ("easy", "worth"), [(1.0, "For finding questions that fail, words is free and shown"), (0.001, "")]
)
def test_where_nothing_is_shown_the_command_for_free_qrels_is_given(easy: float, worth: str) -> None:
    data = world({"judge": (0.0, 0.03), "words": (easy, 0.001), "old": (2.0, 0.0)}, n=100, skill=0.05)
    needs = {"judge": Needs(endpoints=(READER,)), "words": Needs(references=True), "old": Needs(existing=True)}
    background = Background(costs=COSTS, pool=POOL, needs=needs, file="my experiment.toml")
    decision, lines = decided(data, background=background)
    assert not decision.kept
    (words,) = (claim for claim in decision.claims if claim.kind == "finds" and "words" in claim.sentence)
    assert words.shown == bool(worth)
    command = "`judgekit build 'my experiment.toml' --labeling words`"
    assert f" {worth or 'For a first look at which passages are relevant, words is free'}" in lines["Keep"]
    assert f": {command} writes " in lines["Keep"]
    assert command in decision.text, "on one line"
    # Tables alone build nothing, and labels that cost something are not offered.
    for unknown in (replace(background, file=""), replace(background, needs={"judge": needs["judge"]})):
        assert "judgekit build" not in decided(data, background=unknown)[1]["Keep"]


def test_a_next_step_that_is_out_of_reach_is_no_next_step() -> None:
    scores, quality = world({"own": (0.0, 1.0)}, n=100, skill=0.05)
    for margin, reach in ((3, True), (0.5, False)):
        decision, lines = decided((scores, quality), rules=Rules(resamples=100, margin_points=margin))
        (more,) = claims(decision, "more questions").values()
        assert (more.value <= 20 * 100) == reach
        assert (" That is seldom worth it: if you can accept " in lines["Next"]) != reach


def test_the_number_of_questions_and_what_units_mean_stand_in_one_place() -> None:
    scores, quality = world({"own": (0.0, 1.0)}, n=137)
    background = Background(questions={}, costs=COSTS, pool=replace(POOL, queries=137))
    _, lines = decided((scores, quality), background=background)
    assert [line for line, text in lines.items() if "137" in text] == ["Based on"]
    assert lines["Based on"].startswith(
        "137 questions, 4 runs. Quality is the exact match (em) of the answers of m from the"
    )
    assert (
        " (1 point = .01). r correlates a run's score by the labels (nDCG@5) with quality, within each"
        in lines["Based on"]
    )
    assert lines["Cost"].startswith("To repeat this with as many new questions takes ")
    _, other = decided((scores, quality), background=replace(background, pool=POOL))
    assert other["Cost"].startswith("100 new questions take "), "another number is said"


def test_answers_that_are_missing_widen_the_bounds_and_stand_with_the_choice() -> None:
    scores, quality = world({"own": (0.0, 1.0)}, n=200)
    gone = (quality["run"] == "rrf") & (quality["query_id"] < "q0006")
    whole, lacking = (decided((scores, table))[0] for table in (quality, quality[~gone]))
    assert "6 answers are missing: this holds whatever they are." in dict(lacking.lines)["Choose"]
    assert claims(lacking, "run")["tfidf"].low < claims(whole, "run")["tfidf"].low


def test_rows_that_a_table_lacks_for_a_run_are_missing_and_not_inapplicable(judgekit: Judgekit, tmp_path: Path) -> None:
    scores, quality = world({"own": (0.0, 1.0), "other": (0.3, 0.5)}, n=200)
    best = (scores["labeling"] == "other") & (scores["run"] == "tfidf") & (scores["query_id"] < "q0012")
    out = judgekit(*written(tmp_path, scores[~best], quality), "--resamples", 200)
    assert "does not apply" not in out.out
    assert "other lacks 12 rows for tfidf ('q0000', 'q0001', 'q0002' and 9 more).\n" in out.err
    own = scores[~best].assign(measure="mine@5")
    out = judgekit(*written(tmp_path, own, quality), "--resamples", 200)
    assert "Nothing bounds them." in out.err
    said = " ".join(out.out.split())  # as one line, wherever the text is wrapped
    assert (
        "other lacks scores on 12 questions (q0000, q0001, q0002 and 9 more), where nothing bounds them: nothing is"
        " claimed of it, nor in comparison with it. Add these scores."
    ) in said
    # By its scores on the other questions it would lead over questions, and find more of those that fail.
    assert "larger tau" not in said
    assert "of two questions, own finds the worse answered one" in said


def test_labels_for_the_outcome_are_said_not_to_be_answers() -> None:
    scores, quality = world({"own": (0.0, 1.0)}, n=100)
    background = Background(quality="nDCG@10 by NIST", outcome=[Claim("people", "NIST judged.", qualifies="choose")])
    decision, lines = decided((scores, quality), background=background)
    said = "Quality means nDCG@10 by NIST, not answers: nothing here says which run answers better."
    assert lines["Choose"].startswith(said)
    assert "NIST judged." in lines["Choose"]
    assert "answers best" not in decision.text
    assert "follows nDCG@10 by NIST most closely" in lines["Keep"]


def test_a_further_run_takes_at_most_what_the_others_took_and_nothing_is_said_of_two() -> None:
    scores, quality = world({"own": (0.0, 1.0)}, n=100)
    lines = decided((scores, quality), background=Background(costs=COSTS, pool=POOL))[1]
    assert (
        lines["New run"] == "A new run needs at most 39 new answers; to label it instead needs at most 160 new labels."
    )
    # Not more than all that there is.
    many = replace(POOL, labels_again=(400, 700, 900, 999), answers_again=(99, 98, 97, 96))
    lines = decided((scores, quality), background=Background(costs=COSTS, pool=many))[1]
    assert lines["New run"].endswith(" at most 100 new answers; to label it instead needs at most 1,000 new labels.")
    trusted = Background(costs=COSTS, pool=POOL, quality="nDCG@10 by NIST")
    assert decided((scores, quality), background=trusted)[1]["New run"] == "A new run needs at most 160 new labels."
    two = replace(POOL, labels_again=(5, 40), answers_again=(20, 30))
    assert "New run" not in decided((scores, quality), background=Background(costs=COSTS, pool=two))[1]


@pytest.mark.parametrize(
    ("costs", "keep", "more", "needs"),
    [
        # A label takes a thousandth of what its labeling took, an answer a three-hundredth of what the answers took.
        (
            {"money": [9.0, 80.0]},
            "Keep own, for later",
            "",
            "10 to answer (39 new answers), or 1.44 to label (160 new labels)",
        ),
        (
            {"money": [30.0, 36.0]},
            "Keep the labels",
            "that costs no more than labelling it. Label it instead if fewer than about 130 of its",
            "4.68 to answer (39 new answers), or 4.80 to label",
        ),
        (
            {"money": [30.0, 42.67]},
            "Keep the labels",
            "that costs hardly more than labelling it. Label it",
            "5.55 to answer (39 new answers), or 4.80 to label",
        ),
        (
            {"money": [9.0, np.nan]},
            "Keep own, for later",
            "",
            "39 new answers; to label it instead needs at most 160 new labels",
        ),
        (
            {"money": [9000.0, 4.0]},
            "Keep the labels",
            "that costs no more than labelling it.",
            "0.52 to answer (39 new answers), or 1,440 to",
        ),
        (
            {"requests": [1000.0, 300.0]},
            "Keep the labels",
            "no more",
            "39 requests to answer (39 new answers), or 160 requests to",
        ),
        (
            {"requests": [1000.0, 300.0], "prompt_tokens": [1e5, 3e5], "completion_tokens": [5.0, 9e4]},
            "Keep own, for later",
            "",
            "51,000 tokens to answer (39 new answers), or 17,000 tokens to label (160 new labels)",
        ),
    ],
)
def test_labels_are_for_further_runs_only_where_they_take_less_than_answers(
    costs: dict[str, list[float]], keep: str, more: str, needs: str
) -> None:
    scores, quality = world({"own": (0.0, 1.0)}, n=100)
    table = pd.DataFrame({"labeling": ["own", "answers"], **costs})
    background = Background(costs=table, pool=replace(POOL, lists=300))
    decision, lines = decided((scores, quality), background=background)
    assert decision.kept == "own", "the rule names one labeling, whatever it costs"
    assert lines["Keep"].startswith(keep)
    assert ("For a new run, answer its questions: that costs " in lines["Keep"]) == (keep == "Keep the labels")
    assert more in lines["Keep"]
    assert needs in lines["New run"]
    # Without prices of answers nothing is said of them. Labels that exist cannot label a later run.
    for unknown, keep in (
        (replace(background, pool=POOL), "Keep own, for later runs too: "),
        (replace(background, needs={"own": Needs(existing=True)}), "Keep own for these runs: "),
        (replace(background, quality="nDCG@10 by NIST"), "Keep own, for later runs too: "),
    ):
        said = decided((scores, quality), background=unknown)[1]["Keep"]
        assert said.startswith(keep)
        assert "For a new run" not in said


def test_a_less_expensive_labeling_may_pay_for_further_runs_where_the_one_to_keep_does_not() -> None:
    rng = np.random.default_rng(1)
    quality = (rng.random((4, 300)) < 0.5).astype(float)
    own, other = (quality + size * rng.normal(size=quality.shape) for size in (0.8, 0.85))
    background = Background(costs=CHEAP, pool=replace(POOL, lists=300))
    _, lines = decided(tables({"own": own, "other": other}, quality), background=background)
    assert (
        "For a new run, answer its questions: that costs no more than labelling it. Label it instead if fewer than"
        in lines["Keep"]
    )
    assert " To save requests, keep other instead, also for new runs: it needs fewer requests, and " in lines["Keep"]


@pytest.mark.parametrize(
    ("mine", "theirs", "below"),
    [
        (StrategyCost(money=1.0), StrategyCost(money=1.2), True),
        (StrategyCost(money=1.0), StrategyCost(money=1.05), False),
        (StrategyCost(10, 0, 0), StrategyCost(20, 0, 0), True),
        (StrategyCost(10, 0, 1), StrategyCost(20, 0, 0), False),
        (StrategyCost(10, 0, 0), StrategyCost(10, 0, 1), True),
        (StrategyCost(), StrategyCost(20, 0, 0), False),
    ],
)
def test_costs_within_their_spread_are_ties_and_requests_are_not_weighed_against_references(
    mine: StrategyCost, theirs: StrategyCost, below: bool
) -> None:
    assert mine.below(theirs, 100) == below
    assert not theirs.below(mine, 100)


@pytest.mark.parametrize(
    ("refused", "said"),
    [
        (lambda: Rules(margin_points=-1), "margin_points"),
        (lambda: Money(budget=-0.1), "budget must be at least 0, not -0.1"),
        (lambda: Money(price={"own": np.inf}), "price of own must be at least 0, not inf"),
        (lambda: check_costs(pd.DataFrame({"labeling": ["a", "b", "a"]})), "two rows for labeling 'a'"),
        (lambda: check_costs(pd.DataFrame({"labeling": ["a"], "requests": [-1]})), "a negative cost"),
    ],
)
def test_costs_and_margins_that_cannot_be_are_refused(refused: Callable[[], object], said: str) -> None:
    with pytest.raises((UsageError, DataError), match=said):
        refused()


def test_answers_made_from_other_documents_than_the_runs_are_refused(judgekit: Judgekit, tmp_path: Path) -> None:
    (tmp_path / "queries.jsonl").write_text('{"query_id": "q1", "text": "Who?", "answers": ["Ada"]}\n')
    (tmp_path / "docs.jsonl").write_text("".join(f'{{"doc_id": "d{i}", "text": "Ada {i}"}}\n' for i in range(4)))
    (tmp_path / "bm25.trec").write_text("q1 Q0 d0 1 3 x\nq1 Q0 d1 2 2 x\nq1 Q0 d2 3 1 x\n")
    given = ["answer", "--queries", tmp_path / "queries.jsonl", "--run", f"bm25={tmp_path / 'bm25.trec'}"]
    given += ["--depth", 2, "--import", tmp_path / "answers.jsonl", "--out", tmp_path / "quality.csv", "--metric", "em"]

    def answered(**context: object) -> object:
        (tmp_path / "answers.jsonl").write_text(json.dumps({"query_id": "q1", "answer": "Ada", **context}) + "\n")
        return judgekit(*given)

    said = answered(context=["d3", "d1"])
    assert said.code == 2
    assert "1 imported answers were not made from the top of their run. The first, to query 'q1'" in said.err
    assert answered(context=["d1", "d0"]).code == 0, "in whichever order the prompt had them"
    assert "contexts" not in pd.read_csv(tmp_path / "quality.csv").columns
    assert answered(context="d0 d1").code == 0
    assert answered().code == 0
    assert set(pd.read_csv(tmp_path / "quality.csv")["contexts"]) == {"not checked"}


def test_the_same_label_for_every_document_of_a_question_is_worth_nothing_for_the_choice() -> None:
    data = world({"easy": (1.0, 0.0), "own": (0.0, 1.0)})
    decision, lines = decided(data)
    assert decision.kept == "own"
    assert claims(decision, "follows")["easy"].value == claims(decision, "gain")["easy"].value == 0
    assert lines["Failing"].startswith(
        "To find questions that fail, sort them by their easy score (nDCG@5), lowest first: "
    )
    assert finder(decision) == "easy", "it tells easy questions from hard ones"
    one, lines = decided(world({"own": (0.5, 1.0)}, runs=RUNS[:1]))
    assert one.primary.use == "find-questions", "one run can only be asked that"
    assert set(lines) == {"Failing", "Cost", "Based on"}


def test_kinds_of_question_that_disagree_stand_with_the_labeling(judgekit: Judgekit, tmp_path: Path) -> None:
    """Gold labels choose rightly within each kind of question, and wrongly over both."""
    rng = np.random.default_rng(0)
    n, half = 2000, np.arange(2000) < 1000
    chance = np.where(half, [[0.70], [0.50]], [[0.38], [0.46]])
    quality = (rng.random((2, n)) < chance).astype(float)
    gold = rng.normal(size=(2, n)) * 0.5 + np.where(half, [[0.2], [0.0]], [[0.0], [1.0]])
    scores, answers = tables({"gold": gold}, quality, ("A", "B"))
    answers = answers.assign(kind=np.where(answers["query_id"] < "q1000", "open", "a or b"))
    decision, lines = decided((scores, answers), rules=Rules(resamples=500, by="kind"))
    assert claims(decision, "gain")["gold"].high < 0
    assert [claim.against for claim in decision.claims if claim.kind == "by kind"] == ["a or b", "open"]
    assert "gold picks B, which the answers show to be worse than the best." in lines["Keep"]
    assert lines["Keep"].endswith("gold does otherwise within a or b and open questions: choose by kind.")
    out = judgekit(*written(tmp_path, scores, answers), "--resamples", 100, "--by", "kind").out
    assert "gold does otherwise within a or b and open questions" in " ".join(out.split())
    with pytest.raises(UsageError, match="neither the quality nor the scores table has a column 'sort'"):
        compare(scores, answers, Rules(by="sort"))


def test_the_words_are_the_same_wherever_they_are_shown(judgekit: Judgekit, tmp_path: Path) -> None:
    data = world({"a|b": (0.0, 1.0), "other": (0.5, 0.5)}, n=60)
    decision = decide(*data, rules=Rules(resamples=200, seed=1))
    given = [*written(tmp_path, *data), "--resamples", 200]
    assert judgekit(*given).out.startswith(decision.text)
    record = json.loads(judgekit(*given, "--json").out)["decision"]
    assert record["text"] == decision.text
    assert [row["sentence"] for row in record["claims"]] == [claim.sentence for claim in decision.claims]
    markdown = decision.markdown
    html = decision._repr_html_()
    for title, text in decision.lines:
        assert f"| **{title}** | {text.replace('|', chr(92) + '|')} |" in markdown
        assert title in html
    assert "<details>" in markdown
    assert str(decision) == decision.text
    assert jk.decide is decide


def test_swapped_tables_are_told_apart() -> None:
    scores, quality = world({"own": (0.0, 1.0)}, n=60)
    said = "the scores table lacks column 'labeling' and 'measure'; the second table has them: give the scores first"
    with pytest.raises(UsageError, match=said):
        decide(quality, scores)


def test_queries_that_go_together_are_resampled_together_and_few_groups_claim_nothing() -> None:
    scores, quality = world({"a": (0.0, 1.0)}, n=60)
    many = [
        pd.concat([frame.assign(query_id=frame["query_id"] + f"-{copy}") for copy in range(5)])
        for frame in (scores, quality)
    ]
    groups = {query: query.partition("-")[0] for query in many[0]["query_id"].unique()}
    alone, grouped, blind = (
        compare(*data, rules=Rules(resamples=999), **given).decision
        for data, given in (((scores, quality), {}), (many, {"background": Background(groups=groups)}), (many, {}))
    )
    for kind in ("follows", "gain"):
        wide, same, narrow = (
            (claim := claims(decision, kind)["a"]).high - claim.low for decision in (alone, grouped, blind)
        )
        assert same == pytest.approx(wide, rel=0.2)
        assert narrow < 0.65 * wide
    for number in (19, 20):
        few = {query: str(int(query[1:5]) % number) for query in groups}
        found = compare(*many, rules=Rules(resamples=300), background=Background(groups=few))
        assert bool(found.decision.kept) == claims(found.decision, "gain")["a"].shown == (number == 20)
        assert any("Only 19 groups" in warning for warning in found.warnings) == (number == 19)


@pytest.mark.parametrize(("wrong", "said"), [(4, False), (5, True)])
def test_to_find_more_of_the_questions_that_fail_takes_five_that_do(wrong: int, said: bool) -> None:
    quality = np.ones((1, 200))
    quality[0, :wrong] = 0
    noise = np.random.default_rng(0).normal(size=quality.shape)
    found = compare(*tables({"finds": 3 * quality + noise, "hides": noise - 3 * quality}, quality, runs=("only",)))
    assert bool(claims(found.decision, "finds more")) == said


def test_groups_of_queries_leave_half_of_the_degrees_of_freedom(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    spy = lambda *values, **how: seen.append(how["freedom"]) or least_leads(*values, **how)  # noqa: E731
    monkeypatch.setattr("judgekit.analysis.case.least_leads", spy)
    scores, quality = world({"own": (0.0, 1.0), "other": (1.0, 0.3)}, n=60)
    for groups in (None, dict(zip(*[scores["query_id"].unique()] * 2, strict=True))):
        compare(scores, quality, Rules(resamples=100), background=Background(groups=groups))
    alone, grouped = np.array_split(np.array(seen), 2)
    assert ((alone + 1) // 2 - 1 == grouped).all()


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_nothing_is_chosen_where_all_answers_are_rated_the_same(value: float) -> None:
    quality = np.full((4, 60), value)
    noise = np.random.default_rng(0).normal(size=(2, 4, 60))
    decision, lines = decided(tables({"own": noise[0], "other": noise[1]}, quality))
    assert lines["Choose"] == (
        f"Nothing can be chosen: every answer of every run has em {value:g}. So em may not fit these references; where"
        " they are sentences, take f1, contains or correct (by an LLM)."
    )
    assert lines["Keep"] == "No labeling can be compared where quality is the same everywhere."
    assert (decision.leader, decision.kept) == ("", "")
    assert not any("loses at most" in said or "is left out: " in said for said in decision.details)


def test_labels_that_score_all_runs_alike_are_named_as_such_beside_others_and_alone() -> None:
    scores, quality = world({"good": (0.0, 0.5)}, n=80)
    alike = scores.assign(labeling="alike", value=scores.groupby("query_id")["value"].transform("first"))
    said = "alike tells no runs apart: it scores them alike on every question."
    for tables_given in (alike, pd.concat([alike, scores])):
        decision, lines = decided((tables_given, quality))
        assert said in lines["Keep"]
        (claim,) = [each for each in decision.claims if each.kind == "no use"]
        assert (claim.subject, claim.shown) == ("alike", True)
    # One question on which it tells runs apart is enough.
    alike.loc[alike.index[0], "value"] += 1.0
    assert "alike on every question" not in decided((alike, quality))[1]["Keep"]


def test_where_no_labels_are_used_each_says_why() -> None:
    scores, quality = world({"good": (0.0, 0.5)}, n=80)
    against = scores.assign(labeling="against", value=-scores["value"])
    lacking = scores.assign(labeling="lacking")
    lacking.loc[lacking["query_id"] < "q0060", "value"] = np.nan
    _, lines = decided((pd.concat([against, lacking]), quality))
    assert "against " in lines["Keep"]
    assert "lacking is left out: it lacks scores on 75 % of the answers." in lines["Keep"]
    for seed in range(20):
        noise = scores.assign(labeling="noise", value=np.random.default_rng(seed).normal(size=len(scores)))
        decision, lines = decided((noise, quality))
        if claims(decision, "no use"):
            assert "noise does not follow the answers: r = " in lines["Keep"]
            assert claims(decision, "follows")["noise"].value <= 0
            break
    else:
        raise AssertionError("no draw had an r below 0")


def test_labels_that_are_left_out_beside_judgments_say_why() -> None:
    rng = np.random.default_rng(1)
    quality = (rng.random((4, 300)) < np.array([[0.5], [0.5], [0.5], [0.62]])).astype(float)
    own = quality + rng.normal(size=quality.shape)
    own[0] += 0.17
    _, lines = decided(tables({"own": own}, quality), background=Background(quality="nDCG@10 by NIST"))
    assert lines["Keep"].startswith("Keep the judgments that you have: no other labeling follows ")
    assert "Do not choose runs by own: it picks bm25, which " in lines["Keep"]
