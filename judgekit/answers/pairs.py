"""Answers compared in pairs, by people or by a judge, turned into ratings of each run's answer.

The value of a run's answer is the share of its comparisons on the question that it won, 0 to 1; a tie counts half. For
two runs these are shares of votes, which add up to 1. For more runs, if all pairs met equally often, it is the Borda
score divided by its largest value.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pandas as pd

from judgekit.answers.encounters import Encounter, told_of
from judgekit.data.tables import BY_AN_LLM, PAIRED, PAIRS, RATERS, RATINGS, NotedTable
from judgekit.errors import DataError, nearest

WINS: Final = "wins"
"""The metric of answers compared in pairs."""
SHARES_OF_WINS: Final = (WINS, WINS + BY_AN_LLM)
"""The names of that metric, by kind of rater."""
# Chatbot arenas' votes are model_a, model_b and, for two bad answers, "tie (bothbad)".
_FIRST: Final = frozenset({"a", "run_a", "model_a"})
_SECOND: Final = frozenset({"b", "run_b", "model_b"})
_TIE: Final = frozenset({"tie", "draw", "equal", "tie (bothbad)"})
_KEPT: Final = ("depth", "model")
_NAMES_OF_ARENAS: Final = {"query_id": "question_id", "run_a": "model_a", "run_b": "model_b"}
_ARENA: Final = frozenset({"model_a", "model_b", "winner"})
_Key = tuple[Hashable, ...]


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


def wins(table: pd.DataFrame, path: str | Path | None = None, cluster: str | None = None) -> NotedTable:
    """Return the share of its comparisons that each run's answer won, as ratings on the scale unit.

    The notes tell what to know about the comparisons.

    Args:
        table: columns of `PAIRS`; an index named ``line`` holds the lines of the file. A blank winner says nothing.
        path: the file, for messages.
        cluster: the column of raters, if each rater's shares are wanted.

    Raises:
        DataError: a winner is neither of the two, a run meets itself, or two lines contradict each other; with the
            line.
    """
    lines = table.index.tolist() if table.index.name == "line" else None
    table = PAIRS.check(table, path, lines)
    person = cluster if cluster in table.columns else next((name for name in RATERS if name in table.columns), None)
    kept = [name for name in (*_KEPT, cluster) if name in table.columns]
    compared = _Compared(path, person)
    won: defaultdict[_Key, list[float]] = defaultdict(list)
    places: dict[_Key, int | None] = {}
    for row, line in zip(table.to_dict("records"), lines or [None] * len(table), strict=True):
        share = compared.add(row, line)
        if share is None:
            continue
        for run, value in ((row["run_a"], share), (row["run_b"], 1 - share)):
            key = (row["query_id"], run, _metric(row), *(row[name] for name in kept))
            won[key].append(value)
            places.setdefault(key, line)
    rated = pd.DataFrame([*won], columns=["query_id", "run", "metric", *kept])
    rated = rated.assign(value=[sum(values) / len(values) for values in won.values()], scale="unit")
    if lines:
        rated.index = pd.Index([places[key] for key in won], name="line")
    return NotedTable(RATINGS.check(rated, path), tuple(told_of(compared.encounters())))


def _metric(row: Mapping[Any, Any]) -> str:
    """Return the metric of a comparison; as for all ratings, the name tells whether a model made it."""
    return str(row.get("metric") or (WINS + BY_AN_LLM if row.get("judge") else WINS))


class _Compared:
    """Reads comparisons one by one, and refuses those that contradict each other."""

    def __init__(self, path: str | Path | None, person: str | None) -> None:
        self._path = path
        self._who = [name for name in ("judge", person) if name is not None]
        self._seen: dict[_Key, tuple[float | None, int | None]] = {}

    def add(self, row: Mapping[Any, Any], line: int | None) -> float | None:
        """Return the first answer's share of a comparison: 1, 0.5 or 0; None without a result."""
        run_a, run_b = str(row["run_a"]), str(row["run_b"])
        if run_a == run_b:
            raise self._error(row, f"compares run {run_a!r} with itself", line)
        share = self._share(row, line)
        key = (row["query_id"], run_a, run_b, _metric(row), *(row.get(name) for name in (*_KEPT, *self._who)))
        if key in self._seen:
            earlier, place = self._seen[key]
            what = "twice" if share == earlier else "twice, with different winners"
            before = f" (first in line {place})" if place else ""
            cure = "" if len(self._who) > 1 else ". If several people compared them, name each in a column 'user'"
            raise self._error(row, f"compares {run_a!r} with {run_b!r} {what}{before}{cure}", line)
        self._seen[key] = share, line
        return share

    def _share(self, row: Mapping[Any, Any], line: int | None) -> float | None:
        said = row["winner"].strip()
        if not said:
            return None
        meant: set[float] = set()
        for share, name, words in ((1.0, row["run_a"], _FIRST), (0.0, row["run_b"], _SECOND), (0.5, None, _TIE)):
            if said == name or said.casefold() in words:
                meant.add(share)
        if len(meant) == 1:
            return meant.pop()
        if meant:
            reason = (
                f"the winner {said!r} is the name of one run and stands for something else: write run_a, run_b or tie"
            )
            raise self._error(row, reason, line)
        raise self._error(row, f"the winner {said!r} is none of {row['run_a']}, {row['run_b']}, a, b and tie", line)

    def _error(self, row: Mapping[Any, Any], reason: str, line: int | None) -> DataError:
        return DataError(f"query {row['query_id']!r}: {reason}", self._path, line)

    def encounters(self) -> Iterator[Encounter]:
        """Yield the comparisons with a result."""
        for (query_id, run_a, run_b, *about), (share, _) in self._seen.items():
            if share is not None:
                yield Encounter(query_id, str(run_a), str(run_b), share, tuple(about))
