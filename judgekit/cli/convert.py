"""``convert``: any form of data as any other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judgekit.cli.common import console
from judgekit.errors import UsageError

__all__ = ["convert"]


def convert(
    source: Annotated[str, typer.Argument(metavar="[FORM:]IN", help="File to read; - is standard input.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="File to write; its ending says the form.")],
    kind: Annotated[
        str | None, typer.Option(help="queries, docs, run, qrels, answers or scores, where the file may hold several.")
    ] = None,
    format_in: Annotated[
        str, typer.Option("--format-in", metavar="FORM", help="Form of IN, e.g. 'jsonl(id=qid,text=question)'.")
    ] = "auto",
    format_out: Annotated[
        str | None, typer.Option("--format-out", metavar="FORM", help="Form of OUT, e.g. trec, beir, msmarco or dpr.")
    ] = None,
    min_grade: Annotated[
        float | None, typer.Option(help="Write 1 for labels of at least this much, and 0 for the others.")
    ] = None,
    scale: Annotated[str | None, typer.Option(help="Scale of labels with decimals, e.g. unit or means:5:2.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT if it is there.")] = False,
) -> None:
    """Write data in another form: see docs/formats.md for the forms."""
    from judgekit.data.converting import convert as convert_data
    from judgekit.data.outputs import check_outputs, note_read, noting_reads
    from judgekit.spec import split_form

    with noting_reads():
        note_read(Path(split_form(source)[1]))
        check_outputs(out)
        device = Path("/dev") in out.parents  # /dev/stdout, whatever it is
        if out.is_file() and not (device or force):
            raise UsageError(f"{out}: is there already; choose another name, or replace it with --force")
        told = convert_data(
            source, out, kind, format=format_in, format_out=format_out, min_grade=min_grade, scale=scale
        )
    console(stderr=device).print(f"{told}: {out}", markup=False, highlight=False)
