"""Progress on standard error: bars on a terminal, lines elsewhere, and the money at the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Final

from judgekit.console.printing import console, say
from judgekit.progress import Event, Progress

if TYPE_CHECKING:
    from rich.progress import TaskID

_LINE_EVERY_S: Final = 30.0
_NUMBERS: Final = 34
"""Columns that a stage's numbers take, up to millions, with both times."""
_ROOM_FOR_BARS: Final = 80
"""Columns that a terminal needs to show a bar and the requests' outcomes beside the numbers."""


@contextmanager
def progress() -> Iterator[Progress]:
    """Draw events: bars on a terminal; otherwise one line per finished stage, with further ones during a long stage."""
    drawing = _Bars() if sys.stderr.isatty() else _Lines()
    with drawing.bars:
        yield drawing
    if drawing.spent is not None:
        sys.stderr.write(f"spent: {drawing.money}{drawing.basis}\n")


class _Drawing:
    """The state of the display: notes, the money, and when each stage began."""

    bars: AbstractContextManager[object] = nullcontext()

    def __init__(self) -> None:
        self.notes: set[str] = set()
        self.spent: float | None = None
        self.uncounted = 0
        self.began: dict[str, float] = {}

    def __call__(self, event: Event) -> None:
        self.began.setdefault(event.stage, time.monotonic())
        if event.spent is not None:
            self.spent, self.uncounted = event.spent, event.uncounted
        # The same note may come with every reply.
        if event.note and event.note not in self.notes:
            self.notes.add(event.note)
            self.say(f"note: {event.note}")
        self.draw(event)

    @property
    def money(self) -> str:
        """The money so far; a bound if servers did not count some tokens."""
        return f"{'at most about ' if self.uncounted else ''}{self.spent or 0.0:,.4g}"

    @property
    def basis(self) -> str:
        """How the money is computed if servers did not count."""
        if not self.uncounted:
            return ""
        return f" (no tokens were counted for {self.uncounted:,} requests, so their cost is an estimate)"

    def seconds(self, stage: str) -> float:
        """Return the running time of a stage."""
        return time.monotonic() - self.began[stage]

    def details(self, event: Event) -> str:
        """Return the outcomes of a stage's requests, and the money of the whole run; "" without requests."""
        if not event.requests:
            return ""
        details = f"{event.sent:,} sent, {event.cached:,} from the store"
        if event.failed:
            details += f", {event.failed:,} failed"
        if self.spent is not None:
            spent = f"{self.money} spent in all"
            if self.uncounted:
                spent = f"spent in all: {self.money} (estimated)"
            details += f", {spent}"
        return details

    def say(self, line: str) -> None:
        """Show a line."""
        say(line, err=True)

    def draw(self, event: Event) -> None:
        """Show the progress of a stage."""
        raise NotImplementedError


class _Bars(_Drawing):
    def __init__(self) -> None:
        from rich import progress as rich

        super().__init__()
        screen = console(stderr=True)
        # Estimate from recent speed, so that replies from the store do not raise false hopes.
        times = (rich.TimeElapsedColumn(), rich.TimeRemainingColumn())
        columns: list[rich.ProgressColumn] = [rich.TextColumn("{task.description}"), rich.MofNCompleteColumn(), *times]
        # On a narrow terminal, drop the bar and keep the numbers.
        self.longest = max(10, screen.width - _NUMBERS)
        if screen.width >= _ROOM_FOR_BARS:
            columns.insert(1, rich.BarColumn())
            columns.append(rich.TextColumn("{task.fields[details]}"))
        self.bars: rich.Progress = rich.Progress(*columns, console=screen)
        self.tasks: dict[str, TaskID] = {}

    def say(self, line: str) -> None:
        self.bars.console.print(line, markup=False)

    def draw(self, event: Event) -> None:
        # A mere note, for example about a server, needs no bar.
        if event.total is None and event.note:
            return
        if event.stage not in self.tasks:
            name = event.stage if len(event.stage) <= self.longest else f"{event.stage[: self.longest - 1]}…"
            self.tasks[event.stage] = self.bars.add_task(name, total=event.total, details="")
        task = self.tasks[event.stage]
        self.bars.update(task, completed=event.done, total=event.total, details=self.details(event))


class _Lines(_Drawing):
    def __init__(self) -> None:
        super().__init__()
        self.finished: set[str] = set()
        self.told_at = time.monotonic()

    def draw(self, event: Event) -> None:
        if event.total is None or event.stage in self.finished:
            return
        parts = [f"{event.stage}: {event.done:,} of {event.total:,}"]
        if event.done >= event.total:
            self.finished.add(event.stage)
            parts = [f"{event.stage}: {event.done:,} in {self.seconds(event.stage):.1f} s"]
        # Every reply is an event, so a log gets a line only now and then.
        elif time.monotonic() - self.told_at < _LINE_EVERY_S:
            return
        else:
            self.told_at = time.monotonic()
        details = self.details(event)
        if details:
            parts.append(details)
        self.say(", ".join(parts))
        sys.stderr.flush()
