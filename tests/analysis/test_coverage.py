"""A small cell of the coverage simulation, and what is looked up from its results."""

import importlib.util
import sys
from math import sqrt
from pathlib import Path

import pytest

from judgekit.analysis.coverage import uncovered

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
