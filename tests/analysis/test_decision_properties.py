"""Rules of the decision's text over generated experiments: they hold for every name, number of runs and finding."""

import math
import re
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, example, given, settings, strategies as st

import judgekit as jk
from judgekit.analysis.background import Background
from judgekit.analysis.claims import LINES, about_all, further, in_lines, wrapped
from judgekit.analysis.comparison import Comparison, compare
from judgekit.analysis.keeping import KEEP
from judgekit.analysis.leakage import AnsweredBy
from judgekit.analysis.money import Money
from judgekit.analysis.power import most_needed
from judgekit.analysis.wording import rounded
from judgekit.collection import Pool
from judgekit.labelers.base import Needs
from judgekit.rules import Rules
from tests.analysis.worlds import claims, tables

ANSWERER = jk.Endpoint("x", "http://localhost:1/v1", "m")
NUMBER = re.compile(r"r -?\.?\d|points|times in 100")
ENDS = re.compile(r"-?[\d.]+ to -?[\d.]+|at most|too few questions differ|within|margin|reaches")


@st.composite
def experiments(draw: st.DrawFn) -> tuple[tuple[pd.DataFrame, pd.DataFrame], dict[str, Any]]:
    """Return tables of an experiment with names of 1 to 60 characters, and what is known beside them."""
    runs, labelings = draw(st.integers(2, 8)), draw(st.integers(1, 4))
    letters = st.text("abcxyz.-_(=,)", min_size=1, max_size=60)
    names = draw(st.lists(letters, min_size=runs + labelings, max_size=runs + labelings, unique=True))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    n = draw(st.sampled_from([6, 30, 80, 200]))
    skill = rng.normal(size=runs) * draw(st.sampled_from([0.0, 0.1, 0.6]))
    use = skill[:, None] + rng.normal(size=(runs, n))
    quality = (use + rng.normal(size=n) > draw(st.sampled_from([0.3, 1.8]))).astype(float)
    scores = {}
    for name in names[runs:]:
        bias = draw(st.sampled_from([0.0, 0.0, 1.5])) * rng.normal(size=(runs, 1))
        known = draw(st.sampled_from([0.0, 1.0, -1.0]))
        scores[name] = known * use + bias + draw(st.sampled_from([0.1, 1.0, 3.0])) * rng.normal(size=(runs, n))
    answers: pd.DataFrame
    table, answers = tables(scores, quality, tuple(names[:runs]))
    if draw(st.booleans()):
        answers = answers[rng.random(len(answers)) > 0.02]
    needs = {
        name: Needs(
            references=draw(st.booleans()),
            endpoints=(ANSWERER,) if draw(st.booleans()) else (),
            existing=draw(st.integers(0, 5)) == 0,
        )
        for name in names[runs:]
    }
    requests = [float(draw(st.sampled_from([0, 100, 104, 5000]))) for _ in range(labelings + 1)]
    costs = pd.DataFrame({"labeling": [*names[runs:], "answers"], "requests": requests})
    if draw(st.booleans()):
        costs = costs.assign(money=costs["requests"] / 50)
    again = tuple(rng.integers(1, 50, runs).tolist())
    fewer = tuple(rng.integers(1, draw(st.sampled_from([2, 50])), runs).tolist())
    background = Background(
        needs=needs,
        costs=costs,
        pool=Pool(n, 5 * n, 10 * n, n, fewer, again, draw(st.sampled_from([0, runs * n]))),
        answering={"m": AnsweredBy("m", "")},
        reranked={names[0]: "m"},
        money=Money("EUR"),
    )
    return (table, answers), {"background": background}


def prefixed() -> tuple[tuple[pd.DataFrame, pd.DataFrame], dict[str, Any]]:
    """Return an experiment in which the name of the labeling to keep begins with that of a less expensive one."""
    rng = np.random.default_rng(1)
    quality = (rng.random((4, 300)) < 0.5).astype(float)
    scores = {name: quality + noise * rng.normal(size=quality.shape) for name, noise in (("====", 0.8), ("=", 2.0))}
    costs = pd.DataFrame({"labeling": ["====", "=", "answers"], "requests": [900.0, 1.0, 300.0]})
    return tables(scores, quality), {"background": Background(costs=costs, pool=Pool(300, 1500, 3000, 300))}


def taken_by_a_further_run(background: Background, labeling: str) -> tuple[float, float, float] | None:
    """Return what labels and answers take of a further run, and the answers; None where that is not known."""
    pool, costs = background.pool, background.costs
    assert pool is not None
    assert costs is not None
    labels, answers = most_needed(pool.labels_again), most_needed(pool.answers_again)
    if labels is None or answers is None or not pool.lists or background.needs[labeling].existing:
        return None
    unit = costs.set_index("labeling")["money" if "money" in costs else "requests"]
    labels, answers = min(rounded(labels), pool.pooled), min(rounded(answers), pool.queries)
    if not unit["answers"]:
        return None
    return labels * unit[labeling] / pool.pooled, answers * unit["answers"] / pool.lists, answers


