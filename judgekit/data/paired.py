"""The table of answers compared in pairs, and how it differs from a table of ratings."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final

from judgekit.data.tables import Table
from judgekit.errors import DataError, nearest

PAIRS: Final = Table(
    "pairs",
    {"query_id": "name", "run_a": "name", "run_b": "name", "winner": "str"},
    {"depth": "int", "model": "str", "metric": "str", "judge": "str"},
)
"""Answers compared in pairs; ``judge`` names the comparing model, and is blank for people."""
PAIRED: Final = frozenset({"run_a", "run_b", "winner"})
"""The columns that distinguish such a table from ratings."""
_NAMES_OF_ARENAS: Final = {"query_id": "question_id", "run_a": "model_a", "run_b": "model_b"}
_ARENA: Final = frozenset({"model_a", "model_b", "winner"})


def holds_pairs(columns: Collection[str], path: str | Path | None = None) -> bool:
    """Return whether a table's columns are those of answers compared in pairs, without values.

    Raises:
        DataError: it would be, but some columns have other names.
    """
    if "value" in columns:
        return False
    lacking = sorted(PAIRED.difference(columns))
    others = [name for name in columns if name not in PAIRS.columns]
    if len(lacking) == 1:
        raise DataError(
            f"holds answers compared two by two, but lacks column {lacking[0]!r} (it has: {', '.join(columns)})."
            f"{nearest(lacking[0], others)}",
            path,
        )
    if _ARENA.issubset(columns):
        names = ", ".join(f"{name}={other}" for name, other in _NAMES_OF_ARENAS.items() if other in columns)
        raise DataError(
            "holds answers compared two by two under the names of chatbot arenas: say which column is which, as in"
            f" csv({names}):FILE, or rename them",
            path,
        )
    return not lacking
