"""What `judgekit init` learns about answers: ratings, else an application's answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import pandas as pd

from judgekit.answers.declared import named
from judgekit.answers.imported import candidates, read_rated
from judgekit.data.documents import Queries
from judgekit.data.files import read_table
from judgekit.data.recognise import DECLARED_KINDS
from judgekit.data.tables import ANSWERS, RATERS, SAMPLES
from judgekit.errors import DataError
from judgekit.setup.inputs import CURE, KINDS, Files, Input
from judgekit.setup.joined import not_meant
from judgekit.setup.runs import ANSWERED, FoundRuns
from judgekit.setup.telling import told_apart
from judgekit.setup.written import KnownOutcome
from judgekit.spec import Spec, form_of

_RENAME: Final = (
    "Rename the files or the values so that they are equal, or leave this file out by naming the other files."
)


@dataclass(frozen=True)
class _FileFacts:
    """A file's facts about answers.

    Attributes:
        file: the file.
        runs: the runs named in its rows.
        depths: the numbers of documents behind the answers.
        columns: the columns with the documents behind answers.
        scales: its ratings by metric, each with the scale to declare.
        cluster: the column of the users who gave them, or "".
        rated: for a file of ratings, a row per answer and metric; None for answers.
    """

    file: Input
    runs: set[str]
    depths: Sequence[int]
    columns: set[str]
    scales: Mapping[str, str | None]
    cluster: str
    rated: pd.DataFrame | None = None


def known_outcome(files: Files, runs: FoundRuns, queries: Queries, asked: Queries) -> KnownOutcome:
    """Return what is known about answers to the questions: ratings, else an application's answers."""
    look = _Look(files, runs, queries, asked)
    ratings = look.ratings()
    answers = look.beside_ratings() if ratings else look.answers()
    parts = ratings or answers
    left = _left(runs, parts)
    if parts and left and not ratings:
        files.cautions.append(f"there are no answers of run {', '.join(sorted(left))}")
    depths = {depth for part in (*ratings, *answers) for depth in part.depths}
    metrics = {metric for part in ratings if part.rated is not None for metric in part.rated["metric"]}
    scales: dict[str, str | None] = {}
    for part in parts:
        scales |= part.scales
    known = KnownOutcome(
        files=[part.file for part in parts],
        beside=[part.file for part in answers] if ratings else [],
        metrics=sorted(metrics),
        # Ratings rarely have a depth: users saw an answer, not its number of passages.
        depths=sorted(depths) or [min(ANSWERED, runs.longest)],
        rated=scales,
        cluster=next((part.cluster for part in parts if part.cluster), ""),
    )
    return look.compared(known, sum(_answers_rated(part) for part in ratings))


def _left(runs: FoundRuns, parts: Iterable[_FileFacts]) -> set[str]:
    """Return the runs without answers in any part."""
    left = {*runs.runs}
    for part in parts:
        left -= part.runs or left  # rows without a run are about the only one
    return left


def _answers_rated(part: _FileFacts) -> int:
    """Return the number of rated answers in a file."""
    assert part.rated is not None, "only of ratings"
    keys = [key for key in ("run", "query_id") if key in part.rated.columns]
    return len(part.rated[keys].drop_duplicates())


