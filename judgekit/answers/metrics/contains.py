"""Whether an answer contains a reference: lenient towards models that answer in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from judgekit.answers.normalize import normalize
from judgekit.answers.quality import Endpoints, ReferenceMetric
from judgekit.data.labelings import Scale
from judgekit.options import About, Options
from judgekit.spec import Spec

__all__ = ["Contains"]


@dataclass(frozen=True)
class Contains(ReferenceMetric):
    """1 if the normalised words of a reference stand in the normalised answer, one behind the other, else 0.

    Whole words, so that ``5`` is not in ``25``. The normalisation is that of exact match; where it leaves nothing of
    any reference, the metric does not apply.
    """

    names: ClassVar[tuple[str, ...]] = ("contains",)
    about: ClassVar[About] = About(
        "1 if a reference stands in the answer, else 0",
        "binary",
        "reference answers",
        "nothing",
    )
    name: ClassVar[str] = "contains"
    scale: ClassVar[Scale] = Scale("binary")

    @classmethod
    def make(cls, spec: Spec, endpoints: Endpoints | None) -> Self:
        """Build it from its spelling; it has no options."""
        Options(spec, cls.about.options)
        return cls()

    def compare(self, text: str, references: Sequence[str]) -> float:
        """Return 1.0 or 0.0."""
        said = f" {normalize(text, whole=True)} "
        return float(any(f" {normalize(reference, whole=True)} " in said for reference in references))

    def leaves(self, reference: str) -> bool:
        """Return whether there is a word to look for."""
        return normalize(reference) != ""


METRIC = Contains
