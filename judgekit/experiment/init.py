"""From a folder of the user's own files to an experiment that runs: what each is taken for, and what looks wrong."""

from __future__ import annotations

import json
import os
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pandas as pd

from judgekit.answers.declared import named
from judgekit.answers.imported import candidates
from judgekit.collection import lacking
from judgekit.data.checks import check_runs
from judgekit.data.documents import Docs, Queries, Query, render
from judgekit.data.fields import TABULAR
from judgekit.data.files import read_table
from judgekit.data.folders import TEXTS, walk
from judgekit.data.forms.delimited import TSV, PlainQuotes
from judgekit.data.forms.texts import FOLDER, text_id
from judgekit.data.outputs import check_folder, is_results_folder
from judgekit.data.readers import read_docs, read_queries, write_queries
from judgekit.data.recognise import DECLARED_KINDS, Recognised, is_docs, recognise
from judgekit.data.runs import Run, pool
from judgekit.data.sources import stem
from judgekit.data.streams import write_atomic
from judgekit.data.tables import ALL, ANSWERS, RATERS, RATINGS, SAMPLE
from judgekit.data.trec import read_qrels, read_run
from judgekit.errors import DataError, UsageError
from judgekit.experiment.columns import Columns, columns_of
from judgekit.experiment.file import parse_config
from judgekit.experiment.prepare import prepare
from judgekit.experiment.written import KnownOutcome, Planned
from judgekit.registry import register
from judgekit.spec import Spec, split_form

PILOT_FILE: Final = "pilot.jsonl"
IMPORTED: Final = "imported"
"""The folder for results of pipelines that `init` writes again with the ids of the questions."""
_NO_DATA: Final = (".toml", ".py", ".ipynb", ".png", ".svg", ".log", ".sh", ".yaml", ".yml")
_PAGES: Final = (".pdf", ".docx", ".doc", ".pptx", ".rtf", ".odt")
_NO_TEXT: Final = "save its text as .txt or .md"
_ANSWERED: Final = 5
_LISTED: Final = 5
"""Files of one kind in a folder that are listed one by one where they are not used."""
KINDS: Final = {
    "query": "questions",
    "doc": "passages",
    "run": "a run",
    "qrels": "judgments",
    "answer": "answers",
    "ratings": "ratings",
}
_UNKNOWN: Final = (
    "name its columns, {0}(id=…,text=…,answers=…):{1} for questions, (id=…,text=…,title=…) for passages,"
    " (query=…,doc=…,score=…) for a run, (query_id=…,run=…,value=…) for ratings"
)


@dataclass
class Input:
    """A file, what the readers can make of it, and what it is taken for.

    Attributes:
        path: the file, or the folder that is one collection.
        name: how it is shown.
        source: its path in an experiment file.
        form: what stands in front of its path.
        found: what it holds by its content.
        kinds: what it may still be.
        taken: what it is used for.
        columns: what becomes of its columns, a line each.
        why: why it is not used.
    """

    path: Path
    name: str
    source: str
    form: str = ""
    found: Recognised = field(default_factory=Recognised)
    kinds: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    why: str = ""

    @property
    def given(self) -> str:
        """The file as readers take it."""
        return f"{self.form}:{self.path}" if self.form else str(self.path)

    @property
    def written(self) -> str:
        """The file as the experiment names it."""
        return f"{self.form}:{self.source}" if self.form else self.source

    @property
    def nested(self) -> bool:
        """Whether it holds several tables."""
        return self.found.nested

    def look(self) -> None:
        """Find out what the readers can make of the file."""
        if not self.form and not self.path.is_file():
            self.why = "not used: it cannot be read as a file"
            return
        self.found = recognise(self.given)
        if self.found.cure and not self.form:
            self.form = self.found.cure
            self.found = recognise(self.given)
        found, self.kinds = self.found, [*self.found.kinds]
        if {*found.fields} == {*SAMPLE.columns}:
            self.why = "not used: a sample of questions, as `judgekit plan` writes it ([data] sample)"
            return
        traces = found.kinds in ((), ("answer",)) and "input" in found.fields  # Langfuse names both so
        if (traces or (not found.kinds and found.fields)) and _holds_traces(self.path):
            self.kinds, self.why = ["traces"], "traces, which `judgekit traces` makes data of"
        elif found.why:
            table = found.flat is not None and found.flat.name in TABULAR and not self.form
            hint = f"; {_UNKNOWN.format(found.flat.name, self.source)}" if table and found.flat else ""
            self.why = f"not used: {_NO_TEXT if self.path.suffix in _PAGES else found.why}{hint}"

    def take(self, kind: str, what: str) -> None:
        """Use the file for a kind of data, which ``what`` describes."""
        form = f" (the form {self.found.form.name!r})" if self.nested and self.found.form is not None else ""
        self.taken.append(f"{what}{'' if self.taken else form}")
        if not self.nested or not self.columns:
            self.columns += _told(columns_of(self.given, self.found, kind), kind)


