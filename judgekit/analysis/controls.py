"""Controls: how much of an agreement between scores and quality comes from easy and hard questions.

Scores and quality follow each other over queries also where both only reflect how hard a question is, or what the LLM
knows without any document. Three looks at it, beside the levels (the within-query level is the strictest):

* ``all``, ``cross-query`` and ``same-query`` pairs: all cases (query, run) in one pool, and the pairs of cases split
  into those of different queries and those of the same. Where scores tell good runs from bad ones, same-query pairs
  agree; where they only tell easy questions from hard ones, just the others do.
* ``closed-book-0``: only the queries that the LLM gets wholly wrong without documents.
* ``closed-book-strata``: only pairs of queries with the same closed-book quality, all strata added up. (A partial
  Kendall coefficient would not do: with a binary control it is not 0 under conditional independence.)
* ``closed-book-partial``: partial correlations by formula, for r and rho only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from judgekit.analysis.coefficients import COEFFICIENTS, Floats, Target, coefficients
from judgekit.analysis.inputs import Panel
from judgekit.analysis.levels import METHOD, Estimate, Resamples
from judgekit.analysis.rankings import signs
from judgekit.analysis.resampling import interval
from judgekit.data.tables import ALL

__all__ = ["CONTROLS", "CONTROL_COLUMNS", "closed_book_controls", "control_rows", "pair_split"]

CONTROLS: Final = (
    "all",
    "cross-query",
    "same-query",
    "closed-book-0",
    "closed-book-strata",
    "closed-book-partial",
)
"""What a row of a table of controls can be about."""

CONTROL_COLUMNS: Final = (
    "run",
    "control",
    "coefficient",
    "value",
    "ci_low",
    "ci_high",
    "ci_method",
    "n",
    "undefined_reason",
)
_SPLIT: Final = ("concordance", "tau_b", "r")


def pair_split(scores: Floats, quality: Floats) -> pd.DataFrame:
    """Split the coefficients over all cases into their cross-query and same-query pairs.

    With P a set of pairs of cases, tau-b is (C - D) / sqrt(untied in scores x untied in quality) over P, concordance
    the share of the pairs with different quality whose scores agree (ties half), and r the sum of products of
    differences over P, divided by the root of the sums of their squares: over all pairs that is Pearson's r, over
    same-query pairs the r of deviations from the mean of the query.

    Args:
        scores: shape (R, Q), finite.
        quality: likewise.

    Returns:
        Rows ``control, coefficient, value, pairs``.
    """
    return pd.DataFrame(list(_split(scores, quality)), columns=["control", "coefficient", "value", "pairs"])


def _split(scores: Floats, quality: Floats) -> Iterator[tuple[str, str, float, int]]:
    everything = _pair_sums(scores.ravel(), quality.ravel())
    sx, sy = signs(scores.T).astype(np.float64), signs(quality.T).astype(np.float64)
    i, j = np.triu_indices(len(scores), 1)
    dx, dy = scores[i] - scores[j], quality[i] - quality[j]
    same = np.array(
        [(sx * sy).sum(), (sx != 0).sum(), (sy != 0).sum(), (dx * dy).sum(), (dx**2).sum(), (dy**2).sum(), dx.size],
        dtype=np.float64,
    )
    for control, sums in (("all", everything), ("cross-query", everything - same), ("same-query", same)):
        balance, untied_x, untied_y, product, square_x, square_y, pairs = sums
        with np.errstate(divide="ignore", invalid="ignore"):
            fine = untied_x > 0 and untied_y > 0
            values = {
                "concordance": (balance / untied_y + 1) / 2,
                "tau_b": balance / np.sqrt(untied_x * untied_y),
                "r": product / np.sqrt(square_x * square_y),
            }
        for name in _SPLIT:
            yield control, name, float(values[name]) if fine else np.nan, int(pairs)


def _pair_sums(x: Floats, y: Floats) -> Floats:
    """Return C - D, untied in x, untied in y, sums of products and squares of differences, and number, of all pairs."""
    n = len(x)
    balance, untied_x, untied_y = Target(y).pairs(x)[:, 0] / 2
    x, y = x - x.mean(), y - y.mean()
    return np.array([balance, untied_x, untied_y, n * (x @ y), n * (x @ x), n * (y @ y), n * (n - 1) / 2])


def control_rows(
    panel: Panel, labeling: int, closed_book: Floats | None, resamples: Resamples, confidence: float
) -> list[dict[str, object]]:
    """Return all controls of one labeling in a panel; those on closed-book quality need it.

    Args:
        panel: what is compared.
        labeling: index of the labeling.
        closed_book: quality without documents, shape (Q,), NaN where undefined; None where it was not measured.
        resamples: of the queries.
        confidence: of the intervals.

    Returns:
        Rows ``run, control, coefficient, value, ci_low, ci_high, ci_method, n, undefined_reason``; ``n`` counts
        pairs of cases in the split, else queries.
    """
    rows: list[dict[str, object]] = []
    where = panel.defined(labeling).all(axis=0)
    if len(panel.runs) > 1 and where.any():
        for control, name, value, pairs in _split(panel.scores[labeling][:, where], panel.quality[:, where]):
            why = "" if np.isfinite(value) else "no pair differs in scores or none in quality"
            made = (ALL, control, name, value, np.nan, np.nan, "", pairs, why)
            rows.append(dict(zip(CONTROL_COLUMNS, made, strict=True)))
    if closed_book is not None:
        found = closed_book_controls(panel, labeling, closed_book, resamples, confidence)
        rows += [
            dict(zip(CONTROL_COLUMNS, made, strict=True))
            for made in found[list(CONTROL_COLUMNS)].itertuples(index=False)
        ]
    return rows


def closed_book_controls(
    panel: Panel, labeling: int, closed_book: Floats, resamples: Resamples, confidence: float
) -> pd.DataFrame:
    """Return the coefficients given what the LLM knows without documents, per run, and their mean over the runs.

    Args:
        panel: what is compared.
        labeling: index of the labeling.
        closed_book: quality without documents, shape (Q,), NaN where undefined.
        resamples: of the queries.
        confidence: of the intervals.

    Returns:
        Rows ``run, control, coefficient, value, ci_low, ci_high, ci_method, n, undefined_reason``.
    """
    rows: list[dict[str, object]] = []
    found: dict[tuple[str, str], list[tuple[float, Floats, int]]] = {}
    for row, run in enumerate(panel.runs):
        where = panel.defined(labeling)[row] & np.isfinite(closed_book)
        score, quality, known = panel.scores[labeling, row, where], panel.quality[row, where], closed_book[where]
        for control, estimate in _given(score, quality, known, resamples.weights[where]):
            for name, value, draws in zip(estimate.names, estimate.values, estimate.draws, strict=True):
                rows.append(_row(run, control, name, float(value), draws, estimate, confidence))
                if not estimate.reason:
                    found.setdefault((control, name), []).append((float(value), draws, estimate.n))
    if len(panel.runs) > 1:
        for (control, name), each in found.items():
            value = float(np.mean([v for v, _, _ in each]))
            draws = np.mean([d for _, d, _ in each], axis=0)
            n = max(n for _, _, n in each)
            mean = Estimate(labeling, ALL, (name,), np.array([value]), draws[None], n, n)
            rows.append(_row(ALL, control, name, value, draws, mean, confidence))
    return pd.DataFrame(rows)


def _row(
    run: str, control: str, name: str, value: float, draws: Floats, estimate: Estimate, confidence: float
) -> dict[str, object]:
    ends = interval(value, draws, confidence, METHOD["query"][name], estimate.n)
    return {
        "run": run,
        "control": control,
        "coefficient": name,
        "value": value,
        "ci_low": ends.low,
        "ci_high": ends.high,
        "ci_method": ends.method,
        "n": estimate.n,
        "undefined_reason": estimate.reason,
    }


def _given(score: Floats, quality: Floats, known: Floats, weights: Floats) -> Iterator[tuple[str, Estimate]]:
    wrong = known == 0
    yield "closed-book-0", _plain(score[wrong], quality[wrong], weights[wrong])
    yield "closed-book-strata", _stratified(score, quality, known, weights)
    yield "closed-book-partial", _partial(score, quality, known, weights)


def _estimate(names: tuple[str, ...], values: Floats, draws: Floats, n: int) -> Estimate:
    why = "" if np.isfinite(values).all() else "the scores, the quality or what is known without documents is constant"
    return Estimate(0, "", names, values, draws, n, n, reason=why)


def _plain(score: Floats, quality: Floats, weights: Floats) -> Estimate:
    values = np.array(list(coefficients(score, quality).values()))
    if not len(score):
        return _estimate(COEFFICIENTS, values, np.full((4, weights.shape[1]), np.nan), 0)
    return _estimate(COEFFICIENTS, values, Target(quality, weights).coefficients(score), len(score))


def _stratified(score: Floats, quality: Floats, known: Floats, weights: Floats) -> Estimate:
    """Add up pairs over the strata of queries with the same closed-book quality."""
    ones = np.ones((len(score), 1))
    value, draws = (_strata(score, quality, known, w) for w in (ones, weights))
    return _estimate(("concordance", "tau_b"), value[:, 0], draws, len(score))


def _strata(score: Floats, quality: Floats, known: Floats, weights: Floats) -> Floats:
    sums = np.zeros((3, weights.shape[1]))
    for level in np.unique(known):
        where = known == level
        sums += Target(quality[where], weights[where]).pairs(score[where])
    balance, untied_x, untied_y = sums
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.stack([(balance / untied_y + 1) / 2, balance / np.sqrt(untied_x * untied_y)])


def _partial(score: Floats, quality: Floats, known: Floats, weights: Floats) -> Estimate:
    """Return the partial rho and r given the closed-book quality."""
    ones = np.ones((len(score), 1))
    value, draws = (_partials(score, quality, known, w) for w in (ones, weights))
    return _estimate(("rho", "r"), value[:, 0], draws, len(score))


def _partials(score: Floats, quality: Floats, known: Floats, weights: Floats) -> npt.NDArray[np.float64]:
    target, control = Target(quality, weights), Target(known, weights)
    xy, xz, yz = (
        each[2:] for each in (target.coefficients(score), control.coefficients(score), control.coefficients(quality))
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.clip((xy - xz * yz) / np.sqrt((1 - xz**2) * (1 - yz**2)), -1, 1))
