"""Labelling a pool, for the command line, the Python API and the experiment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from judgekit.client.exchanges import Exchanges
from judgekit.client.model_drift import origin
from judgekit.client.stages import StageUnit
from judgekit.collection import Collection
from judgekit.context import context_of
from judgekit.data.documents import Unit
from judgekit.data.frames import AsDocs, AsLabelings, AsQueries, AsRuns
from judgekit.data.gold import differing, misplaced
from judgekit.data.labelings import LabelFile, Labeling
from judgekit.data.questions import Repeats, questions_of
from judgekit.data.runs import fused
from judgekit.data.spans import where
from judgekit.data.tables import Status
from judgekit.labelers.base import Label, Labeler, build
from judgekit.labelers.contract import checked
from judgekit.labelers.made import labels_record
from judgekit.wire.types import Endpoint, Origin

if TYPE_CHECKING:
    from pandas.api.extensions import ExtensionArray

    from judgekit.client.session import Session
    from judgekit.labelers.known import KnownLabels

_ORIGIN: Final = ("reply_model", "fingerprint")
_STATUS: Final = {status: status.value for status in Status}
_KEPT: Final = 1 << 16
"""The number of labels that a stage keeps as objects before writing them to disk."""


def misplaced_by(labelers: Mapping[str, Labeler], collection: Collection) -> Iterator[str]:
    """Yield the relevant documents of labelers' files that the collection lacks, or has under another id."""
    for name, labeler in labelers.items():
        # If a judgment counts for a whole page, its id may be the page's.
        if not labeler.needs.existing or getattr(labeler, "expand", "none") != "none":
            continue
        yield from misplaced(name, _imported(labeler), labeler.scale.threshold, collection.pairs, collection.docs)


def _imported(labeler: Labeler) -> dict[str, dict[str, float]]:
    """Return a labeler's file as labels of documents by query."""
    judged: dict[str, dict[str, float]] = {}
    for (query_id, doc_id), relevance in getattr(labeler, "imported", {}).items():
        if relevance is not None:
            judged.setdefault(query_id, {})[doc_id] = relevance
    return judged


def gold_apart(labelers: Iterable[Labeler], questions: Mapping[str, str]) -> int:
    """Return the largest number of questions, by any labeler, whose rows have different relevant documents."""
    existing = [labeler for labeler in labelers if labeler.needs.existing]
    apart = [differing(_imported(labeler), labeler.scale.threshold, questions) for labeler in existing]
    return max(apart, default=0)


def label_units(labeler: Labeler, collection: Collection) -> Iterator[Unit]:
    """Yield the units into which a labeler splits the pool, query by query."""
    for query_id, pooled in collection.pooled():
        if pooled:
            doc_ids = fused(collection.runs, query_id, collection.depth) if labeler.ranked else pooled
            yield from labeler.units(collection.queries[query_id], collection.docs.get(doc_ids))


async def label_pool(
    labeler: Labeler,
    collection: Collection,
    session: Session,
    name: str | None = None,
    units: Sequence[Unit] | None = None,
) -> Labeling:
    """Label every pair of the pool, or of some units."""
    # The spelling has the options: two labelings by one labeler need two names.
    name = name or str(labeler.spec)
    if units is None:
        total = collection.n_pairs
        resolved: Iterable[Unit] = label_units(labeler, collection)
    else:
        total = sum(len(unit.docs) for unit in units)
        resolved = units
    labels: list[Label] = []
    exchanges = Exchanges()
    origins: dict[Origin, int] = {}
    variant, otherwise = labeler.published_variant, 0
    made_by: list[int] = []  # each label's place in the list of origins: a run has a few origins and millions of labels

    def rows() -> pd.DataFrame:
        columns = {}
        for place, column in enumerate(_ORIGIN):
            names = pd.array([made[place] for made in origins], dtype="str")
            # Arrow takes an empty list for one of decimals, which cannot be used as indices.
            columns[column] = names.take(np.asarray(made_by, dtype=np.intp))
        frame = frame_of(labels, columns)
        # The next labels go into the same lists: as objects, millions of them would take most of the memory.
        labels.clear()
        made_by.clear()
        return frame

    with LabelFile(session.folder) as kept:
        pairs = session.resolve(resolved, labeler, f"label {name}", total, size=lambda unit: len(unit.docs))
        async for unit, outcomes in pairs:
            of_unit = checked(labeler, unit, outcomes)
            spans = {doc.doc_id: where(doc) for doc in unit.docs if doc.page_id is not None}
            for label in of_unit if spans else ():
                span = spans.get(label.doc_id)
                if span:
                    label.extra = {**span, **label.extra}
            if variant:
                otherwise += labeler.counted_otherwise(unit, of_unit)
            labels.extend(of_unit)
            if labeler.needs.asked:
                exchanges.add(outcomes, len(of_unit))
            made_by += [origins.setdefault(origin(outcomes), len(origins))] * len(of_unit)
            if len(labels) >= _KEPT:
                kept.add(rows())
        table = kept.table(rows())
    if otherwise:
        # For 0.4 only: until 0.3 the published scripts' rule was the default.
        session.note(f"{name}: {otherwise:,} of {total:,} labels differ under {variant}", once=True)
    # Labelers without requests have no origin, and two empty columns would be in the way.
    if not any(map(any, origins)):
        table = table.drop_columns(list(_ORIGIN))
    labeling = Labeling(name, labeler.scale, table)
    if labeler.needs.asked:
        labeling.row_replies = exchanges.table()
    amount = session.usage(f"label {name}").standalone
    labeling.made = labels_record(labeler.needs, amount, len(collection.queries), total, collection.depth)
    return labeling


