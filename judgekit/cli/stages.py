"""``label``, ``answer``, ``score`` and ``compare``: one stage each, from files to files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from judgekit.console.jobs import AskOptions
from judgekit.console.options import (
    AsJson,
    DocsFile,
    QueriesFile,
    Runs,
    ScaleOption,
    named,
    scales_of,
)
from judgekit.console.printing import check_out, console, made_from, note, records, save_table, say, show
from judgekit.console.results import CommandResult, missing_of
from judgekit.data.manifest import by_role, has_manifest
from judgekit.data.result_files import ResultFiles
from judgekit.data.streams import recording_inputs
from judgekit.errors import DataError, UsageError
from judgekit.reading import ANSWER_METRICS, ANSWER_PROMPT
from judgekit.rules import DeclaredOutcome, Rules
from judgekit.spec import split_named

if TYPE_CHECKING:
    import pandas as pd

    from judgekit.answers.direction import Directions
    from judgekit.answers.wide import ChosenColumns
    from judgekit.data.labelings import Labeling
    from judgekit.job import Job
    from judgekit.metrics import Evaluation

TieRule = Literal["doc-desc", "doc-desc-32", "doc-asc", "run-order"]
Missing = Literal["undefined", "zero", "condense", "bounds"]
Tool = Literal["beir", "gdeval", "mteb", "pytrec_eval"]


def label(
    spec: Annotated[str, typer.Argument(help="Labeler, e.g. containment or 'judge(prompt=graded)'.")],
    queries: QueriesFile,
    docs: DocsFile,
    run: Runs,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="QRELS", help="TREC qrels file to write.")],
    *,
    depth: Annotated[int, typer.Option(min=1, help="Number of documents to label per run and query.")] = 10,
    known: Annotated[
        Path | None,
        typer.Option(metavar="QRELS", help="Existing labels, e.g. from carry; only the other pairs are labelled."),
    ] = None,
    asked: AskOptions,
) -> None:
    r"""Label the pool of all runs; write QRELS and, next to it, the labels with status and raw reply (Parquet).

    Examples:
        judgekit label containment --queries queries.jsonl --docs docs.jsonl --run bm25.trec --out found.qrels
        judgekit label 'judge(prompt=graded)' --queries queries.jsonl --docs docs.jsonl --run bm25.trec \
            --endpoint http://localhost:8000/v1 --model my-model --out graded.qrels
        judgekit label judge --known carried.qrels --queries queries.jsonl --docs new.jsonl --run new.trec \
            --endpoint http://localhost:8000/v1 --model my-model --out new.qrels
    """
    from judgekit.api import label as label_pool
    from judgekit.data.checks import judges_nothing, remarks
    from judgekit.data.files import write_labels
    from judgekit.data.tables import Status
    from judgekit.data.trec import missing_path, write_qrels
    from judgekit.job import job

    # Check before reading or asking: otherwise an unwritable name is noticed only after the labels are paid for.
    check_out(out)
    docs, runs = docs or [], named(run, "--run")
    table = out.with_name(f"{out.name}.parquet")
    roles = by_role(queries, docs, runs) | ({} if known is None else {"known": known})
    files = ResultFiles.beside(out, [table], roles=roles, loose=[missing_path(out)])

    def write(labeling: Labeling, files: ResultFiles) -> None:
        write_qrels(labeling, out)
        write_labels(labeling, table)
        files.made["labels"] = {labeling.name: labeling.made}

    @job
    def labels_file(*args: Any, **options: Any) -> Job[Labeling]:
        return label_pool.job(*args, **options).writing(files, write)

    labeling = asked.carry_out(
        "label", labels_file, spec, queries=queries, docs=docs, runs=runs, depth=depth, known=known
    )
    counts = {status: n for status, n in labeling.counts().items() if n}
    empty = judges_nothing(labeling)
    told = ", ".join(f"{n:,} {status}" for status, n in counts.items()) or "no pairs"
    if empty:
        told = f"{len(labeling):,} pairs, none of them judged by the file"
    # A script must not continue with missing labels, so each of these ends with exit code 1.
    missing, last = missing_of(labeling.failed(), "labels", table, asked=asked.endpoint is not None)
    if set(counts) == {Status.NOT_APPLICABLE.value}:
        missing.append(f"{labeling.name} applies to none of the pairs: {table} has the reasons")
        last.append(f"judgekit: {missing[-1]}")
    CommandResult(
        show=lambda: say(f"{labeling.name}: {told}", f"qrels:  {out}", f"labels: {table}"),
        record={"labeling": labeling.name, "pairs": len(labeling), "counts": counts},
        files=[out, table],
        warnings=[*remarks(labeling)],
        missing=missing,
        last=last,
        exit_code=1 if empty or missing else 0,
    ).end("label", as_json=asked.as_json)


def answer(
    queries: QueriesFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="Quality table to write (.parquet or .csv).")],
    *,
    docs: DocsFile = None,
    run: Runs = None,
    depth: Annotated[
        list[int] | None,
        typer.Option(
            min=0, help="Number of top documents to answer from, 0 for the control without any; repeat for several."
        ),
    ] = None,
    imported: Annotated[
        Path | None,
        typer.Option(
            "--import",
            metavar="FILE",
            help="Use your application's answers: a table with query_id, answer and, if there are several, run,"
            " depth, model.",
        ),
    ] = None,
    metric: Annotated[list[str] | None, typer.Option(help="Answer metric; repeat (default: em, f1).")] = None,
    prompt: Annotated[
        str, typer.Option(help="Name or file of a prompt (see `judgekit list prompts`).")
    ] = ANSWER_PROMPT,
    asked: AskOptions,
) -> None:
    r"""Answer every query from the top k documents of every run, and rate the answers.

    With --import the answers come from your application. --docs, --run and --depth are then needed only by metrics that
    look at the passages of an answer, such as grounded.

    Examples:
        judgekit answer --queries queries.jsonl --docs docs.jsonl --run bm25.trec --depth 5 \
            --endpoint http://localhost:8000/v1 --model my-model --out quality.csv
        judgekit answer --queries queries.jsonl --import app.csv --metric em --out quality.csv
    """
    from judgekit.api import answer as answer_queries
    from judgekit.data.files import write_table
    from judgekit.data.tables import MADE, NO_FAILURE, Status
    from judgekit.job import job

    check_out(out, table=True)
    docs, runs = docs or [], named(run, "--run")
    # Depth 0 is the control without documents, which is the same for every run.
    given = {"--docs": docs, "--run": runs, "--depth": [k for k in depth or () if k]}
    lacking = [name for name, value in given.items() if not value]
    if imported is None and lacking:
        raise UsageError(
            f"answering needs {', '.join(lacking)}; or --import FILE, with the answers of your application"
        )
    files = ResultFiles.beside(out, roles=by_role(queries, docs, runs))

    def write(table: pd.DataFrame, files: ResultFiles) -> None:
        write_table(table, out)
        files.made.update(table.attrs.get(MADE, {}))

    @job
    def quality_table(**options: Any) -> Job[pd.DataFrame]:
        return answer_queries.job(**options).writing(files, write)

    table = asked.carry_out(
        "answer",
        quality_table,
        queries=queries,
        docs=docs or None,
        runs=runs,
        depths=depth or (),
        prompt=prompt,
        metrics=metric or ANSWER_METRICS,
        imported=imported,
    )
    columns = [name for name in ("run", "depth", "model", "mode", "metric") if name in table.columns]
    means = table.groupby(columns)["value"].mean()
    warnings = []
    # The table has a row per metric. Count a missing answer once, however many metrics rate it.
    by_answer = [*columns[:-1], "query_id"]
    answers = table.drop_duplicates(by_answer)
    unasked = int((answers["status"] == Status.UNASKED.value).sum())
    if unasked:
        warnings.append(
            f"{imported} lacks {unasked:,} of {len(answers):,} answers (unasked); the means are over the others"
        )
    if answers["seems_abstained"].any():
        warnings.append(
            f"{answers['seems_abstained'].sum():,} of {len(answers):,} answers read like abstentions, but do not use"
            " the prompt's words; they are scored as answers (column seems_abstained)"
        )
    for name, rows in table[table["status"] == Status.NOT_APPLICABLE.value].groupby("metric"):
        of = int((table["metric"] == name).sum())
        warnings.append(f"{name} does not apply to {len(rows):,} of {of:,} answers: {rows['reason'].iloc[0]}")
    failed = table[~table["status"].isin(NO_FAILURE)].drop_duplicates(by_answer)
    missing, last = missing_of(failed, "answers", out, asked=imported is None or asked.endpoint is not None)
    CommandResult(
        show=lambda: say(f"{means.unstack().round(4).to_string()}\n\nquality: {out}"),
        record={"quality": records(means.reset_index())},
        files=[out],
        warnings=warnings,
        missing=missing,
        last=last,
    ).end("answer", as_json=asked.as_json)


def _on_other_queries(evaluation: Evaluation) -> bool:
    """Return whether some queries have a score for one run but not for another."""
    import numpy as np

    scored = np.isfinite(evaluation.values).any(axis=(0, 1))
    return bool((scored.any(axis=0) & ~scored.all(axis=0)).any())


@dataclass(frozen=True)
class ScoreOptions:
    """How labels, ties and queries count, with the names of parameters of `judgekit.score`."""

    ties: Annotated[
        TieRule | None,
        typer.Option(help="Order of documents with equal scores (default: doc-desc, or that of --like)."),
    ] = None
    drop_self: Annotated[
        bool, typer.Option("--drop-self", help="Leave documents that are the query itself, by its id, out of the runs.")
    ] = False
    like: Annotated[
        Tool | None, typer.Option(help="Break ties, choose the queries of a mean and drop queries as this tool does.")
    ] = None
    missing: Annotated[Missing, typer.Option(help="How a query with a missing label is scored.")] = "undefined"
    unjudged: Annotated[Literal["nonrelevant", "bounds"], typer.Option(help="How documents without a label count.")] = (
        "nonrelevant"
    )


@dataclass(frozen=True)
class BaselineOptions:
    """The run to compare the others with, and the rows that count once in that comparison."""

    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Run to compare the others with: shows differences, tests and the largest changes."
        ),
    ] = None
    queries: Annotated[
        Path | None, typer.Option(help="File of queries: with --baseline, rows of one question count once.")
    ] = None
    groups: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of the queries with their groups; 'none' counts every row apart."),
    ] = None


def score(
    run: Runs,
    qrels: Annotated[list[str], typer.Option("--qrels", metavar="[NAME=]FILE", help="TREC qrels; repeat for several.")],
    measures: Annotated[
        list[str] | None,
        typer.Option(
            "--measures", "-m", help="Measures, e.g. 'nDCG@10 P@5 AP'; may be repeated (default: nDCG@10 AP RR P@5)."
        ),
    ] = None,
    scale: ScaleOption = None,
    docs: Annotated[
        Path | None,
        typer.Option(help="Documents with spans, to count evidence once."),
    ] = None,
    *,
    versus: BaselineOptions,
    per_query: Annotated[bool, typer.Option("--per-query", "-q", help="Also show the value of every query.")] = False,
    rules: ScoreOptions,
    as_json: AsJson = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Score table to write (.parquet or .csv).")] = None,
) -> None:
    """Score TREC runs like `trec_eval -c`, with any measure and scale, decimal grades and missing labels.

    Examples:
        judgekit score --run bm25.trec --run dense.trec --qrels gold.qrels -m 'nDCG@10 R@50 AP'
        judgekit score --run bm25.trec --run dense.trec --qrels gold.qrels --baseline bm25
    """
    from judgekit.data.checks import contradictions, own_documents
    from judgekit.data.gold import misplaced_in
    from judgekit.data.labelings import Scale
    from judgekit.data.manifest import made_of
    from judgekit.data.parts import in_one_piece, read_runs
    from judgekit.data.runs import Run, Ties
    from judgekit.data.sources import located
    from judgekit.data.trec import read_qrels
    from judgekit.metrics import evaluate, foreign, peer, read_measures, suited

    # Import rarely needed modules only where they are used: imports take half the time of a small scoring.
    if out is not None:
        check_out(out, table=True)
    baseline = versus.baseline
    if baseline is None and (versus.queries is not None or versus.groups is not None):
        raise UsageError("--queries and --groups say which rows --baseline counts once: add --baseline NAME")
    wanted, taken = read_measures(" ".join(measures or ["nDCG@10 AP RR P@5"]))
    files, ranked = named(qrels, "--qrels"), named(run, "--run")
    scales = {name: Scale.parse(text) for name, text in scales_of(scale, files).items()}
    with recording_inputs() as read:
        labelings = [read_qrels(path, name, scales.get(name)) for name, path in files.items()]
        for labeling, path in zip(labelings, files.values(), strict=True):
            labeling.made = made_of(located(path, "qrels").path)
        other = None if rules.like is None else peer(rules.like)
        ties = Ties(rules.ties or (Ties.DOC_DESC if other is None else other.ties))
        drop_self = rules.drop_self or (other is not None and other.drop_self)
        # Locating documents on their pages needs whole runs.
        runs = read_runs(ranked, ties, drop_self=drop_self, whole=docs is not None)
        collection = None
        lacking: list[str] = []
        if docs is not None:
            from judgekit.data.readers import read_docs

            loaded = [run for run in runs if isinstance(run, Run)]
            collection = read_docs(docs)
            wanted = suited(wanted, loaded, collection)
            lacking = misplaced_in(labelings, loaded, collection)
    evaluation = evaluate(
        runs,
        labelings,
        wanted,
        docs=collection,
        missing=rules.missing,
        unjudged=rules.unjudged,
        over="judged" if other is None else other.over,
    )
    from judgekit.data.forms.entry import is_content_id

    # If qrels and runs share no pair, every score is 0, which looks like a bad run and not like a wrong file.
    for name in foreign(evaluation):
        (labeling,) = (labeling for labeling in labelings if labeling.name == name)
        doubt = "are these from the same collection, with the same spelling of ids?"
        if all(map(is_content_id, labeling.row_docs.to_pylist())):
            given = "judgekit init, given the questions and passages too"
            doubt = f"its ids are made of texts. {given}, writes it with their ids"
        reason = f"qrels {name!r} list none of the queries and documents of {', '.join(ranked)}: {doubt}"
        raise DataError(reason, files[name])
    # Hash files only if there is a manifest to write or to compare with: hashing reads them once more.
    if out is not None or any(map(has_manifest, files.values())):
        roles = {f"qrels {name}": path for name, path in files.items()}
        written = made_from(out, roles | {f"run {name}": path for name, path in ranked.items()}, read)
    changes = None
    if baseline is not None:
        from judgekit.analysis.baseline_test import against
        from judgekit.data.questions import PARTED, UNKNOWN

        changes = against(evaluation, baseline, queries=versus.queries, groups=versus.groups)
        if other is not None and _on_other_queries(evaluation):
            evaluation.warnings.append(
                f"--like {rules.like} takes each run's mean over other queries: leave it out to compare runs"
            )
        if versus.queries is not None and versus.groups != PARTED:
            evaluation.warnings += _gold_apart(labelings, versus.queries)
        if versus.queries is None and versus.groups is None:
            evaluation.warnings.append(f"{UNKNOWN} Give the queries (--queries FILE).")
    # Remarks about a run repeat under each labeling; print each sentence once.
    remarks = [
        *taken,
        *in_one_piece(runs),
        *contradictions(ranked),
        *lacking,
        *evaluation.warnings,
        *_remarks(evaluation, rules),
    ]
    for scored in runs:
        remarks += own_documents(scored, labelings)
    table = None
    if per_query or out is not None or as_json:
        table = evaluation.means()
        if per_query:
            import pandas as pd

            table = pd.concat([table, evaluation.scores()], ignore_index=True)
        if out is not None:
            written.made.update(evaluation.made)
            save_table(table, written)

    def shown() -> None:
        if table is not None and out is None:
            show(table)
        else:
            say(evaluation.means_text())
        if changes is not None:
            say(f"\nagainst {baseline}:")
            show(changes)
            if changes["ci_low"].isna().any():
                say("Runs that differ on fewer than five queries have no interval.")
        if table is not None and out is not None:
            say(f"scores: {out} ({len(table):,} rows)")

    record: dict[str, Any] = {}
    if as_json and table is not None:
        record = {"scores": records(table), "against": None if changes is None else records(changes), "file": out}
    files_written = [] if out is None else [out]
    CommandResult(shown, record, files_written, list(dict.fromkeys(remarks))).end("score", as_json=as_json)


def _gold_apart(labelings: Sequence[Labeling], queries: Path) -> Iterator[str]:
    """Yield a warning for each labeling with different relevant documents for queries that are one question."""
    from judgekit.data.frames import as_queries
    from judgekit.data.gold import differing, judged_by
    from judgekit.data.questions import Repeats, questions_of

    questions = questions_of(as_queries(queries))
    for labeling in labelings:
        apart = Repeats(gold=differing(judged_by(labeling), labeling.scale.threshold, questions))
        if apart.gold:
            yield f"{labeling.name}: {apart.contradiction}"


def _remarks(evaluation: Evaluation, rules: ScoreOptions) -> Iterator[str]:
    """Yield caveats about the means: which queries each leaves out, and why."""
    treated = {"undefined": "they have no score", "zero": "read as 0", "condense": "left out", "bounds": "bounded"}
    cutoffs = {str(m): m.cutoff or 0 for m in evaluation.measures}
    ties: dict[tuple[str, str], dict[int, str]] = {}
    for mean in evaluation.summary:
        of = f"of {mean.queries:,} queries"
        if mean.reason:
            yield f"{mean.measure} is undefined under {mean.labeling}: {mean.reason}"
        if mean.missing:
            yield (
                f"{mean.labeling}: labels are missing for {mean.missing:,} {of} ({treated[rules.missing]});"
                " trec_eval reads only the qrels file and counts them as not relevant"
            )
        if mean.not_applicable:
            yield f"{mean.labeling} does not apply to {mean.not_applicable:,} {of}: they have no score"
        if mean.not_in_run:
            yield f"{mean.run} returns nothing for {mean.not_in_run:,} {of} of {mean.labeling}"
        if rules.like and mean.undefined and not mean.reason:
            yield f"{mean.undefined:,} {of} have no score for {mean.run}: the means of {rules.like} leave them out"
        if mean.ignored:
            yield f"{mean.ignored:,} queries of {mean.run} are not in {mean.labeling} and are ignored"
        if mean.no_relevant:
            yield f"{mean.labeling} has no relevant document for {mean.no_relevant:,} {of}"
        # Measures with the same cutoff share their ties, so one note covers all of them.
        if mean.ties_across:
            ties.setdefault((mean.run, of), {})[cutoffs[mean.measure]] = f"{mean.ties_across:,}"
    for (run, of), counts in ties.items():
        told = ", ".join(f"cutoff {cutoff} in {count}" for cutoff, count in sorted(counts.items()))
        yield f"{run}: scores tie across {told} {of}; --ties sets which documents come first"


@dataclass(frozen=True)
class ColumnOptions:
    """The direction of metrics, and the columns of a wide table to compare."""

    reverse: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Metric for which lower is better; repeat for several."),
    ] = None
    as_given: Annotated[
        list[str] | None,
        typer.Option("--as-given", metavar="NAME", help="Metric for which higher is better; repeat for several."),
    ] = None
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Column of a table with a row for each answer to compare; repeat (default: all)."
        ),
    ] = None
    skip: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Column to leave out; repeat.")] = None


def compare(
    scores: Annotated[
        list[str],
        typer.Option(
            "--scores",
            metavar="[NAME=]FILE",
            help="Score table with values per query; repeat."
            " With --people, the results folder of a run. Without --quality, any tool's table with a row for each"
            " answer and a column for each metric, of the run NAME; name the outcome's column with --outcome.",
        ),
    ],
    quality: Annotated[
        list[Path] | None,
        typer.Option(
            "--quality",
            help="Quality table with query_id, value and, if there are several, run, depth, model, metric; repeat.",
        ),
    ] = None,
    queries: Annotated[
        Path | None, typer.Option(help="File of queries: rows that ask the same are one question.")
    ] = None,
    *,
    columns: ColumnOptions,
    people: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Labels written by `judgekit annotate read`; scores by them replace --quality as the outcome.",
        ),
    ] = None,
    rules: Rules,
    outcome: DeclaredOutcome,
    as_json: AsJson = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Comparison table to write (.csv or .parquet)."),
    ] = None,
) -> None:
    """Compare how well each labeling's scores follow the quality of the answers, from any tables.

    Examples:
        judgekit compare --scores scores.parquet --quality quality.csv --primary nDCG@5 --outcome em
        judgekit compare --scores ragas.csv --outcome thumb
        judgekit compare --scores results --people people.qrels
    """
    from judgekit.analysis.background import Background
    from judgekit.analysis.claims import WIDTH, wrapped
    from judgekit.analysis.comparison import compare as compare_tables
    from judgekit.answers.direction import Directions
    from judgekit.answers.wide import ChosenColumns

    reverse, as_given = columns.reverse or (), columns.as_given or ()
    if out is not None:
        check_out(out, table=True)
    # Two outcomes would give two decisions, and we cannot tell which one the reader wants.
    if people is not None and quality:
        raise UsageError("name one outcome: --quality FILE, or --people FILE with --scores RESULTS")
    if (columns.metric or columns.skip) and (people is not None or quality):
        raise UsageError("--metric and --skip name columns of a table with a row for each answer: leave them out here")
    with recording_inputs() as read:
        if people is not None:
            given = _by_people(scores, people, rules, outcome)
        elif quality:
            given = _of_tables(scores, quality, rules, outcome)
        else:
            chosen = ChosenColumns(tuple(columns.metric or ()), tuple(columns.skip or ()))
            given = _of_wide(scores, rules, outcome, Directions(reverse, as_given), chosen)
    written = made_from(out, {}, read)
    background = Background(grades=given.graded, questions=given.questions)
    comparison = compare_tables(
        given.scores,
        given.quality,
        given.rules,
        outcome=given.outcome,
        queries=queries,
        reverse=given.lower or reverse,
        as_given=as_given,
        background=background,
    )
    if out is not None:
        save_table(comparison.table, written)
    warnings = [*given.left_out, *comparison.warnings]

    def shown() -> None:
        note(*warnings)
        terminal = console()
        width = min(terminal.width, WIDTH) if terminal.is_terminal else WIDTH
        say(f"{wrapped(comparison.decision.lines, width)}\n")
        wide = comparison.wide()
        if "r_pooled" in wide and wide["r_pooled"].notna().any():
            say("r_pooled (level within-query) is the r of the decision; r is the mean of each question's own r there.")
        show(wide)
        if comparison.modes is not None:
            say("\nmodes of answering, on the questions with a value in every mode:")
            modes = comparison.modes.table
            concordance = modes[modes["coefficient"] == "concordance"]
            show(concordance.set_index("mode").drop(columns=["flags", "undefined_reason"]).reset_index())

    record: dict[str, Any] = {}
    if as_json:
        record = {"decision": comparison.decision.record(), "comparison": records(comparison.table), "file": out}
    files = [] if out is None else [out]
    CommandResult(shown, record, files, warnings, shows_warnings=True).end("compare", as_json=as_json)


@dataclass(frozen=True)
class _Given:
    """The tables to compare, and the outcome that the decision is about.

    Attributes:
        graded: people's grades of the answers, if these are the outcome.
        questions: question ids by query id, if the tables come with their queries.
        left_out: sentences about unused parts of the files.
        lower: metrics to reverse in the comparison.
    """

    scores: pd.DataFrame
    quality: pd.DataFrame
    rules: Rules
    outcome: DeclaredOutcome
    graded: pd.DataFrame | None = None
    questions: Mapping[str, str] | None = None
    left_out: Sequence[str] = ()
    lower: Sequence[str] = ()


def _of_tables(scores: list[str], quality: list[Path], rules: Rules, outcome: DeclaredOutcome) -> _Given:
    """Read tables of scores, which may name their labelings, and tables of quality."""
    import pandas as pd

    from judgekit.analysis.inputs import at_every_depth
    from judgekit.answers.imported import read_ratings
    from judgekit.data.manifest import made_in
    from judgekit.data.scores import as_scores
    from judgekit.data.tables import MADE

    tables, labels, pools = [], dict[str, Any](), dict[str, Any]()
    for labeling, file in map(split_named, scores):
        try:
            tables.append(as_scores(file, labeling))
        except DataError:
            # Check only files that cannot be read as scores: trec_eval's scores have no header, but are accepted.
            _refuse_wide(file)
            raise
        found = made_in(Path(file))
        made = found.get("labels", {})
        pools |= found.get("pools", {})
        labels |= made if labeling is None or len(made) != 1 else dict(zip([labeling], made.values(), strict=True))
    scored = pd.concat(tables, ignore_index=True)
    scored.attrs[MADE] = {"labels": labels, "pools": pools}
    left_out: list[str] = []
    rated, answers = [], dict[str, Any]()
    for path in quality:
        ratings = read_ratings(path, outcome=outcome)
        left_out += ratings.notes
        rated.append(at_every_depth(ratings.table, scored, None))
        answers |= made_in(path).get("answers", {})
    answered = pd.concat(rated, ignore_index=True)
    answered.attrs[MADE] = {"answers": answers}
    return _Given(scored, answered, rules, outcome, left_out=left_out)


def _refuse_wide(file: str) -> None:
    """Refuse a table with a row for each answer if the outcome has its own table."""
    from judgekit.data.files import column_names

    try:
        columns = column_names(file, "scores")
    except DataError:
        return  # another form of file, which the reader's own error names
    if columns and columns.isdisjoint({"labeling", "measure", "value"}):
        raise UsageError(
            f"{file} has none of the columns labeling, measure and value. If it has a row for each answer and a column"
            " for each metric, the outcome is one of its columns: name that with --outcome, and leave out --quality"
        )


def _of_wide(
    scores: list[str], rules: Rules, outcome: DeclaredOutcome, directions: Directions, columns: ChosenColumns
) -> _Given:
    """Take apart any tool's tables that have a row for each answer and a column for each metric."""
    from judgekit.answers.declared import turned
    from judgekit.answers.wide import taken_apart
    from judgekit.data.sources import stem
    from judgekit.spec import form_of

    tables: dict[str, str] = {}
    for name, file in map(split_named, scores):
        run = name or stem(Path(form_of(file)[1]))
        if run in tables:
            raise UsageError(
                f"{tables[run]} and {file} are both called {run}: give each the name of its run, --scores NAME=FILE"
            )
        tables[run] = file
    wide = taken_apart(tables, outcome, directions, columns)
    # Turn metrics here if their name or the file, not the user, says that lower is better.
    told = [name for name in wide.lower if name not in directions.reverse]
    scored = turned(wide.scores, "labeling", told)
    lower = [*directions.reverse, *(name for name in told if name == outcome.outcome)]
    return _Given(scored, wide.quality, rules, outcome, left_out=wide.notes, lower=lower)


