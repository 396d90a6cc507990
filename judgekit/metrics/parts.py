"""Scoring what is larger than memory: part by part of the queries, by the same engine, with the same result."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from judgekit.data.labelings import Scale
from judgekit.data.ordering import Ties
from judgekit.data.parts import Parts, count_rows
from judgekit.metrics.evaluation import evaluate
from judgekit.metrics.measures import Measure
from judgekit.metrics.results import Evaluation

__all__ = ["evaluate_parts", "parts_for"]

_ROWS: Final = 2_000_000
"""Rows of all runs together in a part: scoring them takes a few hundred megabytes."""


def parts_for(runs: Mapping[str, Path]) -> int:
    """Return into how many parts runs are best divided, by the rows of those that can be streamed."""
    return 1 + sum(count_rows(path) or 0 for path in runs.values()) // _ROWS


def evaluate_parts(
    runs: Mapping[str, Path],
    labels: Mapping[str, Path],
    measures: list[Measure],
    count: int,
    *,
    scales: Mapping[str, Scale],
    ties: Ties,
    **options: Any,
) -> Evaluation:
    """Score runs with labels, in so many parts; see `evaluate` for the options.

    Raises:
        DataError, UsageError: as for `judgekit.score`.
    """
    with tempfile.TemporaryDirectory(prefix="judgekit-") as folder:
        parts = Parts(Path(folder), count)
        known = {name: parts.add_labels(path, name, scales.get(name)) for name, path in labels.items()}
        for name, path in runs.items():
            parts.add_run(path, name, ties)

        def evaluations() -> Iterator[Evaluation]:
            for part in range(count):
                labelings = [parts.labels(part, name, known[name], declared=name in scales) for name in labels]
                yield evaluate([parts.run(part, name, ties) for name in runs], labelings, measures, **options)

        return Evaluation.joined(evaluations())
