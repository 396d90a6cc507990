"""What the public names say of themselves: every section that there is something to say in."""

import dataclasses
import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

import judgekit

FUNCTIONS = [name for name in judgekit.__all__ if inspect.isroutine(getattr(judgekit, name))]
RECORDS = [
    name
    for name in judgekit.__all__
    if dataclasses.is_dataclass(getattr(judgekit, name)) and dataclasses.fields(getattr(judgekit, name))
]
"""Classes with fields of their own, which bases of plug-ins lack."""
SECTION = re.compile(r"^(Args|Returns|Yields|Raises|Attributes):\n((?:    .+\n?|\n(?=    ))+)", re.M)
SOURCES = {
    "agree": "Cohen",
    "choose": "Waudby-Smith",
    "compare": "eRAG",
    "figures": "eRAG",
    "score": "trec_eval",
}
"""Functions whose method others published, and the name that says where."""
UNITS = {"compare": "points", "decide": "points", "choose": "points", "chunks": "characters", "guard": "share"}
SHAPES = {"score": "shape (", "agree": "a row for each", "read_qrels": "a row for each", "read_table": "a row for each"}


def sections(thing: Any) -> dict[str, str]:
    """The sections of a docstring by their titles."""
    return dict(SECTION.findall(inspect.getdoc(thing) or ""))


def taken(function: Callable[..., Any]) -> list[str]:
    """The names of the parameters."""
    return list(inspect.signature(function).parameters)


def test_there_are_public_functions_and_records() -> None:
    assert len(FUNCTIONS) > 20
    assert len(RECORDS) > 10


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_says_what_it_takes_returns_and_raises(name: str) -> None:
    function = getattr(judgekit, name)
    said = sections(function)
    described = set(re.findall(r"^    \*{0,2}(\w+):", said.get("Args", ""), re.M))
    # Parameters that are documented together stand in one line: "queries, docs: as for …".
    together = re.findall(r"^    ((?:\w+, )+\w+):", said.get("Args", ""), re.M)
    described |= {each for line in together for each in line.split(", ")}
    assert set(taken(function)) <= described
    assert "Raises" in said
    # By its name alone: annotations are not evaluated at run time.
    returns = str(inspect.signature(function).return_annotation)
    assert ("Returns" in said) == (returns != "None")


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_describes_each_field(name: str) -> None:
    record = getattr(judgekit, name)
    said = sections(record).get("Attributes", "")
    described = set(re.findall(r"\w+", " ".join(re.findall(r"^    ([\w, ]+):", said, re.M))))
    public = {field.name for field in dataclasses.fields(record) if field.init and not field.name.startswith("_")}
    assert public <= described


@pytest.mark.parametrize(("name", "words"), [*SOURCES.items(), *UNITS.items(), *SHAPES.items()])
def test_what_a_function_returns_has_its_unit_shape_and_source(name: str, words: str) -> None:
    assert words in " ".join(sections(getattr(judgekit, name))["Returns"].split())
