"""Plans a pilot before anything is paid: its questions, its cost, and what it can show. Asks no model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field, replace
from html import escape
from itertools import chain
from os.path import relpath
from pathlib import Path
from typing import Final, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from judgekit.analysis.claims import CLAIMS, Claim, claims_of, wrapped
from judgekit.analysis.money import Money
from judgekit.analysis.power import questions_for, race_length, shown_lead, shown_lead_of_means
from judgekit.analysis.wording import UNKNOWN
from judgekit.answers.imported import Imported
from judgekit.client.asking import UNLIMITED, Asking
from judgekit.client.budget import Budget, Spending
from judgekit.client.estimates import Foreseen, exactly, rounded
from judgekit.client.stages import AllStages
from judgekit.client.waves import Plan, planned
from judgekit.collection import distinct_pairs
from judgekit.data.documents import Queries
from judgekit.data.files import read_table, write_table
from judgekit.data.runs import Run
from judgekit.data.tables import ALL, SAMPLE, SCORES
from judgekit.errors import DataError, UsageError
from judgekit.experiment.file import Config, load
from judgekit.experiment.more_answers import MoreAnswers, share_in
from judgekit.experiment.prepare import Prepared, prepare
from judgekit.experiment.querylog import LogCoverage, compared
from judgekit.experiment.run import asked
from judgekit.job import count
from judgekit.people.sampling import systematic
from judgekit.rules import Rules

Floats = npt.NDArray[np.float64]

_PILOT: Final = 200
"""The default number of questions to propose."""
PEOPLE, ANSWERS, TOGETHER = "people", "answers", "pilot together"
_SHOWN, _VARIANTS = 3.5, 4.7
_WORTH_SAYING: Final = 0.01
_DIFFER: Final = (0.1, 0.2, 0.4)
_GOOD: Final = (0.5, 0.7, 0.9)
"""The shares of good ratings to plan for if each rating is about one run."""
_WIDTH: Final = 110
_UNCUT: Final = 1_000_000
_PRICED: Final = 20
"""The number of questions from which the cost of a further question and answer is estimated."""
_AHEAD: Final = 0.1
"""The lead for which a plan estimates how soon a choice ends."""
_COUNTS: Final = ("requests", "judgments", "references", "tokens", "money")
_UNKNOWN: Final = exactly(math.nan)


def distances(runs: Sequence[Run], query_ids: Iterable[str], depth: int) -> Floats:
    """Return how much the runs' lists of each query differ: 0 if all are equal, 1 if no two share a document."""
    gains = 1 / np.log2(np.arange(2, depth + 2))
    # Lists without a common document differ by the sum of their gains.
    most = 2 * gains.sum() * max(len(runs) * (len(runs) - 1), 1)
    # Ranks have nDCG's gains: a change at the top weighs more than one at the end.
    found = []
    for query_id in query_ids:
        lists = [run.top(query_id, depth) for run in runs]
        column_of = {doc_id: column for column, doc_id in enumerate(dict.fromkeys(chain.from_iterable(lists)))}
        table = np.zeros((len(runs), len(column_of)))
        for row, doc_ids in zip(table, lists, strict=True):
            row[[column_of[doc_id] for doc_id in doc_ids]] = gains[: len(doc_ids)]
        found.append(np.abs(table[:, None] - table[None]).sum() / most)
    return np.array(found, dtype=np.float64)


def smallest_r(questions: int, runs: int) -> tuple[float, float]:
    """Return the smallest pooled within-question r that 4 of 5 pilots show: for any runs, for variants of one."""
    reach = math.sqrt(questions * (runs - 1))
    return _SHOWN / reach, _VARIANTS / reach


