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

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from judgekit import stages, summary
from judgekit.analysis import Comparison, compare
from judgekit.config import Config, load
from judgekit.data.files import write_atomic, write_table
from judgekit.data.labelings import Labeling
from judgekit.data.trec import write_qrels
from judgekit.errors import ConfigError, UsageError, nearest
from judgekit.labelers.base import Labeler, build
from judgekit.llm.http import api_key
from judgekit.llm.session import Mode, Plan, Session, run_sync
from judgekit.llm.store import default_store_path, has_store
from judgekit.llm.types import Endpoint
from judgekit.llm.usage import Budget, parse_prices
from judgekit.metrics import Measure, parse_measure
from judgekit.progress import Progress, silent
from judgekit.report import Results, write_html
from judgekit.report import save as save_results
from judgekit.spec import slug

__all__ = ["Outcome", "Prepared", "StagePlan", "load", "plan", "prepare", "run", "run_async"]


@dataclass(frozen=True)
class Prepared:
    """Everything that an experiment is made of, read and checked before anything is sent.

    Attributes:
        config: the experiment file, with the primary cell filled in.
        collection: queries, documents, runs and pool.
        labelers: the labelers by name.
        answering: the answerer and the answer metrics.
        measures: the measures, at every answer depth where they have no cutoff of their own.
    """

    config: Config
    collection: stages.Collection
    labelers: Mapping[str, Labeler]
    answering: stages.Answering
    measures: tuple[Measure, ...]


@dataclass(frozen=True)
class Outcome:
    """A finished experiment.

    Attributes:
        folder: where the results were written.
        results: what the report shows.
        labelings: the labelings by name.
        quality, scores: the quality table, and the score table with values per query and means.
        comparison: the comparison, with its table and its verdict.
        missing: a line for everything that could not be had; empty if all is there.
    """

    folder: Path
    results: Results
    labelings: Mapping[str, Labeling]
    quality: pd.DataFrame
    scores: pd.DataFrame
    comparison: Comparison
    missing: tuple[str, ...]


def prepare(experiment: Config | str | Path) -> Prepared:
    """Read and check everything that an experiment needs.

    Raises:
        ConfigError, DataError, UsageError: something is wrong with the experiment file, the data, a prompt or a
            spelling. Nothing has been sent.
    """
    config = experiment if isinstance(experiment, Config) else load(experiment)
    collection = stages.read_collection(
        config.resolve(config.data.queries),
        config.resolve(config.data.docs),
        {name: config.resolve(file) for name, file in config.runs.items()},
        config.data.depth,
        config.data.limit,
    )
    endpoints = {name: entry.endpoint(name) for name, entry in config.endpoints.items()}
    resources = stages.Resources(endpoints, config.path.parent, config.data.fields, collection.docs)
    labelers: dict[str, Labeler] = {}
    for position, entry in enumerate(config.labelers):
        with _located(config, f"labelers.{position}"):
            labeler = build(entry.spec, resources)
        name = entry.name or str(labeler.spec)
        if name in labelers:
            raise ConfigError(f"two labelers are named {name!r}: give one another name", config.path, "labelers")
        labelers[name] = labeler
    with _located(config, "answers"):
        answering = stages.answering(
            resources,
            endpoint=config.answers.endpoint,
            prompt=config.answers.prompt,
            metrics=config.answers.metrics,
            options=config.answers.options,
        )
    with _located(config, "metrics.measures"):
        measures = stages.at_depths(map(parse_measure, config.metrics.measures), config.answers.depths)
    for endpoint in {e.name: e for e in _endpoints(labelers, answering)}.values():
        api_key(endpoint)
    return Prepared(_with_primary(config, measures), collection, labelers, answering, tuple(measures))


def _endpoints(labelers: Mapping[str, Labeler], answering: stages.Answering) -> Iterator[Endpoint]:
    asked = [labeler.needs.endpoint for labeler in labelers.values()]
    yield from (e for e in [*asked, answering.answerer.endpoint, *(m.endpoint for m in answering.metrics)] if e)


def _with_primary(config: Config, measures: list[Measure]) -> Config:
    """Fix the verdict's cell in advance; without one in the file, first measure and metric, deepest cutoff."""
    analysis, answers = config.analysis, config.answers
    names = [str(m) for m in measures]
    with _located(config, "analysis.primary"):
        primary = str(parse_measure(analysis.primary)) if analysis.primary else None
    if primary is None:
        first = names[0].split("@")[0]
        primary = [name for name in names if name.split("@")[0] == first][-1]
    if primary not in names:
        have = ", ".join(names)
        reason = f"{primary} is not among the measures at the answer depths ({have}).{nearest(primary, names)}"
        raise ConfigError(reason, config.path, "analysis.primary")
    metric = analysis.primary_metric or answers.metrics[0]
    if metric not in answers.metrics:
        have = ", ".join(answers.metrics)
        reason = f"{metric!r} is not among answers.metrics ({have}).{nearest(metric, answers.metrics)}"
        raise ConfigError(reason, config.path, "analysis.primary_metric")
    levels = (
        analysis.levels if analysis.primary_level in analysis.levels else [*analysis.levels, analysis.primary_level]
    )
    fixed = analysis.model_copy(update={"primary": primary, "primary_metric": metric, "levels": levels})
    return config.model_copy(update={"analysis": fixed})


