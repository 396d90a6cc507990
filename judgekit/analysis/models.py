"""The matrix of models: labels of each against the answers of each (the eRAG paper's Figure 2).

It needs its own resampling, since its cells lie in different panels of a comparison.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

import numpy as np
import pandas as pd

from judgekit.analysis.differences import compared, difference_table
from judgekit.analysis.inputs import Inputs
from judgekit.analysis.levels import LEVELS, Estimate, Resamples, estimates
from judgekit.analysis.resampling import resample_matrix
from judgekit.analysis.threads import one_thread
from judgekit.data.tables import ALL
from judgekit.errors import DataError, UsageError, not_among
from judgekit.rules import Rules
from judgekit.spec import parse

_COEFFICIENT: Final = "concordance"
_COLUMNS = ("labeling", "label_model", "answer_model", "same_model", "value", "ci_low", "ci_high", "ci_method", "n",
            "undefined_reason")  # fmt: skip
_DIFFERENCES = ("labeling", "varies", "fixed", "first", "second", "difference", "ci_low", "ci_high", "p", "p_holm")


@dataclass(frozen=True)
class ModelMatrix:
    """Label models against answer models (the paper's Figure 2).

    Attributes:
        table: rows ``labeling, label_model, answer_model, same_model, value, ci_low, ci_high, ci_method, n,
            undefined_reason``, where ``labeling`` is the method and ``label_model`` names all models of a jury, joined
            by ``+``; on the diagonal (``same_model``) the labels come from the model whose answers they predict.
        differences: cells of a method that share the label model or the answer model: rows ``labeling, varies,
            fixed, first, second, difference, ci_low, ci_high, p, p_holm`` (Holm over all rows of a method).
    """

    table: pd.DataFrame
    differences: pd.DataFrame


@one_thread
def model_matrix(
    scores: pd.DataFrame,
    quality: pd.DataFrame,
    rules: Rules | None = None,
    *,
    label_models: Mapping[str, str | Sequence[str]],
    measure: str,
    metric: str,
    depth: int,
    methods: Mapping[str, str] | None = None,
    level: str = "query",
) -> ModelMatrix:
    """Return how well the labels of each model predict the answers of each model, and which differ.

    Only queries with quality for all answer models count, so that models are compared on the same ones.

    Args:
        scores: per-query scores.
        quality: answer quality of several models.
        rules: the confidence of the intervals, and the resampling.
        label_models: the model that was asked for each labeling, or those of a jury; labelings that are not named
            stay out.
        measure: the measure that is compared.
        metric: the answer metric.
        depth: the answer depth.
        methods: what each labeling is, apart from its model; its spelling's kind by default.
        level: query, within-query or system.

    Raises:
        UsageError: the measure or metric is not in the tables, or there is no such level.
        DataError: there is no quality at that depth.
    """
    rules = rules or Rules()
    inputs = Inputs.read(scores, quality, {"labelings": list(label_models), "measures": [measure], "metrics": [metric]})
    if level not in LEVELS:
        raise UsageError(not_among("level", level, LEVELS))
    panels = {m: inputs.panel(measure, metric, m, depth) for m in inputs.models if (metric, m, depth) in inputs.quality}
    if not panels:
        raise DataError(f"the quality table has no {metric!r} at depth {depth}")
    asked = np.logical_and.reduce([panel.asked for panel in panels.values()])
    sample = Resamples(resample_matrix(len(inputs.queries), rules.resamples, rules.seed))
    run = inputs.runs[0] if len(inputs.runs) == 1 and level == "query" else ALL
    kinds = {name: (methods or {}).get(name, _kind(name)) for name in inputs.labelings}
    models = {name: (given,) if isinstance(given, str) else tuple(given) for name, given in label_models.items()}
    together = {name: " + ".join(dict.fromkeys(each)) for name, each in models.items()}
    members = {together[name]: set(each) for name, each in models.items()}
    cells: dict[tuple[str, str, str], Estimate] = {}
    for answer_model, panel in panels.items():
        for found in estimates(replace(panel, asked=asked), level, sample):
            if found.run == run and _COEFFICIENT in found.names:
                name = inputs.labelings[found.labeling]
                key = kinds[name], together[name], answer_model
                if key in cells:
                    raise UsageError(
                        f"two labelings are {key[0]!r} with labels of {key[1]!r}: give them different names in methods"
                    )
                cells[key] = found
    rows = [
        (
            *key,
            key[2] in members[key[1]],
            found.value(_COEFFICIENT),
            *found.interval(_COEFFICIENT, rules.confidence, sample),
            found.n,
            found.reason,
        )
        for key, found in cells.items()
    ]
    table = pd.DataFrame(rows, columns=list(_COLUMNS)).sort_values(
        ["labeling", "label_model", "answer_model"], ignore_index=True
    )
    return ModelMatrix(table, _differences(cells, rules.confidence, sample))


def _differences(
    cells: Mapping[tuple[str, str, str], Estimate], confidence: float, resamples: Resamples
) -> pd.DataFrame:
    pairs = (
        (
            {"labeling": one[0], "family": one[0], "varies": varies, "fixed": one[3 - at]}
            | {"first": one[at], "second": other[at]},
            cells[one],
            cells[other],
        )
        for one, other in combinations(sorted(cells), 2)
        for at, varies in ((1, "label_model"), (2, "answer_model"))
        if one[0] == other[0] and one[3 - at] == other[3 - at]
    )
    rows = (row for row in compared(pairs, confidence, resamples) if row["coefficient"] == _COEFFICIENT)
    return difference_table(rows, _DIFFERENCES)


def _kind(labeling: str) -> str:
    try:
        return parse(labeling).name
    except UsageError:
        return labeling
