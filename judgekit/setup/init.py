"""From a folder of the user's own files to an experiment that runs: what each is taken for, and what looks wrong."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from judgekit.collection import Collection, lacking
from judgekit.data.checks import check_runs, own_documents
from judgekit.data.documents import Docs, Queries, Query, render
from judgekit.data.fields import QUERY
from judgekit.data.forms.texts import text_id
from judgekit.data.gold import judged_by, misplaced
from judgekit.data.labelings import Labeling
from judgekit.data.outputs import check_folder
from judgekit.data.readers import read_docs, read_queries, write_queries
from judgekit.data.recognise import is_docs
from judgekit.data.runs import Run, pool
from judgekit.data.streams import write_atomic
from judgekit.data.tables import ALL, RATED
from judgekit.data.trec import read_qrels, read_run
from judgekit.errors import DataError, JudgekitError
from judgekit.experiment.file import parse_config
from judgekit.experiment.prepare import prepare
from judgekit.metrics import Measure, incomparable, suited
from judgekit.setup.answered import ANSWERED, OutcomeFound, longest
from judgekit.setup.inputs import (
    IMPORTED,
    Files,
    Input,
    Seen,
    common_folder,
    grouped,
    is_inside,
    question_column,
)
from judgekit.setup.joined import (
    folded,
    give_results_ids,
    give_runs_files,
    give_runs_names,
    give_tables_ids,
    references_of,
)
from judgekit.setup.written import Planned

PILOT_FILE: Final = "pilot.jsonl"
_JOINED: Final = f"{IMPORTED}/questions.jsonl"
"""The questions of several files."""
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
        problems: why there is no experiment, a sentence each; none if there is one.
        toml: the experiment file.
        asks: whether it names a server, whose address and model are to be filled in.
        imported: further files to write, by name: what got the ids of its questions, and the questions that runs hold
            where the query file has far more.
    """

    folder: Path
    files: tuple[Seen, ...]
    cautions: tuple[str, ...]
    problems: tuple[str, ...] = ()
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
        self.runs: dict[str, Run] = {}
        self.run_files: dict[str, Input] = {}
        self.qrels: dict[str, tuple[Input, str]] = {}
        self.labelings: list[Labeling] = []
        self.queries: Queries = {}
        self.queries_file: Input | None = None
        self.joined = False
        self.docs: Docs | None = None
        self.docs_files: list[Input] = []
        self.texts_named = ""

    def draft(self) -> Draft:
        """Take the files for what they are, one kind after the other: runs first, whose ids decide what joins."""
        # Tables get their ids before all else, since runs and ratings may be among them.
        give_tables_ids(self.files)
        give_runs_files(self.files)
        self._take_runs()
        give_results_ids(self.files, self.runs, self.run_files)
        give_runs_names(self.files, self.runs)
        self._take_texts()
        self._take_queries()
        self._take_docs()
        missing = []
        for what, held in (("questions", self.queries), ("passages", self.docs_files), ("runs", self.runs)):
            if not held:
                missing.append(what)
        if missing or self.docs is None or self.queries_file is None:
            return self._incomplete(missing)
        asked = self._asked()
        if not asked or not self._check_runs(asked, self.docs):
            return self._incomplete(["runs about these questions and passages"])
        outcome = OutcomeFound(self.files, self.runs, self.run_files, self.queries, asked).taken()
        depth = max(outcome.depths)
        self._take_qrels(asked, self.docs, depth)
        if len(asked) < len(self.queries):
            self.queries_file = self._written(PILOT_FILE, asked)
        elif self.joined:
            self.queries_file = self._written(_JOINED, self.queries)
        own = [note for run in self.runs.values() for note in own_documents(run, self.labelings, (asked, self.docs))]
        if own:
            self.files.cautions.append("runs find the question itself, as a document: drop_self = true leaves it out")
        plan = Planned(
            drop_self=bool(own),
            queries=self.queries_file,
            docs=self.docs_files,
            depth=depth,
            runs={name: self.run_files[name] for name in self.runs},
            qrels=self.qrels,
            reference_words=_reference_words(asked),
            outcome=outcome,
            measure=self._measure(asked, self.docs, depth),
        )
        problems = self._check(plan, asked)
        for file in self.files.all:  # once all others had their turn
            if file.path in self.files.run_names and file not in self.run_files.values():
                self.files.cautions.append(f"{file.name}: only runs are named by NAME=FILE, and this is none")
            file.leave("no other file needs it")
            if file.unknown_table and not (file.taken or file.broken or file.named):
                unknown = f"{file.name} is not used: nothing says what its columns hold. Name them, e.g. of questions:"
                self.files.cautions.append(f"{unknown} {self.files.command(file)}")
        return self._made(problems, plan)

    def _made(self, problems: Sequence[str], plan: Planned | None = None) -> Draft:
        """Return the experiment, or all that keeps it from being one."""
        files = self.files
        half_read, listed = [], []
        for file in files.all:
            listed.append(Seen(file.name, "; ".join(file.taken) or file.why, tuple(file.columns)))
            if file.broken and file.taken and not file.nested:
                half_read.append(file.broken)
        problems = (*files.problems, *files.unused(), *problems)
        made = Draft(files.folder, grouped(listed), (*files.cautions, *half_read), problems)
        if plan is None or made.problems:
            return made
        imported = {name: path.read_text(encoding="utf-8") for name, path in files.imported.items()}
        return replace(made, toml=plan.toml(), asks=plan.asks, imported=imported)

    def _incomplete(self, missing: Sequence[str]) -> Draft:
        """Return what there is of an experiment that lacks questions, passages or runs."""
        none = f"there are no {' and no '.join(missing)} here"
        for file in self.files.all:
            file.leave(none)
        if self.files.problems or self.files.unused():
            return self._made([])  # which may be why
        traces = [file.name for file in self.files.all if file.kinds == ["traces"]]
        if traces:
            command = f"judgekit traces {' '.join(traces)} --out data"
            return self._made([f"these are traces: {command} makes an experiment of them"])
        reason = f"{none}, and an experiment needs questions, passages and runs"
        table = next((file for file in self.files.all if file.unknown_table), None)
        asking = next((file for file in self.files.all if question_column(file)), None)
        if not self.queries and asking is not None:
            reason += f". Put a file with the questions (id, question) beside {asking.name}, which lacks ids"
        elif not self.docs_files and self.texts_named:
            reason += f". If runs name passages by the paths of the text files: {self.texts_named}"
        elif table is not None:
            reason += f". If columns have other names, say what they are: {self.files.command(table)}"
        return self._made([reason])

    @property
    def asked_ids(self) -> set[str]:
        """The ids of the questions that runs hold."""
        return set(chain.from_iterable(run.query_ids for run in self.runs.values()))

    def doc_ids(self) -> set[str]:
        """Return the passages that answers are made from."""
        depth = min(ANSWERED, longest(self.runs.values()))
        return set(chain.from_iterable(run.cut(depth).doc_ids for run in self.runs.values()))

    def _written(self, name: str, queries: Queries) -> Input:
        file = self.files.add_written(name, "")
        write_queries(queries, file.path)
        return file

    def _take_texts(self) -> None:
        """Say of text files that the folder has to be named: only the user knows whether passages are whole files."""
        named = [file.path for file in self.files.all if file.form and file.path.is_dir()]
        texts = [path for path in self.files.texts if not any(is_inside(path, folder) for folder in named)]
        if not texts:
            return
        file = self.files.at(common_folder(texts), "texts")
        file.name = f"{file.name.rstrip('/.') or '.'}/"
        file.named, file.unfit = any(path in self.files.named for path in texts), True
        place, out = self._named_from(file.path, texts), None
        if is_inside(self.files.folder, place):  # an experiment is never written into a collection
            out = Path(os.path.relpath(place.absolute().parent / "experiment"))
        self.texts_named = self.files.naming(f"texts:{place}", out)
        file.why = (
            f"not used: {len(texts):,} text files. If runs name passages by the paths of these files, name the folder:"
            f" {self.texts_named}; if your retriever cuts them into passages, give these as docs"
        )
        self.files.all.append(file)

    def _named_from(self, below: Path, texts: Sequence[Path]) -> Path:
        """Return the folder from which runs name text files by their paths; the one that holds them if none do."""
        doc_ids, place = self.doc_ids(), below
        while not any(text_id(path.absolute(), place.absolute()) in doc_ids for path in texts):
            if not is_inside(place.parent, self.files.root) or place.parent == place:
                return below
            place = place.parent
        return place

    def _take_runs(self) -> None:
        for file in self.files.of("run"):
            name = file.run or file.stem
            if name == ALL:
                name = "all-runs"
            if name in self.runs:
                name = file.name
            run = self.files.read(file, "run", partial(read_run, name=name))
            if run is not None:
                self.runs[name], self.run_files[name] = run, file

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

        # The file whose questions the runs hold, not the largest: train.jsonl is often larger than what was run.
        main, queries = max(read, key=fits)
        self.queries_file, self.queries = main, _of_split(main, queries, ids)
        if not main.nested:
            main.drop("doc", "answer", "references")
        main.take("query", f"questions: {_counted(self.queries)}")
        self._doubt_references(main)
        for file, further in read:
            if file is main:
                continue
            # What only one run was asked says nothing about the others.
            unknown = set() if file.nested else ids - self.queries.keys()
            new, answers = {}, {}
            for query_id, query in further.items():
                answers[query_id] = query.answers
                if query_id in unknown:
                    new[query_id] = query
            if not self._completed(file, "query", answers, new) and not file.nested:
                file.why = "not used: no run holds a question that only this file has"
        for file in self.files.of("references"):
            self._add_references(file)

    def _doubt_references(self, file: Input) -> None:
        """Say that answers beside ratings may be those of the application, which would make labels by its own words."""
        fields, flat = file.content.fields, file.content.flat
        rated = next((name for name in RATED if name in fields), "")
        answer = next((name for name in QUERY["answers"] if name in fields), "")
        query_id = next((name for name in QUERY["id"] if name in fields), "")
        if file.nested or flat is None or file.content.named or not (rated and answer and query_id):
            return
        sheet = f'sheet="{file.sheet}",' if file.sheet else ""
        spelled = f"'{flat.name}({sheet}query_id={query_id},value={rated}):{file.path}'"
        self.files.cautions.append(
            f"{file.name}: {rated!r} looks like ratings. If {answer!r} is your application's answer and no reference,"
            " put the questions (id, question) into a file beside it and name the columns:"
            f" {self.files.naming(spelled)}"
        )

    def _add_references(self, file: Input) -> None:
        """Add the reference answers of a table without questions, where the questions have none."""
        is_called_so = any(part in file.path.name.lower() for part in _HOLDS_REFERENCES)
        if "answer" in file.kinds and len(self.runs) == 1 and not is_called_so:
            return  # of the only run an answer needs no name
        references = self.files.read(file, "references", references_of)
        if references is None:
            return
        if self._completed(file, "references", references, {}):
            file.kinds = []
        elif "answer" not in file.kinds:
            known = self.queries.keys() & references.keys()
            why = "the questions have reference answers" if known else "none of its rows is about one of the questions"
            self.files.leave(file, f"it looks like reference answers, but {why}")

    def _completed(self, file: Input, kind: str, references: Mapping[str, Sequence[str]], new: Queries) -> bool:
        """Add new questions, and references to those that have none; return whether there were any."""
        answered: dict[str, Query] = {}
        for query_id, query in self.queries.items():
            if not query.answers and references.get(query_id):
                answered[query_id] = replace(query, answers=tuple(references[query_id]))
        if new:
            file.take(kind, f"more questions: {_counted(new)}; all are written to {_JOINED}")
        elif answered:
            file.take(kind, f"reference answers to {len(answered):,} questions, written to {_JOINED}")
        else:
            return False
        self.queries = {**self.queries, **answered, **new}
        self.joined = True
        return True

    def _take_docs(self) -> None:
        """Take the passages: of the file that holds most of those that runs found, and of others what it lacks."""
        left = self.doc_ids()
        read: list[tuple[set[str], Input, Docs]] = []
        for file in self.files.of("doc"):
            docs = self.files.read(file, "doc", read_docs)
            if docs is not None:
                read.append(({doc_id for doc_id in left if doc_id in docs}, file, docs))
        # A collection may stand in halves, and a second export of it beside them.
        for held, file, docs in sorted(read, key=lambda entry: -len(entry[0])):
            if held & left or (not held and not self.docs_files):
                left -= held
                self.docs = docs
                self.docs_files.append(file)
                file.take("doc", f"passages: {len(docs):,}")
            else:
                file.why = file.why or "not used as passages: other files hold all passages of the runs"
        if len(self.docs_files) > 1:
            self.docs = read_docs([file.given for file in self.docs_files])

    def _asked(self) -> Queries:
        """Return the questions of the experiment: those that runs hold, or all where that is at least half of them."""
        queries, ids, cautions = self.queries, self.asked_ids, self.files.cautions
        there = {query_id: query for query_id, query in queries.items() if query_id in ids}
        lost = len(queries) - len(there)
        if not there:
            cautions.append(
                f"no run holds one of the questions: theirs are {min(ids)!r} and so on, those of the questions"
                f" {next(iter(queries))!r}"
            )
        elif lost > len(there):
            # TREC's runs hold 43 of MS MARCO's 6,980 questions: the others would score 0 everywhere.
            cautions.append(
                f"the runs hold {len(there):,} of {len(queries):,} questions: the experiment uses only these"
            )
        elif lost:
            cautions.append(f"{lost:,} of {len(queries):,} questions are in no run and score 0")
            return queries
        return there

    def _check_runs(self, asked: Queries, docs: Docs) -> bool:
        """Keep the runs that join with questions and passages, and say of the others why they do not."""
        for name, run in list(self.runs.items()):
            file = self.run_files[name]
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
        pooled = dict(pool([*self.runs.values()], asked, depth))
        for file in self.files.of("qrels"):
            labeling = self.files.read(file, "qrels", lambda path: read_qrels(path))
            if labeling is None:
                continue
            judged = labeling.table.groupby("query_id")["doc_id"].agg(set).to_dict()
            about = [query_id for query_id in asked if query_id in judged]
            met = sum(not judged[query_id].isdisjoint(pooled[query_id]) for query_id in about)
            expand = "" if met else _expanded(judged, pooled, about, docs)
            if not about:
                none = "judges none of the questions"
                self.files.leave(file, f"it {none}", f"{file.name} {none} of the runs")
            elif not met and not expand:
                none = "judges none of the passages that the runs found"
                self.files.leave(file, f"it {none}", f"{file.name} {none}: are these of the same collection?")
            else:
                name = file.stem
                while name in self.qrels or name in _OWN_LABELINGS:
                    name += "-qrels"
                self.qrels[name] = file, expand
                self.labelings.append(labeling)
                by = f", by the {expand} of a passage" if expand else ""
                judgments = f"judgments: {len(about):,} of {len(asked):,} questions, {met or len(about):,} with a"
                file.take("qrels", f"{judgments} judged passage among those that runs found{by}")
                if not expand:
                    least = labeling.scale.threshold
                    self.files.cautions += misplaced(file.name, judged_by(labeling), least, pooled, docs)

    def _measure(self, asked: Queries, docs: Docs, depth: int) -> str:
        """Return the measure of the decision: another than nDCG where the runs are over different chunkings."""
        runs = [run.cut(depth).only(asked) for run in self.runs.values()]
        (measure,) = suited([Measure(f"nDCG@{depth}")], runs, docs)
        why = incomparable(runs, measure)
        if not why:
            return "nDCG"
        # Where the first relevant passage stands is told by any chunking; how many there are depends on the cuts.
        self.files.cautions.append(f"the decision is about RR@{depth}, not nDCG. {why}")
        return "RR"

    def _check(self, plan: Planned, asked: Queries) -> list[str]:
        """Have the experiment prepared as `run` does, note what it says, and return why it cannot be."""
        try:
            # Where the files lie now: what is imported is not written yet.
            config = parse_config(tomllib.loads(replace(plan, place="given").toml()), Path("experiment.toml"))
            checked = prepare(config, keys=False).collection.only(asked)
        except DataError as error:
            file = next((file for file in self.files.all if file.path == error.path), None)
            return [str(error) if file is None else f"{file.at_line(error.line)}: {error.reason}"]
        except JudgekitError as error:
            return [str(error)]
        for note in (*lacking(checked), *checked.notes, *_copies(checked)):
            if note not in self.files.cautions:
                self.files.cautions.append(note)
        return []


