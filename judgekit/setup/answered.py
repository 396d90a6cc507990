"""What `judgekit init` finds known of answers: ratings, else what an application answered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import pandas as pd

from judgekit.answers.declared import named
from judgekit.answers.imported import candidates, read_rated
from judgekit.data.documents import Queries
from judgekit.data.files import read_table
from judgekit.data.recognise import DECLARED_KINDS
from judgekit.data.runs import Run
from judgekit.data.tables import ANSWERS, RATERS, SAMPLES
from judgekit.errors import DataError
from judgekit.setup.inputs import CURE, KINDS, Files, Input
from judgekit.setup.joined import not_meant
from judgekit.setup.telling import told_apart
from judgekit.setup.written import KnownOutcome
from judgekit.spec import Spec, form_of

ANSWERED: Final = 5
"""How many documents an answer is made from where nothing says it."""


_RENAME: Final = (
    "Rename the files or the values so that they are equal, or leave this file out by naming the other files."
)


def longest(runs: Iterable[Run]) -> int:
    """Return how many documents the longest list holds."""
    return max((int(run.counts.max(initial=1)) for run in runs), default=ANSWERED)


@dataclass
class OutcomeFound:
    """Takes what is known of answers: ratings, else what an application answered."""

    files: Files
    runs: Mapping[str, Run]
    run_files: Mapping[str, Input]
    queries: Queries
    asked: Queries
    known: KnownOutcome = field(default_factory=KnownOutcome)

    def __post_init__(self) -> None:
        self.left = {*self.runs}
        self.longest = longest(self.runs.values())
        self.rated = 0

    def taken(self) -> KnownOutcome:
        """Return what is known; nothing where no file holds ratings or answers."""
        known = self.known
        for file in self.files.of("ratings"):
            if not file.taken or file.nested:
                self._take(file, "ratings", "ratings of answers")
        for file in self.files.of("answer"):
            if file.taken and not file.nested:
                continue
            if known.metrics:
                self._take_beside(file)
            elif not self.left:
                file.leave(f"{', '.join(other.name for other in known.files)} has the answers of all runs")
            else:
                self._take(file, "answer", "answers of your application")
        if known.files and self.left and not known.metrics:
            self.files.cautions.append(f"there are no answers of run {', '.join(sorted(self.left))}")
        # Ratings seldom say a depth: a user saw an answer, and not how many passages it was made from.
        known.depths = sorted({*known.depths}) or [min(ANSWERED, self.longest)]
        self._compare()
        return known

    def _take_beside(self, file: Input) -> None:
        """Take answers beside people's ratings, where reference answers can say how good they are."""
        ratings = self.known
        if not any(query.answers for query in self.asked.values()):
            file.leave("the outcome is people's ratings, and there are no reference answers to compare with")
            return
        if not ratings.beside:
            self.left = {*self.runs}
        self.known = KnownOutcome(files=ratings.beside, depths=ratings.depths)
        self._take(file, "answer", "answers of your application")
        self.known = ratings

    def _compare(self) -> None:
        """Try the free metrics on the answers, and tell whether ratings are of a few of them only."""
        known = self.known
        if not known.imported or not any(query.answers for query in self.asked.values()):
            return
        runs = {file.path: name for name, file in self.run_files.items()}
        files = [(Path(file.given), runs.get(file.path)) for file in known.imported]
        with suppress(DataError):  # which the check of the experiment tells
            known.told = told_apart(files, self.asked, self.runs, known.depths)
        answers = len(self.asked) * len(self.runs)
        if known.metrics and 2 * self.rated < answers:
            known.few = f" of {self.rated:,} of {answers:,} answers"

    def _take(self, file: Input, kind: str, what: str) -> None:
        known = self.known
        _name_columns(file)
        table = self.files.read(file, kind, _read_ratings if kind == "ratings" else partial(read_table, ANSWERS))
        if table is None:
            if file.problem:  # said at once, not when the cell that cannot be read is mended
                self.files.problems.append(f"{file.at_line(None)}: {file.problem} {_RENAME}")
            return
        # Results of a pipeline hold the answers of the run that they are.
        own = {name for name in self.runs if self.run_files[name] is file}
        about = {*table["run"]} if "run" in table.columns else own
        concerns = table["query_id"].isin(list(self.asked)).any()
        wrong = self._wrong(file, table, own, about) if concerns else ""
        if wrong:
            file.why = "not used: see below"
            self.files.problems.append(wrong)
            return
        none = "none of its rows is about the questions of the experiment"
        problem = self._problem(table, kind, about) if concerns else none
        if problem:
            self.files.leave(file, problem, f"the {KINDS[kind]} of {file.name} are not used: {problem}")
            return
        rated = self.files.read(file, kind, partial(candidates, beside_answers=kind == "answer"))
        if rated is None:
            return
        if "depth" in table.columns:
            known.depths += [int(depth) for depth in table["depth"].unique() if depth > 0]
        elif file.nested:
            known.depths.append(self.longest)
        known.files.append(file)
        known.columns = _placing(table)
        self.left -= about or self.left  # rows that name no run are about the only one
        known.rated |= rated
        known.cluster = known.cluster or _cluster(file, table)
        if kind == "ratings":
            known.metrics = sorted({*known.metrics, *table["metric"]})
            keys = [key for key in ("run", "query_id") if key in table.columns]
            self.rated += len(table[keys].drop_duplicates())
        file.take(kind, what)

    def _wrong(self, file: Input, table: pd.DataFrame, own: set[str], about: set[str]) -> str:
        """Return what is to be mended in a file, "" if nothing is: the runs that it names, and answers rated twice."""
        unknown = not_meant(about, self.runs)
        if unknown:
            return f"{file.at_line(None)}: {unknown} {'Make a file of each run, with its name.' if own else _RENAME}"
        if not about and len(self.runs) > 1:
            runs = ", ".join(sorted(self.runs))
            return f"{file.at_line(None)}: its rows name no run ({runs}): add a column 'run'. {CURE}"
        if "ratings" not in file.kinds or _cluster(file, table):
            return ""
        names = ("run", "depth", "query_id", "metric", "model", *SAMPLES)
        keys = [key for key in names if key in table.columns]
        twice = table.index[table.duplicated(keys)]
        if not len(twice):
            return ""
        return (
            f"{file.at_line(int(twice[0]))}: rates an answer that an earlier line rates. If these are several users,"
            f" name their column: {_of_users(file)}"
        )

    def _problem(self, table: pd.DataFrame, kind: str, about: set[str]) -> str:
        """Return why ratings or answers of these runs are left aside, "" if they are not."""
        known = self.known
        if kind == "ratings":
            return ""
        if known.files and (_placing(table) != known.columns or not about <= self.left):
            return f"{known.files[0].name} has answers with other columns, or of the same runs"
        # Of another set of questions a few ids often agree by chance: 1, 2, 3.
        strange = sorted({*table["query_id"]} - {*self.queries})
        return f"query {strange[0]!r} is not among the questions" if strange else ""


