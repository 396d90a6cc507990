"""What re-ranking by a labeling does: synthetic runs in the shape of a TREC track, and labels of known worth."""

from __future__ import annotations

import numpy as np
import pytest

from judgekit.analysis.coefficients import Floats
from judgekit.analysis.resampling import resample_matrix
from judgekit.plugins.audit.audited_run import read
from judgekit.plugins.audit.circularity import circularity, reranked
from judgekit.plugins.audit.numbers import Number

RUNS, QUERIES, POOL, DEPTH, CUT = 63, 53, 120, 40, 10


def ndcg(gains: Floats, ideal: Floats) -> float:
    discount = 1 / np.log2(np.arange(2, CUT + 2))
    best = np.sort(ideal)[::-1][:CUT] @ discount
    return float(gains[:CUT] @ discount / best) if best else 0.0


def world(labels: dict[str, Floats], truth: Floats) -> dict[str, dict[str, Number]]:
    """Return the numbers of labelings over runs of falling skill, by loops that share nothing with judgekit."""
    rng = np.random.default_rng(1)
    lists = [
        [np.argsort(-(s * truth[q] + rng.normal(size=POOL) * 1.5), kind="stable")[:DEPTH] for q in range(QUERIES)]
        for s in np.linspace(1.6, 0.2, RUNS)
    ]
    out = {}
    for name, said in labels.items():
        scores = np.zeros((4, RUNS, QUERIES))
        for r in range(RUNS):
            for q, docs in enumerate(lists[r]):
                again = docs[np.argsort(-said[q][docs], kind="stable")]
                for row, (order, by) in enumerate(((docs, said), (again, said), (docs, truth), (again, truth))):
                    scores[row, r, q] = ndcg(by[q][order], by[q])
        top = np.array([ndcg(np.sort(each)[::-1], each) for each in said])
        numbers = circularity(
            scores[0], scores[1], top, (scores[2], scores[3]), weights=resample_matrix(QUERIES, 300, 1)
        )
        out[name] = {number.statistic: number for number in numbers}
    return out


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, Number]]:
    """Of labels that are graded and near the truth, binary and far too lenient, and the truth."""
    rng = np.random.default_rng(5)
    truth = rng.choice([0.0, 1, 2, 3], p=[0.7, 0.15, 0.1, 0.05], size=(QUERIES, POOL))
    good = np.clip(np.round(truth + rng.normal(size=truth.shape) * 0.8), 0, 3)
    lenient = (truth + rng.normal(size=truth.shape) * 2.0 > 1.0).astype(float)
    return world({"good": good, "lenient": lenient, "truth": truth}, truth)


@pytest.mark.parametrize("name", ["good", "lenient"])
def test_a_judge_sees_more_gain_than_there_is(name: str, found: dict[str, dict[str, Number]]) -> None:
    its, true, over = (found[name][f"gain {what}"] for what in ("by these labels", "by the reference", "too much"))
    assert its.value - true.value == pytest.approx(over.value)
    assert over.low > 0


def test_runs_that_re_rank_by_a_lenient_judge_all_reach_the_maximum(found: dict[str, dict[str, Number]]) -> None:
    full = found["lenient"]["runs at the maximum"]
    assert (full.value > 50, full.flag) == (True, "saturated")
    assert found["good"]["runs at the maximum"].value < RUNS / 2


def test_the_truth_itself_is_not_circular(found: dict[str, dict[str, Number]]) -> None:
    assert found["truth"]["gain too much"].value == 0
    assert not any(number.flag == "inflates" for number in found["truth"].values())


def test_without_a_reference_the_gain_is_shown_and_nothing_is_claimed_of_it() -> None:
    base = np.random.default_rng(2).random((6, 30))
    numbers = circularity(base, base + 0.1, np.full(30, 2.0), None, weights=resample_matrix(30, 200, 1))
    assert [n.statistic for n in numbers] == ["gain by these labels", "runs at the maximum"]
    assert numbers[0].value == pytest.approx(0.1)
    assert "is unknown" in numbers[0].verdict


@pytest.mark.parametrize(("full", "flag"), [(3, ""), (4, "saturated")])
def test_labels_are_saturated_if_more_than_half_of_the_runs_reach_the_maximum(full: int, flag: str) -> None:
    base = np.random.default_rng(2).random((6, 30))
    again = np.concatenate([np.full((full, 30), 2.0), base[full:]])
    (_, most) = circularity(base, again, np.full(30, 2.0), None, weights=resample_matrix(30, 200, 1))
    assert (most.value, most.flag) == (full, flag)


def test_re_ranking_keeps_the_order_of_ties_and_puts_what_has_no_label_last(finished) -> None:
    material = read(finished / "out")
    query = material.queries[0]
    before = material.collection.runs[0].top(query)
    labels = dict(zip(before, [0.0, 1.0, np.nan, 0.0, 1.0, 1.0], strict=True))
    material.values["hash"] = np.array([labels.get(d, 0.0) if q == query else 0.0 for q, d in material.pairs])
    after = reranked(material, "hash", material.collection.runs[0]).top(query)
    assert after == [before[i] for i in (1, 4, 5, 0, 3, 2)]