def _copies(collection: Collection) -> Iterator[str]:
    """Yield how many passages are labelled twice, which makes labels worthless before they are made."""
    passages = collection.docs.get(sorted(set(chain.from_iterable(collection.pairs.values()))))
    texts = [folded(render(doc)) for doc in passages if doc.text.strip()]
    copies = len(texts) - len({*texts})
    if copies:
        yield (
            f"{copies:,} of the {len(passages):,} passages that runs found repeat the text of another and are labelled"
            " and counted twice"
        )


def _counted(queries: Mapping[str, Query]) -> str:
    referenced = sum(bool(query.answers) for query in queries.values())
    return f"{len(queries):,}, {f'{referenced:,}' if referenced else 'none'} with reference answers"


def _reference_words(queries: Queries) -> int:
    """Return how many words the shortest reference of a question has, by the median; 0 where none has one."""
    lengths = []
    for query in queries.values():
        if query.answers:
            lengths.append(min(len(answer.split()) for answer in query.answers))
    return round(median(lengths)) if lengths else 0


def _of_split(file: Input, queries: Queries, ids: set[str]) -> Queries:
    """Return the queries of the split of a BEIR folder that runs are about, which the experiment names as well."""
    # One file holds the questions of train, dev and test: only those of one split belong to its judgments.
    folder = file.path.parent
    if not any(folder.glob("corpus.jsonl*")):
        return queries
    for path in sorted(folder.glob("qrels/*.tsv*")):
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
