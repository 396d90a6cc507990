"""Chooses the run to ship with as few answers as possible: `run` in another order.

Questions are asked in random order, in blocks that end at fixed questions; runs shown to be worse drop out; asking
stops once the leader is at most the margin below the best (`judgekit.analysis.race`). Requests equal those of `judgekit
run`, so each finds the other's paid replies in the store, and a killed choice can go on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Set as AbstractSet
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from judgekit.analysis.best import equal_lists
from judgekit.analysis.coefficients import Bools, Floats, Ints
from judgekit.analysis.race import (
    LEAST,
    Look,
    Order,
    RaceRules,
    Replay,
    RunAnswers,
    concluded,
    limits,
    look,
    random_order,
    replay,
    stops,
)
from judgekit.analysis.repeats import QuestionRows
from judgekit.analysis.samples import means_of
from judgekit.answering import Answering, answer_runs, answer_units, answers_asked, rating_stage
from judgekit.answers.imported import Imported
from judgekit.client.asking import UNLIMITED, Asking
from judgekit.client.budget import Amount, Budget
from judgekit.client.stages import StageUnit
from judgekit.collection import Collection
from judgekit.data.manifest import InputFile
from judgekit.data.result_files import NOWHERE, ResultFiles
from judgekit.data.runs import Run
from judgekit.data.streams import write_atomic
from judgekit.errors import BudgetError, UsageError
from judgekit.experiment.choice import ChoiceResult, Spent, block_line
from judgekit.experiment.file import Config, load, resolved_toml
from judgekit.experiment.finished import read_results
from judgekit.experiment.prepare import Prepared, prepare
from judgekit.job import Job, job
from judgekit.progress import Event, Progress

if TYPE_CHECKING:
    from judgekit.client.session import Session

_FILES = ("resolved.toml", "choice.json")
_STAGE = "answer"
_ROOM = 1.2
"""The factor by which a block may cost more than earlier ones, so that a started block does not hit the budget."""


@dataclass(frozen=True)
class QuestionBlock:
    """Some questions, the runs still in the race, and the answerer."""

    collection: Collection
    answering: Answering
    depth: int

    @property
    def lists(self) -> int:
        """The number of different lists to answer from."""
        return len(answer_units(self.collection, (self.depth,), closed_book=False))

    def units(self) -> Iterator[StageUnit]:
        """Yield its requests for answers and ratings."""
        return answers_asked(self.answering, self.collection, (self.depth,), closed_book=False)

    async def answers(self, session: Session) -> pd.DataFrame:
        """Return the quality table of its answers."""
        return await answer_runs(
            self.answering, self.collection, (self.depth,), session, closed_book=False, stage=_STAGE
        )


@dataclass(frozen=True)
class RunContest:
    """The requests of a choice, and its rules.

    Attributes:
        prepared: the experiment.
        answering: the answerer, and the only metric that rates the answers.
        rules: margin and confidence.
    """

    prepared: Prepared
    answering: Answering
    rules: RaceRules

    @property
    def depth(self) -> int:
        """The number of documents to answer from."""
        return self.prepared.answer_depth

    @property
    def runs(self) -> tuple[str, ...]:
        """The names of the runs."""
        return tuple(self.prepared.run_names)

    @cached_property
    def rows(self) -> QuestionRows:
        """The question of each query."""
        return QuestionRows.of(self.prepared.questions, self.prepared.collection.queries)

    @cached_property
    def questions(self) -> list[str]:
        """The sorted ids of all questions: the order of asking depends only on ids and seed."""
        return self.rows.standing(self.prepared.collection.queries)

    @cached_property
    def groups(self) -> Ints | None:
        """The unit of each question, if weights differ or questions share a declared group."""
        return _groups_of(self.prepared, self.rows, self.questions)

    @cached_property
    def order(self) -> Order:
        """The order in which questions are asked, and the blocks."""
        return random_order(len(self.questions), self.rules.seed, self.groups)

    @cached_property
    def equal(self) -> Bools | None:
        """Whether the lists of each pair of runs are equal."""
        return _equal_of(self.prepared, self.prepared.collection.runs, self.rows.rows_of(self.questions))

    def answered(self, quality: Floats, questions: int) -> RunAnswers:
        """Return the answers to the first questions in the order of asking."""
        groups = None if self.groups is None else self.groups[self.order.places][:questions]
        return RunAnswers(quality[:, :questions], groups, self.equal)

    def block(self, begin: int, end: int, runs: AbstractSet[str] | Sequence[str]) -> QuestionBlock:
        """Return some questions, in the order of asking, with some runs."""
        asked = self.rows.rows_of(self.questions[place] for place in self.order.places[begin:end])
        collection = self.prepared.collection.only(asked)
        collection = replace(collection, runs=tuple(run for run in collection.runs if run.name in runs))
        return QuestionBlock(collection, self.answering, self.depth)

    @property
    def everything(self) -> QuestionBlock:
        """The requests if no run drops out."""
        return self.block(0, len(self.questions), self.runs)

    def asked(self) -> dict[str, Callable[[], Iterator[StageUnit]]]:
        """Return the requests if no run drops out, by stage."""
        return {_STAGE: self.everything.units}

    def taken(self, session: Session) -> Amount:
        """Return the cost of answers and ratings so far, no matter when it was paid."""
        amount = session.usage(_STAGE).standalone
        for metric in self.answering.llm_metrics:
            amount += session.usage(rating_stage(_STAGE, metric)).standalone
        return amount

    def about(self, inputs: Mapping[str, InputFile]) -> dict[str, object]:
        """Return what distinguishes this choice from others."""
        # A bound holds for one order of questions and one margin; after a look, neither may change.
        about: dict[str, object] = {role: inputs[role].sha256[:12] for role in self.prepared.config.files()}
        rules = replace(self.prepared.config.rules(), margin_points=100 * self.rules.margin)
        return about | {
            **asdict(rules),
            "runs": list(self.runs),
            "questions": len(self.questions),
            "metric": self.answering.metrics[0].name,
            "model": self.answering.model,
            "prompt": self.prepared.config.answers.prompt,
        }


def _groups_of(prepared: Prepared, rows: QuestionRows, questions: Sequence[str]) -> Ints | None:
    """Return the number of each question's unit, if weights differ or questions share a declared group."""
    units = rows.units(questions, prepared.groups)
    return None if units is None else np.unique(units, return_inverse=True)[1]


