"""``annotate``: from a verdict to labels by people, and back: sample, make, export, read, validate, correct, plan."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from judgekit.cli.common import console, group, note, say, show
from judgekit.cli.drawing import progress
from judgekit.cli.options import FormatOption, Prompts, Quiet, ServerOptions, StoreOptions, expanded
from judgekit.errors import UsageError, not_among

if TYPE_CHECKING:
    from judgekit.data.labelings import Labeling
    from judgekit.experiment.finished import Opened
    from judgekit.people.reading import People
    from judgekit.people.tasks import Sample

__all__ = ["annotate"]

annotate = group("Have people judge a sample, and correct machine labels by it.")

Source = Annotated[Path, typer.Argument(metavar="EXPERIMENT|RESULTS", help="Experiment file, or results folder.")]
Results = Annotated[Path, typer.Argument(metavar="RESULTS", help="Results folder of `judgekit run`.")]
PeopleFile = Annotated[Path, typer.Argument(metavar="PEOPLE", help="Labels that `judgekit annotate read` wrote.")]
LabelingNames = Annotated[
    list[str] | None, typer.Option("--labeling", "-l", help="Use only this labeling; repeat for several.")
]


@dataclass(frozen=True)
class TaskOptions:
    """How many tasks there are, and who gets which."""

    n: Annotated[int, typer.Option("--n", min=1, help="Number of queries (design queries), else of pairs.")] = 100
    guideline: Annotated[str, typer.Option(help="Text for the top of the page.")] = ""
    assessors: Annotated[str, typer.Option(help="Names, separated by commas.")] = "1"
    overlap: Annotated[int, typer.Option(min=1, help="Number of assessors for each pair.")] = 1
    duplicates: Annotated[float, typer.Option(help="Share of the tasks to show twice, unmarked.")] = 0.0
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draw.")] = 1


@annotate.command()
@expanded
def sample(
    source: Source,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="SAMPLE", help="File to write (JSON lines).")],
    design: Annotated[
        Literal["queries", "pairs", "stratified", "doubtful"],
        typer.Option(help="Whole queries; any pairs; by label or disagreement; or where a judge is unsure."),
    ] = "queries",
    form: Annotated[
        Literal["grades", "best"], typer.Option(help="Grade each passage, or choose the best of two or three.")
    ] = "grades",
    by: Annotated[str | None, typer.Option(help="Labeling for the designs stratified and doubtful.")] = None,
    answers: Annotated[
        str | None, typer.Option(metavar="RUN,RUN", help="Compare the answers of these two runs instead.")
    ] = None,
    depth: Annotated[int | None, typer.Option(min=1, help="With --answers: answers from the top DEPTH.")] = None,
    prompt: Annotated[str, typer.Option(help="Judge prompt whose grades people give.")] = "graded",
    *,
    tasks: TaskOptions,
) -> None:
    """Choose what people judge, each pair with a known probability."""
    from judgekit.experiment.finished import open_results
    from judgekit.people.sampling import draw, draw_answers

    opened = open_results(source)
    collection = opened.prepared.collection
    drawn = vars(tasks) | {"assessors": [name.strip() for name in tasks.assessors.split(",")]}
    if answers is not None:
        runs = [name.strip() for name in answers.split(",")]
        if len(runs) != 2 or opened.quality is None:
            raise UsageError("--answers needs two runs of a results folder: --answers bm25,dense")
        config = opened.prepared.config
        made = draw_answers(
            collection,
            opened.quality[opened.quality["metric"] == config.analysis.primary_metric],
            runs=(runs[0], runs[1]),
            depth=depth or max(config.answers.depths),
            **drawn,
        )
    else:
        if depth is not None:
            raise UsageError("--depth goes with --answers: documents are sampled down to the experiment's own depth")
        made = draw(
            collection,
            design=design,
            form=form,
            labelings=opened.labelings,
            by=by,
            prompt=prompt,
            prompts=opened.prepared.config.prompt_folder(),
            **drawn,
        )
    made.write(out)
    queries = len({task.query_id for task in made.tasks})
    each = sum(len(task.assessors) for task in made.tasks)
    say(f"{len(made.tasks):,} tasks about {queries:,} of {made.queries:,} queries, {each:,} judgments: {out}")
    say(_precision(made, opened, by))


def _precision(made: Sample, opened: Opened, by: str | None) -> str:
    """Return what intervals to expect of people's labels alone: from a pilot's labels where there are some."""
    from judgekit.labelers.human import wilson
    from judgekit.people.sampling import expected

    found = (
        {}
        if made.form == "answers"
        else expected(
            made, opened.prepared.collection, str(opened.prepared.config.analysis.primary), opened.labelings, by
        )
    )
    if found:
        told = ", ".join(f"{what} to ±{width:.3f}" for what, width in found.items())
        return f"Expect from people's labels alone, judging by the existing labels: {told} (95 %)."
    n = len({task.query_id for task in made.tasks}) if made.design == "queries" else len(made.tasks)
    low, high = wilson(n // 2, n)
    return f"Expect to know a share to about ±{50 * (high - low):.0f} points (95 %), from people's labels alone."


@annotate.command()
def make(
    sample: Annotated[Path, typer.Argument(metavar="SAMPLE", help="File of `judgekit annotate sample`.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="HTML", help="Page to write; one for each assessor.")],
) -> None:
    """Write the page on which people judge: one file for each assessor, which opens without a server."""
    from judgekit.people.sheet import make_sheets
    from judgekit.people.tasks import Sample

    for path in make_sheets(Sample.read(sample), out):
        say(str(path))


@annotate.command()
def export(
    sample: Annotated[Path, typer.Argument(metavar="SAMPLE", help="File of `judgekit annotate sample`.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write: .csv, or .json for Label Studio.")],
    predictions: Annotated[
        Path | None, typer.Option(metavar="QRELS", help="Labels to show beforehand in Label Studio; they sway people.")
    ] = None,
) -> None:
    """Write the sample for a spreadsheet (CSV) or for Label Studio (JSON, and its labeling interface as XML)."""
    from judgekit.data.streams import write_atomic
    from judgekit.data.trec import read_qrels
    from judgekit.people.reading import write_csv, write_label_studio
    from judgekit.people.tasks import Sample

    made = Sample.read(sample)
    if out.suffix == ".csv":
        if predictions is not None:
            raise UsageError("--predictions is for Label Studio (.json)")
        write_atomic(out, write_csv(made))
    elif out.suffix == ".json":
        tasks, config = write_label_studio(made, None if predictions is None else read_qrels(predictions))
        write_atomic(out, tasks)
        write_atomic(out.with_suffix(".xml"), config)
    else:
        raise UsageError(f"{out}: the name ends in .csv (spreadsheet) or .json (Label Studio)")
    say(str(out))


@annotate.command()
@expanded
def ask(
    sample: Annotated[Path, typer.Argument(metavar="SAMPLE", help="Sample of answers (sample --answers).")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Judgments to write (JSON lines).")],
    *,
    prompt: Annotated[str, typer.Option(help="Preference prompt.")] = "prefer-answer",
    prompts: Prompts = None,
    server: ServerOptions,
    replies: StoreOptions,
    quiet: Quiet = False,
) -> None:
    """Ask an LLM which of two answers it prefers, in both orders: one more assessor, to hold against people."""
    from judgekit.data.streams import write_atomic
    from judgekit.people.machine import prefer
    from judgekit.people.tasks import Sample
    from judgekit.reading.asker import Asker
    from judgekit.reading.prompts import find_prompt
    from judgekit.stages import Resources, with_session

    made = Sample.read(sample)
    resources = Resources(server.endpoints(), prompts=prompts)
    asker = Asker(resources.endpoint(None).llm, find_prompt(prompt, Path, prompts))
    with progress(quiet) as draw:
        text, counts = with_session(lambda session: prefer(made, asker, session), **replies.kept(), progress=draw)
    write_atomic(out, text)
    told = ", ".join(f"{name} {n:,}" for name, n in sorted(counts.items()))
    say(f"{told}: {out}")
    note("these preferences have not been compared with people's yet: read both together, and look at their agreement")


@annotate.command()
def read(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Downloads, CSV files, Label Studio exports.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Qrels to write; for answers, a quality table (.csv).")],
    sample: Annotated[
        Path | None, typer.Option(help="The sample; needed for CSV, for Label Studio and for --adjudicate.")
    ] = None,
    assessor: Annotated[
        list[str] | None, typer.Option(help="Use only this assessor; repeat for several (default: all).")
    ] = None,
    rule: Annotated[str, typer.Option(help="majority, mean, adjudicated or best:NAME.")] = "majority",
    adjudicate: Annotated[
        Path | None, typer.Option(metavar="HTML", help="Page to write with what assessors do not agree on.")
    ] = None,
) -> None:
    """Read judgments back: labels, what was asked with which probability, and how far assessors agree."""
    from judgekit.data.files import check_target, write_table
    from judgekit.data.streams import write_atomic
    from judgekit.data.trec import write_qrels
    from judgekit.people.reading import asked_of, assessor_agreement, disputed, preferences, read_judgments, resolve
    from judgekit.people.sheet import page_of
    from judgekit.people.tasks import Sample

    asked = None if sample is None else Sample.read(sample)
    judgments = read_judgments(files, asked)
    if adjudicate is not None and asked is None:
        raise UsageError("--adjudicate shows the texts again, so it needs the sample (--sample)")
    answers = judgments.sample.form == "answers"
    check_target(out, table=answers)
    if not answers and out.suffix in (".csv", ".tsv", ".parquet", ".json"):
        raise UsageError(f"{out}: labels are written as TREC qrels: choose a name such as {out.stem}.qrels")
    counted = judgments.only(assessor) if assessor else judgments
    people = None if answers else resolve(counted, rule)
    for what, found in assessor_agreement(judgments).items():
        told = ["agreement", "kappa", "ac1", *(["alpha_ordinal"] if judgments.sample.form == "grades" else [])]
        shown = found.table[found.table["coefficient"].isin(told)]
        if len(shown):
            say(f"Agreement {_WHO[what]}:")
            show(shown[["first", "second", "on", "coefficient", "value", "ci_low", "ci_high", "pairs"]], "table")
    if people is None:
        table = preferences(counted)
        write_table(table, out)
        for run, value in table.groupby("run")["value"].mean().items():
            say(f"{run}: {value:.1%} of the preferences")
    else:
        write_qrels(people.labeling, out)
        asked_of(counted, people).write(out)
        counts = people.asked["status"].value_counts()
        say(", ".join(f"{n:,} {status}" for status, n in counts.items()))
    say(str(out))
    if adjudicate is not None and asked is not None:
        again = disputed(judgments, asked)
        if again.tasks:
            write_atomic(adjudicate, page_of(again, again.assessors[0]))
            say(f"{len(again.tasks):,} to adjudicate: {adjudicate}")
        else:
            note("The assessors agree: no page to adjudicate was written")


_WHO = {
    "between": "between assessors",
    "rest": "of each assessor with the others",
    "self": "of assessors with themselves",
}


def _opened(people: Path, results: Path, names: list[str] | None) -> tuple[Opened, People, dict[str, Labeling]]:
    """Read people's labels, the results that they were sampled from, and the machine labelings that are asked for.

    The texts are checked to be the same. Without names these are all labelings that are not people's.
    """
    from judgekit.experiment.finished import open_results
    from judgekit.people.reading import read_people

    opened = open_results(results)
    if not opened.labelings:
        raise UsageError(
            f"{results} is an experiment file: name the folder of its results, which holds the machine labels"
        )
    unknown = next((name for name in names or () if name not in opened.labelings), None)
    if unknown is not None:
        raise UsageError(not_among("labeling", unknown, opened.labelings))
    wanted = names or [name for name, labeler in opened.prepared.labelers.items() if not labeler.needs.people]
    return opened, read_people(people, opened.prepared.collection), {name: opened.labelings[name] for name in wanted}


@annotate.command()
def validate(
    people: PeopleFile,
    results: Results,
    labeling: LabelingNames = None,
    part: Annotated[
        Literal["dev", "test"], typer.Option(help="Part of the queries to report on; each opening of test is logged.")
    ] = "dev",
    format: FormatOption = "table",
) -> None:
    """Compare machine labels with people's: choose labeling and threshold on dev, report on dev or test."""
    from judgekit.people.validate import log_opening
    from judgekit.people.validate import validate as check

    _, said, machines = _opened(people, results, labeling)
    found = check(said, machines, part=part)
    if format == "table":
        console().print("On dev, to choose by:")
    show(found.grid, format)
    name, threshold = found.chosen
    if format == "table":
        say(f"\nChosen: {name}, relevant from {threshold:g} on. On {found.part}:")
    show(found.test, format)
    if len(found.grades):
        show(found.grades, format)
    note(*found.notes)
    if part == "test":
        earlier = log_opening(people.with_name(f"{people.name}.opened.json"), f"{name}, threshold {threshold:g}")
        if earlier:
            note(f"the test part was opened before ({'; '.join(earlier)}): it does not test what was chosen since")


