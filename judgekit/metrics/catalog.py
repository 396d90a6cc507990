"""What each measure is: the declarations behind ``judgekit measures``. How they are computed is in `formulas`."""

from __future__ import annotations

import math
import re
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
        expected: what ``valid`` asks for, in words.
    """

    what: str
    default: Value | None = None
    choices: tuple[Value, ...] = ()
    valid: Callable[[Value], bool] | None = None
    expected: str = "a number"

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
        rewards: what it rewards, in words that the owner of a search application understands.
        needs: ``binary`` if it asks which documents are relevant, ``label`` if it does so where the scale says it and
            else takes labels as they are, ``gain`` if it takes labels as gains (negative ones as 0), ``amount`` if it
            takes them as shares or amounts that cannot be negative, ``nothing`` if their values do not matter.
        low, high: the range; ``high`` is None where there is no fixed end.
        cutoff: whether it may have a cutoff.
        scales: the scales it is defined on, in words.
        params: its parameters.
        aliases: other names, compared without case.
        presets: further names that stand for the measure with parameters, compared without case.
        lower_is_better: whether smaller values are better.
    """

    name: str
    title: str
    formula: str
    source: str
    rewards: str
    needs: str = "binary"
    low: float = 0.0
    high: float | None = 1.0
    cutoff: bool = True
    scales: str = "binary, grades, means; unit with rel="
    params: dict[str, Param] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    presets: dict[str, dict[str, Value]] = field(default_factory=dict)
    lower_is_better: bool = False


def _number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _fraction(value: Value) -> bool:
    return _number(value) and 0 < float(value) < 1


def _positive(value: Value) -> bool:
    return _number(value) and float(value) > 0


def _mapping(value: Value) -> bool:
    return isinstance(value, str) and _MAPPING.fullmatch(value) is not None


_MAPPING: Final = re.compile(r"\{?-?[\d.]+:-?[\d.]+(?:,-?[\d.]+:-?[\d.]+)*\}?")
_REL: Final = Param("least label that counts as relevant; by default what the labeling declares", valid=_number)
_JUDGED_ONLY: Final = Param("leave documents without a label out of the lists first", False, (False, True))
_BINARY: Final = {"rel": _REL, "judged_only": _JUDGED_ONLY}
_GAINS: Final = {
    "dcg": Param("gain of a label: itself (log2), or 2^label - 1 (exp-log2)", "log2", ("log2", "exp-log2")),
    "gains": Param("gains of labels; others keep theirs", valid=_mapping, expected="{label:gain,...}"),
    "judged_only": _JUDGED_ONLY,
}

_ON_BINARY: Final = "binary, grades, means; unit with rel="
_ON_MEAN: Final = "all; on unit and signed labels without rel= "

