"""The functions for notebooks and programs: label, answer, score and agree.

They are synchronous, also under a running event loop, and take whatever people hold (see `judgekit.data.frames`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from judgekit.answers.quality import AnswerMetric
from judgekit.client.asking import UNLIMITED, Asking
from judgekit.collection import Collection
from judgekit.collection.retrieving import retrievers_of
from judgekit.context import context_of
from judgekit.data.checks import own_documents
from judgekit.data.frames import (
    AsDocs,
    AsLabelings,
    AsQueries,
    AsRuns,
    as_docs,
    as_labelings,
    as_queries,
    as_runs,
    noted_lists,
)
from judgekit.data.gold import misplaced_in
from judgekit.data.labelings import Labeling, Scale
from judgekit.data.parts import in_one_piece
from judgekit.data.result_files import ResultFiles
from judgekit.data.runs import Run
from judgekit.data.tables import MADE
from judgekit.errors import UsageError
from judgekit.job import Job, job
from judgekit.labelers.base import Labeler
from judgekit.labelling import PoolLabeler
from judgekit.reading import ANSWER_METRICS, ANSWER_PROMPT
from judgekit.wire.types import Endpoint

if TYPE_CHECKING:
    from judgekit.analysis.agreement import Agreement
    from judgekit.client.session import Session
    from judgekit.metrics import Evaluation
    from judgekit.metrics.evaluation import Missing, Unjudged


@job
def label(
    spec: str | Labeler,
    *,
    queries: AsQueries,
    docs: AsDocs | None = None,
    runs: AsRuns,
    depth: int = 10,
    endpoints: Endpoint | Sequence[Endpoint] | None = None,
    name: str | None = None,
    known: AsLabelings | None = None,
    asking: Asking = UNLIMITED,
) -> Job[Labeling]:
    """Label the pool of all runs once.

    Replies stay in the reply store, so calling it again costs nothing.

    Args:
        spec: the labeler's spelling, e.g. ``containment``, ``judge(prompt=graded)`` or ``mine.py:Longest(least=3)``;
            or a labeler, ``Longest(least=3)``.
        queries: a file, a DataFrame ``query_id, text, answers``, `Query` objects, dictionaries with these keys, or a
            dictionary of ids to texts, to such dictionaries or to `Query` objects.
        docs: likewise, ``doc_id, text, title``; optional if ``runs`` are retrievers.
        runs: a dictionary of names to runs, a list of files or `Run` objects, or one run: a file, a DataFrame
            ``query_id, doc_id, score``, a `Run`, ``{query_id: {doc_id: score}}`` (pytrec_eval), or rows of ir_measures.
            Or a retriever, or several in a dictionary by name: a function of a question (and of k) that returns
            passages, best first, or a retriever of LangChain, LlamaIndex or Haystack. It is asked every query.
        depth: number of documents to pool per run and query.
        endpoints: the LLM, or several that the spelling names.
        name: the labeling's name; the canonical spelling by default.
        known: existing labels on the labeler's scale: a qrels file (from `judgekit carry`, for example), a `Labeling`
            or any other form of one. Their pairs keep them and are not asked about; the column ``known`` of the table
            marks them.
        asking: the budget, and where replies are kept.

    Returns:
        The labeling; ``.table`` is a DataFrame ``query_id, doc_id, relevance, status, raw, reason``.

    Raises:
        ConfigError, DataError, UsageError: nothing was sent.
        StoppedError: the endpoint failed or the budget ran out; paid replies are in the store.
    """
    # All reading and checking comes before the session: a mistake must not open a store.
    pool = PoolLabeler.make(
        spec, queries, docs, runs, depth, endpoints=endpoints, name=name, known=known, cache=asking.cache
    )
    asks = {f"label {pool.name}": pool.asked}

    async def do(session: Session, _: ResultFiles) -> Labeling:
        return await pool.label(session)

    return Job(asks, do, asking, notes=pool.collection.notes)


@job
def answer(
    *,
    queries: AsQueries,
    docs: AsDocs | None = None,
    runs: AsRuns | None = None,
    depths: int | Sequence[int] = (),
    endpoints: Endpoint | Sequence[Endpoint] = (),
    prompt: str = ANSWER_PROMPT,
    metrics: str | AnswerMetric | Sequence[str | AnswerMetric] = ANSWER_METRICS,
    modes: str | Sequence[str] = (),
    imported: str | Path | pd.DataFrame | None = None,
    asking: Asking = UNLIMITED,
) -> Job[pd.DataFrame]:
    """Answer every query from the top k documents of every run, or import the answers, and rate them.

    Args:
        queries: as for `label`.
        docs: as for `label`. Imported answers need ``docs``, ``runs`` and ``depths`` only for metrics that look at the
            passages behind an answer (`grounded`, `citation_precision`, `citation_recall`).
        runs: as for `label`.
        depths: one or several numbers of documents k. 0 answers without documents (closed book), as a control.
        endpoints: the LLM, or several, of which the first answers; or your own application, see `Endpoint`.
        prompt: name or path of an answer prompt.
        metrics: answer metrics, e.g. ``["em", "f1"]``, ``"em"``, ``"mine.py:Brief"`` or your own `AnswerMetric`.
        modes: ways of answering to compare: ``together`` (the default alone), ``reversed`` or ``shuffled`` (the order
            of the documents), ``vote`` or ``merge`` (one answer per document, then merged). The table then has a column
            ``mode``, and `compare` decides about the first mode.
        imported: answers of your application, a file or a DataFrame ``query_id, answer`` and, if there are several,
            ``run, depth``; nothing else is answered then. A column ``model`` names the answering model, so that labels
            by the same model are marked. A column ``context`` with the ids of the documents behind an answer is checked
            against the run.
        asking: the budget, and where replies are kept.

    Returns:
        The quality table: ``run, depth, model, query_id, metric, value, answer, status, …``; imported answers may lack
        run and depth.

    Raises:
        ConfigError, DataError, UsageError, StoppedError: as for `label`.
    """
    from judgekit.answering import (
        answer_modes,
        answer_stage,
        answers_asked,
        answers_made,
        build_answerings,
        import_answers,
        passages_of,
    )

    # Most people have one number, for which a list looks odd in a notebook.
    named_depths = {depths} if isinstance(depths, int) else set(depths)
    # 0 is the control without documents, not the depth of a list.
    wanted = sorted(named_depths - {0})
    named = [metrics] if isinstance(metrics, str | AnswerMetric) else metrics
    collection = None
    if imported is not None:
        resources, asked = context_of(endpoints, "title+text"), as_queries(queries)
        ranked = [] if runs is None else as_runs(runs)
        ways = import_answers(imported, asked, resources, named, runs=ranked, depths=wanted)
        collection = passages_of(ways, asked, docs, ranked, asking.cache)
    else:
        if runs is None or not wanted or (docs is None and not retrievers_of(runs)):
            raise UsageError("answering needs docs, runs and depths; or imported=, the answers of your application")
        collection = Collection.make(queries, docs, runs, wanted[-1], cache=asking.cache)
        resources = context_of(endpoints, "title+text", collection.docs)
        ways = build_answerings(
            resources,
            endpoint=next(iter(resources.endpoints), None),
            prompt=prompt,
            metrics=named,
            modes=[modes] if isinstance(modes, str) else modes,
        )
    closed_book = 0 in named_depths
    stages = {answer_stage(way.model if len(ways) > 1 else "", way.mode): way for way in ways}
    asks = {name: partial(answers_asked, way, collection, wanted, closed_book) for name, way in stages.items()}

    async def do(session: Session, _: ResultFiles) -> pd.DataFrame:
        table = await answer_modes(ways, collection, wanted, session, closed_book=closed_book)
        table.attrs[MADE] = {"answers": answers_made(ways, session, wanted)}
        return table

    return Job(asks, do, asking, notes=() if collection is None else collection.notes)


def score(
    runs: AsRuns,
    labelings: AsLabelings,
    measures: str | Iterable[object],
    *,
    scales: Mapping[str, str | Scale] | None = None,
    query_ids: Sequence[str] | None = None,
    depth: int | None = None,
    missing: Missing = "undefined",
    unjudged: Unjudged = "nonrelevant",
    drop_self: bool = False,
    like: str | None = None,
    docs: AsDocs | None = None,
) -> Evaluation:
    """Score runs under labelings; ``.scores()`` returns values per query and ``.means()`` means, as DataFrames.

    Args:
        runs: as for `label`.
        labelings: a dictionary of names to labelings, a list of files or `Labeling` objects, or one labeling: a TREC
            qrels file, a DataFrame ``query_id, doc_id, relevance``, a `Labeling`, ``{query_id: {doc_id: relevance}}``
            (pytrec_eval), or rows of ir_measures.
        measures: spellings, e.g. ``"nDCG@10 P(rel=2)@5 AP"`` or a list of them, of `Measure` or of ir_measures' own;
            also of measures declared by `measure`, or in a file: ``"mine.py:FirstGood@5"``.
        scales: scale of each table or file by its name, e.g. ``{"judge": "grades:3"}``; undeclared whole numbers are
            grades up to the largest.
        query_ids: the queries to score; by default those that each labeling lists.
        depth: cut every run to this many documents first.
        missing: how labels count that could not be obtained: ``undefined`` (their query has no score), ``zero`` (they
            count as 0), ``condense`` (their documents are taken out of the lists) or ``bounds`` (scores get bounds over
            all possible labels).
        unjudged: how documents count that nobody judged: ``nonrelevant``, or ``bounds`` as above. The parameter
            ``judged_only`` of a measure takes them out of the lists.
        drop_self: remove documents from the runs whose id is that of their query.
        like: follow a tool's rules for ties, for the queries in a mean and for queries among their own documents:
            ``beir``, ``gdeval``, ``mteb`` or ``pytrec_eval``.
        docs: as for `label`; needed to count evidence once, if documents have spans on their pages: the default for
            runs over different cuts.

    Returns:
        The scores, shape (measures, labelings, runs, queries), NaN where undefined, with their bounds and means. Ties
        and means are trec_eval's unless ``ties`` or ``like`` say otherwise.

    Raises:
        DataError, UsageError: a table, file, measure or scale is invalid.
    """
    from judgekit.metrics import evaluate, peer, read_measures, suited

    other = None if like is None else peer(like)
    # Documents' places on pages are looked up for whole runs.
    read = noted_lists(runs, drop_self=drop_self or (other is not None and other.drop_self), whole=docs is not None)
    ranked = read.runs
    if other is not None:
        ranked = [run.with_ties(other.ties) for run in ranked]
    collection = None if docs is None else as_docs(docs)
    wanted, taken = read_measures(measures)
    notes = [*read.notes, *taken]
    made = as_labelings(labelings, scales)
    lacking: list[str] = []
    if collection is not None:
        loaded = [run for run in ranked if isinstance(run, Run)]
        wanted = suited(wanted, loaded, collection)
        lacking = misplaced_in(made, loaded, collection)
    evaluation = evaluate(
        ranked,
        made,
        wanted,
        query_ids=query_ids,
        depth=depth,
        missing=missing,
        unjudged=unjudged,
        over="judged" if other is None else other.over,
        docs=collection,
    )
    # After scoring: a large run is not read once more for this.
    for run in ranked:
        notes += own_documents(run, made)
    notes += lacking
    # Notes on reading come first, since they may explain odd numbers.
    evaluation.warnings[:0] = [*notes, *in_one_piece(ranked)]
    return evaluation


def agree(
    labelings: AsLabelings,
    *,
    people: str | Iterable[str] = (),
    runs: AsRuns | None = None,
    measures: str | Iterable[object] = "nDCG@10",
    scales: Mapping[str, str | Scale] | None = None,
) -> Agreement:
    """Measure the agreement of labelings, pair by pair; needs neither queries nor answers.

    Args:
        labelings: two or more, as for `score`. Grades without a declared scale share one, up to the largest of all.
        people: the names of labelings by people: precision and recall are measured against them.
        runs: also compare how the labelings order these runs.
        measures: the measures of the runs, as for `score`.
        scales: scale of each table or file, by its name.

    Returns:
        The coefficients with their intervals, a row for each pair of labelings; the confusion and coverage tables; with
        runs, how similarly both order them. Coefficients lie between -1 and 1, shares between 0 and 1. Cohen's kappa
        (1960), Krippendorff's alpha (2004), Gwet's AC1 (2008).

    Raises:
        DataError, UsageError: a table, file, measure or scale is invalid, or there is only one labeling.
    """
    from judgekit.analysis.agreement import agreement, system_agreement
    from judgekit.metrics import evaluate

    found = as_labelings(labelings, scales)
    if len(found) < 2:
        raise UsageError("agreement needs two or more labelings")
    # One file's grades may end at 2 and another's at 3: it is the same scale, whose best grade one of them never gave.
    undeclared = [labeling for labeling in found if not labeling.declared]
    if undeclared:
        common = max((labeling.scale for labeling in undeclared), key=lambda scale: float(scale.high))
        shared = []
        for labeling in found:
            if not labeling.declared:
                labeling = Labeling(labeling.name, common, labeling.table)
            shared.append(labeling)
        found = shared
    # Runs are optional: labels of two assessors can be compared before there is any retriever.
    made = agreement(found, people=[people] if isinstance(people, str) else list(people))
    if runs is None:
        return made
    scored = evaluate(as_runs(runs), found, measures)
    return replace(made, system=system_agreement(scored))
