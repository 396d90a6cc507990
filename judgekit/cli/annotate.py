"""``annotate``: collect labels by people for a decision, and decide by them; ``build``: write the final qrels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from judgekit.console.help import group
from judgekit.console.jobs import JobOptions
from judgekit.console.options import AsJson, expanded
from judgekit.console.printing import check_out, note, records, say, show
from judgekit.console.results import CommandResult, missing_of
from judgekit.data.streams import write_atomic
from judgekit.errors import UsageError, not_among

if TYPE_CHECKING:
    import pandas as pd

    from judgekit.analysis.claims import Claim
    from judgekit.experiment.finished import LoadedResults
    from judgekit.people.sampling import Handout
    from judgekit.people.tasks import Sample

annotate = group("Collect labels by people and use them to correct machine labels.", name="annotate")

Source = Annotated[Path, typer.Argument(metavar="EXPERIMENT|RESULTS", help="Experiment file or results folder.")]
Results = Annotated[Path, typer.Argument(metavar="RESULTS", help="Results folder of `judgekit run`.")]
PeopleFile = Annotated[Path, typer.Argument(metavar="PEOPLE", help="Labels written by `judgekit annotate read`.")]
LabelingNames = Annotated[
    list[str] | None, typer.Option("--labeling", "-l", help="Use only this labeling; repeat for several.")
]


@dataclass(frozen=True)
class TaskOptions:
    """The number of tasks, and who judges each."""

    n: Annotated[
        int | None, typer.Option("--n", min=1, help="Number of queries (design queries) or of pairs (default: 100).")
    ] = None
    assessors: Annotated[str, typer.Option(help="Names of the assessors, separated by commas.")] = "1"
    overlap: Annotated[int, typer.Option(min=1, help="Number of assessors for each pair.")] = 1
    duplicates: Annotated[float, typer.Option(help="Share of the tasks to repeat, unmarked.")] = 0.0
    rule: Annotated[
        Literal["majority", "mean"],
        typer.Option(help="How several judgments become a label; an adjudicator settles ties."),
    ] = "majority"


@annotate.command()
@expanded
def sample(
    source: Source,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="SAMPLE", help="File to write (JSON lines).")],
    design: Annotated[
        Literal["queries", "pairs", "decision", "answers"],
        typer.Option(
            help="Sample whole queries, random pairs, the pairs that decide which run is best, or all runs' answers to"
            " random questions."
        ),
    ] = "queries",
    form: Annotated[
        Literal["grades", "best"], typer.Option(help="Grade each passage, or choose the best of two or three passages.")
    ] = "grades",
    by: Annotated[str | None, typer.Option(help="Labeling that the design decision uses.")] = None,
    people: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Labels collected so far with the design decision; draws the next look."),
    ] = None,
    prompt: Annotated[str, typer.Option(help="Judge prompt that defines the grades.")] = "graded",
    *,
    tasks: TaskOptions,
    as_json: AsJson = False,
) -> None:
    """Draw a sample with known probabilities and write the sheets for assessors.

    Examples:
        judgekit annotate sample results --n 25 --prompt binary --assessors ann,bob --out sample.jsonl
        judgekit annotate sample results --design decision --by judge --prompt binary --out look.jsonl
    """
    from judgekit.analysis.claims import plain
    from judgekit.experiment.finished import open_results
    from judgekit.experiment.prepare import primary_answers
    from judgekit.people.grades import texts_of
    from judgekit.people.sampling import Handout, draw, draw_answers

    opened = open_results(source)
    collection, config = opened.prepared.collection, opened.prepared.config
    assessors = [name.strip() for name in tasks.assessors.split(",")]
    handout = Handout(assessors, tasks.overlap, tasks.duplicates, tasks.rule, config.analysis.seed)
    n = tasks.n or 100
    claims: list[Claim] = []
    made: Sample | None
    if design == "decision" or people is not None:
        if tasks.n is not None or design == "answers":
            raise UsageError("the design 'decision' chooses the number of pairs itself: leave out --n")
        look = _next_look(opened, by, people, form=form, prompt=prompt, handout=handout)
        claims, made = look.claims, look.sample
    # Draw all runs' answers to each question, so that runs are compared on the same questions.
    elif design == "answers":
        if opened.quality.empty:
            raise UsageError(f"{source} holds no answers yet: name the results folder of a run")
        prepared, depth = opened.prepared, opened.prepared.answer_depth
        answers = primary_answers(prepared, opened.quality)
        texts = texts_of(answers, str(prepared.outcome.outcome), depth, prepared.run_names)
        made = draw_answers(collection.queries, texts, n=n, depth=depth, handout=handout)
    else:
        if by is not None:
            raise UsageError("only the design 'decision' uses a labeling: leave out --by")
        made = draw(collection, n=n, design=design, form=form, prompt=prompt, handout=handout)
    lines = [claim.sentence for claim in claims]
    record = {"claims": list(plain(claims)), "tasks": 0, "queries": 0, "judgments": 0}
    files: list[Path] = []
    if made is not None:
        made.write(out)
        queries = len({task.query_id for task in made.tasks})
        each = sum(len(task.assessors) for task in made.tasks)
        lines.append(
            f"{len(made.tasks):,} tasks about {queries:,} of {made.queries:,} queries, {each:,} judgments: {out}"
        )
        if design == "answers":
            lines.append("From 50 graded questions on, the quality corrected by people decides between the runs.")
        sheets = _sheets(made, out)
        lines += map(str, sheets)
        record |= {"tasks": len(made.tasks), "queries": queries, "judgments": each}
        files = [out, *sheets]
    CommandResult(lambda: say(*lines), record, files).end("annotate sample", as_json=as_json)


@dataclass(frozen=True)
class _NextLook:
    """The decision so far, and the sample to judge next; None if nothing is left to judge."""

    claims: list[Claim]
    sample: Sample | None = None


def _next_look(
    opened: LoadedResults, by: str | None, file: Path | None, *, form: str, prompt: str, handout: Handout
) -> _NextLook:
    """Draw the sample for the next look at a decision, unless the decision is over."""
    from dataclasses import replace

    from judgekit.data.labelings import Scale
    from judgekit.people.deciding import decide
    from judgekit.people.reading import read_people
    from judgekit.people.sampling import draw_wanted

    collection, config = opened.prepared.collection, opened.prepared.config
    people = None if file is None else read_people(file, collection)
    found = decide(collection, opened.labelings, by, str(opened.prepared.primary), config.analysis.seed, people)
    claims = [*found.claims(config.costs())]
    if found.over:
        return _NextLook(claims)
    # A decision asks for single pairs, but "best" needs several documents of a query.
    if form == "best":
        raise UsageError("form 'best' shows documents of one query side by side: use the design 'queries'")
    made = draw_wanted(collection, found.wanted, found.design, prompt=prompt, handout=handout)
    # The prompt defines the grades. A second look on another scale could not be combined with the first.
    if people is None:
        return _NextLook(claims, made)
    scale, given = Scale.parse(made.scale), people.labeling.scale
    if (scale.low, scale.high) != (given.low, given.high):
        raise UsageError(f"people have graded on {given}, but this prompt has {scale}: name the same --prompt")
    return _NextLook(claims, replace(made, before=found.before(people), name=""))


def _sheets(made: Sample, out: Path) -> list[Path]:
    """Write a page for each assessor and a spreadsheet beside the sample, and return their paths."""
    from judgekit.people.reading import write_csv
    from judgekit.people.sheet import make_sheets

    spreadsheet = out.with_suffix(".csv")
    write_atomic(spreadsheet, write_csv(made))
    return [*make_sheets(made, out.with_suffix(".html")), spreadsheet]


@annotate.command()
def read(
    sample: Annotated[Path, typer.Argument(metavar="SAMPLE", help="Sample that people judged.")],
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Downloaded judgments or CSV files.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Qrels to write, of grades of answers too.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Read judgments: write the labels and their sampling probabilities, and show how far assessors agree.

    Examples:
        judgekit annotate read sample.jsonl judgments-ann.jsonl judgments-bob.jsonl --out people.qrels
    """
    from judgekit.data.trec import write_qrels
    from judgekit.people.reading import asked_of, assessor_agreement, disputed, read_judgments, resolve
    from judgekit.people.sheet import page_of
    from judgekit.people.tasks import Sample

    asked = Sample.read(sample)
    judgments = read_judgments(files, asked)
    # Check before reading judgments: hours of people's work should not end in a file of the wrong kind.
    check_out(out)
    if out.suffix in (".csv", ".tsv", ".parquet", ".json"):
        raise UsageError(f"{out}: labels are written as TREC qrels; choose a name like {out.stem}.qrels")
    people = resolve(judgments)
    agreements = assessor_agreement(judgments)
    write_qrels(people.labeling, out)
    asked_of(judgments, people).write(out)
    counts = people.asked["status"].value_counts()
    last = [", ".join(f"{n:,} {status}" for status, n in counts.items()), str(out)]
    written = [out]
    # An adjudicator sees only what the assessors disagree about.
    page = out.with_suffix(".again.html")
    again = disputed(judgments, asked)
    if again.tasks:
        write_atomic(page, page_of(again, again.assessors[0]))
        waiting = f"{len(again.tasks):,} tasks wait for an adjudicator: {page}."
        last.append(f"{waiting} Read its download together with these files.")
        written.append(page)
    else:
        page.unlink(missing_ok=True)

    def shown() -> None:
        for what, found in agreements.items():
            told = ["agreement", "kappa", "ac1", *(["alpha"] if judgments.sample.form == "grades" else [])]
            some = found[found["coefficient"].isin(told)]
            if len(some):
                say(f"Agreement {_WHO[what]}:")
                show(some[["first", "second", "on", "coefficient", "value", "ci_low", "ci_high", "pairs"]])
        if judgments.seconds:
            say(f"A judgment took {judgments.seconds:.0f} seconds (median).")
        say(*last)

    record = {
        "agreement": {what: records(found) for what, found in agreements.items()},
        "seconds": judgments.seconds,
        "counts": counts.to_dict(),
        "disputed": len(again.tasks),
    }
    CommandResult(shown, record, written).end("annotate read", as_json=as_json)


