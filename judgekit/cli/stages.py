"""``label``, ``answer``, ``score`` and ``compare``: one stage each, from files to files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from judgekit.cli.common import emit, leave, made_from, note, records, save_table, say, show, usage_of, verdicts_of
from judgekit.cli.options import (
    AsJson,
    AskOptions,
    DocsFile,
    Format,
    FormatIn,
    FormatOption,
    Prompts,
    QueriesFile,
    Runs,
    ScaleOption,
    in_forms,
    inputs_of,
    named,
    scales_of,
)
from judgekit.errors import UsageError, not_among
from judgekit.spec import split_named

if TYPE_CHECKING:
    import pandas as pd

    from judgekit.metrics import Evaluation

__all__ = ["agree", "answer", "compare", "label", "score", "traces"]


TieRule = Literal["doc-desc", "doc-desc-32", "doc-asc", "run-order", "expected"]
Missing = Literal["undefined", "zero", "condense", "bounds"]
Skip = Literal["zero", "skip"]


def label(
    spec: Annotated[str, typer.Argument(help="Labeler, e.g. containment or 'judge(prompt=graded)'.")],
    queries: QueriesFile,
    docs: DocsFile,
    run: Runs,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="QRELS", help="TREC qrels file to write.")],
    *,
    depth: Annotated[int, typer.Option(min=1, help="Number of documents per run and query to label.")] = 10,
    prompt: Annotated[str | None, typer.Option(help="Name or file of a prompt (see `judgekit prompts list`).")] = None,
    prompts: Prompts = None,
    language: Annotated[
        str | None, typer.Option(help="Language code, e.g. fi, for queries without a language (for containment).")
    ] = None,
    format_in: FormatIn = None,
    asked: AskOptions,
) -> None:
    """Label the pool of all runs once; write QRELS and, beside it, the labels with status and raw reply (Parquet)."""
    from judgekit import stages
    from judgekit.data.checks import remarks
    from judgekit.data.files import check_target, write_labels
    from judgekit.data.manifest import manifest_path, write_manifest
    from judgekit.data.outputs import check_outputs, noting_reads
    from judgekit.data.trec import missing_path, write_qrels
    from judgekit.labelers.base import build
    from judgekit.spec import with_options

    check_target(out)
    given = (("prompt", prompt), ("language", language))
    wanted = with_options(spec, [(key, value) for key, value in given if value is not None])
    asked.prices()
    endpoints = asked.endpoints()
    queries, docs, runs, files = inputs_of(format_in, queries, docs, run)
    with noting_reads() as read:
        collection = stages.Collection.make(queries, docs, runs, depth, asked.limit, cache=asked.cache)
        resources = stages.Resources(endpoints, docs=collection.docs, prompts=prompts)
        labeler = build(wanted, resources)
    table = out.with_name(f"{out.name}.parquet")
    check_outputs(out, table, missing_path(out), manifest_path(out))
    if asked.dry_run:
        units = {f"label {labeler.spec}": lambda: ((labeler, unit) for unit in stages.label_units(labeler, collection))}
        asked.count("label", units, {})
        return
    inputs = made_from(files, read)
    labeling, usage = asked.session(lambda session: stages.label_pool(labeler, collection, session))
    write_qrels(labeling, out)
    write_labels(labeling, table)
    write_manifest(manifest_path(out), inputs, [out, table])
    counts = {status: n for status, n in labeling.counts().items() if n}
    if asked.as_json:
        emit("label", labeler=labeler.spec, qrels=out, labels=table, counts=counts, usage=usage_of(usage))
    else:
        told = ", ".join(f"{n:,} {status}" for status, n in counts.items()) or "no pairs"
        say(f"{labeler.spec}: {told}", f"qrels:  {out}", f"labels: {table}")
    note(*remarks(labeling))
    leave(counts, "labels", table, asked=bool(labeler.needs.asked))


def answer(
    queries: QueriesFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="Quality table to write (.parquet or .csv).")],
    *,
    docs: DocsFile = None,
    run: Runs = None,
    depth: Annotated[
        list[int] | None, typer.Option(min=1, help="Answer from the top DEPTH documents; repeat for several.")
    ] = None,
    imported: Annotated[
        Path | None,
        typer.Option(
            "--import",
            metavar="FILE",
            help="Answer nothing: take what your application answered, a table with query_id, answer and, where there"
            " are several, run, depth, model.",
        ),
    ] = None,
    answered_by: Annotated[
        str | None, typer.Option(metavar="MODEL", help="The model that gave the imported answers.")
    ] = None,
    metric: Annotated[list[str] | None, typer.Option(help="Answer metric; repeat (default: em, f1).")] = None,
    format_in: FormatIn = None,
    prompt: Annotated[
        str, typer.Option(help="Name or file of a prompt (see `judgekit prompts list`).")
    ] = "answer-short",
    prompts: Prompts = None,
    mode: Annotated[
        list[str] | None,
        typer.Option(help="together, reversed, shuffled, vote or merge; repeat to compare (the first is primary)."),
    ] = None,
    closed_book: Annotated[bool, typer.Option(help="Also answer without any document (depth 0).")] = True,
    asked: AskOptions,
) -> None:
    """Answer every query from the top k documents of every run, and say how good the answers are.

    With --import the answers are your application's, and --docs, --run and --depth are not needed.
    """
    from judgekit import stages
    from judgekit.data.files import check_target
    from judgekit.data.manifest import manifest_path
    from judgekit.data.outputs import check_outputs, noting_reads
    from judgekit.data.readers import read_queries
    from judgekit.data.tables import NO_FAILURE, Status
    from judgekit.experiment.run import answers_asked

    check_target(out, table=True)
    queries, docs, runs, files = inputs_of(format_in, queries, docs, run)
    given = {"--docs": docs, "--run": runs, "--depth": depth}
    lacking = [name for name, value in given.items() if not value]
    if imported is None and lacking:
        raise UsageError(f"answering needs {', '.join(lacking)}; or --import FILE, with what your application answered")
    if imported is None and answered_by is not None:
        raise UsageError("--answered-by is about imported answers: give them with --import FILE")
    if imported is not None and mode:
        raise UsageError("--mode is how an LLM is asked: of imported answers a column 'mode' says it")
    asked.prices()
    resources = stages.Resources(asked.endpoints(), prompts=prompts)
    metrics, depths = metric or ["em", "f1"], sorted(set(depth or ()))
    collection = None
    with noting_reads() as read:
        if imported is not None:
            known = dict(islice(read_queries(queries).items(), asked.limit))
            ways = stages.import_answers(
                imported, known, resources, metrics, runs=list(runs), depths=depths, answered_by=answered_by,
                limited=asked.limit is not None,
            )  # fmt: skip
        else:
            ways = stages.answering(resources, prompt=prompt, metrics=metrics, modes=mode or ())
            collection = stages.Collection.make(queries, docs, runs, max(depths), asked.limit, cache=asked.cache)
    check_outputs(out, manifest_path(out))
    if asked.dry_run:
        by_stage = {stages.answer_stage(one.model if len(ways) > 1 else "", one.mode): one for one in ways}
        units = partial(answers_asked, collection=collection, depths=depths, closed_book=closed_book)
        asked.count("answer", {name: partial(units, one) for name, one in by_stage.items()}, by_stage)
        return
    inputs = made_from(files, read)
    work = partial(stages.answer_modes, ways, collection, depths, closed_book=closed_book)
    table, usage = asked.session(work)
    save_table(table, out, inputs)
    columns = [name for name in ("run", "depth", "model", "mode", "metric", "query_id") if name in table.columns]
    places, one = (columns[:-1], [name for name in columns if name != "metric"])
    means = table.groupby(places)["value"].mean()
    if asked.as_json:
        counts = {str(status): int(n) for status, n in table["status"].value_counts().items()}
        emit("answer", quality=out, means=records(means.reset_index()), counts=counts, usage=usage_of(usage))
    else:
        say(f"{means.unstack().round(4).to_string()}\n\nquality: {out}")
    each = table.drop_duplicates(one)
    unasked = int((each["status"] == Status.UNASKED.value).sum())
    if unasked:
        note(f"{imported} lacks {unasked:,} of {len(each):,} answers (unasked); the means are over the others")
    if each["seems_abstained"].any():
        note(
            f"{each['seems_abstained'].sum():,} of {len(each):,} answers read like abstentions, in other words than"
            " the prompt asks for; they are scored as answers (column seems_abstained)"
        )
    for name, rows in table[table["status"] == Status.NOT_APPLICABLE.value].groupby("metric"):
        of = int((table["metric"] == name).sum())
        note(f"{name} does not apply to {len(rows):,} of {of:,} answers: {rows['reason'].iloc[0]}")
    failed = table[~table["status"].isin(NO_FAILURE)].drop_duplicates(one)
    counts = {str(status): int(n) for status, n in failed["status"].value_counts().items()}
    leave(counts, "answers", out, asked=imported is None or bool(asked.base_url))


def traces(
    exports: Annotated[
        list[Path],
        typer.Argument(help="Exports of Phoenix (OpenInference spans) or Langfuse: JSONL, JSON, CSV, Parquet."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for queries, docs, runs, answers and ratings.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files of these names there.")] = False,
) -> None:
    """Turn exported traces into queries, docs, runs, answers and ratings, and print an experiment to begin with."""
    from judgekit.data.outputs import check_folder, noting_reads
    from judgekit.data.traces import read_traces

    with noting_reads():
        found = read_traces(exports)
        check_folder(out, found.files, overwrite=overwrite)
        found.write(out)
    rated = ", ".join(sorted(set(found.ratings["metric"]))) if len(found.ratings) else ""
    depths = sorted(set(found.answers["depth"]))
    lines = [
        f"# {len(found.queries):,} questions, {len(found.docs):,} documents, {len(found.answers):,} answers and"
        f" {len(found.ratings):,} ratings{rated and f' ({rated})'} are in {out}",
        *(f"# {line}" for line in found.left_out),
        f'[data]\nqueries = "queries.jsonl"\ndocs = "docs.jsonl"\ndepth = {depths[-1]}\n[runs]',
        *(f"{json.dumps(run.name)} = {json.dumps(file)}" for run, file in zip(found.runs, found.files, strict=False)),
        f"[answers]\ndepths = {depths}",
        'ratings = ["ratings.csv"]\nmetrics = []' if rated else 'import = "answers.csv"',
    ]
    typer.echo("\n".join(lines))


@dataclass(frozen=True)
class ScoreOptions:
    """What is missing counts as, by the names in `judgekit.score`."""

    missing: Annotated[Missing, typer.Option(help="Effect of a missing label on its query.")] = "undefined"
    unjudged: Annotated[
        Literal["nonrelevant", "condense", "bounds"], typer.Option(help="Treatment of documents without a label.")
    ] = "nonrelevant"
    no_relevant: Annotated[Skip, typer.Option(help="Score for queries without relevant documents.")] = "zero"
    not_in_run: Annotated[Skip, typer.Option(help="Score for queries missing from a run.")] = "zero"


def score(
    run: Runs,
    qrels: Annotated[list[str], typer.Option("--qrels", metavar="[NAME=]FILE", help="TREC qrels; repeat for several.")],
    measures: Annotated[
        str, typer.Option("--measures", "-m", help="Measures, e.g. 'nDCG@10 P@5 AP'.")
    ] = "nDCG@10 AP RR P@5",
    scale: ScaleOption = None,
    docs: Annotated[
        Path | None,
        typer.Option(help="Documents: for cutoffs such as R@2000t, and to count evidence once where they have spans."),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Run to compare the others with: differences, tests, and what changed most."),
    ] = None,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.999, help="Confidence of its intervals.")] = 0.95,
    format_in: FormatIn = None,
    per_query: Annotated[bool, typer.Option("--per-query", "-q", help="Show the value of every query too.")] = False,
    ties: Annotated[TieRule, typer.Option(help="Order of documents with equal scores.")] = "doc-desc",
    *,
    rules: ScoreOptions,
    partitions: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Score in this many partitions of the queries, so that runs need not fit into memory; by default"
            " one for every two million rows of runs in Parquet.",
        ),
    ] = None,
    format: FormatOption = "table",
    as_json: AsJson = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Score table to write (.parquet or .csv).")] = None,
) -> None:
    """Score TREC runs under TREC qrels, as `trec_eval -c` does: any measure, any scale, floats and missing labels."""
    _one_form(format, as_json)
    from judgekit.data.labelings import Scale
    from judgekit.data.manifest import has_manifest
    from judgekit.data.ordering import Ties
    from judgekit.data.outputs import noting_reads
    from judgekit.data.trec import read_qrels, read_run
    from judgekit.metrics import evaluate, parse_measures, suited
    from judgekit.metrics.parts import evaluate_parts, parts_for

    # What is seldom needed is imported where it is: half of the time of a small scoring is that of imports.
    if out is not None:
        from judgekit.data.files import check_target

        check_target(out, table=True)
    wanted = parse_measures(measures)
    files, ranked = named(qrels, "--qrels"), named(run, "--run")
    scales = {name: Scale.parse(text) for name, text in scales_of(scale, files).items()}
    roles = {f"qrels {name}": path for name, path in files.items()}
    roles = in_forms(format_in, roles | {f"run {name}": path for name, path in ranked.items()})
    files, ranked = {n: roles[f"qrels {n}"] for n in files}, {n: roles[f"run {n}"] for n in ranked}
    with noting_reads() as read:
        count = partitions or (1 if docs is not None else parts_for(ranked))
        if count > 1:
            if docs is not None:
                raise UsageError("--docs needs all queries at once: leave --partitions out")
            evaluation = evaluate_parts(ranked, files, wanted, count, scales=scales, ties=Ties(ties), **vars(rules))
        else:
            labelings = [read_qrels(path, name, scales.get(name)) for name, path in files.items()]
            runs = [read_run(path, name, Ties(ties)) for name, path in ranked.items()]
            collection = None
            if docs is not None:
                from judgekit.data.readers import read_docs

                collection = read_docs(docs)
                wanted = suited(wanted, runs, collection)
            evaluation = evaluate(runs, labelings, wanted, docs=collection, **vars(rules))
    if out is not None or any(map(has_manifest, files.values())):
        inputs = made_from(roles, read)
    changes = None
    if baseline is not None:
        from judgekit.analysis.against import against

        changes = against(evaluation, baseline, confidence=confidence)
    warnings = list(dict.fromkeys([*evaluation.warnings, *_remarks(evaluation, rules.missing)]))
    if per_query or out is not None or format != "table" or as_json:
        import pandas as pd

        means = evaluation.means()
        table = pd.concat([means, evaluation.scores()], ignore_index=True) if per_query else means
        if out is not None:
            save_table(table, out, inputs)
        if as_json:
            against_it = None if changes is None else records(changes)
            emit("score", scores=records(table), against=against_it, file=out, warnings=warnings)
            return
        if (per_query and out is None) or (format != "table" and changes is None):
            show(table if out is None else means, format)
    if format == "table" and (out is not None or not per_query):
        _means(evaluation)
    if changes is not None:
        if format == "table":
            typer.echo(f"\nagainst {baseline}:")
        show(changes, format)
    if out is not None:
        typer.echo(f"scores: {out} ({len(table):,} rows)", err=format != "table")
    for line in warnings:
        typer.echo(f"note: {line}", err=True)


def _means(evaluation: Evaluation) -> None:
    """Print means with runs and labelings as rows and measures as columns; pandas and rich are slow to load."""
    names = list(dict.fromkeys(mean.measure for mean in evaluation.summary))
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for mean in evaluation.summary:
        value = "-" if mean.value != mean.value else f"{mean.value:.4f}"
        if evaluation.bounded and mean.low == mean.low:
            value = f"{mean.low:.4f}..{mean.high:.4f}"
        rows.setdefault((mean.labeling, mean.run), {})[mean.measure] = value
    lines = [["labeling", "run", *names], *([*key, *(values[name] for name in names)] for key, values in rows.items())]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (
            f"{text:<{w}}" if i < 2 else f"{text:>{w}}" for i, (text, w) in enumerate(zip(line, widths, strict=True))
        )
        typer.echo("  ".join(cells).rstrip())


def _remarks(evaluation: Evaluation, missing: Missing) -> Iterator[str]:
    """Yield what a reader of the means has to know: what each is not a mean of, and why."""
    treated = {"undefined": "they have no score", "zero": "read as 0", "condense": "left out", "bounds": "bounded"}
    cutoffs = {str(m): (m.spec.cutoff or 0, m.spec.of) for m in evaluation.measures}
    ties: dict[tuple[str, str], dict[tuple[int, str], str]] = {}
    for mean in evaluation.summary:
        of = f"of {mean.queries:,} queries"
        if mean.reason:
            yield f"{mean.measure} is undefined under {mean.labeling}: {mean.reason}"
        if mean.missing:
            yield (
                f"{mean.labeling}: labels are missing for {mean.missing:,} {of} ({treated[missing]});"
                " trec_eval, which sees the qrels file only, reads them as not relevant"
            )
        if mean.not_applicable:
            yield f"{mean.labeling} does not apply to {mean.not_applicable:,} {of}: they have no score"
        if mean.not_in_run:
            yield f"{mean.run} has nothing for {mean.not_in_run:,} {of} of {mean.labeling}"
        if mean.ignored:
            yield f"{mean.ignored:,} queries of {mean.run} are not in {mean.labeling} and are ignored"
        if mean.no_relevant:
            yield f"{mean.labeling} has no relevant document for {mean.no_relevant:,} {of}"
        if mean.ties_across:
            ties.setdefault((mean.run, of), {})[cutoffs[mean.measure]] = f"{mean.ties_across:,}"
    for (run, of), counts in ties.items():
        told = ", ".join(f"cutoff {cutoff}{of_what} in {count}" for (cutoff, of_what), count in sorted(counts.items()))
        yield f"{run}: scores tie across {told} {of}; --ties says which documents come first"


def _one_form(format: Format, as_json: bool) -> None:
    if as_json and format != "table":
        raise UsageError(f"--json prints one object for machines, --format {format} the table alone: use one of them")


@dataclass(frozen=True)
class VerdictOptions:
    """What verdicts are about, and how sure they are, by their names in `judgekit.compare`."""

    use: Annotated[
        str | None,
        typer.Option(help="choose-runs (default with two or more runs) or find-questions: which verdict leads."),
    ] = None
    primary: Annotated[str | None, typer.Option(help="Measure that the verdict is about.")] = None
    primary_metric: Annotated[str | None, typer.Option(help="Answer metric that the verdict is about.")] = None
    mode: Annotated[
        str | None, typer.Option(help="Mode of answering that everything is about, where the table has several.")
    ] = None
    accept_mixed_models: Annotated[
        bool, typer.Option("--accept-mixed-models", help="Give a verdict on answers of several models under one name.")
    ] = False
    keep: Annotated[
        float, typer.Option(min=0.01, max=1, help="Share of the best labeling's gain that a cheaper one must keep.")
    ] = 0.5
    margin_points: Annotated[
        float | None, typer.Option(min=0, help="Points of quality that a cheaper labeling may lose instead.")
    ] = None
    confidence: Annotated[
        float, typer.Option(help="Confidence of the intervals and of every claim: from 0.5, below 1.")
    ] = 0.95
    resamples: Annotated[int, typer.Option(min=100, max=100_000, help="Number of bootstrap resamples.")] = 1000
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resamples.")] = 1


def compare(
    scores: Annotated[
        list[str],
        typer.Option(
            "--scores",
            metavar="[NAME=]FILE",
            help="Score table with values per query, the output of trec_eval or ir_measures, or a leaderboard; repeat.",
        ),
    ],
    quality: Annotated[
        list[Path],
        typer.Option(
            "--quality",
            help="Quality table with query_id, value and, where there are several, run, depth, model, metric, or a"
            " leaderboard; repeat.",
        ),
    ],
    level: Annotated[
        list[str] | None, typer.Option(help="Show only this level: query, within-query or system; repeat.")
    ] = None,
    measure: Annotated[list[str] | None, typer.Option(help="Compare only these measures; repeat.")] = None,
    metric: Annotated[list[str] | None, typer.Option(help="Compare only these answer metrics; repeat.")] = None,
    depth: Annotated[list[int] | None, typer.Option(help="Compare only these answer depths; repeat.")] = None,
    by_construction: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LABELING=METRIC",
            help="Labeling that is the answers' METRIC from one document: no verdict uses it at depth 1; repeat.",
        ),
    ] = None,
    *,
    about: VerdictOptions,
    format: FormatOption = "table",
    as_json: AsJson = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Comparison table to write (.csv or .parquet).")
    ] = None,
) -> None:
    """Say how well each labeling's scores follow the quality of the answers. Any tables will do."""
    _one_form(format, as_json)
    import pandas as pd

    from judgekit.analysis import LEVELS
    from judgekit.analysis import compare as compare_tables
    from judgekit.analysis.inputs import at_every_depth
    from judgekit.answers.imported import read_ratings
    from judgekit.data.files import check_target, read_table
    from judgekit.data.leaderboards import other_form
    from judgekit.data.outputs import noting_reads
    from judgekit.data.tables import RATINGS, SCORES

    for name in level or ():
        if name not in LEVELS:
            raise UsageError(not_among("level", name, LEVELS))
    if out is not None:
        check_target(out, table=True)
    with noting_reads() as read:
        tables = []
        for labeling, file in map(split_named, scores):
            table = read_table(SCORES, file)
            tables.append(table if labeling is None else table.assign(labeling=labeling))
        found = pd.concat(tables, ignore_index=True)
        rated = [
            at_every_depth(read_ratings(path), found, depth, whole=other_form(RATINGS, path) is not None)
            for path in quality
        ]
        answers = pd.concat(rated, ignore_index=True)
    inputs = made_from({}, read)
    comparison = compare_tables(
        found,
        answers,
        measures=measure,
        metrics=metric,
        depths=depth,
        by_construction=_outcomes(by_construction or [], found, answers),
        **vars(about),
    )
    if out is not None:
        save_table(comparison.table, out, inputs)
    wide = format == "table" and not as_json
    table = comparison.wide() if wide else comparison.table
    if level:
        have = ", ".join(dict.fromkeys(table["level"]))
        table = table[table["level"].isin(level)]
        if table.empty:
            raise UsageError(f"the {level[0]} level needs values per query; what is here: {have}")
    if as_json:
        verdicts = verdicts_of(comparison.verdicts)
        emit("compare", verdicts=verdicts, comparison=records(table), file=out, warnings=list(comparison.warnings))
        return
    note(*comparison.warnings)
    if format == "table":
        for verdict in comparison.verdicts.values():
            say(f"{verdict}\n")
    show(table, format)
    if format == "table" and comparison.modes is not None:
        typer.echo("\nmodes of answering, on the questions that have a value in all of them:")
        modes = comparison.modes.table
        shown = modes[(modes["coefficient"] == "concordance") & modes["level"].isin(level or LEVELS)]
        show(shown.set_index("mode").drop(columns=["flags", "undefined_reason"]).reset_index(), format)


