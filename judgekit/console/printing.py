"""The output of all commands: lines and notes, tables, one JSON object for machines, and missing items at the end."""

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
    """Return a rich console that neither truncates nor colours output outside a terminal."""
    from rich.console import Console
    from rich.segment import Segment

    class CleanConsole(Console):
        """Makes control codes in texts visible; rich adds its own codes later."""

        def render(self, *args: Any, **kwargs: Any) -> Iterator[Segment]:
            for segment in super().render(*args, **kwargs):
                yield segment if segment.control else Segment(clean(segment.text), segment.style)

    stream = sys.stderr if stderr else sys.stdout
    if stream.isatty():
        return CleanConsole(stderr=stderr)
    # A pipe has no width, and 80 columns would cut tables, so lines can have any length.
    return CleanConsole(stderr=stderr, width=200, soft_wrap=True)


def grid(titles: Iterable[str], rows: Iterable[Iterable[str]], *, left: int | None = None, **style: Any) -> None:
    """Print a table of unchanged texts; columns after the first ``left`` are right-aligned."""
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
    """Print unchanged lines of any width, on standard output or error."""
    typer.echo(clean("\n".join(lines)), err=err)


def note(*lines: str) -> None:
    """Print notes for readers of the output on standard error."""
    for line in lines:
        say(f"note: {line}", err=True)


def check_out(out: Path, *more: Path, table: bool = False) -> None:
    """Refuse an unwritable file, and note which files of others would be replaced, before asking anything."""
    from judgekit.data.files import check_target
    from judgekit.data.manifest import replaced

    check_target(out, table=table)
    note(*replaced([out, *more]))


def show(table: pd.DataFrame) -> None:
    """Print a table, aligned; `--json` and files have all digits."""
    say(table.to_string(index=False, float_format=lambda x: f"{x:.4f}", na_rep="-"))


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table, for `emit`, with None for missing values."""
    rows: list[dict[str, Any]] = json.loads(table.to_json(orient="records", double_precision=15, force_ascii=False))
    return rows


def save_table(table: pd.DataFrame, files: ResultFiles) -> None:
    """Write a table and, beside it, the record of its inputs."""
    from judgekit.data.files import write_table

    write_table(table, files.file(files.owner))
    files.close()


def emit(command: str, **fields: Any) -> None:
    """Print a command's JSON object; docs/cli.md describes it."""
    # Paths and numpy numbers are written as text; `records` has turned NaN into None.
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
    """Return the file that a command writes, if any, with its inputs; report inputs that do not belong together."""
    files = ResultFiles(roles=roles, read=tuple(read))
    if out is not None:
        files = ResultFiles.beside(out, roles=roles, read=read)
    note(*mismatches(files.inputs))
    return files
