"""Everything of an experiment that is read, checked and fixed before anything is sent: every mistake ends it here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from judgekit import stages
from judgekit.analysis.primary import CHOOSE_RUNS, FIND_QUESTIONS
from judgekit.analysis.querylog import check_sizes
from judgekit.answers.imported import Imported
from judgekit.client.applications import function_of
from judgekit.data.documents import Docs
from judgekit.data.readers import read_column, read_queries
from judgekit.data.streams import is_json, lines
from judgekit.data.tables import UNDECLARED
from judgekit.errors import ConfigError, UsageError, not_among
from judgekit.experiment.file import Config, load, located
from judgekit.labelers.base import Labeler, build
from judgekit.metrics import Measure, of_evidence, parse_measures, suited
from judgekit.spec import slug
from judgekit.wire.access import Secret
from judgekit.wire.types import Endpoint

__all__ = ["Prepared", "labelers_of", "prepare", "programs"]


@dataclass(frozen=True)
class Prepared:
    """Everything that an experiment is made of, read and checked before anything is sent.

    Attributes:
        config: the experiment file, with the primary cell filled in.
        collection: queries, documents, runs and pool.
        labelers: the labelers by name.
        answering: the answerer (or what was imported) and the answer metrics, by the name of the stage; the verdict is
            about the first. None where all quality is ratings.
        measures: the measures, at every answer depth where they have no cutoff of their own.
        ratings: what people or other tools think of answers, a quality table, or None.
        query_log: texts of real queries, to be compared with the experiment's, or None.
        groups: the group of each query, where the experiment names a column of groups, or None.
    """

    config: Config
    collection: stages.Collection
    labelers: Mapping[str, Labeler]
    answering: Mapping[str, stages.Answering]
    measures: tuple[Measure, ...]
    ratings: pd.DataFrame | None = None
    query_log: tuple[str, ...] | None = None
    groups: Mapping[str, str] | None = None

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """Every endpoint that may be asked, by labelers, for answers or to rate them."""
        return tuple(_endpoints(self.labelers, self.answering.values()))

    @property
    def primary_metric(self) -> tuple[str, bool]:
        """The canonical spelling of the metric that the verdict is about, and whether answers are rated by it here."""
        given, first = str(self.config.analysis.primary_metric), next(iter(self.answering.values()), None)
        rated = dict(zip(self.config.answers.metrics, first.metrics, strict=True)) if first else {}
        return (rated[given].name, True) if given in rated else (given, False)


def prepare(experiment: Config | str | Path, *, keys: bool = True, cache: str | Path | None = None) -> Prepared:
    """Read and check everything that an experiment needs.

    Args:
        experiment: the experiment file, or what `load` returned.
        keys: whether the variables with the endpoints' keys must be set.
        cache: folder of the reply store, beside which the index of a large collection lies.

    Raises:
        ConfigError, DataError, UsageError: something is wrong with the experiment file, the data, a prompt or a
            spelling. Nothing has been sent.
    """
    config = experiment if isinstance(experiment, Config) else load(experiment)
    queries, docs, runs = config.collection()
    data = config.data
    collection = stages.Collection.make(queries, docs, runs, data.depth, data.limit, data.fields, cache)
    labelers, answering = programs(config, collection)
    with located(config.path, "metrics.measures"):
        given = parse_measures(config.metrics.measures, config.path.parent)
        measures = suited(stages.at_depths(given, config.answers.depths), collection.runs, collection.docs)
        deep = next((m for m in measures if (m.cutoff or 0) > config.data.depth), None)
        if deep is not None:
            raise UsageError(f"{deep} looks at more documents than data.depth pools ({config.data.depth})")
    if keys:
        for endpoint in {e.name: e for e in _endpoints(labelers, answering.values())}.values():
            Secret.of(endpoint)
            if endpoint.kind == "callable":
                function_of(endpoint)
    with located(config.path, "answers.ratings"):
        files = map(config.resolve, config.answers.ratings)
        ratings = stages.read_ratings_of(files, collection, config.answers.depths, config.answers.answered_by)
    texts = _read_query_log(config, collection)
    groups = None
    if config.analysis.groups is not None:
        with located(config.path, "analysis.groups"):
            groups = read_column(queries, config.analysis.groups)
    config = _with_primary(config, measures, ratings, next(iter(answering.values()), None))
    if ratings is not None:
        with located(config.path, "answers.ratings"):
            _check_ratings(ratings, config, answering.values())
    if config.analysis.primary_metric in config.answers.metrics:
        with located(config.path, "answers.metrics"):
            stages.check_references(collection.queries, next(iter(answering.values())))
    return Prepared(config, collection, labelers, answering, tuple(measures), ratings, texts, groups)


def programs(
    config: Config, collection: stages.Collection, *, answers: bool = True
) -> tuple[dict[str, Labeler], dict[str, stages.Answering]]:
    """Build what labels and what answers, by name and by stage; without ``answers`` nothing that answers.

    Raises:
        ConfigError, DataError, UsageError: as for `prepare`.
    """
    labelers, resources = labelers_of(config, collection.docs)
    with located(config.path, "answers"):
        return labelers, _answering(config, resources, collection) if answers else {}


def labelers_of(config: Config, docs: Docs | None = None) -> tuple[dict[str, Labeler], stages.Resources]:
    """Build the labelers, by name, and return what they were built from, too.

    Raises:
        ConfigError, DataError, UsageError: as for `prepare`.
    """
    with located(config.path, "prompts.folder"):
        folder = config.prompt_folder()
        resources = stages.Resources(config.servers(), config.path.parent, config.data.fields, docs, folder)
    labelers: dict[str, Labeler] = {}
    for position, entry in enumerate(config.labelers):
        with located(config.path, f"labelers.{position}"):
            labeler = build(entry.spec, resources)
        name = entry.name or str(labeler.spec)
        if name in labelers:
            raise ConfigError(f"two labelers are named {name!r}: give one another name", config.path, "labelers")
        alike = next((n for n in labelers if slug(n).casefold() == slug(name).casefold()), None)
        if alike is not None:
            reason = f"the names {alike!r} and {name!r} are one file on disks that ignore case: give one another name"
            raise ConfigError(reason, config.path, "labelers")
        labelers[name] = labeler
    return labelers, resources


def _answering(
    config: Config, resources: stages.Resources, collection: stages.Collection
) -> dict[str, stages.Answering]:
    """Build one answerer per imported model and endpoint, none where there is no metric to rate its answers with.

    Their models must differ, for tables tell answers apart by them.
    """
    answers = config.answers
    if not answers.metrics:
        return {}
    built = []
    if answers.imported is not None:
        built = stages.import_answers(
            config.resolve(answers.imported),
            collection.queries,
            resources,
            answers.metrics,
            runs=[run.name for run in collection.runs],
            depths=answers.depths,
            answered_by=None if answers.answered_by == UNDECLARED else answers.answered_by,
            limited=config.data.limit is not None,
        )
    for name in answers.endpoints:
        built += stages.answering(
            resources,
            endpoint=name,
            prompt=answers.prompt,
            metrics=answers.metrics,
            options=answers.options,
            modes=answers.modes,
        )
    several, modes = len({one.model for one in built}) > 1, len({one.mode for one in built}) > 1
    named = [stages.answer_stage(one.model if several else "", one.mode if modes else "") for one in built]
    twice = next((one.model for one, name in zip(built, named, strict=True) if named.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"two of the endpoints that answer have the model {twice!r}; their answers need other names")
    return dict(zip(named, built, strict=True))


def _endpoints(labelers: Mapping[str, Labeler], answering: Iterable[stages.Answering]) -> Iterator[Endpoint]:
    """Yield every endpoint that may be asked."""
    for labeler in labelers.values():
        yield from labeler.needs.asked
    for one in answering:
        yield from (e for e in (one.answerer.endpoint, *(metric.endpoint for metric in one.metrics)) if e)


def _read_query_log(config: Config, collection: stages.Collection) -> tuple[str, ...] | None:
    """Return the texts of the query log, if the experiment names one: a query file, or one query a line.

    Raises:
        DataError: there are too few queries on either side to compare them.
    """
    if config.data.query_log is None:
        return None
    path = config.resolve(config.data.query_log)
    expected = "a query log, one query a line, or a file of queries"
    if is_json(path, expected):
        texts = tuple(query.text for query in read_queries(path).values())
    else:
        texts = tuple(line.text for line in lines(path, expected))
    check_sizes([query.text for query in collection.queries.values()], texts)
    return texts


def _check_ratings(ratings: pd.DataFrame, config: Config, answering: Iterable[stages.Answering]) -> None:
    """Check that ratings do not stand beside the experiment's own of the same name, and that a verdict can use them.

    Raises:
        UsageError: they do, or the verdict is to be about ratings that are not there.
    """
    models = [one.model for one in answering]
    own = ratings["model"].isin(models) & ratings["metric"].isin(config.answers.metrics)
    if own.any():
        row = ratings[own].iloc[0]
        raise UsageError(
            f"they hold {row['metric']!r} of the model {row['model']!r}, which the experiment works out itself: give"
            " the metric another name"
        )
    metric, cutoff = config.analysis.primary_metric, Measure(str(config.analysis.primary)).cutoff
    if metric in config.answers.metrics:
        return
    depths = sorted({int(depth) for depth in ratings["depth"][ratings["metric"] == metric]})
    if cutoff is not None and cutoff not in depths:
        have = ", ".join(map(str, depths))
        raise UsageError(
            f"the verdict is to be about {config.analysis.primary} against {metric!r}, and there are ratings of answers"
            f" from the top {have} only: choose a measure at such a cutoff"
        )


def _with_primary(
    config: Config, measures: list[Measure], ratings: pd.DataFrame | None, answers_of: stages.Answering | None
) -> Config:
    """Fix the verdict's cell in advance; without one in the file, first measure and metric, deepest cutoff."""
    analysis, answers = config.analysis, config.answers
    names = [str(m) for m in measures]
    rated = [] if ratings is None else sorted(set(ratings["metric"]))
    known = [*answers.metrics, *rated]
    with located(config.path, "answers.ratings"):
        if not known:
            raise UsageError("hold no rating of these queries, and nothing else is compared")
    metric = analysis.primary_metric or known[0]
    with located(config.path, "analysis.primary_metric"):
        if metric not in known:
            where = "answers.metrics" if ratings is None else "answers.metrics and the metrics of answers.ratings"
            raise UsageError(not_among("answer metric", metric, known, note=f" ({where})"))
    with located(config.path, "analysis.primary"):
        primary = [name for name in names if name.split("@")[0] == names[0].split("@")[0]][-1]
        if analysis.primary is not None:
            primary = str(parse_measures([analysis.primary], config.path.parent)[0])
            if primary not in names and (counted := str(of_evidence(Measure(primary)))) in names:
                primary = counted  # as the measures, where documents are cut differently
        if primary not in names:
            raise UsageError(not_among("measure", primary, names, note=" (the measures at the answer depths)"))
        cutoff, depths = Measure(primary).cutoff, ", ".join(map(str, answers.depths))
        if metric in answers.metrics and cutoff not in (None, *answers.depths):
            raise UsageError(
                f"{primary} is compared with answers from the top {cutoff}, and answers.depths has {depths} only"
            )
    runs: set[str] = set(config.runs)
    if metric not in answers.metrics and ratings is not None:
        runs = set(ratings["run"][(ratings["metric"] == metric) & (ratings["depth"] > 0)])
    elif answers_of and isinstance(answers_of.answerer, Imported):
        runs = {run for places in answers_of.answerer.found.values() for run, depth in places if depth}
    with located(config.path, "analysis.use"):
        if analysis.use == CHOOSE_RUNS and len(runs) < 2:
            raise UsageError(f"use {CHOOSE_RUNS!r} compares runs, and only one has answers")
    use = analysis.use or (CHOOSE_RUNS if len(runs) > 1 else FIND_QUESTIONS)
    return config.updated(analysis={"primary": primary, "primary_metric": metric, "use": use})