def _equal_of(prepared: Prepared, runs: Sequence[Run], query_ids: Sequence[str]) -> Bools | None:
    """Return which pairs of runs have equal lists; None if equal lists may get different answers."""
    # An application may answer the same list differently.
    if prepared.deciding is None or isinstance(prepared.deciding.answerer, Imported):
        return None
    return equal_lists(runs, query_ids, prepared.answer_depth)


def contest(
    experiment: Config | str | Path, margin: float | None, cache: str | Path | None = None, *, trust: bool = False
) -> RunContest:
    """Return a choice's requests and rules, with everything read and checked.

    Raises:
        ConfigError, DataError, UsageError: a file is wrong; there are fewer than two runs; answers are rated elsewhere.
    """
    config = load(experiment, trusted=trust)
    prepared = prepare(config, cache=cache)
    if len(prepared.collection.runs) < 2:
        raise UsageError("choose needs two or more runs to choose between")
    answers, deciding = prepared.config.answers, prepared.deciding
    outcome = str(answers.declared.outcome)
    if deciding is None or isinstance(deciding.answerer, Imported):
        raise UsageError(
            f"choose asks for answers, but those that {outcome!r} rates exist already: simulate it on results of"
            " `judgekit run` with --replay"
        )
    if answers.directions.of(outcome) == "lower":
        raise UsageError(f"choose takes the run with the highest {outcome}, but lower {outcome} is better")
    # One metric only: others of the file may ask an LLM for ratings that no choice needs.
    metric = deciding.metrics[answers.metrics.index(outcome)]
    made = RunContest(prepared, replace(deciding, metrics=(metric,)), rules_of(prepared.config, margin))
    # Bounds are about groups; with fewer, none would ever be narrow enough to stop.
    if made.groups is not None or made.rows.question:
        units = len(made.questions if made.groups is None else np.unique(made.groups))
        if units < LEAST:
            what = "different questions" if prepared.groups is None else "groups of questions"
            raise UsageError(f"choose needs at least {LEAST} {what}, but there are {units}")
    return made


def rules_of(config: Config, margin: float | None) -> RaceRules:
    """Return the rules of a choice; a margin in points wins over that of the experiment."""
    analysis = config.analysis
    wanted = analysis.margin_points if margin is None else margin
    return RaceRules(wanted / 100, analysis.confidence, analysis.resamples, analysis.seed)


