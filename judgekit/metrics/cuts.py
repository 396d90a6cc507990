"""Runs over different cuts of one collection: they share few documents, though they may find the same pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from judgekit.data.checks import FEW, MANY
from judgekit.data.columns import take
from judgekit.data.documents import Docs
from judgekit.data.runs import Run

if TYPE_CHECKING:
    from judgekit.data.parts import AnyRun

_LOOKED_AT: Final = 8
"""Queries on which runs are compared first."""
_SAMPLED: Final = 1000
"""Rows of a run whose documents are looked for in the other."""


def disjoint(runs: Sequence[AnyRun]) -> Iterator[tuple[str, str, float]]:
    """Yield the pairs of runs that share few documents, as over two cuts of a collection, and the share."""
    queries = runs[0].lowest(_LOOKED_AT).query_ids
    pairs = [{*run.only(queries).ranked_keys.tolist()} for run in runs]
    for (first, some), (second, others) in combinations(zip(runs, pairs, strict=True), 2):
        # Runs that share documents on the same queries share them overall, which takes far longer to check.
        if len(some & others) >= max(1, FEW * len(some)):
            continue
        # All documents, even below the depth: the first few of two runs may have nothing in common.
        fewer, more = sorted((_with_all_rows(first), _with_all_rows(second)), key=lambda run: run.extent.docs)
        sample = _sample(fewer)
        shared = _shared(more, sample)
        if len(sample) >= MANY and shared < FEW * len(sample):
            yield first.name, second.name, shared / len(sample)


def _with_all_rows(run: AnyRun) -> AnyRun:
    """Return the run itself, or that which it was cut from while it was read."""
    return run.uncut or run if isinstance(run, Run) else run


def _sample(run: AnyRun) -> pa.StringArray:
    """Return some of the distinct documents of a run, from evenly spread rows."""
    rows = run.extent.docs  # After this it is known how the file can be read: no part is seen twice below.
    places = np.linspace(0, max(rows - 1, 0), min(rows, _SAMPLED)).astype(int)
    begun = 0

    def chosen(part: Run) -> pa.StringArray:
        nonlocal begun
        docs = part.docs_as_read
        within = places[(places >= begun) & (places < begun + len(docs))] - begun
        begun += len(docs)
        return take(docs, within)

    return pc.unique(pa.concat_arrays(run.of_parts(chosen)))


def _shared(run: AnyRun, sample: pa.StringArray) -> int:
    """Return how many documents of a sample a run has."""

    def there(part: Run) -> pa.StringArray:
        docs = part.docs_as_read
        return pc.unique(docs.filter(pc.is_in(docs, value_set=sample)))

    return len(pc.unique(pa.concat_arrays(run.of_parts(there))))


def cut_differently(runs: Sequence[Run], docs: Docs) -> bool:
    """Return whether runs share few documents, but retrieved the same stretches of pages."""
    ids = {run.name: sorted(set(run.doc_ids)) for run in runs}
    for *names, _ in disjoint(runs):
        spans: list[tuple[str, int, int, str]] = []
        for name in names:
            for doc in docs.get(ids[name]):
                if doc.page_id is not None and doc.start is not None and doc.end is not None:
                    spans.append((doc.page_id, doc.start, doc.end, name))
        for (page, _, end, name), (next_page, start, _, other) in pairwise(sorted(spans)):
            if page == next_page and start < end and name != other:
                return True
    return False
