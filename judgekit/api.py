"""The stages for notebooks and programs: DataFrames, files or judgekit's own values in, the same out.

Every function is synchronous and works under a running event loop (a notebook) too. Replies are kept in the reply
store, so that calling a function again costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from judgekit import stages
from judgekit.client.session import Mode, Session, run_sync
from judgekit.client.usage import Budget
from judgekit.data.documents import Docs, Fields, Queries
from judgekit.data.frames import as_docs, as_queries, as_runs
from judgekit.data.labelings import Labeling, Scale
from judgekit.data.runs import Run
from judgekit.data.trec import read_qrels
from judgekit.errors import UsageError
from judgekit.labelers.base import build
from judgekit.metrics import Evaluation, evaluate
from judgekit.metrics.evaluation import Missing, NoRelevant, NotInRun, Unjudged
from judgekit.progress import Progress, silent
from judgekit.store.replies import default_store_path
from judgekit.wire.types import Endpoint

__all__ = ["answer", "label", "score"]

Runs = Mapping[str, Run | pd.DataFrame | str | Path] | Sequence[Run]


def _session(cache: str | Path | None, mode: Mode, budget: Budget | None, progress: Progress) -> Session:
    return Session(default_store_path() if cache is None else cache, mode=mode, budget=budget, progress=progress)


def _resources(endpoints: Endpoint | Sequence[Endpoint] | None, fields: Fields, docs: Docs) -> stages.Resources:
    given = [endpoints] if isinstance(endpoints, Endpoint) else list(endpoints or ())
    return stages.Resources({endpoint.name: endpoint for endpoint in given}, Path(), fields, docs)


def label(
    spec: str,
    *,
    queries: Queries | pd.DataFrame | str | Path,
    docs: Docs | pd.DataFrame | str | Path,
    runs: Runs,
    depth: int = 10,
    endpoints: Endpoint | Sequence[Endpoint] | None = None,
    fields: Fields = "title+text",
    name: str | None = None,
    cache: str | Path | None = None,
    mode: Mode = "on",
    budget: Budget | None = None,
    progress: Progress = silent,
) -> Labeling:
    """Label the pool of all runs once.

    Args:
        spec: the labeler's spelling, e.g. ``containment`` or ``judge(prompt=graded)``.
        queries: a file, a table ``query_id, text, answers``, or a mapping of `Query`.
        docs: a file, a table ``doc_id, text, title``, or a look-up of `Doc`.
        runs: names to files, tables ``query_id, doc_id, score`` or `Run`; or a list of `Run`.
        depth: how many documents per run and query are pooled.
        endpoints: the LLM, or several that the spelling names.
        fields: how documents are rendered.
        name: of the labeling; the canonical spelling by default.
        cache: folder of the reply store; the user's cache folder by default.
        mode: ``on``, ``off``, ``read-only`` or ``refresh``.
        budget: where to stop.
        progress: called with events.

    Returns:
        The labeling; ``.table`` is a DataFrame ``query_id, doc_id, relevance, status, raw, reason``.

    Raises:
        ConfigError, DataError, UsageError: nothing has been sent.
        StoppedError: the endpoint or the budget ended it; what was paid for is in the store.
    """
    collection = stages.Collection.make(as_queries(queries), as_docs(docs), as_runs(runs), depth)
    labeler = build(spec, _resources(endpoints, fields, collection.docs))

    async def work() -> Labeling:
        async with _session(cache, mode, budget, progress) as session:
            return await stages.label(labeler, collection, session, name)

    return run_sync(work())


def answer(
    *,
    queries: Queries | pd.DataFrame | str | Path,
    docs: Docs | pd.DataFrame | str | Path,
    runs: Runs,
    depths: Sequence[int],
    endpoints: Endpoint | Sequence[Endpoint],
    endpoint: str | None = None,
    prompt: str = "answer-short",
    metrics: Sequence[str] = ("em", "f1"),
    fields: Fields = "title+text",
    closed_book: bool = True,
    cache: str | Path | None = None,
    mode: Mode = "on",
    budget: Budget | None = None,
    progress: Progress = silent,
) -> pd.DataFrame:
    """Answer every query from the top k documents of every run, and say how good the answers are.

    Args:
        queries: as for `label`.
        docs: as for `label`.
        runs: as for `label`.
        depths: the numbers of documents k.
        endpoints: the LLM, or several.
        endpoint: name of the endpoint that answers, if there are several.
        prompt: name or path of an answer prompt.
        metrics: answer metrics, e.g. ``em``, ``f1``.
        fields: how documents are rendered.
        closed_book: also answer without any document (depth 0, run ``all``).
        cache: folder of the reply store; the user's cache folder by default.
        mode: ``on``, ``off``, ``read-only`` or ``refresh``.
        budget: where to stop.
        progress: called with events.

    Returns:
        The quality table: ``run, depth, model, query_id, metric, value, answer, status, …``.

    Raises:
        ConfigError, DataError, UsageError, StoppedError: as for `label`.
    """
    if not depths:
        raise UsageError("there is no depth to answer at")
    collection = stages.Collection.make(as_queries(queries), as_docs(docs), as_runs(runs), max(depths))
    resources = _resources(endpoints, fields, collection.docs)
    answering = stages.answering(resources, endpoint=endpoint, prompt=prompt, metrics=metrics)

    async def work() -> pd.DataFrame:
        async with _session(cache, mode, budget, progress) as session:
            return await stages.answer(answering, collection, sorted(set(depths)), session, closed_book=closed_book)

    return run_sync(work())


def score(
    runs: Runs,
    labelings: Mapping[str, Labeling | pd.DataFrame | str | Path] | Sequence[Labeling],
    measures: str | Iterable[object],
    *,
    scales: Mapping[str, str] | None = None,
    query_ids: Sequence[str] | None = None,
    depth: int | None = None,
    missing: Missing = "undefined",
    unjudged: Unjudged = "nonrelevant",
    no_relevant: NoRelevant = "zero",
    not_in_run: NotInRun = "zero",
) -> Evaluation:
    """Score runs under labelings; ``.scores()`` gives values per query and ``.means()`` means, as DataFrames.

    Args:
        runs: as for `label`.
        labelings: labelings, or names to labelings, tables ``query_id, doc_id, relevance`` or TREC qrels files.
        measures: spellings, e.g. ``"nDCG@10 P(rel=2)@5 AP"`` or a list of them, of `Measure` or of ir_measures' own;
            also of measures declared by `measure`, or in a file: ``"mine.py:FirstGood@5"``.
        scales: scale of a table or file by its name, e.g. ``{"judge": "grades:3"}``.
        query_ids: the queries to score; by default those that each labeling lists.
        depth: cut every run to its first documents before anything else.
        missing: what a label does that was asked for and not obtained: ``undefined`` (its query has no score),
            ``zero`` (it counts as 0), ``condense`` (its document leaves the lists) or ``bounds`` (over all it may be).
        unjudged: what a document is that nobody judged: ``nonrelevant``, or ``condense`` or ``bounds`` as above.
        no_relevant: what a query without relevant documents scores: ``zero``, or ``skip`` to leave it undefined.
        not_in_run: what a query scores that a run lacks: ``zero`` (as ``trec_eval -c`` has it) or ``skip``.

    Raises:
        DataError, UsageError: a table, file, measure or scale makes no sense.
    """
    given = scales or {}
    found: list[Labeling] = []
    items = labelings.items() if isinstance(labelings, Mapping) else [(x.name, x) for x in labelings]
    for name, item in items:
        scale = Scale.parse(given[name]) if name in given else None
        if isinstance(item, Labeling):
            found.append(item if item.name == name else Labeling(name, item.scale, item.table))
        elif isinstance(item, pd.DataFrame):
            if scale is None:
                raise UsageError(
                    f"the labels table {name!r} needs a scale: scales={{{name!r}: 'grades:3'}} or 'unit', …"
                )
            found.append(Labeling(name, scale, item))
        else:
            found.append(read_qrels(item, name, scale))
    return evaluate(
        as_runs(runs),
        found,
        measures,
        query_ids=query_ids,
        depth=depth,
        missing=missing,
        unjudged=unjudged,
        no_relevant=no_relevant,
        not_in_run=not_in_run,
    )
