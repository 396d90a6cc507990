"""The input files of `judgekit init`: their content, their use, or why they are not used."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from judgekit.data.fields import DECLARED, QUERY, TABULAR, Source
from judgekit.data.folders import TEXTS, walk
from judgekit.data.forms import ENTRY, nested_form, prepared
from judgekit.data.forms.delimited import TREC, TSV, PlainQuotes
from judgekit.data.forms.files import FILES
from judgekit.data.forms.sheets import sheets
from judgekit.data.outputs import is_results_folder
from judgekit.data.proposed import proposed
from judgekit.data.recognise import Recognised, recognise, records_of
from judgekit.data.records import Fields
from judgekit.data.scores import as_scores
from judgekit.data.sources import stem
from judgekit.data.streams import Beginning, head
from judgekit.data.tables import SAMPLE
from judgekit.errors import DataError, UsageError
from judgekit.setup.columns import columns_of
from judgekit.spec import Spec, form_of, split_form, split_named

IMPORTED: Final = "imported"
"""The folder for files that `init` writes again with the ids of the questions."""
_NO_DATA: Final = (".toml", ".py", ".ipynb", ".png", ".svg", ".log", ".sh")
_YAML: Final = (".yaml", ".yml")
_DATA: Final = (".csv", ".tsv", ".json", ".jsonl", ".xlsx", ".parquet", ".trec", ".run", ".qrels")
"""The endings of data files."""
_PAGES: Final = (".pdf", ".docx", ".doc", ".pptx", ".rtf", ".odt")
_NO_TEXT: Final = "save its text as .txt or .md"
KINDS: Final = {
    "query": "questions",
    "doc": "passages",
    "run": "a run",
    "qrels": "judgments",
    "answer": "answers",
    "ratings": "ratings",
    "references": "reference answers",
}
_UNKNOWN: Final = (
    "name its columns, {0}id=…,text=…,answers=…):{1} for questions, (id=…,text=…,title=…) for passages,"
    " (query=…,doc=…,score=…) for a run, (query_id=…,run=…,value=…) for ratings, with text=… in place of"
    " query_id=… where they hold the question itself, (query_id=…,run_a=…,run_b=…,winner=…) for answers compared two by"
    " two"
)
CURE: Final = "Mend it, or leave it out by naming the other files."
"""Advice for a file that is meant as data but cannot be used."""


@dataclass
class Input:
    """A file, or a sheet of one, with its content and its use.

    Attributes:
        path: the file, or the folder that is one collection.
        name: how it is shown.
        source: its path in an experiment file.
        form: the form before its path.
        content: its content.
        kinds: its remaining possible kinds.
        taken: its use.
        columns: a line on the use of each column.
        why: why it is not used.
        problem: what is wrong with the runs named in its rows.
        cluster: the column with the users who gave its ratings, if its spelling names it.
        run: the name of its run, where its records hold one.
        named: whether the user named it, not only the folder that it lies in.
        unfit: whether it cannot be used, rather than is not needed.
        broken: why it cannot be read although it is meant as data.
        strange: whether it names its questions by texts that no other file has.
        elsewhere: columns of a run that were written to files of their own.
        origin: the file that it was made of, and the lines of that from which its records are.
    """

    path: Path
    name: str
    source: str
    form: str = ""
    content: Recognised = field(default_factory=Recognised)
    kinds: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    why: str = ""
    problem: str = ""
    cluster: str = ""
    run: str = ""
    named: bool = False
    unfit: bool = False
    broken: str = ""
    strange: bool = False
    elsewhere: dict[str, str] = field(default_factory=dict)
    origin: tuple[Input, Sequence[int]] | None = None

    @property
    def given(self) -> str:
        """The file in the spelling for readers."""
        if self.form:
            return f"{self.form}:{self.path}"
        return str(self.path)

    @property
    def written(self) -> str:
        """The file in the spelling of the experiment."""
        if self.form:
            return f"{self.form}:{self.source}"
        return self.source

    @property
    def nested(self) -> bool:
        """Whether it holds several tables."""
        return self.content.nested

    @property
    def sheet(self) -> str:
        """The sheet of an Excel file in its form, or ""."""
        if not self.form:
            return ""
        return str(form_of(self.given)[0].options.get("sheet", ""))

    @property
    def stem(self) -> str:
        """Its name, or that of its sheet, without an ending."""
        return self.sheet or stem(self.path).removesuffix(".xlsx")

    @property
    def unknown_table(self) -> str:
        """The beginning, up to the columns, of a form for an unrecognised table; "" for other files."""
        flat = self.content.flat
        known = self.content.kinds or self.content.named or self.content.proposed or self.strange
        known = known or (self.why and not self.unfit)  # such as scores by query
        if flat is None or flat.name not in TABULAR or known:
            return ""
        if not self.sheet:
            return f"{flat.name}("
        # In double quotes: the shell's are single ones.
        form = str(Spec(flat.name, (("sheet", self.sheet),))).replace("'", '"')
        return f"{form.removesuffix(')')},"

    @property
    def as_proposed(self) -> str:
        """The file in the spelling that is proposed for it, for the shell; "" without one."""
        return f"'{self.content.proposed}:{self.path}'" if self.content.proposed else ""

    def at_line(self, line: int | None) -> str:
        """Return a line's place for the user: in the original file, if this one was made from it."""
        if self.origin is None or self.content.flat is None:
            return self.name if line is None else f"{self.name}, line {line}"
        own, lines = self.origin
        here = [record.line for record in records_of(self.given, self.content.flat)]
        return own.at_line(lines[here.index(line)] if line in here else None)

    def name_columns(self, columns: Mapping[str, str]) -> None:
        """Put the names of its columns, by option, before its path."""
        if self.content.flat is not None:
            sheet = {"sheet": self.sheet} if self.sheet else {}
            self.form = str(Spec(self.content.flat.name, tuple((sheet | dict(columns)).items())))

    def look(self) -> None:
        """Find out the content of the file."""
        # A socket or a broken link must not end the inspection of a data folder.
        if not self.form and not (self.path.is_file() or _holds_responses(self.path)):
            self.why, self.unfit = "not used: it cannot be read as a file", True
            return
        self.content = recognise(self.given)
        self.cluster = self.content.named.get("cluster", "")
        if self.cluster:  # not a column of the table of ratings, but part of the experiment
            spec, _ = form_of(self.given)
            self.form = str(Spec(spec.name, tuple(entry for entry in spec.params if entry[0] != "cluster")))
        if self.content.cure and not self.form:
            self.form = self.content.cure
            self.content = recognise(self.given)
        self.kinds = [*self.content.kinds]
        fields = self.content.fields
        # `plan` writes pilot.csv beside the data, where the next `init` finds it.
        if {*fields} == {*SAMPLE.columns}:
            self.why = "not used: a sample of questions, as `judgekit plan` writes it ([data] sample)"
            return
        may_be_traces = self.kinds == ["answer"] and "input" in fields  # Langfuse names both so
        if (may_be_traces or (not self.kinds and fields)) and _holds_traces(self.path):
            self.kinds, self.why = ["traces"], "traces, which `judgekit traces` makes data of"
        elif (not self.kinds or self.content.form is TREC) and _holds_scores(self.path):
            self.kinds, self.why = [], "scores by query, which `judgekit compare --scores NAME=FILE` takes"
        elif self.path.suffix in _PAGES:
            self.why, self.unfit = f"not used: {_NO_TEXT}", True
        elif self.path.suffix in _YAML and not self.kinds:
            self.why, self.unfit = "not used: judgekit reads no YAML; write questions as JSON lines", True
        elif self.content.why:
            hint = f"; {_UNKNOWN.format(self.unknown_table, self.source)}" if self.unknown_table else ""
            self.why, self.unfit = f"not used: {self.content.why}{hint}", True
            known = self.content.form is None or self.content.nested
            if known and not self.sheet and self.path.suffix.lower() in _DATA:
                self.broken = f"{self.name}: {self.content.why}"

    def take(self, kind: str, what: str) -> None:
        """Use the file for a kind of data, which ``what`` describes."""
        if self.nested and self.content.form is not None and not self.taken:
            what += f" (the form {self.content.form.name!r})"
        self.taken.append(what)
        if not self.nested:
            self.tell_columns(kind)
        elif not self.columns and self.origin is None:
            self.tell_nested()

    def tell_nested(self) -> None:
        """Note the use of the columns in a form with several tables."""
        form = self.content.form
        if form is None or form.taken is None:
            return
        roles = form.taken(self.as_read())
        scores = [name for name, role in roles.items() if role == "score"]
        lower = [name for name, role in roles.items() if role == "score, lower is better"]
        used = [f"{name} → {role}" for name, role in roles.items() if role and name not in (*scores, *lower)]
        self.columns.append(", ".join(used))
        if scores or lower:
            told = [", ".join(scores)] if scores else []
            if lower:
                told.append(f"{', '.join(lower)} (lower is better)")
            self.columns.append(f"scores of {form.name}, no labels and not used: {'; '.join(told)}")
        left = [name for name, role in roles.items() if not role]
        if left:
            self.columns.append(f"not used: {', '.join(left)}")

    def as_read(self) -> Fields:
        """Return the record that reveals its form, with cells split and rows joined as they are read."""
        form, flat, told = self.content.form, self.content.flat, self.content.told
        assert form is not None, "its records have a form"
        if not form.mark or flat is None:
            return told
        source, options = Source(self.path, flat.name, ENTRY, "entry"), form_of(self.given)[0].options
        with suppress(DataError, UsageError):  # which are told where it is read
            return next(
                (
                    record.fields
                    for record in prepared(form, source, records_of(self.given, flat), options)
                    if form.marks(record.fields)
                ),
                told,
            )
        return told

    def tell_columns(self, kind: str) -> None:
        """Note the use of the columns of a table of a kind."""
        columns = columns_of(self.given, self.content, kind)
        if columns.taken:
            self.columns.append(", ".join(f"{name} → {what}" for name, what in columns.taken.items()))
        if self.elsewhere:
            self.columns.append(", ".join(f"{name}: written to {file}" for name, file in self.elsewhere.items()))
        left = [name for name in columns.left if name not in self.elsewhere]
        if left:
            use = "not used"
            if kind in ("query", "doc"):
                use = f"kept for prompts as {{{kind}.NAME}}"
            if kind == "query":
                use += " and for [analysis] by"
            self.columns.append(f"{use}: {', '.join(left)}")
        documents = [name for name in left if name in DECLARED["qrels"].names["doc"]]
        if kind == "query" and documents:
            self.columns.append(
                f"{documents[0]!r} judges nothing: if it names the document that should be found, rename it"
                " 'expected_doc_id'"
            )
        if columns.lists:
            told = f"not used: {', '.join(columns.lists)}"
            if kind == "query":
                spelled = [f"{form}:{self.source}" for form in proposed(self.content.told) if "contexts=" in form]
                told += f"; if passages stand there, write {' or '.join(spelled)}" if spelled else ""
            self.columns.append(told)

    def drop(self, *kinds: str) -> None:
        """Rule out these kinds for the file."""
        self.kinds = [kind for kind in self.kinds if kind not in kinds]

    def leave(self, why: str) -> None:
        """Note why a file is left aside, unless it is used or a reason is known."""
        if self.taken or self.why:
            return
        self.why = "not used"
        if self.kinds:
            looks = " or ".join(KINDS.get(kind, kind) for kind in self.kinds)
            self.why += f": it looks like {looks}, but {why}"


