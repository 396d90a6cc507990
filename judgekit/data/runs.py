"""A run: one retriever's ranked lists, held as coded arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from judgekit.data.ordering import Ties, order
from judgekit.data.tables import ALL, RUN
from judgekit.errors import DataError

__all__ = ["Run"]


class Run:
    """One retriever's ranked lists, ordered by the one ordering function.

    Attributes:
        name: the run's name.
        query_ids: query ids in ascending order, shape (Q,).
        doc_ids: the distinct doc ids in ascending order, shape (D,).
        offsets: rows of query i are ``offsets[i]:offsets[i + 1]``, shape (Q + 1,).
        docs: doc code (index into ``doc_ids``) per row, best first within a query, shape (N,).
        scores: 64-bit score per row, shape (N,).
        ties: the tie rule that the rows were ordered with.
    """

    def __init__(
        self,
        name: str,
        query_ids: Sequence[str] | npt.NDArray[np.object_],
        doc_ids: Sequence[str] | npt.NDArray[np.object_],
        scores: npt.ArrayLike,
        *,
        ties: Ties = Ties.DOC_DESC,
    ) -> None:
        """Build a run from rows: query id, doc id and score per row, in any order.

        Raises:
            DataError: a (query, doc) pair is there twice, a score is not finite, the name or a query id is
                the reserved ``all``.
        """
        if name == ALL:
            raise DataError(f"a run cannot be named {ALL!r}: that name stands for the mean over runs")
        self.name = name
        self.ties = ties
        values = np.asarray(scores, dtype=np.float64)
        self.query_ids, queries = np.unique(np.asarray(query_ids, dtype=object), return_inverse=True)
        self.doc_ids, docs = np.unique(np.asarray(doc_ids, dtype=object), return_inverse=True)
        if ALL in self.query_ids:
            raise DataError(f"run {name!r} has a query with the reserved id {ALL!r}")
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            row = bad[0]
            pair = f"query {query_ids[row]!r}, doc {doc_ids[row]!r}"
            raise DataError(f"run {name!r}: the score of {pair} is {values[row]}; scores must be finite")
        permutation = order(queries, values, docs, ties)
        queries = queries[permutation]
        self.docs: npt.NDArray[np.int64] = docs[permutation].astype(np.int64)
        self.scores: npt.NDArray[np.float64] = values[permutation]
        self.offsets = np.searchsorted(queries, np.arange(len(self.query_ids) + 1))
        keys = np.sort(queries.astype(np.int64) * max(len(self.doc_ids), 1) + self.docs)
        twice = np.flatnonzero(keys[1:] == keys[:-1])
        if twice.size:
            q, d = divmod(int(keys[twice[0]]), len(self.doc_ids))
            raise DataError(f"run {name!r} lists doc {self.doc_ids[d]!r} twice for query {self.query_ids[q]!r}")

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, name: str, *, ties: Ties = Ties.DOC_DESC) -> Run:
        """Build a run from a table ``query_id, doc_id, score``."""
        frame = RUN.check(frame)
        return cls(
            name,
            frame["query_id"].to_numpy(dtype=object),
            frame["doc_id"].to_numpy(dtype=object),
            frame["score"].to_numpy(),
            ties=ties,
        )

    def frame(self) -> pd.DataFrame:
        """Return the run as a table ``query_id, doc_id, score``, best first within each query."""
        counts = np.diff(self.offsets)
        return RUN.check(
            pd.DataFrame(
                {
                    "query_id": np.repeat(self.query_ids, counts),
                    "doc_id": self.doc_ids[self.docs],
                    "score": self.scores,
                }
            )
        )

    @cached_property
    def _query_index(self) -> dict[str, int]:
        return {q: i for i, q in enumerate(self.query_ids)}

    def top(self, query_id: str, k: int | None = None) -> list[str]:
        """Return the ids of the first ``k`` documents of a query, best first; [] if the run lacks the query."""
        index = self._query_index.get(query_id)
        if index is None:
            return []
        start, end = int(self.offsets[index]), int(self.offsets[index + 1])
        if k is not None:
            end = min(end, start + k)
        return list(self.doc_ids[self.docs[start:end]])

    def cut(self, depth: int) -> Run:
        """Return the run cut to its first ``depth`` documents per query."""
        ranks = np.arange(len(self.docs)) - np.repeat(self.offsets[:-1], np.diff(self.offsets))
        return self._rows(ranks < depth)

    def only(self, query_ids: Iterable[str]) -> Run:
        """Return the run with the given queries only."""
        wanted = np.isin(self.query_ids, np.asarray(list(query_ids), dtype=object))
        return self._rows(np.repeat(wanted, np.diff(self.offsets)))

    def _rows(self, keep: npt.NDArray[np.bool_]) -> Run:
        queries = np.repeat(self.query_ids, np.diff(self.offsets))
        return Run(self.name, queries[keep], self.doc_ids[self.docs[keep]], self.scores[keep], ties=self.ties)

    def __len__(self) -> int:
        return len(self.docs)

    def __repr__(self) -> str:
        return f"Run({self.name!r}, queries={len(self.query_ids)}, rows={len(self)})"
