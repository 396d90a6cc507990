"""From a folder of the user's files to an experiment that runs: the use of each file, and what looks wrong."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from judgekit.collection import Collection, lacking
from judgekit.data.checks import own_documents
from judgekit.data.documents import Docs, Queries, render
from judgekit.data.outputs import check_folder
from judgekit.data.readers import write_queries
from judgekit.data.streams import write_atomic
from judgekit.errors import DataError, JudgekitError
from judgekit.experiment.file import parse_config
from judgekit.experiment.prepare import prepare
from judgekit.metrics import Measure, incomparable, suited
from judgekit.setup.answered import known_outcome
from judgekit.setup.inputs import Files, Input, Seen, grouped, question_column
from judgekit.setup.joined import (
    folded,
    give_judgments_ids,
    give_results_ids,
    give_runs_files,
    give_runs_names,
    give_runs_texts,
    give_tables_ids,
)
from judgekit.setup.judgments import read_judgments
from judgekit.setup.passages import FoundPassages, offer_texts, read_passages
from judgekit.setup.questions import JOINED, FoundQuestions, read_questions, reference_words
from judgekit.setup.runs import FoundRuns, read_runs
from judgekit.setup.written import Planned

PILOT_FILE: Final = "pilot.jsonl"


@dataclass(frozen=True)
class Draft:
    """An experiment made from files.

    Attributes:
        folder: its folder, to which its paths are relative.
        files: the use of each file.
        cautions: a sentence for everything that looks wrong.
        problems: sentences on why there is no experiment; none if there is one.
        toml: the experiment file.
        asks: whether it needs a server, whose address and model must be filled in.
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
        """Write the experiment file and its further files."""
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
        return _drafted(Files(paths, out, Path(spare)))


def _drafted(files: Files) -> Draft:
    """Use the files, one kind after the other: runs first, since their ids decide what joins."""
    # Tables get their ids first, since runs and ratings may be among them.
    give_tables_ids(files)
    give_runs_files(files)
    runs = give_results_ids(files, read_runs(files))
    give_runs_names(files, runs.runs)
    give_runs_texts(files, runs)
    texts = offer_texts(files, runs)
    questions = read_questions(files, runs)
    passages = read_passages(files, runs)
    if questions is None or not questions.queries or passages is None or not runs.runs:
        return _incomplete(files, runs, questions, passages, texts)
    asked = questions.asked(files, runs)
    joining = runs.joining(files, asked, passages.docs) if asked else replace(runs, runs={})
    if not joining.runs:
        return _incomplete(files, joining, questions, passages, texts, of="runs about these questions and passages")
    return _planned(files, joining, questions, passages, asked)


def _planned(
    files: Files, runs: FoundRuns, questions: FoundQuestions, passages: FoundPassages, asked: Queries
) -> Draft:
    """Return the experiment on what joins."""
    docs = passages.docs
    outcome = known_outcome(files, runs, questions.queries, asked)
    depth = max(outcome.depths)
    give_judgments_ids(files, runs, questions.queries, docs)
    judgments = read_judgments(files, runs, asked, docs, depth)
    own = [note for run in runs.runs.values() for note in own_documents(run, judgments.labelings, (asked, docs))]
    if own:
        files.cautions.append("runs find the question itself, as a document: drop_self = true leaves it out")
    plan = Planned(
        drop_self=bool(own),
        queries=_file_of(files, questions, asked),
        docs=passages.files,
        depth=depth,
        runs={name: runs.files[name] for name in runs.runs},
        qrels=judgments.files,
        reference_words=reference_words(asked),
        outcome=outcome,
        measure=_measure(files, runs, asked, docs, depth),
    )
    problems = _check(files, plan, asked)
    for file in files.all:  # after all others
        if file.path in files.run_names and file not in runs.files.values():
            files.cautions.append(f"{file.name}: NAME=FILE names runs only, and this is not a run")
        file.leave("no other file needs it")
        if file.content.doubt and not (file.taken or file.named):
            files.cautions.append(f"{file.name} is {file.why}: {files.naming(file.as_proposed)}")
        if file.unknown_table and file.why.startswith("not used") and not (file.taken or file.broken or file.named):
            unknown = f"{file.name} is not used: nothing says what its columns hold. Name them, e.g. of questions:"
            files.cautions.append(f"{unknown} {files.command(file)}")
    return _made(files, problems, plan)


