"""What a label follows besides relevance: length, words, rank, retriever; and where it overrates."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from judgekit.analysis.coefficients import Floats
from judgekit.analysis.resampling import unseen
from judgekit.plugins.audit.audited_run import Material
from judgekit.plugins.audit.numbers import Bools, Ints, Number, jackknife, mean_share, unknown

SURFACE, OVERRATING = "surface", "overrating"
_LEAST: Final = 30
"""Pairs that a slope is drawn through, at least."""


def surface(material: Material) -> dict[str, Floats]:
    """Return what a pair looks like, whatever it means, each of shape (P,), NaN where it does not apply."""
    collection = material.collection
    doc_ids = sorted({doc_id for _, doc_id in material.pairs})
    docs = {doc.doc_id: doc for doc in collection.docs.get(doc_ids)}
    questions = {query_id: _words(query.text) for query_id, query in collection.queries.items()}
    looks = np.full((3, len(material.pairs)), np.nan)
    for place, (query_id, doc_id) in enumerate(material.pairs):
        doc, question = docs[doc_id], questions[query_id]
        looks[0, place] = math.log1p(len(doc.text.split()))
        if doc.title:
            looks[1, place] = len(question & _words(doc.title)) / max(len(question), 1)
        looks[2, place] = len(question & _words(doc.text)) / max(len(question), 1)
    ranks = material.ranks.astype(np.float64)
    named = {
        "length": looks[0],
        "title match": looks[1],
        "query-term overlap": looks[2],
        "rank (best of any run)": np.where(ranks > 0, ranks, np.inf).min(axis=0),
    }
    for run, of_run in zip(collection.runs, ranks, strict=True):
        named[f"retrieved by {run.name}"] = np.sign(of_run)
    return named


def _words(text: str) -> set[str]:
    found = set(re.findall(r"\w+", text.casefold()))
    return {word for word in found if len(word) > 3 or word.isdigit()} or found


def slopes(
    label: Floats,
    truth: Floats,
    looks: Mapping[str, Floats],
    *,
    units: Ints,
    groups: Ints,
    confidence: float = 0.95,
) -> list[Number]:
    """Return by how much of the scale labels rise per standard deviation of each look, given the reference.

    ``units`` and ``groups`` say of each pair its question and its jackknife group.
    """
    # Labels and look are taken minus their means among the pairs that the reference labels alike, so that what the
    # reference explains is gone from both (Frisch and Waugh 1933). Fit each look separately: looks seen together
    # share their slope. What is said in words holds for all looks together (Bonferroni).
    numbers: list[Number] = []
    shown: list[tuple[float, str]] = []
    for name, look in looks.items():
        there = np.isfinite(label) & np.isfinite(truth) & np.isfinite(look)
        x, group, n = look[there], groups[there], int(there.sum())
        if n < _LEAST or np.ptp(x) == 0 or len(np.unique(group)) < 2:
            numbers.append(unknown(SURFACE, name, "slope", "too few pairs with a reference, or all of them alike", n))
            continue
        x = (x - x.mean()) / x.std()
        slope = partial(_slope, x, label[there], truth[there])
        # A question whose labels follow the look alone; with half of it looks that few pairs have cover .63.
        floor = np.array([unseen(len(np.unique(units[there])), float(np.abs(x).mean()))])
        (estimate,) = jackknife(slope, group, confidence, floor)
        numbers.append(Number(SURFACE, name, "slope", *estimate, n=n))
        (together,) = jackknife(slope, group, 1 - (1 - confidence) / len(looks), floor)
        if together.low * together.high > 0:
            shown.append((abs(estimate.value), name))
    for _, name in sorted(shown, reverse=True)[:2]:
        place = [number.subject for number in numbers].index(name)
        numbers[place] = replace(numbers[place], verdict=_sentence(numbers[place]), flag="biased")
    return numbers


def _slope(look: Floats, label: Floats, truth: Floats, keep: Bools) -> list[float]:
    """Return the slope of labels along a look among some pairs; 0 where the look is the same for all of them."""
    above = below = 0.0
    for level in (0, 1):
        alike = keep & (truth == level)
        if alike.any():
            along = look[alike] - look[alike].mean()
            above += float(along @ label[alike])
            below += float(along @ along)
    return [above / below if below else 0.0]


def _sentence(slope: Number) -> str:
    up = slope.value > 0
    if slope.subject.startswith("retrieved by "):
        who = f"this {'favours' if up else 'works against'} that run"
    else:
        who = f"runs with {'more' if up else 'less'} of it score higher"
    rise = f"labels {'rise' if up else 'fall'} by {abs(slope.value):.1%} of the scale per standard deviation of it"
    return f"{rise}, beyond what the reference explains: {who}"


def overrating(material: Material, name: str) -> list[Number]:
    """Return the mean label where the reference says not relevant, and what share of it counts as relevant."""
    values, truth = material.values[name], material.judged
    units = material.units[material.query]
    called = material.votes(name, values)
    not_relevant = np.isfinite(values) & (truth == 0)
    if not not_relevant.any():
        why = "the reference calls none of the labelled pairs not relevant"
        return [unknown(OVERRATING, "not relevant", "mean label", why)]

    def mean(subject: str, statistic: str, of: Floats, where: Bools) -> Number:
        estimate = mean_share(of[where], units[where], material.confidence)
        return Number(OVERRATING, subject, statistic, *estimate, n=int(where.sum()))

    subject = "not relevant by the reference"
    label = mean(subject, "mean label", material.unit_scaled(name), not_relevant)
    free = mean(subject, "called relevant", called, not_relevant)
    verdict = f"{free.value:.1%} of what is not relevant counts as relevant: runs are rewarded for retrieving it"
    numbers = [label, replace(free, verdict=verdict)]
    hits = (called == 1) & np.isfinite(truth)
    if hits.any():
        wrong = mean("called relevant", "not relevant by the reference", 1 - truth, hits)
        verdict = f"{wrong.value:.0%} of what counts as relevant is not, by the reference: runs are rewarded for it"
        numbers.append(replace(wrong, verdict=verdict, flag="overrates" if wrong.low > 0.5 else ""))
    return numbers
