"""The command line: parse, call, print; the only place that draws progress."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence

from judgekit.garbage import OBJECTS

__all__ = ["main"]


def collect_seldom() -> None:
    """Look for garbage seldom in this process, which is judgekit's own.

    A request leaves objects, but no cycles; this saves about 8 % of its CPU time. A notebook keeps its own settings.
    """
    gc.freeze()
    gc.set_threshold(OBJECTS, *gc.get_threshold()[1:])


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code.

    0: all done; 1: finished with missing labels or answers (listed); 2: wrong usage or bad input; 3: stopped by
    the endpoint, the budget or the store; 130: interrupted; `guard` has 0: pass, 1: fail, 5: inconclusive. Every error
    raised on purpose becomes a sentence.
    """
    # Given arguments come from a test or another program, whose settings of the collector are its own.
    if argv is None:
        collect_seldom()
    try:
        from judgekit.cli.app import app_for
        from judgekit.data.outputs import clean
        from judgekit.data.streams import recording_inputs
        from judgekit.errors import JudgekitError
    except KeyboardInterrupt:
        sys.stderr.write("judgekit: interrupted before it began\n")
        sys.exit(130)

    args = list(sys.argv[1:] if argv is None else argv)
    try:
        with recording_inputs():
            app_for(args)(args=args, prog_name="judgekit")
    except JudgekitError as error:
        sys.stderr.write(f"judgekit: {clean(str(error))}\n")
        sys.exit(error.exit_code)
    except SystemExit as left:
        # Click turns Ctrl-C into this code; whoever interrupted a long run wants to know that nothing is lost.
        if left.code == 130:
            sys.stderr.write("judgekit: interrupted; replies are saved: rerun to resume\n")
        raise
    except BrokenPipeError:
        # The reader of our output (head, less) went away: nothing is wrong, and nobody is left to be told.
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        # A name that the system refuses (too long, a link to itself), wherever it is first looked at.
        if error.filename is None:
            raise
        sys.stderr.write(f"judgekit: {clean(str(error.filename))}: cannot be used: {clean(str(error.strerror))}\n")
        sys.exit(2)