@annotate.command()
def correct(
    people: PeopleFile,
    results: Results,
    measures: Annotated[str, typer.Option("--measures", "-m", help="Measures, e.g. 'nDCG@5 P@5'.")] = "P@5",
    labeling: LabelingNames = None,
    format: FormatOption = "table",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Table to write (.csv or .parquet).")] = None,
) -> None:
    """Correct machine labels by people's: means of runs and their differences, with intervals."""
    from judgekit.data.files import check_target, write_table
    from judgekit.people.correct import correct as corrected

    if out is not None:
        check_target(out, table=True)
    opened, said, machines = _opened(people, results, labeling)
    found = corrected(
        opened.prepared.collection,
        said,
        machines,
        measures,
        confidence=opened.prepared.config.analysis.confidence,
    )
    if out is not None:
        write_table(found.table, out)
    if format == "table":
        columns = ["labeling", "measure", "run", "other", "value", "ci_low", "ci_high", "people", "machine", "worth"]
        show(found.table[[*columns, "p_holm"]], format)
    else:
        show(found.table, format)
    note(*found.notes)


@annotate.command()
def plan(
    people: PeopleFile,
    results: Results,
    measures: Annotated[str, typer.Option("--measures", "-m", help="Measures, e.g. 'nDCG@5 P@5'.")] = "P@5",
    labeling: LabelingNames = None,
    more: Annotated[str, typer.Option(help="Further queries, separated by commas.")] = "10,25,50,100,200",
    format: FormatOption = "table",
) -> None:
    """Say what further labels by people would bring: width of the intervals, and power for each difference."""
    from judgekit.people.stopping import plan as planned

    try:
        steps = [int(text) for text in more.split(",")]
    except ValueError:
        raise UsageError(f"--more {more}: expected whole numbers, separated by commas") from None
    if min(steps) < 1:
        raise UsageError("--more, how many further queries, must be at least 1")
    opened, said, machines = _opened(people, results, labeling)
    show(planned(opened.prepared.collection, said, machines, measures, steps), format)


