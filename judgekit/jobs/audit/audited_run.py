"""The input of an audit: a results folder with its experiment, as arrays over pairs and queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from judgekit import report as reports, scoring
from judgekit.analysis.coefficients import Floats
from judgekit.collection import Collection
from judgekit.data.labelings import Labeling, Scale
from judgekit.data.tables import Status
from judgekit.errors import UsageError, not_among
from judgekit.experiment.finished import read_results
from judgekit.experiment.prepare import Prepared
from judgekit.jobs.audit.numbers import Bools, Ints, groups_of
from judgekit.metrics import Measure

if TYPE_CHECKING:
    from judgekit.analysis.primary import Primary
    from judgekit.data.documents import Unit
    from judgekit.data.runs import Run
    from judgekit.labelers.base import Labeler

Pair = tuple[str, str]
"""A query id and a doc id."""


@dataclass(frozen=True)
class Material:
    """A finished experiment, and the reference for its labels.

    Attributes:
        folder: the results folder.
        prepared: the experiment.
        primary: the cell of the verdict.
        labelings: all labelings, by name.
        reference: the labeling to compare others with: labels by people, else provenance, else none.
        seed, confidence: the seed of all draws, and the confidence of all intervals.
    """

    folder: Path
    prepared: Prepared
    primary: Primary
    labelings: Mapping[str, Labeling]
    reference: str | None
    seed: int
    confidence: float

    @property
    def collection(self) -> Collection:
        """The queries, docs, and runs cut to the depth of the pool."""
        return self.prepared.collection

    @cached_property
    def queries(self) -> list[str]:
        """Query ids in the order of the arrays (ascending), shape (n,)."""
        return sorted(self.collection.queries)

    @cached_property
    def pairs(self) -> list[Pair]:
        """The pool, query by query, shape (P,)."""
        pooled = self.collection.pairs
        return [(query_id, doc_id) for query_id in self.queries for doc_id in pooled[query_id]]

    def at(self, pairs: Iterable[Pair]) -> Ints:
        """Return the index of the query of each pair."""
        index = {query_id: i for i, query_id in enumerate(self.queries)}
        return np.array([index[query_id] for query_id, _ in pairs], np.intp)

    @cached_property
    def query(self) -> Ints:
        """The index of each pooled pair's query, shape (P,)."""
        return self.at(self.pairs)

    @cached_property
    def units(self) -> Ints:
        """The group of each query, shape (n,): its question or declared group, else itself."""
        # As in the comparison.
        units = self.prepared.units
        return np.unique([q if units is None else units[q] for q in self.queries], return_inverse=True)[1]

    @cached_property
    def groups(self) -> Ints:
        """The group of each query for the jackknife, shape (n,)."""
        return groups_of(self.units, self.seed)

    @cached_property
    def values(self) -> dict[str, Floats]:
        """Each labeling's labels of the pairs, shape (P,); NaN for none."""
        return {name: labeling.at(self.pairs) for name, labeling in self.labelings.items()}

    @cached_property
    def ranks(self) -> Ints:
        """The rank of each pair in each run, shape (R, P); 0 if not retrieved."""
        place = {pair: i for i, pair in enumerate(self.pairs)}
        out = np.zeros((len(self.collection.runs), len(self.pairs)), np.intp)
        for row, run in enumerate(self.collection.runs):
            for query_id in self.queries:
                for rank, doc_id in enumerate(run.top(query_id), 1):
                    out[row, place[query_id, doc_id]] = rank
        return out

    def spread(self, name: str) -> float:
        """Return the range of a labeling's scale."""
        return float(self.labelings[name].scale.high - self.labelings[name].scale.low)

    def unit_scaled(self, name: str) -> Floats:
        """Return a labeling's labels mapped to [0, 1], shape (P,)."""
        return (self.values[name] - self.labelings[name].scale.low) / self.spread(name)

    def relevant(self, name: str, values: Floats) -> Bools:
        """Return which of the present labels mean relevant."""
        return np.asarray(values >= self.labelings[name].scale.threshold)

    @cached_property
    def judged(self) -> Floats:
        """The reference's label of each pair: 1 relevant, 0 not, NaN for none, shape (P,)."""
        if self.reference is None:
            return np.full(len(self.pairs), np.nan)
        labels = self.values[self.reference]
        return np.where(np.isfinite(labels), self.relevant(self.reference, labels), np.nan)

    def units_of(self, labeler: Labeler, pairs: Iterable[Pair]) -> Iterator[Unit]:
        """Yield the labeler's input for some pairs, one at a time."""
        for query_id, doc_id in pairs:
            yield from labeler.units(self.collection.queries[query_id], self.collection.docs.get([doc_id]))

    def scores(self, labels: Sequence[tuple[Scale, Floats]], runs: Sequence[Run] | None = None) -> Floats:
        """Return the runs' scores in the verdict's measure under several sets of labels, shape (L, R, n)."""
        queries, docs = zip(*self.pairs, strict=True)
        made = []
        for index, (scale, values) in enumerate(labels):
            # Missing labels stay missing in the scores, since 0 would count against re-ranking.
            status = np.where(np.isfinite(values), Status.OK.value, Status.FAILED.value)
            columns = {"query_id": queries, "doc_id": docs, "relevance": values, "status": status}
            made.append(Labeling(str(index), scale, pd.DataFrame(columns)))
        collection = replace(self.collection, runs=tuple(runs or self.collection.runs))
        return np.asarray(scoring.score_pool(collection, made, [Measure(self.primary.measure)]).values[0])


def read(folder: Path, reference: str | None = None) -> Material:
    """Read a results folder, if its input data are unchanged."""
    if folder.is_file():
        raise UsageError(f"{folder}: an audit needs a results folder: run the experiment first, then name its folder")
    prepared, labelings, _ = read_results(folder)
    primary = reports.load(folder).primary
    if reference is None:
        # People come first, since provenance lists one passage per question and makes right labels look wrong.
        people = [name for name, labeler in prepared.labelers.items() if labeler.needs.people]
        golds = [name for name, labeler in prepared.labelers.items() if labeler.kind == "provenance"]
        reference = next(iter(people + golds), None)
    elif reference not in labelings:
        raise UsageError(not_among("labeling", reference, labelings))
    analysis = prepared.config.analysis
    return Material(
        folder,
        prepared,
        primary=primary,
        labelings=labelings,
        reference=reference,
        seed=analysis.seed,
        confidence=analysis.confidence,
    )
