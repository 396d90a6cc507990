"""How `init` and `traces` end: the experiment that was made of files is shown and written."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from judgekit.console.printing import note, say
from judgekit.data.streams import check_outputs
from judgekit.errors import DataError, UsageError

if TYPE_CHECKING:
    from judgekit.setup.init import Draft


def write_draft(made: Draft, *, overwrite: bool, first: str = "") -> None:
    """Write what was made of files, and show it below a first line."""
    from judgekit.experiment.trust import own

    width = max((len(file.name) for file in made.files), default=0)
    if not made.problems and not overwrite:
        for path in made.files_written:
            if path.exists():
                raise UsageError(
                    f"{path} already exists: replace it with --overwrite, or name another folder with --out"
                )
    # Written before anything is shown: whoever reads the output may close it after the first line.
    if not made.problems:
        check_outputs(*made.files_written)
        made.write()
        own(made.files_written[0])
    if first:
        say(first)
    for file in made.files:
        say(f"{file.name:<{width}}  {file.taken}", *(f"{'':<{width}}    {line}" for line in file.columns))
    note(*made.cautions)
    if made.problems:
        listed = "".join(f"\n  {number}. {problem}" for number, problem in enumerate(made.problems, 1))
        raise DataError(f"{len(made.problems)} problems:{listed}" if made.problems[1:] else made.problems[0])
    # The same two lines after `init` and after `traces`: both end at a file that can be planned.
    experiment = made.files_written[0]
    needs = "Fill in base_url and model of your server" if made.asks else "It needs no server"
    say("", f"Wrote {experiment}.", f"{needs}. Then plan, which asks no model:")
    say("", f"  judgekit plan {shlex.quote(str(experiment))}")