def _holds_traces(path: Path) -> bool:
    from judgekit.data.traces import read_traces

    try:
        read_traces(path)
    except (DataError, TypeError, ValueError, KeyError, AttributeError):
        return False
    return True


def _holds_scores(path: Path) -> bool:
    """Return whether a file holds scores by query; lines without a header only count if one is of a mean (``all``)."""
    try:
        if _MEASURE_OR_MEAN.search(head(path)) is None:
            return False
        as_scores(path, "scores")
    except (DataError, UsageError, OSError):
        return False
    return True


_MEASURE_OR_MEAN: Final = re.compile(rb"\b(?:measure|metric|all)\b")


class Place(NamedTuple):
    """A table's place: the given file, and the sheet if an Excel file has several."""

    path: Path
    sheet: str = ""


def places_of(path: Path) -> list[Place]:
    """Return a file, or the nonempty sheets of an Excel file if there are several."""
    if path.suffix.lower() == ".xlsx":
        with suppress(DataError, UsageError):  # which are reported when the file is inspected
            names = sheets(path)
            if len(names) > 1:
                return [Place(path, name) for name in names]
    return [Place(path)]


def runs_named(paths: Sequence[str | Path]) -> tuple[dict[Path, str], list[str | Path]]:
    """Return the names of runs in ``NAME=FILE``, and the files without them."""
    names: dict[Path, str] = {}
    files: list[str | Path] = []
    for given in paths:
        name, rest = (None, "") if Path(given).exists() else split_named(str(given))
        if name is None:
            files.append(given)
        else:
            names[Path(split_form(rest)[1])] = name
            files.append(rest)
    return names, files


