"""A small cell of the coverage simulation, and what is looked up from its results."""

import importlib.util
import sys
from math import sqrt
from pathlib import Path

import pandas as pd
import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "coverage_simulation.py"


def script(name):
    """Return a script as a module."""
    spec = importlib.util.spec_from_file_location(name, SCRIPT.with_name(f"{name}.py"))
    sys.modules[name] = importlib.util.module_from_spec(spec)  # dataclasses look their module up
    spec.loader.exec_module(sys.modules[name])
    return sys.modules.pop(name)


@pytest.fixture(scope="module")
def simulation():
    return script("coverage_simulation")


@pytest.mark.parametrize(("level", "runs", "replicates"), [("query", 1, 120), ("within-query", 5, 100)])
def test_intervals_cover_the_truth(simulation, monkeypatch, level, runs, replicates):
    """Within 3.5 binomial standard errors of .95, less the 2 points that the goal allows."""
    monkeypatch.setitem(simulation.TRUTH_QUERIES, "query", 200_000)
    monkeypatch.setitem(simulation.TRUTH_QUERIES, "within-query", 8_000)
    table = simulation.measure(simulation.Case(level, "0.5", 50, runs, 0.3), replicates, 200)
    coverage = table["hits"] / table["replicates"]
    assert (coverage >= 0.93 - 3.5 * sqrt(0.95 * 0.05 / replicates)).all(), table.assign(coverage=coverage).to_string()
    assert set(table["kind"]) == {"single", "difference"}


def test_the_page_says_what_was_measured(simulation):
    measured = pd.read_csv(SCRIPT.with_name("coverage.csv"))
    page = SCRIPT.with_name("simulations.md").read_text()
    for (level, runs), part in measured.groupby(["level", "runs"]):
        where = level if level == "query" else f"{level}, {runs} runs"
        within = part["coverage"].between(0.93, 0.97).mean()
        replicates = f"{part['replicates'].min():,}"
        spread = f"{part['coverage'].min():.3f} to {part['coverage'].max():.3f}"
        row = f"| {where} | {len(part)} | {replicates} | {within:.1%} | {spread} |"
        assert row in page, row
