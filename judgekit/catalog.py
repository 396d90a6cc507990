"""Classes whose fields are the options of their spelling: judgekit's own and those that users add, found by name.

Each is a frozen dataclass. ``judge(prompt=graded)`` is ``Judge(prompt="graded")``: its name is the class's ``kind``,
and options at their defaults are left out. The docstring describes the class, see `about`. A `Catalog` finds those of
one base: judgekit's own, those that plug-ins register, and those in a user's file.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeGuard, TypeVar

from judgekit.context import Context
from judgekit.data.labelings import Scale
from judgekit.errors import UsageError, not_among
from judgekit.registry import register
from judgekit.settings import Setting, attributes, docstring, read_options, sections, settings_of
from judgekit.spec import Spec, Value, parse, run_file, split_file, user_code


@dataclass(frozen=True, slots=True)
class About:
    """The description of a class, for lists.

    Attributes:
        does: what it does, in a phrase.
        scale: its scale.
        needs: its requirements: references, which LLM, people.
        cost: its cost per pair or answer.
        options: the options of its spelling.
    """

    does: str
    scale: str = ""
    needs: str = ""
    cost: str = ""
    options: Mapping[str, str] = field(default_factory=dict)


def about(kind: type) -> About:
    """Return a class's description."""
    said: dict[str, str] = {}
    told = attributes(kind)
    for base in kind.__mro__[-2::-1]:
        said |= {title: " ".join(text.split()) for title, text in sections(base).items()}
    does = docstring(kind).partition("\n")[0].removesuffix(".")
    options = {}
    if issubclass(kind, Spelled):
        options = {name: told.get(option.field, "") for name, option in _options(kind).items()}
    return About(does, said.get("Scale", ""), said.get("Needs", ""), said.get("Costs", ""), options)


def _found_options(kind: type) -> dict[str, Setting]:
    """Return the options of a spelled class by their names."""
    for base in kind.__mro__:
        if "__dataclass_params__" in vars(base) or not issubclass(base, Spelled):
            continue
        for name, hint in inspect.get_annotations(base).items():
            if "ClassVar" not in str(hint):
                raise UsageError(f"{base.__name__}: put @dataclass(frozen=True) above it, so that {name} is an option")
    return settings_of(kind)


_options: Callable[[type], dict[str, Setting]] = cache(_found_options)


@dataclass(frozen=True)
class Spelled:
    """A frozen dataclass whose fields are the options of its spelling.

    Fields are bool, int, float, str or a Literal of texts, or None for not given. Values derived from them are not
    fields but a `functools.cached_property`, which may use `context`.
    """

    kind: ClassVar[str]

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "kind" not in vars(cls):  # otherwise it would be spelled like its base class
            cls.kind = cls.__name__.lower()
        if isinstance(vars(cls).get("scale"), str):
            cls.scale = Scale.parse(cls.scale)  # type: ignore[attr-defined]  # of labelers and metrics

    if TYPE_CHECKING:
        context: ClassVar[Context]
        """The endpoints and files to build from; set once it is built."""
    else:

        def __getattr__(self, name: str) -> Any:
            if name == "context":
                raise UsageError(f"{self.kind} asks an LLM or reads a file: give endpoints, and the folder of the file")
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")

    def options(self) -> dict[str, Value]:
        """Return the options with other values than their defaults."""
        given: dict[str, Value] = {}
        for name, option in _options(type(self)).items():
            value = getattr(self, option.field)
            if value is not None and value != option.default:
                given[name] = value
        return given

    @property
    def spec(self) -> Spec:
        """The canonical spelling."""
        return Spec(self.kind, tuple(self.options().items()))

    def bound(self, context: Context | None) -> Self:
        """Return it ready for use, with options checked, files read, endpoints and prompts looked up.

        Raises:
            ConfigError, DataError, UsageError: something is wrong with an option or with what it names.
        """
        given = Spec(self.kind, tuple(Spelled.options(self).items()))
        known = _options(type(self))
        values = {one.field: one.read(getattr(self, one.field), f"{given}: {name}") for name, one in known.items()}
        # A copy, since a notebook's object may be bound to another folder next.
        made = replace(self, **values)
        if context is not None or "context" in vars(self):
            object.__setattr__(made, "context", self.context if context is None else context)
        made.prepare()
        return made

    def prepare(self) -> None:
        """Check the options together and look up what they name; there is a `context` now. Does nothing by default."""


