"""How all commands speak: lines and notes, tables, one JSON object for machines, what is missing at the end."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
import typer.core

from judgekit.data.manifest import mismatches
from judgekit.data.outputs import as_json, clean
from judgekit.data.result_files import ResultFiles
from judgekit.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from judgekit.store.replies import Store


def console(*, stderr: bool = False) -> Console:
    """Return a rich console that neither truncates nor colours what is not shown on a terminal."""
    from rich.console import Console
    from rich.segment import Segment

    class CleanConsole(Console):
        """Shows what a terminal would obey; its own codes are added to what it renders here."""

        def render(self, *args: Any, **kwargs: Any) -> Iterator[Segment]:
            for segment in super().render(*args, **kwargs):
                yield segment if segment.control else Segment(clean(segment.text), segment.style)

    stream = sys.stderr if stderr else sys.stdout
    if stream.isatty():
        return CleanConsole(stderr=stderr)
    # A pipe has no width: 80 columns would cut tables, so lines are as long as they need to be.
    return CleanConsole(stderr=stderr, width=200, soft_wrap=True)


def grid(titles: Iterable[str], rows: Iterable[Iterable[str]], *, left: int | None = None, **style: Any) -> None:
    """Print a table of texts as they are; columns behind the first ``left`` are aligned to the right."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False, **style)
    for number, title in enumerate(titles):
        to_the_right = left is not None and number >= left
        table.add_column(clean(title), justify="right" if to_the_right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(escape(clean(cell)) for cell in row))
    console().print(table)


def say(*lines: str, err: bool = False) -> None:
    """Print lines of any width as they are, on standard output or error."""
    typer.echo(clean("\n".join(lines)), err=err)


def note(*lines: str) -> None:
    """Print notes on standard error: what a reader of the output has to know."""
    for line in lines:
        say(f"note: {line}", err=True)


def check_out(out: Path, *more: Path, table: bool = False) -> None:
    """Refuse a file that cannot be written, and name files that are somebody else's, before anything is asked."""
    from judgekit.data.files import check_target
    from judgekit.data.manifest import replaced

    check_target(out, table=table)
    note(*replaced([out, *more]))


def show(table: pd.DataFrame) -> None:
    """Print a table, aligned; `--json` and files have all digits."""
    say(table.to_string(index=False, float_format=lambda x: f"{x:.4f}", na_rep="-"))


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table, for `emit`; what is missing is None."""
    rows: list[dict[str, Any]] = json.loads(table.to_json(orient="records", double_precision=15, force_ascii=False))
    return rows


def save_table(table: pd.DataFrame, files: ResultFiles) -> None:
    """Write a table and, beside it, what it was made from."""
    from judgekit.data.files import write_table

    write_table(table, files.file(files.owner))
    files.close()


def emit(command: str, **fields: Any) -> None:
    """Print the one JSON object of a command; its shape is told in docs/cli.md."""
    # Paths and numpy numbers are written as texts; NaN was made None by `records`.
    typer.echo(as_json(json.dumps({"command": command, **fields}, ensure_ascii=False, indent=1, default=str)))


@contextmanager
def opened_store(*, readonly: bool) -> Iterator[Store]:
    """Open the user's reply store, and close it afterwards."""
    from judgekit.store.replies import Store, default_store_path, has_store

    path = default_store_path()
    if readonly and not has_store(path):
        raise UsageError(f"{path} holds no store: set JUDGEKIT_CACHE to the folder of yours")
    with closing(Store(path, readonly=readonly, note=note)) as store:
        yield store


def made_from(out: Path | None, roles: Mapping[str, Path], read: Iterable[Path]) -> ResultFiles:
    """Return the file that a command writes, if any, with what it reads; say where this does not belong together."""
    files = ResultFiles(roles=roles, read=tuple(read))
    if out is not None:
        files = ResultFiles.beside(out, roles=roles, read=read)
    note(*mismatches(files.inputs))
    return files