def frame_of(labels: Sequence[Label], columns: Mapping[str, ExtensionArray] | None = None) -> pd.DataFrame:
    """Return labels as a table, with the given further columns and the labels' extra fields."""
    relevance = [np.nan if label.relevance is None else label.relevance for label in labels]
    frame = pd.DataFrame(
        {
            "query_id": [label.query_id for label in labels],
            "doc_id": [label.doc_id for label in labels],
            "relevance": np.array(relevance, dtype=np.float64),
            "status": [_STATUS[label.status] for label in labels],
            "raw": [label.raw for label in labels],
            "reason": [label.reason for label in labels],
        }
    )
    for column, values in (columns or {}).items():
        frame[column] = values
    extra = {column for label in labels if label.extra for column in label.extra}
    for column in sorted(extra):
        frame[column] = [label.extra.get(column) for label in labels]
    return frame


@dataclass(frozen=True)
class PoolLabeler:
    """A collection and the labeler of its pool, ready to ask.

    Attributes:
        collection: the collection with the pool.
        labeler: the labeler.
        name: the labeling's name.
        known: labels of pairs that need not be asked about; None without any.
    """

    collection: Collection
    labeler: Labeler
    name: str
    known: KnownLabels | None = None

    @classmethod
    def make(
        cls,
        spec: str | Labeler,
        queries: AsQueries,
        docs: AsDocs | None,
        runs: AsRuns,
        depth: int,
        *,
        endpoints: Endpoint | Iterable[Endpoint] | None = None,
        name: str | None = None,
        known: AsLabelings | None = None,
        cache: str | Path | None = None,
    ) -> PoolLabeler:
        """Read the collection and build the labeler of a spelling, whose canonical form is the default name."""
        collection = Collection.make(queries, docs, runs, depth, cache=cache)
        labeler = build(spec, context_of(endpoints, collection.fields, collection.docs))
        name = name or str(labeler.spec)
        notes = [*misplaced_by({name: labeler}, collection)]
        if labeler.needs.existing:
            apart = Repeats(gold=gold_apart([labeler], questions_of(collection.queries)))
            notes += filter(None, [apart.contradiction])
        pool = cls(replace(collection, notes=(*collection.notes, *notes)), labeler, name)
        if known is None:
            return pool
        from judgekit.labelers.known import KnownLabels

        labels = KnownLabels.of(known, labeler, collection)
        collection = replace(collection, notes=(*pool.collection.notes, *labels.notes(collection)))
        return replace(pool, collection=collection, known=labels)

    def units(self) -> Iterator[Unit]:
        """Yield the units of the pool, without pairs that have a label."""
        units = label_units(self.labeler, self.collection)
        return units if self.known is None else self.known.others(units)

    def asked(self) -> Iterator[StageUnit]:
        """Yield the same in the form of a stage's requests."""
        return ((self.labeler, unit) for unit in self.units())

    async def label(self, session: Session) -> Labeling:
        """Label the pool; see `label_pool`."""
        if self.known is None:
            return await label_pool(self.labeler, self.collection, session, self.name)
        units = list(self.units())
        made = await label_pool(self.labeler, self.collection, session, self.name, units)
        return self.known.beside(made, self.collection)


def labels_asked(labeler: Labeler, collection: Collection) -> Iterator[StageUnit]:
    """Yield a labeler's requests about the pool."""
    return ((labeler, unit) for unit in label_units(labeler, collection))
