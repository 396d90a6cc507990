"""Two versions of a retriever: the paired difference, what tests say of it, and the queries that changed most."""

import numpy as np
import pytest
from scipy import stats

import judgekit as jk
from judgekit.analysis.baseline_test import against
from judgekit.errors import UsageError

RANKS = np.random.default_rng(7).integers(1, 6, (3, 12))
"""The rank of the one relevant document, by run and query."""
QRELS = {f"q{q:02}": {"hit": 1} for q in range(12)}


def ranked(ranks: np.ndarray) -> dict[str, dict[str, float]]:
    return {
        f"q{q:02}": {("hit" if place == rank else f"d{place}"): -float(place) for place in range(1, 7)}
        for q, rank in enumerate(ranks.tolist())
    }


RUNS = {name: ranked(ranks) for name, ranks in zip(("old", "new", "other"), RANKS, strict=True)}


def test_differences_agree_with_scipy_and_are_adjusted_over_the_runs() -> None:
    table = against(jk.score(RUNS, QRELS, "RR P@3"), "old", confidence=0.9).set_index(["measure", "run"])
    assert len(table) == 4
    for k, run in enumerate(("new", "other"), 1):
        row = table.loc["RR", run]
        gaps = 1 / RANKS[k] - 1 / RANKS[0]
        tested = stats.ttest_rel(1 / RANKS[k], 1 / RANKS[0])
        assert row["difference"] == pytest.approx(gaps.mean())
        assert row["p_t"] == pytest.approx(tested.pvalue)
        half = np.hypot(
            tested.confidence_interval(0.9).high - gaps.mean(),
            stats.t.ppf(0.95, 11) * np.sqrt(2) * (1 + abs(gaps.mean())) / 12,
        )
        assert [row["ci_low"], row["ci_high"]] == pytest.approx([gaps.mean() - half, gaps.mean() + half])
        exact = stats.permutation_test((gaps,), np.sum, permutation_type="samples", n_resamples=np.inf)
        assert row["p_random"] == pytest.approx(exact.pvalue, abs=0.02)
        assert (row["wins"], row["ties"], row["losses"]) == ((gaps > 0).sum(), (gaps == 0).sum(), (gaps < 0).sum())
    for p in ("p_t", "p_random"):
        raw = table.loc["RR", p].tolist()
        low, high = np.argsort(raw)
        adjusted = table.loc["RR", f"{p}_holm"].tolist()
        assert adjusted[low] == pytest.approx(min(2 * raw[low], 1))
        assert adjusted[high] == pytest.approx(min(max(2 * raw[low], raw[high]), 1))


def test_the_queries_that_changed_most_come_first_and_lower_ranks_win() -> None:
    evaluation = jk.score(RUNS, QRELS, "MeanRank")
    row = against(evaluation, "old").iloc[0]
    gaps = RANKS[1] - RANKS[0]
    assert (row["wins"], row["losses"]) == ((gaps < 0).sum(), (gaps > 0).sum())
    first = row["most_changed"].split(", ")[0].split()
    assert abs(float(first[1])) == np.abs(gaps).max()
    assert int(first[0][1:]) == int(np.argmax(np.abs(gaps)))


def test_equal_runs_do_not_differ_and_a_steady_difference_allows_for_queries_that_nobody_saw() -> None:
    same = against(jk.score({"a": RUNS["old"], "b": RUNS["old"]}, QRELS, "RR"), "a").iloc[0]
    assert (same["difference"], same["p_t"], same["p_random"], same["ties"]) == (0, 1, 1, 12)
    assert same["most_changed"] == ""
    better = {"a": ranked(np.full(12, 2)), "b": ranked(np.full(12, 1))}
    row = against(jk.score(better, QRELS, "RR"), "a").iloc[0]
    assert (row["difference"], row["p_t"]) == (0.5, 0)
    assert 0 < row["ci_low"] < 0.5 < row["ci_high"]
    assert row["p_random"] < 0.01


def test_a_baseline_that_is_not_there_is_said() -> None:
    with pytest.raises(UsageError, match=r"unknown run 'odl'.*old"):
        against(jk.score(RUNS, QRELS, "RR"), "odl")
    with pytest.raises(UsageError, match="add another run to compare"):
        against(jk.score({"old": RUNS["old"]}, QRELS, "RR"), "old")


@pytest.mark.parametrize("changed", [4, 5])
def test_below_five_queries_that_differ_there_is_no_interval(changed: int) -> None:
    new = np.where(np.arange(12) < changed, RANKS[0] % 6 + 1, RANKS[0])
    (row,) = against(jk.score({"old": RUNS["old"], "new": ranked(new)}, QRELS, "RR"), "old").to_dict("records")
    assert (row["wins"] + row["losses"], np.isfinite(row["ci_low"])) == (changed, changed == 5)
