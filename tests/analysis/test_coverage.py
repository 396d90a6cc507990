"""A small cell of the coverage simulation, and what is looked up from its results."""

import importlib.util
import sys
from math import sqrt
from pathlib import Path

import pandas as pd
import pytest

from judgekit.analysis.coverage import OFF, uncovered

SCRIPT = Path(__file__).resolve().parent.parent / "bench" / "coverage_simulation.py"


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


def test_the_readme_says_what_was_measured(simulation):
    measured = pd.read_csv(SCRIPT.with_name("coverage.csv"))
    readme = (SCRIPT.parents[2] / "README.md").read_text()
    for (level, runs), part in measured.groupby(["level", "runs"]):
        where = level if level == "query" else f"{level}, {runs} runs"
        within = part["coverage"].between(0.93, 0.97).mean()
        replicates = f"{part['replicates'].min():,}"
        spread = f"{part['coverage'].min():.3f} to {part['coverage'].max():.3f}"
        row = f"| {where} | {len(part)} | {replicates} | {within:.1%} | {spread} |"
        assert row in readme, row