def _told(columns: Columns, kind: str) -> Iterator[str]:
    """Yield what becomes of the columns of a file, a line each."""
    if columns.taken:
        yield ", ".join(f"{name} → {what}" for name, what in columns.taken.items())
    if columns.left:
        holder = kind if kind in ("query", "doc") else ""
        use = f"kept for prompts as {{{holder}.NAME}}" if holder else "not used"
        also = " and for [analysis] by" if kind == "query" else ""
        yield f"{use}{also}: {', '.join(columns.left)}"
    if columns.lacks:
        yield "it lacks " + "; ".join(f"{name} ({what})" for name, what in columns.lacks.items())


def _holds_traces(path: Path) -> bool:
    home = register.load().homes.get("read_traces")
    if home is None:
        return False
    try:
        import_module(home).read_traces(path)
    except (DataError, TypeError, ValueError, KeyError, AttributeError):
        return False
    return True


@dataclass(frozen=True)
class Seen:
    """A file as `init` lists it: its name, what it is taken for and why, and what becomes of its columns."""

    name: str
    taken: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Draft:
    """An experiment that was made from files.

    Attributes:
        folder: where it goes, and what its paths are relative to.
        files: what each file was taken for.
        cautions: what looks wrong, a sentence each.
        lacking: why there is no experiment, "" if there is one.
        toml: the experiment file.
        asks: whether it names a server, whose address and model are to be filled in.
        pilot: the questions that runs hold, where the query file has far more.
        imported: further files to write, by name: results whose questions got their ids by their texts.
    """

    folder: Path
    files: tuple[Seen, ...]
    cautions: tuple[str, ...]
    lacking: str = ""
    toml: str = ""
    asks: bool = False
    pilot: Sequence[Query] | None = None
    imported: Mapping[str, str] = field(default_factory=dict)

    @property
    def files_written(self) -> list[Path]:
        """The files that `write` makes, the experiment first."""
        pilot = [PILOT_FILE] if self.pilot else []
        return [self.folder / name for name in ("experiment.toml", *pilot, *self.imported)]

    def write(self) -> None:
        """Write the experiment file, and the further files that it names."""
        for name, content in self.imported.items():
            write_atomic(self.folder / name, content)
        if self.pilot:
            write_queries(self.pilot, self.folder / PILOT_FILE)
        write_atomic(self.folder / "experiment.toml", self.toml)


def draft(paths: Sequence[str | Path], out: Path | None = None) -> Draft:
    """Look at files and make an experiment of them; nothing is written, but the folder is made if need be.

    Args:
        paths: folders and files; ``FORM(key=column, …):FILE`` says how a file is to be read.
        out: the folder for the experiment; by default that of the data.
    """
    if out is not None:
        check_folder(out, ())
        out.mkdir(parents=True, exist_ok=True)  # paths through its parent work once it is there
    with TemporaryDirectory(prefix="judgekit-") as spare:
        return _Survey(paths, out, Path(spare)).draft()