_ALL: Final = (
    Definition(
        "P",
        "precision",
        "relevant in the top k / k",
        "trec_eval P",
        "few wrong documents near the top: every place wasted costs the same, wherever it is",
        "label",
        scales=_ON_MEAN + "the mean label of the top k",
        params={
            **_BINARY,
            "by": Param("divide by k, or by the number retrieved where that is smaller", "k", ("k", "retrieved")),
        },
        aliases=("Precision",),
    ),
    Definition(
        "R",
        "recall",
        "relevant in the top k / all relevant",
        "trec_eval recall",
        "finding all there is, for research where a missed document hurts",
        params=_BINARY,
        aliases=("Recall",),
    ),
    Definition(
        "F1",
        "F1",
        "2 P R / (P + R) = 2 relevant in the top k / (k + all relevant)",
        "van Rijsbergen 1979",
        "a balance of few wrong documents and few missed ones",
        params=_BINARY,
        aliases=("F", "F_1", "F1_score"),
    ),
    Definition(
        "Success",
        "success (hit rate)",
        "1 if any of the top k is relevant, else 0",
        "trec_eval success",
        "one good document within reach, for an assistant that needs a single right passage",
        "label",
        scales=_ON_MEAN + "the largest label of the top k",
        params=_BINARY,
        aliases=("Hit", "Hits", "HitRate", "Hit_Rate", "HitRatio", "Hit_Ratio", "HR"),
    ),
    Definition(
        "RR",
        "reciprocal rank",
        "1 / rank of the first relevant in the top k, 0 if there is none",
        "trec_eval recip_rank",
        "how early the first good document comes, for questions with one answer",
        scales=_ON_BINARY + " or best=",
        params={
            **_BINARY,
            "best": Param("only documents with the largest label of their query count", False, (False, True)),
        },
        aliases=("MRR", "recip_rank", "reciprocal_rank"),
    ),
    Definition(
        "AP",
        "average precision",
        "sum of the precision at the ranks of relevant documents in the top k / all relevant",
        "trec_eval map, map_cut",
        "finding all relevant documents, early ones first",
        params={
            **_BINARY,
            "by": Param(
                "divide by all relevant, or by the relevant in the top k (hits)", "relevant", ("relevant", "hits")
            ),
        },
        aliases=("MAP", "average_precision"),
    ),
    Definition(
        "DCG",
        "discounted cumulative gain",
        "sum over the top k of gain / log2(rank + 1)",
        "Jarvelin and Kekalainen 2002",
        "much gain, early; comparable only between lists for the same query",
        "gain",
        high=None,
        scales="all; negative labels gain nothing",
        params=_GAINS,
    ),
    Definition(
        "nDCG",
        "normalised discounted cumulative gain",
        "DCG@k / DCG@k of the best possible order",
        "trec_eval ndcg, ndcg_cut; Burges et al. 2005 for exp-log2",
        "the best documents first, where some are better than others",
        "gain",
        scales="all; negative labels gain nothing",
        params={
            **_GAINS,
            "ideal": Param(
                "best order of all labelled documents, or of the retrieved top k", "judged", ("judged", "retrieved")
            ),
        },
        aliases=("NDCG",),
    ),
    Definition(
        "AUC",
        "area under the ROC curve",
        "share of the pairs (relevant, other) of retrieved documents whose relevant one scores higher, ties half",
        "Mann and Whitney 1947",
        "scores that tell relevant documents from others, anywhere in the list",
        cutoff=False,
        scales=_ON_BINARY + "; undefined without both kinds among the retrieved",
        params=_BINARY,
        aliases=("ROC_AUC", "AUROC", "AUCROC"),
    ),
    Definition(
        "MeanRank",
        "rank of the first relevant",
        "rank of the first relevant document; its mean is over queries that have one",
        "Bordes et al. 2013",
        "a first good document near the top; lower is better",
        low=1,
        high=None,
        cutoff=False,
        scales=_ON_BINARY + "; undefined where nothing relevant was retrieved",
        params=_BINARY,
        aliases=("MR", "Mean_Rank"),
        lower_is_better=True,
    ),
    Definition(
        "ERR",
        "expected reciprocal rank",
        "sum over the top k of 1/i r_i prod_{j<i}(1 - r_j), with r = (2^label - 1) / 2^max, on unit labels r = label",
        "Chapelle et al. 2009",
        "satisfying the reader early; documents after a satisfying one hardly count",
        "amount",
        scales="binary, grades, unit",
        params={
            "max": Param(
                "the largest grade; by default what the labeling declares", valid=_positive, expected="a number above 0"
            ),
            "prob": Param(
                "what makes r: the grade, or the label as it is; by default by scale", None, ("grade", "label")
            ),
            "judged_only": _JUDGED_ONLY,
        },
    ),
    Definition(
        "Rprec",
        "R-precision",
        "relevant in the top R / R, where R is the number of all relevant",
        "trec_eval Rprec",
        "a top of the list that is as long as it should be, and right",
        cutoff=False,
        params=_BINARY,
        aliases=("R_prec", "R_precision"),
    ),
    Definition(
        "Bpref",
        "binary preference",
        "mean over relevant of 1 - min(judged non-relevant above it, R) / min(R, judged non-relevant)",
        "trec_eval bpref; Buckley and Voorhees 2004",
        "relevant documents above documents judged wrong; documents without a label do not count",
        cutoff=False,
        params={"rel": _REL},
    ),
    Definition(
        "RBP",
        "rank-biased precision",
        "(1 - p) sum over the top k of gain p^(rank - 1); the gain is the label, with rel= 0 or 1",
        "Moffat and Zobel 2008",
        "good documents early, for a reader who goes on to the next one with chance p",
        "amount",
        high=None,
        scales="binary, grades, unit; at most the largest label",
        params={
            "p": Param("chance that the reader goes on", 0.8, valid=_fraction, expected="a number between 0 and 1"),
            **_BINARY,
        },
    ),
    Definition(
        "Judged",
        "judged share",
        "documents with a label in the top k / documents in the top k",
        "ir_measures Judged",
        "nothing: it says how far the other measures can be trusted",
        "nothing",
        scales="all",
    ),
    Definition(
        "SetP",
        "set precision",
        "relevant retrieved / retrieved",
        "trec_eval set_P, set_relative_P",
        "lists without wrong documents, whatever their order and length",
        cutoff=False,
        params={
            **_BINARY,
            "relative": Param("divide by the most that so many documents can hold", False, (False, True)),
        },
        aliases=("set_P",),
        presets={"SetRelP": {"relative": True}, "set_relative_P": {"relative": True}},
    ),
    Definition(
        "SetR",
        "set recall",
        "relevant retrieved / all relevant",
        "trec_eval set_recall",
        "lists that hold all there is, whatever their order and length",
        cutoff=False,
        params={"rel": _REL},
        aliases=("set_recall",),
    ),
    Definition(
        "SetF",
        "set F",
        "(b + 1) SetP SetR / (SetR + b SetP)",
        "trec_eval set_F",
        "lists that hold what is relevant and little else",
        cutoff=False,
        params={**_BINARY, "beta": Param("weight b of recall", 1.0, valid=_positive, expected="a number above 0")},
        aliases=("set_F",),
    ),
    Definition(
        "NumRel",
        "number of relevant documents",
        "all relevant",
        "trec_eval num_rel",
        "nothing: it says how much there is to find",
        high=None,
        cutoff=False,
        params={"rel": _REL},
        aliases=("num_rel",),
    ),
    Definition(
        "NumRelRet",
        "number of relevant documents retrieved",
        "relevant retrieved",
        "trec_eval num_rel_ret",
        "finding much, without asking how much there is",
        high=None,
        cutoff=False,
        params={"rel": _REL},
        aliases=("num_rel_ret",),
    ),
    Definition(
        "NumRet",
        "number of documents retrieved",
        "retrieved; with rel= those that are relevant",
        "trec_eval num_ret",
        "nothing: it says how long the lists are",
        "nothing",
        high=None,
        cutoff=False,
        scales="all",
        params={"rel": _REL},
        aliases=("num_ret",),
    ),
)

DEFINITIONS: Final = {definition.name: definition for definition in _ALL}
"""Every measure by its canonical name."""


def catalog() -> list[Definition]:
    """Return every measure with formula, source, range, what it rewards, and the scales it is defined on."""
    return list(_ALL)
