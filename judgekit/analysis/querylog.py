"""Do the evaluation queries look like the real ones? A classifier two-sample test (Lopez-Paz and Oquab, 2017).

A classifier learns to tell the evaluation queries from those of a log by their character n-grams. Where it cannot
(AUC .5 on held-out queries) the two are mixed; where it can (AUC towards 1) the evaluation is about other questions
than the ones that users ask. The p-value comes from shuffling which query belongs to which side.

Where they differ is shown by clusters of both together (k-means of their n-grams in few dimensions), which know no
sides, so that an exact test says of each whether its shares differ beyond chance.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from judgekit.analysis.coefficients import Floats
from judgekit.analysis.differences import holm
from judgekit.errors import DataError

__all__ = ["Cluster", "QueryLogCheck", "check_query_log", "check_sizes", "machine_made"]

_LENGTHS: Final = (2, 3, 4)
_MOST: Final = 2000
"""Queries looked at on each side; more are drawn at random."""
_LEAST: Final = 20
_RIDGE: Final = 1.0
_FOLDS: Final = 5
_SEPARATED: Final = 0.6
_DIMENSIONS: Final = 24
_PER_CLUSTER: Final = 25
_CLUSTERS: Final = 12
_STARTS: Final = 8
_ROUNDS: Final = 30
_WORD: Final = re.compile(r"[^\W_]+")
_SIGNS: Final = 2
"""So many of the five signs make a hint."""


@dataclass(frozen=True)
class Cluster:
    """Queries of both sides that are alike.

    Attributes:
        queries, log: the share of the evaluation queries, and of the log, that are in it.
        p_holm: of no difference between these shares (Fisher's exact test, Holm over the clusters).
        of_queries, of_log: some of each side, the most typical first.
    """

    queries: float
    log: float
    p_holm: float
    of_queries: tuple[str, ...]
    of_log: tuple[str, ...]


@dataclass(frozen=True)
class QueryLogCheck:
    """What came out.

    Attributes:
        auc: how well held-out queries are told apart: .5 not at all, 1 wholly.
        p: share of shuffles with an AUC as large.
        queries, log: how many were looked at on each side.
        unlike_log: the evaluation queries that look least like the log, the worst first.
        unlike_queries: the log's queries that look least like the evaluation.
        clusters: of both together, those in which they differ most first.
        signs: what the evaluation queries have of queries that a machine made, see `machine_made`.
    """

    auc: float
    p: float
    queries: int
    log: int
    unlike_log: tuple[str, ...]
    unlike_queries: tuple[str, ...]
    clusters: tuple[Cluster, ...] = ()
    signs: tuple[str, ...] = ()

    @property
    def hint(self) -> str:
        """That the evaluation queries may be machine-made, where there are enough signs of it; else ""."""
        if len(self.signs) < _SIGNS:
            return ""
        return (
            "A hint, not a verdict: the evaluation queries may be machine-made: compared with the log, "
            + "; ".join(self.signs)
            + "."
        )

    @property
    def differing(self) -> tuple[Cluster, ...]:
        """The clusters whose shares differ beyond chance."""
        return tuple(cluster for cluster in self.clusters if cluster.p_holm <= 0.05)

    @property
    def separated(self) -> bool:
        """Whether the two differ beyond chance and by so much that it matters (AUC of .6 or more)."""
        return self.p <= 0.05 and self.auc >= _SEPARATED

    @property
    def sentence(self) -> str:
        """What to tell the user, quoting no query."""
        figures = f"(AUC {self.auc:.2f}: .5 is mixed, 1 separate; p {self.p:.3f})"
        if self.separated:
            return (
                f"The evaluation queries do not look like those of the log {figures}, so results may not carry"
                " over to your users."
            )
        if self.p <= 0.05:
            return f"The evaluation queries differ slightly from those of the log {figures}."
        return f"The evaluation queries look like those of the log {figures}."

    @property
    def examples(self) -> str:
        """What to quote: queries of the clusters that differ; of each side the one most unlike the other, if separate.

        "" where nothing differs.
        """
        told = []
        if self.separated:
            told.append(
                f"Least like the log: {self.unlike_log[0]!r}; least like the evaluation: {self.unlike_queries[0]!r}."
            )
        for number, one in enumerate(self.differing, 1):
            sides = (("evaluation", one.of_queries), ("log", one.of_log))
            shown = "; ".join(f"{side}: {', '.join(map(repr, texts))}" for side, texts in sides if texts)
            told.append(f"Cluster {number}: {shown}.")
        return " ".join(told)


def check_query_log(
    queries: Sequence[str], log: Sequence[str], *, permutations: int = 500, seed: int = 1
) -> QueryLogCheck:
    """Test whether evaluation queries differ from those of a query log.

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
    weighted = _weighted(texts)
    smoother = _held_out((weighted @ weighted.T).toarray(), rng.permutation(len(texts)) % _FOLDS)
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
        _clusters(weighted, mine, texts, rng),
        machine_made(sides[0], sides[1], rng),
    )


