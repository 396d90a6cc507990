"""An experiment from top to bottom: read this file to know the whole program.

    prepare    read the file, the data and the prompts; build the labelers; every mistake of the user ends it here
    label      each labeler says of every pooled pair how relevant the document is
    answer     the LLM answers every query from the top k of every run
    score      the metrics engine scores every run under every labeling
    compare    do the scores of a labeling follow the quality of the answers?
    report     tables, page, and everything needed to draw them again

Labels and answers are written as soon as they are there. Whatever was paid for is in the store before anything is
written, so a run that was stopped is finished by running it again.
"""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final

import pandas as pd

from judgekit import stages
from judgekit.analysis import GUARD, Comparison, QueryLogCheck, check_query_log, compare
from judgekit.analysis.agreement import agreement
from judgekit.analysis.controls import LENGTH, RETRIEVER
from judgekit.analysis.modes import modes_of, of_mode
from judgekit.answers.imported import Imported
from judgekit.client.batch import BatchExport, export_batch
from judgekit.client.budget import Budget
from judgekit.client.session import Mode, Session, synchronous
from judgekit.client.submission import Clients, Fetched, fetch, open_client, status, submit
from judgekit.client.waves import Plan
from judgekit.data.checks import remarks
from judgekit.data.files import write_atomic, write_labels, write_table
from judgekit.data.labelings import Labeling
from judgekit.data.manifest import MANIFEST, mismatches, sources, write_manifest
from judgekit.data.outputs import check_folder, noting_reads
from judgekit.data.trec import missing_path, write_qrels
from judgekit.experiment import results as shown
from judgekit.experiment.blocks import blocks, confidence_at, joined
from judgekit.experiment.canary import canary as ask_again
from judgekit.experiment.cluster import check_cluster, run_on_cluster
from judgekit.experiment.file import ANCHOR, Config, labels_file, load
from judgekit.experiment.guarding import check_ladder, ladder_section, ladder_units, ladder_verdict, run_ladder
from judgekit.experiment.prepare import Prepared, prepare
from judgekit.labelers.base import Labeler
from judgekit.metrics import Evaluation, Measure, incomparable
from judgekit.notebook import Shown
from judgekit.progress import Event, Progress, silent
from judgekit.report import Results, write_html
from judgekit.report import save as save_results
from judgekit.spec import slug
from judgekit.store.replies import Store, default_store_path, has_store
from judgekit.wire.types import Outcome, Program, Request, most_requests

__all__ = [
    "AllStages",
    "Finished",
    "Prepared",
    "answers_asked",
    "count",
    "export_requests",
    "load",
    "plan",
    "prepare",
    "result_files",
    "run",
    "run_async",
    "stage_units",
    "submit_requests",
    "submitted",
]


@dataclass(frozen=True)
class Finished(Shown):
    """A finished experiment.

    Attributes:
        folder: where the results were written.
        results: what the report shows.
        labelings: the labelings by name.
        quality, scores: the quality table, and the score table with values per query and means.
        comparison: the comparison, with its table and its verdict.
        missing: a line for everything that is missing; empty if all is there.
        canary: a line for every labeling of which stored pairs were asked again.
    """

    folder: Path
    # Not in the repr: asyncio's runner makes that of the result when it ends, and tables are slow to write out.
    results: Results = field(repr=False)
    labelings: Mapping[str, Labeling] = field(repr=False)
    quality: pd.DataFrame = field(repr=False)
    scores: pd.DataFrame = field(repr=False)
    comparison: Comparison = field(repr=False)
    missing: tuple[str, ...]
    canary: tuple[str, ...] = ()


_TABLES: Final = (
    *("controls", "gains", "fidelity", "top", "ladder", "agreement", "confusion", "models", "modes"),
    *("mode_differences", "comparison", "differences", "details"),
)
FILES: Final = (
    *(MANIFEST, "resolved.toml", "scores.parquet"),
    *(f"{name}.csv" for name in _TABLES),
    *("report.json", "report.html", "queries"),
)
"""The results of every run, beside the labels and answers that go by the names of labelers and prompt."""

StageUnit = tuple[Program[Any], Any]
"""A unit and the program (a labeler, the answerer, a metric of imported answers) that says what it needs."""


class AllStages:
    """The requests of all stages as one program, so that those that two stages share are counted and sent once."""

    def requests(self, asked: StageUnit, replies: Sequence[Outcome], /) -> list[Request]:
        """Return the next wave of the unit's own program."""
        program, unit = asked
        return program.requests(unit, replies)

    def most(self, asked: StageUnit, /) -> int | None:
        """Return the most requests that the unit's own program makes of it."""
        return most_requests(*asked)


