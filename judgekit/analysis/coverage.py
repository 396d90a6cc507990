"""Where the intervals were seen to cover less than 93 % or more than 97 %, by simulation.

The grid and the generator are in ``benchmarks/coverage_simulation.py``, the measured figures of all cells in
``benchmarks/coverage.csv``; this module holds the summary that is looked up at run time.
"""

from __future__ import annotations

from typing import Final

__all__ = ["OFF", "uncovered"]

OFF: Final[frozenset[tuple[str, str, int | None, int]]] = frozenset(
    {
        ("system", "concordance", 5, 1000),
        ("system", "concordance", 5, 200),
        ("system", "rho", 5, 1000),
        ("system", "tau_b", 5, 1000),
        ("system", "tau_b", 5, 200),
    }
)
"""(level, coefficient, runs, queries) of grid cells in which coverage was off."""

_QUERIES: Final = (50, 200, 1000)
_RUNS: Final = (5, 10, 30)


def _nearest(value: int, grid: tuple[int, ...]) -> int:
    """Return the grid point that is nearest in ratio."""
    return min(grid, key=lambda point: max(point, value) / max(min(point, value), 1))


def uncovered(level: str, coefficient: str, queries: int, runs: int | None) -> bool:
    """Return whether coverage was off in the grid cell nearest to a real one, or the case lies outside of the grid.

    Args:
        level: ``query``, ``within-query`` or ``system``.
        coefficient: its name.
        queries: how many queries went in.
        runs: how many runs, at system level; None elsewhere.
    """
    at = None if runs is None else _nearest(runs, _RUNS)
    return queries < _QUERIES[0] / 2 or (level, coefficient, at, _nearest(queries, _QUERIES)) in OFF
