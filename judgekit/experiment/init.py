"""From a folder of the user's own files to an experiment that runs: what each is taken for, and what looks wrong."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

from judgekit.collection import lacking
from judgekit.data.checks import check_runs
from judgekit.data.documents import Docs, Queries, Query, render
from judgekit.data.forms.texts import FOLDER, text_id
from judgekit.data.outputs import check_folder
from judgekit.data.readers import read_docs, read_queries, write_queries
from judgekit.data.recognise import Recognised, is_docs
from judgekit.data.runs import Run, pool
from judgekit.data.sources import stem
from judgekit.data.streams import write_atomic
from judgekit.data.tables import ALL
from judgekit.data.trec import read_qrels, read_run
from judgekit.errors import DataError
from judgekit.experiment.answered import ANSWERED, OutcomeFound, longest
from judgekit.experiment.file import parse_config
from judgekit.experiment.inputs import (
    IMPORTED,
    LISTED,
    Files,
    Input,
    Seen,
    common_folder,
    is_inside,
    seen,
)
from judgekit.experiment.joined import folded, give_results_ids, give_tables_ids, references_of, with_references
from judgekit.experiment.prepare import prepare
from judgekit.experiment.written import Planned
from judgekit.metrics import Measure, incomparable, suited

PILOT_FILE: Final = "pilot.jsonl"
_JOINED: Final = f"{IMPORTED}/questions.jsonl"
"""The questions of several files."""
_LONG: Final = 8000
"""Characters of a text that is longer than a passage should be."""
_OWN_LABELINGS: Final = ("containment", "judge", "erag")
_HOLDS_REFERENCES: Final = ("reference", "gold", "truth", "expected")
"""What files of reference answers are called, where nothing else decides."""


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
        imported: further files to write, by name: what got the ids of its questions, and the questions that runs hold
            where the query file has far more.
    """

    folder: Path
    files: tuple[Seen, ...]
    cautions: tuple[str, ...]
    lacking: str = ""
    toml: str = ""
    asks: bool = False
    imported: Mapping[str, str] = field(default_factory=dict)

    @property
    def files_written(self) -> list[Path]:
        """The files that `write` makes, the experiment first."""
        return [self.folder / name for name in ("experiment.toml", *self.imported)]

    def write(self) -> None:
        """Write the experiment file, and the further files that it names."""
        for name, content in self.imported.items():
            write_atomic(self.folder / name, content)
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
        return _Survey(Files(paths, out, Path(spare))).draft()