def forms_of(paths: Sequence[str | Path]) -> tuple[dict[Place, list[str]], list[str]]:
    """Return the places of tables, ordered by name, with the user's forms; second, sentences on what stops `init`."""
    forms: dict[Place, list[str]] = {}
    problems: list[str] = []
    for given in paths:
        try:
            spelled, text = split_form(given)  # for an address, it tells how to download it
            path = Path(text)
            if not path.exists():
                raise DataError("no such file or folder; give the folder that your data lies in, or its files", path)
            if spelled:
                forms.setdefault(_named(path, spelled, [*forms]), []).append(spelled)
            elif not path.is_dir():
                for place in places_of(path):
                    forms.setdefault(place, [])
            elif is_results_folder(path):
                raise UsageError(f"{path} holds results of judgekit: give the folder with the data")
            else:
                by_question: dict[Path, bool] = {}
                for file in walk(path):
                    if file.name.endswith(_NO_DATA) or IMPORTED in file.relative_to(path).parts[:1]:
                        continue
                    if file.parent not in by_question:
                        by_question[file.parent] = _holds_responses(file.parent)
                    for place in [Place(file.parent)] if by_question[file.parent] else places_of(file):
                        forms.setdefault(place, [])
        except (DataError, UsageError) as error:
            problems.append(str(error))
    if not forms and not problems:
        problems.append(f"{paths[0]}: holds no files of data")
    return forms, problems