@dataclass
class _Course:
    """A race in progress: its answers, results and cost."""

    contest: RunContest
    budget: Budget
    session: Session
    progress: Progress
    looks: list[Look] = field(default_factory=list)
    taken: Amount = field(default_factory=Amount)
    lists: int = 0
    out_of_money: bool = False

    def __post_init__(self) -> None:
        shape = len(self.contest.runs), len(self.contest.questions)
        self.quality = np.full(shape, np.nan)

    async def run(self) -> None:
        """Ask block by block until the race stops, or money or questions run out."""
        contest, rules = self.contest, self.contest.rules
        # Runs that dropped out stay out, since their later answers were never asked for.
        left = np.ones(len(contest.runs), np.bool_)
        begin, answers = 0, 0
        # Each other run may be shown to be worse by chance, so they share the error.
        error = rules.error / (len(contest.runs) - 1)
        for end in contest.order.ends:
            block = contest.block(begin, end, {contest.runs[run] for run in np.flatnonzero(left)})
            table = await self._asked(block)
            if table is None:
                self.out_of_money = True
                break
            self._take(table, begin, end)
            self.lists += block.lists
            answers += int(left.sum()) * (end - begin)
            known = limits(contest.answered(self.quality, end), [end], error)[0]
            shown = look(known, left, answers, rules)
            self._note(shown)
            left, begin = shown.left, end
            if stops(shown, rules):
                break

    async def _asked(self, block: QuestionBlock) -> pd.DataFrame | None:
        """Return the answers of a block; None if it exceeds the budget."""
        # Whether a block counts depends on the replies' cost, not on when it was paid, so that a killed choice ends
        # like any other.
        share = _ROOM * block.lists / self.lists if self.lists else 0.0
        if not self.budget.allows(self.taken, 1 + share):
            return None
        self.session.allow(self.budget.less(self.taken))
        try:
            table = await block.answers(self.session)
        except BudgetError:
            return None
        taken = self.contest.taken(self.session)
        if not self.budget.allows(taken):
            return None
        self.taken = taken
        return table

    def _take(self, table: pd.DataFrame, begin: int, end: int) -> None:
        """Take in the answers of a block."""
        asked = [self.contest.questions[place] for place in self.contest.order.places[begin:end]]
        # In the order of asking, not of the replies.
        values = self.contest.rows.merged(means_of(table)).pivot(index="run", columns="query_id", values="value")
        self.quality[:, begin:end] = values.reindex(index=list(self.contest.runs), columns=asked)

    def _note(self, shown: Look) -> None:
        """Keep and report the result of a block."""
        runs, number = self.contest.runs, len(self.looks) + 1
        self.looks.append(shown)
        took = f"{self.taken.requests:,} requests"
        if self.taken.at_most:
            took = f"{'at most about ' if self.taken.uncounted else ''}{self.taken.at_most:,.2f} spent"
        line = block_line(number, shown, runs, took)
        self.progress(Event("choose", shown.questions, len(self.contest.questions), note=line))

    def chosen(self) -> ChoiceResult:
        """Return the choice."""
        contest = self.contest
        if not self.looks:
            raise BudgetError("the budget does not pay for the first block of questions: raise it")
        asked = self.looks[-1].questions
        choice = concluded(self.looks, contest.answered(self.quality, asked), contest.rules)
        missing = 0
        for run, values in enumerate(self.quality):
            gone = choice.dropped.get(run)
            missing += int(np.isnan(values[: gone.questions if gone else asked]).sum())
        return ChoiceResult(
            runs=contest.runs,
            choice=choice,
            questions=len(contest.questions),
            rules=contest.rules,
            spent=Spent(
                requests=self.taken.requests,
                money=self.taken.at_most,
                uncounted=self.taken.uncounted > 0,
                everything=contest.everything.lists / self.lists,
                limit=self.budget.max_cost,
                currency=contest.prepared.config.costs().currency,
            ),
            missing=missing,
            outcome=f"{contest.answering.metrics[0].name} of answers from the top {contest.depth}",
            caution=contest.prepared.outcome.caution,
            out_of_money=self.out_of_money,
            repeats=contest.prepared.repeats,
        )


