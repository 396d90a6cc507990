"""``convert``: a run or qrels of any form as a TREC file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judgekit.console.printing import console, note
from judgekit.errors import UsageError

__all__ = ["convert"]


def convert(
    source: Annotated[str, typer.Argument(metavar="[FORM:]IN", help="File to read; - is standard input.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="TREC file to write.")],
    kind: Annotated[
        str | None, typer.Option(help="run or qrels (default: by the ending of OUT: .run, .trec or .qrels).")
    ] = None,
    min_grade: Annotated[
        float | None, typer.Option(help="Write 1 for labels of at least this value and 0 for others.")
    ] = None,
    scale: Annotated[str | None, typer.Option(help="Scale of decimal labels, e.g. unit or means:5:2.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing OUT.")] = False,
) -> None:
    """Convert a run or qrels of any supported form (docs/formats.md) to a TREC file.

    Examples:
        judgekit convert bm25.csv bm25.trec
        judgekit convert judge.qrels binary.qrels --scale unit --min-grade 0.5
    """
    from judgekit.data.checks import contradictions
    from judgekit.data.streams import check_outputs, note_read, noting_reads
    from judgekit.data.trec import convert as convert_data
    from judgekit.data.trec import kind_of, stem
    from judgekit.spec import split_form

    with noting_reads():
        note_read(Path(split_form(source)[1]))
        check_outputs(out)
        device = Path("/dev") in out.parents  # /dev/stdout, whatever it is
        if out.is_file() and not (device or force):
            raise UsageError(f"{out} already exists: choose another name, or replace it with --force")
        written = convert_data(source, out, kind, min_grade=min_grade, scale=scale)
        if kind_of(out, kind) == "run":
            note(*contradictions({stem(split_form(source)[1]): source}))
    console(stderr=device).print(f"{written}: {out}", markup=False, highlight=False)
