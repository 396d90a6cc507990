"""The one function that orders the documents of a run: pool, answers, metrics and report all go through it."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from judgekit.data.columns import Ints, order_ids, take

__all__ = ["Moves", "Ties", "compared", "order"]

Floats = npt.NDArray[np.floating]


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


class Moves(NamedTuple):
    """Where rows go: the row that comes to stand at ``places[i]`` is ``rows[i]``; all other rows stay."""

    places: Ints
    """Ascending."""
    rows: Ints


def compared(scores: npt.NDArray[np.float64], ties: Ties) -> Floats:
    """Return the scores in the precision in which the tie rule compares them."""
    if ties is not Ties.DOC_DESC_32:
        return scores
    with np.errstate(over="ignore"):
        return scores.astype(np.float32)


def order(bounds: Ints, scores: npt.NDArray[np.float64], docs: pa.StringArray, ties: Ties) -> Moves:
    """Return what puts the rows of each query in order: score descending, then by the tie rule."""
    values = compared(scores, ties)
    inside = np.ones(max(len(values) - 1, 0), np.bool_)  # of rows (i, i + 1): whether they are of one query
    inside[bounds[1:-1][(bounds[1:-1] > 0) & (bounds[1:-1] < len(values))] - 1] = False
    rising = (inside & (values[1:] > values[:-1])).any()
    permutation = _by_score(bounds, values, stable=ties is Ties.RUN_ORDER) if rising else None
    ranked = values if permutation is None else values[permutation]
    tied = inside & (ranked[1:] == ranked[:-1])
    if ties is not Ties.RUN_ORDER and tied.any():
        moves = _break_ties(tied, docs, permutation, ascending=ties is Ties.DOC_ASC)
        if permutation is None:
            return moves
        permutation[moves.places] = moves.rows
    if permutation is None:
        return Moves(np.empty(0, np.int64), np.empty(0, np.int64))
    return Moves(np.arange(len(permutation)), permutation)


def _by_score(bounds: Ints, values: Floats, *, stable: bool) -> Ints:
    """Return the rows of each query by descending score."""
    lengths = np.diff(bounds)
    width = int(lengths.max())
    if width * len(lengths) == len(values):
        places = np.argsort(-values.reshape(-1, width), axis=1, kind="stable" if stable else "quicksort")
        return np.asarray((places + bounds[:-1, None]).ravel(), np.int64)
    if width * len(lengths) <= 4 * len(values) + 1024:
        inside = np.arange(width) < lengths[:, None]
        padded = np.full(inside.shape, np.inf, values.dtype)
        padded[inside] = -values
        # Padding sorts last: scores are finite, and those that overflow 32 bits are not above its infinity.
        places = np.argsort(padded, axis=1, kind="stable")
        return np.asarray((places + bounds[:-1, None])[inside], np.int64)
    return np.lexsort((-values, np.repeat(np.arange(len(lengths)), lengths)))


def _break_ties(
    tied: npt.NDArray[np.bool_], docs: pa.StringArray, permutation: Ints | None, *, ascending: bool
) -> Moves:
    """Order the documents inside each block of equal scores; ``tied`` says of places (i, i + 1) that they tie."""
    places = np.flatnonzero(np.append(tied, False) | np.append(False, tied))
    block = np.cumsum(np.append(True, ~tied)[places])
    rows = places if permutation is None else permutation[places]
    by_id = order_ids(take(docs, rows), descending=not ascending)
    return Moves(places, rows[by_id[np.argsort(block[by_id], kind="stable")]])