@job
def choose(
    experiment: Config | str | Path,
    *,
    margin: float | None = None,
    out: str | Path | None = None,
    trust: bool = False,
    asking: Asking = UNLIMITED,
) -> Job[ChoiceResult]:
    """Choose the run to ship, asking only as many questions as that takes. Works in notebooks too.

    Args:
        experiment: the experiment file, or what `load` returned.
        margin: largest acceptable loss against the best run, in points; by default the experiment's ``margin_points``.
        out: folder for the claims; without it nothing is written.
        trust: as for `judgekit.run`.
        asking: as for `judgekit.run`. Its limits count everything that the choice needs, stored replies included.

    Returns:
        The run to ship, its largest possible loss against the best in points (hundredths of the quality's scale), and
        the claims behind it. The race is that of Waudby-Smith et al. (2024), the bound that of multiple comparisons
        with the best (Hsu, 1996).

    Raises:
        ConfigError, DataError, UsageError: nothing was sent.
        StoppedError: the endpoint failed, or the budget does not pay for a first block; call it again to continue.
    """
    made = contest(experiment, margin, asking.cache, trust=trust)
    config = made.prepared.config
    files = NOWHERE
    if out is not None:
        files = ResultFiles(
            Path(out), _FILES, command="choose", roles=config.files(), refuse=partial(_check_same, made)
        )

    async def do(session: Session, files: ResultFiles) -> ChoiceResult:
        if files.writes:
            files.begin()
            write_atomic(files.file("resolved.toml"), resolved_toml(config))
            # Identify the choice even if the process is killed.
            about = made.about(files.inputs)
            write_atomic(files.file("choice.json"), json.dumps({"choice": about}, indent=1) + "\n")
        for line in made.prepared.collection.notes:
            asking.progress(Event("inputs", 0, 0, note=line))
        course = _Course(made, asking.budget, session, asking.progress)
        await course.run()
        chosen = course.chosen()
        if files.writes:
            chosen.write(files.place, about)
            files.close()
        return chosen

    return Job(
        made.asked(),
        do,
        asking.priced(config.price_list()),
        files,
        # The number looks like a price, but it is an upper bound: the most expensive course.
        about_plan="this is the most: runs that drop out are asked no further, and asking stops once the choice is"
        " made",
    )


def _check_same(made: RunContest, files: ResultFiles) -> None:
    """Refuse to replace another choice."""
    folder, about = files.place, made.about(files.inputs)
    before = about
    with suppress(OSError, ValueError, KeyError, TypeError):
        before = dict(json.loads((folder / "choice.json").read_bytes())["choice"])
    for name in dict.fromkeys([*before, *about]):
        if before.get(name) != about.get(name):
            raise UsageError(
                f"{folder} holds another choice ({name} was {before.get(name)!r}, is {about.get(name)!r}). Its promise"
                " does not hold for this one: choose another --out"
            )


def replay_results(folder: str | Path, margin: float | None = None) -> tuple[Replay, tuple[str, ...], RaceRules]:
    """Play the race on the answers of a results folder, in the order of the seed and in 200 random ones.

    Raises:
        DataError, UsageError: the folder does not hold results, or not the answers of two runs.
    """
    prepared, _, quality = read_results(Path(folder))
    declared = prepared.config.answers.declared
    if declared.assigned is not None:
        raise UsageError("choose compares runs on the same questions, but each rating is about one run drawn at random")
    rows = quality[(quality["metric"] == declared.outcome) & (quality["depth"] == prepared.answer_depth)]
    model = rows["model"].max() if prepared.deciding is None else prepared.deciding.model
    # Sort by id, as in a real choice, so that the order of the file does not matter.
    rows = rows[rows["model"] == model]
    alike = QuestionRows.of(prepared.questions, rows["query_id"])
    wide = alike.merged(means_of(rows)).pivot(index="run", columns="query_id", values="value").sort_index(axis=1)
    runs = [run for run in prepared.collection.runs if run.name in wide.index]
    if len(runs) < 2:
        raise UsageError(f"{folder}: simulating a choice takes answers of two or more runs")
    names, questions = tuple(run.name for run in runs), wide.columns.tolist()
    values = wide.loc[list(names)].to_numpy(np.float64)
    equal = _equal_of(prepared, runs, alike.rows_of(questions))
    answers = RunAnswers(values, _groups_of(prepared, alike, questions), equal)
    rules = rules_of(prepared.config, margin)
    return replay(answers, rules), names, rules
