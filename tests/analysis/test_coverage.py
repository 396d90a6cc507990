"""A small cell of the coverage simulation, and what is looked up from its results."""

import importlib.util
import sys
from dataclasses import replace
from math import sqrt
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from judgekit.analysis import Rules, compare
from judgekit.analysis.levels import Resamples
from judgekit.analysis.resampling import resample_matrix
from tests.analysis.worlds import tables

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


@pytest.fixture(scope="module")
def decisions():
    return script("decision_simulation")


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
    page = (SCRIPT.parents[1] / "docs" / "statistics.md").read_text()
    for (level, runs), part in measured.groupby(["level", "runs"]):
        where = level if level == "query" else f"{level}, {runs} runs"
        within = part["coverage"].between(0.93, 0.97).mean()
        replicates = f"{part['replicates'].min():,}"
        spread = f"{part['coverage'].min():.3f} to {part['coverage'].max():.3f}"
        row = f"| {where} | {len(part)} | {replicates} | {within:.1%} | {spread} |"
        assert row in page, row


def test_claims_are_false_as_rarely_and_intervals_cover_as_often_as_promised(decisions):
    """For the table as somebody makes it anew: chance has two standard errors for claims, for intervals .02."""
    measured = decisions.claims()
    part = measured[measured["kind"].isin(["false", "coverage"])]
    reach = 2 * (0.05 * 0.95 / part["replicates"]) ** 0.5
    worse = part[
        ((part["kind"] == "false") & (part["share"] > 0.05 + reach))
        | ((part["kind"] == "coverage") & (part["share"] < 0.93))
    ]
    assert worse.empty, worse.to_string()


def test_the_page_says_what_was_simulated(decisions):
    page = decisions.PAGE.read_text(encoding="utf-8")
    assert page == decisions.page(page)


def test_a_decision_is_simulated_as_compare_makes_it(decisions):
    """The same scores and answers, as tables, lead to the same findings."""
    world = decisions.World("small", labels=(1.0, 0.3))
    drawn = world.draw(40, np.random.default_rng(0), 0.3)
    panel = replace(decisions.panel_of(world, drawn), scores=drawn.scores[:2], labelings=("l0", "l1"))
    mine = decisions.decide(panel, "choose-runs", Resamples(resample_matrix(40, 200, 1)))
    given = tables({f"l{i}": drawn.scores[i] for i in range(2)}, drawn.quality, panel.runs)
    theirs = compare(*given, rules=Rules(resamples=200)).decision.findings
    for ours, other in zip(mine.each, theirs.each, strict=True):
        assert (ours.labeling, ours.says) == (other.labeling, other.says)
        assert [*ours.gain, *ours.r] == pytest.approx([*other.gain, *other.r])
    assert (mine.closer, mine.better, mine.needed) == (theirs.closer, theirs.better, theirs.needed)
