"""The end of `init` and `traces`: write and show the experiment made from the files."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgekit.console.printing import note, say
from judgekit.console.results import CommandResult
from judgekit.data.streams import check_outputs
from judgekit.errors import DataError, UsageError

if TYPE_CHECKING:
    from judgekit.setup.init import Draft


def write_draft(
    made: Draft,
    *,
    overwrite: bool,
    as_json: bool,
    first: str = "",
    record: Mapping[str, Any] | None = None,
    files: Sequence[Path] = (),
) -> CommandResult:
    """Write the experiment made from files, and return the result of the command.

    Args:
        made: the draft of the experiment.
        overwrite: whether to replace an existing experiment.
        as_json: whether the output is JSON; then nothing but the error is printed if there are problems.
        first: a line to print above the rest.
        record: further fields of the JSON object.
        files: other files that the command wrote.

    Raises:
        DataError: there are problems; the error lists them, below the files.
        UsageError: the experiment exists, and ``overwrite`` is not set.
    """
    from judgekit.experiment.trust import own

    width = max((len(file.name) for file in made.files), default=0)
    if not made.problems and not overwrite:
        for path in made.files_written:
            if path.exists():
                raise UsageError(
                    f"{path} already exists: replace it with --overwrite, or name another folder with --out"
                )
    # Write before printing: the reader of the output may close it after the first line.
    if not made.problems:
        check_outputs(*made.files_written)
        made.write()
        own(made.files_written[0])
    lines = [first] if first else []
    for file in made.files:
        lines += [f"{file.name:<{width}}  {file.taken}", *(f"{'':<{width}}    {line}" for line in file.columns)]
    if made.problems:
        if not as_json:
            say(*lines)
            note(*made.cautions)
        listed = "".join(f"\n  {number}. {problem}" for number, problem in enumerate(made.problems, 1))
        raise DataError(f"{len(made.problems)} problems:{listed}" if made.problems[1:] else made.problems[0])
    # `init` and `traces` end with the same two lines, since both write a file that can be planned.
    experiment = made.files_written[0]
    needs = "Fill in base_url and model of your server" if made.asks else "It needs no server"
    lines += ["", f"Wrote {experiment}.", f"{needs}. Then plan, which asks no model:"]
    lines += ["", f"  judgekit plan {shlex.quote(str(experiment))}"]
    found = [{"name": file.name, "taken": file.taken, "columns": file.columns} for file in made.files]
    return CommandResult(
        lambda: say(*lines),
        {**(record or {}), "found": found, "needs_server": made.asks},
        [*made.files_written, *files],
        made.cautions,
    )