def stage_units(prepared: Prepared) -> Mapping[str, Callable[[], Iterator[StageUnit]]]:
    """Return the stages that may ask an LLM, by name, with a function that yields what each asks."""
    collection, answers = prepared.collection, prepared.config.answers

    def labels(labeler: Labeler) -> Iterator[StageUnit]:
        return ((labeler, unit) for unit in stages.label_units(labeler, collection))

    def ladder(labeler: Labeler) -> Iterator[StageUnit]:
        return ((labeler, unit) for unit in ladder_units(prepared, labeler))

    found = {f"label {name}": partial(labels, labeler) for name, labeler in prepared.labelers.items()}
    for name, labeler in prepared.labelers.items() if check_ladder(prepared) else ():
        if labeler.needs.asked:
            found[f"label {name}, ladder"] = partial(ladder, labeler)
    about = partial(answers_asked, collection=collection, depths=answers.depths, closed_book=answers.closed_book)
    return found | {name: partial(about, one) for name, one in prepared.answering.items()}


def answers_asked(
    answering: stages.Answering,
    *,
    collection: stages.Collection | None,
    depths: Sequence[int],
    closed_book: bool = True,
) -> Iterator[StageUnit]:
    """Yield what is asked for answers: each list that is answered, or each imported answer that an LLM rates."""
    answerer = answering.answerer
    if isinstance(answerer, Imported):
        return ((metric, answered) for metric in answering.asking for answered in answerer.found)
    if collection is None:
        return iter(())
    asked = stages.answer_units(collection, depths, closed_book)
    return ((answerer, unit) for unit in stages.units_to_answer(collection, asked))


def plan(experiment: Config | str | Path, cache: str | Path | None = None) -> dict[str, Plan]:
    """Count what an experiment would take, by stage and, under ``all``, together, without sending anything.

    Requests that two stages share (utility, and answering from one document) are counted in each, and once in all.

    Raises:
        ConfigError, DataError, UsageError: as for `run`; also where the variable with a key is not set.
    """
    prepared = prepare(experiment, cache=cache)
    plans = count(stage_units(prepared), prepared.answering, cache)
    rules = prepared.config.guard
    if rules is not None and rules.answer:
        plans["all"].expect(2 * rules.answer * len(rules.steps))  # which lists change is known once they are labelled
    return plans


def count(
    asked: Mapping[str, Callable[[], Iterator[StageUnit]]],
    answering: Mapping[str, stages.Answering],
    cache: str | Path | None = None,
) -> dict[str, Plan]:
    """Count what stages would take, by name and, under ``all``, together; see `plan`.

    Args:
        asked: what each stage asks.
        answering: those of the stages that answer.
        cache: folder of the reply store.
    """
    store = default_store_path() if cache is None else cache
    with Session(store if has_store(store) else None, mode="read-only") as session:
        plans = {name: session.plan(units(), AllStages()) for name, units in asked.items()}
        plans["all"] = session.plan(chain.from_iterable(units() for units in asked.values()), AllStages())
    for name, one in answering.items():
        rating = 0 if isinstance(one.answerer, Imported) else len(one.asking)
        for stage in (name, "all") if rating else ():
            # An LLM that rates answers is asked, at most twice each, about answers that are not there yet.
            plans[stage].expect(2 * rating * plans[name].units)
    return plans


@contextmanager
def _all_units(
    experiment: Config | str | Path, cache: str | Path | None, *, keys: bool
) -> Iterator[tuple[Prepared, Iterator[StageUnit], Store]]:
    """Yield a prepared experiment, what all its stages ask, and the store."""
    with noting_reads():
        prepared = prepare(experiment, keys=keys, cache=cache)
        units = chain.from_iterable(units() for units in stage_units(prepared).values())
        with closing(Store(default_store_path() if cache is None else cache)) as store:
            yield prepared, units, store


def export_requests(experiment: Config | str | Path, path: str | Path, cache: str | Path | None = None) -> BatchExport:
    """Write what the store lacks for an experiment as OpenAI batch files; see `judgekit.client.batch.export_batch`."""
    with _all_units(experiment, cache, keys=False) as (_, units, store):
        return export_batch(store, units, AllStages(), path)


