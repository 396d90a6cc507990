from dataclasses import replace

import numpy as np
import pytest

from judgekit.analysis import levels
from judgekit.analysis.coefficients import Target
from judgekit.analysis.inputs import Panel
from judgekit.analysis.levels import Estimate, Resamples, estimates, units_apart
from judgekit.analysis.resampling import resample_matrix


def panel(scores, quality):
    runs, n = quality.shape
    labelings = tuple("ABCDEF"[: len(scores)])
    names = tuple(f"r{i:02d}" for i in range(runs)), tuple(f"q{i:04d}" for i in range(n))
    asked = np.isfinite(quality)
    return Panel("AP", 5, "em", "m", labelings, *names, scores, quality, asked)


def data(runs=4, n=60, labelings=2, seed=0):
    rng = np.random.default_rng(seed)
    quality = rng.integers(0, 2, (runs, n)).astype(float)
    scores = np.round(quality + rng.normal(size=(labelings, runs, n)), 1)
    return scores, quality


def sample(n, resamples=200):
    return Resamples(resample_matrix(n, resamples, 1))


def by_run(found, labeling):
    return {e.run: e for e in found if e.labeling == labeling}


def test_the_mean_over_runs_is_resampled_jointly():
    scores, quality = data(runs=2)
    twice = panel(np.repeat(scores[:, :1], 2, axis=1), np.repeat(quality[:1], 2, axis=0))
    found = by_run(estimates(twice, "query", sample(60)), 0)
    assert found["all"].draws == pytest.approx(found["r00"].draws)


def test_the_within_query_level_is_the_mean_over_queries_that_tell_runs_apart():
    scores, quality = data()
    found = next(iter(estimates(panel(scores, quality), "within-query", sample(60))))
    one, other = (np.sign(each[:, None] - each) for each in (scores[0], quality))
    with np.errstate(invalid="ignore"):
        each = 0.5 + (one * other).sum(axis=(0, 1)) / (other != 0).sum(axis=(0, 1)) / 2
    assert found.values[0] == pytest.approx(np.nanmean(each), abs=1e-12)
    assert (found.n, found.queries) == (np.isfinite(each).sum(), 60)
    assert found.telling == int(((np.ptp(scores[0], axis=0) > 0) & (np.ptp(quality, axis=0) > 0)).sum())


def test_a_query_that_one_run_lacks_leaves_that_run_and_the_levels_over_runs():
    scores, quality = data()
    quality[2, 7] = np.nan
    given = panel(scores, quality)
    found = by_run(estimates(given, "query", sample(60)), 0)
    assert [found[f"r{r:02d}"].n for r in range(4)] == [60, 60, 59, 60]
    assert found["all"].n == 60
    assert next(iter(estimates(given, "system", sample(60)))).queries == 59


def test_a_run_of_constant_quality_leaves_the_mean_and_constant_scores_count_as_chance():
    scores, quality = data()
    quality[0] = 1
    scores[1, 2] = 0.5
    found = list(estimates(panel(scores, quality), "query", sample(60)))
    first, second = by_run(found, 0), by_run(found, 1)
    assert first["r00"].reason == "the quality is constant"
    assert first["all"].values[0] == pytest.approx(np.mean([first[f"r{r:02d}"].values[0] for r in (1, 2, 3)]))
    assert second["r02"].reason == "the scores are constant"
    both = [second[f"r{r:02d}"].values[0] for r in (1, 3)]
    assert second["all"].values[0] == pytest.approx(np.mean([*both, 0.5]))


def test_the_system_level_has_values_and_no_intervals():
    scores, quality = data(runs=11, n=50)
    quality[0, 4:] = np.nan
    for found in estimates(panel(scores, quality), "system", sample(50)):
        assert found.names[-1] == "tau_ap"
        assert (found.queries, found.reason) == (4, "")
        assert np.isfinite(found.value("tau_b"))
        assert np.isnan(found.interval("tau_b", 0.95, sample(50)).low)
    flat = estimates(panel(scores, np.ones_like(quality)), "system", sample(50))
    assert {found.reason for found in flat} == {"the quality is constant"}


@pytest.mark.parametrize("name", ["r", "tau_b"])
def test_a_labeling_of_one_value_differs_from_another_on_no_unit(name: str) -> None:
    """A judge that says No to all passages ended a run beside labels that vary."""
    names = ("r", "tau_b")
    nothing = np.full((2, 3), np.nan)
    some = Estimate(0, "all", names, nothing[:, 0], nothing, 9, 9, each=np.eye(2, 9), where=np.arange(9))
    none = Estimate(1, "all", names, nothing[:, 0], nothing, 9, 9, reason="the scores are constant")
    resamples = Resamples(np.ones((9, 3)))
    assert units_apart(some, none, name, resamples) == units_apart(none, some, name, resamples) == 0
    assert units_apart(some, replace(some, each=np.zeros((2, 9))), name, resamples) == 2


def test_equal_scores_against_the_same_answers_are_worked_out_once(monkeypatch):
    scores, quality = data(labelings=3)
    scores[2] = scores[0]
    made = []

    def counted(target, score, names):
        made.append(1)
        return coefficients(target, score, names)

    coefficients = Target.coefficients
    monkeypatch.setattr(Target, "coefficients", counted)
    resamples = sample(60)
    found = list(estimates(panel(scores, quality), "query", resamples))
    # The next measure may give the same scores too.
    again = list(estimates(panel(scores[:1], quality), "query", resamples))
    assert len(made) == 4 * 2
    for one, other in ((0, 2), (0, None)):
        mine, others = by_run(found, one), by_run(again, 0) if other is None else by_run(found, other)
        assert mine.keys() == others.keys()
        for run, estimate in mine.items():
            np.testing.assert_array_equal(estimate.draws, others[run].draws)
    assert [e.labeling for e in found] == [0] * 5 + [1] * 5 + [2] * 5


@pytest.mark.parametrize("missing", [False, True])
def test_resampled_answers_do_not_pile_up(missing, monkeypatch):
    monkeypatch.setattr(levels, "_KEPT", 500_000)
    resamples = sample(60)
    for seed in range(20):
        scores, quality = data(seed=seed)
        if missing:
            quality[:, seed] = np.nan
        list(estimates(panel(scores, quality), "query", resamples))
    kept = [*resamples._answers.values()]
    own = [each.target._drawn for each in kept if each.target._drawn is not resamples._drawn]
    assert len(own) == missing * len(kept)
    tables = sum(drawn.whole.nbytes + sum(part.nbytes for part in drawn.parts) for drawn in own)
    assert tables + sum(each.target.size for each in kept) < 500_000 + max(each.size for each in kept)
    assert len(kept) < 60
