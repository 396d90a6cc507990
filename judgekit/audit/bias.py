"""What a label follows besides relevance: length, words, rank, retriever; its own family; and where it overrates."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from judgekit.analysis.coefficients import Floats
from judgekit.answers.matching import Phrase, TokenText
from judgekit.audit.material import Material
from judgekit.audit.numbers import Bools, Ints, Number, jackknife, mean_of, unknown
from judgekit.errors import UsageError, nearest

__all__ = ["OVERRATING", "SELF", "SURFACE", "family", "overrating", "slopes", "surface"]

SURFACE, OVERRATING, SELF = "surface", "overrating", "self-preference"
_BINS: Final = ((0.5, 0.7), (0.7, 0.9), (0.9, 1.01))
_LEAST: Final = 30
"""Pairs that a slope is drawn through, at least."""


def surface(material: Material) -> dict[str, Floats]:
    """Return what a pair looks like, whatever it means, each of shape (P,), NaN where it does not apply."""
    collection = material.prepared.collection
    docs = {doc.doc_id: doc for doc in collection.docs.get(sorted({doc_id for _, doc_id in material.pairs}))}
    asked = {query_id: _words(query.text) for query_id, query in collection.queries.items()}
    phrases = {q.query_id: [p for a in q.answers if (p := TokenText.phrase(a))] for q in collection.queries.values()}
    rows = [
        (
            math.log1p(len(docs[d].text.split())),
            len(asked[q] & _words(docs[d].title)) / max(len(asked[q]), 1) if docs[d].title else math.nan,
            len(asked[q] & _words(docs[d].text)) / max(len(asked[q]), 1),
            _position(docs[d].text, phrases[q]),
        )
        for q, d in material.pairs
    ]
    names = ("length", "title match", "query-term overlap", "position of the answer")
    found = dict(zip(names, np.array(rows).T, strict=True))
    ranks = material.ranks.astype(np.float64)
    found["rank (best of any run)"] = np.where(ranks > 0, ranks, np.inf).min(axis=0)
    return found | {f"retrieved by {run.name}": np.sign(row) for run, row in zip(material.runs, ranks, strict=True)}


def _words(text: str) -> set[str]:
    found = set(re.findall(r"\w+", text.casefold()))
    return {word for word in found if len(word) > 3 or word.isdigit()} or found


def _position(text: str, phrases: Sequence[Phrase]) -> float:
    """Return what share of the words comes before the end of the first answer; NaN where the text does not have one."""
    words = text.split()

    def held(count: int) -> bool:
        return any(map(TokenText(" ".join(words[:count])).holds, phrases))

    if not phrases or not held(len(words)):
        return math.nan
    low, high = 1, len(words)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if held(middle) else (middle + 1, high)
    return low / len(words)


def slopes(
    label: Floats, truth: Floats, looks: Mapping[str, Floats], groups: Ints, confidence: float = 0.95
) -> list[Number]:
    """Return by how much of the scale labels rise per standard deviation of each look, given the reference.

    Labels and look are taken minus their means among the pairs that the reference labels alike, so that what the
    reference explains is gone from both (Frisch and Waugh 1933). Each look is taken alone: looks that go together
    share their slope. What is said in words holds for all looks together (Bonferroni).

    Args:
        label: on [0, 1], NaN where there is none, shape (P,).
        truth: 1, 0, NaN, shape (P,).
        looks: by name, shape (P,).
        groups: the group of each pair's query, shape (P,).
        confidence: of the intervals.
    """
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
    """Return the mean label where the reference says not relevant, all together and by the judge's confidence."""
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
    sure = _confidence(material, name)
    for low, high in _BINS:
        some = not_so & (sure >= low) & (sure < high)
        if some.any():
            out.append(mean(f"not relevant, judge sure {low:.0%} to {min(high, 1):.0%}", "mean label", label, some))
    return out


