"""What packages add to judgekit: labelers and answer metrics, steps of a run, commands, tables, forms, Python names.

    import judgekit as jk

    @jk.register.step(after="answer")
    class Shout(jk.Step):
        name = "shout"

A plug-in is a module that does so when it is imported: one of those in `judgekit.plugins`, or one that an installed
package names at the entry point of that name. The core asks for what there is when it needs it, and imports no plug-in.
``judgekit --help`` imports all of them: what is slow to import belongs into the functions that need it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import Any, Final, TypeVar

from judgekit.errors import UsageError, not_among

T = TypeVar("T")


class Register:
    """What there is to be found by name; registering a name again replaces what had it, as running a cell again does.

    Attributes:
        commands: functions with typer's annotations, or groups of them, by the command's name.
        tables: dataclasses whose fields are the keys of further tables of the experiment file, by its name.
        forms: functions from a path to records, by the name of the form.
        homes: the module of what ``judgekit.NAME`` gives, by its name.
        kinds: the module that defines a labeler or an answer metric, by its kind.
    """

    def __init__(self, home: str = "") -> None:
        self.commands: dict[str, Any] = {}
        self.tables: dict[str, type[Any]] = {}
        self.forms: dict[str, Callable[..., Any]] = {}
        self.homes: dict[str, str] = {}
        self.kinds: dict[str, str] = {}
        # A step, and the name of the one that it stands before or after; neither for the core's, in their order.
        self._steps: dict[str, tuple[Any, str | None, str | None]] = {}
        self._home = home

    def step(self, *, before: str | None = None, after: str | None = None) -> Callable[[type[T]], type[T]]:
        """Register a subclass of `judgekit.Step`, which `judgekit run` walks before or after the step of that name."""

        def add(kind: type[T]) -> type[T]:
            made: Any = kind()
            self._steps[made.name] = made, before, after
            return kind

        return add

    def command(self, name: str) -> Callable[[T], T]:
        """Register a function, or a group of them (`typer.Typer`), as ``judgekit NAME``."""
        return _adder(self.commands, name)

    def table(self, name: str) -> Callable[[type[T]], type[T]]:
        """Register a dataclass as the table ``[NAME]`` of the experiment file; see `Config.table`."""
        return _adder(self.tables, name)

    def form(self, name: str) -> Callable[[T], T]:
        """Register a function from a path to records as the form ``NAME:PATH`` of data."""
        return _adder(self.forms, name)

    def names(self, module: str, *names: str) -> None:
        """Register functions and classes of a module as ``judgekit.NAME``; it is imported when one is first used."""
        self.homes |= dict.fromkeys(names, module)

    def spellings(self, module: str, *kinds: str) -> None:
        """Register labelers and answer metrics of a module by their kinds; it is imported when one is first spelled."""
        self.kinds |= dict.fromkeys(kinds, module)

    def load(self) -> Register:
        """Import the plug-ins that have not been imported, and return itself."""
        home, self._home = self._home, ""
        if home:
            for module in iter_modules(import_module(home).__path__, f"{home}."):
                import_module(module.name)
            for point in entry_points(group=home):
                point.load()
        return self

    def steps(self) -> list[Any]:
        """Return the steps of a run in order."""
        self.load()
        order = [step for step, before, after in self._steps.values() if before is None and after is None]
        for step, before, after in self._steps.values():
            beside = before or after
            if beside is not None:
                names = [one.name for one in order]
                if beside not in names:
                    raise UsageError(
                        f"the step {step.name!r} stands beside another: {not_among('step', beside, names)}"
                    )
                order.insert(names.index(beside) + (before is None), step)
        return order


def _adder(kept: dict[str, Any], name: str) -> Callable[[T], T]:
    def add(given: T) -> T:
        kept[name] = given
        return given

    return add


register: Final = Register("judgekit.plugins")