def _files_of(paths: Sequence[str | Path]) -> dict[Path, str]:
    """Return the files of paths with the form in front of each, in the order of their names; a form counts last."""
    found: dict[Path, str] = {}
    for given in paths:
        form, text = split_form(given)  # of an address it says how to download it
        path = Path(text)
        if not path.exists():
            raise DataError("no such file or folder; give the folder that your data lies in, or its files", path)
        if form:
            found |= {known: form for known in found if known.samefile(path)} or {path: form}
        elif not path.is_dir():
            found.setdefault(path, "")
        elif is_results_folder(path):
            raise UsageError(f"{path} holds results of judgekit: give the folder with the data")
        else:
            for file in walk(path):
                if not file.name.endswith(_NO_DATA) and IMPORTED not in file.relative_to(path).parts[:1]:
                    found.setdefault(file, "")
    return found


class _Survey:
    """What is known of the files so far."""

    def __init__(self, paths: Sequence[str | Path], out: Path | None, spare: Path) -> None:
        found = _files_of(paths)
        if not found:
            raise DataError("holds no files of data", Path(paths[0]))
        folders = [Path(path) for path in paths if Path(path).is_dir()]
        self.root = folders[0] if len(folders) == 1 and _all_inside(found, folders[0]) else _common([*found])
        self.folder = self.root if out is None else out
        self.spare = spare
        self.cautions: list[str] = []
        self.texts: list[Path] = []
        self.files: list[Input] = []
        self.imported: dict[str, Path] = {}
        for path, form in found.items():
            file = self.input(path, form)
            suffix = path.suffix.lower()
            if form or suffix not in TEXTS or suffix == ".txt":
                file.look()
            if not form and suffix in TEXTS and not file.kinds:
                self.texts.append(path)
            else:
                self.files.append(file)
        self.runs: dict[str, tuple[Input, Run]] = {}
        self.qrels: dict[str, tuple[Input, str]] = {}

    def input(self, path: Path, form: str = "") -> Input:
        """Return a file that nobody has looked at."""
        source = Path(os.path.relpath(path.absolute(), self.folder.absolute())).as_posix()
        return Input(path, _shown(path, self.root), source, form)

    def of(self, kind: str) -> list[Input]:
        """Return the files that may hold a kind, those that hold nothing else first."""
        return sorted((file for file in self.files if kind in file.kinds), key=lambda file: file.nested)

    def read(self, file: Input, kind: str, reader: Callable[[str], Any]) -> Any:
        """Return what a reader makes of a file; None if it cannot, which is said of the file."""
        try:
            return reader(file.given)
        except PlainQuotes as error:
            if file.form or file.found.flat is not TSV:
                return self.refused(file, kind, error)
            file.form = error.cure
            self.cautions.append(f"{file.name}: its quotes are plain characters ({file.form})")
            return self.read(file, kind, reader)
        except DataError as error:
            return self.refused(file, kind, error)

    def refused(self, file: Input, kind: str, error: DataError) -> None:
        """Say why a file cannot be read as a kind."""
        where = "" if error.line is None else f"line {error.line}: "
        if not file.why:
            file.why = f"not used: it looks like {KINDS[kind]}, but {where}{error.reason}"
            self.cautions.append(f"{file.name} is {file.why}")
        file.kinds = [one for one in file.kinds if one != kind]

    def draft(self) -> Draft:
        """Take the files for what they are, one kind after the other: runs first, whose ids decide what joins."""
        self._take_runs()
        self._join_by_text()
        ids = set(chain.from_iterable(run.query_ids for _, run in self.runs.values()))
        depth = min(
            _ANSWERED, max((int(run.counts.max(initial=1)) for _, run in self.runs.values()), default=_ANSWERED)
        )
        doc_ids = {d for _, run in self.runs.values() for d in run.cut(depth).doc_ids}
        self._take_texts(doc_ids)
        queries = self._take_queries(ids, doc_ids)
        docs = self._take_docs(doc_ids)
        if not (queries and docs and self.runs):
            kinds = {"questions": queries, "passages": docs, "runs": self.runs}
            return self._incomplete([what for what, there in kinds.items() if not there])
        asked = self._asked(queries[1], ids)
        if not asked or not self._check_runs(asked, docs[1]):
            return self._incomplete(["runs about these questions and passages"])
        outcome = self._take_outcome(asked, queries[1], depth)
        depth = max(outcome.depths)
        self._take_qrels(asked, docs[1], depth)
        self._look(asked, docs[1], depth)
        for file in self.files:
            file.why = file.why or _not_used(file, "no other file needs it")
        pilot = list(asked.values()) if len(asked) < len(queries[1]) else None
        plan = Planned(
            queries=queries[0].written if pilot is None else PILOT_FILE,
            docs=[file.written for file in docs[0]],
            depth=depth,
            runs={name: file.written for name, (file, _) in self.runs.items()},
            qrels={name: (file.written, expand) for name, (file, expand) in self.qrels.items()},
            referenced=any(query.answers for query in asked.values()),
            outcome=outcome,
        )
        text = plan.toml()
        self._check({**tomllib.loads(text)}, queries[0].written, asked)
        imported = {name: path.read_text() for name, path in self.imported.items()}
        return Draft(self.folder, self._seen(), tuple(self.cautions), "", text, plan.asks, pilot, imported)

    def _check(self, content: dict[str, Any], queries: str, asked: Queries) -> None:
        """Have the experiment prepared as `run` does, and note what it says."""
        # With all questions: those of the pilot are not written yet, nor are imported files at their places.
        content["data"]["queries"] = queries
        places = {name: str(path) for name, path in self.imported.items()}
        config = parse_config(_replaced(content, places), self.folder / "experiment.toml")
        checked = prepare(config, keys=False).collection.only(asked)
        self.cautions += [note for note in (*lacking(checked), *checked.notes) if note not in self.cautions]

    def _incomplete(self, lacking: list[str]) -> Draft:
        traces = [file.name for file in self.files if file.kinds == ["traces"]]
        for file in self.files:
            file.why = file.why or _not_used(file, f"there are no {' and no '.join(lacking)} here")
        reason = f"there are no {' and no '.join(lacking)} here, and an experiment needs questions, passages and runs"
        table = next((file for file in self.files if file.found.flat is not None and not file.kinds), None)
        if table is not None and table.found.flat is not None and table.found.flat.name in TABULAR:
            named = f"'{table.found.flat.name}(id=…,text=…):{table.path}'"
            reason += f". If columns have other names, say what they are: judgekit init {self.root} {named}"
        if traces:
            reason = f"these are traces: judgekit traces {' '.join(traces)} --out data makes an experiment of them"
        return Draft(self.folder, self._seen(), tuple(self.cautions), reason)

    def _seen(self) -> tuple[Seen, ...]:
        """Return the list of files; many unused ones of a kind in a folder are one line."""
        alike: dict[tuple[Path, str], list[Input]] = {}
        for file in self.files:
            if not file.taken:
                alike.setdefault((file.path.parent, file.path.suffix), []).append(file)
        many = {key: files for key, files in alike.items() if len(files) > _LISTED}
        seen = []
        for file in self.files:
            key = (file.path.parent, file.path.suffix)
            if file.taken or key not in many:
                seen.append(Seen(file.name, "; ".join(file.taken) or file.why, tuple(file.columns)))
            elif many[key][0] is file:
                name = (Path(file.name).parent / f"*{file.path.suffix}").as_posix()
                seen.append(Seen(name, f"{len(many[key]):,} files, the first {file.why}"))
        return tuple(seen)

    def _join_by_text(self) -> None:
        """Give results whose questions have no ids those of a table that holds the same questions."""
        results = {name: (file, run) for name, (file, run) in self.runs.items() if "query" in file.kinds}
        tables: list[tuple[Input, dict[str, str]]] = []
        for table in self.of("query") if results else ():
            queries = None if table.nested else self.read(table, "query", read_queries)
            if queries is not None:
                tables.append((table, {_folded(query.text): query_id for query_id, query in queries.items()}))
        passages: dict[tuple[str, str], str] = {}
        for name, (file, run) in results.items():
            own = self.read(file, "query", read_queries) or {}
            texts = {_folded(query.text) for query in own.values()}
            table, known = max(tables, key=lambda one: len(texts & one[1].keys()), default=(file, {}))
            matched = len(texts & known.keys())
            if own.keys() & {*known.values()} or 2 * matched <= len(texts):
                continue
            named = {query_id: known.get(_folded(query.text), query_id) for query_id, query in own.items()}
            answers = self.read(file, "answer", partial(read_table, ANSWERS)) if "answer" in file.kinds else None
            joined = f"{IMPORTED}/{name}.jsonl"
            path = self.spare / f"{len(self.imported)}.jsonl"
            path.write_text(_with_ids(own, named, read_docs(file.given), run, answers, passages))
            kinds = [kind for kind in file.kinds if kind not in ("query", "qrels")]
            # Its columns are told once, with the file that it came from.
            other = Input(path, joined, joined, found=replace(file.found, fields=()), kinds=kinds)
            file.taken.append(
                f"results for {matched:,} questions of {table.name}, found by their text: written to {joined}"
                " with their ids"
            )
            file.columns += _told(columns_of(file.given, file.found, "query"), "query")
            file.kinds, table.kinds = [], ["query"]
            self.imported[joined] = path
            self.files.append(other)
            self.runs[name] = (other, read_run(path, name))

    def _take_texts(self, doc_ids: set[str]) -> None:
        """Take the text files of a folder together, as passages by their paths."""
        if not self.texts:
            return
        below = _common(self.texts)
        places = [below, *(place for place in below.absolute().parents if place.is_relative_to(self.root.absolute()))]
        named = (place for place in places if any(_inside(path, place) in doc_ids for path in self.texts))
        place = next(named, below)
        file = self.input(place, "texts")
        file.name = f"{file.name.rstrip('/.') or '.'}/"
        file.kinds, file.found = ["doc"], Recognised(("doc",), FOLDER, FOLDER)
        if not any(_inside(path, place) in doc_ids for path in self.texts):
            if len(self.texts) <= _LISTED:
                why = "not used: a text, and no run names it by its path"
                self.files += [replace(self.input(path), why=why) for path in self.texts]
                return
            file.kinds = []
            file.why = (
                f"not used: {len(self.texts):,} text files, and no run names one by its path. Cut into passages they"
                f" are texts(cut=2000):{file.source}"
            )
        self.files.append(file)

    def _take_runs(self) -> None:
        for file in self.of("run"):
            name = stem(file.path) if stem(file.path) != ALL else "all-runs"
            if name in self.runs:
                name = f"{file.path.parent.name}-{name}"
            number, first = 2, name
            while name in self.runs:
                name, number = f"{first}-{number}", number + 1
            run = self.read(file, "run", partial(read_run, name=name))
            if run is not None:
                self.runs[name] = (file, run)

    def _take_queries(self, ids: set[str], doc_ids: set[str]) -> tuple[Input, Queries] | None:
        found: list[tuple[Input, Queries]] = []
        for file in self.of("query"):
            either = {"query", "doc"} <= {*file.kinds} and not file.nested
            if either and self.read(file, "query", partial(is_docs, query_ids=ids, doc_ids=doc_ids)):
                file.kinds = ["doc"]
                continue
            queries = self.read(file, "query", read_queries) if "query" in file.kinds else None
            if queries is not None:
                found.append((file, queries))
        if not found:
            return None

        def fits(one: tuple[Input, Queries]) -> tuple[float, ...]:
            file, queries = one
            referenced = any(query.answers for query in queries.values())
            return len(ids & set(queries)), file.nested or "answer" not in file.kinds, referenced, not file.nested

        file, queries = max(found, key=fits)
        queries = _of_split(file, queries, ids)
        if not file.nested:
            file.kinds = [kind for kind in file.kinds if kind not in ("doc", "answer")]
        referenced = sum(bool(query.answers) for query in queries.values())
        counted = f"{len(queries):,}, {f'{referenced:,}' if referenced else 'none'} with reference answers"
        file.take("query", f"questions: {counted}")
        return file, queries

    def _take_docs(self, doc_ids: set[str]) -> tuple[list[Input], Docs] | None:
        found: list[tuple[int, Input, Docs]] = []
        for file in self.of("doc"):
            docs = self.read(file, "doc", read_docs)
            if docs is not None:
                found.append((sum(doc_id in docs for doc_id in doc_ids), file, docs))
        chosen: list[Input] = []
        left = set(doc_ids)
        for held, file, docs in sorted(found, key=lambda one: -one[0]):
            new = {doc_id for doc_id in left if doc_id in docs}
            if new or (not chosen and not held):
                left -= new
                chosen.append(file)
                file.take("doc", f"passages: {len(docs):,}{_long(file, docs)}")
            else:
                file.why = file.why or "not used as passages: other files hold all passages of the runs"
        if not chosen:
            return None
        if len(chosen) == 1:
            return chosen, next(docs for _, file, docs in found if file is chosen[0])
        return chosen, read_docs([file.given for file in chosen])

    def _asked(self, queries: Queries, ids: set[str]) -> Queries:
        """Return the questions of the experiment: those that runs hold, or all where that is at least half of them."""
        there = {query_id: query for query_id, query in queries.items() if query_id in ids}
        lost = len(queries) - len(there)
        if not there:
            self.cautions.append(
                f"no run holds one of the questions: theirs are {min(ids)!r} and so on, those of the questions"
                f" {next(iter(queries))!r}"
            )
        elif lost > len(there):
            self.cautions.append(
                f"the runs hold {len(there):,} of {len(queries):,} questions: the experiment uses only these"
            )
        elif lost:
            self.cautions.append(f"{lost:,} of {len(queries):,} questions are in no run and score 0")
            return queries
        return there

    def _check_runs(self, asked: Queries, docs: Docs) -> bool:
        """Keep the runs that join with questions and passages, and say of the others why they do not."""
        for name, (file, run) in list(self.runs.items()):
            shape = f"{len(run.query_ids):,} questions, up to {int(run.counts.max(initial=0)):,} documents each"
            try:
                check_runs([run], asked, docs)
            except DataError as error:
                file.why = f"not used: {error.reason}"
                self.cautions.append(f"{file.name} does not join: {error.reason}")
                del self.runs[name]
                continue
            file.take("run", f"run {name!r}: {shape}")
        return bool(self.runs)

    def _take_qrels(self, asked: Queries, docs: Docs, depth: int) -> None:
        pooled = dict(pool([run for _, run in self.runs.values()], asked, depth))
        for file in self.of("qrels"):
            labeling = self.read(file, "qrels", lambda path: read_qrels(path))
            if labeling is None:
                continue
            judged = labeling.table.groupby("query_id")["doc_id"].agg(set).to_dict()
            of = [query_id for query_id in asked if query_id in judged]
            if not of:
                file.why = "not used: it judges none of the questions"
                self.cautions.append(f"{file.name} judges none of the questions of the runs")
                continue
            met = sum(bool(judged[query_id] & set(pooled[query_id])) for query_id in of)
            expand = ""
            if not met and (expand := _expanded(judged, pooled, of, docs)):
                met = len(of)
            if not met:
                self.cautions.append(
                    f"{file.name} judges none of the passages that the runs found: are these of the same collection?"
                )
                file.why = "not used: it judges none of the passages that the runs found"
                continue
            name = stem(file.path)
            while name in self.qrels or name in ("containment", "judge", "erag"):
                name += "-qrels"
            self.qrels[name] = (file, expand)
            by = f", by the {expand} of a passage" if expand else ""
            file.take(
                "qrels",
                f"judgments: {len(of):,} of {len(asked):,} questions, {met:,} with a judged passage among those that"
                f" runs found{by}",
            )

    def _take_outcome(self, asked: Queries, queries: Queries, depth: int) -> KnownOutcome:
        """Return what is known of answers: ratings, else what an application answered, or nothing."""
        outcome = KnownOutcome()
        left = set(self.runs)
        for kind, what in (("ratings", "ratings of answers"), ("answer", "answers of your application")):
            for file in self.of(kind):
                if (file.taken and not file.nested) or (kind == "answer" and (outcome.metrics or not left)):
                    continue
                _formed(file)
                table = self.read(file, kind, partial(_rows, file, kind))
                if table is None:
                    continue
                own = {name for name, (other, _) in self.runs.items() if other is file}
                named = set(table["run"]) if "run" in table.columns else own
                odd = sorted(named - {*self.runs, ALL})
                columns = {"depth", "mode", "context"} & {*table.columns}
                problem = ""
                if not table["query_id"].isin(list(asked)).any():
                    problem = "none of its rows is about the questions of the experiment"
                elif odd:
                    problem = f"it is about run {odd[0]!r}, and the runs are {', '.join(self.runs)}"
                    problem += ": make a file of each run, with its name" if own else ""
                elif not named and len(self.runs) > 1:
                    problem = f"its rows name no run ({', '.join(self.runs)}): add a column 'run'"
                elif kind == "answer" and outcome.files and (columns != outcome.columns or not named <= left):
                    problem = f"{outcome.files[0]} has answers with other columns, or of the same runs"
                elif kind == "answer" and (strange := sorted({*table["query_id"]} - {*queries})):
                    problem = f"query {strange[0]!r} is not among the questions"
                if problem:
                    file.why = f"not used: {problem}"
                    self.cautions.append(f"the {what.split()[0]} of {file.name} are not used: {problem}")
                    continue
                if "depth" in table.columns:
                    outcome.depths += {int(one) for one in table["depth"] if one > 0} - {*outcome.depths}
                elif file.nested:
                    outcome.depths.append(max(int(run.counts.max(initial=1)) for _, run in self.runs.values()))
                outcome.files.append(file.written)
                outcome.columns = columns
                left -= named or left
                outcome.rated |= self.read(file, kind, partial(candidates, beside_answers=kind == "answer")) or {}
                outcome.cluster = outcome.cluster or next((name for name in RATERS if name in table.columns), "")
                outcome.metrics = sorted({*outcome.metrics, *table["metric"]}) if kind == "ratings" else []
                file.take(kind, what)
        if outcome.files and left and not outcome.metrics:
            self.cautions.append(f"there are no answers of run {', '.join(sorted(left))}")
        outcome.depths = sorted({*outcome.depths}) or [min(_ANSWERED, depth)]
        return outcome

    def _look(self, asked: Queries, docs: Docs, depth: int) -> None:
        """Look for what makes labels worthless before they are made."""
        pooled = {d for _, ids in pool([run for _, run in self.runs.values()], asked, depth) for d in ids}
        found = docs.get(sorted(pooled))
        texts = Counter(" ".join(render(doc).split()).casefold() for doc in found if doc.text.strip())
        copies = sum(count - 1 for count in texts.values())
        if copies:
            self.cautions.append(
                f"{copies:,} of the {len(found):,} passages that runs found repeat the text of another and"
                " are labelled and counted twice"
            )
        asked_twice = sum(count - 1 for count in Counter(query.text.strip() for query in asked.values()).values())
        if asked_twice:
            self.cautions.append(f"{asked_twice:,} of the {len(asked):,} questions repeat the text of another")


