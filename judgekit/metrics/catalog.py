"""What each measure is: the declarations behind ``judgekit measures``. How they are computed is in `formulas`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from judgekit.spec import Value

__all__ = ["DEFINITIONS", "Definition", "Param", "catalog"]


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of a measure.

    Attributes:
        what: what it does.
        default: the value where it is not given (None: see ``what``).
        choices: the values it may take, if they are few.
        valid: says whether any other value will do.
    """

    what: str
    default: Value | None = None
    choices: tuple[Value, ...] = ()
    valid: Callable[[Value], bool] | None = None
    expected: str = ""

    def problem(self, value: Value) -> str | None:
        """Return why ``value`` will not do, or None."""
        if self.choices:
            # True == 1, and yet rel=True is no choice among numbers.
            if any(value == c and type(value) is type(c) for c in self.choices):
                return None
            return f"is one of {', '.join(map(str, self.choices))}, not {value!r}"
        if self.valid is not None and not self.valid(value):
            return f"is {self.expected}, not {value!r}"
        return None


@dataclass(frozen=True, slots=True)
class Definition:
    """What a measure is.

    Attributes:
        name: the canonical name.
        title: the name in words.
        formula: how it is computed, on one line.
        source: where it is from.
        low, high: its range; ``high`` None where there is no fixed end.
        rewards: what it rewards, in words that the owner of a search application understands.
        scales: on which scales it is defined, in words.
        needs: ``binary`` if it asks which labels are relevant, ``gain`` if it takes labels as amounts, ``label``
            if it does either, depending on the scale, ``judged`` if it only asks what has a label, ``best`` if it
            only compares labels, ``nothing`` if it ignores labels.
        cutoff: whether it may have a cutoff.
        params: its parameters.
        aliases: other names, compared without case.
        lower_is_better: whether smaller values are better.
    """

    name: str
    title: str
    formula: str
    source: str
    low: float
    high: float | None
    rewards: str
    scales: str
    needs: str
    cutoff: bool = True
    params: dict[str, Param] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    lower_is_better: bool = False


def _number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_REL: Final = Param(
    "least label that counts as relevant; by default what the labeling declares",
    valid=_number,
    expected="a number",
)
_DCG: Final = Param("gain of a label: the label itself, or 2^label - 1", "log2", ("log2", "exp-log2"))

_ALL: Final = (
    Definition(
        "P",
        "precision",
        "relevant in the top k / k",
        "trec_eval P",
        0,
        1,
        "few wrong documents near the top: every place wasted costs the same, wherever it is",
        "all; on unit and signed labels without rel= the mean label of the top k",
        "label",
        params={"rel": _REL},
        aliases=("Precision",),
    ),
    Definition(
        "R",
        "recall",
        "relevant in the top k / all relevant",
        "trec_eval recall",
        0,
        1,
        "finding all there is, for research where a missed document hurts",
        "binary, grades; unit with rel=",
        "binary",
        params={"rel": _REL},
        aliases=("Recall",),
    ),
    Definition(
        "F1",
        "F1",
        "2 P R / (P + R) at k",
        "van Rijsbergen 1979",
        0,
        1,
        "a balance of few wrong documents and few missed ones",
        "binary, grades; unit with rel=",
        "binary",
        params={"rel": _REL},
    ),
    Definition(
        "Success",
        "success (hit rate)",
        "1 if any of the top k is relevant, else 0",
        "trec_eval success",
        0,
        1,
        "one good document within reach, for an assistant that needs a single right passage",
        "all; on unit and signed labels without rel= the largest label of the top k",
        "label",
        params={"rel": _REL},
        aliases=("Hit", "HitRate", "Hit_Rate", "HitRatio", "Hit_Ratio", "HR"),
    ),
    Definition(
        "RR",
        "reciprocal rank",
        "1 / rank of the first relevant, 0 if there is none in the top k",
        "trec_eval recip_rank",
        0,
        1,
        "how early the first good document comes, for questions with one answer",
        "binary, grades; unit with rel=",
        "binary",
        params={"rel": _REL},
        aliases=("MRR", "recip_rank"),
    ),
    Definition(
        "AP",
        "average precision",
        "sum of the precision at the ranks of relevant documents in the top k / all relevant",
        "trec_eval map, map_cut",
        0,
        1,
        "finding all relevant documents, early ones first",
        "binary, grades; unit with rel=",
        "binary",
        params={"rel": _REL},
        aliases=("MAP",),
    ),
    Definition(
        "nDCG",
        "normalised discounted cumulative gain",
        "DCG@k / DCG@k of the best possible order",
        "trec_eval ndcg, ndcg_cut",
        0,
        1,
        "the best documents first, where some are better than others",
        "all; negative labels gain nothing",
        "gain",
        params={"dcg": _DCG},
        aliases=("NDCG",),
    ),
)

DEFINITIONS: Final = {definition.name: definition for definition in _ALL}
"""Every measure by its canonical name."""


def catalog() -> list[Definition]:
    """Return every measure with formula, source, range, what it rewards, and the scales it is defined on."""
    return list(_ALL)
