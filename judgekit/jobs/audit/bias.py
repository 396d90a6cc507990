"""Measures what labels follow besides relevance: length, words, rank, retriever."""

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
from judgekit.jobs.audit.audited_run import Material
from judgekit.jobs.audit.numbers import Bools, Ints, Number, jackknife, unknown

NAME: Final = "surface"
_LEAST: Final = 30
"""The smallest number of pairs for a slope."""


def surface(material: Material) -> dict[str, Floats]:
    """Return each pair's looks, whatever its meaning, of shape (P,); NaN if a look does not apply."""
    collection = material.collection
    doc_ids = sorted({doc_id for _, doc_id in material.pairs})
    docs = {doc.doc_id: doc for doc in collection.docs.get(doc_ids)}
    questions = {query_id: _words(query.text) for query_id, query in collection.queries.items()}
    looks = np.full((3, len(material.pairs)), np.nan)
    for place, (query_id, doc_id) in enumerate(material.pairs):
        doc, question = docs[doc_id], questions[query_id]
        # Long passages are many times as long as short ones, so a judge may follow the ratio of lengths.
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
    # Short words ("the", "of") are in every passage and would hide the share of the question's words.
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
    """Return the rise of labels per standard deviation of each look, given the reference, as a share of the scale.

    ``units`` and ``groups`` hold each pair's question and jackknife group.
    """
    # Labels and look are centred within pairs of equal reference label, which removes from both what the reference
    # explains (Frisch and Waugh 1933). Each look is fitted separately, since looks seen together share their slope.
    # Sentences hold for all looks together (Bonferroni).
    numbers: dict[str, Number] = {}
    strength: dict[str, float] = {}
    for name, look in looks.items():
        there = np.isfinite(label) & np.isfinite(truth) & np.isfinite(look)
        x, group, n = look[there], groups[there], int(there.sum())
        if n < _LEAST or np.ptp(x) == 0 or len(np.unique(group)) < 2:
            why = "too few pairs with a reference, or all of them alike"
            numbers[name] = unknown(NAME, name, "slope", why, n)
            continue
        x = (x - x.mean()) / x.std()
        slope = partial(_slope, x, label[there], truth[there])
        # A question whose labels follow only the look; with half of it, coverage is .63 for looks of few pairs.
        floor = unseen(len(np.unique(units[there])), float(np.abs(x).mean()))
        numbers[name] = Number(NAME, name, "slope", *jackknife(slope, group, confidence, floor), n=n)
        together = jackknife(slope, group, 1 - (1 - confidence) / len(looks), floor)
        if together.low * together.high > 0:
            strength[name] = abs(together.value)
    for name in sorted(strength, key=strength.__getitem__, reverse=True)[:2]:
        numbers[name] = replace(numbers[name], verdict=_sentence(numbers[name]), flag="biased")
    return list(numbers.values())


def _slope(look: Floats, label: Floats, truth: Floats, keep: Bools) -> float:
    """Return the slope of labels along a look among some pairs; 0 if the look is constant."""
    above = below = 0.0
    for level in (0, 1):
        alike = keep & (truth == level)
        if alike.any():
            along = look[alike] - look[alike].mean()
            above += float(along @ label[alike])
            below += float(along @ along)
    if below == 0:
        return 0.0
    return above / below


def _sentence(slope: Number) -> str:
    rise, favours, more = "rise", "favours", "more"
    if slope.value < 0:
        rise, favours, more = "fall", "works against", "less"
    consequence = f"runs with {more} of it score higher"
    if slope.subject.startswith("retrieved by "):
        consequence = f"this {favours} that run"
    size = f"{abs(slope.value):.1%} of the scale per standard deviation of it"
    return f"labels {rise} by {size}, beyond what the reference explains: {consequence}"
