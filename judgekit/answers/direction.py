"""Whether higher or lower values of a tool's metric are better: by its name, or by asking the user.

Data cannot tell the direction of a metric, since a misleading metric also runs against the answers. So it is never
guessed. The name decides if all tools agree; if they do not (deepeval reversed its hallucination score in version 4),
the user is asked.
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
"""Words in the names of metrics for which lower is better in every tool."""
_DISPUTED: Final = frozenset({"hallucination", "hallucinations", "toxicity", "bias"})
"""Words in the names of metrics on whose direction tools disagree."""
_BOOK_KEEPING: Final = frozenset(
    "time latency duration seconds ms cost price tokens order index timestamp".split()  # noqa: SIM905
)
"""Last words in the names of columns with an answer's cost or place."""
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def by_name(name: str) -> Direction:
    """Return the direction of a metric by its name."""
    words = [word.casefold() for word in _WORD.findall(name)]
    if words and words[-1] in _BOOK_KEEPING:
        return "not a score"
    if any(lower <= {*words} for lower in _LOWER):
        return "lower"
    return "asked" if _DISPUTED & {*words} else "higher"


@dataclass(frozen=True)
class Directions:
    """The user's declarations about the direction of metrics.

    Attributes:
        reverse: metrics for which lower is better.
        as_given: metrics for which higher is better, whatever their names say.
    """

    reverse: Collection[str] = ()
    as_given: Collection[str] = ()

    def __post_init__(self) -> None:
        both = sorted({*self.reverse} & {*self.as_given})
        if both:
            raise UsageError(f"{both[0]} is named in both reverse and as_given: leave it out of one of them")

    def of(self, name: str, in_file: Direction | None = None) -> Direction:
        """Return the direction of a metric by the user's declaration, else by the file, else by its name."""
        if name in self.reverse:
            return "lower"
        if name in self.as_given:
            return "higher"
        return in_file or by_name(name)

    def said(self, name: str) -> bool:
        """Return whether the user declared it."""
        return name in self.reverse or name in self.as_given

    def check(self, known: Iterable[str]) -> None:
        """Refuse names without a metric."""
        names = [*dict.fromkeys(known)]
        for option, given in (("reverse", self.reverse), ("as_given", self.as_given)):
            for name in given:
                if name not in names:
                    raise UsageError(f"{option}: {not_among('metric', name, names)}")


def question(name: str) -> str:
    """Return how to say the direction of a metric."""
    return f"say `--reverse {name}` if lower is better, else `--as-given {name}`"


AS_NAMED: Final = Directions()
"""Nothing is declared by the user."""
