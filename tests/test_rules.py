"""One declaration is the argument, the key, the option, the check and the documentation."""

from dataclasses import fields
from pathlib import Path

import pytest

from judgekit.errors import ConfigError, UsageError
from judgekit.experiment.file import SECTIONS, parse_config
from judgekit.rules import Rules
from judgekit.settings import attributes
from tests.commands import Judgekit


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"use": "chose-runs"}, "use must be one of choose-runs, find-questions.*Did you mean 'choose-runs'"),
        ({"resamples": 99}, "resamples must be a whole number from 100 to 100,000, not 99"),
        ({"resamples": 100_001}, "not 100001"),
        ({"resamples": 100.0}, "whole number"),
        ({"seed": -1}, "seed must be a whole number of at least 0, not -1"),
        ({"confidence": 1.0}, r"confidence must be a number from 0\.5 to 0\.999, not 1\.0"),
        ({"confidence": 0.4}, r"not 0\.4"),
        ({"margin_points": float("nan")}, "margin_points must be a number of at least 0, not nan"),
        ({"accept_mixed_models": 1}, "accept_mixed_models must be true or false"),
        ({"primary": ""}, "primary must be a text"),
    ],
)
def test_what_a_rule_may_not_be_is_refused_wherever_it_is_given(
    given: dict[str, object], said: str, judgekit: Judgekit, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=said):
        Rules(**given)  # type: ignore[arg-type]
    content = {"data": {"queries": "q", "docs": "d", "depth": 5}, "runs": {"a": "a"}, "labelers": [{"kind": "x"}]}
    with pytest.raises(ConfigError, match=next(iter(given))):
        parse_config({**content, "analysis": given}, tmp_path / "experiment.toml")


def test_rules_that_nobody_sets_are_those_of_the_pages() -> None:
    rules = Rules()
    assert (rules.margin_points, rules.confidence, rules.resamples, rules.seed) == (2, 0.95, 1000, 1)
    assert not rules.accept_mixed_models
    assert [rules.of(), rules.of(1), rules.of(5)] == pytest.approx([0.975, 0.975, 0.99]), "half of the error, or less"


def test_the_rules_are_the_table_of_the_file_and_the_options_of_compare(judgekit: Judgekit) -> None:
    names = [declared.name for declared in fields(Rules)]
    assert [*SECTIONS["analysis"].model_fields] == names
    shown = " ".join(judgekit("compare", "--help").out.split())
    for name in [name for name in names if name not in ("seed", "accept_mixed_models")]:
        assert f"--{name.replace('_', '-')} " in shown
        assert attributes(Rules)[name].replace("``", "").rstrip(".")[1:] in shown
