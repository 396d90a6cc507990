"""Before anything is paid for: which questions to pilot on, what they take, and what such a pilot can show.

Asks no model. Runs and questions are enough: without documents requests and judgments are counted, without endpoints
requests are those to any model.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field, replace
from html import escape
from itertools import chain
from os.path import relpath
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from judgekit.analysis.claims import wrapped
from judgekit.analysis.foresight import bound_of, questions_for, race_length, shown_lead
from judgekit.analysis.money import Money
from judgekit.answers.imported import Imported
from judgekit.client.asking import UNLIMITED, Asking
from judgekit.client.budget import Budget, Prices, Spending
from judgekit.client.estimates import Foreseen, exactly, rounded
from judgekit.client.waves import Plan
from judgekit.collection import Collection
from judgekit.data.documents import Doc, MemoryDocs, Queries
from judgekit.data.files import read_table, write_table
from judgekit.data.frames import as_runs
from judgekit.data.runs import Run
from judgekit.data.tables import ALL, SAMPLE, SCORES
from judgekit.errors import DataError, UsageError
from judgekit.experiment.file import Config, EndpointConfig, load, located
from judgekit.experiment.prepare import Prepared, programs, trusted
from judgekit.experiment.querylog import LogCoverage, compared
from judgekit.experiment.run import asked, count
from judgekit.metrics import parse_measures
from judgekit.people.sampling import systematic

Floats = npt.NDArray[np.float64]

_PILOT: Final = 200
"""Questions that a plan proposes unless it is told how many."""
PEOPLE, GRADES, ANSWERS, TOGETHER = "people", "grades of answers", "answers", "pilot together"
_SHOWN, _VARIANTS = 3.5, 4.7
_WORTH_SAYING: Final = 0.01
_DIFFER: Final = (0.1, 0.2, 0.4)
_WIDTH: Final = 110
_AHEAD: Final = 0.1
"""The lead of which a plan says how soon it ends a choice."""
_COUNTS: Final = ("requests", "judgments", "references", "tokens", "money")


def distances(runs: Sequence[Run], query_ids: Iterable[str], depth: int) -> Floats:
    """Return how far the runs' lists of each query differ: 0 where all are equal, 1 where no two share a document."""
    gains = 1 / np.log2(np.arange(2, depth + 2))
    most = 2 * gains.sum() * max(len(runs) * (len(runs) - 1), 1)
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
    """Return the pooled within-question correlation that four of five pilots show: of any runs, of variants of one."""
    reach = math.sqrt(questions * (runs - 1))
    return _SHOWN / reach, _VARIANTS / reach