@dataclass(frozen=True)
class PilotPlan:
    """The questions of a pilot, their cost, and what they can show.

    Attributes:
        runs: the names of the runs.
        depth: the depth at which their lists are compared: that of the primary measure.
        questions: the number of questions.
        differ: the number of questions with different lists.
        asked: the number of questions that the results already hold.
        drawn: the number of questions in the pilot, including those already asked.
        sample: the pilot's table ``query_id, weight``, for ``[data] sample``. Questions already asked have weight 1,
            the others 1 / their probability of being drawn.
        costs: by strategy and set of ``questions`` (pilot or all): ``requests`` that the store lacks, ``judgments`` by
            people, ``references`` to write, and estimates of ``tokens``, replies included, and ``money``, most likely
            from ``money_low`` to ``money_high``. NaN is unknown.
        power: what the pilot shows and what a choice takes if equally good runs answer 10, 20 or 40 % of the questions
            differently (``differ``): the smallest ``r`` that is shown, for any runs and for ``variants`` of one
            retriever; the smallest ``lead`` in points that shows the best run; the number of questions that bounds the
            loss by the margin if several runs are equally good (``bound``); the number of available questions after
            which `judgekit choose` ends if one run leads by ten points (``ahead``), and the share that this ``saves``.
            If each rating is about one run: only the ``lead`` shown, by the share of ``good`` ratings. Empty with one
            run.
        margin: the experiment's margin, in points.
        currency: the currency of all money.
        more_answers: the worth of several answers to each question, compared with further questions; None if there is
            nothing to choose between or nobody answers.
        budget: the given budget.
        coverage: how the questions compare with a query log, if one is given.
        file: the file of the written sample.
        own: the sample that the experiment names, if any.
        folder: the experiment file's folder, to which its paths are relative.
        trusted: the labeler whose labels replace answers; "" if there are answers.
        notes: a sentence for each problem with the runs, or reason why the decision cannot compare them.
    """

    runs: tuple[str, ...]
    depth: int
    questions: int
    differ: int
    asked: int
    drawn: int
    sample: pd.DataFrame = field(repr=False)
    costs: pd.DataFrame = field(repr=False)
    power: pd.DataFrame = field(repr=False)
    margin: float
    currency: str = ""
    more_answers: MoreAnswers | None = None
    budget: float | None = None
    coverage: LogCoverage | None = None
    file: Path | None = None
    own: Path | None = None
    folder: Path = Path()
    trusted: str = ""
    notes: tuple[str, ...] = ()

    def write(self, path: str | Path) -> PilotPlan:
        """Write the sample as CSV, in place of an earlier one, and return the plan with that file.

        Raises:
            UsageError: the path holds another file, or the experiment's own sample with questions that this one lacks.
        """
        path = Path(path)
        if path.suffix != ".csv":
            raise UsageError(f"{path}: the name of a sample ends in .csv")
        if path.exists():
            self._check_replaced(path)
        write_table(self.sample, path)
        return replace(self, file=path)

    def _check_replaced(self, path: Path) -> None:
        """Refuse to replace other files, or the experiment's own sample if this one lacks some of its questions."""
        if not (path.is_file() and path.read_bytes().startswith(",".join(SAMPLE.columns).encode())):
            raise UsageError(f"{path} exists and is not a sample: choose another --out")
        # Other samples may be drafts, but the experiment's own may already have answers.
        if self.own is None or not path.samefile(self.own):
            return
        before = set(pd.read_csv(path, dtype=str, keep_default_na=False)["query_id"])  # not an input: it is rewritten
        lost = before.difference(self.sample["query_id"])
        if lost:
            raise UsageError(
                f"{path} is the sample of this experiment, and the plan leaves out {len(lost):,} of its"
                f" {len(before):,} questions. Add to it with --results, choose another --out, or delete it"
            )

    def __str__(self) -> str:
        return "\n".join([*self._about(), "", *self._table(), *self._money()])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    @property
    def claims(self) -> tuple[Claim, ...]:
        """All claims about the questions and what they can show."""
        return tuple(self._claims())

    def _claims(self) -> Iterator[Claim]:
        """Yield the claims in the order of their lines."""
        size = f"{self.questions:,} questions"
        if len(self.runs) > 1:
            lists = f"differ on {self.differ:,} of {size} at depth {self.depth} ({len(self.runs)} runs)."
        else:
            lists = f"{size}, one run: the pilot is drawn at random, and there is nothing to choose between."
        yield Claim("lists differ", lists, value=self.differ, line="Lists")
        yield Claim("pilot", self._pilot(), value=self.drawn, line="Pilot")
        if self.trusted:
            order = f"the order of the runs under {self.trusted}: there are no answers and no references."
            yield Claim("outcome", order, subject=self.trusted, line="Outcome")
        if len(self.power):
            leads = self.power["lead"]
            yield Claim("can show", self._can_show(), low=leads.min(), high=leads.max(), line="Can show")
            if "bound" in self.power and not self.trusted:
                bounds = self.power["bound"]
                yield Claim("choice takes", self._choosing(), low=bounds.min(), high=bounds.max(), line="Choose")
        if self.more_answers is not None:
            yield Claim("more answers", str(self.more_answers), line="Answers")
        if self.coverage is not None and self.coverage.warning:
            yield Claim("other questions", self.coverage.warning, line="Beware")
        for note in self.notes:
            yield Claim("beware", note, line="Beware")

    def _about(self) -> Iterator[str]:
        """Yield the claims as lines, with a query log's clusters before the warnings about the runs."""
        clusters = list(self.coverage.lines()) if self.coverage is not None else []
        for claim in self.claims:
            if claim.kind == "beware":
                yield from clusters
                clusters = []
            # Never wrap a path: users copy it.
            width = _UNCUT if claim.kind in ("lists differ", "pilot", "outcome", "other questions") else _WIDTH
            yield wrapped([(claim.line, claim.sentence)], width)
        yield from clusters

    def _pilot(self) -> str:
        """Return the number of questions in the pilot, and the path of their file."""
        line = f"{self.drawn:,} questions"
        if self.drawn < len(self.sample):
            line += f" in {len(self.sample):,} rows"
        if self.asked:
            line += f", {self.drawn - self.asked:,} of them new"
        elif len(self.runs) > 1 and self.drawn == self.differ:
            line += " (all that differ)"
        line += "."
        if self.file is not None and self.file != self.own:
            line += f' In [data] write: sample = "{relpath(self.file, self.folder)}"'
        return line

    def _can_show(self) -> str:
        """Return the smallest r and lead that the pilot can show."""
        if "good" in self.power:
            return (
                f"the best of {len(self.runs)} runs by the means of their ratings, if it leads by"
                f" {self._by_share('lead')} points, where 50, 70 or 90 % of the ratings are good and no user gives"
                " several. Nothing of labels: for that, have some questions rated for both runs."
            )
        followed = "judgments" if self.trusted else "answers"
        first = self.power.iloc[0]
        return (
            f"labels that follow the {followed} within a question with a correlation r of {_r(first['r'])}"
            f" ({_r(first['variants'])} for variants of one retriever); the best of {len(self.runs)} runs, if it"
            f" leads by {self._by_share('lead')} points, where 10, 20 or 40 % of the answers of equal"
            " runs differ. How much a labeling gains cannot be planned."
        )

    def _choosing(self) -> str:
        """Return the cost of `judgekit choose`."""
        text = (
            f"To ship a run that loses at most {self.margin:g} points takes about {self._by_share('bound')}"
            f" questions if all are equally good. If one leads by {100 * _AHEAD:g} points, judgekit choose "
        )
        if self.power["saves"].max() < _WORTH_SAYING:
            return text + f"is not likely to end before all {self.questions:,} questions are asked."
        saved = self._by_share("saves", "{:.0%}")
        return text + f"ends after about {self._by_share('ahead')} of {self.questions:,}: {saved} less."

    def _by_share(self, column: str, form: str = "{:,.0f}") -> str:
        """Return a column of `power` for each share of differing answers."""
        *others, last = [form.format(value) for value in self.power[column]]
        return f"{', '.join(others)} or {last}"

    def _table(self) -> Iterator[str]:
        """Yield the costs as lines: of the pilot, and of all questions."""
        shown = [name for name in _COUNTS if name == "requests" or self.costs[name].fillna(0).any()]
        of_pilot = self.costs["questions"] == "pilot"
        pilot, every = self.costs[of_pilot], self.costs[~of_pilot]
        cells: dict[str, list[str]] = {}
        for column in shown:
            cells[column] = []
            for part, whole in zip(_cells(pilot, column), _cells(every, column), strict=True):
                cells[column].append(part if part == whole else f"{part} / {whole}")
        yield pd.DataFrame(cells, pilot["strategy"].tolist()).to_string()
        line = "Pilot / all questions. Nothing was asked"
        if self.costs["requests"].any():
            line += "; replies may lead to more requests"
        yield f"{line}."
        if "money" in shown:
            unit = f" in {self.currency}" if self.currency else ""
            yield f"Tokens and money{unit}: about, with replies. References that these questions have cost nothing; new"
            yield "questions need them."

    def _money(self) -> Iterator[str]:
        """Yield the rest of the budget."""
        if self.budget is None:
            return
        pilot = _of_pilot(self.costs)
        spent = float(pilot["money"])
        taken = f"about {_count(spent)} ({_count(pilot['money_low'])} to {_count(pilot['money_high'])})"
        if spent > self.budget:
            yield f"Budget    {_count(self.budget)} does not pay for this pilot ({taken}): ask fewer questions."
        else:
            rest = _count(self.budget - spent)
            yield f"Budget    {_count(self.budget)}: the pilot takes {taken}, about {rest} is left."