def _by_people(scores: list[str], file: Path, rules: Rules, outcome: DeclaredOutcome) -> _Given:
    """Read a results folder's scores with people's grades of its answers, or with the runs' scores by their labels."""
    from judgekit.analysis.inputs import outcome_of
    from judgekit.data.files import read_table
    from judgekit.data.tables import SCORES
    from judgekit.experiment.finished import open_results
    from judgekit.experiment.prepare import primary_answers
    from judgekit.metrics import parse_measures
    from judgekit.people.correct import scored
    from judgekit.people.grades import grades_of, is_grades, read_grades
    from judgekit.people.reading import read_people

    folder = Path(scores[0])
    if len(scores) > 1 or not folder.is_dir():
        raise UsageError("--people needs what people judged: give --scores the results folder of a run")
    opened, table = open_results(folder), read_table(SCORES, folder / "scores.parquet")
    prepared = opened.prepared
    rules = replace(rules, primary=rules.primary or str(prepared.primary))
    (measure,) = parse_measures([str(rules.primary)], prepared.config.path.parent)
    if is_grades(file):
        answers, metric = primary_answers(prepared, opened.quality), str(prepared.outcome.outcome)
        graded = grades_of(read_grades(file), answers, metric, prepared.run_names, measure.cutoff)
        scored_by = table[table["labeling"].isin(prepared.labelers)]
        return _Given(scored_by, answers, rules, prepared.outcome, graded, prepared.questions)
    answers = outcome_of(scored(prepared.collection, read_people(file, prepared.collection), measure))
    note(f"the outcome is {measure} by people's labels: that is what 'answers' means below")
    # Leave out labels by people, which would be compared with themselves.
    machines = [name for name, labeler in prepared.labelers.items() if not labeler.needs.people]
    return _Given(table[table["labeling"].isin(machines)], answers, rules, outcome, questions=prepared.questions)


