"""Whether high or low values of a tool's metric are the good ones: what its name says, or whom to ask.

The direction is a fact of a metric, and data cannot tell it: values that run against the answers are also what a
metric shows that misleads. It is never guessed. A name decides where no tool disagrees; where tools do (deepeval turned
its hallucination score round in version 4), the user is asked.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final, Literal

from judgekit.errors import UsageError, not_among

Direction = Literal["higher", "lower", "asked", "not a score"]

_LOWER: Final = (
    {"noise", "sensitivity"},
    {"perplexity"},
    {"wer"},
    {"word", "error", "rate"},
    {"cer"},
    {"character", "error", "rate"},
    {"edit", "distance"},
    {"levenshtein", "distance"},
)
"""Words of the names of metrics whose small values are the good ones in every tool that has them."""
_DISPUTED: Final = frozenset({"hallucination", "hallucinations", "toxicity", "bias"})
"""Words of the names of metrics that tools score in either direction."""
_BOOK_KEEPING: Final = frozenset(
    "time latency duration seconds ms cost price tokens order index timestamp".split()  # noqa: SIM905
)
"""Last words of the names of columns that say what an answer took, or where it stands."""
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def by_name(name: str) -> Direction:
    """Return what the name of a metric says of its direction."""
    words = [word.casefold() for word in _WORD.findall(name)]
    if words and words[-1] in _BOOK_KEEPING:
        return "not a score"
    if any(lower <= {*words} for lower in _LOWER):
        return "lower"
    return "asked" if _DISPUTED & {*words} else "higher"


@dataclass(frozen=True)
class Directions:
    """What the user says of the direction of metrics.

    Attributes:
        reverse: metrics whose small values are the good ones.
        as_given: metrics whose large values are the good ones, whatever their names say.
    """

    reverse: Collection[str] = ()
    as_given: Collection[str] = ()

    def __post_init__(self) -> None:
        both = sorted({*self.reverse} & {*self.as_given})
        if both:
            raise UsageError(f"{both[0]} is named in both reverse and as_given: leave it out of one of them")

    def of(self, name: str, in_file: Direction | None = None) -> Direction:
        """Return the direction of a metric: as the user says, else the file, else its name."""
        if name in self.reverse:
            return "lower"
        if name in self.as_given:
            return "higher"
        return in_file or by_name(name)

    def said(self, name: str) -> bool:
        """Return whether the user says it."""
        return name in self.reverse or name in self.as_given

    def check(self, known: Iterable[str]) -> None:
        """Refuse names that no metric has."""
        names = [*dict.fromkeys(known)]
        for option, given in (("reverse", self.reverse), ("as_given", self.as_given)):
            for name in given:
                if name not in names:
                    raise UsageError(f"{option}: {not_among('metric', name, names)}")


def question(name: str) -> str:
    """Return how to say the direction of a metric."""
    return f"say `--reverse {name}` if lower is better, else `--as-given {name}`"


AS_NAMED: Final = Directions()
"""Nothing is said by the user."""
