"""The names that commands take, with a line about each: they stand at the end of a command's help."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

Rows = list[tuple[str, str]]


def labelers() -> Rows:
    """Return the labelers, those of plug-ins among them."""
    from judgekit.labelers.base import catalog

    return [(name, about.does) for name, about in catalog().items()]


def answer_metrics() -> Rows:
    """Return the answer metrics, those of plug-ins among them."""
    from judgekit.answers.quality import catalog

    return [(name, about.does) for name, about in catalog().items()]


def measures() -> Rows:
    """Return the measures of retrieval."""
    from judgekit.metrics import catalog

    return [(entry.name, entry.title) for entry in catalog()]


def answer_prompts() -> Rows:
    """Return the prompts that ask for answers."""
    from judgekit.reading.prompts import list_prompts

    return [(prompt.name, prompt.about) for prompt in list_prompts() if prompt.kind.startswith("answer")]


TAKEN: Final[Mapping[str, Mapping[str, Callable[[], Rows]]]] = {
    "label": {"Labelers": labelers},
    "judge-test": {"Labelers": labelers},
    "guard": {"Labelers": labelers},
    "answer": {"Answer metrics": answer_metrics, "Prompts": answer_prompts},
    "score": {"Measures": measures},
}
"""By command the kinds of names that it takes; one by one they are shown by `judgekit list KIND NAME`."""


def taken_by(command: str) -> Iterator[tuple[str, Rows]]:
    """Yield the names that a command takes, by heading."""
    for heading, rows in TAKEN.get(command, {}).items():
        yield heading, rows()
