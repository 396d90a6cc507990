"""An experiment's outcome may be one of which lower is better, and is asked about where tools disagree."""

from pathlib import Path

import pandas as pd
import pytest

import judgekit as jk
from judgekit.errors import ConfigError, UsageError
from tests.small import QUICK, edited, toml

RATED = toml(
    data={"queries": "queries.jsonl", "docs": "docs.jsonl", "depth": 4},
    runs={"good": "good.trec", "poor": "poor.trec"},
    labelers=[{"kind": "containment"}],
    answers={"ratings": ["ratings.csv"], "outcome": "hallucination", "depths": [4]},
    metrics={"measures": ["P"]},
    analysis=QUICK,
)


@pytest.fixture
def rated(folder: Path) -> Path:
    rows = [(f"q{i}", run, (0.1 if run == "good" else 0.8) + i / 100) for i in range(6) for run in ("good", "poor")]
    table = pd.DataFrame(rows, columns=["query_id", "run", "value"]).assign(metric="hallucination", depth=4)
    table.to_csv(folder / "ratings.csv", index=False)
    (folder / "rated.toml").write_text(RATED)
    return folder


def test_it_is_asked_before_anything_is_done(rated: Path) -> None:
    with pytest.raises(ConfigError, match=r'hallucination: tools disagree .* reverse = \["hallucination"\]'):
        jk.run.plan(rated / "rated.toml", out=rated / "results")


@pytest.mark.parametrize(("key", "leader"), [("reverse", "good"), ("as_given", "poor")])
def test_the_run_with_the_better_values_leads(key: str, leader: str, rated: Path) -> None:
    edited(rated / "rated.toml", 'outcome = "hallucination"', f'outcome = "hallucination"\n{key} = ["hallucination"]')
    done = jk.run(rated / "rated.toml", out=rated / "results")
    assert done.comparison.decision.leader == leader
    # The table keeps what the file says.
    kept = done.quality[done.quality["run"] == "good"]["value"]
    assert kept.max() == pytest.approx(0.15)


def test_a_direction_is_of_something_that_is_there_and_one_only(rated: Path) -> None:
    edited(rated / "rated.toml", 'outcome = "hallucination"', 'outcome = "hallucination"\nreverse = ["hallucinations"]')
    with pytest.raises(ConfigError, match=r"reverse: unknown metric 'hallucinations'.*'hallucination'"):
        jk.run.plan(rated / "rated.toml", out=rated / "results")
    edited(rated / "rated.toml", '["hallucinations"]', '["hallucination"]\nas_given = ["hallucination"]')
    with pytest.raises(ConfigError, match="in both reverse and as_given"):
        jk.run.plan(rated / "rated.toml", out=rated / "results")


def test_choose_takes_no_outcome_of_which_lower_is_better(folder: Path) -> None:
    edited(folder / "experiment.toml", "[answers]", '[answers]\nreverse = ["em"]\noutcome = "em"')
    with pytest.raises(UsageError, match="choose takes the run with the highest em"):
        jk.choose.plan(folder / "experiment.toml", out=folder / "choice")