@annotate.command()
def verdict(
    people: PeopleFile,
    results: Results,
    measure: Annotated[str, typer.Option("--measure", "-m", help="Measure with a cutoff, e.g. nDCG@5.")] = "P@5",
    labeling: LabelingNames = None,
    format: FormatOption = "table",
) -> None:
    """Say whose scores follow people's: the verdict with people's labels as the outcome, instead of answers."""
    from judgekit.analysis import compare
    from judgekit.metrics import parse_measures
    from judgekit.people.correct import as_quality
    from judgekit.stages import score_pool

    parsed = parse_measures(measure)
    if len(parsed) != 1:
        raise UsageError(f"--measure {measure!r} names {len(parsed)} measures, but a verdict is about one")
    opened, said, machines = _opened(people, results, labeling)
    collection, analysis = opened.prepared.collection, opened.prepared.config.analysis
    quality = as_quality(collection, said, measure)
    evaluation = score_pool(collection, list(machines.values()), parsed)
    scores = evaluation.scores()
    found = compare(
        scores[scores["query_id"].isin(set(quality["query_id"]))],
        quality,
        primary=str(evaluation.measures[0]),
        primary_metric=str(evaluation.measures[0]),
        resamples=analysis.resamples,
        seed=analysis.seed,
        confidence=analysis.confidence,
    )
    if format == "table":
        console().print("Here, people's judgments of the documents stand for the quality of answers.")
        for sentence in found.verdict.sentences:
            say(sentence)
    else:
        show(found.table, format)
    note(*found.warnings)
