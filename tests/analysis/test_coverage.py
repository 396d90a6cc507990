"""A small cell of the coverage simulation, and what is looked up from its results."""

import importlib.util
import sys
from math import sqrt
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from judgekit.analysis.flags import OFF, uncovered
from judgekit.analysis.primary import USES

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "coverage_simulation.py"


@pytest.fixture(scope="module")
def simulation():
    spec = importlib.util.spec_from_file_location("coverage_simulation", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.mark.parametrize(
    ("level", "runs", "replicates"), [("query", 1, 250), ("within-query", 5, 200), ("system", 10, 120)]
)
def test_intervals_cover_the_truth(simulation, monkeypatch, level, runs, replicates):
    """Within 3.5 binomial standard errors of .95, less the 2 points that the goal allows."""
    monkeypatch.setitem(simulation.TRUTH_QUERIES, "query", 200_000)
    monkeypatch.setitem(simulation.TRUTH_QUERIES, "within-query", 8_000)
    table = simulation.measure(simulation.Case(level, "0.5", 50, runs, 0.3), replicates, 200)
    coverage = table["hits"] / table["replicates"]
    assert (coverage >= 0.93 - 3.5 * sqrt(0.95 * 0.05 / replicates)).all(), table.assign(coverage=coverage).to_string()
    assert set(table["kind"]) == {"single", "difference"}


def test_far_below_the_smallest_experiment_simulated_nothing_is_promised():
    assert uncovered("query", "tau_b", 20, None)
    assert not uncovered("query", "tau_b", 200, None)


def test_what_is_flagged_is_what_was_measured(simulation):
    measured = pd.read_csv(SCRIPT.with_name("coverage.csv"))
    assert simulation.off(measured) == set(OFF)


def test_the_page_says_what_was_measured(simulation):
    measured = pd.read_csv(SCRIPT.with_name("coverage.csv"))
    page = (SCRIPT.parents[1] / "docs" / "statistics.md").read_text()
    for (level, runs), part in measured.groupby(["level", "runs"]):
        where = level if level == "query" else f"{level}, {runs} runs"
        within = part["coverage"].between(0.93, 0.97).mean()
        replicates = f"{part['replicates'].min():,}"
        spread = f"{part['coverage'].min():.3f} to {part['coverage'].max():.3f}"
        row = f"| {where} | {len(part)} | {replicates} | {within:.1%} | {spread} |"
        assert row in page, row


@pytest.fixture(scope="module")
def verdicts():
    spec = importlib.util.spec_from_file_location("verdict_simulation", SCRIPT.with_name("verdict_simulation.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_the_texts_say_what_was_measured_of_the_verdict(verdicts):
    measured = pd.read_csv(SCRIPT.with_name("verdict.csv"))
    page = (SCRIPT.parents[1] / "docs" / "statistics.md").read_text()
    assert verdicts.page(measured) in page
    assert verdicts.summary(measured) in page


def test_experiments_are_analysed_as_compare_does(verdicts):
    """The same scores and answers, as tables, give the same labelings the same standing."""
    from judgekit.analysis import compare
    from judgekit.analysis.levels import Resamples
    from judgekit.analysis.resampling import resample_matrix

    world = verdicts.World("small", labels=(1.0, 0.3))
    scores, quality = world.questions(40, 0.3, np.random.default_rng(0))
    weights = Resamples(resample_matrix(40, 200, 1), 1)
    mine = {found.use: found for found, _ in verdicts.experiment(world, scores, quality, weights, tuple(USES))}
    ids = [(f"r{i}", f"q{j:05d}") for i in range(6) for j in range(40)]
    answers = pd.DataFrame(ids, columns=["run", "query_id"]).assign(depth=5, model="m", metric="em")
    answers["value"] = quality.ravel()
    pairs = pd.DataFrame(ids, columns=["run", "query_id"])
    table = [pairs.assign(labeling=f"l{i}", value=each.ravel()) for i, each in enumerate(scores)]
    costs = pd.DataFrame({"labeling": ["l0", "l1"], "requests": [1, 2]})
    found = compare(pd.concat(table).assign(measure="nDCG@5"), answers, resamples=200, costs=costs)
    for use, verdict in found.verdicts.items():
        for ours, theirs in zip(mine[use].standings, verdict.found.standings, strict=True):
            assert ours.labeling == theirs.labeling
            assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high))
        assert mine[use].better == verdict.found.better
    gains, theirs = mine["choose-runs"].gains, found.verdicts["choose-runs"].found.gains
    assert (gains.cheapest, gains.by_answers) == (theirs.cheapest, pytest.approx(theirs.by_answers))


def test_a_value_that_the_noise_pulls_down_to_the_end_of_its_interval_is_flagged():
    from judgekit.analysis import compare

    rng = np.random.default_rng(0)
    pairs = pd.DataFrame(
        [(f"r{i:02d}", f"q{j:02d}") for i in range(30) for j in range(60)], columns=["run", "query_id"]
    )
    skill = np.repeat(np.linspace(-1, 1, 30), 60)
    noisy = [skill + rng.normal(size=1800) for _ in range(3)]
    scores = [pairs.assign(labeling=f"l{i}", measure="nDCG@5", value=each) for i, each in enumerate(noisy[:2])]
    answers = pairs.assign(depth=5, model="m", metric="f1", value=noisy[2])
    system = compare(pd.concat(scores), answers, resamples=200).table.query("level == 'system'")
    at_end = (system["value"] == system["ci_low"]) & (system["ci_low"] < system["ci_high"])
    assert at_end.any()
    assert (system["flags"].str.contains("end_of_interval") == at_end).all()
