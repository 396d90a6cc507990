"""What users can set, each declared once, as a field of a frozen dataclass.

The field's name, type, default and bounds, and its line under ``Attributes:`` in the class's docstring, are at once an
argument in Python, an option of a spelling or of a command, a key of the experiment file, its check, and its
documentation.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
import sys
import textwrap
import types
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from judgekit.errors import UsageError, nearest, not_among
from judgekit.spec import Spec

_SECTION: Final = re.compile(r"^(Scale|Needs|Costs|Attributes):\s+(.+?)(?=\n\n|\n\S|\Z)", re.M | re.S)
_ATTRIBUTE: Final = re.compile(r"^ {4}(\w+): (.+?)(?=^ {4}\w|\Z)", re.M | re.S)
ANY_OBJECT: Final[Mapping[str, Any]] = {"any_object": True}
"""The metadata of a field that holds what no spelling and no file can, such as a function."""

_EXPECTED: Final[Mapping[type, str]] = {
    bool: "true or false",
    int: "a whole number{}",
    float: "a number{}",
    str: "a text",
}
"""What a setting of a type has to be; the types that options may have."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the most that a number may be; None is no bound."""

    least: float | None = None
    most: float | None = None

    def hold(self, value: float) -> bool:
        """Return whether a number keeps to them."""
        # NaN is neither below nor above anything, so that no bound would refuse it.
        if math.isnan(value):
            return False
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)

    def __str__(self) -> str:
        if self.least is None:
            return ""
        if self.most is None:
            return f" of at least {self.least:g}"
        return f" from {self.least:,g} to {self.most:,g}"


def setting(
    default: Any = MISSING,
    *,
    least: float | None = None,
    most: float | None = None,
    name: str = "",
    short: str = "",
    option: bool = True,
) -> Any:
    """Return a dataclass field for a setting with bounds or names beyond its type and default.

    ``name`` is its name in spellings, if it differs from the field's; ``short`` is the short form of its option,
    ``-m``. With ``option`` false, no command has an option for it.
    """
    return field(
        default=default, metadata={"bounds": Bounds(least, most), "name": name, "short": short, "option": option}
    )


def bounds_of(declared: Any) -> Bounds:
    """Return the bounds of a dataclass field, which may have none."""
    bounds: Bounds = declared.metadata.get("bounds") or Bounds()
    return bounds


@dataclass(frozen=True, slots=True)
class Setting:
    """One thing that users can set.

    Attributes:
        field: the name of the dataclass's field.
        default: its default; `dataclasses.MISSING` where it has to be given.
        type: bool, int, float or str.
        choices: the texts that it may be, if they are few.
        bounds: of a number.
        short: the short form of its option on the command line, if it has one.
    """

    field: str
    default: Any
    type: type
    choices: tuple[Any, ...] = ()
    bounds: Bounds = Bounds()
    short: str = ""

    def read(self, value: Any, name: str) -> Any:
        """Return a value as the field's type; ``name`` is what messages call it.

        Raises:
            UsageError: it is of another type or out of its bounds.
        """
        # A default need not keep to the bounds: None is no number.
        if value == self.default and type(value) is type(self.default):
            return value
        # Choices before types: an unknown word should be answered by the words that there are.
        if self.choices:
            if value in self.choices:
                return value
            choices = tuple(map(str, self.choices))
            raise UsageError(
                f"{name} must be one of {', '.join(choices)}, not {value!r}.{nearest(str(value), choices)}"
            )
        if not self._fits(value):
            raise UsageError(f"{name} must be {_EXPECTED[self.type].format(self.bounds)}, not {value!r}")
        return self.type(value)

    def _fits(self, value: Any) -> bool:
        """Return whether a value is of the type and within the bounds."""
        if self.type is str:
            return isinstance(value, str) and value != ""
        # True is a whole number to Python, and `samples=true` is a mistake.
        if self.type is bool or isinstance(value, bool):
            return self.type is bool and isinstance(value, bool)
        numbers = int if self.type is int else (int, float)
        return isinstance(value, numbers) and self.bounds.hold(value)


def _found_settings(kind: type) -> dict[str, Setting]:
    try:
        hints = get_type_hints(kind)
    except NameError as error:
        raise UsageError(f"{kind.__name__}: {error}") from None
    found: dict[str, Setting] = {}
    for declared in fields(kind):
        if declared.init and declared.metadata != ANY_OBJECT:
            name = declared.metadata.get("name") or declared.name
            found[name] = _setting(kind, declared, hints[declared.name])
    return found


settings_of: Callable[[type], dict[str, Setting]] = cache(_found_settings)
"""Return what can be set of a dataclass, by the names that users write."""


def _setting(kind: type, declared: Any, hint: Any) -> Setting:
    if get_origin(hint) in (Union, types.UnionType):
        given = [part for part in get_args(hint) if part is not type(None)]
        if len(given) == 1:
            (hint,) = given
    common = {"bounds": bounds_of(declared), "short": declared.metadata.get("short", "")}
    if get_origin(hint) is Literal:
        return Setting(declared.name, declared.default, str, get_args(hint), **common)
    if hint not in _EXPECTED:
        raise UsageError(
            f"{kind.__name__}: the option {declared.name} is a {hint}; an option is a bool, int, float, str or Literal,"
            " or None"
        )
    return Setting(declared.name, declared.default, hint, **common)


def check_settings(values: Any) -> None:
    """Check the values of a frozen dataclass and convert each to its declared type; for ``__post_init__``.

    Raises:
        UsageError: a value has the wrong type or is out of bounds.
    """
    for name, one in settings_of(type(values)).items():
        # An int where a float is meant becomes one, so that two spellings of a value are one identity.
        object.__setattr__(values, one.field, one.read(getattr(values, one.field), name))


def read_options(kind: type, spec: Spec) -> dict[str, Any]:
    """Return the fields of a dataclass that a spelling gives, each read as its type."""
    known = settings_of(kind)
    for key in spec.options:
        if key not in known:
            raise UsageError(f"{spec}: {not_among('option', key, sorted(known))}")
    for key, one in known.items():
        if one.default is MISSING and key not in spec.options:
            raise UsageError(f"{spec}: needs {key}=…, {attributes(kind).get(one.field) or one.type.__name__}")
    return {known[key].field: known[key].read(value, f"{spec}: {key}") for key, value in spec.params}


def attributes(kind: type) -> dict[str, str]:
    """Return what a class and those that it is made from say of their fields, under ``Attributes:`` in docstrings."""
    told: dict[str, str] = {}
    # From the base down: a class may say of an inherited field what it means there.
    for base in kind.__mro__[-2::-1]:
        listed = _ATTRIBUTE.findall("    " + sections(base).get("Attributes", ""))
        told |= {name: " ".join(text.split()) for name, text in listed}
    return told


def sections(kind: type) -> Mapping[str, str]:
    """Return the sections of a class's own docstring by their titles."""
    return dict(_SECTION.findall(docstring(kind)))


def docstring(of: type | Callable[..., Any]) -> str:
    """Return the docstring of a class or function; with ``python -OO``, which leaves docstrings out, of its source."""
    text = of.__doc__
    # A dataclass that has lost its docstring is given its signature for one.
    if sys.flags.optimize > 1 and (text is None or isinstance(of, type)):
        text = None
        # What was made in a shell or has no source file says nothing of itself.
        with suppress(OSError, TypeError, SyntaxError):
            (node,) = ast.parse(textwrap.dedent(inspect.getsource(of))).body
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
    return inspect.cleandoc(text or "")