def _r(value: float) -> str:
    return f"{value:.2f}".removeprefix("0") if value < 1 else "1"


def _cells(costs: pd.DataFrame, column: str) -> Iterator[str]:
    """Yield the numbers of a column of costs as text; estimates have three digits."""
    for row in costs.to_dict("records"):
        value = float(row[column])
        foreseen = column == "tokens" or (column == "money" and row["money_low"] < row["money_high"])
        yield rounded(value) if foreseen and value > 0 else _count(value)


def _count(value: float) -> str:
    if math.isnan(value):
        return "-"
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.2f}"


def _of_pilot(costs: pd.DataFrame) -> pd.Series:
    """Return the cost of the whole pilot."""
    return costs[(costs["strategy"] == TOGETHER) & (costs["questions"] == "pilot")].iloc[0]


def plan(
    experiment: Config | str | Path,
    *,
    questions: int | None = None,
    results: str | Path | None = None,
    budget: float | None = None,
    query_log: str | Path | None = None,
    trust: bool = False,
    asking: Asking = UNLIMITED,
) -> PilotPlan:
    """Plan a pilot: its questions, its cost, and what it can show. Nothing is asked or written.

    Args:
        experiment: the experiment file, or what `load` returned. Its ``sample`` and ``limit`` are ignored.
        questions: number of questions to propose; by default 200, or all with different lists. With ``results``,
            further ones.
        results: the results folder of a run: its questions stay in the sample and are not proposed again.
        budget: money for pilot and labels; without ``questions``, the pilot takes at most half of it.
        query_log: a file of queries, or of lines (``.txt``), that the questions should look like.
        trust: as for `judgekit.run`.
        asking: as for `judgekit.run`; stored replies need not be asked.

    Returns:
        The plan: ``print(plan)`` shows it, ``plan.write("pilot.csv")`` writes the sample for ``[data] sample``.

    Raises:
        ConfigError, DataError, UsageError: a file is invalid, all lists are equal, or a budget lacks prices.
    """
    config = load(experiment, trusted=trust)
    # The plan is about all questions, so an earlier sample must not limit it.
    own = None if config.data.sample is None else config.resolve(config.data.sample)
    whole = config.updated(data={"sample": None, "limit": None})
    prepared = prepare(whole, keys=False, referenced=False, cache=asking.cache)
    earlier = None if results is None else Path(results)
    lists = _Lists.of(prepared, earlier)
    money = config.costs()
    budget = money.budget if budget is None else budget
    if budget is not None and not budget > 0:
        raise UsageError(f"a budget must be above 0, not {budget:g}")
    if questions is not None and not 1 <= questions <= lists.left:
        raise UsageError(
            f"{questions:,} questions were requested, but only {lists.left:,} with different lists are left"
        )
    # Questions with equal lists have equal answers: they cost as much and show nothing.
    size, seed = min(questions or _PILOT, lists.left), config.analysis.seed
    sample = lists.drawn(size, seed)
    costs = _costs(prepared, sample, asking.cache)
    if budget is not None:
        spent = float(_of_pilot(costs)["money"])
        if math.isnan(spent):
            raise UsageError(
                "a budget needs prices: [prices.MODEL] for every model, and the price of a reference if"
                " questions lack some"
            )
        # The other half is for the pilot's decision: labels or answers of further questions.
        if questions is None and spent > budget / 2:
            sample = lists.drawn(max(1, int(size * budget / 2 / spent)), seed)
            costs = _costs(prepared, sample, asking.cache)
    texts = [query.text for query in prepared.collection.queries.values()]
    return PilotPlan(
        runs=tuple(prepared.run_names),
        depth=lists.depth,
        questions=len(lists.rows),
        differ=int((lists.distance > 0).sum()),
        asked=len(lists.asked),
        drawn=lists.questions_in(sample),
        sample=sample,
        costs=costs,
        power=_power(config.rules(), lists, sample, config.answers.declared.assigned is not None),
        margin=config.analysis.margin_points,
        currency=money.currency,
        more_answers=_more_answers(prepared, lists, sample, earlier, asking.cache),
        own=own,
        folder=config.path.parent,
        trusted=prepared.trusted,
        budget=budget,
        coverage=None if query_log is None else compared(texts, query_log),
        notes=prepared.collection.notes,
    )


