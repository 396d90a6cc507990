"""What a label follows besides relevance: length, words, rank, retriever; and where it overrates."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from judgekit.analysis.coefficients import Floats
from judgekit.plugins.audit.audited_run import Material
from judgekit.plugins.audit.numbers import Bools, Ints, Number, jackknife, mean_of, unknown

SURFACE, OVERRATING = "surface", "overrating"
_LEAST: Final = 30
"""Pairs that a slope is drawn through, at least."""


def surface(material: Material) -> dict[str, Floats]:
    """Return what a pair looks like, whatever it means, each of shape (P,), NaN where it does not apply."""
    collection = material.collection
    docs = {doc.doc_id: doc for doc in collection.docs.get(sorted({doc_id for _, doc_id in material.pairs}))}
    asked = {query_id: _words(query.text) for query_id, query in collection.queries.items()}
    rows = [
        (
            math.log1p(len(docs[d].text.split())),
            len(asked[q] & _words(docs[d].title)) / max(len(asked[q]), 1) if docs[d].title else math.nan,
            len(asked[q] & _words(docs[d].text)) / max(len(asked[q]), 1),
        )
        for q, d in material.pairs
    ]
    names = ("length", "title match", "query-term overlap")
    found = dict(zip(names, np.array(rows).T, strict=True))
    ranks = material.ranks.astype(np.float64)
    found["rank (best of any run)"] = np.where(ranks > 0, ranks, np.inf).min(axis=0)
    return found | {f"retrieved by {run.name}": np.sign(row) for run, row in zip(collection.runs, ranks, strict=True)}


def _words(text: str) -> set[str]:
    found = set(re.findall(r"\w+", text.casefold()))
    return {word for word in found if len(word) > 3 or word.isdigit()} or found


def slopes(
    label: Floats, truth: Floats, looks: Mapping[str, Floats], groups: Ints, confidence: float = 0.95
) -> list[Number]:
    """Return by how much of the scale labels rise per standard deviation of each look, given the reference."""
    # Labels and look are taken minus their means among the pairs that the reference labels alike, so that what the
    # reference explains is gone from both (Frisch and Waugh 1933). Fit each look separately: looks seen together
    # share their slope. What is said in words holds for all looks together (Bonferroni).
    out: list[Number] = []
    shown: list[tuple[float, str]] = []
    for name, look in looks.items():
        there = np.isfinite(label) & np.isfinite(truth) & np.isfinite(look)
        y, t, x, n = label[there], truth[there], look[there], int(there.sum())
        if n < _LEAST or np.ptp(x) == 0 or len(np.unique(groups[there])) < 2:
            out.append(unknown(SURFACE, name, "slope", "too few pairs with a reference, or all of them alike", n))
            continue
        x = (x - x.mean()) / x.std()

        def slope(keep: Bools, x: Floats = x, y: Floats = y, t: Floats = t) -> Floats:
            parts = [(x[some] - x[some].mean(), y[some]) for level in (0, 1) if (some := keep & (t == level)).any()]
            below = sum(float(a @ a) for a, _ in parts)
            return np.array([sum(float(a @ b) for a, b in parts) / below if below else 0.0])

        value, low, high = (float(each[0]) for each in jackknife(slope, groups[there], confidence))
        out.append(Number(SURFACE, name, "slope", value, low, high, n))
        _, (least,), (most,) = jackknife(slope, groups[there], 1 - (1 - confidence) / len(looks))
        if least * most > 0:
            shown.append((abs(value), name))
    strongest = [name for _, name in sorted(shown, reverse=True)[:2]]
    return [replace(one, verdict=_slope(one), flag="biased") if one.subject in strongest else one for one in out]


def _slope(one: Number) -> str:
    up, run = one.value > 0, one.subject.startswith("retrieved by ")
    who = (
        f"this {'favours' if up else 'works against'} that run"
        if run
        else f"runs with {'more' if up else 'less'} of it score higher"
    )
    rise = f"labels {'rise' if up else 'fall'} by {abs(one.value):.1%} of the scale per standard deviation of it"
    return f"{rise}, beyond what the reference explains: {who}"


def overrating(material: Material, name: str) -> list[Number]:
    """Return the mean label where the reference says not relevant, and what share of it counts as relevant."""
    values, truth, groups = material.values[name], material.judged, material.groups[material.query]
    label, called = material.unit_scaled(name), material.votes(name, values)
    not_so, hits = np.isfinite(values) & (truth == 0), (called == 1) & np.isfinite(truth)

    def mean(subject: str, statistic: str, of: Floats, where: Bools) -> Number:
        ends = mean_of(of[where], groups[where], material.confidence, 0.0)
        return Number(OVERRATING, subject, statistic, *ends, int(where.sum()))

    if not not_so.any():
        return [
            unknown(
                OVERRATING, "not relevant", "mean label", "the reference calls none of the labelled pairs not relevant"
            )
        ]
    subject = "not relevant by the reference"
    free = mean(subject, "called relevant", called, not_so)
    told = f"{free.value:.1%} of what is not relevant counts as relevant: runs are rewarded for retrieving it"
    out = [mean(subject, "mean label", label, not_so), replace(free, verdict=told)]
    if hits.any():
        wrong = mean("called relevant", "not relevant by the reference", 1 - truth, hits)
        told = f"{wrong.value:.0%} of what counts as relevant is not, by the reference: runs are rewarded for it"
        out.append(replace(wrong, verdict=told, flag="overrates" if wrong.low > 0.5 else ""))
    return out
