"""Reads, checks and fixes all parts of an experiment before anything is sent, so that mistakes show early."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Literal

import pandas as pd

from judgekit import scoring
from judgekit.analysis.primary import CHOOSE_RUNS, FIND_QUESTIONS
from judgekit.answering import (
    Answering,
    answer_stage,
    build_answerings,
    check_references,
    import_answers,
    read_ratings_of,
)
from judgekit.answers.imported import Imported
from judgekit.client.applications import function_of
from judgekit.collection import Collection
from judgekit.context import Context
from judgekit.data.documents import Docs, Queries
from judgekit.data.files import read_table
from judgekit.data.questions import PARTED, Repeats, joined, questions_of, repeats_of
from judgekit.data.streams import note_read
from judgekit.data.tables import BY_AN_LLM, BY_CODE, QUALITY, SAMPLE, UNDECLARED, NotedTable
from judgekit.errors import ConfigError, DataError, UsageError, not_among
from judgekit.experiment.file import Config, load, located
from judgekit.experiment.varied import never_alone
from judgekit.labelers.base import Labeler, build
from judgekit.labelers.fitness import check_card, read_card
from judgekit.labelling import gold_apart, misplaced_by
from judgekit.metrics import Measure, incomparable, of_evidence, parse_measures, suited
from judgekit.rules import Source, SourcedOutcome
from judgekit.spec import slug
from judgekit.wire.access import Secret
from judgekit.wire.types import Endpoint


@dataclass(frozen=True)
class Prepared:
    """All parts of an experiment, read and checked before anything is sent.

    Attributes:
        config: the experiment file, with the primary cell filled in.
        collection: queries, documents, runs and pool.
        labelers: the labelers by name.
        answering: the answerer (or the imported answers) and the answer metrics, by stage; the decision is about the
            first. Empty if all quality comes from ratings.
        measures: the measures. Those without a cutoff are taken at every answer depth.
        ratings: a quality table of ratings by people or other tools, or None.
        outcome: what the decision is about.
        questions: the id of each query's question, by query id; queries that ask the same question share one.
        repeats: the numbers of queries and questions.
        groups, kinds: the group and the kind of each query; None unless the experiment names a column for them.
        weights: the number of questions that each query stands for in a mean; None unless the experiment has a sample.
        tests: the result of each judge's test, by labeling, if the experiment names the judge's card.
    """

    config: Config
    collection: Collection
    labelers: Mapping[str, Labeler]
    answering: Mapping[str, Answering]
    measures: tuple[Measure, ...]
    ratings: pd.DataFrame | None = None
    outcome: SourcedOutcome = field(default_factory=SourcedOutcome)
    questions: Mapping[str, str] = field(default_factory=dict)
    repeats: Repeats = field(default_factory=Repeats)
    groups: Mapping[str, str] | None = None
    kinds: Mapping[str, str] | None = None
    weights: Mapping[str, float] | None = None
    tests: Mapping[str, str] = field(default_factory=dict)

    @property
    def units(self) -> Mapping[str, str] | None:
        """The name of each query's unit, shared within a question or group; None if every query stands alone."""
        if self.groups is None and not self.repeats.any:
            return None
        return joined(self.questions, self.groups or {})

    @property
    def trusted(self) -> str:
        """The labeler whose labels replace answers; "" if there are answers or ratings."""
        return str(self.config.answers.declared.outcome) if self.outcome.source == "trusted" else ""

    @property
    def primary(self) -> Measure:
        """The measure that the decision is about."""
        return Measure(str(self.config.analysis.primary))

    @property
    def answer_depth(self) -> int:
        """The number of documents behind the answers that the decision is about."""
        return self.primary.cutoff or max(self.config.answers.depths)

    @property
    def run_names(self) -> list[str]:
        """The names of the runs."""
        return [run.name for run in self.collection.runs]

    @property
    def deciding(self) -> Answering | None:
        """The first answerer, which the decision is about; None if its answers are rated elsewhere."""
        answers = self.config.answers
        if answers.declared.outcome not in answers.metrics:
            return None
        return next(iter(self.answering.values()), None)

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """Every endpoint that may label, answer or rate."""
        endpoints: list[Endpoint] = []
        for labeler in self.labelers.values():
            endpoints += labeler.needs.asked
        for answering in self.answering.values():
            for asked in (answering.answerer, *answering.metrics):
                if asked.endpoint is not None:
                    endpoints.append(asked.endpoint)
        return tuple(endpoints)