@contextmanager
def _located(config: Config, key: str) -> Iterator[None]:
    """Say where in the experiment file a mistake is."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(error.reason, config.path, error.key or key) from None
    except UsageError as error:
        raise ConfigError(str(error), config.path, key) from None


@dataclass(frozen=True)
class StagePlan:
    """What one stage would take: see `judgekit.llm.session.Plan`."""

    stage: str
    plan: Plan


def plan(experiment: Config | str | Path, cache: str | Path | None = None) -> list[StagePlan]:
    """Count what an experiment would take, stage by stage, without sending anything.

    Requests that two stages share (utility and answering from one document) are counted in both.

    Raises:
        ConfigError, DataError, UsageError: as for `run`.
    """
    prepared = prepare(experiment)
    collection, answers = prepared.collection, prepared.config.answers
    store = default_store_path() if cache is None else cache
    with Session(store if has_store(store) else None, mode="read-only") as session:
        plans = [
            StagePlan(f"label {name}", session.plan(stages.label_units(labeler, collection), labeler))
            for name, labeler in prepared.labelers.items()
        ]
        asked = stages.answer_units(collection, answers.depths, answers.closed_book)
        units = stages.units_to_answer(collection, asked)
        plans.append(StagePlan("answer", session.plan(units, prepared.answering.answerer)))
    return plans


def run(
    experiment: Config | str | Path,
    *,
    out: str | Path,
    cache: str | Path | None = None,
    mode: Mode = "on",
    budget: Budget | None = None,
    progress: Progress = silent,
) -> Outcome:
    """Run an experiment from top to bottom; works under a running event loop (a notebook) too.

    Args:
        experiment: the experiment file, or what `load` returned.
        out: folder for the results; what is there of an earlier run is replaced file by file.
        cache: folder of the reply store; `default_store_path` by default.
        mode: ``on``, ``off``, ``read-only`` or ``refresh``.
        budget: where to stop.
        progress: called with events.

    Raises:
        ConfigError, DataError, UsageError: nothing has been sent.
        StoppedError: the endpoint or the budget ended the run; run it again to go on from there.
    """
    return run_sync(run_async(experiment, out=out, cache=cache, mode=mode, budget=budget, progress=progress))


async def run_async(
    experiment: Config | str | Path,
    *,
    out: str | Path,
    cache: str | Path | None = None,
    mode: Mode = "on",
    budget: Budget | None = None,
    progress: Progress = silent,
) -> Outcome:
    """Do what `run` does, inside a running event loop."""
    prepared = prepare(experiment)
    config, collection = prepared.config, prepared.collection
    folder = Path(out)
    session = Session(
        default_store_path() if cache is None else cache,
        mode=mode,
        budget=budget,
        prices=parse_prices(config.model_dump()["prices"]),
        progress=progress,
    )
    async with session:
        write_atomic(folder / "experiment.toml", config.toml())
        labelings: dict[str, Labeling] = {}
        for name, labeler in prepared.labelers.items():
            labelings[name] = await stages.label(labeler, collection, session, name)
            write_qrels(labelings[name], folder / "labels" / f"{slug(name)}.qrels")
            write_table(labelings[name].table, folder / "labels" / f"{slug(name)}.parquet")
        quality = await stages.answer(
            prepared.answering,
            collection,
            config.answers.depths,
            session,
            closed_book=config.answers.closed_book,
        )
        write_table(quality, folder / "answers" / f"{slug(config.answers.prompt)}.parquet")
    evaluation = stages.score(collection, list(labelings.values()), prepared.measures, config.metrics.missing)
    scores = pd.concat([evaluation.scores(), evaluation.means()], ignore_index=True)
    write_table(scores, folder / "scores.parquet")
    analysis = config.analysis
    comparison = compare(
        scores,
        quality,
        levels=analysis.levels,
        primary=analysis.primary,
        primary_metric=analysis.primary_metric,
        primary_level=analysis.primary_level,
        margin=analysis.margin,
        resamples=analysis.resamples,
        seed=analysis.seed,
        costs=summary.costs(labelings, session),
        needs={name: labeler.needs for name, labeler in prepared.labelers.items()},
        answering=summary.answering(prepared),
        progress=progress,
    )
    results = summary.summarise(prepared, labelings, quality, evaluation, comparison, session)
    save_results(results, folder)
    write_html(results, folder / "report.html")
    return Outcome(folder, results, labelings, quality, scores, comparison, summary.missing(labelings, quality))
