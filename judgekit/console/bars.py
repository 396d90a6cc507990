"""Progress on standard error: bars on a terminal, lines elsewhere.

The whole run stands above its stages: how much of it is done, the time that is left, the money. What comes from the
store takes no time and costs nothing, so it counts in neither the rate nor what is still expected.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from judgekit.console.printing import console, say
from judgekit.progress import Event, Progress

if TYPE_CHECKING:
    from rich.progress import TaskID

_LINE_EVERY_S: Final = 30.0
_ENOUGH: Final = 5
"""Units that were asked for, from which on time and money are foreseen."""


@contextmanager
def progress() -> Iterator[Progress]:
    """Draw events: bars on a terminal; otherwise one line per finished stage, and now and then one for the whole."""
    drawing = _Bars() if sys.stderr.isatty() else _Lines()
    with drawing.bars:
        yield drawing
    if drawing.course.spent is not None:
        sys.stderr.write(f"spent: {drawing.course.spent:,.4g}\n")


class Course:
    """How far a whole run is: its stages, those to come included, and what they take."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.spent: float | None = None
        self.limit: float | None = None
        self._clock = clock
        self._latest = clock()
        self._ahead: dict[str, int] = {}
        self._events: dict[str, Event] = {}
        self._began: dict[str, float] = {}

    def note(self, event: Event) -> None:
        """Take in an event."""
        self._ahead |= event.ahead
        if event.spent is not None:
            self.spent = event.spent
        if event.limit is not None:
            self.limit = event.limit
        self._latest = self._clock()
        self._began.setdefault(event.stage, self._latest)
        if event.total is not None or event.sent:
            self._events[event.stage] = event

    def seconds(self, stage: str) -> float:
        """Return how long a stage has been running."""
        return self._latest - self._began[stage]

    @property
    def stages(self) -> list[Event]:
        """The stages that ask somebody, those to come included."""
        stages = {name: Event(name, 0, total) for name, total in self._ahead.items()}
        for name, event in self._events.items():
            if event.requests or name in stages:
                total = max(event.total or 0, self._ahead.get(name, 0), event.done)
                stages[name] = replace(event, total=total)
        return list(stages.values())

    @property
    def units(self) -> tuple[int, int]:
        """Units done, and in all, of the stages that ask somebody."""
        done = total = 0
        for stage in self.stages:
            done += stage.done
            total += stage.total or 0
        return done, total

    def foreseen(self) -> tuple[float, float | None] | None:
        """Return the seconds left and the money that it will have cost in all; None while too little is known."""
        asked = known = 0.0
        began = []
        for stage in self.stages:
            if stage.share is not None:
                known += stage.done
                asked += stage.done * stage.share
            # Counting from a stage that came from the store would make what is asked look slow.
            if stage.share:
                began.append(self._began[stage.stage])
        if asked < _ENOUGH:
            return None
        left = 0.0
        for stage in self.stages:
            # A stage to come is expected to find as much in the store as those before.
            share = asked / known if stage.share is None else stage.share
            left += ((stage.total or 0) - stage.done) * share
        seconds = left * (self._latest - min(began)) / asked
        if self.spent is None:
            return seconds, None
        return seconds, self.spent * (1 + left / asked)

    def told(self) -> str:
        """Return it in words: ``37%, about 12 min left, 3 failed, 0.42 spent of about 1.10``."""
        done, total = self.units
        if not total:
            return ""
        parts = [f"{done / total:.0%}"]
        spent = "" if self.spent is None else f"{self.spent:,.4g} spent"
        foreseen = self.foreseen()
        if foreseen is not None and done < total:
            seconds, money = foreseen
            parts.append(f"about {_lasting(seconds)} left")
            if money is not None:
                spent += f" of about {money:,.4g}"
        failed = sum(event.failed for event in self._events.values())
        if failed:
            parts.append(f"{failed:,} failed")
        if spent:
            parts.append(spent)
        line = ", ".join(parts)
        if self.limit is not None:
            line += f" (at most {self.limit:,.4g})"
        return line


def _lasting(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _details(event: Event) -> str:
    if not event.requests:
        return ""
    details = f"{event.sent:,} sent, {event.cached:,} from the store"
    if event.failed:
        details += f", {event.failed:,} failed"
    return details


class _Drawing:
    """How far the run is, and which notes were shown."""

    bars: AbstractContextManager[object] = nullcontext()

    def __init__(self) -> None:
        self.course = Course()
        self.notes: set[str] = set()

    def __call__(self, event: Event) -> None:
        self.course.note(event)
        # The same note may come with every reply.
        if event.note and event.note not in self.notes:
            self.notes.add(event.note)
            self.say(f"note: {event.note}")
        self.draw(event)

    def say(self, line: str) -> None:
        """Show a line."""
        say(line, err=True)

    def draw(self, event: Event) -> None:
        """Show how far the run is."""
        raise NotImplementedError


class _Bars(_Drawing):
    def __init__(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress as Bars, TextColumn, TimeElapsedColumn

        super().__init__()
        self.bars: Bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[details]}"),
            console=console(stderr=True),
        )
        self.tasks: dict[str, TaskID] = {}

    def say(self, line: str) -> None:
        self.bars.console.print(line, markup=False)

    def draw(self, event: Event) -> None:
        told = self.course.told()
        if told:
            done, total = self.course.units
            self._update("the whole run", done, total, told)
        if event.total is not None or not (event.note or event.ahead):
            details = _details(event)
            seconds = self.course.seconds(event.stage)
            if event.sent and seconds > 0.5:
                details = f"{event.sent / seconds:,.1f}/s, {details}"
            self._update(event.stage, event.done, event.total, details)

    def _update(self, name: str, done: int, total: int | None, details: str) -> None:
        if name not in self.tasks:
            self.tasks[name] = self.bars.add_task(name, total=total, details="")
        self.bars.update(self.tasks[name], completed=done, total=total, details=details)


class _Lines(_Drawing):
    def __init__(self) -> None:
        super().__init__()
        self.finished: set[str] = set()
        self.told_at = time.monotonic()

    def draw(self, event: Event) -> None:
        now = time.monotonic()
        if event.total is not None and event.done >= event.total and event.stage not in self.finished:
            self.finished.add(event.stage)
            line = f"{event.stage}: {event.done:,} in {self.course.seconds(event.stage):.1f} s"
            self.say(", ".join(filter(None, [line, _details(event)])))
        # A log holds a line now and then, since events come with every reply.
        elif now - self.told_at >= _LINE_EVERY_S and self.course.told():
            self.told_at = now
            line = f"{self.course.told()}; {event.stage}: {event.done:,}"
            if event.total is not None:
                line += f" of {event.total:,}"
            self.say(line)
        sys.stderr.flush()
