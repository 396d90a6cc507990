"""Progress on standard error: bars on a terminal, lines elsewhere.

The whole run stands above its stages: how much of it is done, the time that is left, the money. What comes from the
store takes no time and costs nothing, so it counts in neither the rate nor what is still expected.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
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
    drawn = _Bars() if sys.stderr.isatty() else _Lines()
    with drawn.bars:
        yield drawn
    if drawn.course.spent is not None:
        sys.stderr.write(f"spent: {drawn.course.spent:,.4g}\n")


@dataclass(frozen=True)
class _Asking:
    """A stage that asks: units done and in all, and the share of the done ones that was asked for, if known."""

    done: int
    total: int
    share: float | None = None

    @property
    def asked(self) -> float:
        """Units that were asked for, not replayed."""
        return 0.0 if self.share is None else self.done * self.share


class Course:
    """How far a whole run is: its stages, those to come included, and what they take."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.spent: float | None = None
        self._clock = clock
        self._ahead: dict[str, int] = {}
        self._stages: dict[str, Event] = {}
        self._began: dict[str, float] = {}
        self._latest: dict[str, float] = {}

    def note(self, event: Event) -> None:
        """Take in an event."""
        self._ahead |= event.ahead
        if event.spent is not None:
            self.spent = event.spent
        if event.total is not None or event.sent:
            self._stages[event.stage] = event
            self._latest[event.stage] = self._clock()
            self._began.setdefault(event.stage, self._latest[event.stage])

    def seconds(self, stage: str) -> float:
        """Return how long a stage has been running."""
        now = self._clock()
        return now - self._began.get(stage, now)

    def _asking(self) -> dict[str, _Asking]:
        """Return the stages that ask somebody, those to come included."""
        asking = {name: _Asking(0, total) for name, total in self._ahead.items()}
        for name, event in self._stages.items():
            asked = event.sent + event.failed
            requests = asked + event.cached
            if not requests and name not in asking:
                continue
            share = asked / requests if requests and event.done else None
            total = max(event.total or 0, self._ahead.get(name, 0), event.done)
            asking[name] = _Asking(event.done, total, share)
        return asking

    @property
    def units(self) -> tuple[int, int]:
        """Units done, and in all, of the stages that ask somebody."""
        asking = self._asking().values()
        return sum(stage.done for stage in asking), sum(stage.total for stage in asking)

    def foreseen(self) -> tuple[float, float | None] | None:
        """Return the seconds left and the money that it will have cost in all; None while too little is known."""
        asking = self._asking()
        asked = sum(stage.asked for stage in asking.values())
        if asked < _ENOUGH:
            return None
        usual = asked / sum(stage.done for stage in asking.values() if stage.share is not None)
        left, seconds = 0.0, 0.0
        for name, stage in asking.items():
            left += (stage.total - stage.done) * (usual if stage.share is None else stage.share)
            if stage.asked:
                seconds += self._latest[name] - self._began[name]
        money = None if self.spent is None else self.spent * (1 + left / asked)
        return left * seconds / asked, money

    def told(self) -> str:
        """Return it in words: ``37%, about 12 min left, 3 failed, 0.42 spent of about 1.10``."""
        done, total = self.units
        if not total:
            return ""
        seconds, money = (self.foreseen() if done < total else None) or (None, None)
        parts = [f"{done / total:.0%}"]
        if seconds is not None:
            parts.append(f"about {_lasting(seconds)} left")
        failed = sum(event.failed for event in self._stages.values())
        if failed:
            parts.append(f"{failed:,} failed")
        if self.spent is not None:
            of_all = "" if money is None else f" of about {money:,.4g}"
            parts.append(f"{self.spent:,.4g} spent{of_all}")
        limits = [event.limit for event in self._stages.values() if event.limit is not None]
        at_most = f" (at most {limits[-1]:,.4g})" if limits else ""
        return ", ".join(parts) + at_most


def _lasting(seconds: float) -> str:
    if seconds >= 5400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def _details(event: Event) -> str:
    if not (event.sent or event.cached or event.failed):
        return ""
    details = f"{event.sent:,} sent, {event.cached:,} from the store"
    return f"{details}, {event.failed:,} failed" if event.failed else details


class _Drawing:
    """How far the run is, and which notes were shown."""

    bars: AbstractContextManager[object] = nullcontext()

    def __init__(self) -> None:
        self.course = Course()
        self.notes = {""}

    def note(self, event: Event) -> str:
        """Take in an event; return its note, "" if that was shown before."""
        self.course.note(event)
        if event.note in self.notes:
            return ""
        self.notes.add(event.note)
        return event.note


class _Bars(_Drawing):
    def __init__(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress as Bars, TextColumn, TimeElapsedColumn

        super().__init__()
        self.bars: Bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[details]}"),
            console=console(stderr=True),
        )
        self.tasks: dict[str, TaskID] = {}

    def __call__(self, event: Event) -> None:
        if new := self.note(event):
            self.bars.console.print(f"note: {new}", markup=False)
        told = self.course.told()
        if told:
            done, total = self.course.units
            self._draw("the whole run", done, total, "", told)
        if event.total is not None or not (event.note or event.ahead):
            seconds = self.course.seconds(event.stage)
            rate = f"{event.sent / seconds:,.1f}/s" if event.sent and seconds > 0.5 else ""
            self._draw(event.stage, event.done, event.total, rate, _details(event))

    def _draw(self, name: str, done: int, total: int | None, rate: str, details: str) -> None:
        if name not in self.tasks:
            self.tasks[name] = self.bars.add_task(name, total=total, rate="", details="")
        self.bars.update(self.tasks[name], completed=done, total=total, rate=rate, details=details)


class _Lines(_Drawing):
    def __init__(self) -> None:
        super().__init__()
        self.started: dict[str, float] = {}
        self.finished: set[str] = set()
        self.told_at = time.monotonic()

    def __call__(self, event: Event) -> None:
        now = time.monotonic()
        started = self.started.setdefault(event.stage, now)
        if new := self.note(event):
            say(f"note: {new}", err=True)
        if event.total is not None and event.done >= event.total and event.stage not in self.finished:
            self.finished.add(event.stage)
            line = f"{event.stage}: {event.done:,} in {now - started:.1f} s"
            details = _details(event)
            say(f"{line}, {details}" if details else line, err=True)
        elif now - self.told_at >= _LINE_EVERY_S and (told := self.course.told()):
            self.told_at = now
            of = "" if event.total is None else f" of {event.total:,}"
            say(f"{told}; {event.stage}: {event.done:,}{of}", err=True)
        sys.stderr.flush()