def _holds_responses(folder: Path) -> bool:
    """Return whether a folder holds a search engine's responses, a file for each question, which are one run."""
    if len(list(folder.glob("*.json"))) < 2 or not FILES.marks(Beginning.of(folder, "data")):
        return False
    # Read as one table, a folder could not take the experiment.
    try:
        told = nested_form(islice(FILES.read(folder), 1))
    except DataError:
        return False
    return told is not None and told[0].name in ("elasticsearch", "qdrant")


def _named(path: Path, spelled: str, forms: Sequence[Place]) -> Place:
    """Return where a file's form applies: instead of the file found, or of one of its sheets."""
    spec, _ = form_of(f"{spelled}:{path}")
    places = places_of(path)
    sheet = str(spec.options.get("sheet", ""))
    place = Place(path, sheet)
    if not sheet or len(places) == 1:
        place = places[0]
    return next((known for known in forms if known.path.samefile(path) and known.sheet == place.sheet), place)


class Files:
    """The files that may hold data, with notes.

    Attributes:
        root: the folder that contains all of them.
        folder: the experiment's folder.
        all: those that may be readable, ordered by name.
        problems: sentences on what stops `init`.
        texts: text files, which may form a collection.
        imported: the present paths of further files until they are written, by their names in the experiment.
        cautions: a sentence for everything that looks wrong.
        run_names: the user's names for runs, by file.
    """

    def __init__(self, paths: Sequence[str | Path], out: Path | None, spare: Path) -> None:
        self.run_names, paths = runs_named(paths)
        forms, self.problems = forms_of(paths)
        found = [place.path for place in forms] or [Path("experiment.toml")]
        folders = [Path(path) for path in paths if Path(path).is_dir()]
        inside = len(folders) == 1 and all(is_inside(file, folders[0]) for file in found)
        self.root = folders[0] if inside else common_folder(found)
        self.folder = self.root if out is None else out
        self.spare = spare
        self.cautions: list[str] = []
        self.texts: list[Path] = []
        self.all: list[Input] = []
        self.imported: dict[str, Path] = {}
        self.named = {Path(path) for path in paths}
        for place, spelled_so in forms.items():
            # A file given with a form is only read in that form.
            for form in spelled_so or [""]:
                self._look(place, form)

    def at(self, path: Path, form: str = "") -> Input:
        """Return a file not yet inspected, shown below the root and named from the experiment's folder."""
        inside = path.absolute()
        shown = inside.relative_to(self.root.absolute()).as_posix() if is_inside(path, self.root) else str(path)
        file = Input(path, shown, Path(os.path.relpath(inside, self.folder.absolute())).as_posix(), form)
        if file.sheet:
            file.name = f"{shown}, sheet {file.sheet!r}"
        return file

    def of(self, kind: str) -> list[Input]:
        """Return the files that may hold a kind, those that can hold nothing else first."""
        return sorted((file for file in self.all if kind in file.kinds), key=lambda file: file.nested)

    def read(self, file: Input, kind: str, reader: Callable[[str], Any]) -> Any:
        """Return a reader's result for a file; None, with a note, if it fails."""
        try:
            return reader(file.given)
        except PlainQuotes as error:
            if file.form or file.content.flat is not TSV:
                return self._refused(file, kind, error)
            file.form = error.cure
            self.cautions.append(f"{file.name}: its quotes are plain characters ({file.form})")
            return self.read(file, kind, reader)
        except DataError as error:
            return self._refused(file, kind, error)

    def leave(self, file: Input, why: str, caution: str = "") -> None:
        """Leave a file aside for a reason that the user should know."""
        file.why, file.unfit = f"not used: {why}", True
        self.cautions.append(caution or f"{file.name} is not used: {why}")

    def unused(self) -> list[str]:
        """Return what is wrong with files that are clearly meant as data, and with those that the user named."""
        used = {file.path for file in self.all if file.taken}
        problems = []
        for file in self.all:
            # A workbook may hold further sheets.
            named = file.named and (file.content.named or file.path not in used)
            if file.broken and (not file.taken or file.nested):
                problems.append(f"{file.broken.rstrip('.')}. {CURE}")
            elif named and file.unfit and not file.taken:
                why = file.content.why if file.unknown_table else file.why.removeprefix("not used: ")
                cure = f"Name them, e.g. of questions: {self.command(file)}" if file.unknown_table else CURE
                if file.as_proposed:
                    cure = f"To read it as proposed: {self.naming(file.as_proposed)}"
                problems.append(f"{file.at_line(None)}: {why.rstrip('.')}. {cure}")
        return problems

    def command(self, table: Input) -> str:
        """Return the command that names the columns of a table."""
        return self.naming(f"'{table.unknown_table}id=…,text=…):{table.path}'")

    def naming(self, spelled: str, out: Path | None = None) -> str:
        """Return the command with a file in its spelling, by default for an experiment in the same folder."""
        place = out or self.folder
        written = "" if place == self.root else f" --out {place}"
        return f"judgekit init {self.root} {spelled}{written} --overwrite"

    def _refused(self, file: Input, kind: str, error: DataError) -> None:
        where = "" if error.line is None else f"line {error.line}: "
        if not file.why:
            file.why = f"not used: it looks like {KINDS[kind]}, but {where}{error.reason}"
            file.broken = f"{file.at_line(error.line)}: {error.reason}"
        file.drop(kind)

    def _look(self, place: Place, form: str) -> None:
        path = place.path
        by_sheet = str(Spec("xlsx", (("sheet", place.sheet),))) if place.sheet else ""
        file = self.at(path, form or by_sheet)
        file.named = bool(form) or path in self.named
        file.run = self.run_names.get(path, "")
        ending = path.suffix.lower()
        is_text = not form and ending in TEXTS
        if not is_text or ending == ".txt":
            try:
                file.look()
            except (DataError, UsageError) as error:  # about the user's spelling, or a missing library
                self.problems.append(str(error))
                file.why = "not used: see below"
        # A .txt may be a run or topics of TREC; it only counts as a text if no reader knows it.
        if is_text and not file.kinds:
            self.texts.append(path)
        else:
            self.all.append(file)

    def add_written(self, name: str, text: str) -> Input:
        """Return a file to write below the experiment's folder."""
        ending, number = Path(name).suffix, 2
        first = name.removesuffix(ending)
        # Two folders may each have a results.json, and neither may replace the other.
        while name in self.imported:
            name, number = f"{first}-{number}{ending}", number + 1
        path = self.spare / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        self.imported[name] = path
        return Input(path, name, name)

    def withdraw(self, written: Input) -> None:
        """Drop a file that was to be written."""
        self.all.remove(written)
        del self.imported[written.name]


