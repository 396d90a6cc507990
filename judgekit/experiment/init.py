"""From a folder of the user's own files to an experiment that runs: what each is taken for, and what looks wrong."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, Final

import pandas as pd

from judgekit.answers.declared import named
from judgekit.answers.imported import candidates
from judgekit.data.checks import check_runs
from judgekit.data.documents import Docs, Queries, Query, render
from judgekit.data.fields import DECLARED
from judgekit.data.files import read_table
from judgekit.data.outputs import check_folder, is_results_folder
from judgekit.data.readers import read_docs, read_queries, write_queries
from judgekit.data.recognise import DECLARED_KINDS, is_docs, recognise
from judgekit.data.runs import Run, pool
from judgekit.data.streams import stem, write_atomic
from judgekit.data.tables import ALL, ANSWERS, RATED, RATINGS
from judgekit.data.trec import read_qrels, read_run
from judgekit.errors import DataError, UsageError
from judgekit.experiment.file import parse_config
from judgekit.experiment.prepare import prepare
from judgekit.registry import register
from judgekit.spec import Spec, split_form
from judgekit.stages import lacking

PILOT_FILE: Final = "pilot.jsonl"
_MOST: Final = 200
"""Files of a folder: more are somebody's disk, not an experiment."""
_NO_DATA: Final = (".toml", ".py", ".md", ".html", ".ipynb", ".png", ".svg", ".pdf", ".log", ".sh", ".yaml", ".yml")
_DEPTH: Final = 10
_ANSWERED: Final = 5


KINDS: Final = {
    "query": "questions",
    "doc": "passages",
    "run": "a run",
    "qrels": "judgments",
    "answer": "answers",
    "ratings": "ratings",
}


@dataclass
class Input:
    """A file, what the readers can make of it, and what it is taken for."""

    path: Path
    name: str
    kinds: list[str] = field(default_factory=list)
    fields: frozenset[str] = frozenset()
    form: str = ""
    syntax: str = ""
    source: str = ""
    """How an experiment file names it."""
    taken: list[str] = field(default_factory=list)
    why: str = ""

    def look(self) -> None:
        """Find out what the readers can make of the file."""
        if not self.path.is_file():
            self.why = "not used: it cannot be read as a file"
            return
        found = recognise(self.path)
        self.kinds, self.fields = [*found.kinds], frozenset(found.fields)
        self.form = found.form.name if found.form is not None and found.nested else ""
        self.syntax = found.flat.name if found.flat is not None else ""
        traces = found.kinds in ((), ("answer",)) and "input" in self.fields  # Langfuse names both so
        if (traces or (not found.kinds and self.fields)) and _holds_traces(self.path):
            self.kinds, self.why = ["traces"], "traces, which `judgekit traces` makes data of"
        elif found.why:
            self.why = f"not used: {found.why}"


def _holds_traces(path: Path) -> bool:
    home = register.load().homes.get("read_traces")
    if home is None:
        return False
    try:
        import_module(home).read_traces(path)
    except (DataError, TypeError, ValueError, KeyError, AttributeError):
        return False
    return True


def seen(file: Input, kind: str) -> str:
    """Return what a file was recognised by."""
    if file.form:
        return f"the form {file.form!r}"
    if not file.fields:
        return "six columns, as in a TREC run" if kind == "run" else "four columns, as in TREC qrels"
    names = DECLARED_KINDS[kind].names
    known = {*chain.from_iterable(names.values())}
    known |= {"run", "depth", "model", "mode", *RATED} if kind in ("answer", "ratings") else set()
    return f"fields {', '.join(sorted(known & file.fields))}" if known & file.fields else "columns without a header"


def not_used(file: Input, why: str) -> str:
    """Return why a file is left aside; "" of one that is used."""
    if file.taken:
        return ""
    if not file.kinds:
        return "not used"
    return f"not used: it looks like {' or '.join(KINDS.get(kind, kind) for kind in file.kinds)}, but {why}"


