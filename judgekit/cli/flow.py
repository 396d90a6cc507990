"""``demo``, ``run`` and ``report``: the whole flow."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from judgekit.cli.common import advice, console, emit, say, show_plan, verdicts_of
from judgekit.cli.drawing import progress
from judgekit.cli.options import Quiet, RunOptions
from judgekit.errors import UsageError

if TYPE_CHECKING:
    from judgekit.experiment.run import Finished

__all__ = ["demo", "report", "run"]

Out = Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the results.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace files with the results' names that judgekit did not write.")
]


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the results.")] = Path("judgekit-demo"),
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Run the whole flow on the bundled sample, offline: a small model's replies are replayed; no network, no key."""
    from judgekit.experiment.run import run as run_experiment
    from judgekit.sample import EXPERIMENT

    with progress(quiet) as draw:
        outcome = run_experiment(EXPERIMENT, out=out, cache=out / "cache", overwrite=overwrite, progress=draw)
    _show(outcome)


def run(
    experiment: Annotated[Path, typer.Argument(help="Experiment file (TOML).")],
    out: Out = None,
    overwrite: Overwrite = False,
    *,
    query_log: Annotated[
        Path | None, typer.Option(help="File of real queries, one a line, to compare the experiment's with.")
    ] = None,
    canary: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="PAIRS",
            help="Ask about this many stored pairs of each labeling again first, at the cost of their requests, and say"
            " how many labels differ; what is stored stays.",
        ),
    ] = None,
    executor: Annotated[
        Literal["local", "ray"] | None,
        typer.Option(help="Where to do the work: in this process, or on a Ray cluster. Overrides the file."),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Of the Ray cluster: auto, local (one on this machine, for this run), or HOST:PORT."
        ),
    ] = None,
    flow: RunOptions,
    no_texts: Annotated[
        bool,
        typer.Option(
            "--no-texts",
            help="Leave questions, passages, answers and replies out of the report; labels/ and answers/ keep them.",
        ),
    ] = False,
) -> None:
    """Run an experiment file from top to bottom: label, answer, score, compare, report."""
    from judgekit.experiment import run as experiments

    config = experiments.load(experiment)
    if flow.limit is not None:
        config = config.updated(data={"limit": flow.limit})
    if query_log is not None:
        config = config.updated(data={"query_log": str(query_log.absolute())})
    if no_texts:
        config = config.updated(report={"texts": False})
    if executor is not None:
        config = config.updated(executor={"kind": executor})
    if address is not None:
        if config.executor.kind != "ray":
            raise UsageError("--address is that of a Ray cluster: add --executor ray")
        config = config.updated(executor={"address": address})
    if canary is not None and flow.dry_run:
        raise UsageError("--canary sends requests, which --dry-run does not: use one of them")
    if flow.dry_run:
        show_plan(experiments.plan(config, cache=flow.cache), config.price_list(), "run", as_json=flow.as_json)
        return
    out = out or Path("judgekit-out") / experiment.stem
    with progress(flow.quiet) as draw:
        outcome = experiments.run(
            config,
            out=out,
            **flow.kept(),
            overwrite=overwrite,
            budget=flow.budget(),
            canary=canary,
            progress=draw,
            wait_s=flow.wait,
        )
    _show(outcome, as_json=flow.as_json)


def report(
    folders: Annotated[list[Path], typer.Argument(help="Results folders of `judgekit run`; several are compared.")],
    out: Annotated[
        Path | None, typer.Option(help="Of several folders: the page to write (default: comparison.html).")
    ] = None,
    no_texts: Annotated[
        bool, typer.Option("--no-texts", help="Leave questions, passages, answers and replies out of report.html.")
    ] = False,
    figures: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write every figure there: SVG, and its numbers as CSV.")
    ] = None,
    pdf: Annotated[bool, typer.Option("--pdf", help="With --figures, PDF too (needs the extra pdf).")] = False,
) -> None:
    """Draw report.html and the tables again from a results folder, or a page with several side by side."""
    from judgekit import report as reports
    from judgekit.experiment.finished import draw
    from judgekit.report.charts import figures as drawn

    if pdf and figures is None:
        raise UsageError("--pdf is a form of figures: say where with --figures FOLDER")
    if len(folders) > 1:
        if figures is not None:
            raise UsageError("--figures is for one folder")
        _side_by_side(folders, out or Path("comparison.html"))
        return
    (folder,) = folders
    if out is not None:
        raise UsageError("--out is for several folders: the report of one lies in it, as report.html")
    if figures is not None and figures.resolve() == folder.resolve():
        raise UsageError(f"figures get a folder of their own, such as --figures {folder / 'figures'}")
    results = draw(folder, texts=not no_texts)
    reports.print_tables(results, console())
    if figures is not None:
        made = drawn(results).save(figures, ("svg", "csv", *["pdf"] * pdf))
        say(f"\nfigures: {len(made)} files in {figures}")
    say(f"\nreport: {folder / 'report.html'}")


def _side_by_side(folders: list[Path], out: Path) -> None:
    from judgekit.report import load
    from judgekit.report.beside import write_beside

    if out.suffix not in (".html", ".htm"):
        raise UsageError(f"{out}: the name of a page ends in .html")
    twice = next((one for at, one in enumerate(folders) if one.resolve() in [x.resolve() for x in folders[:at]]), None)
    if twice is not None:
        raise UsageError(f"{twice} is given twice")
    results = [load(folder) for folder in folders]
    titles = [one.title for one in results]
    # Folders whose experiments have the same title go by their own names.
    names = [str(f) if titles.count(one.title) > 1 else one.title for f, one in zip(folders, results, strict=True)]
    found = dict(zip(names, results, strict=True))
    write_beside(found, out)
    for name, one in found.items():
        say(f"{name}: {one.verdict[0]}")
    say(f"\nreport: {out}")


def _show(outcome: Finished, *, as_json: bool = False) -> None:
    from judgekit import report as reports

    if as_json:
        results = outcome.results
        emit(
            "run",
            folder=outcome.folder,
            report=outcome.folder / "report.html",
            verdicts=verdicts_of(outcome.comparison.verdicts),
            missing=list(outcome.missing),
            warnings=list(results.warnings),
            canary=list(outcome.canary),
        )
        if outcome.missing:
            raise typer.Exit(1)
        return
    reports.print_tables(outcome.results, console())
    for line in outcome.canary:
        say(f"\n{line}")
    say(f"\nresults: {outcome.folder}\nreport:  {outcome.folder / 'report.html'}")
    if outcome.missing:
        asked, read = Counter(outcome.quality["status"]), Counter[str]()
        for info in outcome.results.labelings:
            (asked if info.endpoint else read).update(info.counts)
        listed = (f"  {line}" for line in outcome.missing)
        said = "\n".join(["\nFinished, but these are missing:", *listed, advice(asked, read)])
        console(stderr=True).print(said, markup=False)
        raise typer.Exit(1)