def is_inside(path: Path, folder: Path) -> bool:
    """Return whether a path lies in a folder."""
    return path.absolute().is_relative_to(folder.absolute())


def common_folder(files: Sequence[Path]) -> Path:
    """Return the folder of the files, relative to the current one if below it."""
    folder = Path(os.path.commonpath([file.absolute().parent for file in files]))
    here = Path.cwd()
    if folder.is_relative_to(here):
        return Path(os.path.relpath(folder, here))
    return folder


def question_column(file: Input) -> str:
    """Return the column with the texts of questions, if a table has no ids; "" for other files."""
    content = file.content
    by_id = {*QUERY["id"]}.intersection(content.fields) or {"id", "query_id", "query"} & {*content.named}
    if file.kinds or content.flat is None or content.nested or content.doubt or by_id:
        return ""
    names = (*QUERY["text"][1:], "user_input")
    return content.named.get("text") or next((name for name in names if name in content.fields), "")


_ALIKE: Final = 4
"""The number of files of one folder from which on they share a line, if all notes on them are the same."""


def grouped(listed: Sequence[Seen]) -> tuple[Seen, ...]:
    """Return the lines on files, with one for many files of a folder with the same notes."""
    alike: dict[tuple[object, ...], list[Seen]] = {}
    for file in listed:
        path = Path(file.name)
        alike.setdefault((path.parent, path.suffix, file.taken, file.columns), []).append(file)
    lines: list[Seen] = []
    for files in alike.values():
        if len(files) < _ALIKE:
            lines += files
        else:
            lines.append(replace(files[0], name=f"{len(files):,} files like {files[0].name}"))
    return tuple(sorted(lines, key=lambda file: [seen.name for seen in listed].index(file.name.split(" like ")[-1])))


@dataclass(frozen=True)
class Seen:
    """A file in the list of `init`: its name, its use with the reason, and the use of its columns."""

    name: str
    taken: str
    columns: tuple[str, ...] = ()