@dataclass(frozen=True)
class _Lists:
    """The questions of an experiment, and how much the runs' lists for each differ.

    Attributes:
        rows: the queries of each question, by the question's id.
        distance: how much each question's lists differ, as the mean over its queries; 1 with one run.
        depth: the depth at which they are compared.
        runs: number of runs.
        asked: the questions that an earlier run asked.
    """

    rows: Mapping[str, Sequence[str]]
    distance: Floats
    depth: int
    runs: int
    asked: AbstractSet[str] = frozenset()

    @property
    def ids(self) -> list[str]:
        """The questions by their first queries."""
        return list(self.rows)

    @classmethod
    def of(cls, prepared: Prepared, results: Path | None) -> Self:
        """Compare the lists of an experiment; a results folder may already hold some questions.

        Raises:
            UsageError: no question with different lists is left to ask.
        """
        collection, depth = prepared.collection, prepared.answer_depth
        runs, rows = len(collection.runs), dict[str, list[str]]()
        for query_id in collection.queries:
            rows.setdefault(prepared.questions[query_id], []).append(query_id)
        distance = np.ones(len(rows))
        if runs > 1:
            by_query = distances(collection.runs, chain.from_iterable(rows.values()), depth)
            begins = np.cumsum([0, *map(len, rows.values())])[:-1]
            distance = np.add.reduceat(by_query, begins) / [len(own) for own in rows.values()]
        asked: AbstractSet[str] = frozenset()
        if results is not None:
            asked = {prepared.questions[query_id] for query_id in _asked(results, collection.queries)}
        lists = cls(rows, distance, depth, runs, asked)
        if not lists.left:
            raise UsageError(f"the runs have the same lists at depth {depth} for every question that is left to ask")
        return lists

    @property
    def places(self) -> npt.NDArray[np.intp]:
        """The positions of the questions to draw from: not asked yet, and with different lists."""
        return np.flatnonzero((self.distance > 0) & ~np.isin(self.ids, list(self.asked)))

    @property
    def left(self) -> int:
        """The number of questions to draw from."""
        return len(self.places)

    def drawn(self, n: int, seed: int) -> pd.DataFrame:
        """Return the sample: n questions drawn with probabilities by the squared difference of their lists."""
        # Questions asked before have weight 1, and new ones are drawn from the rest: weighted sums stay unbiased
        # however the earlier ones were chosen.
        weights = dict.fromkeys(self.asked, 1.0)
        ids = self.ids
        probability, at = systematic(self.distance[self.places] ** 2, n, np.random.default_rng(seed))
        for place in at:
            weights[ids[self.places[place]]] = 1 / probability[place]
        # All queries of a question are asked, since their lists may differ; equal requests are sent once.
        rows = [(query_id, weights.get(name)) for name, own in self.rows.items() for query_id in own]
        sample = pd.DataFrame(rows, columns=["query_id", "weight"]).astype({"weight": "float64"})
        return SAMPLE.check(sample.dropna().reset_index(drop=True))

    def questions_in(self, sample: pd.DataFrame) -> int:
        """Return the number of questions in a sample."""
        return int(np.isin(self.ids, sample["query_id"]).sum())


