"""Every finding is a number with its interval and what it does to the verdict; a labeling's card holds all of its."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from judgekit.analysis.coefficients import Floats
from judgekit.data.outputs import clean
from judgekit.labelers.human import wilson

Ints = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]
Ends = tuple[float, float, float]
"""A value and the two ends of its interval."""

_GROUPS: Final = 20


@dataclass(frozen=True, slots=True)
class Number:
    """One finding about one labeling.

    Attributes:
        check: which of the checks.
        subject: what it is about: a probe, a look of passages, how many runs re-rank.
        statistic: what is measured of it.
        value, low, high: the number and its interval; NaN where there is none.
        n: how many pairs, queries or runs it is of.
        verdict: what it does to the verdict, or why it is missing; "" where another number of the subject says it.
        flag: a word or two for what a reader must not miss, "" where nothing is wrong.
    """

    check: str
    subject: str
    statistic: str
    value: float
    low: float = math.nan
    high: float = math.nan
    n: int = 0
    verdict: str = ""
    flag: str = ""


def unknown(check: str, subject: str, statistic: str, why: str, n: int = 0) -> Number:
    """Return a number that is not there, with the reason."""
    return Number(check, subject, statistic, math.nan, n=n, verdict=f"unknown: {why}")


def groups_of(units: Ints, seed: int) -> Ints:
    """Return which of at most 20 random groups each query is in, shape (n,); queries of one unit stay together."""
    count = int(units.max(initial=-1)) + 1
    return np.asarray(np.random.default_rng([seed, 2]).permutation(np.arange(count) % min(_GROUPS, count))[units])


def jackknife(statistic: Callable[[Bools], Floats], groups: Ints, confidence: float) -> tuple[Floats, Floats, Floats]:
    """Return statistics with their intervals: Student's t on a jackknife over groups of queries."""
    # Covers .97 to 1.00 of shares of pairs of runs: cautious, and safe for what is not a mean.
    from scipy.special import stdtrit

    used = np.unique(groups)
    values, count = np.asarray(statistic(np.ones(len(groups), np.bool_)), np.float64), len(used)
    if count < 2:
        return values, np.full_like(values, np.nan), np.full_like(values, np.nan)
    without = np.array([statistic(groups != left) for left in used])
    spread = np.sqrt((count - 1) / count * ((without - without.mean(axis=0)) ** 2).sum(axis=0))
    reach = float(stdtrit(count - 1, (1 + confidence) / 2)) * spread
    return values, values - reach, values + reach


def mean_of(values: Floats, groups: Ints, confidence: float, least: float = -1.0, most: float = 1.0) -> Ends:
    """Return a mean with the interval of `jackknife`, as far as it can be."""
    found = jackknife(lambda keep: np.array([values[keep].mean()]), groups, confidence)
    value, low, high = (float(each[0]) for each in found)
    return value, max(low, least), min(high, most)


def _together(values: Floats, units: Ints) -> float:
    """Return how many independent values so many values of few units are worth."""
    _, unit = np.unique(units, return_inverse=True)
    apart = values - values.mean()
    alone, count = float((apart**2).sum()), int(unit.max()) + 1
    if alone == 0:  # nothing to learn it from: as if those of a unit were one
        return float(count)
    return len(values) / (
        max(float((np.bincount(unit, apart) ** 2).sum()) / alone, 1.0) if count < len(values) else 1.0
    )


def share(hits: Bools, units: Ints, confidence: float) -> Ends:
    """Return a share with its Wilson interval; ``units`` says which hits belong to one query."""
    value = float(hits.mean())
    worth = _together(hits.astype(np.float64), units)
    return value, *wilson(value * worth, worth, confidence)