@dataclass(frozen=True)
class _Look:
    """Looks into files of ratings and of answers, and decides the use of each."""

    files: Files
    runs: FoundRuns
    queries: Queries
    asked: Queries

    @property
    def referenced(self) -> bool:
        """Whether a question has reference answers."""
        return any(query.answers for query in self.asked.values())

    def ratings(self) -> list[_FileFacts]:
        """Return the facts in files of ratings."""
        parts: list[_FileFacts] = []
        for file in self.files.of("ratings"):
            if not file.taken or file.nested:
                part = self._part(file, "ratings", "ratings of answers")
                if part is not None:
                    parts.append(part)
        return parts

    def answers(self) -> list[_FileFacts]:
        """Return an application's answers."""
        parts: list[_FileFacts] = []
        for file in self._of_answers():
            if not _left(self.runs, parts):
                file.leave(f"{', '.join(part.file.name for part in parts)} has the answers of all runs")
                continue
            part = self._part(file, "answer", "answers of your application", parts)
            if part is not None:
                parts.append(part)
        return parts

    def beside_ratings(self) -> list[_FileFacts]:
        """Return the answers beside people's ratings, if reference answers can measure their quality."""
        parts: list[_FileFacts] = []
        for file in self._of_answers():
            if not self.referenced:
                file.leave("the outcome is people's ratings, and there are no reference answers to compare with")
                continue
            part = self._part(file, "answer", "answers of your application", parts)
            if part is not None:
                parts.append(part)
        return parts

    def _of_answers(self) -> list[Input]:
        return [file for file in self.files.of("answer") if not file.taken or file.nested]

    def compared(self, known: KnownOutcome, rated: int) -> KnownOutcome:
        """Try the free metrics on the answers, and tell whether ratings are of a few of them only."""
        if not known.imported or not self.referenced:
            return known
        names = {file.path: name for name, file in self.runs.files.items()}
        files = [(Path(file.given), names.get(file.path)) for file in known.imported]
        with suppress(DataError):  # the check of the experiment reports this
            known = replace(known, told=told_apart(files, self.asked, self.runs.runs, known.depths))
        answers = len(self.asked) * len(self.runs.runs)
        if known.metrics and 2 * rated < answers:
            known = replace(known, few=f" of {rated:,} of {answers:,} answers")
        return known

    def _part(self, file: Input, kind: str, what: str, earlier: Sequence[_FileFacts] = ()) -> _FileFacts | None:
        """Return a file's facts; None, with a note, if it is left aside."""
        _name_columns(file)
        table = self.files.read(file, kind, _read_ratings if kind == "ratings" else partial(read_table, ANSWERS))
        if table is None:
            if file.problem:  # reported at once, not after the unreadable cell is mended
                self.files.problems.append(f"{file.at_line(None)}: {file.problem} {_RENAME}")
            return None
        # Results of a pipeline hold the answers of the run that they are.
        own = self.runs.of(file)
        about = {*table["run"]} if "run" in table.columns else own
        concerns = table["query_id"].isin(list(self.asked)).any()
        wrong = self._wrong(file, table, own, about) if concerns else ""
        if wrong:
            file.why = "not used: see below"
            self.files.problems.append(wrong)
            return None
        problem = "none of its rows is about the questions of the experiment"
        if concerns:
            problem = "" if kind == "ratings" else self._problem(table, about, earlier)
        if problem:
            self.files.leave(file, problem, f"the {KINDS[kind]} of {file.name} are not used: {problem}")
            return None
        scales = self.files.read(file, kind, partial(candidates, beside_answers=kind == "answer"))
        if scales is None:
            return None
        file.take(kind, what)
        depths: list[int] = []
        if "depth" in table.columns:
            depths = [int(depth) for depth in table["depth"].unique() if depth > 0]
        elif file.nested:
            depths = [self.runs.longest]
        return _FileFacts(
            file=file,
            runs=about,
            depths=depths,
            columns=_placing(table),
            scales=scales,
            cluster=_cluster(file, table),
            rated=table if kind == "ratings" else None,
        )

    def _wrong(self, file: Input, table: pd.DataFrame, own: set[str], about: set[str]) -> str:
        """Return what to mend in a file (its names of runs, answers rated twice), or ""."""
        unknown = not_meant(about, self.runs.runs)
        if unknown:
            return f"{file.at_line(None)}: {unknown} {'Make a file of each run, with its name.' if own else _RENAME}"
        if not about and len(self.runs.runs) > 1:
            runs = ", ".join(sorted(self.runs.runs))
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

    def _problem(self, table: pd.DataFrame, about: set[str], earlier: Sequence[_FileFacts]) -> str:
        """Return why answers of these runs are left aside, or ""."""
        if earlier and (_placing(table) != earlier[0].columns or not about <= _left(self.runs, earlier)):
            return f"{earlier[0].file.name} has answers with other columns, or of the same runs"
        # A few ids of another set of questions often agree by chance: 1, 2, 3.
        strange = sorted({*table["query_id"]} - {*self.queries})
        return f"query {strange[0]!r} is not among the questions" if strange else ""


def _cluster(file: Input, table: pd.DataFrame) -> str:
    """Return the column with the users who gave ratings, or ""."""
    return file.cluster or next((name for name in RATERS if name in table.columns), "")


def _placing(table: pd.DataFrame) -> set[str]:
    """Return the columns with the documents behind answers."""
    return {"depth", "mode", "context"} & {*table.columns}


def _read_ratings(source: str) -> pd.DataFrame:
    return named(read_rated(source).table)


def _of_users(file: Input) -> str:
    """Return the spelling of the user's file with a column of users."""
    while file.origin is not None:
        file = file.origin[0]
    spec, _ = form_of(file.given)
    name = spec.name if file.content.flat is None else file.content.flat.name
    columns = str(Spec(name, spec.params)).removesuffix(")").replace("'", '"')
    return f"'{columns}{', ' if spec.params else '('}cluster=…):{file.path}'"


def _name_columns(file: Input) -> None:
    """Put the names of columns of ratings or answers before their path, if they are not judgekit's."""
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
