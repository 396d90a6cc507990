"""The simulation of passages: its worlds do what their names say, and the pages say what it measured."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks import passages_simulation as simulation

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def measured() -> pd.DataFrame:
    return pd.read_csv(simulation.TABLE, keep_default_na=False, na_values=["nan"])


def test_the_pages_say_what_was_measured(measured: pd.DataFrame) -> None:
    assert simulation.tables(measured) in simulation.PAGE.read_text(encoding="utf-8")
    means = measured.groupby("world").mean(numeric_only=True)
    by_run = means.loc["misled by run"]
    page = " ".join((ROOT / "docs" / "labelers.md").read_text(encoding="utf-8").split())
    loss = {way: f"{by_run[f'loss, {way}']:.0f}" for way in ("reads", "own", "a coin")}
    least = f"{by_run['loss, distraction']:.1f}".removeprefix("0")
    assert f"answers {loss['reads']} (`reads`) and {loss['own']} points (`own`) worse than the best;" in page
    assert f"worse than the best; with `distraction` it is {least}, by a coin flip {loss['a coin']}." in page
    assert "reads" not in {*measured["kept"], *measured["kept of those without references"]}


@pytest.mark.parametrize("world", simulation.WORLDS)
def test_labels_come_from_what_the_llm_makes_of_each_passage(world: str) -> None:
    rng = np.random.default_rng(3)
    runs = simulation.Runs.draw(simulation.WORLDS[world], rng)
    scores, quality = runs.asked(slice(simulation.PILOT), 300, rng)
    assert scores.shape == (len(simulation.LABELINGS), simulation.PILOT, 300)
    assert {*np.unique(quality)} == {0.0, 1.0}
    by_name = dict(zip(simulation.LABELINGS, scores, strict=True))
    # A passage from which the LLM answers rightly is one from which it answers.
    passages = simulation._Passages.draw(simulation.WORLDS[world], 300, rng)
    labels = passages.labels(np.tile(np.arange(simulation.TOP), (300, 1)), rng)
    assert (labels["reads"] >= labels["erag"]).all()
    assert (labels["own"] <= labels["reads"]).all()
    np.testing.assert_array_equal(np.abs(labels["distraction"]) > 0, labels["reads"] > 0)
    assert by_name["erag"].min() >= 0
    assert by_name["erag"].max() <= 1 + 1e-12
    misled = (passages.wrong >= 0)[~passages.relevant].mean()
    assert (misled > 0.25) == (world in ("often misled", "own answer wrong"))
