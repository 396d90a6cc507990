"""An experiment from top to bottom: read this file to know the whole program.

    prepare    read the file, the data and the prompts; build the labelers; stop at any mistake of the user
    label      have each labeler grade the relevance of every pooled pair of query and document
    answer     have the LLM answer every query from the top k of every run, and LLMs rate the answers
    compare    score every run under every labeling: do the scores follow the quality of the answers?
    report     write the tables, the page, and everything needed to draw them again

All but `prepare` are steps, and plug-ins add theirs in between. Labels and answers are written as soon as they exist.
Paid replies are stored before anything is written, so running again finishes a run that was stopped.

The requests of all steps can be counted in advance, or answered into the store part by part: a plain run then finds
every reply there. Parts share only the store, so any scheduler will do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from judgekit import labelling, scoring
from judgekit.analysis.agreement import agreement
from judgekit.analysis.background import LENGTH, RETRIEVER, Background
from judgekit.analysis.comparison import Comparison, compare
from judgekit.analysis.disagreeing import LEAST, disagreements
from judgekit.analysis.inputs import outcome_of
from judgekit.analysis.modes import modes_of, of_mode
from judgekit.answering import answer_runs, answers_asked, answers_made
from judgekit.answers.unanswerable import unanswerable
from judgekit.client.asking import UNLIMITED, Asking
from judgekit.client.session import Session
from judgekit.client.stages import StageUnit
from judgekit.collection import pool_size
from judgekit.data.checks import remarks
from judgekit.data.files import write_labels, write_table
from judgekit.data.labelings import Labeling
from judgekit.data.result_files import ResultFiles
from judgekit.data.streams import write_atomic
from judgekit.data.tables import ALL, QUALITY, Status, stacked
from judgekit.data.trec import missing_path, write_qrels
from judgekit.errors import ConfigError, UsageError, not_among
from judgekit.experiment import results as shown
from judgekit.experiment.file import (
    REPLIES_FILE,
    Config,
    labels_file,
    load,
    located,
    of_another,
    resolved_toml,
)
from judgekit.experiment.prepare import Prepared, prepare, primary_answers
from judgekit.experiment.step import State, Step
from judgekit.job import Job, job
from judgekit.labelers.made import endpoint_record
from judgekit.metrics import incomparable
from judgekit.notebook import NotebookRepr
from judgekit.people.grades import grades_of, read_grades
from judgekit.progress import Event
from judgekit.registry import register
from judgekit.report import Results, save as save_results, told_before, write_html
from judgekit.report.model import Section
from judgekit.spec import slug


@register.step()
class LabelStep(Step):
    """Labels the pool with each labeler."""

    name = "label"

    def asks(self, prepared: Prepared) -> Mapping[str, Callable[[], Iterator[StageUnit]]]:
        """Return the requests of each labeler."""
        labeled = partial(labelling.labels_asked, collection=prepared.collection)
        return {f"label {name}": partial(labeled, labeler) for name, labeler in prepared.labelers.items()}

    def files(self, prepared: Prepared) -> Iterable[str]:
        """Return the files of all labelings, and the file with the cost of their replies."""
        yield REPLIES_FILE
        for name in prepared.labelers:
            yield from (labels_file(name, ".qrels"), labels_file(name))
            yield str(missing_path(labels_file(name, ".qrels")))

    async def do(self, state: State) -> None:
        """Label the pool. Labelers without an LLM go first, to warn of suspect files before anything is paid for."""
        # Restore the file's order at the end: tables and colours follow what the user wrote.
        labelers = state.prepared.labelers
        made: dict[str, Labeling] = {}
        for name, labeler in sorted(labelers.items(), key=lambda item: bool(item[1].needs.asked)):
            labeling = await labelling.label_pool(labeler, state.prepared.collection, state.session, name)
            for remark in remarks(labeling):
                state.progress(Event(f"label {name}", len(labeling), len(labeling), note=remark))
            write_qrels(labeling, state.folder / labels_file(name, ".qrels"))
            write_labels(labeling, state.folder / labels_file(name))
            made[name] = labeling
        state.labelings = {name: made[name] for name in labelers}
        replies = stacked([labeling.replies() for labeling in state.labelings.values()])
        if len(replies):
            write_table(replies, state.folder / REPLIES_FILE)
        else:
            (state.folder / REPLIES_FILE).unlink(missing_ok=True)  # of an earlier run


def answers_file(prepared: Prepared) -> str:
    """Return the name of the file with the answers, or with the ratings if there are no answers."""
    return f"answers/{slug(prepared.config.answers.prompt) if prepared.answering else 'ratings'}.parquet"


@register.step()
class AnswerStep(Step):
    """Has an LLM answer each query from the top k of each run, or rates imported answers."""

    name = "answer"

    def asks(self, prepared: Prepared) -> Mapping[str, Callable[[], Iterator[StageUnit]]]:
        """Return the requests for answers and their ratings."""
        answers = prepared.config.answers
        about = (prepared.collection, answers.depths, answers.closed_book)
        return {name: partial(answers_asked, one, *about) for name, one in prepared.answering.items()}

    def files(self, prepared: Prepared) -> Iterable[str]:
        """Return the file of the answers."""
        return [answers_file(prepared)]

    async def do(self, state: State) -> None:
        """Answer and rate; append ratings from elsewhere."""
        prepared, answers = state.prepared, state.prepared.config.answers
        tables = []
        for stage, answering in prepared.answering.items():
            table = await answer_runs(
                answering,
                prepared.collection,
                answers.depths,
                state.session,
                closed_book=answers.closed_book,
                stage=stage,
            )
            tables.append(table)
        if prepared.ratings is not None:
            tables.append(prepared.ratings)
        if prepared.trusted:
            tables.append(_by_trusted(state))
        state.quality = pd.concat(tables, ignore_index=True)
        write_table(state.quality, state.folder / answers_file(prepared))


def _by_trusted(state: State) -> pd.DataFrame:
    """Return the runs' scores under trusted labels, which replace answers, as a quality table."""
    prepared = state.prepared
    # The order of the runs under these labels counts as the quality of their answers.
    trusted = state.labelings[prepared.trusted]
    table = outcome_of(scoring.score_pool(prepared.collection, [trusted], [prepared.primary]))
    return QUALITY.check(table.assign(answer="", status=Status.OK.value, reason=""))


