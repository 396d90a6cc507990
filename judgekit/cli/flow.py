"""``demo``, ``init``, ``plan``, ``run``, ``choose`` and ``report``: the whole flow."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from judgekit.cli.drafts import write_draft
from judgekit.console.bars import progress
from judgekit.console.jobs import JobOptions
from judgekit.console.options import AsJson, Cache, Limit
from judgekit.console.printing import console, records, say
from judgekit.console.results import CommandResult, advice
from judgekit.data.streams import check_outputs
from judgekit.errors import UsageError

if TYPE_CHECKING:
    from judgekit.experiment.run import RunResult
    from judgekit.report.svg import Figures


def init(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            help="Folder with your data, or its files (default: the current folder). FORM(key=column,…):FILE names"
            " columns, NAME=FILE a run."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for experiment.toml (default: next to the data).")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing experiment.toml.")] = False,
    *,
    as_json: AsJson = False,
) -> None:
    """Inspect your files, report how each is read and what looks wrong, and write an experiment that runs.

    Examples:
        judgekit init my-data
        judgekit init queries.jsonl docs.jsonl bm25.trec dense.trec --out experiment
        judgekit init my-data 'csv(id=Nr,text=Frage,answers=Antwort):my-data/fragen.csv'
    """
    from judgekit.setup.init import draft

    made = draft(paths or ["."], out)
    write_draft(made, overwrite=overwrite, as_json=as_json).end("init", as_json=as_json)


Out = Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the results.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace files of the same names that judgekit did not write.")
]


def demo(
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the results.")] = None,
    overwrite: Overwrite = False,
    *,
    labelers: Annotated[bool, typer.Option("--labelers", help="Compare all nine labelers instead.")] = False,
    model: Annotated[
        Literal["minilm", "smollm2"],
        typer.Option(help="Model that answered: an extractive reader, or SmolLM2-135M-Instruct, a chat model."),
    ] = "minilm",
    as_json: AsJson = False,
) -> None:
    """Run the bundled sample offline, with the recorded replies of a small model. Needs no network and no key.

    The folder "tutorial" in the results holds files to try the other commands on.

    Examples:
        judgekit demo
        judgekit demo --labelers
        judgekit demo --model smollm2
    """
    from judgekit.client.asking import Asking
    from judgekit.experiment.run import run as run_experiment
    from judgekit.sample import EXPERIMENTS, LABELERS, write_tutorial

    if labelers and model != "minilm":
        raise UsageError(f"--labelers was recorded with minilm only: leave out --model {model}, or --labelers")
    experiment, name = EXPERIMENTS[model], "judgekit-demo" if model == "minilm" else f"judgekit-demo-{model}"
    if labelers:
        experiment, name = LABELERS, "judgekit-labelers"
    out = out or Path(name)
    with progress() as draw:
        # Keep the demo's replies out of the user's own store, which holds paid replies.
        asking = Asking(cache=out / "cache", progress=draw)
        outcome = run_experiment(experiment, out=out, overwrite=overwrite, asking=asking)
    write_tutorial(out / "tutorial")
    _result_of(outcome).end("demo", as_json=as_json)


def plan(
    experiment: Annotated[Path, typer.Argument(help="Experiment file (TOML).")],
    *,
    questions: Annotated[
        int | None,
        typer.Option(
            "--questions",
            "--more",
            min=1,
            metavar="N",
            help="Propose N questions (default: 200, or all whose lists differ); with --results, N more.",
        ),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Results of a pilot: add questions that it has not asked."),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(metavar="MONEY", help="Budget: plan a pilot for half of it."),
    ] = None,
    query_log: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Queries of your users, or a .txt file with one per line; warns if the questions differ.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Sample to write (default: that of the experiment, or pilot.csv next to the file)."
        ),
    ] = None,
    cache: Cache = None,
    as_json: AsJson = False,
) -> None:
    """Plan a pilot before you pay: choose its questions and estimate its cost and precision. Asks no model.

    Examples:
        judgekit plan experiment.toml --questions 100
        judgekit plan experiment.toml --budget 200
        judgekit plan experiment.toml --results pilot --more 50
    """
    from judgekit.analysis.claims import plain
    from judgekit.client.asking import Asking
    from judgekit.experiment.plan import plan as planned

    asking = Asking(cache=cache)
    made = planned(experiment, questions=questions, results=results, budget=budget, query_log=query_log, asking=asking)
    # Replace the sample that the experiment names: with another file, the run would stay on the old questions.
    out = out or made.own or experiment.parent / "pilot.csv"
    check_outputs(out)
    made = made.write(out)
    record = {
        "runs": made.runs,
        "depth": made.depth,
        "questions": made.questions,
        "differ": made.differ,
        "asked": made.asked,
        "drawn": made.drawn,
        "costs": records(made.costs),
        "power": records(made.power),
        "currency": made.currency,
        "claims": list(plain(made.claims)),
    }
    CommandResult(lambda: say(str(made)), record, [out], made.notes, shows_warnings=True).end("plan", as_json=as_json)


def run(
    experiment: Annotated[Path, typer.Argument(help="Experiment file (TOML).")],
    out: Out = None,
    overwrite: Overwrite = False,
    *,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Fetch the replies on this Ray cluster first: auto, local (start one on this machine for this run) or"
            " HOST:PORT; see docs/scale.md.",
        ),
    ] = None,
    limit: Limit = None,
    flow: JobOptions,
) -> None:
    """Run an experiment file from top to bottom: label, answer, score, compare, report.

    Examples:
        judgekit run experiment.toml --dry-run
        judgekit run experiment.toml --limit 5 --out trial
        judgekit run experiment.toml --out results --max-cost 5
    """
    from judgekit.experiment.file import load
    from judgekit.experiment.run import check_parts, run as run_experiment
    from judgekit.job import part_of

    # Read the file once: a part, a cluster and the run must not see three states of a file that is being edited.
    config = load(experiment)
    if limit is not None:
        config = config.updated(data={"limit": limit})
    # These options do different things, and doing only one would look like both.
    if ray and (flow.part or flow.batch or flow.dry_run):
        raise UsageError("--ray fills the store: use it without --part, --batch and --dry-run")
    if flow.part is not None:
        check_parts(config, part_of(flow.part)[1])
    out = out or Path("judgekit-out") / experiment.stem
    if ray is not None:
        from judgekit.experiment.cluster import warm_on_ray

        with progress() as draw:
            asking = flow.asking(draw).priced(config.price_list())
            spent = warm_on_ray(config, out.absolute() / "parts", ray, asking)
        # Count the cluster's spending against the same budget, so that a re-run cannot pay twice.
        left = asking.budget.less(spent)
        flow = replace(flow, max_requests=left.max_requests, max_cost=left.max_cost)
    outcome = flow.carry_out("run", run_experiment, config, out=out, overwrite=overwrite)
    _result_of(outcome).end("run", as_json=flow.as_json)


def choose(
    experiment: Annotated[Path | None, typer.Argument(help="Experiment file (TOML).")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the choice (default: choice).")] = None,
    *,
    margin: Annotated[
        float | None,
        typer.Option(
            metavar="POINTS",
            help="Largest acceptable loss against the best run (default: margin_points of the file).",
        ),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Simulate it on results of `judgekit run`, in 200 random orders, without asking."
        ),
    ] = None,
    flow: JobOptions,
) -> None:
    """Choose the run to ship: ask answers in blocks, drop runs shown to be worse, stop when the choice is sure enough.

    --max-cost counts what the choice needs, replies in the store included; they are never paid again.

    Examples:
        judgekit choose experiment.toml --margin 2 --max-cost 40 --out choice
        judgekit choose experiment.toml --dry-run
        judgekit choose --replay results
    """
    from judgekit.analysis.claims import recorded
    from judgekit.experiment.choose import choose as choose_run

    if replay is not None and experiment is None:
        _replay(replay, margin, as_json=flow.as_json)
        return
    if experiment is None or replay is not None:
        raise UsageError("give an experiment file, or --replay with a results folder")
    out = out or Path("choice")
    chosen = flow.carry_out("choose", choose_run, experiment, margin=margin, out=out)
    file = out / "choice.json"
    CommandResult(
        show=lambda: say(str(chosen), "", f"choice: {file}"),
        record={"run": chosen.run, "decision": recorded(chosen.claims)},
        files=[file],
        missing=[f"{chosen.missing:,} answers"] if chosen.missing else [],
    ).end("choose", as_json=flow.as_json)


def _replay(folder: Path, margin: float | None, *, as_json: bool) -> None:
    """Replay a choice on finished results, and print what it would have done."""
    from judgekit.analysis.claims import recorded
    from judgekit.experiment.choice import replayed
    from judgekit.experiment.choose import replay_results

    decision = recorded(replayed(*replay_results(folder, margin)))
    CommandResult(lambda: say(decision["text"]), {"decision": decision}).end("choose", as_json=as_json)


def report(
    folders: Annotated[
        list[Path], typer.Argument(help="Results folders of `judgekit run`; several are shown side by side.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="Page to write for several folders (default: comparison.html).")
    ] = None,
    no_texts: Annotated[
        bool, typer.Option("--no-texts", help="Leave questions, passages, answers and replies out of the report.")
    ] = False,
    figures: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder for all figures, as SVG and CSV."),
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Rebuild the report from a results folder, or compare several folders on one page.

    Examples:
        judgekit report results --figures figures
        judgekit report before after --out both.html
    """
    from judgekit import report as reports
    from judgekit.analysis.claims import recorded
    from judgekit.experiment.finished import draw
    from judgekit.report.charts import figures as drawn

    if figures is not None and figures.resolve() in [folder.resolve() for folder in folders]:
        raise UsageError(f"figures need a folder of their own, e.g. --figures {folders[0] / 'figures'}")
    if len(folders) > 1:
        page = out or Path("comparison.html")
        beside = _side_by_side(folders, page, texts=not no_texts)
        made, record = beside.figures, {"decisions": beside.decisions, "changes": beside.changes}
    elif out is not None:
        raise UsageError("--out needs several folders: the report of one folder is its report.html")
    else:
        page = folders[0] / "report.html"
        results = draw(folders[0], texts=not no_texts)
        made, record = drawn(results), {"decision": recorded(results.claims)}
    saved = [] if figures is None else made.save(figures)

    def shown() -> None:
        if len(folders) > 1:
            say(*beside.lines())
        else:
            reports.print_tables(results, console())
        if figures is not None:
            say(f"\nfigures: {len(saved)} files in {figures}")
        say(f"\nreport: {page}")

    CommandResult(shown, record, [page, *saved]).end("report", as_json=as_json)