def _not_used(file: Input, why: str) -> str:
    """Return why a file is left aside; "" of one that is used."""
    if file.taken:
        return ""
    if not file.kinds:
        return "not used"
    return f"not used: it looks like {' or '.join(KINDS.get(kind, kind) for kind in file.kinds)}, but {why}"


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def _inside(path: Path, folder: Path) -> str:
    return text_id(path.absolute(), folder.absolute())


def _all_inside(files: Iterable[Path], folder: Path) -> bool:
    return all(file.absolute().is_relative_to(folder.absolute()) for file in files)


def _replaced(value: Any, texts: Mapping[str, str]) -> Any:
    """Return TOML's values with some texts replaced."""
    if isinstance(value, dict):
        return {key: _replaced(part, texts) for key, part in value.items()}
    if isinstance(value, list):
        return [_replaced(part, texts) for part in value]
    return texts.get(value, value) if isinstance(value, str) else value


def _with_ids(
    queries: Queries,
    named: Mapping[str, str],
    docs: Docs,
    run: Run,
    answers: pd.DataFrame | None,
    passages: dict[tuple[str, str], str],
) -> str:
    """Return results as JSON lines, each with the id of its question; a passage keeps its id in earlier results."""
    earlier = dict(passages)
    by_id = {} if answers is None else {row["query_id"]: row for row in answers.to_dict("records")}
    lines = []
    for query_id, query in queries.items():
        documents: dict[str, dict[str, str]] = {}
        for doc in docs.get(run.top(query_id) if query_id in {*run.query_ids} else []):
            doc_id = earlier.get((doc.title, doc.text), doc.doc_id)
            doc_id = doc.doc_id if doc_id in documents else doc_id
            documents[doc_id] = {"id": doc_id, "title": doc.title, "text": doc.text}
            passages.setdefault((doc.title, doc.text), doc_id)
        further = {name: cell for name, cell in by_id.get(query_id, {}).items() if name != "query_id"}
        entry = {"query_id": named[query_id], "question": query.text, "documents": [*documents.values()], **further}
        lines.append(json.dumps(entry, ensure_ascii=False))
    return "\n".join(lines) + "\n"


