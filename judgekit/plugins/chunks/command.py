"""``chunks``: locate documents on their pages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judgekit.console.printing import made_from, note, say
from judgekit.data.manifest import manifest_path, write_manifest
from judgekit.data.streams import check_outputs, noting_reads
from judgekit.errors import DataError, UsageError
from judgekit.registry import register

_SHOWN = 5


@register.command("chunks")
def chunks(
    pages: Annotated[Path, typer.Argument(help="Pages: page_id (or doc_id), text.")],
    docs: Annotated[list[Path], typer.Argument(help="Documents cut from the pages; one file for each cut.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Documents with their spans, to write (.jsonl).")],
) -> None:
    """Locate documents on their pages, so that evidence counts once in any chunking.

    Examples:
        judgekit chunks pages.jsonl small.jsonl large.jsonl --out docs.jsonl
    """
    from judgekit.data.files import check_target
    from judgekit.data.readers import read_docs, write_docs
    from judgekit.plugins.chunks.placing import chunks as place

    check_target(out)
    if out.suffix in (".csv", ".tsv", ".parquet", ".json"):
        raise UsageError(f"--out {out}: documents are written as JSON lines (.jsonl)")
    with noting_reads() as read:
        try:
            whole = read_docs(pages)
        except DataError as problem:
            if "lacks the field" not in problem.reason:
                raise
            whole = read_docs(f"auto(id=page_id):{pages}")
        cut = read_docs([str(path) for path in docs])
    check_outputs(out, manifest_path(out))
    placed = place(whole, cut)
    write_docs(placed.docs, out)
    write_manifest(manifest_path(out), made_from({"pages": pages}, read), [out])
    told = f"{placed.exact + placed.alike:,} of {len(placed.docs):,} documents have a span"
    alike = f", {placed.alike:,} of them by similar text" if placed.alike else ""
    say(f"{told}{alike}", f"docs: {out}")
    lacking = [f"{doc_id} has no span: {why}" for doc_id, why in placed.unplaced.items()]
    more = [f"{len(lacking) - _SHOWN:,} more documents have no span"] if len(lacking) > _SHOWN else []
    note(*lacking[:_SHOWN], *more)
