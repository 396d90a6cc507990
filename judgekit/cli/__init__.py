"""The command line: parse, call, print; the only place that draws progress."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence

from judgekit.garbage import OBJECTS

__all__ = ["main"]


def collect_seldom() -> None:
    """Run the garbage collector less often in this process, which is judgekit's own.

    Requests leave objects but no cycles, so this saves about 8 % of their CPU time. Notebooks keep their own settings.
    """
    gc.freeze()
    gc.set_threshold(OBJECTS, *gc.get_threshold()[1:])


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code.

    0: all done; 1: finished with missing labels or answers (listed); 2: wrong usage or bad input; 3: stopped by
    the endpoint, the budget or the store; 130: interrupted; `guard` has 0: pass, 1: fail, 5: inconclusive. Every error
    raised on purpose becomes a sentence.
    """
    # Arguments are passed by a test or another program, which keeps its own collector settings.
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
        # Click turns Ctrl-C into this code. After interrupting a long run, users want to know that nothing is lost.
        if left.code == 130:
            sys.stderr.write("judgekit: interrupted; replies are saved: rerun to resume\n")
        raise
    except BrokenPipeError:
        # The reader of our output (head, less) has closed it: nothing is wrong, and nobody is left to tell.
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        # The system refused a file name (too long, a link to itself), wherever it was first used.
        if error.filename is None:
            raise
        sys.stderr.write(f"judgekit: {clean(str(error.filename))}: cannot be used: {clean(str(error.strerror))}\n")
        sys.exit(2)
