"""The card of a labeling: its audit on one page, as Markdown, to put next to published numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from judgekit.data.outputs import clean
from judgekit.plugins.audit.numbers import Number

__all__ = ["TITLES", "Card"]

TITLES: Mapping[str, str] = {
    "circularity": "Circularity: what re-ranking by these labels does",
    "jury": "Is the jury worth it?",
    "surface": "What the labels follow besides relevance (share of the scale per standard deviation)",
    "overrating": "Overrating",
    "gullibility": "Gullibility: what tampering with passages that are not relevant does",
    "consistency": "Consistency",
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
            yield TITLES.get(check, check), rows

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