_LONG: Final = 8000


def _long(file: Input, docs: Docs) -> str:
    """Return a hint where text files are longer than a passage should be."""
    if file.found.form is not FOLDER or not isinstance(docs, Iterable):
        return ""
    long = sum(len(doc.text) > _LONG for doc in docs)
    cut = f"texts(cut=2000):{file.source} cuts them into passages, to retrieve from"
    return f", {long:,} of them longer than {_LONG:,} characters ({cut})" if long else ""


def _common(files: Sequence[Path]) -> Path:
    found = Path(os.path.commonpath([file.absolute().parent for file in files]))
    here = Path.cwd()
    return Path(os.path.relpath(found, here)) if found.is_relative_to(here) else found


def _shown(path: Path, folder: Path) -> str:
    inside = path.absolute()
    return inside.relative_to(folder.absolute()).as_posix() if inside.is_relative_to(folder.absolute()) else str(path)


def _of_split(file: Input, queries: Queries, ids: set[str]) -> Queries:
    """Return the queries of the split of a BEIR folder that runs are about, which the experiment names as well."""
    folder = file.path.parent
    for path in sorted(folder.glob("qrels/*.tsv*")) if any(folder.glob("corpus.jsonl*")) else ():
        form = f"beir(split={path.name.split('.')[0]})"
        some = read_queries(f"{form}:{folder}")
        if len(some) < len(queries) and ids & set(queries) <= set(some):
            file.form, file.path, file.source = form, folder, Path(file.source).parent.as_posix()
            return some
    return queries


def _formed(file: Input) -> None:
    """Put the names of the columns of ratings or answers in front of their path, where they are not judgekit's."""
    if file.nested or file.form or file.found.flat is None:
        return
    names = DECLARED_KINDS["ratings" if "ratings" in file.kinds else "answer"].names
    wanted = {"query_id": names.get("query_id", names.get("id", ()))}
    wanted |= {key: names[key] for key in ("value", "answer") if key in names}
    told = {key: next((name for name in some if name in file.found.fields), key) for key, some in wanted.items()}
    differing = tuple((key, name) for key, name in told.items() if key != name)
    if differing:
        file.form = str(Spec(file.found.flat.name, differing))


def _rows(file: Input, kind: str, source: str) -> pd.DataFrame:
    return named(read_table(RATINGS, source)) if kind == "ratings" else read_table(ANSWERS, source)


def _expanded(judged: Mapping[str, set[str]], pooled: Mapping[str, list[str]], of: Iterable[str], docs: Docs) -> str:
    """Return ``page`` or ``title`` if that is what judgments name, "" otherwise."""
    for query_id in of:
        for doc in docs.get(pooled[query_id]):
            if doc.page_id in judged[query_id]:
                return "page"
            if doc.title in judged[query_id]:
                return "title"
    return ""
