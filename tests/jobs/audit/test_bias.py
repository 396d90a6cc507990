"""Bias by surface: planted effects come back, and what is not there is not claimed."""

import numpy as np
import pandas as pd
import pytest

import judgekit as jk
from judgekit.jobs.audit.audited_run import read
from judgekit.jobs.audit.bias import slopes, surface

N = 900
UNITS = np.repeat(np.arange(180), 5)
GROUPS = UNITS % 20
SCALES = {"length": 3.0, "overlap": 0.1, "rank": 1.0, "title match": 1.0}


def looks(seed: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=N) * scale for name, scale in SCALES.items()}


def test_slopes_are_those_of_a_regression_with_the_reference_in_it_and_the_two_strongest_are_said_in_words() -> None:
    rng, found = np.random.default_rng(2), looks()
    truth = (rng.random(N) < 0.3).astype(float)
    found["overlap"] += 0.1 * truth  # a look that goes with relevance
    weights = {"length": 0.02, "overlap": -0.3, "rank": 0.01}
    label = 0.5 * truth + sum(by * found[name] for name, by in weights.items()) + rng.normal(size=N) * 0.05
    numbers = {number.subject: number for number in slopes(label, truth, found, units=UNITS, groups=GROUPS)}
    for name, number in numbers.items():
        x = found[name]
        design = np.column_stack([truth == 0, truth == 1, (x - x.mean()) / x.std()]).astype(float)
        assert number.value == pytest.approx(np.linalg.lstsq(design, label, rcond=None)[0][2])
        assert number.low < number.value < number.high
    assert [name for name, number in numbers.items() if number.flag] == ["length", "overlap"]
    assert "labels rise by" in numbers["length"].verdict
    assert "labels fall by" in numbers["overlap"].verdict
    assert not numbers["rank"].verdict


def test_labels_that_follow_the_reference_alone_are_not_called_biased() -> None:
    called = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        truth = (rng.random(N) < 0.3).astype(float)
        label = 0.5 * truth + rng.normal(size=N) * 0.2
        called += any(number.flag for number in slopes(label, truth, looks(seed + 100), units=UNITS, groups=GROUPS))
    assert called <= 5, "5 % of 40, with what chance adds"


def test_a_look_that_is_the_same_everywhere_has_no_slope() -> None:
    (number,) = slopes(np.arange(N) / N, np.arange(N) % 2.0, {"title match": np.ones(N)}, units=UNITS, groups=GROUPS)
    assert (np.isnan(number.value), number.verdict[:7]) == (True, "unknown")


def test_what_a_passage_looks_like_is_read_from_the_collection(finished) -> None:
    material = read(finished / "out")
    found = surface(material)
    pair = ("q03", "gold03")
    at = material.pairs.index(pair)
    text = material.collection.docs.get(["gold03"])[0].text
    assert found["length"][at] == pytest.approx(np.log1p(len(text.split())))
    assert np.isnan(found["title match"][at]), "it has no title"
    assert found["query-term overlap"][at] == pytest.approx(3 / 5)
    ranks = [run.top("q03").index("gold03") + 1 for run in material.collection.runs if "gold03" in run.top("q03")]
    assert found["rank (best of any run)"][at] == min(ranks)
    assert found["retrieved by exact"][at] == 1


def rows(audited: jk.Audit, labeling: str, check: str) -> pd.DataFrame:
    table = audited.table
    return table[(table["labeling"] == labeling) & (table["check"] == check)]


def test_a_labeling_of_length_follows_length_which_20_questions_do_not_show(audited: jk.Audit) -> None:
    length = rows(audited, "long", "surface").set_index("subject").loc["length"]
    assert (length["value"] > 0.05, length["low"] < 0, length["flag"]) == (True, True, "")