def machine_made(queries: Sequence[str], log: Sequence[str], rng: np.random.Generator) -> tuple[str, ...]:
    """Return what queries have, beside those of a log, of queries that a machine made, in words; a hint at most.

    Such queries tend to be long, all of a length, written out as sentences, alike in how they begin, and poor in words.
    """
    split = [[_WORD.findall(text.casefold()) for text in side] for side in (queries, log)]
    (words, spread, written, begin), (own, own_spread, own_written, own_begin) = map(_form, (queries, log), split)
    # Whole queries in a random order, as many words from either side: among more words fewer are new.
    drawn = [[word for at in rng.permutation(len(side)) for word in side[at]] for side in split]
    size = max(min(map(len, drawn)), 1)
    rich, own_rich = (len(set(side[:size])) / size for side in drawn)
    signs = (
        (words > 1.25 * own, f"they are long ({words:.1f} words on average; log {own:.1f})"),
        (spread < 0.8 * own_spread, f"their lengths vary little (by {spread:.0%}; log {own_spread:.0%})"),
        (
            written > own_written + 0.3,
            f"they are written out ({written:.0%} begin with a capital and end with a mark; log {own_written:.0%})",
        ),
        (
            begin > 1.5 * own_begin + 0.005,
            f"they begin alike ({begin:.1%} of all pairs share their first two words; log {own_begin:.1%})",
        ),
        (rich < 0.85 * own_rich, f"they use few different words ({rich:.0%} of the words are new; log {own_rich:.0%})"),
    )
    return tuple(told for there, told in signs if there)


def _form(texts: Sequence[str], split: Sequence[Sequence[str]]) -> tuple[float, float, float, float]:
    """Return the mean length in words, how it varies, the share of sentences, and of pairs that begin alike."""
    lengths = np.array([len(words) for words in split], dtype=np.float64)
    sentence = [text[:1].isupper() and text[-1:] in ".?!。？！" for text in texts]
    starts = np.unique([" ".join(words[:2]) for words in split], return_counts=True)[1]
    alike = float((starts * (starts - 1)).sum() / (len(texts) * (len(texts) - 1)))
    mean = float(lengths.mean())
    return mean, float(lengths.std() / max(mean, 1)), float(np.mean(sentence)), alike


def _clusters(
    weighted: Any, mine: npt.NDArray[np.bool_], texts: Sequence[str], rng: np.random.Generator
) -> tuple[Cluster, ...]:
    """Return clusters of all texts, those in which the shares of the two sides differ most first."""
    from scipy.sparse.linalg import svds
    from scipy.stats import fisher_exact

    if not weighted.data.any():  # one text, again and again
        return ()
    dimensions = min(_DIMENSIONS, min(weighted.shape) - 1)
    left, values, _ = svds(weighted, k=dimensions, v0=np.ones(min(weighted.shape)))
    points = np.asarray(left * values, dtype=np.float64)
    points /= np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-12)
    count = min(_CLUSTERS, max(2, len(texts) // _PER_CLUSTER))
    of, centres = max((_means(points, count, rng) for _ in range(_STARTS)), key=lambda found: found[2])[:2]
    typical = np.einsum("ij,ij->i", points, centres[of])
    total = int(mine.sum()), int((~mine).sum())
    found: list[tuple[float, float, float, tuple[str, ...], tuple[str, ...]]] = []
    for at in np.unique(of):
        inside = [np.flatnonzero((of == at) & side) for side in (mine, ~mine)]
        here = [len(each) for each in inside]
        p = float(fisher_exact(np.array([here, np.subtract(total, here)]))[1])
        ranked = ([texts[i] for i in each[np.argsort(-typical[each], kind="stable")]] for each in inside)
        own, others = (tuple(dict.fromkeys(side))[:3] for side in ranked)
        found.append((here[0] / total[0], here[1] / total[1], p, own, others))
    adjusted = holm([row[2] for row in found]).tolist()
    made = [Cluster(row[0], row[1], p, *row[3:]) for row, p in zip(found, adjusted, strict=True)]
    return tuple(sorted(made, key=lambda one: (-abs(one.queries - one.log), one.p_holm)))


def _means(points: Floats, count: int, rng: np.random.Generator) -> tuple[npt.NDArray[np.intp], Floats, float]:
    """Return the cluster of each point on the sphere, the centres, and how near the points are to theirs (k-means)."""
    chosen = [int(rng.integers(len(points)))]
    for _ in range(count - 1):  # as k-means++: far from those chosen
        far = np.maximum(1 - (points @ points[chosen].T).max(axis=1), 0)
        if far.sum() <= 0:
            break
        chosen.append(int(rng.choice(len(points), p=far / far.sum())))
    centres = points[chosen]
    of = np.full(len(points), -1)
    for _ in range(_ROUNDS):
        nearest = (points @ centres.T).argmax(axis=1)
        if (nearest == of).all():
            break
        of = nearest
        sums = np.stack([points[of == at].sum(axis=0) for at in range(len(centres))])
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        centres = np.where(lengths > 0, sums / np.maximum(lengths, 1e-12), centres)
    return of, centres, float((points @ centres.T).max(axis=1).sum())


def check_sizes(queries: Sequence[str], log: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the texts of both sides that are not blank, sorted.

    Raises:
        DataError: a side has fewer than 20.
    """
    sides = tuple(sorted(text.strip() for text in texts if text.strip()) for texts in (queries, log))
    for kept, name in zip(sides, ("evaluation", "query log"), strict=True):
        if len(kept) < _LEAST:
            raise DataError(f"the {name} has {len(kept)} queries, and the check needs at least {_LEAST}")
    return sides[0], sides[1]


def _grams(text: str) -> Iterator[str]:
    padded = f" {' '.join(text.casefold().split())} "
    for length in _LENGTHS:
        for start in range(len(padded) - length + 1):
            yield padded[start : start + length]


def _weighted(texts: Sequence[str]) -> Any:
    """Return the texts' tf-idf weighted n-grams, sparse, shape (n, grams), each row of length 1."""
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
    return csr_array((values, counts.indices, counts.indptr), shape=counts.shape)


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