@dataclass(frozen=True)
class _Beside:
    """The contents of a page about several folders.

    Attributes:
        decisions: the JSON record of each decision, by name.
        changes: sentences about the changes from the first folder to each other one, by name.
        figures: the figures of all folders.
    """

    decisions: Mapping[str, Mapping[str, Any]]
    changes: Mapping[str, Sequence[str]]
    figures: Figures

    def lines(self) -> Iterator[str]:
        """Yield the lines to print."""
        for name, decision in self.decisions.items():
            told = [text for title, text in decision["lines"].items() if title in ("Choose", "Keep")]
            yield f"{name}: {' '.join(told)}"
        first = next(iter(self.decisions))
        for name, sentences in self.changes.items():
            yield f"\nFrom {first} to {name}:"
            yield from (f"  {sentence}" for sentence in sentences)


def _side_by_side(folders: list[Path], out: Path, *, texts: bool) -> _Beside:
    from judgekit.analysis.claims import recorded
    from judgekit.experiment.finished import backing_of
    from judgekit.report import load
    from judgekit.report.beside import write_beside
    from judgekit.report.charts import paper_figures

    if out.suffix not in (".html", ".htm"):
        raise UsageError(f"{out}: the name of a page must end in .html")
    results = {str(folder): load(folder) for folder in folders}
    if len(results) < len(folders):
        raise UsageError("a folder is given twice")
    titles = Counter(one.title for one in results.values())
    found = {}
    for folder, one in results.items():
        # Folders whose experiments share a title go by their own names.
        name = folder if titles[one.title] > 1 else one.title
        found[name] = one, backing_of(Path(folder), texts)
    changes = {name: change.sentences for name, change in write_beside(found, out).items()}
    decisions = {name: recorded(one.claims) for name, (one, _) in found.items()}
    return _Beside(decisions, changes, paper_figures({name: one for name, (one, _) in found.items()}))