def _asked(folder: Path, queries: Queries) -> set[str]:
    """Return the questions asked by a run."""
    path = folder / "scores.parquet"
    if not path.is_file():
        raise DataError("does not hold results of `judgekit run` (no scores.parquet)", folder)
    asked = set(read_table(SCORES, path)["query_id"]) - {ALL}
    unknown = sorted(asked.difference(queries))
    if unknown:
        raise DataError(f"query {unknown[0]!r} is not in the queries: are these results of another experiment?", folder)
    return asked


def _costs(prepared: Prepared, sample: pd.DataFrame, cache: str | Path | None) -> pd.DataFrame:
    """Return the cost of strategies for the pilot and for all questions; see `PilotPlan.costs`."""
    pilot = prepared.collection.only(sample["query_id"])
    rows = []
    for questions, collection in (("pilot", pilot), ("all", prepared.collection)):
        strategies = _Strategies.of(replace(prepared, collection=collection), cache)
        for strategy, counts in strategies.costs():
            rows.append({"strategy": strategy, "questions": questions, **counts})
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class _Strategies:
    """The cost of judging some questions, by strategy; `plans` counts the requests by stage."""

    prepared: Prepared
    plans: Mapping[str, Plan]
    money: Money

    @classmethod
    def of(cls, prepared: Prepared, cache: str | Path | None) -> Self:
        """Count the requests, as if every question had a reference answer."""
        return cls(prepared, count(asked(_referenced(prepared)), cache), prepared.config.costs())

    @classmethod
    def anew(cls, prepared: Prepared, cache: str | Path | None) -> Self:
        """Count the requests as if the store were empty, but with its lengths of replies."""
        asks = asked(_referenced(prepared))
        stored = count(asks, cache)
        plans = {name: planned(units(), AllStages(), lambda _: {}) for name, units in asks.items()}
        for name, plan in plans.items():
            plan.observed, plan.elsewhere = stored[name].observed, stored[name].elsewhere
        return cls(prepared, plans, prepared.config.costs())

    def costs(self) -> Iterator[tuple[str, dict[str, float]]]:
        """Yield each strategy with its costs; see `PilotPlan.costs`."""
        collection, answering = self.prepared.collection, self.prepared.answering
        references, own = False, 0.0
        pairs = distinct_pairs(collection, self.prepared.questions)
        for name, labeler in self.prepared.labelers.items():
            labels = pairs * self.money.price.get(name, 0.0)
            yield name, self._taken(self.plans[f"label {name}"], labeler.needs.references, labels)
            references |= labeler.needs.references
            own += labels
        # Every plan includes people, even without a price: readers know what a judgment costs them.
        judged = exactly(_times(pairs, self.money.judgment))
        yield PEOPLE, _row(judged, judgments=pairs)
        for stage, way in answering.items():
            referenced = any(metric.needs_references for metric in way.metrics)
            references |= referenced
            if way.llm_metrics or not isinstance(way.answerer, Imported):
                name = ANSWERS if len(answering) == 1 else stage
                yield name, self._taken(self.plans[stage], referenced)
        yield TOGETHER, self._taken(self.plans["all"], references, own)

    def each(self) -> tuple[float, float]:
        """Return the cost of a question without its answers, and of one answer of all runs to it.

        That is money or, if unknown, tokens; NaN if both are unknown, or if no answers are asked for.
        """
        prepared, answering = self.prepared, self.prepared.answering
        pairs = distinct_pairs(prepared.collection, prepared.questions)
        references = any(metric.needs_references for way in answering.values() for metric in way.metrics)
        labels: list[dict[str, float]] = []
        for name, labeler in prepared.labelers.items():
            own = pairs * self.money.price.get(name, 0.0)
            labels.append(self._taken(self.plans[f"label {name}"], False, own))
            references |= labeler.needs.references
        labels.append(self._taken(Plan(), references))
        answers: list[dict[str, float]] = []
        for stage, way in answering.items():
            if not isinstance(way.answerer, Imported):
                answers.append(self._taken(self.plans[stage], False))
        if not answers:
            return math.nan, math.nan
        questions = len({prepared.questions[query_id] for query_id in prepared.collection.queries})
        whole = pd.DataFrame([*labels, *answers]).sum(skipna=False)
        unit = "money"
        if math.isnan(whole["money"]) or not whole["money"]:
            # Tokens do not include references or labels with their own price.
            if whole["references"] or self.money.price:
                return math.nan, math.nan
            unit = "tokens"
        of_labels, of_answers = (sum(row[unit] for row in rows) for rows in (labels, answers))
        return of_labels / questions, of_answers / questions / prepared.config.answers.samples

    def _taken(self, plan: Plan, references: bool, labels: float = 0.0) -> dict[str, float]:
        """Return the cost of requests, missing references, and labels with a price."""
        config, lacking = self.prepared.config, 0
        if references:
            queries, question = self.prepared.collection.queries, self.prepared.questions
            referenced = {question[query_id] for query_id, query in queries.items() if query.answers}
            lacking = len({question[query_id] for query_id in queries} - referenced)
        spent = exactly(labels + _times(lacking, self.money.reference))
        requests, tokens = plan.requests - plan.cached, 0.0
        if requests:
            spent += plan.money(Spending(Budget(), config.price_list()).price) or _UNKNOWN
            tokens = plan.tokens.about
        return _row(spent, requests=requests, references=lacking, tokens=tokens)