def _cluster(file: Input, table: pd.DataFrame) -> str:
    """Return the column with the users that gave ratings; "" if there is none."""
    return file.cluster or next((name for name in RATERS if name in table.columns), "")


def _placing(table: pd.DataFrame) -> set[str]:
    """Return the columns that say what answers were made from."""
    return {"depth", "mode", "context"} & {*table.columns}


def _read_ratings(source: str) -> pd.DataFrame:
    return named(read_rated(source).table)


def _of_users(file: Input) -> str:
    """Return how to spell the user's own file with a column of users."""
    while file.origin is not None:
        file = file.origin[0]
    spec, _ = form_of(file.given)
    name = spec.name if file.content.flat is None else file.content.flat.name
    columns = str(Spec(name, spec.params)).removesuffix(")").replace("'", '"')
    return f"'{columns}{', ' if spec.params else '('}cluster=…):{file.path}'"


def _name_columns(file: Input) -> None:
    """Put the names of the columns of ratings or answers in front of their path, where they are not judgekit's."""
    if file.nested or {*file.content.named} - {"cluster"}:
        return
    names = DECLARED_KINDS["ratings" if "ratings" in file.kinds else "answer"].names
    wanted = {"query_id": names.get("query_id", names.get("id", ())), **names}
    differing = {}
    for key in ("query_id", "value", "answer"):
        column = next((name for name in wanted.get(key, ()) if name in file.content.fields), key)
        if column != key:
            differing[key] = column
    if file.content.run not in ("", "run"):
        differing["run"] = file.content.run
    if differing:
        file.name_columns(differing)