def _result_of(outcome: RunResult) -> CommandResult:
    """Return the result of `run` and `demo`."""
    from judgekit import report as reports

    page = outcome.folder / "report.html"
    # Print the next step ready to copy: names of labelings hold brackets, which a shell needs quoted.
    kept = outcome.comparison.decision.kept

    def shown() -> None:
        reports.print_tables(outcome.results, console())
        say(f"\nresults: {outcome.folder}\nreport:  {page}")
        if kept:
            say(f"build:   judgekit build {shlex.quote(str(outcome.folder))} --labeling {shlex.quote(kept)}")

    decision = outcome.comparison.decision.record()
    return CommandResult(
        shown,
        record={"folder": outcome.folder, "report": page, "decision": decision},
        files=[page],
        warnings=outcome.results.warnings,
        shows_warnings=True,
        missing=outcome.missing,
        last=[*_about_missing(outcome)],
        exit_code=1 if outcome.incomplete else 0,
    )


def _about_missing(outcome: RunResult) -> Iterator[str]:
    """Yield lines about missing results, and what to do about them."""
    if not outcome.missing:
        return
    if outcome.incomplete:
        yield "\nFinished, but some results are missing:"
    else:
        yield "\nFinished. accept_missing allows for what is missing:"
    yield from (f"  {line}" for line in outcome.missing)
    if outcome.incomplete:
        # Running again brings only labels that a model is asked for.
        asked, read = set(outcome.quality["status"]), set[str]()
        for info in outcome.results.labelings:
            statuses = asked if info.endpoint else read
            statuses.update(status for status, n in info.counts.items() if n)
        yield advice(asked, read)
