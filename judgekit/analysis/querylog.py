"""Do the evaluation queries look like the real ones? A classifier two-sample test (Lopez-Paz and Oquab, 2017).

A classifier learns to tell the evaluation queries from those of a log by their character n-grams. Where it cannot
(AUC .5 on held-out queries) the two are mixed; where it can (AUC towards 1) the evaluation is about other questions
than the ones that users ask. The p-value comes from shuffling which query belongs to which side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from judgekit.analysis.coefficients import Floats
from judgekit.errors import DataError

__all__ = ["QueryLogCheck", "check_query_log", "check_sizes"]

_LENGTHS: Final = (2, 3, 4)
_MOST: Final = 2000
"""Queries looked at on each side; more are drawn at random."""
_LEAST: Final = 20
_RIDGE: Final = 1.0
_FOLDS: Final = 5
_SEPARATED: Final = 0.6


@dataclass(frozen=True)
class QueryLogCheck:
    """What came out.

    Attributes:
        auc: how well held-out queries are told apart: .5 not at all, 1 wholly.
        p: share of shuffles with an AUC as large.
        queries, log: how many were looked at on each side.
        unlike_log: the evaluation queries that look least like the log, the worst first.
        unlike_queries: the log's queries that look least like the evaluation.
    """

    auc: float
    p: float
    queries: int
    log: int
    unlike_log: tuple[str, ...]
    unlike_queries: tuple[str, ...]

    @property
    def separated(self) -> bool:
        """Whether the two differ beyond chance and by so much that it matters (AUC of .6 or more)."""
        return self.p <= 0.05 and self.auc >= _SEPARATED

    @property
    def sentence(self) -> str:
        """What to tell the user, quoting no query."""
        figures = f"(AUC {self.auc:.2f}, .5 is mixed and 1 separate; p {self.p:.3f})"
        if self.separated:
            return (
                f"The evaluation queries do not look like those of the log {figures}, so that what holds for them need"
                " not hold for users."
            )
        if self.p <= 0.05:
            return f"The evaluation queries differ from those of the log a little {figures}."
        return f"The evaluation queries look like those of the log {figures}."

    @property
    def examples(self) -> str:
        """A query of each side that is unlike the other side, where the two are separate; else ""."""
        if not self.separated:
            return ""
        return f"Unlike the log is {self.unlike_log[0]!r}; unlike the evaluation is {self.unlike_queries[0]!r}."


def check_query_log(
    queries: Sequence[str], log: Sequence[str], *, permutations: int = 500, seed: int = 1
) -> QueryLogCheck:
    """Test whether evaluation queries can be told from those of a query log.

    Args:
        queries: texts of the evaluation queries.
        log: texts of real queries.
        permutations: shuffles for the p-value.
        seed: of sampling, folds and shuffles.

    Raises:
        DataError: a side has fewer than 20 queries that are not blank.
    """
    rng = np.random.default_rng(seed)
    sides = []
    for kept in check_sizes(queries, log):
        chosen = rng.choice(len(kept), _MOST, replace=False) if len(kept) > _MOST else np.arange(len(kept))
        sides.append([kept[i] for i in np.sort(chosen)])
    texts = [*sides[0], *sides[1]]
    mine = np.arange(len(texts)) < len(sides[0])
    smoother = _held_out(_kernel(texts), rng.permutation(len(texts)) % _FOLDS)
    scores = smoother @ _coded(mine)
    auc = _auc(scores, mine)
    shuffled = np.stack([rng.permutation(mine) for _ in range(permutations)], axis=1)
    drawn = smoother @ _coded(shuffled)
    as_large = sum(_auc(drawn[:, i], shuffled[:, i]) >= auc for i in range(permutations))
    order = np.argsort(scores, kind="stable")
    return QueryLogCheck(
        auc,
        (1 + as_large) / (1 + permutations),
        len(sides[0]),
        len(sides[1]),
        tuple(texts[i] for i in order[::-1] if mine[i])[:3],
        tuple(texts[i] for i in order if not mine[i])[:3],
    )


def check_sizes(queries: Sequence[str], log: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the texts of both sides that are not blank, sorted.

    Raises:
        DataError: a side has fewer than 20.
    """
    sides = tuple(sorted(text.strip() for text in texts if text.strip()) for texts in (queries, log))
    for kept, name in zip(sides, ("evaluation", "query log"), strict=True):
        if len(kept) < _LEAST:
            raise DataError(
                f"the {name} has {len(kept)} queries; at least {_LEAST} are needed to say whether they look alike"
            )
    return sides[0], sides[1]


def _grams(text: str) -> Iterator[str]:
    padded = f" {' '.join(text.casefold().split())} "
    for length in _LENGTHS:
        for start in range(len(padded) - length + 1):
            yield padded[start : start + length]


def _kernel(texts: Sequence[str]) -> Floats:
    """Return the cosines of the texts' tf-idf weighted n-grams, shape (n, n)."""
    from scipy.sparse import csr_array

    vocabulary: dict[str, int] = {}
    rows: list[int] = []
    columns: list[int] = []
    for row, text in enumerate(texts):
        for gram in _grams(text):
            rows.append(row)
            columns.append(vocabulary.setdefault(gram, len(vocabulary)))
    counts = csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(texts), len(vocabulary)))
    counts.sum_duplicates()
    seen = np.bincount(counts.indices, minlength=len(vocabulary))
    values = (1 + np.log(counts.data)) * np.log((1 + len(texts)) / (1 + seen))[counts.indices]
    norms = np.sqrt(np.bincount(np.repeat(np.arange(len(texts)), np.diff(counts.indptr)), values**2, len(texts)))
    norms[norms == 0] = 1
    values /= np.repeat(norms, np.diff(counts.indptr))
    weighted = csr_array((values, counts.indices, counts.indptr), shape=counts.shape)
    return np.asarray((weighted @ weighted.T).toarray())


def _held_out(kernel: Floats, folds: npt.NDArray[np.int64]) -> Floats:
    """Return the matrix that turns class codes into the scores of held-out queries by kernel ridge regression."""
    out = np.zeros_like(kernel)
    for fold in range(_FOLDS):
        test, train = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        inner = kernel[np.ix_(train, train)] + _RIDGE * np.eye(len(train))
        out[np.ix_(test, train)] = np.linalg.solve(inner, kernel[np.ix_(train, test)]).T
    return out


def _coded(mine: npt.NDArray[np.bool_]) -> Floats:
    """Code the classes so that both weigh the same and the codes add up to 0."""
    size = mine.sum(axis=0)
    return np.asarray(np.where(mine, 1 / size, -1 / (len(mine) - size)))


def _auc(scores: Floats, mine: npt.NDArray[np.bool_]) -> float:
    from scipy.stats import rankdata

    first, second = int(mine.sum()), int((~mine).sum())
    return float((rankdata(scores)[mine].sum() - first * (first + 1) / 2) / (first * second))
