"""``judge-test``: test against people's labels whether a judge is fit to label."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from judgekit.console.jobs import AskOptions
from judgekit.console.options import DocsFile, QueriesFile, Runs, ScaleOption, named, scales_of
from judgekit.console.printing import check_out, say
from judgekit.console.results import CommandResult
from judgekit.data.result_files import ResultFiles


@dataclass(frozen=True)
class DrawOptions:
    """What to draw and label, with the names of parameters of `judgekit.judge_test`."""

    depth: Annotated[int, typer.Option(min=1, help="Number of documents to label per run and query.")] = 10
    pairs: Annotated[
        int, typer.Option(min=1, help="Approximate number of pairs to label: whole questions are drawn.")
    ] = 500
    measure: Annotated[str, typer.Option(help="Measure by which to order runs.")] = "nDCG@5"
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 1


def judge_test(
    spec: Annotated[str, typer.Argument(help="Labeler, e.g. judge or 'judge(prompt=graded)'.")],
    qrels: Annotated[str, typer.Option(metavar="[NAME=]QRELS", help="Labels by people.")],
    queries: QueriesFile,
    docs: DocsFile,
    run: Runs = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Card to write (JSON).")] = Path("judge-card.json"),
    *,
    drawn: DrawOptions,
    scale: ScaleOption = None,
    asked: AskOptions,
) -> None:
    r"""Test whether a judge is fit to label, by people's labels; write a card of what it showed.

    Draws questions, labels their pairs, and says what share of relevant and of other pairs it calls relevant, kappa and
    alpha where people judged both ways, the order of the runs, and what a thousand pairs take. A judge whose first 20
    labels are all the same is stopped (exit code 1).

    Examples:
        judgekit judge-test judge --qrels people.qrels --queries queries.jsonl --docs docs.jsonl --run bm25.trec \
            --run dense.trec --endpoint http://localhost:8000/v1 --model my-model
    """
    from judgekit.data.manifest import by_role
    from judgekit.job import Job, job
    from judgekit.jobs.judge_test import judge_test as test
    from judgekit.labelers.fitness import Fitness, write_card

    check_out(out)
    runs, people = named(run, "--run"), named([qrels], "--qrels")
    (file,) = people.values()
    files = ResultFiles.beside(out, roles=by_role(queries, docs or [], runs) | {"qrels": file})

    @job
    def card(*args: Any, **options: Any) -> Job[Fitness]:
        return test.job(*args, **options).writing(files, lambda fitness, _: write_card(fitness, out))

    settings = {**asdict(drawn), "scales": scales_of(scale, people)}
    fitness = asked.carry_out(
        "judge-test", card, spec, qrels=people, queries=queries, docs=docs, runs=runs or None, **settings
    )
    CommandResult(
        show=lambda: say(*fitness.lines, f"card: {out}"),
        record={"card": fitness.card()},
        files=[out],
        exit_code=1 if fitness.stopped else 0,
    ).end("judge-test", as_json=asked.as_json)
