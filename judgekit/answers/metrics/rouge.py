"""ROUGE-1, ROUGE-2 and ROUGE-L as Google's ``rouge_score`` defines them, and in other scripts on their own words."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, Self, get_args

import regex
from rapidfuzz.distance import LCSseq

from judgekit.answers.quality import Endpoints, ReferenceMetric
from judgekit.answers.scripts import apart, fold, is_foreign
from judgekit.data.labelings import Scale
from judgekit.options import About, Options, spelling
from judgekit.spec import Spec

__all__ = ["Rouge"]

Tokens = Literal["script", "ascii", "unicode"]

_ASCII: Final = re.compile(r"[a-z0-9]+")
_UNICODE: Final = regex.compile(r"[\p{L}\p{N}\p{M}]+")


@dataclass(frozen=True)
class Rouge(ReferenceMetric):
    """The F-measure of common n-grams (ROUGE-1, ROUGE-2) or of the longest common subsequence (ROUGE-L).

    Lower case, no stemming. The best reference counts. An answer without tokens scores 0; where no reference has
    any, the metric does not apply.

    Attributes:
        kind: ``rouge-1``, ``rouge-2`` or ``rouge-l``.
        tokens: ``ascii`` splits at everything but a-z and 0-9, as ``rouge_score`` does; ``unicode`` takes the words of
            all scripts, single characters where no spaces part words; ``script`` is ``unicode`` where the answer or
            a reference holds another script than Latin, and ``ascii`` elsewhere.
    """

    names: ClassVar[tuple[str, ...]] = ("rouge-1", "rouge-2", "rouge-l")
    about: ClassVar[About] = About(
        "common words, word pairs or the longest common sequence with the best reference, as an F-measure",
        "unit",
        "reference answers",
        "nothing",
        {"tokens": "ascii (as Google's rouge_score), unicode (words of all scripts) or script (as the text needs it)"},
    )
    scale: ClassVar[Scale] = Scale("unit")
    kind: str
    tokens: Tokens = "script"

    @classmethod
    def make(cls, spec: Spec, endpoints: Endpoints | None) -> Self:
        """Build it from its spelling."""
        options = Options(spec, cls.about.options)
        return cls(spec.name, options.choice("tokens", "script", get_args(Tokens)))  # type: ignore[arg-type]  # one of Tokens

    @property
    def name(self) -> str:
        """The canonical spelling."""
        return str(spelling(self.kind, {"tokens": (self.tokens, "script")}))

    def compare(self, text: str, references: Sequence[str]) -> float:
        """Return the F-measure beside the best reference."""
        split = self._splitter(text, *references)
        said = split(text)
        return max(self._f_measure(said, split(reference)) for reference in references)

    def leaves(self, reference: str) -> bool:
        """Return whether a reference has a token."""
        return bool(self._splitter(reference)(reference))

    def _splitter(self, *texts: str) -> Callable[[str], list[str]]:
        foreign = self.tokens == "unicode" or (self.tokens == "script" and any(map(is_foreign, texts)))
        return _words if foreign else _ascii_words

    def _f_measure(self, said: list[str], reference: list[str]) -> float:
        if self.kind == "rouge-l":
            common, total = LCSseq.similarity(said, reference), len(said) + len(reference)
        else:
            n = int(self.kind[-1])
            grams = [Counter(zip(*(tokens[i:] for i in range(n)), strict=False)) for tokens in (said, reference)]
            common, total = (grams[0] & grams[1]).total(), grams[0].total() + grams[1].total()
        return 2 * common / total if common else 0.0


def _ascii_words(text: str) -> list[str]:
    return _ASCII.findall(text.lower())


def _words(text: str) -> list[str]:
    folded = unicodedata.normalize("NFC", fold(text).casefold())
    words: list[str] = _UNICODE.findall(apart(folded))
    return words


METRIC = Rouge
