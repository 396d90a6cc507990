"""The end of a command: show its result to people or, as one JSON object, to machines, and set the exit code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from judgekit.console.printing import emit, note, say

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class CommandResult:
    """The result of a command.

    Attributes:
        show: prints it for people.
        record: the same for machines: the command's own fields of the JSON object.
        files: the written files.
        warnings: sentences that a reader should know; people get them as notes on standard error.
        shows_warnings: whether ``show`` prints the warnings itself.
        missing: a sentence for each kind of missing result; the command then ends with exit code 1.
        last: the last text for people, on standard error: what is missing and what to do about it.
        exit_code: 1 if something is missing, else 0, unless the command has its own codes.
    """

    show: Callable[[], None]
    record: Mapping[str, Any] = field(default_factory=dict)
    files: Sequence[Path] = ()
    warnings: Sequence[str] = ()
    shows_warnings: bool = False
    missing: Sequence[str] = ()
    last: Sequence[str] = ()
    exit_code: int | None = None

    def end(self, command: str, *, as_json: bool) -> None:
        """Print the result and, unless all is well, exit with its code."""
        code = self.exit_code
        if code is None:
            code = 1 if self.missing else 0
        if as_json:
            self.emit(command, code)
        else:
            self.show()
            if not self.shows_warnings:
                note(*self.warnings)
            if self.last:
                say(*self.last, err=True)
        if code:
            raise typer.Exit(code)

    def emit(self, command: str, code: int) -> None:
        """Print the JSON object: first the command's own fields, then the common ones."""
        common = {
            "files": [str(path) for path in self.files],
            "missing": list(self.missing),
            "warnings": list(self.warnings),
            "exit_code": code,
        }
        emit(command, **{**self.record, **common})


def missing_of(table: pd.DataFrame, what: str, where: Path, *, asked: bool = True) -> tuple[list[str], list[str]]:
    """Return what is missing, and the last text about it: how much, why, where it is listed and what to do.

    ``what`` are labels or answers; ``asked`` tells whether a model was asked for them. Both are empty if none is
    missing.
    """
    from judgekit.data.tables import NO_FAILURE, reasons

    statuses = table["status"][~table["status"].isin(NO_FAILURE)]
    if statuses.empty:
        return [], []
    many = f"{len(statuses):,} {what} are missing" if len(statuses) > 1 else f"1 {what[:-1]} is missing"
    told = f"{many}: {reasons(table)} (all are in {where})"
    to_do = advice(statuses, ()) if asked else advice((), statuses)
    return [told], [f"judgekit: {told}. {to_do}"]


def advice(asked: Iterable[str], read: Iterable[str]) -> str:
    """Return what to do about missing labels or answers, given the statuses of those asked for and those read."""
    from judgekit.data.tables import NO_FAILURE, Status
    from judgekit.wire.unread import UNREAD

    failures = set(asked).difference(NO_FAILURE)
    sentences = []
    if Status.FAILED in failures:
        sentences.append("Run the same command again to retry failed requests.")
    if set(read).difference(NO_FAILURE):
        sentences.append("Without an LLM, running again changes nothing: add the missing entries to the file.")
    if failures & UNREAD:
        sentences.append("Add --ask-again unread to ask again for the replies that could not be read.")
    if failures - {Status.FAILED}:
        sentences.append(
            "Unparsed, truncated and refused replies are kept, and the same command reuses them: try"
            " another prompt or model, or ask for everything again into another store (--cache FOLDER)."
        )
    return " ".join(sentences)