def agree(
    qrels: Annotated[list[str], typer.Option("--qrels", metavar="[NAME=]FILE", help="TREC qrels; two or more.")],
    people: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Qrels made by people, the reference of precision and recall; repeat."),
    ] = None,
    scale: ScaleOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Agreement table to write (.csv or .parquet).")
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Measure how far labels agree: kappa, alpha, AC1 and a table by label. Needs no answers, queries or runs.

    Examples:
        judgekit agree --qrels judge=judge.qrels --qrels gold=gold.qrels --people gold
    """
    from judgekit.api import agree as agree_labelings

    if out is not None:
        check_out(out, table=True)
    files = named(qrels, "--qrels")
    with recording_inputs() as read:
        found = agree_labelings(files, people=people or (), scales=scales_of(scale, files))
    if out is not None:
        save_table(found.table, made_from(out, {f"qrels {name}": path for name, path in files.items()}, read))
    warnings = []
    for row in found.table[found.table["undefined_reason"] != ""].itertuples():
        warnings.append(f"{row.coefficient} of {row.first} and {row.second} is undefined: {row.undefined_reason}")
    for row in found.coverage.itertuples():
        warnings.append(
            f"{row.both:,} documents have labels by both {row.first} and {row.second}, {row.only_first:,} only by"
            f" the first, {row.only_second:,} only by the second"
        )

    def shown() -> None:
        show(found.table.drop(columns="undefined_reason"))
        if not found.confusion.empty:
            say("")
            show(found.confusion)

    tables = {"agreement": found.table, "confusion": found.confusion, "coverage": found.coverage}
    record = {name: records(table) for name, table in tables.items()} if as_json else {}
    CommandResult(shown, record, [] if out is None else [out], warnings).end("agree", as_json=as_json)