@dataclass(frozen=True)
class Draft:
    """An experiment that was made from files.

    Attributes:
        folder: where it goes, and what its paths are relative to.
        files: each file with what it was taken for and why.
        cautions: what looks wrong, a sentence each.
        lacking: why there is no experiment, "" if there is one.
        toml: the experiment file.
        asks: whether it names a server, whose address and model are to be filled in.
        pilot: the questions that runs hold, where the query file has far more.
    """

    folder: Path
    files: tuple[tuple[str, str], ...]
    cautions: tuple[str, ...]
    lacking: str = ""
    toml: str = ""
    asks: bool = False
    pilot: Sequence[Query] | None = None

    @property
    def files_written(self) -> list[Path]:
        """The files that `write` makes, the experiment first."""
        return [self.folder / "experiment.toml", *([self.folder / PILOT_FILE] if self.pilot else [])]

    def write(self) -> None:
        """Write the experiment file, and a pilot's questions."""
        path, *pilot = self.files_written
        if self.pilot:
            write_queries(self.pilot, *pilot)
        write_atomic(path, self.toml)


def draft(paths: Sequence[Path], out: Path | None = None) -> Draft:
    """Look at files and make an experiment of them; nothing is written, but the folder is made if need be."""
    if out is not None:
        check_folder(out, ())
        out.mkdir(parents=True, exist_ok=True)  # paths through its parent work once it is there
    return _Survey(paths, out).draft()


