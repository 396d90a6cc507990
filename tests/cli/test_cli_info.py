"""What there is, and whether a server will do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from judgekit.cli.app import app_for
from judgekit.metrics import catalog
from judgekit.reading.prompts import list_prompts, prompt_folder
from tests.cli.conftest import Judgekit


def test_measures_are_listed_with_formula_source_range_and_what_they_reward(judgekit: Judgekit) -> None:
    said = judgekit("measures")
    assert said.code == 0
    for entry in catalog():
        assert f"{entry.name}: {entry.title}" in said.out
        assert entry.formula in said.out
        assert entry.rewards in said.out
    one = judgekit("measures", "MAP")
    assert one.out.count("formula") == 1
    assert one.out.startswith("AP:")


def test_prompts_are_listed_and_shown_as_their_files(judgekit: Judgekit) -> None:
    said = judgekit("prompts", "list")
    assert [line.split()[0] for line in said.out.splitlines()] == [prompt.name for prompt in list_prompts()]
    shown = judgekit("prompts", "show", "binary")
    assert shown.out == (prompt_folder() / "binary.toml").read_text()
    assert judgekit("prompts", "show", "binari").code == 2


def test_an_own_prompt_is_checked_before_it_is_shown(judgekit: Judgekit, folder: Path) -> None:
    (folder / "mine.toml").write_text("kind = 'judge'\n")
    said = judgekit("prompts", "show", "mine.toml")
    assert said.code == 2
    assert "mine.toml" in said.err


def test_help_shows_every_word_of_its_source() -> None:
    """What stands in square brackets is taken for markup, and lost."""
    command = typer.main.get_command(app_for())

    def texts(one: Any) -> Iterator[str]:
        yield one.help or ""
        yield from (getattr(param, "help", None) or "" for param in one.params)
        for each in getattr(one, "commands", {}).values():
            yield from texts(each)

    found = list(texts(command))
    assert len(found) > 100
    assert [text for text in found if "[" in text] == []


@pytest.mark.parametrize(
    ("command", "own"),
    [
        (["label"], {"depth", "prompt", "language", "format_in"}),
        (["answer"], {"docs", "run", "depth", "imported", "metric", "mode", "closed_book"}),
        (["annotate", "ask"], {"prompt", "prompts"}),
        (["guard"], {"qrels", "measure", "max_drop"}),
    ],
)
def test_help_tells_what_a_command_does_before_how_it_reaches_its_endpoint(command: list[str], own: set[str]) -> None:
    found: Any = typer.main.get_command(app_for())
    for name in command:
        found = found.commands[name]
    order = [param.name for param in found.params]
    assert own <= set(order[: order.index("base_url")])


def test_an_endpoint_is_checked_call_by_call(judgekit: Judgekit) -> None:
    said = judgekit("check-endpoint", "--base-url", "mock:", "--model", "mock")
    assert said.code == 0, said.err
    for what in ("chat completion", "log-probabilities", "JSON schema", "seed", "parallel requests"):
        assert what in said.out


def test_an_endpoint_that_is_down_says_how_it_was_reached_and_exits_with_3(judgekit: Judgekit) -> None:
    said = judgekit("check-endpoint", "--base-url", "http://127.0.0.1:9/v1", "--model", "m")
    assert said.code == 3
    assert "127.0.0.1:9" in said.out


def test_labelers_are_listed_with_what_they_are(judgekit: Judgekit) -> None:
    said = judgekit("labelers")
    assert said.code == 0
    for kind in ("containment", "judge", "utility", "provenance", "human"):
        assert f"\n{kind}: " in f"\n{said.out}"
