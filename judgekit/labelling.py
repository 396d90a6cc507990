"""Labelling a pool: the one code behind the command line, the Python API and the experiment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from judgekit.client.model_drift import origin
from judgekit.client.stages import StageUnit
from judgekit.collection import Collection
from judgekit.context import context_of
from judgekit.data.documents import Unit
from judgekit.data.frames import AsDocs, AsQueries, AsRuns
from judgekit.data.labelings import LabelFile, Labeling
from judgekit.data.spans import where
from judgekit.labelers.base import Label, Labeler, build
from judgekit.labelers.contract import checked
from judgekit.wire.types import Endpoint, Origin, Outcome

if TYPE_CHECKING:
    from pandas.api.extensions import ExtensionArray

    from judgekit.client.session import Session

_ORIGIN: Final = ("reply_model", "fingerprint")
_KEPT: Final = 1 << 16
"""Labels that a stage keeps as objects before they go to disk."""


def label_units(labeler: Labeler, collection: Collection) -> Iterator[Unit]:
    """Yield the units that a labeler cuts the pool into, query by query."""
    for query_id, doc_ids in collection.pooled():
        if doc_ids:
            yield from labeler.units(collection.queries[query_id], collection.docs.get(doc_ids))


async def label_pool(
    labeler: Labeler,
    collection: Collection,
    session: Session,
    name: str | None = None,
    units: Sequence[Unit] | None = None,
) -> Labeling:
    """Label every pair of the pool, or of some units."""
    name = name or str(labeler.spec)
    labels: list[Label] = []
    origins: dict[Origin, int] = {}
    made_by: list[int] = []

    def rows() -> pd.DataFrame:
        columns = dict(zip(_ORIGIN, zip(*origins, strict=True), strict=False))
        found = frame_of(labels, {c: pd.array(names, dtype="str").take(made_by) for c, names in columns.items()})
        labels.clear()
        made_by.clear()
        return found

    asked = label_units(labeler, collection) if units is None else units
    total = collection.n_pairs if units is None else sum(len(unit.docs) for unit in units)
    with LabelFile(session.folder) as kept:
        pairs = session.resolve(asked, labeler, f"label {name}", total, size=lambda unit: len(unit.docs))
        async for unit, outcomes in pairs:
            made = checked(labeler, unit, outcomes)
            stands = {doc.doc_id: at for doc in unit.docs if (at := where(doc))}
            for one in made if stands else ():
                one.extra = {**stands.get(one.doc_id, {}), **one.extra}
            labels.extend(made)
            made_by += [origins.setdefault(origin(outcomes), len(origins))] * len(made)
            if len(labels) >= _KEPT:
                kept.add(rows())
        table = kept.table(rows())
    if not any(map(any, origins)):
        table = table.select([column for column in table.column_names if column not in _ORIGIN])
    return Labeling(name, labeler.scale, table)


def frame_of(labels: Sequence[Label], columns: Mapping[str, ExtensionArray] | None = None) -> pd.DataFrame:
    """Return labels as a table; further columns are those given and what the labels hold extra."""
    frame = pd.DataFrame(
        {
            "query_id": [x.query_id for x in labels],
            "doc_id": [x.doc_id for x in labels],
            "relevance": np.array([np.nan if x.relevance is None else x.relevance for x in labels], dtype=np.float64),
            "status": [x.status.value for x in labels],
            "raw": [x.raw for x in labels],
            "reason": [x.reason for x in labels],
        }
    )
    for column, values in (columns or {}).items():
        frame[column] = values
    for column in sorted({key for x in labels for key in x.extra}):
        frame[column] = [x.extra.get(column) for x in labels]
    return frame


@dataclass(frozen=True)
class PoolLabeler:
    """A collection and what labels its pool, ready to be asked."""

    collection: Collection
    labeler: Labeler
    name: str

    @classmethod
    def make(
        cls,
        spec: str | Labeler,
        queries: AsQueries,
        docs: AsDocs,
        runs: AsRuns,
        depth: int,
        *,
        endpoints: Endpoint | Iterable[Endpoint] | None = None,
        name: str | None = None,
        limit: int | None = None,
        cache: str | Path | None = None,
    ) -> PoolLabeler:
        """Read the collection and build the labeler of a spelling, whose canonical form is the default name."""
        collection = Collection.make(queries, docs, runs, depth, limit, cache=cache)
        labeler = build(spec, context_of(endpoints, collection.fields, collection.docs))
        return cls(collection, labeler, name or str(labeler.spec))

    async def label(self, session: Session) -> Labeling:
        """Label the pool; see `label_pool`."""
        return await label_pool(self.labeler, self.collection, session, self.name)


def stored_outcomes(labeler: Labeler, unit: Unit, session: Session) -> Sequence[Outcome]:
    """Return the stored outcomes of a unit; [] unless all are there."""
    outcomes: list[Outcome] = []
    while wave := labeler.requests(unit, outcomes):
        found = session.lookup([request.key for request in wave])
        if not all(request.key in found for request in wave):
            return []
        outcomes += [found[request.key] for request in wave]
    return outcomes


def labels_asked(labeler: Labeler, collection: Collection) -> Iterator[StageUnit]:
    """Yield what a labeler is asked about the pool."""
    return ((labeler, unit) for unit in label_units(labeler, collection))