def _referenced(prepared: Prepared) -> Prepared:
    """Return an experiment as if every question had a reference answer."""
    # Without references, a labeler that needs them asks nothing, which would hide its price until the references are
    # paid.
    queries = {}
    for query_id, query in prepared.collection.queries.items():
        queries[query_id] = query if query.answers else replace(query, answers=("?",))
    return replace(prepared, collection=replace(prepared.collection, queries=queries))


def _more_answers(
    prepared: Prepared, lists: _Lists, sample: pd.DataFrame, results: Path | None, cache: str | Path | None
) -> MoreAnswers | None:
    """Return the worth of several answers to each question; see `PilotPlan.more_answers`."""
    answering, answers = prepared.answering.values(), prepared.config.answers
    asking = [way.answerer for way in answering if not isinstance(way.answerer, Imported)]
    if lists.runs < 2 or not answering or prepared.trusted or answers.declared.assigned is not None:
        return None
    share = UNKNOWN
    if results is not None and (results / "claims.csv").is_file():
        share = share_in(claims_of(read_table(CLAIMS, results / "claims.csv")))
    drawn_anew = any(answerer.endpoint.params.get("temperature") != 0 for answerer in asking)
    if asking and not drawn_anew and math.isnan(share.value):
        # At temperature 0 a question has one answer.
        return None
    drawn = {*sample["query_id"]}
    further = [name for name in (lists.ids[place] for place in lists.places) if name not in drawn]
    question, answer = math.nan, math.nan
    if asking and further:
        priced = chain.from_iterable(lists.rows[name] for name in further[:_PRICED])
        some = replace(prepared, collection=prepared.collection.only(priced))
        question, answer = _Strategies.anew(some, cache).each()
    return MoreAnswers(answers.samples, share, question, answer, len(further), numbered=not asking)