@register.step()
class CompareStep(Step):
    """Scores the runs with the labelings, and compares the scores with the quality of the answers."""

    name = "compare"

    def files(self, prepared: Prepared) -> Iterable[str]:
        """Return the tables."""
        return [
            "scores.parquet",
            "agreement.csv",
            "confusion.csv",
            "modes.csv",
        ]

    async def do(self, state: State) -> None:
        """Score, compare, write the tables, and remove outdated ones."""
        prepared, rules = state.prepared, state.prepared.config.rules()
        labelings = list(state.labelings.values())
        state.progress(Event("score", 0, None))
        state.evaluation = scoring.score_pool(prepared.collection, labelings, prepared.measures)
        means = shown.score_means(state.evaluation, prepared.weights)
        state.scores = pd.concat([state.evaluation.scores(), means], ignore_index=True)
        state.progress(Event("score", len(state.scores), len(state.scores)))
        state.comparison = _compared(state)
        state.agreed = agreement(
            labelings,
            people=[name for name, labeler in prepared.labelers.items() if labeler.needs.people],
            resamples=rules.resamples,
            seed=rules.seed,
            confidence=rules.confidence,
        )
        tables = {
            "scores.parquet": state.scores,
            "agreement.csv": state.agreed.table,
            "confusion.csv": state.agreed.confusion,
            "modes.csv": state.comparison.modes,
        }
        for name, table in tables.items():
            if table is None:
                (state.folder / name).unlink(missing_ok=True)  # of an earlier run
            else:
                write_table(table, state.folder / name)

    def section(self, state: State) -> Iterable[Section]:
        """Return the comparison's further sections of the report."""
        return shown.sections(state)


def _compared(state: State) -> Comparison:
    prepared, collection = state.prepared, state.prepared.collection
    primary, depth = prepared.primary, prepared.primary.cutoff
    mode = None
    modes = modes_of(state.quality)
    if prepared.answering and len(modes) > 1:
        mode = next(iter(prepared.answering.values())).mode or modes[0]
    # Leave out labels that replace answers: they are the outcome.
    scores = state.scores[state.scores["labeling"] != prepared.trusted]
    return compare(
        pd.concat([scores, scoring.control_scores(collection, str(primary))], ignore_index=True),
        state.quality,
        prepared.config.rules(),
        outcome=prepared.outcome,
        model=None if prepared.deciding is None else prepared.deciding.model,
        mode=mode,
        reverse=prepared.config.answers.reverse,
        as_given=prepared.config.answers.as_given,
        background=Background(
            controls=(RETRIEVER, LENGTH),
            twins={name: scoring.question_mean(labeling) for name, labeling in state.labelings.items()},
            money=prepared.config.costs(),
            costs=shown.costs(prepared.labelers, state.session, prepared.answering, depth),
            pool=pool_size(collection, depth, prepared.questions),
            needs={name: labeler.needs for name, labeler in prepared.labelers.items()},
            answering=shown.answering(prepared),
            reranked={name: run.model for name, run in prepared.config.runs.items() if run.model is not None},
            notes=state.evaluation.notes.rename(columns={"ties_across": "ties"}),
            obstacle=state.mix,
            quality=f"{primary} by {prepared.trusted}" if prepared.trusted else "",
            grades=_graded(state),
            incomparable=incomparable(collection.runs, primary),
            lists=collection.runs,
            pool_depth=collection.depth,
            unanswerable=_unanswerable(state),
            kinds=prepared.kinds,
            groups=prepared.groups,
            questions=prepared.questions,
            contradicting=prepared.repeats.contradicting,
            gold=prepared.repeats.gold,
            weights=prepared.weights or {},
            file=_as_typed(prepared.config.path),
        ),
        progress=state.progress,
    )