def prepare(
    experiment: Config | str | Path, *, keys: bool = True, referenced: bool = True, cache: str | Path | None = None
) -> Prepared:
    """Read and check everything that an experiment needs.

    Args:
        experiment: the experiment file, or what `load` returned.
        keys: whether to require the keys and functions of endpoints.
        referenced: whether to require the reference answers that the outcome's metric compares with.
        cache: the place for the index of a large collection.
    """
    config = load(experiment)
    collection = config.collection(cache)
    # Ratings may cover questions that a sample leaves out, but no unknown ones.
    everything = collection.queries
    weights = _taken(config, everything)
    if len(weights) < len(everything):
        collection = collection.only(weights)
    rated = _ratings(config, collection, everything)
    if rated is not None:
        collection = replace(collection, notes=(*collection.notes, *rated.notes))
    ratings = None if rated is None else rated.table
    # Build the labelers before the outcome: existing labels may replace answers.
    labelers, resources = labelers_of(config, collection.docs)
    collection = replace(collection, notes=(*collection.notes, *misplaced_by(labelers, collection)))
    existing = trusted(labelers)
    config = _with_metrics(config, collection.queries, existing, rated=ratings is not None)
    outcomes = _Outcomes(config, QUALITY.empty() if ratings is None else ratings, existing)
    outcomes.check(config.answers.declared.outcome)  # before building: a misspelt outcome would demand an LLM
    with located(config.path, "answers"):
        answering = _answering(config, resources, collection)
    measures = _measures(config, collection)
    config = outcomes.fixed(measures, [*answering.values()])
    first = next(iter(answering.values()), None)
    why = incomparable(collection.runs, Measure(str(config.analysis.primary)))
    if why and config.analysis.use == CHOOSE_RUNS:  # warn before anything is paid for
        collection = replace(collection, notes=(*collection.notes, f"No decision will compare these runs. {why}"))
    questions: Mapping[str, str] = dict(zip(collection.queries, collection.queries, strict=True))
    if config.analysis.groups != PARTED:
        questions = questions_of(collection.queries)
    repeats = repeats_of(collection.queries, questions)
    if repeats.any:
        repeats = replace(repeats, gold=gold_apart(labelers.values(), questions))
    counted = filter(None, [repeats.sentence, repeats.contradiction])
    settings = {name: run.settings for name, run in config.runs.items()}
    collection = replace(collection, notes=(*collection.notes, *counted, *never_alone(settings)))
    if referenced and first is not None and config.answers.declared.outcome in config.answers.metrics:
        with located(config.path, "answers.metrics"):
            check_references(collection.queries, first)
    prepared = Prepared(
        config=config,
        collection=collection,
        labelers=labelers,
        answering=answering,
        measures=tuple(measures),
        ratings=ratings,
        outcome=_sourced(config, first, existing),
        questions=questions,
        repeats=repeats,
        groups=_groups(config, collection.queries, "groups"),
        kinds=_groups(config, collection.queries, "by"),
        weights=None if config.data.sample is None else weights,
        tests=tests_of(config, labelers),
    )
    with located(config.path, "money"):
        config.costs()
    if keys:
        check_access(prepared.endpoints)
    return prepared


def _measures(config: Config, collection: Collection) -> list[Measure]:
    """Return the measures; those without a cutoff are taken at every answer depth."""
    with located(config.path, "metrics.measures"):
        given = parse_measures(config.metrics.measures, config.path.parent)
        measures = suited(scoring.at_depths(given, config.answers.depths), collection.runs, collection.docs)
        # Documents below the pool have no label, and would count as irrelevant.
        for measure in measures:
            if (measure.cutoff or 0) > config.data.depth:
                raise UsageError(f"{measure} looks at more documents than data.depth pools ({config.data.depth})")
        return measures


