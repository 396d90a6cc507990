"""Which run may be the best, and what choosing a run may lose."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from judgekit.analysis.best import compared_with_best, equal_lists
from judgekit.analysis.coefficients import Floats
from judgekit.analysis.resampling import resample_matrix
from judgekit.data.runs import Run
from judgekit.errors import UsageError


def slow(quality: Floats, draws: Floats, groups: list[int], confidence: float) -> tuple[list[bool], list[float]]:
    """The recipe, run by run and group by group: ``draws`` holds each resample's number of every group."""
    runs, questions = quality.shape
    names = sorted(set(groups))
    units = len(names)
    kept, cost = [], [0.0] * runs
    for b in range(runs):
        filled = [[(1.0 if i == b else 0.0) if np.isnan(q) else float(q) for q in quality[i]] for i in range(runs)]
        means = [sum(row) / questions for row in filled]
        residual = {
            (i, g): sum(filled[i][x] - means[i] for x in range(questions) if groups[x] == g) * units / questions
            for i in range(runs)
            for g in names
        }
        error = {}
        for j in range(runs):
            lead = [residual[b, g] - residual[j, g] for g in names]
            error[j] = (np.var(lead, ddof=1) / units + (2 * (1 + abs(means[b] - means[j])) / units) ** 2) ** 0.5
        others = [j for j in range(runs) if j != b]
        largest = []
        for draw in draws:
            moved = [
                sum(count * (residual[j, g] - residual[b, g]) for g, count in zip(names, draw, strict=True))
                for j in others
            ]
            largest.append(max(m / units / error[j] for m, j in zip(moved, others, strict=True)))
        reach = max(np.quantile(largest, confidence), stats.norm.ppf(confidence))
        limit = stats.t.ppf(stats.norm.cdf(reach), units - 1)
        kept.append(all(means[j] - means[b] <= limit * error[j] for j in others))
        for s in others:
            cost[s] = max(cost[s], means[b] - means[s] + limit * error[s])
    return kept, cost


@pytest.mark.parametrize("confidence", [0.95, 0.975])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("missing", [0, 4])
def test_it_is_the_recipe(confidence: float, grouped: bool, missing: int) -> None:
    rng = np.random.default_rng(missing)
    groups = np.repeat(np.arange(25), rng.integers(1, 4, 25) if grouped else 1)
    quality = rng.random((4, len(groups))).round(1) * 0.7 + np.array([[0], [0.1], [0.25], [0.3]])
    quality[rng.integers(0, 4, missing), rng.integers(0, len(groups), missing)] = np.nan
    weights = resample_matrix(len(groups), 200, 3, groups)
    best = compared_with_best(quality, weights, groups=groups, confidence=confidence)
    first = [int(np.flatnonzero(groups == g)[0]) for g in range(25)]
    kept, cost = slow(quality, weights[first].T, groups.tolist(), confidence)
    assert best.may_be_best.tolist() == kept
    assert best.cost == pytest.approx(cost)
    assert best.missing == int(np.isnan(quality).sum())
    assert best.means == pytest.approx(np.nanmean(quality, axis=1))


def test_unseen_questions_are_allowed_for_and_equal_lists_cannot_differ() -> None:
    quality = np.tile(np.r_[np.ones(20), np.zeros(20)], (2, 1))
    weights = resample_matrix(40, 100, 1)
    apart = compared_with_best(quality, weights)
    limit = stats.t.ppf(0.95, 39)
    assert apart.cost == pytest.approx([2 * limit / 40] * 2)
    same = compared_with_best(quality, weights, equal=np.ones((2, 2), bool))
    assert same.cost.tolist() == [0, 0]
    assert same.may_be_best.all()


@given(st.integers(0, 1000), st.integers(2, 6), st.integers(5, 60))
def test_what_holds_of_any_answers(seed: int, runs: int, questions: int) -> None:
    rng = np.random.default_rng(seed)
    quality = (rng.random((runs, questions)) < rng.random((runs, 1))).astype(float)
    weights = resample_matrix(questions, 100, seed)
    best = compared_with_best(quality, weights)
    means = quality.mean(axis=1)
    assert best.may_be_best[means.argmax()]
    assert (best.cost >= means.max() - means - 1e-12).all()
    stricter = compared_with_best(quality, weights, confidence=0.99)
    assert (stricter.cost >= best.cost - 1e-12).all()
    assert (stricter.may_be_best >= best.may_be_best).all()
    turned = rng.permutation(runs)
    again = compared_with_best(quality[turned], weights)
    assert again.cost == pytest.approx(best.cost[turned])
    assert again.may_be_best.tolist() == best.may_be_best[turned].tolist()


def test_missing_answers_are_at_their_worst_for_what_is_said() -> None:
    rng = np.random.default_rng(2)
    quality = (rng.random((3, 200)) < np.array([[0.7], [0.5], [0.3]])).astype(float)
    weights = resample_matrix(200, 200, 1)
    whole = compared_with_best(quality, weights)
    assert whole.may_be_best.tolist() == [True, False, False]
    quality[1, :60] = np.nan
    unsure = compared_with_best(quality, weights)
    assert unsure.may_be_best.tolist() == [True, True, False]
    assert unsure.cost[0] > whole.cost[0] == 0


def test_the_best_run_is_kept_and_the_bound_holds() -> None:
    kept, held, cells = 0, 0, 200
    for seed in range(cells):
        rng = np.random.default_rng(seed)
        truth = np.array([0.5, 0.5, 0.48, 0.3])
        quality = (rng.random((4, 80)) < truth[:, None]).astype(float)
        best = compared_with_best(quality, resample_matrix(80, 200, seed))
        chosen = int(best.means.argmax())
        kept += bool(best.may_be_best[:2].all())
        held += bool(truth.max() - truth[chosen] <= best.cost[chosen])
    assert held >= 0.95 * cells
    assert kept >= 0.90 * cells  # of two equal runs each is the best


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(UsageError, match="at least two questions"):
        compared_with_best(np.ones((2, 3)), np.ones((3, 100)), groups=np.zeros(3, np.intp))
    with pytest.raises(UsageError, match="between 0 and 1"):
        compared_with_best(np.array([[0.0, 2.0], [0.0, 1.0]]), np.ones((2, 100)))


def test_equal_lists_are_equal_to_their_depth_on_all_queries() -> None:
    lists = {"a": {"1": ["x", "y"], "2": ["x"]}, "b": {"1": ["x", "z"], "2": ["x"]}, "c": {"1": ["x", "y"]}}
    runs = [
        Run(
            name,
            [query for query, docs in of.items() for _ in docs],
            [doc for docs in of.values() for doc in docs],
            [-float(rank) for docs in of.values() for rank, _ in enumerate(docs)],
        )
        for name, of in lists.items()
    ]
    assert equal_lists(runs, ["1", "2"], 1).tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    assert equal_lists(runs, ["1", "2"], 2).tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
