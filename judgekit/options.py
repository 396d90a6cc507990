"""The options of a spelling, read strictly and typed; and the way back, a spelling without its defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import overload

from judgekit.errors import UsageError, nearest
from judgekit.spec import Spec, Value

__all__ = ["About", "Options", "about", "spelling"]


@dataclass(frozen=True, slots=True)
class About:
    """What a labeler or an answer metric is, for lists.

    Attributes:
        does: what it says, in a phrase.
        scale: on which scale.
        needs: what it needs and sees: references, which LLM, people.
        cost: what it costs per pair or per answer.
        options: what each option of its spelling is.
    """

    does: str
    scale: str = ""
    needs: str = ""
    cost: str = ""
    options: Mapping[str, str] = field(default_factory=dict)


def about(kind: object) -> About:
    """Return what a labeler or metric class says of itself, else the first line of its docstring."""
    said = getattr(kind, "about", None)
    return said if isinstance(said, About) else About((getattr(kind, "__doc__", None) or "").strip().partition("\n")[0])


class Options:
    """The options of one spelling; every wrong one is a `UsageError` that shows the spelling.

    Args:
        spec: the spelling, e.g. that of ``judge(prompt=graded, samples=3)``.
        known: the keys that there are.
    """

    def __init__(self, spec: Spec, known: Iterable[str]) -> None:
        self.spec = spec
        self.values: Mapping[str, Value] = spec.options
        names = sorted(known)
        for key in self.values:
            if key not in names:
                have = ", ".join(names) or "none"
                raise UsageError(f"{spec}: no option {key!r} (there are: {have}).{nearest(key, names)}")

    def error(self, key: str, expected: str) -> UsageError:
        """Return the error for an option whose value is not what was expected."""
        return UsageError(f"{self.spec}: {key} must be {expected}, is {self.values.get(key)!r}")

    def __contains__(self, key: str) -> bool:
        return key in self.values

    @overload
    def text(self, key: str, default: str) -> str: ...
    @overload
    def text(self, key: str, default: None = None) -> str | None: ...
    def text(self, key: str, default: str | None = None) -> str | None:
        """Return a text that is not empty."""
        value = self.values.get(key, default)
        if value is None and key not in self.values:
            return None
        if not isinstance(value, str) or not value:
            raise self.error(key, "a text")
        return value

    def required(self, key: str, what: str) -> str:
        """Return a text that has to be given; ``what`` says what it is."""
        value = self.text(key)
        if value is None:
            raise UsageError(f"{self.spec}: needs {key}=…, {what}")
        return value

    def choice(self, key: str, default: str, choices: Sequence[str]) -> str:
        """Return one of ``choices``."""
        value = self.values.get(key, default)
        if value not in choices:
            raise UsageError(
                f"{self.spec}: {key} must be one of {', '.join(choices)}, is {value!r}.{nearest(str(value), choices)}"
            )
        return str(value)

    def whole(self, key: str, default: int, least: int) -> int:
        """Return a whole number of at least ``least``."""
        value = self.values.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self.error(key, f"a whole number of at least {least}")
        return value

    def number(self, key: str, least: float) -> float | None:
        """Return a number of at least ``least``, or None where it is not given."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, bool | str) or not value >= least:
            raise self.error(key, f"a number of at least {least:g}")
        return float(value)


def spelling(name: str, options: Mapping[str, tuple[Value | None, Value | None]]) -> Spec:
    """Return the canonical spelling: the options, each with its default, without those that are at their default."""
    return Spec(name, tuple((k, v) for k, (v, default) in options.items() if v is not None and v != default))
