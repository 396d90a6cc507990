"""Existing labels: their pairs keep them, and only the other pairs are labelled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from judgekit.collection import Collection
from judgekit.data.documents import Unit
from judgekit.data.frames import AsLabelings, as_labelings
from judgekit.data.labelings import Labeling
from judgekit.data.tables import Status, stacked
from judgekit.data.trec import read_qrels
from judgekit.errors import DataError, UsageError
from judgekit.labelers.base import Labeler

KNOWN: Final = "known"
"""The column of a labels table that is 1 for existing labels and 0 for new ones."""


@dataclass(frozen=True)
class KnownLabels:
    """Labels by (query id, doc id), the name of their source, and why their scale may differ."""

    labels: Mapping[tuple[str, str], float]
    source: str
    doubt: str = ""

    @classmethod
    def of(cls, source: AsLabelings, labeler: Labeler, collection: Collection) -> KnownLabels:
        """Read existing labels for a labeler.

        Raises:
            DataError: a label is not on the labeler's scale, or no label belongs to the pool.
            UsageError: there are several labelings, or the labeler compares documents and needs all of them.
        """
        if not labeler.by_pair:
            raise UsageError(f"{labeler.spec} cannot use known labels: it looks at all documents of a question")
        if labeler.needs.existing:
            raise UsageError(f"{labeler.spec} cannot use known labels: it only reads existing labels itself")
        if isinstance(source, str | Path):
            held = [read_qrels(source, Path(source).name, labeler.scale, negative=False)]
        else:
            held = as_labelings(source)
        if len(held) != 1:
            raise UsageError(f"give one labeling as known labels, not {len(held)}")
        labeling = held[0]
        table = labeling.table[labeling.table["status"] == Status.OK.value]
        labels = dict(zip(zip(table["query_id"], table["doc_id"], strict=True), table["relevance"], strict=True))
        for (query_id, doc_id), relevance in labels.items():
            problem = labeler.scale.problem(relevance)
            if problem:
                raise DataError(f"known label of query {query_id!r}, doc {doc_id!r}: {problem} ({labeler.spec})")
        doubt = ""
        if labels and {*labels.values()} <= {0.0, 1.0} and str(labeler.scale) != "binary":
            # A file does not tell its scale, and 0 and 1 are on every scale.
            own = f"{labeler.spec} labels on the scale {labeler.scale}"
            doubt = f"The labels of {labeling.name} are all 0 or 1, but {own}"
        known = cls(labels, labeling.name, doubt)
        if labels and not known.pooled(collection):
            raise DataError(
                f"{labeling.name} holds no label of a pair of these runs: are both about the same documents?"
            )
        return known

    def pooled(self, collection: Collection) -> list[tuple[str, str]]:
        """Return the pairs of a pool that have a label."""
        pairs = ((query_id, doc_id) for query_id, docs in collection.pooled() for doc_id in docs)
        return [pair for pair in pairs if pair in self.labels]

    def notes(self, collection: Collection) -> Iterator[str]:
        """Yield how many pairs keep a label, how many are labelled now, and any doubts."""
        if self.doubt:
            yield f"{self.doubt}: they are kept as they are. If theirs is another scale, label all pairs by one labeler"
        kept = len(self.pooled(collection))
        yield (
            f"{kept:,} of {collection.n_pairs:,} pairs keep the label that {self.source} has;"
            f" {collection.n_pairs - kept:,} are labelled now"
        )
        if kept < len(self.labels):
            yield f"{len(self.labels) - kept:,} labels of {self.source} are left out: their pairs are not in this pool"

    def others(self, units: Iterable[Unit]) -> Iterator[Unit]:
        """Yield units without the documents that have a label, if any are left."""
        for unit in units:
            docs = tuple(doc for doc in unit.docs if (unit.query.query_id, doc.doc_id) not in self.labels)
            if docs:
                yield unit if len(docs) == len(unit.docs) else replace(unit, docs=docs)

    def beside(self, made: Labeling, collection: Collection) -> Labeling:
        """Return the labels of a whole pool: the existing and the new ones."""
        pairs = self.pooled(collection)
        known = pd.DataFrame(pairs, columns=["query_id", "doc_id"])
        known["relevance"] = np.array([self.labels[pair] for pair in pairs], np.float64)
        known = known.assign(status=Status.OK.value, raw="", reason="", **{KNOWN: 1.0})
        asked = made.table.assign(**{KNOWN: 0.0})
        table = stacked([asked, known]).sort_values(["query_id", "doc_id"], kind="stable", ignore_index=True)
        labeling = Labeling(made.name, made.scale, table)
        labeling.made = made.made
        return labeling