def _file_of(files: Files, questions: FoundQuestions, asked: Queries) -> Input:
    """Return the file of the questions to ask; a new one if no file has exactly these."""
    if len(asked) < len(questions.queries):
        name, held = PILOT_FILE, asked
    elif questions.joined:
        name, held = JOINED, questions.queries
    else:
        return questions.file
    file = files.add_written(name, "")
    write_queries(held, file.path)
    return file


def _made(files: Files, problems: Sequence[str], plan: Planned | None = None) -> Draft:
    """Return the experiment, or everything that prevents one."""
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


def _incomplete(
    files: Files,
    runs: FoundRuns,
    questions: FoundQuestions | None,
    passages: FoundPassages | None,
    texts: str,
    *,
    of: str = "runs",
) -> Draft:
    """Return an incomplete experiment that lacks questions, passages or runs.

    Args:
        files: the files.
        runs: the runs found.
        questions: likewise.
        passages: likewise.
        texts: the command that uses text files as passages.
        of: the runs in question.
    """
    queries = {} if questions is None else questions.queries
    found = (("questions", queries), ("passages", passages), (of, runs.runs))
    none = f"there are no {' and no '.join(what for what, held in found if not held)} here"
    for file in files.all:
        file.leave(none)
    if files.problems or files.unused():
        return _made(files, [])  # which may be why
    traces = [file.name for file in files.all if file.kinds == ["traces"]]
    if traces:
        command = f"judgekit traces {' '.join(traces)} --out data"
        return _made(files, [f"these are traces: {command} makes an experiment of them"])
    reason = f"{none}, and an experiment needs questions, passages and runs"
    table = next((file for file in files.all if file.unknown_table), None)
    asking = next((file for file in files.all if question_column(file)), None)
    if not queries and asking is not None:
        reason += f". Put a file with the questions (id, question) beside {asking.name}, which lacks ids"
    elif not queries and runs.runs:
        name, run = next(iter(runs.runs.items()))
        beside = f"{runs.files[name].name}, whose first is {min(run.query_ids)!r}"
        reason += f". Put a file with the questions (query_id, question) beside {beside}"
    elif passages is None and texts:
        reason += f". If runs name passages by the paths of the text files: {texts}"
    elif table is not None:
        reason += f". If columns have other names, say what they are: {files.command(table)}"
    proposed = [file.as_proposed for file in files.all if file.as_proposed]
    if proposed:
        reason += f". To read files as proposed above: {files.naming(' '.join(proposed))}"
    return _made(files, [reason])


def _measure(files: Files, found: FoundRuns, asked: Queries, docs: Docs, depth: int) -> str:
    """Return the measure of the decision: not nDCG if the runs have different chunkings."""
    runs = [run.cut(depth).only(asked) for run in found.runs.values()]
    (measure,) = suited([Measure(f"nDCG@{depth}")], runs, docs)
    why = incomparable(runs, measure)
    if not why:
        return "nDCG"
    # The place of the first relevant passage is meaningful in any chunking; the number of passages is not.
    files.cautions.append(f"the decision is about RR@{depth}, not nDCG. {why}")
    return "RR"


def _check(files: Files, plan: Planned, asked: Queries) -> list[str]:
    """Prepare the experiment like `run`, keep its notes, and return why it fails, if so."""
    try:
        # The present paths of the files, since imported ones are not written yet.
        config = parse_config(tomllib.loads(replace(plan, place="given").toml()), Path("experiment.toml"))
        checked = prepare(config, keys=False).collection.only(asked)
    except DataError as error:
        file = next((file for file in files.all if file.path == error.path), None)
        return [str(error) if file is None else f"{file.at_line(error.line)}: {error.reason}"]
    except JudgekitError as error:
        return [str(error)]
    for note in (*lacking(checked), *checked.notes, *_copies(checked)):
        if note not in files.cautions:
            files.cautions.append(note)
    return []


def _copies(collection: Collection) -> Iterator[str]:
    """Yield notes on passages that would be labelled twice, which makes labels worthless."""
    passages = collection.docs.get(sorted(set(chain.from_iterable(collection.pairs.values()))))
    texts = [folded(render(doc)) for doc in passages if doc.text.strip()]
    copies = len(texts) - len({*texts})
    if copies:
        yield (
            f"{copies:,} of the {len(passages):,} passages that runs found repeat the text of another and are labelled"
            " and counted twice"
        )