def _files_of(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the files of paths in the order of their names; no hidden ones, and no results."""
    for path in paths:
        split_form(path)  # of an address it says how to download it
        if not path.exists():
            raise DataError("no such file or folder; give the folder that your data lies in, or its files", path)
        if not path.is_dir():
            yield path
            continue
        if is_results_folder(path):
            raise UsageError(f"{path} holds results of judgekit: give the folder with the data")
        found = []
        for folder, folders, names in os.walk(path):
            folders[:] = sorted(
                one for one in folders if not one.startswith((".", "_")) and not is_results_folder(Path(folder, one))
            )
            found += [Path(folder, name) for name in sorted(names) if not name.startswith((".", "_"))]
            if len(found) > _MOST:
                raise DataError(f"holds more than {_MOST} files: name those of the experiment", path)
        yield from (one for one in found if not one.name.endswith(_NO_DATA))


class _Survey:
    """What is known of the files so far."""

    def __init__(self, paths: Sequence[Path], out: Path | None) -> None:
        found = list(dict.fromkeys(_files_of(paths)))
        if not found:
            raise DataError("holds no files of data", paths[0])
        beside = paths[0] if len(paths) == 1 and paths[0].is_dir() else _common(found)
        self.folder = beside if out is None else out
        self.cautions: list[str] = []
        self.files = [Input(path, _shown(path, beside)) for path in found]
        for file in self.files:
            file.source = Path(os.path.relpath(file.path.absolute(), self.folder.absolute())).as_posix()
            file.look()
        self.runs: dict[str, tuple[Input, Run]] = {}
        self.qrels: dict[str, tuple[Input, str]] = {}

    def of(self, kind: str) -> list[Input]:
        """Return the files that may hold a kind, those that hold nothing else first."""
        return sorted((file for file in self.files if kind in file.kinds), key=lambda file: bool(file.form))

    def read(self, file: Input, kind: str, reader: Callable[[Path], Any]) -> Any:
        """Return what a reader makes of a file; None if it cannot, which is said of the file."""
        try:
            return reader(file.path)
        except DataError as error:
            where = "" if error.line is None else f"line {error.line}: "
            if not file.why:
                file.why = f"not used: it looks like {KINDS[kind]}, but {where}{error.reason}"
                self.cautions.append(f"{file.name} is {file.why}")
            file.kinds = [one for one in file.kinds if one != kind]
            return None

    def draft(self) -> Draft:
        """Take the files for what they are, one kind after the other: runs first, whose ids decide what joins."""
        self._take_runs()
        ids = set(chain.from_iterable(run.query_ids for _, run in self.runs.values()))
        depth = min(_DEPTH, max((int(run.counts.max(initial=1)) for _, run in self.runs.values()), default=_DEPTH))
        doc_ids = {d for _, run in self.runs.values() for d in run.cut(depth).doc_ids}
        queries = self._take_queries(ids, doc_ids)
        docs = self._take_docs(doc_ids)
        traces = [file.name for file in self.files if file.kinds == ["traces"]]
        if not (queries and docs and self.runs):
            kinds = {"questions": queries, "passages": docs, "runs": self.runs}
            return self._incomplete([what for what, there in kinds.items() if not there], traces)
        asked = self._asked(queries[1], ids)
        if not asked or not self._check_runs(asked, docs[1]):
            return self._incomplete(["runs about these questions and passages"], traces)
        self._take_qrels(asked, docs[1], depth)
        outcome = self._take_outcome(asked, queries[1], depth)
        depth = max(depth, *outcome.depths)
        self._look(asked, docs[1], depth)
        for file in self.files:
            file.why = file.why or not_used(file, "no other file needs it")
        pilot = list(asked.values()) if len(asked) < len(queries[1]) else None
        source = queries[0].source if pilot is None else PILOT_FILE
        text, asks = self._toml(source, docs[0], asked, depth, outcome)
        # With all questions: those of the pilot are not written yet.
        config = parse_config(tomllib.loads(text), self.folder / "experiment.toml")
        checked = prepare(config.updated(data={"queries": queries[0].source}), keys=False).collection.only(asked)
        self.cautions += [note for note in (*lacking(checked), *checked.notes) if note not in self.cautions]
        return Draft(self.folder, self._lines(), tuple(self.cautions), "", text, asks, pilot)

    def _incomplete(self, lacking: list[str], traces: list[str]) -> Draft:
        for file in self.files:
            file.why = file.why or not_used(file, f"there are no {' and no '.join(lacking)} here")
        reason = f"there are no {' and no '.join(lacking)} here, and an experiment needs questions, passages and runs"
        table = next((file for file in self.files if file.syntax in ("csv", "tsv") and not file.kinds), None)
        if table is not None:
            names = f"{table.syntax}(id=…,text=…):{table.source}"
            reason += (
                ". If columns have other names, write experiment.toml yourself, and say there what they are:"
                f" queries = {_quoted(names)}, docs likewise (with title=…), runs with (query=…,doc=…,score=…)"
            )
        if traces:
            reason = f"these are traces: judgekit traces {' '.join(traces)} --out data makes an experiment of them"
        return Draft(self.folder, self._lines(), tuple(self.cautions), reason)

    def _lines(self) -> tuple[tuple[str, str], ...]:
        return tuple((file.name, "; ".join(file.taken) or file.why) for file in self.files)

    def _take_runs(self) -> None:
        for file in self.of("run"):
            name = stem(file.path) if stem(file.path) != ALL else "all-runs"
            if name in self.runs:
                name = f"{file.path.parent.name}-{name}"
            number, first = 2, name
            while name in self.runs:
                name, number = f"{first}-{number}", number + 1
            if (run := self.read(file, "run", partial(read_run, name=name))) is not None:
                self.runs[name] = (file, run)

    def _take_queries(self, ids: set[str], doc_ids: set[str]) -> tuple[Input, Queries] | None:
        found: list[tuple[Input, Queries]] = []
        for file in self.of("query"):
            if file.kinds == ["query", "doc"] and is_docs(file.path, ids, doc_ids):
                file.kinds = ["doc"]
            elif (queries := self.read(file, "query", read_queries)) is not None:
                found.append((file, queries))
        if not found:
            return None

        def fits(one: tuple[Input, Queries]) -> tuple[float, ...]:
            file, queries = one
            referenced = any(query.answers for query in queries.values())
            return len(ids & set(queries)), bool(file.form) or "answer" not in file.kinds, referenced, not file.form

        file, queries = max(found, key=fits)
        queries = _of_split(file, queries, ids)
        if not file.form:
            file.kinds = [kind for kind in file.kinds if kind not in ("doc", "answer")]
        referenced = sum(bool(query.answers) for query in queries.values())
        counted = f"{len(queries):,}, {f'{referenced:,}' if referenced else 'none'} with reference answers"
        file.taken.append(f"questions: {counted} ({seen(file, 'query')})")
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
                file.taken.append(f"passages: {len(docs):,} ({seen(file, 'doc')})")
            else:
                file.why = file.why or "not used as passages: other files hold all passages of the runs"
        if not chosen:
            return None
        if len(chosen) == 1:
            return chosen, next(docs for _, file, docs in found if file is chosen[0])
        return chosen, read_docs([file.path for file in chosen])

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
            file.taken.append(f"run {name!r}: {shape} ({seen(file, 'run')})")
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
            file.taken.append(
                f"judgments: {len(of):,} of {len(asked):,} questions, {met:,} with a judged passage among those that"
                f" runs found{by} ({seen(file, 'qrels')})"
            )

    def _take_outcome(self, asked: Queries, queries: Queries, depth: int) -> _Outcome:
        """Return what is known of answers: ratings, else what an application answered, or nothing."""
        outcome = _Outcome()
        left = set(self.runs)
        for kind, what in (("ratings", "ratings of answers"), ("answer", "answers of your application")):
            for file in self.of(kind):
                if (file.taken and not file.form) or (kind == "answer" and (outcome.metrics or not left)):
                    continue
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
                    problem = f"{outcome.files[0].name} has answers with other columns, or of the same runs"
                elif kind == "answer" and (strange := sorted({*table["query_id"]} - {*queries})):
                    problem = f"query {strange[0]!r} is not among the questions"
                if problem:
                    file.why = f"not used: {problem}"
                    self.cautions.append(f"the {what.split()[0]} of {file.name} are not used: {problem}")
                    continue
                if "depth" in table.columns:
                    outcome.depths += {int(one) for one in table["depth"] if one > 0} - {*outcome.depths}
                elif file.form:
                    outcome.depths.append(depth)
                outcome.files.append(file)
                outcome.columns = columns
                left -= named or left
                outcome.rated |= self.read(file, kind, partial(_rated, file, kind)) or {}
                outcome.metrics = sorted({*outcome.metrics, *table["metric"]}) if kind == "ratings" else []
                file.taken.append(f"{what} ({seen(file, kind)})")
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

    def _toml(
        self,
        queries: str,
        docs: list[Input],
        asked: Queries,
        depth: int,
        outcome: _Outcome,
    ) -> tuple[str, bool]:
        """Return the experiment file, and whether it asks a server."""
        referenced = any(query.answers for query in asked.values())
        free = referenced or bool(self.qrels)
        asks = not free or not (outcome.rated or (outcome.files and referenced))
        passages = [_quoted(file.source) for file in docs]
        out = [
            "# Written by `judgekit init`. Paths are relative to this file.",
            "",
            "[data]",
            f"queries = {_quoted(queries)}",
            f"docs = {passages[0] if len(passages) == 1 else '[' + ', '.join(passages) + ']'}",
            _with_comment(f"depth = {depth}", f"the first {depth} documents of each run are labelled, each once"),
            "",
            "[runs]",
            *(f"{_key(name)} = {_quoted(file.source)}" for name, (file, _) in self.runs.items()),
            "",
        ]
        server = [
            _with_comment("[endpoints.local]", "any OpenAI-compatible server: fill in its address and model"),
            'base_url = "http://localhost:8000/v1"',
            'model = "my-model"',
            _with_comment('# api_key_env = "MY_KEY"', "the name of the variable that holds the key, not the key"),
        ]

        def labeler(kind: str, does: str, *more: str, name: str = "") -> list[str]:
            named = [f"name = {_quoted(name)}"] if name else []
            return ["[[labelers]]", *named, _with_comment(f'kind = "{kind}"', does), *more, ""]

        judge = labeler("judge", "an LLM reads each passage", name="judge")
        if asks:
            out += [*server, ""]
        else:
            out += ["# An LLM as judge: fill in a server, and take the # away.", *(f"# {line}" for line in server)]
            out += [*(f"# {line}" for line in judge[:-1]), ""]
        if referenced:
            out += labeler("containment", "a reference answer stands in the passage; free")
        for name, (file, expand) in self.qrels.items():
            of = [f"qrels = {_quoted(file.source)}", *([f"expand = {_quoted(expand)}"] if expand else [])]
            out += labeler("provenance", "existing judgments; free", *of, name=name)
        if asks:
            out += judge
            out += labeler("utility", "an LLM answers from each passage alone", name="erag") if referenced else []
        out.append(_with_comment("[answers]", "the outcome: which labels follow the quality of the answers?"))
        if outcome.metrics:
            out.append(f"ratings = {_quoted([file.source for file in outcome.files])}")
        elif outcome.files:
            imported = [file.source for file in outcome.files]
            out.append(f"import = {_quoted(imported if len(imported) > 1 else imported[0])}")
            named = _with_comment(
                '# answered_by = "…"', "the model that gave them: labels of the same model are marked"
            )
            out.append(named)
        for rated, scale in list(outcome.rated.items())[:1]:
            out.append(_with_comment(f"outcome = {_quoted(rated)}", f"people's ratings ({', '.join(outcome.rated)})"))
            if scale is not None:
                out.append(_with_comment(f"scale = {_quoted(scale)}", "by the values; correct it if it is another"))
        if outcome.rated and referenced and not outcome.metrics:
            out.append(_with_comment('# outcome = "em"', "instead: compare answers with the references"))
        if not outcome.rated:
            by = "compared with the reference answers" if referenced else "needs no reference answers: an LLM is asked"
            out.append(_with_comment(f"metrics = {_quoted(['em', 'f1'] if referenced else ['grounded'])}", by))
        out.append(_with_comment(f"depths = {outcome.depths}", "how many documents an answer was made from"))
        return "\n".join(out) + "\n", asks


@dataclass
class _Outcome:
    """What is known of answers: files of ratings, by these metrics, or of answers, their depths and columns."""

    files: list[Input] = field(default_factory=list)
    metrics: list[str] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    columns: set[str] = field(default_factory=set)
    rated: dict[str, str | None] = field(default_factory=dict)
    """People's ratings by metric, each with the scale to declare."""


def _common(files: Sequence[Path]) -> Path:
    found = Path(os.path.commonpath([file.absolute().parent for file in files]))
    here = Path.cwd()
    return Path(os.path.relpath(found, here)) if found.is_relative_to(here) else found


def _shown(path: Path, folder: Path) -> str:
    inside = path.absolute()
    return inside.relative_to(folder.absolute()).as_posix() if inside.is_relative_to(folder.absolute()) else str(path)


def _quoted(value: str | list[str]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _with_comment(line: str, comment: str) -> str:
    return f"{line:<31} # {comment}"


def _of_split(file: Input, queries: Queries, ids: set[str]) -> Queries:
    """Return the queries of the split of a BEIR folder that runs are about, which the source names as well."""
    folder, place = file.path.parent, Path(file.source).parent.as_posix()
    for path in sorted(folder.glob("qrels/*.tsv*")) if any(folder.glob("corpus.jsonl*")) else ():
        form = f"beir(split={path.name.split('.')[0]})"
        some = read_queries(f"{form}:{folder}")
        if len(some) < len(queries) and ids & set(queries) <= set(some):
            file.source = f"{form}:{place}"
            return some
    return queries


def _formed(file: Input, path: Path) -> str | Path:
    """Return the path of ratings or answers, with the form that names their columns, which the source gets as well."""
    if file.form:
        return path
    wanted = {"query_id": DECLARED["answer"].names["id"]}
    wanted |= {"value": RATED} if "ratings" in file.kinds else {"answer": DECLARED["answer"].names["answer"]}
    told = {
        key: name
        for key, names in wanted.items()
        if (name := next((one for one in names if one in file.fields), key)) != key
    }
    if not told:
        return path
    form = str(Spec(file.syntax, tuple(told.items())))
    if not file.source.startswith(form):
        file.source = f"{form}:{file.source}"
    return f"{form}:{path}"


def _rows(file: Input, kind: str, path: Path) -> pd.DataFrame:
    source = _formed(file, path)
    return named(read_table(RATINGS, source)) if kind == "ratings" else read_table(ANSWERS, source)


def _rated(file: Input, kind: str, path: Path) -> dict[str, str | None]:
    return candidates(_formed(file, path), beside_answers=kind == "answer")


def _expanded(judged: Mapping[str, set[str]], pooled: Mapping[str, list[str]], of: Iterable[str], docs: Docs) -> str:
    """Return ``page`` or ``title`` if that is what judgments name, "" otherwise."""
    for query_id in of:
        for doc in docs.get(pooled[query_id]):
            if doc.page_id in judged[query_id]:
                return "page"
            if doc.title in judged[query_id]:
                return "title"
    return ""