def submit_requests(
    experiment: Config | str | Path, cache: str | Path | None = None, *, clients: Clients = open_client
) -> BatchExport:
    """Have what the store lacks for an experiment asked by batch services; see `judgekit.client.submission.submit`.

    Args:
        experiment: the experiment file, or what `load` returned.
        cache: the folder of the store.
        clients: makes the client of an endpoint: `openai.OpenAI`, `openai.AzureOpenAI` or one of your own.
    """
    with _all_units(experiment, cache, keys=clients is open_client) as (prepared, units, store):
        return submit(store, units, AllStages(), prepared.config.servers().values(), clients)


def submitted(
    experiment: Config | str | Path,
    cache: str | Path | None = None,
    *,
    take: bool = False,
    clients: Clients = open_client,
) -> list[Fetched]:
    """Return what batch services say of an experiment's batches; with ``take``, import the replies of those that ended.

    See `judgekit.client.submission.status` and `judgekit.client.submission.fetch`.
    """
    config = experiment if isinstance(experiment, Config) else load(experiment)
    with closing(Store(default_store_path() if cache is None else cache)) as store:
        return (fetch if take else status)(store, config.servers().values(), clients)


def result_files(prepared: Prepared) -> list[str]:
    """Return the names of all files that a run may write into its folder."""
    labels = [labels_file(name, end) for name in prepared.labelers for end in (".qrels", ".parquet")]
    missing = [str(missing_path(name)) for name in labels if name.endswith(".qrels")]
    return [*labels, *missing, _quality_file(prepared), *FILES]


def _quality_file(prepared: Prepared) -> str:
    """Return the name of the file with the answers, or with ratings alone."""
    return f"answers/{slug(prepared.config.answers.prompt) if prepared.answering else 'ratings'}.parquet"


def _query_log(prepared: Prepared) -> QueryLogCheck | None:
    """Test whether the queries look like those of the query log, if the experiment names one."""
    if prepared.query_log is None:
        return None
    queries = [query.text for query in prepared.collection.queries.values()]
    return check_query_log(queries, prepared.query_log, seed=prepared.config.analysis.seed)


def _mix(prepared: Prepared, session: Session) -> str:
    """Return which replies came from several models under one name, where that is not accepted."""
    return "" if prepared.config.analysis.accept_mixed_models else "; ".join(session.mixed())


def _compared(
    prepared: Prepared,
    labelings: Mapping[str, Labeling],
    quality: pd.DataFrame,
    session: Session,
    progress: Progress,
) -> tuple[Evaluation, pd.DataFrame, Comparison]:
    """Score the runs with the labelings, and compare the scores with the quality of the answers."""
    config, collection, analysis = prepared.config, prepared.collection, prepared.config.analysis
    progress(Event("score", 0, None))
    evaluation = stages.score_pool(collection, list(labelings.values()), prepared.measures, config.metrics.missing)
    scores = pd.concat([evaluation.scores(), evaluation.means()], ignore_index=True)
    progress(Event("score", len(scores), len(scores)))
    primary, mix = str(analysis.primary), _mix(prepared, session)
    first = next(iter(prepared.answering.values()), None)
    metric, own = prepared.primary_metric
    several = modes_of(quality)
    bounded = stages.score_bounds(collection, list(labelings.values()), primary, scores)
    comparison = compare(
        pd.concat([bounded, stages.control_scores(collection, primary)], ignore_index=True),
        quality,
        use=None if analysis.use == GUARD else analysis.use,
        primary=analysis.primary,
        primary_metric=metric,
        primary_model=first.model if first and own else None,
        mode=first.mode or several[0] if first and len(several) > 1 else None,
        keep=analysis.keep,
        margin_points=analysis.margin_points,
        confidence=analysis.confidence,
        groups=prepared.groups,
        controls=(RETRIEVER, LENGTH),
        twins={name: stages.twin(labeling) for name, labeling in labelings.items()},
        resamples=analysis.resamples,
        seed=analysis.seed,
        costs=shown.costs(prepared.labelers, session),
        needs={name: labeler.needs for name, labeler in prepared.labelers.items()},
        answering=shown.answering(prepared),
        notes=evaluation.notes.rename(columns={"ties_across": "ties"}),
        accept_mixed_models=analysis.accept_mixed_models,
        obstacle=f"{mix}. {shown.MIXED}" if mix else "",
        incomparable=incomparable(collection.runs, Measure(primary)),
        progress=progress,
    )
    return evaluation, scores, comparison


def _stopped(looks: int, of: int, seen: int, queries: int, confidence: float) -> str:
    """Return how far a run in blocks went, and what that makes of its intervals."""
    end = "the verdict was decided" if looks < of else "the verdict was not decided earlier"
    return (
        f"Labelled in blocks: after {looks} of {of} looks, {seen:,} of {queries:,} queries, {end}. Intervals and claims"
        f" are at {confidence:.2%} each, so that they hold over all looks"
    )


