"""Token F1 under the SQuAD and KILT normalisation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from judgekit.answers.normalize import normalize
from judgekit.answers.quality import Endpoints, ReferenceMetric
from judgekit.data.labelings import Scale
from judgekit.options import About, Options
from judgekit.spec import Spec

__all__ = ["TokenF1"]


@dataclass(frozen=True)
class TokenF1(ReferenceMetric):
    """The harmonic mean of precision and recall over the tokens, repeated ones counted, of the best reference.

    Where answer or reference has no token left after normalisation it is 1 if both have none, else 0 (SQuAD 2.0).
    """

    names: ClassVar[tuple[str, ...]] = ("f1",)
    about: ClassVar[About] = About(
        "common tokens with the best reference, as an F-measure",
        "unit",
        "reference answers",
        "nothing",
    )
    name: ClassVar[str] = "f1"
    scale: ClassVar[Scale] = Scale("unit")

    @classmethod
    def make(cls, spec: Spec, endpoints: Endpoints | None) -> Self:
        """Build it from its spelling; it has no options."""
        Options(spec, cls.about.options)
        return cls()

    def compare(self, text: str, references: Sequence[str]) -> float:
        """Return the F1 beside the best reference."""
        said = normalize(text).split()
        return max(_f1(said, normalize(reference).split()) for reference in references)


def _f1(said: list[str], reference: list[str]) -> float:
    if not said or not reference:
        return float(said == reference)
    common = sum((Counter(said) & Counter(reference)).values())
    return 2 * common / (len(said) + len(reference))


METRIC = TokenF1
