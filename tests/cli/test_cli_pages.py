"""The tables of docs/experiment.md and docs/cli.md hold of what runs: defaults, ends of numbers, fields of JSON."""

import re
import tomllib
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from judgekit.errors import ConfigError
from judgekit.experiment.file import parse_config

DOCS = Path(__file__).resolve().parents[2] / "docs"
CONTENT: dict[str, Any] = {
    "data": {"queries": "q", "docs": "d", "depth": 99},
    "runs": {"a": {"file": "a", "model": "m"}},
    "endpoints": {"NAME": {"base_url": "http://h/v1", "model": "m"}},
    "labelers": [{"kind": "containment"}],
    "prices": {"MODEL": {"prompt": 1.0, "completion": 1.0}},
}


def keys() -> Iterator[tuple[str, str, str, str]]:
    """Yield the table, the key, the type and the default of each row of the page of the experiment file."""
    for section in (DOCS / "experiment.md").read_text().split("\n## ")[1:]:
        for row in re.findall(r"^\| `(\w+)` \| (.+?) \| (.*?) \| .+ \|$", section, re.MULTILINE):
            yield section.partition("\n")[0].strip("[]"), *row


def table_of(content: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the table of a name such as ``endpoints.NAME``; the one that each run has its own of is the first."""
    # Keys that stand in no table come before all of them.
    if name == "Every key":
        return content
    for part in name.split("."):
        content = content.setdefault(part, {})
    return content["a"] if name == "runs" else content


DEFAULTS = [(name, key, default) for name, key, _, default in keys() if default.startswith("`")]


@pytest.mark.parametrize(("name", "key", "default"), DEFAULTS, ids=[f"{name}.{key}" for name, key, _ in DEFAULTS])
def test_the_resolved_file_has_the_defaults_that_the_page_says(name: str, key: str, default: str) -> None:
    written = tomllib.loads(parse_config(deepcopy(CONTENT), Path("e.toml")).toml())
    assert table_of(written, name)[key] == tomllib.loads(f"is = {default.strip('`')}")["is"]


def ends() -> Iterator[Any]:
    """Yield each end of a number, and what lies beyond it."""
    for name, key, kind, _ in keys():
        for what, end in re.findall(r"(from|to) ([\d.]+)", kind):
            number = float(end) if "." in end else int(end)
            step = 0.0005 if "." in end else 1
            values = [number, number - step if what == "from" else number + step]
            if kind.startswith("list"):
                values = [[value] for value in values]
            yield pytest.param(name, key, *values, id=f"{name}.{key} {what} {end}")


@pytest.mark.parametrize(("name", "key", "last", "beyond"), [*ends()])
def test_the_ends_of_numbers_are_those_of_the_page(name: str, key: str, last: Any, beyond: Any) -> None:
    content = deepcopy(CONTENT) | {"answers": {"depths": [1]}}
    table_of(content, name)[key] = last
    parse_config(deepcopy(content), Path("e.toml"))
    table_of(content, name)[key] = beyond
    with pytest.raises(ConfigError, match=key):
        parse_config(content, Path("e.toml"))