def _ahead(prepared: Prepared) -> dict[str, int]:
    """Return how many units each stage that asks an LLM will have."""
    collection, answers = prepared.collection, prepared.config.answers
    found = {f"label {n}": collection.n_pairs for n, labeler in prepared.labelers.items() if labeler.needs.asked}
    for stage, answering in prepared.answering.items():
        answerer = answering.answerer
        if isinstance(answerer, Imported):
            units = len(answerer.found)
        else:
            units = found[stage] = len(stages.answer_units(collection, answers.depths, answers.closed_book))
        found |= {stages.rating_stage(stage, metric): units for metric in answering.asking}
    return found


async def run_async(
    experiment: Config | str | Path,
    *,
    out: str | Path,
    cache: str | Path | None = None,
    overwrite: bool = False,
    mode: Mode = "on",
    budget: Budget | None = None,
    canary: int | None = None,
    progress: Progress = silent,
    wait_s: float = 0.0,
) -> Finished:
    """Run an experiment from top to bottom; `run` does so in synchronous code, in a notebook too.

    Args:
        experiment: the experiment file, or what `load` returned.
        out: folder for the results; what is there of an earlier run is replaced file by file.
        cache: folder of the reply store; `default_store_path` by default.
        overwrite: replace files of the results' names also where the folder does not hold results of judgekit; an
            input is never replaced.
        mode: ``on``, ``off``, ``read-only`` or ``refresh``.
        budget: where to stop.
        canary: ask about so many stored pairs of each labeling again first, see `judgekit.experiment.canary`.
        progress: called with events.
        wait_s: how long a server that is not ready is waited for.

    Raises:
        ConfigError, DataError, UsageError: nothing has been sent.
        StoppedError: the endpoint or the budget ended the run; run it again to go on from there.
    """
    folder = Path(out)
    with noting_reads() as read:
        prepared = prepare(experiment, cache=cache)
        wanted = check_ladder(prepared)
        check_folder(folder, result_files(prepared), overwrite=overwrite)
    config, answers = prepared.config, prepared.config.answers
    if config.executor.kind == "ray":
        check_cluster(config, mode, canary)
    inputs = sources(config.files(), read)
    said = mismatches(inputs)
    for line in said:
        progress(Event("inputs", len(inputs), len(inputs), note=line))
    store = default_store_path() if cache is None else Path(cache)
    asked_again: tuple[str, ...] = ()
    if canary is not None:
        found = await ask_again(prepared, canary, store, budget=budget, progress=progress, wait_s=wait_s)
        asked_again, budget = tuple(map(str, found.flips)), budget and budget.less(found.spent)
        for line in asked_again:
            progress(Event("canary", len(found.flips), len(found.flips), note=line))
    async with Session(store, mode, budget, config.price_list(), progress, wait_s=wait_s) as session:
        write_manifest(folder / MANIFEST, inputs)  # first: it makes the folder ours, also if we are killed
        write_atomic(folder / "resolved.toml", f"{ANCHOR}{config.path.parent.absolute()}\n{config.toml()}")
        progress(Event("run", 0, None, ahead=_ahead(prepared)))
        there: tuple[Mapping[str, Labeling], Mapping[str, pd.DataFrame]] = {}, {}
        if config.executor.kind == "ray":
            hashes = [source.sha256 for role, source in inputs.items() if role not in config.files()]
            there = await run_on_cluster(prepared, session, folder, hashes, budget, progress, wait_s)
        parts, labelings, tables = blocks(prepared), dict[str, Labeling](), list[pd.DataFrame]()
        for look, part in enumerate(parts, 1):
            async for name, labeling in _labels(prepared, part, session, there[0], progress):
                labelings[name] = joined([labelings[name], labeling] if name in labelings else [labeling])
                write_qrels(labelings[name], folder / labels_file(name, ".qrels"))
                write_labels(labelings[name], folder / labels_file(name))
            labelings = {name: labelings[name] for name in prepared.labelers}  # in the order of the file again
            for stage, one in prepared.answering.items():
                tables.append(
                    there[1][stage]
                    if stage in there[1]
                    else await stages.answer_runs(
                        one, part, answers.depths, session, closed_book=answers.closed_book, stage=stage
                    )
                )
            quality = pd.concat([*tables, *([] if prepared.ratings is None else [prepared.ratings])], ignore_index=True)
            write_table(quality, folder / _quality_file(prepared))
            so_far = [query_id for one in parts[:look] for query_id in one.queries]
            collection = part if len(parts) == 1 else prepared.collection.only(so_far)
            level = confidence_at(look, len(parts), config.analysis.confidence)
            seen = replace(prepared, collection=collection, config=config.updated(analysis={"confidence": level}))
            if look < len(parts):
                primary = tuple(measure for measure in prepared.measures if str(measure) == config.analysis.primary)
                now = replace(seen, measures=primary)
                if _compared(now, labelings, of_mode(quality), session, silent)[2].verdict.winner:
                    break
        if len(parts) > 1:
            said.append(_stopped(look, len(parts), len(collection.queries), len(prepared.collection.queries), level))
            progress(Event("blocks", look, look, note=said[-1]))
        prepared, config = seen, seen.config
        ladder = await run_ladder(prepared, labelings, session) if wanted else None
    evaluation, scores, comparison = _compared(prepared, labelings, quality, session, progress)
    analysis, mix = config.analysis, _mix(prepared, session)
    if ladder is not None:
        guards = ladder_verdict(ladder, comparison.verdict.primary, shown.costs(prepared.labelers, session))
        first = {GUARD: guards} if analysis.use == GUARD else {}
        comparison = replace(comparison, verdicts={**first, **comparison.verdicts, GUARD: guards})
    agreed = agreement(
        list(labelings.values()),
        people=[name for name, labeler in prepared.labelers.items() if labeler.needs.people],
        resamples=analysis.resamples,
        seed=analysis.seed,
        confidence=analysis.confidence,
    )
    matrix, modes = shown.models(prepared, scores, of_mode(quality), comparison.verdict.primary), comparison.modes
    written = {
        "scores.parquet": scores,
        **{f"{name}.csv": getattr(comparison, name) for name in ("controls", "gains", "fidelity", "top")},
        "agreement.csv": agreed.table,
        "confusion.csv": agreed.confusion,
        "ladder.csv": ladder and ladder.table,
        "models.csv": matrix and matrix.table,
        "modes.csv": modes and modes.table,
        "mode_differences.csv": modes and modes.differences,
    }
    for name, table in written.items():
        if table is None:
            (folder / name).unlink(missing_ok=True)
        else:
            write_table(table, folder / name)
    progress(Event("report", 0, None))
    log = _query_log(prepared)
    made = shown.RunOutputs(prepared, labelings, quality, evaluation, comparison, agreed, session, matrix, log)
    results = shown.summarise(made)
    read_files = tuple((role, source.file, source.sha256) for role, source in inputs.items())
    limit = [] if config.data.limit is None else ["--limit", str(config.data.limit)]
    command = ("Command", shlex.join(["judgekit", "run", str(config.path), *limit, "--out", str(folder)]))
    results = replace(
        results,
        warnings=(*said, *asked_again, *results.warnings),
        facts=replace(results.facts, inputs=read_files, more=(*results.facts.more, command)),
        sections=(*results.sections, *([] if ladder is None else [ladder_section(ladder)])),
    )
    if not config.report.texts:
        results = results.without_texts()
    save_results(results, folder)
    write_html(results, folder / "report.html", shown.backing(prepared, labelings, quality))
    progress(Event("report", 1, 1))
    # Without the report, which tells of this session's requests, and which `judgekit report` writes again.
    names = [name for name in result_files(prepared) if not name.startswith((MANIFEST, "report.", "queries"))]
    write_manifest(folder / MANIFEST, inputs, [folder / name for name in names if (folder / name).exists()])
    verdict = comparison.verdict
    withheld = mix or ("" if verdict.found or verdict.primary.use == GUARD else verdict.headline)
    missing = (*([f"the verdict: {withheld}"] if withheld else []), *shown.missing(labelings, quality))
    return Finished(folder, results, labelings, quality, scores, comparison, missing, asked_again)


async def _labels(
    prepared: Prepared, part: stages.Collection, session: Session, there: Mapping[str, Labeling], progress: Progress
) -> AsyncIterator[tuple[str, Labeling]]:
    """Yield what each labeler says of a part of the pool, as soon as it is there."""
    # Those that ask nobody come first: what looks wrong with a file is said before anything is paid for.
    for name, labeler in sorted(prepared.labelers.items(), key=lambda item: bool(item[1].needs.asked)):
        labeling = there[name] if name in there else await stages.label_pool(labeler, part, session, name)
        for remark in remarks(labeling):
            progress(Event(f"label {name}", len(labeling), len(labeling), note=remark))
        yield name, labeling


run = synchronous(run_async)