_WHO = {"between": "between assessors", "self": "of assessors with themselves"}


@annotate.command()
def correct(
    people: PeopleFile,
    results: Results,
    measures: Annotated[
        list[str] | None,
        typer.Option("--measures", "-m", help="Measures, e.g. 'nDCG@5 P@5'; may be repeated (default: P@5)."),
    ] = None,
    labeling: LabelingNames = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Table to write (.csv or .parquet).")] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Correct the means and differences of runs by people's labels, or report whether people's labels decide.

    Examples:
        judgekit annotate correct people.qrels results -m 'nDCG@5 P@5'
    """
    from judgekit.analysis.claims import plain
    from judgekit.data.files import write_table
    from judgekit.experiment.finished import open_results
    from judgekit.people.correct import correct as corrected
    from judgekit.people.deciding import decide, decided_by
    from judgekit.people.final import agreed
    from judgekit.people.grades import is_grades
    from judgekit.people.reading import read_people

    if out is not None:
        check_out(out, table=True)
    # Grades of answers correct the outcome itself, not the runs' scores by labels.
    if is_grades(people):
        raise UsageError(
            f"{people} holds grades of answers: judgekit compare --scores {results} --people {people} corrects by them"
        )
    opened = open_results(results)
    if not opened.labelings:
        raise UsageError(f"{results} is an experiment file: name its results folder, which holds the machine labels")
    prepared = opened.prepared
    machines = {}
    for name in labeling or [name for name, labeler in prepared.labelers.items() if not labeler.needs.people]:
        if name not in opened.labelings:
            raise UsageError(not_among("labeling", name, opened.labelings))
        machines[name] = opened.labelings[name]
    said, config = read_people(people, prepared.collection), prepared.config
    files = [] if out is None else [out]
    # Looks are planned for one measure of one labeling. Changing either after seeing labels voids the error rate.
    if decided_by(said.design) is not None:
        if measures is not None or labeling:
            raise UsageError("the sample fixes the measure and the labeling: leave out -m and -l")
        seed = config.analysis.seed
        choice = decide(prepared.collection, opened.labelings, None, str(prepared.primary), seed, said)
        if out is not None:
            write_table(choice.look.table, out)
        claims = [*choice.claims(config.costs())]
        lines = [claim.sentence for claim in claims]
        if not choice.over:
            again = f"judgekit annotate sample {results} --people {people} -o NEXT.jsonl"
            lines.append(f"Draw the next {len(choice.new):,} pairs, with the same --prompt and --assessors: {again}")

        def looked() -> None:
            show(choice.look.table)
            say(*lines)

        record = {"look": records(choice.look.table), "claims": list(plain(claims))}
        CommandResult(looked, record, files).end("annotate correct", as_json=as_json)
        return
    agreement = agreed(said, machines)
    # A run's mean needs judgments of all of a query's documents; single pairs cover only a few of them.
    wanted = " ".join(measures or ["P@5"])
    found = None
    if said.design != "pairs" or measures is not None or out is not None:
        found = corrected(prepared.collection, said, machines, wanted, confidence=config.analysis.confidence)
        if out is not None:
            write_table(found.table, out)

    def shown() -> None:
        say("Agreement with people (relevant as each side declares it):")
        _show_agreement(agreement, "first")
        if found is None:
            say("Single pairs cannot correct means of runs: sample whole queries for that.")
            return
        say("Corrected:")
        columns = ["labeling", "measure", "run", "other", "value", "ci_low", "ci_high", "people", "machine", "worth"]
        show(found.table[[*columns, "p_holm"]])

    record = {"agreement": records(agreement), "corrected": [] if found is None else records(found.table)}
    warnings = () if found is None else found.notes
    CommandResult(shown, record, files, warnings).end("annotate correct", as_json=as_json)


def build(
    source: Source,
    labeling: Annotated[
        str, typer.Option("--labeling", "-l", help="Labeling for the pairs that people did not judge.")
    ],
    people: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Labels by `judgekit annotate read`, or existing judgments by people."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write the final labels to.")] = Path(
        "ground-truth"
    ),
    *,
    accept_empty: Annotated[
        bool,
        typer.Option(
            "--accept-empty", help="Write labels even if most questions lose all documents that people call relevant."
        ),
    ] = False,
    asked: JobOptions,
) -> None:
    """Label the remaining pairs of all queries and write the final qrels, with their texts and a card.

    Examples:
        judgekit build results --labeling judge --dry-run
        judgekit build results --labeling judge --people people.qrels --out ground-truth
    """
    from judgekit.experiment import build as builds
    from judgekit.people.final import SHOWN

    built = asked.carry_out("build", builds.build, source, labeling, people=people, out=out, accept_empty=accept_empty)
    counts = {name: n for name, n in built.labels["source"].value_counts().to_dict().items() if name}
    queries = built.labels["query_id"].nunique()

    def shown() -> None:
        told = [f"{count:,} by {name}" for name, count in counts.items()]
        say(f"{len(built.labels):,} pairs of {queries:,} queries: {', '.join(told)}")
        if len(built.agreement):
            say("Agreement with people (relevant as each side declares it):")
            _show_agreement(built.agreement[built.agreement["coefficient"].isin(SHOWN)])
        say(*built.sentences)
        say(*map(str, built.files))

    # End with the missing labels and exit code 1: a script must not take the qrels for complete.
    missing, last = missing_of(built.labeling.failed(), "labels", out / builds.LABELS)
    CommandResult(
        shown,
        record={
            "pairs": len(built.labels),
            "queries": queries,
            "counts": counts,
            "agreement": records(built.agreement),
            "sentences": built.sentences,
        },
        files=built.files,
        warnings=built.notes,
        missing=missing,
        last=last,
    ).end("build", as_json=asked.as_json)


def _show_agreement(table: pd.DataFrame, *names: str) -> None:
    """Print agreement, and why a coefficient is undefined."""
    show(table[[*names, "on", "coefficient", "value", "ci_low", "ci_high", "pairs"]])
    undefined = table[table["undefined_reason"].fillna("") != ""]
    for row in undefined.itertuples():
        note(f"{row.coefficient} of {row.first} is undefined: {row.undefined_reason}")
