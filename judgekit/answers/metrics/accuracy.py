"""Accuracy of class answers, such as SUPPORTS or REFUTES."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from judgekit.answers.quality import Endpoints, ReferenceMetric
from judgekit.data.labelings import Scale
from judgekit.options import About, Options
from judgekit.spec import Spec

__all__ = ["Accuracy"]


@dataclass(frozen=True)
class Accuracy(ReferenceMetric):
    """1 if the answer is the class of a reference, else 0.

    Case, white space and the punctuation around a class do not matter; unlike under exact match no article and no
    symbol inside is dropped, so that the classes ``A`` and ``the`` or ``C`` and ``C++`` stay apart.
    """

    names: ClassVar[tuple[str, ...]] = ("accuracy",)
    about: ClassVar[About] = About(
        "1 if the answer is the class of a reference, else 0",
        "binary",
        "reference answers",
        "nothing",
    )
    name: ClassVar[str] = "accuracy"
    scale: ClassVar[Scale] = Scale("binary")

    @classmethod
    def make(cls, spec: Spec, endpoints: Endpoints | None) -> Self:
        """Build it from its spelling; it has no options."""
        Options(spec, cls.about.options)
        return cls()

    def compare(self, text: str, references: Sequence[str]) -> float:
        """Return 1.0 or 0.0."""
        said = _class(text)
        return float(any(said == _class(reference) for reference in references))


def _class(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .,;:!?\"'`“”‘’()[]*")


METRIC = Accuracy
