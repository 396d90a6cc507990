"""Missing labels: claims that hold whatever the labels are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from judgekit.analysis import compare
from judgekit.analysis.inputs import Inputs
from judgekit.analysis.levels import Resamples, estimates
from judgekit.analysis.resampling import resample_matrix
from judgekit.data.labelings import Labeling, Scale
from judgekit.metrics.measures import parse_measures
from judgekit.stages import Collection, score_pool
from tests.analysis.worlds import world

GOOD = {"own": (0.0, 1.0), "other": (1.0, 0.3)}


def lacking(scores: pd.DataFrame, labeling: str, queries: int, reach: float = 2.0) -> pd.DataFrame:
    """Return the scores without those of a labeling on the first queries, which may be anything within a reach."""
    first = sorted(scores["query_id"].unique())[:queries]
    gone = (scores["labeling"] == labeling) & scores["query_id"].isin(first)
    value = scores["value"]
    return scores.assign(
        value=value.where(~gone), low=value.where(~gone, value - reach), high=value.where(~gone, value + reach)
    )


@pytest.mark.parametrize("use", ["choose-runs", "find-questions"])
def test_bounds_that_are_the_scores_change_nothing(use: str) -> None:
    scores, quality = world(GOOD, n=120)
    plain = compare(scores, quality, use=use, resamples=200)
    same = compare(
        scores.assign(low=scores["value"], high=scores["value"]),
        quality,
        use=use,
        resamples=200,
    )
    assert same.decision.findings == plain.decision.findings
    assert same.decision.text == plain.decision.text


def test_a_winner_is_named_only_if_no_missing_label_could_undo_it() -> None:
    scores, quality = world(GOOD, n=200)
    assert compare(scores, quality, resamples=200).decision.winner == "own"
    few, many = (compare(lacking(scores, "own", n), quality, resamples=200) for n in (2, 9))
    assert few.decision.winner == "own"
    assert "own lacks labels on 2 questions: every claim holds whatever they are." in few.decision.details
    # Without bounds, the nine questions are left out, as if they were like the others.
    unbounded = lacking(scores, "own", 9).drop(columns=["low", "high"])
    assert compare(unbounded, quality, resamples=200).decision.winner == "own"
    alone = compare(unbounded, quality, resamples=200).decision.findings["own"]
    assert many.decision.findings["own"].concordance.low < alone.concordance.low
    half = {**GOOD, "other": (0.2, 0.9)}
    scores, quality = world(half, n=200, seed=3)
    lost = lacking(scores, "own", 9, reach=5)
    assert compare(lost, quality, resamples=200).decision.winner is None


@pytest.mark.parametrize("level", ["query", "within-query"])
def test_whatever_the_missing_labels_are_the_concordance_lies_between_the_worst_and_the_best(level: str) -> None:
    scores, quality = world(GOOD, n=60)
    open_ = lacking(scores, "own", 3)
    resamples = Resamples(resample_matrix(60, 100, 1))

    def concordance(table: pd.DataFrame) -> float:
        panel = Inputs.read(table, quality).panel("nDCG@5", "em", "m", 5)
        found = [e for e in estimates(panel, level, resamples) if e.run == "all"]
        return float(found[panel.labelings.index("own")].values[0])

    panel = Inputs.read(open_, quality).panel("nDCG@5", "em", "m", 5)
    assert panel.unknown == {"own": 3}
    worst, best = (
        next(float(e.values[0]) for e in estimates(p, level, resamples) if e.run == "all" and e.labeling == 1)
        for p in panel.extremes(level)
    )
    rng = np.random.default_rng(0)
    seen = []
    for _ in range(30):
        share = rng.integers(0, 2, len(open_)) if rng.random() < 0.5 else rng.random(len(open_))
        seen.append(concordance(open_.assign(value=open_["low"] + share * (open_["high"] - open_["low"]))))
    assert worst <= min(seen) < max(seen) <= best


def test_what_choosing_wins_runs_from_the_worst_to_the_best_case() -> None:
    scores, quality = world(GOOD, n=120)
    plain, open_ = (compare(table, quality, resamples=200) for table in (scores, lacking(scores, "own", 4)))

    def ends(found) -> tuple[float, float]:
        row = found.gains[(found.gains["labeling"] == "own") & (found.gains["without"] == "")].iloc[0]
        return row["ci_low"], row["ci_high"]

    assert ends(open_)[0] < ends(plain)[0]
    assert ends(open_)[1] >= ends(plain)[1] - 1e-3


def test_small_scores_that_are_good_have_their_bounds_turned_round() -> None:
    scores, quality = world(GOOD, n=60)
    turned = scores.assign(value=-scores["value"], measure="Err@5")
    open_ = lacking(turned, "own", 3)
    panel = Inputs.read(open_, quality, lower=["Err@5"]).panel("Err@5", "em", "m", 5)
    assert (panel.low <= panel.high).all()
    plain = Inputs.read(lacking(scores, "own", 3), quality).panel("nDCG@5", "em", "m", 5)
    assert panel.low == pytest.approx(plain.low)
    assert panel.high == pytest.approx(plain.high)


def test_scores_are_bounded_where_labels_are_missing_and_only_there() -> None:
    docs = {f"d{i}": "text" for i in range(3)}
    lists = {"a": {"d0": 3, "d1": 2, "d2": 1}, "b": {"d2": 2, "d0": 1}}
    runs = {name: {"q1": order, "q2": order} for name, order in lists.items()}
    collection = Collection.make({"q1": "one?", "q2": "two?"}, docs, runs, 3)
    labels = pd.DataFrame(
        {
            "query_id": ["q1", "q1", "q1", "q2", "q2", "q2"],
            "doc_id": ["d0", "d1", "d2"] * 2,
            "relevance": [1, 0, 0, 1, None, 0],
            "status": ["ok", "ok", "ok", "ok", "failed", "ok"],
        }
    )
    lacking_one = Labeling("judge", Scale.parse("binary"), labels)
    plain, graded = parse_measures("P@2 nDCG(gains={1:3})@2")
    found = score_pool(collection, [lacking_one], [plain, graded]).scores()
    found = found.set_index(["measure", "run", "query_id"])
    assert found.loc[("P@2", "a", "q2"), ["low", "high"]].tolist() == [0.5, 1.0]
    assert found.loc[("P@2", "a", "q1"), ["low", "high"]].tolist() == [0.5, 0.5]
    assert found.loc[(str(graded), "a", "q2"), ["low", "high"]].tolist() == [-np.inf, np.inf], "nothing bounds it"
    whole = Labeling("judge", Scale.parse("binary"), labels[labels["status"] == "ok"])
    assert "low" not in score_pool(collection, [whole], parse_measures("P@2")).scores()