class _Survey:
    """What is known of the files so far; each step takes the files of one kind."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self.runs: dict[str, tuple[Input, Run]] = {}
        self.qrels: dict[str, tuple[str, str]] = {}
        self.queries: Queries = {}
        self.queries_file = ""
        self.docs: Docs | None = None
        self.docs_files: list[str] = []

    def draft(self) -> Draft:
        """Take the files for what they are, one kind after the other: runs first, whose ids decide what joins."""
        give_tables_ids(self.files)
        self._take_runs()
        give_results_ids(self.files, self.runs)
        self._take_texts()
        self._take_queries()
        self._take_docs()
        there = {"questions": self.queries, "passages": self.docs_files, "runs": self.runs}
        missing = [what for what, held in there.items() if not held]
        if missing or self.docs is None:
            return self._incomplete(missing)
        asked = self._asked()
        if not asked or not self._check_runs(asked, self.docs):
            return self._incomplete(["runs about these questions and passages"])
        outcome = OutcomeFound(self.files, self.runs, self.queries, asked).taken()
        depth = max(outcome.depths)
        self._take_qrels(asked, self.docs, depth)
        self._note_copies(asked, self.docs, depth)
        if len(asked) < len(self.queries):
            self.files.imported.pop(_JOINED, None)
            self.queries_file = self._write_questions(PILOT_FILE, asked)
        plan = Planned(
            queries=self.queries_file,
            docs=self.docs_files,
            depth=depth,
            runs={name: file.written for name, (file, _) in self.runs.items()},
            qrels=self.qrels,
            reference_words=_reference_words(asked),
            outcome=outcome,
            measure=self._measure(asked, self.docs, depth),
        )
        text = plan.toml()
        self._check(tomllib.loads(text), asked)
        self._explain_unused()
        imported = {name: path.read_text(encoding="utf-8") for name, path in self.files.imported.items()}
        return Draft(
            self.files.folder,
            seen(self.files.all),
            cautions=tuple(self.files.cautions),
            lacking="",
            toml=text,
            asks=plan.asks,
            imported=imported,
        )

    def _measure(self, asked: Queries, docs: Docs, depth: int) -> str:
        """Return the measure of the decision: another than nDCG where the runs are over different chunkings."""
        runs = [run.cut(depth).only(asked) for _, run in self.runs.values()]
        (measure,) = suited([Measure(f"nDCG@{depth}")], runs, docs)
        why = incomparable(runs, measure)
        if not why:
            return "nDCG"
        self.files.cautions.append(f"the decision is about RR@{depth}, not nDCG. {why}")
        return "RR"

    @property
    def asked_ids(self) -> set[str]:
        """The ids of the questions that runs hold."""
        return {*chain.from_iterable(run.query_ids for _, run in self.runs.values())}

    def doc_ids(self) -> set[str]:
        """Return the passages that answers are made from."""
        depth = min(ANSWERED, longest(run for _, run in self.runs.values()))
        return {doc_id for _, run in self.runs.values() for doc_id in run.cut(depth).doc_ids}

    def _write_questions(self, name: str, queries: Queries) -> str:
        file = self.files.add_written(name, "")
        write_queries(queries, file.path)
        return file.name

    def _take_texts(self) -> None:
        """Take the text files of a folder together, as passages by their paths."""
        texts = self.files.texts
        if not texts:
            return
        doc_ids = self.doc_ids()
        below = common_folder(texts)
        places = [below, *(place for place in below.absolute().parents if is_inside(place, self.files.root))]
        naming = (place for place in places if doc_ids.intersection(_names_inside(texts, place)))
        place = next(naming, None)
        if place is None and len(texts) <= LISTED:
            why = "not used: a text, and no run names it by its path"
            self.files.all += [replace(self.files.at(path), why=why) for path in texts]
            return
        file = self.files.at(place or below, "texts")
        file.name = f"{file.name.rstrip('/.') or '.'}/"
        file.content = Recognised(("doc",), FOLDER, FOLDER)
        file.kinds = ["doc"]
        if place is None:
            file.kinds = []
            file.why = (
                f"not used: {len(texts):,} text files, and no run names one by its path. Cut into passages they are"
                f" texts(cut=2000):{file.source}"
            )
        self.files.all.append(file)

    def _take_runs(self) -> None:
        for file in self.files.of("run"):
            name = stem(file.path) if stem(file.path) != ALL else "all-runs"
            if name in self.runs:
                name = f"{file.path.parent.name}-{name}"
            number, first = 2, name
            while name in self.runs:
                name, number = f"{first}-{number}", number + 1
            run = self.files.read(file, "run", partial(read_run, name=name))
            if run is not None:
                self.runs[name] = (file, run)

    def _take_queries(self) -> None:
        """Take the questions: those of the file that fits best, and what others add to them."""
        ids, doc_ids = self.asked_ids, self.doc_ids()
        read: list[tuple[Input, Queries]] = []
        for file in self.files.of("query"):
            either = {"query", "doc"} <= {*file.kinds} and not file.nested
            if either and self.files.read(file, "query", partial(is_docs, query_ids=ids, doc_ids=doc_ids)):
                file.kinds = ["doc"]
                continue
            queries = self.files.read(file, "query", read_queries) if "query" in file.kinds else None
            if queries is not None:
                read.append((file, queries))
        if not read:
            return

        def fits(candidate: tuple[Input, Queries]) -> tuple[float, ...]:
            file, queries = candidate
            referenced = any(query.answers for query in queries.values())
            return len(ids & {*queries}), file.nested or "answer" not in file.kinds, referenced, not file.nested

        main, queries = max(read, key=fits)
        self.queries = _of_split(main, queries, ids)
        if not main.nested:
            main.kinds = [kind for kind in main.kinds if kind not in ("doc", "answer", "references")]
        main.take("query", f"questions: {_counted(self.queries)}")
        before = self.queries
        for file, further in read:
            if file is not main:
                self._add_questions(file, further, ids)
        for file in self.files.of("references"):
            self._add_references(file)
        self.queries_file = main.written
        if self.queries is not before:
            self.queries_file = self._write_questions(_JOINED, self.queries)

    def _add_questions(self, file: Input, further: Queries, ids: set[str]) -> None:
        """Add the questions of a further file that runs hold, and the reference answers that the first file lacks."""
        new = {query_id: query for query_id, query in further.items() if query_id in ids - self.queries.keys()}
        answers = {query_id: query.answers for query_id, query in further.items()}
        answered = with_references(self.queries, answers)
        if file.nested:
            new = {}  # what only one run was asked says nothing about the others
        if new:
            file.take("query", f"more questions: {_counted(new)}; all are written to {_JOINED}")
        elif answered:
            file.take("query", f"reference answers to {len(answered):,} questions, written to {_JOINED}")
        elif not file.nested:
            file.why = "not used: no run holds a question that only this file has"
        if new or answered:
            self.queries = {**self.queries, **answered, **new}

    def _add_references(self, file: Input) -> None:
        """Add the reference answers of a table without questions, where the questions have none."""
        is_called_so = any(part in file.path.name.lower() for part in _HOLDS_REFERENCES)
        if "answer" in file.kinds and len(self.runs) == 1 and not is_called_so:
            return  # of the only run an answer needs no name
        references = self.files.read(file, "references", references_of)
        answered = with_references(self.queries, references or {})
        if answered:
            file.kinds = []
            file.take("references", f"reference answers to {len(answered):,} questions, written to {_JOINED}")
            self.queries = {**self.queries, **answered}
        elif "answer" not in file.kinds and references is not None:
            known = self.queries.keys() & references.keys()
            why = "the questions have reference answers" if known else "none of its rows is about one of the questions"
            self.files.leave(file, f"it looks like reference answers, but {why}")

    def _take_docs(self) -> None:
        doc_ids = self.doc_ids()
        read: list[tuple[int, Input, Docs]] = []
        for file in self.files.of("doc"):
            docs = self.files.read(file, "doc", read_docs)
            if docs is not None:
                read.append((sum(doc_id in docs for doc_id in doc_ids), file, docs))
        chosen: list[tuple[Input, Docs]] = []
        left = {*doc_ids}
        for held, file, docs in sorted(read, key=lambda entry: -entry[0]):
            new = {doc_id for doc_id in left if doc_id in docs}
            if new or (not chosen and not held):
                left -= new
                chosen.append((file, docs))
                file.take("doc", f"passages: {len(docs):,}{_long(file, docs)}")
            else:
                file.why = file.why or "not used as passages: other files hold all passages of the runs"
        self.docs_files = [file.written for file, _ in chosen]
        if len(chosen) == 1:
            self.docs = chosen[0][1]
        elif chosen:
            self.docs = read_docs([file.given for file, _ in chosen])

    def _asked(self) -> Queries:
        """Return the questions of the experiment: those that runs hold, or all where that is at least half of them."""
        queries, ids = self.queries, self.asked_ids
        there = {query_id: query for query_id, query in queries.items() if query_id in ids}
        lost = len(queries) - len(there)
        if not there:
            self.files.cautions.append(
                f"no run holds one of the questions: theirs are {min(ids)!r} and so on, those of the questions"
                f" {next(iter(queries))!r}"
            )
        elif lost > len(there):
            self.files.cautions.append(
                f"the runs hold {len(there):,} of {len(queries):,} questions: the experiment uses only these"
            )
        elif lost:
            self.files.cautions.append(f"{lost:,} of {len(queries):,} questions are in no run and score 0")
            return queries
        return there

    def _check_runs(self, asked: Queries, docs: Docs) -> bool:
        """Keep the runs that join with questions and passages, and say of the others why they do not."""
        for name, (file, run) in list(self.runs.items()):
            try:
                check_runs([run], asked, docs)
            except DataError as error:
                self.files.leave(file, error.reason, f"{file.name} does not join: {error.reason}")
                del self.runs[name]
                continue
            longest = int(run.counts.max(initial=0))
            file.take("run", f"run {name!r}: {len(run.query_ids):,} questions, up to {longest:,} documents each")
        return bool(self.runs)

    def _take_qrels(self, asked: Queries, docs: Docs, depth: int) -> None:
        pooled = dict(pool([run for _, run in self.runs.values()], asked, depth))
        for file in self.files.of("qrels"):
            labeling = self.files.read(file, "qrels", lambda path: read_qrels(path))
            if labeling is None:
                continue
            judged = labeling.table.groupby("query_id")["doc_id"].agg(set).to_dict()
            about = [query_id for query_id in asked if query_id in judged]
            if not about:
                none = "judges none of the questions"
                self.files.leave(file, f"it {none}", f"{file.name} {none} of the runs")
                continue
            met = sum(bool(judged[query_id] & {*pooled[query_id]}) for query_id in about)
            expand = ""
            if not met and (expand := _expanded(judged, pooled, about, docs)):
                met = len(about)
            if not met:
                none = "judges none of the passages that the runs found"
                self.files.leave(file, f"it {none}", f"{file.name} {none}: are these of the same collection?")
                continue
            name = stem(file.path)
            while name in self.qrels or name in _OWN_LABELINGS:
                name += "-qrels"
            self.qrels[name] = (file.written, expand)
            by = f", by the {expand} of a passage" if expand else ""
            file.take(
                "qrels",
                f"judgments: {len(about):,} of {len(asked):,} questions, {met:,} with a judged passage among those that"
                f" runs found{by}",
            )

    def _note_copies(self, asked: Queries, docs: Docs, depth: int) -> None:
        """Look for what makes labels worthless before they are made."""
        pooled = {doc_id for _, ids in pool([run for _, run in self.runs.values()], asked, depth) for doc_id in ids}
        passages = docs.get(sorted(pooled))
        copies = _repeated(folded(render(doc)) for doc in passages if doc.text.strip())
        if copies:
            self.files.cautions.append(
                f"{copies:,} of the {len(passages):,} passages that runs found repeat the text of another and"
                " are labelled and counted twice"
            )
        asked_twice = _repeated(query.text.strip() for query in asked.values())
        if asked_twice:
            self.files.cautions.append(f"{asked_twice:,} of the {len(asked):,} questions repeat the text of another")

    def _check(self, content: dict[str, Any], asked: Queries) -> None:
        """Have the experiment prepared as `run` does, and note what it says."""
        places = {name: str(path) for name, path in self.files.imported.items()}  # imported files are not written yet
        config = parse_config(_replaced(content, places), self.files.folder / "experiment.toml")
        checked = prepare(config, keys=False).collection.only(asked)
        self.files.cautions += [note for note in (*lacking(checked), *checked.notes) if note not in self.files.cautions]

    def _explain_unused(self) -> None:
        """Say why files are not used."""
        for file in self.files.all:
            file.leave("no other file needs it")
            if file.unknown_table and not file.taken:
                self.files.cautions.append(f"{file.name} is not used: nothing says what its columns hold.")

    def _incomplete(self, missing: list[str]) -> Draft:
        none = f"there are no {' and no '.join(missing)} here"
        for file in self.files.all:
            file.leave(none)
        reason = f"{none}, and an experiment needs questions, passages and runs"
        table = next((file for file in self.files.all if file.unknown_table), None)
        if table is not None:
            command = f"judgekit init {self.files.root} '{table.unknown_table}(id=…,text=…):{table.path}'"
            reason += f". If columns have other names, say what they are: {command}"
        traces = [file.name for file in self.files.all if file.kinds == ["traces"]]
        if traces:
            reason = f"these are traces: judgekit traces {' '.join(traces)} --out data makes an experiment of them"
        return Draft(self.files.folder, seen(self.files.all), tuple(self.files.cautions), reason)


def _counted(queries: Mapping[str, Query]) -> str:
    referenced = sum(bool(query.answers) for query in queries.values())
    return f"{len(queries):,}, {f'{referenced:,}' if referenced else 'none'} with reference answers"


def _reference_words(queries: Queries) -> int:
    """Return how many words the shortest reference of a question has, by the median; 0 where none has one."""
    lengths = [min(len(answer.split()) for answer in query.answers) for query in queries.values() if query.answers]
    return round(median(lengths)) if lengths else 0


def _repeated(texts: Iterable[str]) -> int:
    """Return how many texts were there before."""
    return sum(count - 1 for count in Counter(texts).values())


def _names_inside(paths: Iterable[Path], folder: Path) -> list[str]:
    return [text_id(path.absolute(), folder.absolute()) for path in paths]


def _replaced(value: Any, texts: Mapping[str, str]) -> Any:
    """Return TOML's values with the paths of some files replaced, whatever form stands in front of them."""
    if isinstance(value, dict):
        return {key: _replaced(part, texts) for key, part in value.items()}
    if isinstance(value, list):
        return [_replaced(part, texts) for part in value]
    for name, place in texts.items():
        if value == name or (isinstance(value, str) and value.endswith(f":{name}")):
            return f"{value.removesuffix(name)}{place}"
    return value


