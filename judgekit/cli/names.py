"""The names that commands take, each with a line about it, as listed at the end of a command's help."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

Rows = list[tuple[str, str]]


def labelers() -> Rows:
    """Return the labelers, including those of plug-ins."""
    from judgekit.labelers.base import catalog

    return [(name, about.does) for name, about in catalog().items()]


def answer_metrics() -> Rows:
    """Return the answer metrics, including those of plug-ins."""
    from judgekit.answers.quality import catalog

    return [(name, about.does) for name, about in catalog().items()]


def measures() -> Rows:
    """Return the retrieval measures."""
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
"""The kinds of names that each command takes. `judgekit list KIND NAME` shows a single name."""


def taken_by(command: str) -> Iterator[tuple[str, Rows]]:
    """Yield the names that a command takes, by heading."""
    for heading, rows in TAKEN.get(command, {}).items():
        yield heading, rows()
