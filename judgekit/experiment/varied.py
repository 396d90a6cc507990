"""Finds settings that never vary alone between runs, so that no difference can be put down to one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any


def never_alone(settings: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield a sentence for each setting that varies between runs only together with others.

    Args:
        settings: the values of each run's settings, by run. A setting that a run leaves out counts as a value of its
            own, such as no reranker.
    """
    names = list(dict.fromkeys(name for of_run in settings.values() for name in of_run))
    nearest: dict[str, tuple[tuple[str, str], list[str]]] = {}
    for first, second in combinations(settings, 2):
        differing = [name for name in names if settings[first].get(name) != settings[second].get(name)]
        for name in differing:
            if name not in nearest or len(differing) < len(nearest[name][1]):
                nearest[name] = (first, second), differing
    for name, ((first, second), differing) in nearest.items():
        others = [other for other in differing if other != name]
        if others:
            yield (
                f"No two runs differ in {name} alone: {first!r} and {second!r} also differ in {' and '.join(others)}. A"
                f" difference between runs cannot be put down to {name}."
            )