def _outcomes(items: list[str], scores: pd.DataFrame, quality: pd.DataFrame) -> set[tuple[str, str, str]]:
    """Return (labeling, model, metric) of what is the outcome by construction, for all models of the quality table."""
    labelings, metrics = (sorted(set(column)) for column in (scores["labeling"], quality["metric"]))
    found = set()
    for item in items:
        labeling, _, metric = item.rpartition("=")
        for what, name, known in (("labeling", labeling, labelings), ("metric", metric, metrics)):
            if name not in known:
                raise UsageError(f"--by-construction {item}: {not_among(what, name, known)}")
        found |= {(labeling, str(model), metric) for model in set(quality["model"])}
    return found


def agree(
    qrels: Annotated[list[str], typer.Option("--qrels", metavar="[NAME=]FILE", help="TREC qrels; two or more.")],
    people: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Qrels made by people: precision and recall are against them; repeat."),
    ] = None,
    run: Annotated[
        list[str] | None,
        typer.Option("--run", metavar="[NAME=]FILE", help="Say also whether they order these runs alike; repeat."),
    ] = None,
    measures: Annotated[str, typer.Option("--measures", "-m", help="The measures of the runs.")] = "nDCG@10",
    scale: ScaleOption = None,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.999, help="Confidence of the intervals.")] = 0.95,
    resamples: Annotated[int, typer.Option(min=100, max=100_000, help="Bootstrap resamples of the queries.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resamples.")] = 1,
    format: FormatOption = "table",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Agreement table to write (.csv or .parquet).")
    ] = None,
) -> None:
    """Say how far labels agree, by kappa, alpha, AC1 and label by label; needs no answers, queries or runs."""
    import pandas as pd

    from judgekit.api import agree as agree_labelings
    from judgekit.data.files import check_target
    from judgekit.data.outputs import noting_reads

    if out is not None:
        check_target(out, table=True)
    files = named(qrels, "--qrels")
    with noting_reads() as read:
        found = agree_labelings(
            files,
            people=people or (),
            runs=named(run, "--run") if run else None,
            measures=measures,
            scales=scales_of(scale, files),
            confidence=confidence,
            resamples=resamples,
            seed=seed,
        )
    table = found.table
    if len(found.system):
        system = found.system.assign(on="runs by " + found.system["measure"], pairs=found.system["runs"])
        table = pd.concat([table, system[list(table.columns)]], ignore_index=True)
    if out is not None:
        save_table(table, out, made_from({f"qrels {name}": path for name, path in files.items()}, read))
    show(table if format != "table" else table.drop(columns="undefined_reason"), format)
    if format == "table":
        for row in table[table["undefined_reason"] != ""].itertuples():
            note(f"{row.coefficient} of {row.first} and {row.second} is undefined: {row.undefined_reason}")
        if not found.confusion.empty:
            typer.echo("")
            show(found.confusion, format)
        for row in found.coverage.itertuples():
            note(
                f"{row.both:,} documents have labels of both {row.first} and {row.second}, {row.only_first:,} only of"
                f" the first, {row.only_second:,} only of the second"
            )