P = TypeVar("P", bound=Spelled)


class Catalog(Generic[P]):
    """The classes of one base, by their kinds.

    Args:
        base: their base class.
        what: their name in messages.
        home: the module or package of judgekit's own.
    """

    def __init__(self, base: type[P], what: str, home: str) -> None:
        self._base, self._what, self._home = base, what, home

    def kinds(self) -> dict[str, type[P]]:
        """Return every known class by its kind."""
        found = self._built_in()
        for module in register.load().spelled:
            for kind in self._of(importlib.import_module(module)).values():
                if kind.kind in found:
                    raise UsageError(f"the {self._what} {kind.kind!r} of {module} has a name that is taken: rename it")
                found[kind.kind] = kind
        return found

    def catalog(self) -> dict[str, About]:
        """Return the description of each known class, by its kind."""
        return {name: about(kind) for name, kind in sorted(self.kinds().items())}

    def in_file(self, spelling: str) -> About:
        """Return the description of the class of a ``FILE.py:CLASS``."""
        file, name = split_file(spelling)
        if file is None:
            raise UsageError(f"{spelling}: name a file and its class, mine.py:Mine")
        return about(self._in_file(file, name, None))

    def build(self, given: P | Spec | str, context: Context | None) -> P:
        """Return the object of a spelling, or one built by hand, ready for use."""
        if isinstance(given, self._base):
            return given.bound(context)
        file = None
        if isinstance(given, str):
            file, text = split_file(given)
            given = parse(text)
        if not isinstance(given, Spec):
            raise UsageError(f"give a {self._what} as a spelling or an instance, such as Mine(), not as {given!r}")
        spec = given
        if spec.cutoff is not None:
            raise UsageError(f"{spec}: this {self._what} has no cutoff")
        kind = self._named(spec.name) if file is None else self._in_file(file, spec.name, context)
        _options(kind)  # refuse a class that is not a dataclass
        values = read_options(kind, spec)
        with user_code(lambda: str(spec), inspect.getsourcefile(kind) or ""):
            made = kind(**values)
        return made.bound(context)

    def _named(self, name: str) -> type[P]:
        known = self._built_in()
        if name not in known:
            known = self.kinds()  # imports all plug-ins, which takes longer
        if name not in known:
            raise UsageError(not_among(self._what, name, sorted(known)))
        return known[name]

    def _in_file(self, file: str, name: str, context: Context | None) -> type[P]:
        module = run_file(Path(file) if context is None else context.path(file))
        mine = self._of(module)
        if name not in mine:
            raise UsageError(f"{file}: {not_among(self._what, name, mine)}")
        # Tables name labelings by spelling, so two classes of one kind could not be distinguished.
        if mine[name].kind in self._built_in():
            raise UsageError(f"{file}: the {self._what} {name} has the kind of a built-in one, {mine[name].kind!r}")
        return mine[name]

    def _built_in(self) -> dict[str, type[P]]:
        home = importlib.import_module(self._home)
        found = self._of(home)
        for module in pkgutil.iter_modules(getattr(home, "__path__", ()), f"{self._home}."):
            found |= self._of(importlib.import_module(module.name))
        return {kind.kind: kind for kind in found.values()}

    def _of(self, module: types.ModuleType) -> dict[str, type[P]]:
        """Return the classes defined in a module, by name, without those with an underscore, which are bases."""
        found = {}
        for name, kind in vars(module).items():
            if not name.startswith("_") and self._fits(kind) and kind.__module__ == module.__name__:
                found[name] = kind
        return found

    def _fits(self, kind: Any) -> TypeGuard[type[P]]:
        return isinstance(kind, type) and issubclass(kind, self._base) and kind is not self._base
