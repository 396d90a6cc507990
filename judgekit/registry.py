"""Plug-ins of packages: labelers and answer metrics, steps of a run, commands, forms, Python names.

    import judgekit as jk

    @jk.register.step(after="answer")
    class Shout(jk.Step):
        name = "shout"

A plug-in is a module that does so when it is imported: one that an installed package names at the entry point
``judgekit.plugins``, or one of our own in `judgekit.extensions`. The core looks plug-ins up when it needs them, and
imports none. ``judgekit --help`` imports all of them, so slow imports belong into the functions that need them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import Any, Final, TypeVar

from judgekit.errors import UsageError, not_among

T = TypeVar("T")


@dataclass(frozen=True)
class DataForm:
    """A form of data, ``NAME:PATH``: what marks it, what it yields, and an example. judgekit's own are declared alike.

    A *flat* form turns a file into records, one query, doc or row each. A *nested* form turns one record into a
    question with what belongs to it: several tables in one file.

    Attributes:
        name: what stands in front of the path.
        read: flat: from the path (and the options in the spelling, where it takes two arguments) to records, pairs of
            a line and the fields by name. Nested: from the fields of a record to a dictionary with ``question``, and
            any of ``query_id``, ``answers`` (references), ``ctxs`` (passages with ``text``, ``id``, ``title``,
            ``score``, best first), ``gold`` (pairs of a doc id and a grade) and ``answer``. A `ValueError` says what
            is wrong with the record.
        holds: the kinds in a nested form: query, doc, run, qrels, answer; () of a flat one that may be of any kind.
        begins: how files of a flat form begin; others are not held against ``marks``.
        marks: recognises a flat form by the beginning of a file (`judgekit.data.forms.Beginning`), a nested one by the
            fields of a record; without it a form is only used where it is named.
        nested: whether it is nested.
        options: the options of its spelling that are not columns.
        lists: fields that hold lists, which a cell of a table spells as text.
        narrows: which of the kinds a file holds, where that differs from file to file; takes what ``marks`` takes.
        taken: of a nested form: what becomes of each column of a record, "" of those that are left.
        rows: where records stand in a file of JSON that wraps them in an object: names with dots between them.
        each: the records of a record that holds several runs of a question.
        together: columns that name a question and its run in a table with a row for each passage.
        apart: columns that tell several records of a question apart; the user chooses one value of each.
        mark: what stands between the texts of a list that a cell holds.
        refused: of a form that is recognised and not read: why, and what to do.
        spelled: the form with the places that the options of a spelling name, where it has such options.
        example: a small file.
    """

    name: str
    read: Callable[..., Any]
    holds: tuple[str, ...] = ()
    marks: Callable[[Any], bool] = lambda seen: False
    nested: bool = False
    begins: tuple[bytes, ...] = (b"",)
    options: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    narrows: Callable[[Any], tuple[str, ...]] | None = None
    taken: Callable[[Mapping[str, Any]], Mapping[str, str]] | None = None
    rows: tuple[str, ...] = ()
    each: Callable[[Mapping[str, Any]], Iterator[Mapping[str, Any]]] | None = None
    together: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    mark: str = ""
    refused: str = ""
    spelled: Callable[[Mapping[str, Any]], DataForm] | None = None
    example: str = ""


class Register:
    """Everything that is found by name. Registering a name again replaces its entry, so you can run a cell again.

    Attributes:
        commands: functions with typer's annotations, or groups of such functions, by the command's name.
        forms: the forms of data, by name.
        homes: the module that defines ``judgekit.NAME``, by name.
        spelled: the modules that define further labelers and answer metrics.
    """

    def __init__(self, home: str = "", group: str = "") -> None:
        self.commands: dict[str, Any] = {}
        self.forms: dict[str, DataForm] = {}
        self.homes: dict[str, str] = {}
        self.spelled: list[str] = []
        # A step and the name of its predecessor; none for the core's, which are in order.
        self._steps: dict[str, tuple[Any, str | None]] = {}
        self._home, self._group = home, group

    def step(self, *, after: str | None = None) -> Callable[[type[T]], type[T]]:
        """Register a subclass of `judgekit.Step`, which `judgekit run` walks after the step of that name."""

        def add(kind: type[T]) -> type[T]:
            made: Any = kind()
            self._steps[made.name] = made, after
            return kind

        return add

    def command(self, name: str) -> Callable[[T], T]:
        """Register a function, or a group of them (`typer.Typer`), as ``judgekit NAME``."""

        def add(given: T) -> T:
            self.commands[name] = given
            return given

        return add

    def form(
        self,
        name: str,
        *,
        holds: tuple[str, ...] = (),
        marks: Callable[[Any], bool] = DataForm.marks,
        lists: tuple[str, ...] = (),
        example: str = "",
    ) -> Callable[[T], T]:
        """Register a function as a `DataForm`: with ``holds`` a nested one, else from a path to records.

        With ``marks`` it is recognised by content, before judgekit's own forms.
        """

        def add(read: T) -> T:
            self.forms[name] = DataForm(name, read, holds, marks, bool(holds), lists=lists, example=example)  # type: ignore[arg-type]
            return read

        return add

    def names(self, module: str, *names: str) -> None:
        """Register functions and classes of a module as ``judgekit.NAME``; it is imported when one is first used."""
        self.homes |= dict.fromkeys(names, module)

    def spellings(self, module: str) -> None:
        """Register the labelers and answer metrics of a module; it is imported when one is first spelled."""
        if module not in self.spelled:
            self.spelled.append(module)

    def load(self) -> Register:
        """Import the plug-ins that have not been imported, and return itself."""
        # First, since a plug-in being imported may use the register itself.
        home, self._home = self._home, ""
        if home:
            for module in iter_modules(import_module(home).__path__, f"{home}."):
                import_module(module.name)
            for point in entry_points(group=self._group):
                point.load()
        return self

    def steps(self) -> list[Any]:
        """Return the steps of a run in order."""
        self.load()
        # Plug-ins' steps are placed once all are known, so that the order of imports does not matter.
        order = [step for step, after in self._steps.values() if after is None]
        for step, after in self._steps.values():
            if after is None:
                continue
            names = [other.name for other in order]
            if after not in names:
                raise UsageError(
                    f"the step {step.name!r} must come after a known one: {not_among('step', after, names)}"
                )
            order.insert(names.index(after) + 1, step)
        return order


register: Final = Register("judgekit.extensions", group="judgekit.plugins")
