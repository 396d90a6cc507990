"""Sweeps: over the number of documents, prompts, models, data sets; and cost beside answering end to end.

A sweep over documents, measures or prompts is a comparison with several depths, measures or labelings, read along one
of its axes. The matrix of models needs its own resampling, since its cells lie in different panels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

import numpy as np
import pandas as pd

from judgekit.analysis.cost import COSTS, check_costs
from judgekit.analysis.differences import difference, holm
from judgekit.analysis.inputs import Inputs
from judgekit.analysis.levels import METHOD, Estimate, Resamples, estimates, paired_draws
from judgekit.analysis.measures import cutoff_of
from judgekit.analysis.resampling import resample_matrix
from judgekit.data.tables import ALL
from judgekit.errors import DataError, UsageError
from judgekit.spec import parse

__all__ = ["ModelMatrix", "by_depth", "by_prompt", "cost_table", "model_matrix", "stack_datasets"]

_NUMBERS: Final = ["value", "ci_low", "ci_high", "n", "undefined_reason", "flags"]


def by_depth(table: pd.DataFrame) -> pd.DataFrame:
    """Return a comparison table along the number of documents, end to end answered anew at each (the paper's Figure 1).

    Args:
        table: a comparison table.

    Returns:
        The rows with a column ``family`` (the measure without its cutoff), sorted by everything else and then depth;
        only series with at least two depths.
    """
    family = [text if cutoff_of(text) is None else text.rpartition("@")[0] for text in table["measure"]]
    keys = ["labeling", "family", "run", "level", "quality_metric", "model", "coefficient"]
    out = table.assign(family=family)
    series = out.groupby(keys)["depth"].transform("nunique")
    return out[series > 1].sort_values([*keys, "depth"], ignore_index=True)[[*keys, "depth", *_NUMBERS]]


def by_prompt(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of labelings that differ only in their prompt.

    Args:
        table: a comparison table whose labelings have their spellings as names, e.g. ``judge(prompt=graded)``.

    Returns:
        The rows with columns ``method`` (the spelling without its prompt) and ``prompt``; only methods with at least
        two prompts.
    """
    names: dict[str, tuple[str, str]] = {}
    for text in set(table["labeling"]):
        try:
            spec = parse(text)
        except UsageError:
            continue
        rest = tuple((key, value) for key, value in spec.params if key != "prompt")
        names[text] = str(replace(spec, params=rest)), str(spec.options.get("prompt", "default"))
    known = table[table["labeling"].isin(list(names))]
    methods = known["labeling"].map({name: method for name, (method, _) in names.items()})
    prompts = known["labeling"].map({name: prompt for name, (_, prompt) in names.items()})
    out = known.assign(method=methods, prompt=prompts)
    several = out.groupby("method")["prompt"].transform("nunique") > 1
    keys = ["method", "prompt", "measure", "run", "level", "depth", "quality_metric", "model", "coefficient"]
    return out[several].sort_values(keys, ignore_index=True)[[*keys, *_NUMBERS]]


def stack_datasets(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the comparison tables of several data sets as one with a column ``dataset`` (the paper's Table 1).

    A labeling that does not apply to a data set keeps its rows there, undefined with the reason.
    """
    if not tables:
        raise UsageError("there is no data set to put together")
    return pd.concat([table.assign(dataset=name) for name, table in tables.items()], ignore_index=True)


def cost_table(costs: pd.DataFrame, end_to_end: Mapping[str, float]) -> pd.DataFrame:
    """Return cost per labeling beside answering end to end (the paper's Table 2).

    Args:
        costs: standalone cost per labeling, columns of `COSTS`.
        end_to_end: the same columns for answering end to end, at the one depth and with the one model whose answers
            the labels are to predict: answers at all depths cost several times as much.

    Returns:
        The costs, last a row ``end to end``, with columns ``requests_ratio``, ``money_ratio``, … : each cost as a
        multiple of that of end to end, NaN where it is unknown or 0.
    """
    unknown = sorted(set(end_to_end) - set(COSTS.optional))
    if unknown:
        raise UsageError(f"there is no cost {unknown[0]!r} (there are: {', '.join(COSTS.optional)})")
    known = check_costs(costs)
    out = pd.DataFrame({"labeling": [*known["labeling"], "end to end"]})
    for name in COSTS.optional:
        base = float(end_to_end.get(name, np.nan))
        out[name] = [*known[name], base]
        out[f"{name}_ratio"] = out[name].astype("float64") / (base or np.nan)
    ratios = [f"{name}_ratio" for name in COSTS.optional]
    return out[["labeling", *COSTS.optional, *ratios]]


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


def model_matrix(
    scores: pd.DataFrame,
    quality: pd.DataFrame,
    *,
    label_models: Mapping[str, str | Sequence[str]],
    measure: str,
    metric: str,
    depth: int,
    methods: Mapping[str, str] | None = None,
    level: str = "query",
    coefficient: str = "concordance",
    resamples: int = 1000,
    seed: int = 1,
    confidence: float = 0.95,
) -> ModelMatrix:
    """Return how well the labels of each model predict the answers of each model, and which differ.

    Only queries with quality for all answer models count, so that models are compared on the same ones.

    Args:
        scores: per-query scores.
        quality: answer quality of several models.
        label_models: the model that was asked for each labeling, or those of a jury; labelings that are not named
            stay out.
        measure: the measure that is compared.
        metric: the answer metric.
        depth: the answer depth.
        methods: what each labeling is, apart from its model; its spelling's kind by default.
        level: query, within-query or system.
        coefficient: one that exists there.
        resamples: of the queries.
        seed: of the resamples.
        confidence: of the intervals.

    Raises:
        UsageError: the measure or metric is not in the tables, or the coefficient is not known at that level.
        DataError: there is no quality at that depth.
    """
    inputs = Inputs.read(scores, quality, labelings=list(label_models), measures=[measure], metrics=[metric])
    if coefficient not in METHOD.get(level, {}):
        raise UsageError(f"there is no {coefficient!r} at the level {level!r}")
    panels = {m: inputs.panel(measure, metric, m, depth) for m in inputs.models if (metric, m, depth) in inputs.quality}
    if not panels:
        raise DataError(f"there is no quality {metric!r} at depth {depth}")
    asked = np.logical_and.reduce([panel.asked for panel in panels.values()])
    sample = Resamples(resample_matrix(len(inputs.queries), resamples, seed), seed)
    run = inputs.runs[0] if len(inputs.runs) == 1 and level == "query" else ALL
    kinds = {name: (methods or {}).get(name, _kind(name)) for name in inputs.labelings}
    models = {name: (given,) if isinstance(given, str) else tuple(given) for name, given in label_models.items()}
    together = {name: " + ".join(dict.fromkeys(each)) for name, each in models.items()}
    members = {together[name]: set(each) for name, each in models.items()}
    cells: dict[tuple[str, str, str], tuple[Estimate, int]] = {}
    for answer_model, panel in panels.items():
        for found in estimates(replace(panel, asked=asked), level, sample):
            if found.run == run and coefficient in found.names:
                name = inputs.labelings[found.labeling]
                key = kinds[name], together[name], answer_model
                if key in cells:
                    raise UsageError(
                        f"two labelings are {key[0]!r} with labels of {key[1]!r}: tell them apart by methods"
                    )
                cells[key] = found, found.names.index(coefficient)
    rows = []
    for (method, label_model, answer_model), (found, place) in cells.items():
        value = float(found.values[place])
        ends = found.interval(coefficient, level, confidence, sample)
        rows.append(
            {
                "labeling": method,
                "label_model": label_model,
                "answer_model": answer_model,
                "same_model": answer_model in members[label_model],
                "value": value,
                "ci_low": ends.low,
                "ci_high": ends.high,
                "ci_method": ends.method,
                "n": found.n,
                "undefined_reason": found.reason,
            }
        )
    table = pd.DataFrame(rows).sort_values(["labeling", "label_model", "answer_model"], ignore_index=True)
    return ModelMatrix(table, _differences(cells, level, confidence, sample))


def _differences(
    cells: Mapping[tuple[str, str, str], tuple[Estimate, int]], level: str, confidence: float, resamples: Resamples
) -> pd.DataFrame:
    rows: list[dict[str, object]] = []
    for one, other in combinations(sorted(cells), 2):
        same = [a == b for a, b in zip(one, other, strict=True)]
        if not same[0] or same[1] == same[2]:
            continue
        (first, i), (second, j) = cells[one], cells[other]
        value = float(first.values[i] - second.values[j])
        # Two labelings of one model's answers share the draws of its quality too, as in a comparison.
        shared = one[2] == other[2] and not first.reason and not second.reason
        draws = paired_draws(first, second, resamples)[i] if shared else first.draws[i] - second.draws[j]
        gap = difference(value, draws, confidence, min(first.units, second.units), level)
        varying, fixed = (2, 1) if same[1] else (1, 2)
        rows.append(
            {
                "labeling": one[0],
                "varies": "answer_model" if same[1] else "label_model",
                "fixed": one[fixed],
                "first": one[varying],
                "second": other[varying],
                "difference": value,
                "ci_low": gap.low,
                "ci_high": gap.high,
                "p": gap.p,
            }
        )
    columns = ["labeling", "varies", "fixed", "first", "second", "difference", "ci_low", "ci_high", "p", "p_holm"]
    frame = pd.DataFrame(rows, columns=columns)
    for method in set(frame["labeling"]):
        mine = frame["labeling"] == method
        frame.loc[mine, "p_holm"] = holm(list(frame.loc[mine, "p"]))
    return frame


def _kind(labeling: str) -> str:
    try:
        return parse(labeling).name
    except UsageError:
        return labeling