def _long(file: Input, docs: Docs) -> str:
    """Return a hint where text files are longer than a passage should be."""
    if file.content.form is not FOLDER or not isinstance(docs, Iterable):
        return ""
    long = sum(len(doc.text) > _LONG for doc in docs)
    cut = f"texts(cut=2000):{file.source} cuts them into passages, to retrieve from"
    return f", {long:,} of them longer than {_LONG:,} characters ({cut})" if long else ""


def _of_split(file: Input, queries: Queries, ids: set[str]) -> Queries:
    """Return the queries of the split of a BEIR folder that runs are about, which the experiment names as well."""
    folder = file.path.parent
    for path in sorted(folder.glob("qrels/*.tsv*")) if any(folder.glob("corpus.jsonl*")) else ():
        form = f"beir(split={path.name.split('.')[0]})"
        some = read_queries(f"{form}:{folder}")
        if len(some) < len(queries) and ids & {*queries} <= {*some}:
            file.form, file.path, file.source = form, folder, Path(file.source).parent.as_posix()
            return some
    return queries


def _expanded(judged: Mapping[str, set[str]], pooled: Mapping[str, list[str]], of: Iterable[str], docs: Docs) -> str:
    """Return ``page`` or ``title`` if that is what judgments name, "" otherwise."""
    for query_id in of:
        for doc in docs.get(pooled[query_id]):
            if doc.page_id in judged[query_id]:
                return "page"
            if doc.title in judged[query_id]:
                return "title"
    return ""
