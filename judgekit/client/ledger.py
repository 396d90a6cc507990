"""The books of a session: what each stage and each endpoint took, without a memory of every request."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from judgekit.client.usage import Tally, Usage
from judgekit.wire.types import Endpoint, Origin

__all__ = ["Account", "Distinct"]


_FEW = 12
"""Below that many keys, numpy's overhead is larger than that of looking them up one by one."""


class Distinct:
    """A set of identities that takes eight bytes for each, so that a million of them are 8 MB.

    It holds a hash of 64 bits of each; two of a million identities share theirs with a chance of 3e-8.
    """

    def __init__(self, recent: int = 1 << 12) -> None:
        """Start empty; ``recent`` keys are kept in a Python set before they are packed."""
        self._limit = recent
        self._recent: set[int] = set()
        self._sorted: list[npt.NDArray[np.int64]] = []

    def add(self, keys: Collection[str]) -> list[bool]:
        """Add keys; return for each whether it is new."""
        numbers = list(map(hash, keys))
        known = self._known(numbers)
        fresh = []
        recent = self._recent
        for number, old in zip(numbers, known, strict=True):
            new = not old and number not in recent
            fresh.append(new)
            if new:
                recent.add(number)
        if len(recent) >= self._limit:
            self._settle()
        return fresh

    def _known(self, numbers: list[int]) -> list[bool]:
        if len(numbers) < _FEW:
            return [any(_holds(run, number) for run in self._sorted) for number in numbers]
        wanted = np.array(numbers, dtype=np.int64)
        known = np.zeros(len(wanted), dtype=np.bool_)
        for run in self._sorted:
            places = np.searchsorted(run, wanted)
            places[places == len(run)] = 0
            known |= run[places] == wanted
        found: list[bool] = known.tolist()
        return found

    def _settle(self) -> None:
        run = np.sort(np.fromiter(self._recent, dtype=np.int64, count=len(self._recent)))
        self._recent.clear()
        while self._sorted and len(self._sorted[-1]) <= 2 * len(run):
            run = np.sort(np.concatenate([self._sorted.pop(), run]))
        self._sorted.append(run)

    def __len__(self) -> int:
        return len(self._recent) + sum(map(len, self._sorted))


def _holds(run: npt.NDArray[np.int64], number: int) -> bool:
    place = bisect_left(run, number)
    return place < len(run) and bool(run[place] == number)


@dataclass
class Account:
    """What one stage, or one endpoint, took so far."""

    name: str
    distinct: Distinct = field(default_factory=Distinct)
    standalone: Tally = field(default_factory=Tally)
    incurred: Tally = field(default_factory=Tally)
    wall_s: float = 0.0
    done: int = 0
    total: int | None = None
    sent: int = 0
    cached: int = 0
    failed: int = 0
    again: int = 0
    told_at: float = float("-inf")
    origins: defaultdict[Endpoint, Counter[Origin]] = field(default_factory=lambda: defaultdict(Counter))

    @property
    def usage(self) -> Usage:
        """The account as a value."""
        return Usage(
            self.standalone.amount, self.incurred.amount, self.wall_s, self.sent, self.cached, self.failed, self.again
        )