@dataclass(frozen=True)
class PilotPlan:
    """Which questions to pilot on, what they take, and what they can show.

    Attributes:
        runs: the names of the runs.
        depth: at which their lists are compared, that of the primary measure.
        questions: how many there are; ``differ`` of them have different lists.
        differ: see above.
        asked: how many the results hold already.
        sample: the table ``query_id, weight`` of the pilot, for ``[data] sample``: those asked already with it, each of
            weight 1; the others of 1 / the probability with which they are drawn.
        costs: by strategy and set of ``questions`` (pilot or all): ``requests`` that the store lacks, ``judgments`` by
            people, ``references`` to write, about how many ``tokens``, replies included, and about how much ``money``,
            most likely from ``money_low`` to ``money_high``; NaN is unknown.
        power: for the pilot and for twice its questions: the smallest ``r``, that of ``variants`` of one retriever, and
            the smallest lead in points with which the best run is shown, where runs that are equally good answer 10, 20
            and 40 % of the questions differently. Empty with one run.
        choice: for the same shares (``differ``): after how many questions at hand `judgekit choose` ends if one run
            leads by ten points (``ahead``), the share of them that it ``saves`` then, how many bound the loss of any
            of some equally good runs by the margin (``bound``), and, with a budget, how many questions of all runs it
            pays for (``paid``) and what choosing loses at most then, in points (``loss``). Empty with one run.
        margin: of the experiment, in points.
        currency: of all money.
        budget: as given.
        coverage: how the questions lie beside those of a query log, if one is given.
        file: where the sample was written.
        replaced: how many questions of the sample that was there are not in this one.
        own: the sample that the experiment names, if it does.
        folder: that of the experiment file, to which its paths are relative.
        trusted: the labeler whose labels stand in the place of answers; "" where there are answers.
    """

    runs: tuple[str, ...]
    depth: int
    questions: int
    differ: int
    asked: int
    sample: pd.DataFrame = field(repr=False)
    costs: pd.DataFrame = field(repr=False)
    power: pd.DataFrame = field(repr=False)
    choice: pd.DataFrame = field(repr=False)
    margin: float
    currency: str = ""
    budget: float | None = None
    coverage: LogCoverage | None = None
    file: Path | None = None
    replaced: int = 0
    own: Path | None = None
    folder: Path = Path()
    trusted: str = ""

    def write(self, path: str | Path) -> PilotPlan:
        """Write the sample as CSV, in place of an earlier one, and return the plan with that file.

        Raises:
            UsageError: there is another file, or the experiment's own sample with questions that are not in this one.
        """
        path, head, lost = Path(path), ",".join(SAMPLE.columns).encode(), 0
        if path.suffix != ".csv":
            raise UsageError(f"{path}: the name of a sample ends in .csv")
        if path.exists() and not (path.is_file() and path.read_bytes().startswith(head)):
            raise UsageError(f"{path} exists and is not a sample: choose another --out")
        if path.exists():
            # Not as an input: it is written again below.
            before = set(pd.read_csv(path, dtype=str, keep_default_na=False)["query_id"])
            lost = len(before.difference(self.sample["query_id"]))
            if lost and self.own is not None and path.samefile(self.own):
                raise UsageError(
                    f"{path} is the sample of this experiment, and the plan leaves out {lost:,} of its {len(before):,}"
                    " questions. Add to it with --results, choose another --out, or delete it"
                )
        write_table(self.sample, path)
        return replace(self, file=path, replaced=lost)

    def __str__(self) -> str:
        return "\n".join([*self._about(), "", *self._table(), *self._money()])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def _about(self) -> Iterator[str]:
        """Yield which questions, and what they can show."""
        runs, size = len(self.runs), f"{self.questions:,} questions"
        if runs > 1:
            yield f"Lists     differ on {self.differ:,} of {size} at depth {self.depth} ({runs} runs)."
        else:
            yield f"Lists     {size}, one run: the pilot is drawn at random, and there is nothing to choose between."
        yield self._pilot()
        if self.replaced:
            yield f"          {self.file} held another sample: {self.replaced:,} of its questions are not in this one."
        if self.trusted:
            yield f"Outcome   the order of the runs under {self.trusted}: there are no answers and no references."
        if len(self.power):
            yield wrapped([("Can show", self._can_show())], _WIDTH)
        if len(self.choice) and not self.trusted:
            yield wrapped([("Choose", self._choosing())], _WIDTH)
        if self.coverage is not None:
            yield from self.coverage.lines()

    def _pilot(self) -> str:
        """Return how many questions the pilot has, and where they stand."""
        line = f"Pilot     {len(self.sample):,} questions"
        if self.asked:
            line += f", {len(self.sample) - self.asked:,} of them new"
        elif len(self.runs) > 1 and len(self.sample) == self.differ:
            line += " (all that differ)"
        line += "."
        if self.file is not None and self.file != self.own:
            line += f' In [data] write: sample = "{relpath(self.file, self.folder)}"'
        return line

    def _can_show(self) -> str:
        """Return the smallest r and lead that the pilot, and one of twice its size, can show."""
        followed = "judgments" if self.trusted else "answers"
        pilot, twice = self.power.to_dict("records")
        return (
            f"labels that follow the {followed} within a question with a correlation r of {_r(pilot['r'])}"
            f" ({_r(pilot['variants'])} for variants of one retriever); the best of {len(self.runs)} runs, if it"
            f" leads by {_leads(pilot)} points, where 10, 20 or 40 % of the answers of equal"
            f" runs differ. With {twice['questions']:,.0f} questions: {_r(twice['r'])} ({_r(twice['variants'])});"
            f" {_leads(twice)} points. How much a labeling gains cannot be planned."
        )

    def _choosing(self) -> str:
        """Return what `judgekit choose` takes."""
        ahead = _listed([f"{number:,.0f}" for number in self.choice["ahead"]])
        bound = _listed([f"{number:,.0f}" for number in self.choice["bound"]])
        saved = _listed([f"{share:.0%}" for share in self.choice["saves"]])
        text = (
            f"To show that no run costs more than {self.margin:g} points takes about {bound} questions if all are"
            f" equally good. If one leads by {100 * _AHEAD:g} points, judgekit choose "
        )
        if self.choice["saves"].max() < _WORTH_SAYING:
            text += f"is not likely to end before all {self.questions:,} questions are asked."
        else:
            text += f"ends after about {ahead} of {self.questions:,}: {saved} less."
        middle = self.choice.iloc[1]
        if math.isfinite(middle["loss"]):
            text += (
                f" The budget pays for {_count(middle['paid'])} questions of all runs; choosing then loses at most"
                f" about {middle['loss']:.1f} points."
            )
        return text

    def _table(self) -> list[str]:
        """Return the costs as lines: of the pilot, and of all questions."""
        shown = [name for name in _COUNTS if name == "requests" or self.costs[name].fillna(0).any()]
        of_pilot = self.costs[self.costs["questions"] == "pilot"].to_dict("records")
        of_all = self.costs[self.costs["questions"] == "all"].to_dict("records")
        rows = [["", *(name.replace("_", " ") for name in shown)]]
        for pilot, every in zip(of_pilot, of_all, strict=True):
            cells = [pilot["strategy"]]
            for column in shown:
                part, whole = _cell(pilot, column), _cell(every, column)
                cells.append(part if part == whole else f"{part} / {whole}")
            rows.append(cells)
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = []
        for strategy, *cells in rows:
            aligned = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
            lines.append("  ".join([strategy.ljust(widths[0]), *aligned]))
        more = "; replies may lead to more requests" if self.costs["requests"].any() else ""
        lines.append(f"Pilot / all questions. Nothing was asked{more}.")
        if "money" in shown:
            unit = f" in {self.currency}" if self.currency else ""
            lines.append(
                f"Tokens and money{unit}: about, with replies. References that these questions have cost nothing; new"
                " questions need them."
            )
        return lines

    def _money(self) -> Iterable[str]:
        """Yield what is left of the budget."""
        if self.budget is None:
            return
        (pilot,) = self.costs[(self.costs["strategy"] == TOGETHER) & (self.costs["questions"] == "pilot")].to_dict(
            "records"
        )
        spent = float(pilot["money"])
        taken = f"about {_count(spent)} ({_count(pilot['money_low'])} to {_count(pilot['money_high'])})"
        if spent > self.budget:
            yield f"Budget    {_count(self.budget)} does not pay for this pilot ({taken}): ask fewer questions."
        else:
            rest = _count(self.budget - spent)
            yield f"Budget    {_count(self.budget)}: the pilot takes {taken}, about {rest} is left."