def share_change(before: Bools, after: Bools, units: Ints, confidence: float) -> Ends:
    """Return by how much a share grew on the same cases, with the paired interval of Newcombe (1998, no. 10)."""
    # Covers .94 to .97 of planted effects (benchmarks/gullibility.csv), and is never of zero width.
    n, p1, p2 = len(before), float(after.mean()), float(before.mean())
    worth = _together(after.astype(np.float64) - before, units)
    both, neither, gone, come = (
        worth / n * float(cell.sum())
        for cell in (before & after, ~before & ~after, before & ~after, ~before & after)
    )  # fmt: skip
    (low1, high1), (low2, high2) = wilson(p1 * worth, worth, confidence), wilson(p2 * worth, worth, confidence)
    margins = math.sqrt((both + come) * (gone + neither) * (both + gone) * (come + neither))
    ahead = both * neither - come * gone
    phi = (max(ahead - worth / 2, 0) if ahead > 0 else ahead) / margins if margins else 0.0

    def reach(x: float, y: float) -> float:
        return math.sqrt(max(x * x - 2 * phi * x * y + y * y, 0.0))

    return p1 - p2, p1 - p2 - reach(p1 - low1, high2 - p2), p1 - p2 + reach(p2 - low2, high1 - p1)


def mean_change(change: Floats, units: Ints, reach: float, confidence: float) -> Ends:
    """Return a mean of changes that lie between -reach and reach, with an interval that is never of zero width."""
    from judgekit.analysis.intervals import within_query_interval

    low, high = within_query_interval((change / reach + 1) / 2, confidence, units)
    return float(change.mean()), (2 * low - 1) * reach, (2 * high - 1) * reach


TITLES: Mapping[str, str] = {
    "circularity": "Circularity: what re-ranking by these labels does",
    "jury": "Is the jury worth it?",
    "surface": "What the labels follow besides relevance (share of the scale per standard deviation)",
    "overrating": "Overrating",
    "gullibility": "Gullibility: what tampering with passages that are not relevant does",
}


@dataclass(frozen=True)
class Card:
    """A labeling's audit.

    Attributes:
        labeling: its name.
        facts: what it is and what it was compared with, (what, how) in order.
        numbers: what was found, in the order of the checks.
    """

    labeling: str
    facts: tuple[tuple[str, str], ...]
    numbers: tuple[Number, ...]

    @property
    def flags(self) -> list[str]:
        """What a reader must not miss, each once."""
        return list(dict.fromkeys(number.flag for number in self.numbers if number.flag))

    def tables(self) -> Iterator[tuple[str, list[list[str]]]]:
        """Yield each check's title and its table, the first row being the heads: a row per subject."""
        for check in dict.fromkeys(number.check for number in self.numbers):
            found = [number for number in self.numbers if number.check == check]
            heads = list(dict.fromkeys(number.statistic for number in found))
            rows = [["", *heads, "n", "what it does to the verdict"]]
            for subject in dict.fromkeys(number.subject for number in found):
                mine = {number.statistic: number for number in found if number.subject == subject}
                flags = [f"{flag.upper()}:" for flag in dict.fromkeys(one.flag for one in mine.values()) if flag]
                told = "; ".join(dict.fromkeys(one.verdict for one in mine.values() if one.verdict))
                size = f"{max(one.n for one in mine.values()):,}"
                rows.append([subject, *(_cell(mine.get(head)) for head in heads), size, " ".join([*flags, told])])
            yield TITLES[check], rows

    def markdown(self) -> str:
        """Return the card as Markdown."""
        lines = [f"# {_plain(self.labeling)}", "", *(f"- {what}: {_plain(how)}" for what, how in self.facts), ""]
        lines += [f"**{', '.join(self.flags)}**" if self.flags else "Nothing is flagged.", ""]
        for title, rows in self.tables():
            lines += [f"## {title}", ""]
            table = ["| " + " | ".join(map(_plain, row)) + " |" for row in rows]
            lines += [table[0], "|" + " --- |" * len(rows[0]), *table[1:], ""]
        return "\n".join(lines)


def _cell(number: Number | None) -> str:
    """Return a number with its interval."""
    if number is None:
        return ""
    if math.isnan(number.value):
        return "–"
    digits = 0 if number.statistic.startswith("runs at") else 4 if abs(number.value) < 0.01 and number.value else 3
    if math.isnan(number.low):
        return f"{number.value:.{digits}f}"
    return f"{number.value:.{digits}f} [{number.low:.{digits}f}, {number.high:.{digits}f}]"


def _plain(text: str) -> str:
    return clean(text).replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