def _row(money: Foreseen, **counts: float) -> dict[str, float]:
    """Return the columns of a row of costs."""
    row = dict.fromkeys(_COUNTS, 0.0) | {name: float(count) for name, count in counts.items()}
    # A range, since before the first replies their length may be anything up to the limit.
    return row | {"money": money.about, "money_low": money.low, "money_high": money.high}


def _times(number: float, price: float | None) -> float:
    if not number:
        return 0.0
    return math.nan if price is None else number * price


def _power(rules: Rules, lists: _Lists, sample: pd.DataFrame, assigned: bool) -> pd.DataFrame:
    """Return what the pilot can show, and the cost of a choice; see `PilotPlan.power`."""
    if lists.runs < 2:
        return pd.DataFrame()
    showing = int((lists.distance[np.isin(lists.ids, sample["query_id"])] > 0).sum())
    r, variants = smallest_r(showing, lists.runs)
    margin, at_hand = rules.margin_points / 100, len(lists.rows)
    if assigned:
        return pd.DataFrame(
            {"good": good, "lead": 100 * shown_lead_of_means(lists.questions_in(sample), lists.runs, good)}
            for good in _GOOD
        )
    rows = []
    for share in _DIFFER:
        row = {"differ": share, "r": r, "variants": variants, "lead": 100 * shown_lead(showing, lists.runs, share)}
        if margin > 0:
            ahead = min(race_length(margin, lists.runs, share, _AHEAD, rules.confidence), at_hand)
            # Two digits, since the constants are simulated.
            bound = float(f"{questions_for(margin, lists.runs, share):.2g}")
            row |= {"bound": bound, "ahead": ahead, "saves": 1 - ahead / at_hand}
        rows.append(row)
    return pd.DataFrame(rows)