def _listed(texts: Sequence[str]) -> str:
    return f"{', '.join(texts[:-1])} or {texts[-1]}"


def _leads(row: Mapping[Any, Any]) -> str:
    return _listed([f"{row[_lead_column(share)]:.0f}" for share in _DIFFER])


def _lead_column(share: float) -> str:
    """Return the column of `PilotPlan.power` for a share of differing answers: ``lead_10``."""
    return f"lead_{100 * share:.0f}"


def _r(value: float) -> str:
    return f"{value:.2f}".removeprefix("0") if value < 1 else "1"


def _cell(row: Mapping[Any, Any], column: str) -> str:
    """Return a number of a row of costs; what is foreseen has three digits."""
    value = float(row[column])
    if column == "tokens" or (column == "money" and row["money_low"] < row["money_high"]):
        return rounded(value) if value > 0 else _count(value)
    return _count(value)


def _count(value: float) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:,.2f}" if value != int(value) else f"{int(value):,}"


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
    """Plan a pilot: which questions, what they take, what they can show. Nothing is asked, nothing is written.

    Args:
        experiment: the experiment file, or what `load` returned; runs and questions are enough. Its
            ``sample`` and ``limit`` are left aside.
        questions: how many to propose, by default 200 or all of which the lists differ; with ``results`` further ones.
        results: the folder of a run: the questions that it asked are part of the sample and are not proposed again.
        budget: money for pilot and labels; without ``questions`` the pilot takes at most half of it.
        query_log: a file of queries, or of lines (``.txt``), that the questions should look like.
        trust: as for `judgekit.run`.
        asking: as for `judgekit.run`: what its store holds need not be asked.

    Returns:
        The plan; ``print(plan)`` says it, ``plan.write("pilot.csv")`` writes the sample for ``[data] sample``.

    Raises:
        ConfigError, DataError, UsageError: something is wrong with the files; all lists are equal; a budget is given
            and prices are not.
    """
    config = experiment if isinstance(experiment, Config) else load(experiment, whole=False, trusted=trust)
    own = None if config.data.sample is None else config.resolve(config.data.sample)
    config = config.updated(data={"sample": None, "limit": None})
    prepared = _prepared(config, asking.cache)
    collection, money, outcome = prepared.collection, config.costs(), prepared.config.answers.declared.outcome
    primary, ids = config.analysis.primary, list(collection.queries)
    with located(config.path, "analysis.primary"):
        cutoff = None if primary is None else parse_measures([primary], config.path.parent)[0].cutoff
    depth = min(cutoff or max(config.answers.depths), config.data.depth)
    far = distances(collection.runs, ids, depth) if len(collection.runs) > 1 else np.ones(len(ids))
    asked = _asked(Path(results), collection.queries) if results is not None else set[str]()
    budget = money.budget if budget is None else budget
    if budget is not None and not budget > 0:
        raise UsageError(f"a budget must be above 0, not {budget:g}")

    def drawn(n: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        sample = _draw(ids, far, n, asked, config.analysis.seed)
        return sample, _costs(prepared, list(sample["query_id"]), money, config.price_list(), asking.cache)

    open_ = [query_id for query_id, distance in zip(ids, far, strict=True) if distance > 0 and query_id not in asked]
    at_most = len(open_)
    if not at_most:
        raise UsageError(f"the runs have the same lists at depth {depth} for every question that is left to ask")
    if questions is not None and not 1 <= questions <= at_most:
        raise UsageError(f"{questions:,} questions were requested, but only {at_most:,} with different lists are left")
    size = min(questions or _PILOT, at_most)
    sample, costs = drawn(size)
    if budget is not None:
        spent = _together(costs)
        if math.isnan(spent):
            raise UsageError(
                "a budget needs prices: [prices.MODEL] for every model, and the price of a reference if"
                " questions lack some"
            )
        if questions is None and spent > budget / 2:
            sample, costs = drawn(max(1, int(size * budget / 2 / spent)))
    return PilotPlan(
        runs=tuple(run.name for run in collection.runs),
        depth=depth,
        questions=len(ids),
        differ=int((far > 0).sum()),
        asked=len(asked),
        sample=sample,
        costs=costs,
        power=_power(int((far[np.isin(ids, sample["query_id"])] > 0).sum()), len(collection.runs)),
        choice=_choice(config, len(collection.runs), len(ids), _paid(costs, len(ids), budget)),
        margin=config.analysis.margin_points,
        currency=money.currency,
        own=own,
        folder=config.path.parent,
        trusted=next((name for name in trusted(prepared.labelers) if name == outcome), ""),
        budget=budget,
        coverage=None if query_log is None else compared([q.text for q in collection.queries.values()], query_log),
    )


def _prepared(config: Config, cache: str | Path | None) -> Prepared:
    """Read what there is; documents, endpoints and references that are not there yet are stood in for."""
    queries, docs, runs = config.collection()
    depth, fields = config.data.depth, config.data.fields
    if docs:
        collection = Collection.make(queries, docs, runs, depth, None, fields, cache)
    else:
        ranked = [run.cut(depth) for run in as_runs(runs)]
        doc_ids = set(chain.from_iterable(run.doc_ids for run in ranked))
        # Their ids stand for texts, so that different documents make different requests.
        texts = MemoryDocs(Doc(doc_id, doc_id) for doc_id in sorted(doc_ids))
        collection = Collection.make(queries, texts, ranked, depth, None, fields, cache)
    if not config.endpoints:
        any_model = EndpointConfig.model_validate({"base_url": "http://localhost/v1", "model": "model"})
        config = config.model_copy(update={"endpoints": {"model": any_model}})
    config, labelers, answering = programs(config, collection)
    return Prepared(config, collection, labelers, answering, ())


def _asked(folder: Path, queries: Queries) -> set[str]:
    """Return the questions that a run asked."""
    path = folder / "scores.parquet"
    if not path.is_file():
        raise DataError("does not hold results of `judgekit run` (no scores.parquet)", folder)
    asked = set(read_table(SCORES, path)["query_id"]) - {ALL}
    unknown = next((query_id for query_id in sorted(asked) if query_id not in queries), None)
    if unknown is not None:
        raise DataError(f"query {unknown!r} is not in the queries: are these results of another experiment?", folder)
    return asked


def _draw(ids: Sequence[str], far: Floats, n: int, asked: AbstractSet[str], seed: int) -> pd.DataFrame:
    """Return the sample: n questions drawn with probabilities by the square of how far their lists differ."""
    # What was asked already counts for itself: given it, the others are drawn from the rest, so that weighted sums stay
    # unbiased however the first were chosen.
    weights = dict.fromkeys(asked, 1.0)
    places = np.array([place for place, query_id in enumerate(ids) if far[place] > 0 and query_id not in asked])
    probability, at = systematic(far[places] ** 2, n, np.random.default_rng(seed))
    for drawn in at:
        weights[ids[places[drawn]]] = 1 / probability[drawn]
    chosen = [query_id for query_id in ids if query_id in weights]
    return SAMPLE.check(pd.DataFrame({"query_id": chosen, "weight": [weights[query_id] for query_id in chosen]}))


def _costs(
    prepared: Prepared, pilot: Sequence[str], money: Money, prices: Prices, cache: str | Path | None
) -> pd.DataFrame:
    """Return what strategies take on the pilot and on all questions; see `PilotPlan.costs`."""
    rows = []
    for name, collection in (("pilot", prepared.collection.only(pilot)), ("all", prepared.collection)):
        strategies = _Strategies.of(replace(prepared, collection=collection), money, prices, cache)
        for strategy, counts in strategies.costs():
            rows.append({"strategy": strategy, "questions": name, **counts})
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class _Strategies:
    """What judging some questions takes, by strategy; `plans` counts the requests by stage."""

    prepared: Prepared
    money: Money
    prices: Prices
    plans: Mapping[str, Plan]

    @classmethod
    def of(cls, prepared: Prepared, money: Money, prices: Prices, cache: str | Path | None) -> Self:
        """Count the requests, as if every question had a reference answer."""
        queries = {}
        for query_id, query in prepared.collection.queries.items():
            queries[query_id] = query if query.answers else replace(query, answers=("?",))
        referenced = replace(prepared, collection=replace(prepared.collection, queries=queries))
        return cls(prepared, money, prices, count(asked(referenced), cache))

    def costs(self) -> Iterator[tuple[str, dict[str, float]]]:
        """Yield each strategy with its costs; see `PilotPlan.costs`."""
        collection, answering = self.prepared.collection, self.prepared.answering
        references, own = False, 0.0
        for name, labeler in self.prepared.labelers.items():
            labels = collection.n_pairs * self.money.price.get(name, 0.0)
            yield name, self._taken(self.plans[f"label {name}"], labeler.needs.references, labels)
            references |= labeler.needs.references
            own += labels
        yield PEOPLE, self._judged(collection.n_pairs)
        if any(one.llm_metrics for one in answering.values()):
            # An LLM rates answers: people's grades of all runs' answers correct it.
            yield GRADES, self._judged(len(collection.queries) * len(collection.runs))
        for stage, one in answering.items():
            referenced = any(metric.needs_references for metric in one.metrics)
            references |= referenced
            if one.llm_metrics or not isinstance(one.answerer, Imported):
                yield ANSWERS if len(answering) == 1 else stage, self._taken(self.plans[stage], referenced)
        yield TOGETHER, self._taken(self.plans["all"], references, own)

    def _judged(self, judgments: int) -> dict[str, float]:
        """Return what judgments by people take."""
        return _row(exactly(_times(judgments, self.money.judgment)), judgments=judgments)

    def _taken(self, plan: Plan, references: bool, labels: float = 0.0) -> dict[str, float]:
        """Return what requests, the references that are lacking, and labels with a price take."""
        lacking = 0
        if references:
            lacking = sum(not query.answers for query in self.prepared.collection.queries.values())
        spent = exactly(labels + _times(lacking, self.money.reference))
        requests, tokens = plan.requests - plan.cached, 0.0
        if requests and self.prepared.config.data.docs:
            paid = plan.money(Spending(Budget(), self.prices).price)
            tokens = plan.tokens.about
            spent += paid or _UNKNOWN
        elif requests:  # without documents nobody knows how long the prompts will be
            tokens = math.nan
            spent += _UNKNOWN
        return _row(spent, requests=requests, references=lacking, tokens=tokens)


_UNKNOWN: Final = exactly(math.nan)


def _row(money: Foreseen, **counts: float) -> dict[str, float]:
    """Return the columns of a row of costs."""
    row = dict.fromkeys(_COUNTS, 0.0) | {name: float(count) for name, count in counts.items()}
    return row | {"money": money.about, "money_low": money.low, "money_high": money.high}


def _times(number: float, price: float | None) -> float:
    if not number:
        return 0.0
    return math.nan if price is None else number * price


def _together(costs: pd.DataFrame) -> float:
    """Return the money that the whole pilot takes."""
    return float(costs.set_index(["strategy", "questions"])["money"][TOGETHER, "pilot"])


def _power(n: int, runs: int) -> pd.DataFrame:
    rows = []
    for questions in (n, 2 * n) if runs > 1 else ():
        r, variants = smallest_r(questions, runs)
        row = {"questions": questions, "r": r, "variants": variants}
        for share in _DIFFER:
            row[_lead_column(share)] = 100 * shown_lead(questions, runs, share)
        rows.append(row)
    return pd.DataFrame(rows)


def _paid(costs: pd.DataFrame, questions: int, budget: float | None) -> float:
    """Return the questions whose answers, of all runs, a budget pays for; NaN where nobody knows."""
    answers = costs[(costs["questions"] == "all") & costs["strategy"].str.startswith("answer")]
    if budget is None or answers.empty:
        return math.nan
    price = float(answers["money"].min()) / questions
    return min(math.floor(budget / price), questions) if price > 0 else math.nan


def _choice(config: Config, runs: int, questions: int, paid: float) -> pd.DataFrame:
    """Return what a choice of run takes; see `PilotPlan.choice`."""
    rules, rows = config.analysis, []
    margin = rules.margin_points / 100
    for share in _DIFFER if runs > 1 and margin > 0 else ():
        ahead = min(race_length(margin, runs, share, _AHEAD, rules.confidence), questions)
        rows.append(
            {
                "differ": share,
                "ahead": ahead,
                "saves": 1 - ahead / questions,
                "bound": float(f"{questions_for(margin, runs, share):.2g}"),
                "paid": paid,
                "loss": 100 * bound_of(int(paid), runs, share) if paid >= 1 else math.nan,
            }
        )
    return pd.DataFrame(rows)