def decided(experiment: tuple[tuple[pd.DataFrame, pd.DataFrame], dict[str, Any]]) -> Comparison:
    data, known = experiment
    return compare(*data, rules=Rules(resamples=100), **known)


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(experiments())
@example(prefixed())
def test_the_text_keeps_its_rules_whatever_was_found(experiment: Any) -> None:
    decision = decided(experiment).decision
    text, flat = decision.text, " ".join(decision.text.split())
    said = [claim for _, claim in in_lines(decision.claims)]

    # Nothing is lost: each line holds whole sentences, wrapped and never cut, whatever stands in a name.
    assert "…" not in text
    assert [title for title, _ in decision.lines] == [line for line in LINES if line in dict(decision.lines)]
    for width in (40, 100):
        assert " ".join(wrapped(decision.lines, width).split()) == flat
    assert all(claim.sentence.endswith(".") for claim in decision.claims)
    assert all(" ".join(claim.sentence.split()) in flat for claim in said)
    findings = [*further(decision.claims), *{claim.sentence for claim in said}]
    assert len({*findings}) == len(findings), "a finding is said once, and not if a line says it"
    assert len({id(claim) for claim in said}) + len(further(decision.claims)) == len(decision.claims)

    # What qualifies a claim stands where the claim stands.
    stand = {text for claim in said for text in (claim.key, claim.kind, about_all(claim.subject))}
    for claim in decision.claims:
        if claim.qualifies in stand:
            assert claim in said, claim

    # What is kept is neither shown to mislead nor to flatter its pick, and its pick may be the best.
    runs, follows = claims(decision, "run"), claims(decision, "follows")
    if decision.kept:
        assert decision.kept not in claims(decision, "left out")
        assert not claims(decision, "gain")[decision.kept].high < 0
        picks = claims(decision, "picks")[decision.kept].against.split(" or ")
        assert len(picks) > 1 or not runs[picks[0]].shown
        assert follows[decision.kept].low > 0
        rivals = [
            claim for name, claim in follows.items() if name not in claims(decision, "left out") and claim.low > 0
        ]
        # Free labels are kept, too, where paid ones follow hardly more closely.
        if "is free, and follows the answers with r" not in flat:
            assert follows[decision.kept].value == max(claim.value for claim in rivals), "the largest r"
    for name, claim in claims(decision, "cheaper").items():
        assert f"eep {name}:" not in flat
        assert claim.value == follows[name].value - follows[decision.kept].value <= 0
        assert claim.shown == claim.sentence.startswith("To save ")

    # Labels are to be bought for further runs only where they are not known to take as much as answers.
    background = experiment[1]["background"]
    instead = claims(decision, "answer instead")
    taken = taken_by_a_further_run(background, decision.kept) if decision.kept else None
    if taken is None:
        assert not instead
    else:
        by_labels, by_answers, answers = taken
        pay = by_answers - by_labels > max(by_labels, by_answers) / math.sqrt(answers)
        assert ({*instead} == {decision.kept}) != pay
        assert (f"Keep {decision.kept}, for later runs too: " in flat) == pay
        assert (f"Keep the labels of {decision.kept} that you have: " in flat) != pay
        assert ("that costs no more" in flat) == (by_answers <= by_labels)

    # The cheapest run is enough only if every bound lies below the margin; nothing asks for questions that are there.
    # Where all answers are rated alike there are no bounds, and nothing is chosen.
    bounds = [-claim.low for claim in runs.values()]
    assert ("Ship the cheapest" in flat) == (bool(bounds) and max(bounds) <= 2)
    assert bounds or "Nothing can be chosen" in flat
    (scores, _), _ = experiment
    for more in claims(decision, "more questions").values():
        assert "more than" in more.sentence or more.value > scores["query_id"].nunique()
    assert "safer" not in flat

    # No number without its interval or bound, and none against its order.
    for claim in decision.claims:
        if NUMBER.search(claim.sentence) and claim.kind not in ("together", "more questions", "point"):
            assert ENDS.search(claim.sentence), claim.sentence
        assert not claim.low > claim.value
        assert not claim.high < claim.value


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(experiments())
def test_a_decision_says_the_same_once_it_is_saved_and_loaded(experiment: Any) -> None:
    from judgekit.analysis.claims import claims_of, claims_table, lines_of, plain

    decision = decided(experiment).decision
    assert lines_of(claims_of(claims_table(decision.claims))) == decision.lines
    assert [row["sentence"] for row in plain(decision.claims)] == decision.table["sentence"].tolist()
    assert all(claim.subject == decision.kept for claim in decision.claims if claim.kind == KEEP and claim.shown)