def _made(state: State) -> dict[str, dict[str, Any]]:
    """Return how labels and answers were made, for readers who compare the tables of the results."""
    prepared = state.prepared
    made = state.evaluation.made
    if not made:
        return {}
    ways, depth = list(prepared.answering.values()), prepared.primary.cutoff
    answers = answers_made(ways, state.session, prepared.config.answers.depths)
    for model, answered in shown.answering(prepared).items():
        # Ratings from elsewhere name the model that answered, and nothing else is known of it.
        asked = None if isinstance(answered.endpoint, str) else endpoint_record(answered.endpoint)
        answers.setdefault(model, {"model": model, "endpoint": asked, "prompt": answered.prompt, "costs": {}})
    pool = asdict(pool_size(prepared.collection, depth, prepared.questions))
    return {**made, "pools": {**made["pools"], str(depth): pool}, "answers": answers}


def _as_typed(path: Path) -> str:
    """Return a path as a user would type it: relative if the file is below the working folder."""
    here = Path.cwd()
    full = path.resolve()
    return str(full.relative_to(here)) if full.is_relative_to(here) else str(path)


def _unanswerable(state: State) -> frozenset[str]:
    """Return the unanswerable questions, given the gold documents of existing labelings."""
    prepared = state.prepared
    gold: set[str] | None = None
    for name, labeler in prepared.labelers.items():
        if labeler.needs.existing:
            table = state.labelings[name].table
            gold = (gold or set()).union(table.loc[table["relevance"] > 0, "query_id"])
    return unanswerable(prepared.collection.queries.values(), gold=gold)


def _graded(state: State) -> pd.DataFrame | None:
    """Return people's grades of the answers that the decision is about; None if there are none."""
    prepared, file = state.prepared, state.prepared.config.answers.grades
    if file is None:
        return None
    with located(prepared.config.path, "answers.grades"):
        return grades_of(
            read_grades(prepared.config.resolve(file)),
            primary_answers(prepared, of_mode(state.quality)),
            str(prepared.outcome.outcome),
            prepared.run_names,
            prepared.primary.cutoff,
        )


@register.step()
class ReportStep(Step):
    """Writes the results as tables, as a page, and as the data to redraw both."""

    name = "report"

    def files(self, prepared: Prepared) -> Iterable[str]:
        """Return the page, the data behind it, and its tables."""
        return [
            "comparison.csv",
            "claims.csv",
            "differences.csv",
            "details.csv",
            "report.json",
            "report.html",
            "queries",
        ]

    async def do(self, state: State) -> None:
        """Gather the results and draw the report."""
        state.progress(Event("report", 0, None))
        results = shown.summarise(state)
        read = tuple((role, source.file, source.sha256) for role, source in state.inputs.items())
        state.results = replace(
            results,
            warnings=(*state.warnings, *results.warnings),
            facts=replace(results.facts, inputs=read),
            sections=tuple(chain.from_iterable(step.section(state) for step in steps())),
        )
        if not any(usage.sent for usage in state.session.totals().values()):
            state.results = told_before(state.results, state.folder)
        save_results(state.results, state.folder)
        write_html(
            state.results,
            state.folder / "report.html",
            shown.backing(
                state.prepared,
                state.labelings,
                state.quality,
                state.scores,
                stacked([labeling.replies() for labeling in state.labelings.values()]),
            ),
        )
        state.progress(Event("report", 1, 1))


def steps() -> list[Step]:
    """Return the steps of a run in order, including those of plug-ins."""
    return register.steps()


def asked(prepared: Prepared) -> dict[str, Callable[[], Iterator[StageUnit]]]:
    """Return the requests of all steps, by stage."""
    return {stage: units for step in steps() for stage, units in step.asks(prepared).items()}


def check_parts(config: Config, of: int) -> None:
    """Refuse more parts than an endpoint allows requests at once; name the key that sets the limit.

    Raises:
        ConfigError: an endpoint allows fewer requests at once.
    """
    for name, endpoint in config.servers().items():
        if endpoint.concurrency < of:
            reason = f"is {endpoint.concurrency}, which {of} parts cannot share: raise it or use fewer parts"
            raise ConfigError(reason, config.path, f"endpoints.{name}.concurrency")


def result_files(prepared: Prepared) -> list[str]:
    """Return the names of all files that a run may write into its folder, except the manifest."""
    return ["resolved.toml", *(name for step in steps() for name in step.files(prepared))]