def _confidence(material: Material, name: str) -> Floats:
    """Return how sure a judge was of each label, 1/2 to 1: its votes' agreement, or its probability; else NaN."""
    table = material.labelings[name].table
    if "agreement" in table:
        return material.pooled(table, "agreement")
    probable = getattr(material.labelers[name], "read", "") == "logprobs" and material.scale(name).kind == "unit"
    values = material.values[name] if probable else np.full(len(material.pairs), np.nan)
    return np.maximum(values, 1 - values)


def family(material: Material, name: str, runs: Mapping[str, str], column: str | None) -> list[Number]:
    """Return by how much a judge favours runs and passages of its own model family, beyond what the reference says.

    Args:
        material: what is audited.
        name: the labeling.
        runs: the family that made each run, as far as one did.
        column: the column of the documents that holds the family that wrote each.

    Raises:
        UsageError: no document has such a column.
    """
    own = {word for e in material.labelers[name].needs.endpoints for word in (e.family, e.model) if word}
    if not own or material.reference is None:
        return []
    out: list[Number] = []
    if column is not None:
        docs = material.prepared.collection.docs.get([doc_id for _, doc_id in material.pairs])
        if not any(column in doc.columns for doc in docs):
            known = sorted({name for doc in docs for name in doc.columns})
            have = f"(they have: {', '.join(known) or 'none'}).{nearest(column, known)}"
            raise UsageError(f"--docs-family {column}: the documents have no such column {have}")
        mine = np.array([doc.columns.get(column) in own for doc in docs])
        extra = material.unit_scaled(name) - material.judged
        out.append(_apart("passages", extra, mine, material.groups[material.query], material.confidence))
    if runs:
        labels = [(material.scale(one), material.values[one]) for one in (name, material.reference)]
        out.append(
            _runs_apart(material.scores(labels), np.array([runs.get(r.name) in own for r in material.runs]), material)
        )
    return out


def _apart(what: str, extra: Floats, own: Bools, groups: Ints, confidence: float) -> Number:
    """Return how much more the own family's passages get than the others, beyond the reference."""
    there, statistic = np.isfinite(extra), "own family minus others"
    values, mine = extra[there], own[there]
    if min(len(np.unique(groups[there][side])) for side in (mine, ~mine)) < 2:
        return unknown(SELF, what, statistic, "too few of its own family, or of others", int(mine.sum()))

    def apart(keep: Bools) -> float:
        return float(values[keep & mine].mean() - values[keep & ~mine].mean())

    return _preferred(what, statistic, apart, groups[there], confidence, int(mine.sum()))


def _runs_apart(scores: Floats, own: Bools, material: Material) -> Number:
    """Return how much higher the own family's runs stand by the labeling than by the reference, less the others.

    Each labeling's mean scores are taken less their mean over the runs, over their standard deviation: two labelings
    seldom use a measure's range alike.
    """
    statistic = "own family minus others, standard deviations of the runs"
    there, groups = np.isfinite(scores).all(axis=(0, 1)), material.groups
    if not 0 < own.sum() < len(own) or there.sum() < 2:
        return unknown(SELF, "runs", statistic, "no runs of its own family, or no others", int(own.sum()))

    def apart(keep: Bools) -> float:
        means = scores[:, :, there][:, :, keep].mean(axis=2)
        placed = (means - means.mean(axis=1, keepdims=True)) / np.maximum(means.std(axis=1, keepdims=True), 1e-12)
        extra = placed[0] - placed[1]
        return float(extra[own].mean() - extra[~own].mean())

    return _preferred("runs", statistic, apart, groups[there], material.confidence, int(own.sum()))


def _preferred(
    what: str, statistic: str, apart: Callable[[Bools], float], groups: Ints, confidence: float, n: int
) -> Number:
    value, low, high = (float(each[0]) for each in jackknife(lambda keep: np.array([apart(keep)]), groups, confidence))
    told, flag = "no preference for its own family is shown", ""
    if low > 0:
        told = f"{what} of its own family get {value:.3f} more than the reference gives them"
        told, flag = f"{told}: do not use it to compare them with others", "prefers its own"
    return Number(SELF, what, statistic, value, low, high, n, told, flag)
