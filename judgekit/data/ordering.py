"""The one function that orders the documents of a run: pool, answers, metrics and report all call it."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
import numpy.typing as npt

__all__ = ["Ties", "order"]


class Ties(StrEnum):
    """How documents with equal scores are ordered.

    `DOC_DESC` is what trec_eval 10 does: doc id descending (by bytes, as strcmp), scores compared as 64-bit floats.
    `DOC_DESC_32` compares scores as 32-bit floats, as trec_eval up to 9.0.8 and pytrec_eval do.
    `DOC_ASC` is the MS MARCO script's order, `RUN_ORDER` keeps the order of the file (ranx).
    """

    DOC_DESC = "doc-desc"
    DOC_DESC_32 = "doc-desc-32"
    DOC_ASC = "doc-asc"
    RUN_ORDER = "run-order"


def order(
    queries: npt.NDArray[np.integer],
    scores: npt.NDArray[np.float64],
    doc_ranks: npt.NDArray[np.integer],
    ties: Ties = Ties.DOC_DESC,
) -> npt.NDArray[np.intp]:
    """Return the permutation that sorts rows by query, then score descending, then by the tie rule.

    Args:
        queries: query code per row (any integers; equal codes belong together).
        scores: score per row; must be finite.
        doc_ranks: rank of the row's doc id among all doc ids in ascending byte order.
        ties: the tie rule.
    """
    if ties is Ties.RUN_ORDER:
        return np.lexsort((-scores, queries))
    if ties is Ties.DOC_DESC_32:
        scores = scores.astype(np.float32)
    second = doc_ranks if ties is Ties.DOC_ASC else -doc_ranks.astype(np.int64)
    return np.lexsort((second, -scores, queries))
