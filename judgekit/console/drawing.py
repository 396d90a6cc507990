"""Progress as the user sees it, all on standard error: bars on a terminal, lines elsewhere.

The whole run stands above its stages: how much of it is done, the time that is left, the money. What comes from the
store takes no time and costs nothing, so it counts in neither the rate nor what is still expected.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from judgekit.console.printing import console, echo
from judgekit.progress import Event, Progress

if TYPE_CHECKING:
    from rich.progress import TaskID

__all__ = ["Course", "progress"]

_LINE_EVERY_S: Final = 30.0
_ENOUGH: Final = 5
"""Units that were asked for, from which on time and money are foreseen."""


@contextmanager
def progress() -> Iterator[Progress]:
    """Draw events: bars on a terminal; otherwise one line per finished stage, and now and then one for the whole."""
    if sys.stderr.isatty():
        bars = _Bars()
        with bars.bars:
            yield bars
        course = bars.course
    else:
        lines = _Lines()
        yield lines
        course = lines.course
    if course.spent is not None:
        sys.stderr.write(f"spent: {course.spent:,.4g}\n")


class Course:
    """How far a whole run is: its stages, those to come included, and what they take."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.spent: float | None = None
        self._clock = clock
        self._ahead: dict[str, int] = {}
        self._stages: dict[str, Event] = {}
        self._times: dict[str, tuple[float, float]] = {}

    def note(self, event: Event) -> None:
        """Take in an event."""
        self._ahead |= event.ahead
        if event.spent is not None:
            self.spent = event.spent
        if event.total is not None or event.sent:
            now = self._clock()
            self._stages[event.stage] = event
            self._times[event.stage] = (self._times.get(event.stage, (now, now))[0], now)

    def seconds(self, stage: str) -> float:
        """Return how long a stage has been running."""
        begun, _ = self._times.get(stage, (self._clock(),) * 2)
        return self._clock() - begun

    def _asking(self) -> dict[str, tuple[int, int, float | None]]:
        """Return (units done, units in all, share of them that is asked for, if known) of the stages that ask."""
        found: dict[str, tuple[int, int, float | None]] = {}
        for name, total in self._ahead.items():
            found[name] = (0, total, None)
        for name, one in self._stages.items():
            requests = one.sent + one.cached + one.failed
            if name in found or requests:
                share = (one.sent + one.failed) / requests if requests and one.done else None
                found[name] = (one.done, max(one.total or 0, self._ahead.get(name, 0), one.done), share)
        return found

    @property
    def units(self) -> tuple[int, int]:
        """Units done, and in all, of the stages that ask somebody."""
        asking = self._asking().values()
        return sum(done for done, _, _ in asking), sum(total for _, total, _ in asking)

    def foreseen(self) -> tuple[float, float | None] | None:
        """Return the seconds left and the money that it will have cost in all; None while too little is known."""
        asking = self._asking()
        new = sum(done * share for done, _, share in asking.values() if share is not None)
        if new < _ENOUGH:
            return None
        known = sum(done for done, _, share in asking.values() if share is not None)
        left = sum((total - done) * (new / known if share is None else share) for done, total, share in asking.values())
        times = (self._times[name] for name, (_, _, share) in asking.items() if share)
        pace = sum(last - first for first, last in times) / new
        money = None if self.spent is None else self.spent * (1 + left / new)
        return left * pace, money

    def told(self) -> str:
        """Return it in words: ``37%, about 12 min left, 3 failed, 0.42 spent of about 1.10``."""
        done, total = self.units
        if not total:
            return ""
        foreseen = self.foreseen()
        parts = [f"{done / total:.0%}"]
        if foreseen is not None and done < total:
            parts.append(f"about {_span(foreseen[0])} left")
        failed = sum(event.failed for event in self._stages.values())
        if failed:
            parts.append(f"{failed:,} failed")
        if self.spent is not None:
            parts.append(f"{self.spent:,.4g} spent")
            if foreseen is not None and foreseen[1] is not None and done < total:
                parts[-1] += f" of about {foreseen[1]:,.4g}"
        limit = next((event.limit for event in reversed(self._stages.values()) if event.limit is not None), None)
        return ", ".join(parts) + ("" if limit is None else f" (at most {limit:,.4g})")


def _span(seconds: float) -> str:
    if seconds >= 5400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def _details(event: Event) -> str:
    parts = [f"{event.sent:,} sent", f"{event.cached:,} from the store"]
    if event.failed:
        parts.append(f"{event.failed:,} failed")
    return ", ".join(parts) if event.sent or event.cached or event.failed else ""


class _Bars:
    def __init__(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bars

        self.bars: Bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[details]}"),
            console=console(stderr=True),
        )
        self.course = Course()
        self.tasks: dict[str, TaskID] = {}
        self.notes: set[str] = set()

    def __call__(self, event: Event) -> None:
        self.course.note(event)
        told = self.course.told()
        if told:
            done, total = self.course.units
            self._draw("the whole run", done, total, "", told)
        if event.total is not None or not (event.note or event.ahead):
            seconds = self.course.seconds(event.stage)
            rate = f"{event.sent / seconds:,.1f}/s" if event.sent and seconds > 0.5 else ""
            self._draw(event.stage, event.done, event.total, rate, _details(event))
        if event.note and event.note not in self.notes:
            self.notes.add(event.note)
            self.bars.console.print(f"note: {event.note}", markup=False)

    def _draw(self, name: str, done: int, total: int | None, rate: str, details: str) -> None:
        if name not in self.tasks:
            self.tasks[name] = self.bars.add_task(name, total=total, rate="", details="")
        self.bars.update(self.tasks[name], completed=done, total=total, rate=rate, details=details)


class _Lines:
    def __init__(self) -> None:
        self.course = Course()
        self.started: dict[str, float] = {}
        self.finished: set[str] = set()
        self.notes: set[str] = set()
        self.told_at = time.monotonic()

    def __call__(self, event: Event) -> None:
        self.course.note(event)
        now = time.monotonic()
        started = self.started.setdefault(event.stage, now)
        if event.note and event.note not in self.notes:
            self.notes.add(event.note)
            echo(f"note: {event.note}", err=True)
        if event.total is not None and event.done >= event.total and event.stage not in self.finished:
            self.finished.add(event.stage)
            details = _details(event)
            echo(f"{event.stage}: {event.done:,} in {now - started:.1f} s{', ' * bool(details)}{details}", err=True)
        elif now - self.told_at >= _LINE_EVERY_S and (told := self.course.told()):
            self.told_at = now
            of = "" if event.total is None else f" of {event.total:,}"
            echo(f"{told}; {event.stage}: {event.done:,}{of}", err=True)
        sys.stderr.flush()
