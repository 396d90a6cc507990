"""Exact match under the SQuAD and KILT normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from judgekit.answers.normalize import normalize
from judgekit.answers.quality import Endpoints, ReferenceMetric
from judgekit.data.labelings import Scale
from judgekit.options import About, Options
from judgekit.spec import Spec

__all__ = ["ExactMatch"]


@dataclass(frozen=True)
class ExactMatch(ReferenceMetric):
    """1 if the normalised answer equals a normalised reference, else 0."""

    names: ClassVar[tuple[str, ...]] = ("em",)
    about: ClassVar[About] = About(
        "1 if the normalised answer is a reference, else 0",
        "binary",
        "reference answers",
        "nothing",
    )
    name: ClassVar[str] = "em"
    scale: ClassVar[Scale] = Scale("binary")

    @classmethod
    def make(cls, spec: Spec, endpoints: Endpoints | None) -> Self:
        """Build it from its spelling; it has no options."""
        Options(spec, cls.about.options)
        return cls()

    def compare(self, text: str, references: Sequence[str]) -> float:
        """Return 1.0 or 0.0."""
        said = normalize(text)
        return float(any(said == normalize(reference) for reference in references))


METRIC = ExactMatch
