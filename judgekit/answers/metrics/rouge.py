"""ROUGE-1, ROUGE-2 and ROUGE-L as Google's ``rouge_score`` defines them, without its dependencies."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, Self, get_args

from rapidfuzz.distance import LCSseq

from judgekit.answers.quality import Endpoints, ReferenceMetric
from judgekit.data.labelings import Scale
from judgekit.options import About, Options, spelling
from judgekit.spec import Spec

__all__ = ["Rouge"]

Tokens = Literal["ascii", "unicode"]

_TOKENS: Final = {"ascii": re.compile(r"[a-z0-9]+"), "unicode": re.compile(r"[^\W_]+")}


@dataclass(frozen=True)
class Rouge(ReferenceMetric):
    """The F-measure of common n-grams (ROUGE-1, ROUGE-2) or of the longest common subsequence (ROUGE-L).

    Lower case, no stemming. The best reference counts. A text without tokens scores 0.

    Attributes:
        kind: ``rouge-1``, ``rouge-2`` or ``rouge-l``.
        tokens: ``ascii`` splits at everything but a-z and 0-9, as ``rouge_score`` does; ``unicode`` keeps the
            letters and digits of all scripts, without which a text in another script scores 0.
    """

    names: ClassVar[tuple[str, ...]] = ("rouge-1", "rouge-2", "rouge-l")
    about: ClassVar[About] = About(
        "common words, word pairs or the longest common sequence with the best reference, as an F-measure",
        "unit",
        "reference answers",
        "nothing",
        {"tokens": "ascii (as Google's rouge_score) or unicode (all scripts)"},
    )
    scale: ClassVar[Scale] = Scale("unit")
    kind: str
    tokens: Tokens = "ascii"

    @classmethod
    def make(cls, spec: Spec, endpoints: Endpoints | None) -> Self:
        """Build it from its spelling."""
        options = Options(spec, cls.about.options)
        return cls(spec.name, options.choice("tokens", "ascii", get_args(Tokens)))  # type: ignore[arg-type]  # one of Tokens

    @property
    def name(self) -> str:
        """The canonical spelling."""
        return str(spelling(self.kind, {"tokens": (self.tokens, "ascii")}))

    def compare(self, text: str, references: Sequence[str]) -> float:
        """Return the F-measure beside the best reference."""
        said = self._split(text)
        return max(self._f_measure(said, self._split(reference)) for reference in references)

    def _split(self, text: str) -> list[str]:
        return _TOKENS[self.tokens].findall(text.lower())

    def _f_measure(self, said: list[str], reference: list[str]) -> float:
        if self.kind == "rouge-l":
            common, total = LCSseq.similarity(said, reference), len(said) + len(reference)
        else:
            n = int(self.kind[-1])
            grams = [Counter(zip(*(tokens[i:] for i in range(n)), strict=False)) for tokens in (said, reference)]
            common, total = (grams[0] & grams[1]).total(), grams[0].total() + grams[1].total()
        return 2 * common / total if common else 0.0


METRIC = Rouge