def _groups(config: Config, queries: Queries, key: Literal["groups", "by"]) -> dict[str, str] | None:
    """Return each query's value in the column that a key names; None without the key."""
    column: str | None = getattr(config.analysis, key)
    if column is None or (key == "groups" and column == PARTED):
        return None
    try:
        return {query_id: query.group(column) for query_id, query in queries.items()}
    except DataError as error:
        raise DataError(f"{error.reason} ([analysis] {key})", config.resolve(config.data.queries)) from None


def _ratings(config: Config, collection: Collection, queries: Iterable[str]) -> NotedTable | None:
    """Return the ratings in rating files and in columns of imported answers."""
    answers = config.answers
    with located(config.path, "answers.ratings"):
        return read_ratings_of(
            map(config.resolve, answers.ratings),
            collection,
            answers.depths,
            answers.answered_by,
            outcome=answers.declared,
            imported=_imported(config),
            queries=queries,
        )


def _imported(config: Config) -> list[tuple[Path, str | None]]:
    """Return each file of imported answers, with the name of the run if the same file is a run."""
    of_run = {config.resolve(run.file): name for name, run in config.runs.items()}
    return [(path, of_run.get(path)) for path in map(config.resolve, config.answers.imported)]


def _with_metrics(config: Config, queries: Queries, existing: Sequence[str], *, rated: bool) -> Config:
    """Drop all metrics if existing labels are the outcome, and the default metrics if they could rate nothing."""
    answers = config.answers
    wanted = "metrics" in answers.model_fields_set or any(query.answers for query in queries.values())
    if answers.declared.outcome in existing or (rated and not wanted):
        return config.updated(answers={"metrics": []})
    return config


def trusted(labelers: Mapping[str, Labeler]) -> list[str]:
    """Return the labelers with existing labels: without answers, their order of the runs can be the outcome."""
    return [name for name, labeler in labelers.items() if labeler.needs.existing]


def _sourced(config: Config, answering: Answering | None, existing: Sequence[str]) -> SourcedOutcome:
    """Return the outcome and its source."""
    answers, declared = config.answers, SourcedOutcome(**asdict(config.answers.declared))
    name = str(declared.outcome)
    if name in existing:
        return replace(declared, outcome=str(config.analysis.primary), source="trusted")
    if answering is None or name not in answers.metrics:
        # Assume that people rated, unless the name says otherwise.
        if name.endswith(BY_AN_LLM):
            return replace(declared, source="llm")
        return replace(declared, source="" if name.endswith(BY_CODE) else "people")
    metric = answering.metrics[answers.metrics.index(name)]
    # Only ratings have a scale: metrics give values from 0 to 1.
    declared = replace(declared, outcome=metric.name, scale=None)
    if metric.endpoint is None:
        return replace(declared, source="references" if metric.needs_references else "")
    # An LLM that sees the passages but no reference rates groundedness. Nuggets count as a reference.
    source: Source = "grounded" if metric.needs_docs and not metric.needs_references else "llm"
    return replace(declared, source=source, rater=metric.endpoint.model)


