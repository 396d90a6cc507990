"""Whether labels are worth buying beside what costs nothing: the rule by cases, and as the decision says it."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from judgekit.analysis.background import LENGTH, RETRIEVER, Background
from judgekit.analysis.case import Follower
from judgekit.analysis.comparison import compare
from judgekit.analysis.money import Money, check_costs
from judgekit.analysis.rivals import LEAST_RUNS, is_free, verdict
from judgekit.analysis.wording import Ranged
from judgekit.collection import Pool
from judgekit.labelers.base import Needs
from judgekit.rules import Rules
from judgekit.wire.types import Endpoint
from tests.analysis.worlds import claims, tables

POOL = Pool(100, 500, 1000, 100, (5, 40, 20, 22), (20, 30, 25, 26))
MODEL = Endpoint("e", base_url="http://localhost:1/v1", model="m")
RUNS = tuple(f"r{i}" for i in range(6))
COSTS = pd.DataFrame({"labeling": ["judge", "words", "answers"], "requests": [1000.0, 0.0, 300.0]})


class Named(Follower):
    """A follower that is known by its name and r alone."""

    def __init__(self, name: str, r: float):
        object.__setattr__(self, "_name", name)
        object.__setattr__(self, "r", Ranged(r, r - 0.1, r + 0.1))

    @property
    def name(self) -> str:
        return self._name


def judged(useful: dict[str, float], free: list[str], controls: dict[str, float], runs: int = 6) -> tuple[Any, ...]:
    """Kept, rival and whether it is stopped, with .05 as the standard error of every difference."""
    followers = [Named(name, r) for name, r in sorted(useful.items(), key=lambda item: -item[1])]
    rivals = [Named(name, r) for name, r in controls.items()]
    found = verdict(followers, free, rivals, runs, close=lambda a, b: a.r.value - b.r.value <= 0.05)
    return (found.kept and found.kept.name, found.rival and found.rival.name, found.stopped, found.nothing)


@pytest.mark.parametrize(
    ("useful", "controls", "expected"),
    [
        ({"judge": 0.4, "strong": 0.5}, {}, ("strong", None, False, False)),
        ({"judge": 0.4, "words": 0.3}, {}, ("judge", "words", False, False)),
        ({"judge": 0.4, "words": 0.36}, {}, ("words", "words", True, False)),
        ({"judge": 0.4, "words": 0.36, "more": 0.3}, {}, ("words", "words", True, False)),
        ({"judge": 0.4, "words": 0.5}, {}, ("words", "words", True, False)),
        ({"words": 0.3, "more": 0.4}, {"ranks": 0.9}, ("more", None, False, False)),
        ({"judge": 0.4}, {"ranks": 0.81}, (None, "ranks", True, True)),
        ({"judge": 0.4}, {"ranks": 0.36}, (None, "ranks", True, True)),
        ({"judge": 0.4}, {"ranks": 0.3}, ("judge", "ranks", False, False)),
        # Only a control stands in the way, and yet there is a free labeling: it is kept.
        ({"judge": 0.4, "words": 0.3}, {"ranks": 0.81}, ("words", "words", True, False)),
        ({}, {"ranks": 0.81}, (None, None, False, False)),
    ],
)
def test_what_is_kept_beside_free_rivals(useful, controls, expected):
    assert judged(useful, ["words", "more"], controls) == expected


def test_a_control_stops_a_purchase_only_from_six_runs_on():
    for runs in (2, 3, 5, 6, 12):
        kept, _, stopped, _ = judged({"judge": 0.4}, [], {"ranks": 0.81}, runs)
        assert (kept, stopped) == ((None, True) if runs >= LEAST_RUNS == 6 else ("judge", False))


def test_what_is_known_to_cost_nothing():
    costs = check_costs(
        pd.DataFrame({"labeling": ["a", "b", "c"], "requests": [0, 9, np.nan], "money": [np.nan, 0, 0]})
    )
    free = {
        name: is_free(name, need, costs, Money(price={"priced": 1.0, "given": 0.0}))
        for name, need in {
            "a": None, "b": None, "c": None, "unknown": None, "priced": Needs(), "given": None,
            "existing": Needs(existing=True, people=True), "words": Needs(references=True),
            "asked": Needs(endpoints=(MODEL,)), "people": Needs(people=True),
        }.items()
    }  # fmt: skip
    assert [name for name, is_so in free.items() if is_so] == ["a", "c", "given", "existing", "words"]


def decided(scores: dict[str, np.ndarray], answers: np.ndarray, runs: tuple[str, ...] = RUNS, **known: Any):
    data = tables({name: values for name, values in scores.items() if name != "ranks"}, answers, runs)
    if "ranks" in scores:
        more = tables({"ranks": scores["ranks"]}, answers, runs)[0].replace({"ranks": RETRIEVER})
        data = pd.concat([data[0], more]), data[1]
    known = {"controls": [RETRIEVER, LENGTH], "costs": COSTS, "pool": POOL} | known
    decision = compare(*data, Rules(resamples=300), background=Background(**known)).decision
    return decision, dict(decision.lines)


def noisy(seed: int = 1, runs: int = 6, n: int = 300, **noise: float):
    rng = np.random.default_rng(seed)
    quality = (rng.random((runs, n)) < 0.5).astype(float)
    return {name: quality + size * rng.normal(size=quality.shape) for name, size in noise.items()}, quality


def test_a_free_labeling_that_follows_about_as_closely_is_kept_in_one_sentence_with_the_paid_one():
    decision, lines = decided(*noisy(judge=0.8, words=0.81))
    assert decision.kept == "words"
    assert lines["Keep"].startswith("Keep words, for later runs too: it is free, and follows the answers with r = .")
    assert "judge, the best that costs something, has " in lines["Keep"].split(". ")[1] + lines["Keep"]
    decision, lines = decided(*noisy(judge=0.8, words=2.0))
    assert decision.kept == "judge"
    assert " above that of words (free)" in lines["Keep"]
    assert "one standard error" not in lines["Keep"]
    assert not claims(decision, "cheaper"), "the free one is named once"


def test_a_lead_between_one_and_two_standard_errors_is_bought_and_said_not_to_be_shown():
    decision, lines = decided(*noisy(seed=3, judge=1.0, words=1.15))
    (keep,) = claims(decision, "keep").values()
    assert keep.subject == "judge"
    assert " This lead may be chance, but it is more than one standard error: enough to keep judge." in lines["Keep"]


def test_nothing_need_be_bought_where_the_runs_own_ranks_follow_as_closely():
    scores, quality = noisy(judge=1.0, ranks=0.5)
    decision, lines = decided(scores, quality)
    assert decision.kept == ""
    assert lines["Keep"].startswith(
        "Buy none of these labels yet: judge follows the answers most closely of those that"
    )
    assert "but the runs' own ranks, which are free, reach ." in lines["Keep"]
    assert "judge is shown to follow less closely: its lead is -." in lines["Keep"]
    cannot = "The runs' own ranks cannot label a run that differs from all of these"
    assert f"{cannot}: answer its questions." in lines["Keep"]
    (keep,) = [claim for claim in decision.claims if claim.kind == "keep"]
    assert (keep.subject, keep.against, keep.high < 0) == ("", "judge", True)
    by_people = decided(scores, quality, quality="nDCG@10 by NIST")[1]["Keep"]
    assert f"{cannot}: let people judge its new passages." in by_people
    # Below six runs the same is a sentence beside the labeling.
    few = {name: values[:5] for name, values in scores.items()}
    decision, lines = decided(few, quality[:5], RUNS[:5])
    assert decision.kept == "judge"
    assert "judge is not shown to follow more closely than the runs' own ranks" in lines["Keep"]
    assert cannot not in lines["Keep"], "judge can label it"


def test_a_control_whose_pick_is_worse_stops_nothing():
    rng = np.random.default_rng(1)
    quality = (rng.random((6, 400)) < np.array([[0.35]] * 5 + [[0.65]])).astype(float)
    judge, ranks = (quality + size * rng.normal(size=quality.shape) for size in (1.5, 0.5))
    ranks[0] += 1.0
    decision, lines = decided({"judge": judge, "ranks": ranks}, quality)
    assert decision.kept == "judge"
    assert "Buy none" not in lines["Keep"]


def test_existing_labels_are_a_free_rival_that_cannot_label_later_runs():
    _, lines = decided(*noisy(judge=0.8, words=0.81), needs={"words": Needs(existing=True)}, costs=None)
    assert lines["Keep"].startswith("Keep words for these runs: it is free")


def test_where_costs_are_not_known_nothing_is_called_free():
    decision, lines = decided(*noisy(judge=0.8, words=0.81), costs=None, pool=None, needs={})
    assert decision.kept in ("judge", "words")
    assert "free" not in lines["Keep"]
