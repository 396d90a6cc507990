import numpy as np
import pytest
from scipy import stats

from judgekit.analysis.controls import closed_book_controls, pair_split
from judgekit.analysis.inputs import Panel
from judgekit.analysis.levels import Resamples
from judgekit.analysis.resampling import resample_matrix


def values(frame, **where):
    for column, value in where.items():
        frame = frame[frame[column] == value]
    return frame.set_index("coefficient")["value"].to_dict()


def test_shared_difficulty_alone_gives_the_known_coefficients():
    """X = a + e, Y = a + e': Pearson .5 and Kendall 1/3 in the pool, 0 within queries."""
    rng = np.random.default_rng(4)
    runs, n = 5, 3000
    difficulty = rng.normal(size=n)
    split = pair_split(difficulty + rng.normal(size=(runs, n)), difficulty + rng.normal(size=(runs, n)))
    everything, cross, same = (values(split, control=c) for c in ("all", "cross-query", "same-query"))
    assert everything["r"] == pytest.approx(0.5, abs=0.03)
    assert everything["tau_b"] == pytest.approx(1 / 3, abs=0.02)
    assert cross["tau_b"] == pytest.approx(1 / 3, abs=0.02)
    assert same["r"] == pytest.approx(0, abs=0.03)
    assert same["tau_b"] == pytest.approx(0, abs=0.02)
    assert same["concordance"] == pytest.approx(0.5, abs=0.01)


def test_the_split_counts_every_pair_once():
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 4, (3, 20)).astype(float), rng.integers(0, 2, (3, 20)).astype(float)
    split = pair_split(x, y)
    assert split.groupby("control")["pairs"].first().to_dict() == {
        "all": 60 * 59 // 2,
        "same-query": 3 * 20,
        "cross-query": 60 * 59 // 2 - 60,
    }
    everything = values(split, control="all")
    assert everything["tau_b"] == pytest.approx(stats.kendalltau(x.ravel(), y.ravel()).statistic, abs=1e-12)
    assert everything["r"] == pytest.approx(stats.pearsonr(x.ravel(), y.ravel()).statistic, abs=1e-12)
    by_hand = [
        (a - b) * (c - d) > 0
        for q in range(20)
        for a, b, c, d in [(x[i, q], x[j, q], y[i, q], y[j, q]) for i in range(3) for j in range(i)]
        if c != d
    ]
    ties = [0.5 * (x[i, q] == x[j, q]) for q in range(20) for i in range(3) for j in range(i) if y[i, q] != y[j, q]]
    expected = (sum(by_hand) + sum(ties)) / len(by_hand)
    assert values(split, control="same-query")["concordance"] == pytest.approx(expected)


def closed(score, quality, known, runs=1):
    n = len(known)
    panel = Panel(
        "AP", 5, "em", "m", ("A",), tuple(f"r{i}" for i in range(runs)), tuple(f"q{i:05d}" for i in range(n)),
        np.broadcast_to(score, (1, runs, n)).copy(), np.broadcast_to(quality, (runs, n)).copy(),
        np.ones((runs, n), dtype=bool),
    )  # fmt: skip
    return closed_book_controls(panel, 0, known, Resamples(resample_matrix(n, 100, 1), 1), 0.95)


def test_what_the_model_knows_anyway_is_taken_out():
    """Scores and quality are independent given closed-book knowledge, which drives both."""
    rng = np.random.default_rng(2)
    n = 3000
    known = (rng.random(n) < 0.4).astype(float)
    score = known + rng.normal(size=n)
    quality = (known + rng.normal(size=n) > 0.5).astype(float)
    assert stats.kendalltau(score, quality).statistic > 0.1
    frame = closed(score, quality, known)
    for control in ("closed-book-0", "closed-book-strata"):
        assert values(frame, control=control)["tau_b"] == pytest.approx(0, abs=0.04)
        assert values(frame, control=control)["concordance"] == pytest.approx(0.5, abs=0.03)
    assert values(frame, control="closed-book-partial")["r"] == pytest.approx(0, abs=0.04)
    assert (frame["ci_low"] <= frame["value"]).all()


@pytest.mark.parametrize("all_known_are_right", [False, True])
def test_strata_add_up_pairs_and_the_partial_follows_its_formula(all_known_are_right: bool):
    rng = np.random.default_rng(3)
    n = 40
    known, score, quality = rng.integers(0, 2, n) / 1.0, rng.integers(0, 5, n) / 1.0, rng.integers(0, 3, n) / 1.0
    if all_known_are_right:
        quality[known == 1] = 2
    frame = closed(score, quality, known)
    pairs = [
        (np.sign(score[i] - score[j]), np.sign(quality[i] - quality[j]))
        for i in range(n)
        for j in range(i)
        if known[i] == known[j]
    ]
    balance = sum(a * b for a, b in pairs)
    expected = balance / np.sqrt(sum(a != 0 for a, _ in pairs) * sum(b != 0 for _, b in pairs))
    assert values(frame, control="closed-book-strata")["tau_b"] == pytest.approx(expected, abs=1e-12)

    def residual(v):
        return v - np.polyval(np.polyfit(known, v, 1), known)

    by_residuals = stats.pearsonr(residual(score), residual(quality)).statistic
    assert values(frame, control="closed-book-partial")["r"] == pytest.approx(by_residuals, abs=1e-9)


def test_several_runs_have_a_mean_and_constant_knowledge_a_reason():
    rng = np.random.default_rng(5)
    score, quality = rng.normal(size=50), rng.integers(0, 2, 50) / 1.0
    frame = closed(score, quality, np.zeros(50), runs=2)
    assert set(frame["run"]) == {"r0", "r1", "all"}
    partial = frame[(frame["control"] == "closed-book-partial") & (frame["run"] == "r0")]
    assert partial["value"].isna().all()
    assert partial["undefined_reason"].str.contains("constant").all()