def primary_answers(prepared: Prepared, quality: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a quality table by the model that the decision is about."""
    return quality if prepared.deciding is None else quality[quality["model"] == prepared.deciding.model]


def check_access(endpoints: Iterable[Endpoint]) -> None:
    """Refuse endpoints whose key or function is missing."""
    for endpoint in set(endpoints):
        Secret.of(endpoint)
        if endpoint.application:
            function_of(endpoint)


def _taken(config: Config, queries: Queries) -> dict[str, float]:
    """Return the weight in a mean of each query that an experiment uses, in the order of the queries."""
    weights = dict.fromkeys(queries, 1.0)
    if config.data.sample is not None:
        path = config.resolve(config.data.sample)
        note_read(path)
        table = read_table(SAMPLE, path)
        given = dict(zip(table["query_id"], table["weight"], strict=True))
        if len(given) < len(table) or not given:
            raise DataError("names a query twice" if given else "names no query", path)
        for query_id, weight in given.items():
            if query_id not in queries:
                raise DataError(f"names query {query_id!r}, which is not in the queries", path)
            if not weight > 0:
                raise DataError(f"the weight of query {query_id!r} is not above 0", path)
        weights = {query_id: given[query_id] for query_id in queries if query_id in given}
    return dict(islice(weights.items(), config.data.limit))


def labelers_of(config: Config, docs: Docs | None = None) -> tuple[dict[str, Labeler], Context]:
    """Return the labelers by name, and the context that they were built from."""
    resources = Context(config.servers(), config.path.parent, config.data.fields, docs)
    labelers: dict[str, Labeler] = {}
    for position, entry in enumerate(config.labelers):
        with located(config.path, f"labelers.{position}"):
            labeler = build(entry.spec, resources)
        name = entry.name or str(labeler.spec)
        for other in labelers:
            # Label files are named after labelers, and file systems may ignore case.
            if slug(other).casefold() == slug(name).casefold():
                reason = f"two labelers are named {other!r} and {name!r}: rename one of them"
                raise ConfigError(reason, config.path, "labelers")
        labelers[name] = labeler
    return labelers, resources


def tests_of(config: Config, labelers: Mapping[str, Labeler]) -> dict[str, str]:
    """Return the result of each judge's test, by labeling, if the experiment names the judge's card."""
    tests: dict[str, str] = {}
    for position, (entry, name) in enumerate(zip(config.labelers, labelers, strict=True)):
        if entry.card is None:
            continue
        path = config.resolve(entry.card)
        with located(config.path, f"labelers.{position}.card"):
            fitness = read_card(path)
            check_card(fitness, labelers[name])
        tests[name] = fitness.cited(path.name)
    return tests


def _answering(config: Config, resources: Context, collection: Collection) -> dict[str, Answering]:
    """Build one answerer per imported model and endpoint; none without a metric to rate the answers."""
    answers = config.answers
    if not answers.metrics:
        return {}
    built = []
    if answers.imported:
        built = import_answers(
            _imported(config),
            collection.queries,
            resources,
            answers.metrics,
            runs=collection.runs,
            depths=answers.depths,
            answered_by=None if answers.answered_by == UNDECLARED else answers.answered_by,
            limited=config.data.limit is not None or config.data.sample is not None,
        )
    for name in answers.endpoints:
        built += build_answerings(
            resources,
            endpoint=name,
            prompt=answers.prompt,
            metrics=answers.metrics,
            modes=answers.modes,
            context_tokens=answers.context_tokens,
            samples=answers.samples,
        )
    models, modes = {way.model for way in built}, {way.mode for way in built}
    named: dict[str, Answering] = {}
    for way in built:
        stage = answer_stage(way.model if len(models) > 1 else "", way.mode if len(modes) > 1 else "")
        if stage in named:
            raise UsageError(
                f"two answering endpoints have the model {way.model!r}, so their answers cannot be told apart"
            )
        named[stage] = way
    return named


@dataclass(frozen=True)
class _Outcomes:
    """The possible outcomes: a metric of answers, a rating, or the order of the runs under existing labels."""

    config: Config
    ratings: pd.DataFrame
    existing: Sequence[str]

    @property
    def rated(self) -> list[str]:
        """The names of the ratings."""
        return sorted(set(self.ratings["metric"]))

    def check(self, outcome: str | None) -> None:
        """Refuse an unknown outcome."""
        known = [*self.config.answers.metrics, *self.rated, *self.existing]
        if outcome is not None and outcome not in known:
            with located(self.config.path, "answers.outcome"):
                note = " (answers.metrics, the metrics of answers.ratings, and labelers with existing labels)"
                raise UsageError(not_among("outcome", outcome, known, note=note))

    def fixed(self, measures: Sequence[Measure], answering: Sequence[Answering]) -> Config:
        """Fix the decision's cell in advance; by default the first measure and metric, at the deepest cutoff."""
        config, answers = self.config, self.config.answers
        self._check_ratings([way.model for way in answering])
        outcome = answers.declared.outcome or [*self.rated, *answers.metrics][0]
        self._check_directions(outcome)
        depths, runs = self._answered(outcome, measures, answering)
        with located(config.path, "analysis.primary"):
            primary = _primary(config, measures, depths, outcome)
        # Labels cannot be compared with themselves.
        if outcome in self.existing and len(config.labelers) < 2:
            reason = (
                f"the outcome is the order of the runs under {outcome}, the only labeling: add a labeler to compare"
                " with it, such as a judge"
            )
            raise ConfigError(reason, config.path, "labelers")
        use = config.analysis.use or (CHOOSE_RUNS if len(runs) > 1 else FIND_QUESTIONS)
        if use == CHOOSE_RUNS and len(runs) < 2:
            reason = f"use {CHOOSE_RUNS!r} compares runs, but only one has answers"
            raise ConfigError(reason, config.path, "analysis.use")
        return config.updated(analysis={"primary": primary, "use": use}, answers={"outcome": outcome})

    def _check_directions(self, outcome: str) -> None:
        """Refuse an outcome if it is unknown whether high or low values are good."""
        answers = self.config.answers
        with located(self.config.path, "answers"):
            answers.directions.check([*self.rated, *answers.metrics])
            if outcome not in self.existing and answers.directions.of(outcome) == "asked":
                raise UsageError(
                    f'{outcome}: tools disagree on its direction: add reverse = ["{outcome}"] if lower is better, else'
                    f' as_given = ["{outcome}"]'
                )

    def _check_ratings(self, models: Sequence[str]) -> None:
        """Refuse empty ratings, and ratings that the experiment computes itself."""
        answers = self.config.answers
        own = set(self.ratings["metric"][self.ratings["model"].isin(models)])
        with located(self.config.path, "answers.ratings"):
            if not (answers.metrics or self.rated or answers.declared.outcome in self.existing):
                raise UsageError("hold no rating of these queries, and there is no other outcome")
            for metric in answers.metrics:
                if metric in own:
                    raise UsageError(f"they hold {metric!r}, which the experiment computes itself: rename the metric")

    def _answered(
        self, outcome: str, measures: Sequence[Measure], answering: Sequence[Answering]
    ) -> tuple[list[int], set[str]]:
        """Return the numbers of documents and the runs for which the outcome is known."""
        answers, runs = self.config.answers, set(self.config.runs)
        if outcome in self.existing:
            return sorted({measure.cutoff for measure in measures if measure.cutoff is not None}), runs
        if outcome not in answers.metrics:
            rows = self.ratings[self.ratings["metric"] == outcome]
            return sorted({int(depth) for depth in rows["depth"]}), set(rows["run"][rows["depth"] > 0])
        # An application may have answered for only some of the runs.
        imported = answering[0].answerer
        if isinstance(imported, Imported):
            places = chain.from_iterable(imported.given.values())
            runs = {place.run for place in places if place.depth}
        return list(answers.depths), runs


def _primary(config: Config, measures: Sequence[Measure], depths: Sequence[int], outcome: str) -> str:
    """Return the measure that the decision is about; by default the first, at the deepest cutoff."""
    names = [str(measure) for measure in measures]
    if config.analysis.primary is None:
        primary = names[0]
        for measure in measures:
            if measure.at(None) == measures[0].at(None) and measure.cutoff in (None, *depths):
                primary = str(measure)
    else:
        (measure,) = parse_measures([config.analysis.primary], config.path.parent)
        primary = str(measure)
        counted = str(of_evidence(measure))
        if primary not in names and counted in names:
            primary = counted  # like the measures, if runs cut documents differently
    cutoff = Measure(primary).cutoff
    if primary not in names and cutoff not in (None, *depths) and outcome in config.answers.metrics:
        same = [str(measure) for measure in measures if measure.at(None) == Measure(primary).at(None)]
        raise UsageError(
            f"{primary} needs answers from the top {cutoff}: add {cutoff} to [answers] depths, or name"
            f" {' or '.join(same or names)}"
        )
    if primary not in names:
        raise UsageError(not_among("measure", primary, names, note=" (the measures at the answer depths)"))
    if cutoff not in (None, *depths):
        have = ", ".join(map(str, depths))
        raise UsageError(
            f"{primary} needs {outcome!r} of answers from the top {cutoff}, but it is known only for the top {have}"
        )
    return primary