def _check_kept(prepared: Prepared, files: ResultFiles) -> None:
    """Refuse to replace results of another experiment, or of questions that this experiment does not ask."""
    folder = files.place
    if files.overwrite:
        return
    how = "choose another --out, or add --overwrite to replace them"
    if other := of_another(folder, prepared.config):
        raise UsageError(f"{folder} holds results of another experiment ({other}): {how}")
    with suppress(OSError, pa.ArrowException):
        before = pq.read_table(folder / "scores.parquet", columns=["query_id"])  # not an input: may be replaced
        more = sorted({*before["query_id"].to_pylist()} - {ALL} - {*prepared.collection.queries})
        if more:
            raise UsageError(
                f"{folder} holds results of {len(more):,} questions that this run does not ask ({more[0]!r} is one):"
                f" {how}"
            )


@dataclass(frozen=True)
class RunResult(NotebookRepr):
    """A finished experiment.

    Attributes:
        folder: where the results were written.
        results: what the report shows.
        labelings: the labelings by name.
        quality, scores: the quality table, and the score table with values per query and means.
        comparison: the comparison, with its table and its decision.
        missing: a line for each missing part; empty if nothing is missing.
        incomplete: whether more is missing than the experiment's ``accept_missing`` allows.
    """

    folder: Path
    # Not in the repr: tables are slow to write out.
    results: Results = field(repr=False)
    labelings: Mapping[str, Labeling] = field(repr=False)
    quality: pd.DataFrame = field(repr=False)
    scores: pd.DataFrame = field(repr=False)
    comparison: Comparison = field(repr=False)
    missing: tuple[str, ...]
    incomplete: bool

    def disagreements(self, first: str, second: str, *, least: float = LEAST) -> pd.DataFrame:
        """Return the pairs on which two of the labelings disagree; see `judgekit.analysis.disagreeing.disagreements`.

        Raises:
            UsageError: there is no labeling of that name.
        """
        for name in (first, second):
            if name not in self.labelings:
                raise UsageError(not_among("labeling", name, self.labelings))
        return disagreements(self.labelings[first], self.labelings[second], least=least)


@job
def run(
    experiment: Config | str | Path,
    *,
    out: str | Path,
    overwrite: bool = False,
    trust: bool = False,
    asking: Asking = UNLIMITED,
) -> Job[RunResult]:
    """Run an experiment from top to bottom, in a notebook too.

    Args:
        experiment: the experiment file, or what `load` returned.
        out: folder for the results; files of an earlier run are replaced one by one.
        overwrite: replace files with the names of results even if the folder does not hold results of judgekit. Inputs
            are never replaced.
        trust: whether you trust the code, keys and servers that the file names; otherwise confirm them with `judgekit
            trust`.
        asking: the budget, the store of replies, and the receiver of progress.

    Returns:
        The labelings, qualities and scores, their comparison with its decision, and a line for each missing part.

    Raises:
        ConfigError, DataError, UsageError: nothing was sent.
        StoppedError: the endpoint failed or the budget ran out; run it again to continue.
    """
    config = load(experiment, trusted=trust)
    prepared = prepare(config, cache=asking.cache)
    names = result_files(prepared)
    files = ResultFiles(
        Path(out),
        tuple(names),
        command="run",
        roles=prepared.config.files(),
        # The report covers this session's requests, and `judgekit report` rewrites it.
        loose=tuple(name for name in names if name.startswith(("report.", "queries"))),
        overwrite=overwrite,
        refuse=partial(_check_kept, prepared),
    )

    async def do(session: Session, files: ResultFiles) -> RunResult:
        return await _walked(State(prepared, files, session, asking.progress))

    return Job(asked(prepared), do, asking.priced(config.price_list()), files, notes=prepared.collection.notes)


async def _walked(state: State) -> RunResult:
    """Do the steps, and return their results."""
    files, prepared = state.files, state.prepared
    for line in state.warnings:
        state.progress(Event("inputs", len(state.inputs), len(state.inputs), note=line))
    files.begin()
    write_atomic(files.file("resolved.toml"), resolved_toml(prepared.config))
    for step in steps():
        await step.do(state)
    files.made.update(_made(state))
    files.close()
    lacking = list(shown.missing(state.labelings, state.quality))
    missing = tuple(one.line for one in lacking)
    incomplete = any(one.share > prepared.config.accept_missing for one in lacking)
    withheld = state.mix or state.comparison.decision.withheld
    if withheld:
        missing, incomplete = (f"the decision: {withheld}", *missing), True
    return RunResult(
        folder=state.folder,
        results=state.results,
        labelings=state.labelings,
        quality=state.quality,
        scores=state.scores,
        comparison=state.comparison,
        missing=missing,
        incomplete=incomplete,
    )
