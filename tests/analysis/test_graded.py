"""Quality corrected by people, and ratings of one run for each question: against the formulas, and coverage."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from judgekit.analysis.graded import DECIDES, claims, corrected_quality
from judgekit.analysis.resampling import t_quantile
from judgekit.analysis.unpaired import claims as unpaired_claims, is_unpaired, one_value, unpaired_ratings
from judgekit.errors import UsageError

RUNS = ("a", "b", "c")


def rated(favour: float = 0.0, error: float = 0.1, questions: int = 400, graded: int = 100, seed: int = 1):
    """What people say, where they graded, and what a metric says that passes wrong answers of the first run."""
    rng = np.random.default_rng(seed)
    right = rng.random((3, questions)) < np.array([[0.5], [0.5], [0.6]])
    metric = right ^ (rng.random(right.shape) < error)
    metric[0] |= ~right[0] & (rng.random(questions) < favour)
    people = np.full(right.shape, np.nan)
    drawn = rng.choice(questions, graded, replace=False)
    people[:, drawn] = right[:, drawn]
    return right.astype(float), people, metric.astype(float)


def test_the_estimate_is_the_formula_as_written() -> None:
    _, people, metric = rated()
    found = corrected_quality(RUNS, people, metric)
    taken = np.isfinite(people).all(axis=0)
    y, f = people[:, taken] - people[:, taken].mean(axis=0), metric[:, taken] - metric[:, taken].mean(axis=0)
    weight = float((y * f).sum() / (f * f).sum())
    centred = metric - metric.mean(axis=0)
    theta = [(y[i] - weight * f[i]).mean() + weight * centred[i].mean() for i in range(3)]
    assert found.weight == pytest.approx(weight)
    assert found.lead(2, 0).value == pytest.approx(theta[2] - theta[0])
    rest, own = (y[2] - y[0]) - weight * (f[2] - f[0]), y[2] - y[0]
    n, total = 100, 400
    variance = (
        rest.var(ddof=1) * (1 / n - 1 / total) + own.var(ddof=1) / total + (2 * (1 + abs(theta[2] - theta[0])) / n) ** 2
    )
    lead = found.lead(2, 0)
    assert lead.high - lead.value == pytest.approx(stats.t.ppf(0.975, n - 1) * np.sqrt(variance))
    assert (found.graded, found.questions, found.decides) == (n, total, True)


def test_everything_graded_is_what_people_say() -> None:
    truth, _, metric = rated(favour=0.5)
    found = corrected_quality(RUNS, truth, metric)
    assert found.means == pytest.approx(truth.mean(axis=1))


def test_a_flattered_run_is_shown_and_the_correction_undoes_it() -> None:
    truth, people, metric = rated(favour=0.6)
    found = corrected_quality(RUNS, people, metric)
    assert metric.mean(axis=1).argmax() == 0
    assert found.means.argmax() == truth.mean(axis=1).argmax() == 2
    said = [claim.sentence for claim in claims(found, "correct", "choose")]
    assert sum("correct flatters a by" in sentence for sentence in said) == 1
    assert not any("undervalues" in sentence or "flatters b" in sentence for sentence in said)
    fair = corrected_quality(RUNS, *rated()[1:])
    assert fair.shown == ()


def test_few_grades_decide_nothing_and_fewer_correct_nothing() -> None:
    _, people, metric = rated(graded=DECIDES - 1)
    assert not corrected_quality(RUNS, people, metric).decides
    _, people, metric = rated(graded=4)
    with pytest.raises(UsageError, match="to 4 questions: a correction needs at least 5"):
        corrected_quality(RUNS, people, metric)
    with pytest.raises(UsageError, match="only one"):
        corrected_quality(("a",), people[:1], metric[:1])


def test_no_interval_has_zero_width_where_answers_never_differed() -> None:
    people = np.full((2, 200), np.nan)
    people[:, :60] = 1.0
    found = corrected_quality(("a", "b"), people, np.ones((2, 200)))
    lead = found.lead(0, 1)
    assert lead.high > 0.01 > -0.01 > lead.low
    assert found.best.may_be_best.all()


def live(n: int = 200, users: int = 40, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    user = rng.integers(0, users, n)
    run = rng.integers(0, 2, n)
    value = rng.random(n) < np.clip(0.5 + 0.2 * run + rng.normal(0, 0.2, users)[user], 0, 1)
    names = np.where(run, "b", "a")
    return pd.DataFrame({"run": names, "query_id": [f"q{i}" for i in range(n)], "value": value * 1.0, "user": user})


def test_without_clusters_the_difference_is_that_of_two_samples_with_a_floor() -> None:
    ratings = live()
    found = unpaired_ratings(ratings, ["a", "b"], cluster=None, random=True)
    a, b = (ratings["value"][ratings["run"] == run].to_numpy() for run in "ab")
    n, total = (len(a), len(b)), len(ratings)
    plain = sum(((x - x.mean()) ** 2).sum() / len(x) ** 2 for x in (a, b)) * total / (total - 1)
    assert found.errors[0, 1] ** 2 == pytest.approx(plain + (2 / n[0]) ** 2 + (2 / n[1]) ** 2)
    assert found.means == pytest.approx([a.mean(), b.mean()])
    assert list(found.counts) == list(n)


def test_ratings_of_a_user_go_together() -> None:
    ratings = live(users=8)
    alone, together = (unpaired_ratings(ratings, ["a", "b"], cluster=c, random=True) for c in (None, "user"))
    assert together.units.tolist() == [8, 8]
    assert together.best.cost[0] > alone.best.cost[0]
    copied = pd.concat([ratings] * 5, ignore_index=True).assign(user=lambda table: table["query_id"])
    same = unpaired_ratings(copied, ["a", "b"], cluster="user", random=True)
    assert same.errors == pytest.approx(alone.errors), "five copies of each rating say no more than one"


def test_a_user_who_rated_both_runs_is_one_cluster() -> None:
    """Each of 30 users rates both runs: the error is that of the paired differences, and 30 users are named."""
    rng = np.random.default_rng(0)
    taste = rng.random(30)
    both = np.stack([taste, np.clip(taste + 0.1 * rng.normal(size=30), 0, 1)])
    ratings = pd.DataFrame({"run": ["a"] * 30 + ["b"] * 30, "value": both.ravel(), "user": [*range(30)] * 2})
    found = unpaired_ratings(ratings.assign(query_id=range(60)), ["a", "b"], cluster="user", random=True)
    assert found.errors[0, 1] ** 2 == pytest.approx((both[0] - both[1]).var(ddof=1) / 30 + 2 * (2 / 30) ** 2)
    assert ", grouped by user (30 groups)." in next(iter(unpaired_claims(found, "choose", "Choose"))).sentence


def test_their_intervals_hold() -> None:
    hits = []
    for seed in range(200):
        found = unpaired_ratings(live(seed=seed), ["a", "b"], cluster="user", random=True)
        reach = t_quantile(0.975, int(found.units.min())) * found.errors[0, 1]
        hits.append(abs(found.means[1] - found.means[0] - 0.19) <= reach)  # .19, since shares end at 0 and 1
    assert np.mean(hits) >= 0.93


def test_what_is_unpaired_and_what_several_ratings_of_an_answer_are() -> None:
    ratings = live()
    assert is_unpaired(ratings)
    assert not is_unpaired(pd.concat([ratings, ratings.iloc[:1].assign(run="b" if ratings["run"][0] == "a" else "a")]))
    assert not is_unpaired(ratings[ratings["run"] == "a"])
    twice = pd.concat([ratings.iloc[:1].assign(value=0.0), ratings.iloc[:1].assign(value=1.0)])
    assert one_value(twice)["value"].tolist() == [0.5]
