"""A measure is a value with one spelling: ``nDCG@10``, ``P(rel=2)@5``; ``parse_measure(str(m)) == m``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from judgekit.errors import UsageError, nearest
from judgekit.metrics.catalog import DEFINITIONS, Definition
from judgekit.spec import Spec, Value, parse, parse_many

__all__ = ["Measure", "parse_measure", "parse_measures"]

_TREC_NAME = re.compile(r"([A-Za-z_]+?)_(?:cut_)?(\d+)")
"""trec_eval's names with a cutoff: ``P_5``, ``ndcg_cut_10``, ``recall_100``."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure with its parameters and cutoff.

    Attributes:
        spec: the canonical spelling.
    """

    spec: Spec

    def __post_init__(self) -> None:
        _check(self.spec)

    @property
    def name(self) -> str:
        """``nDCG``, ``P``, …"""
        return self.spec.name

    @property
    def cutoff(self) -> int | None:
        """How many documents from the top the measure looks at; None for all."""
        return self.spec.cutoff

    @property
    def definition(self) -> Definition:
        """What the measure is: formula, source, range, scales."""
        return DEFINITIONS[self.spec.name]

    @property
    def lower_is_better(self) -> bool:
        """Whether smaller values are better (`MeanRank`)."""
        return self.definition.lower_is_better

    def option(self, key: str) -> Value | None:
        """Return a parameter's value, its default if it is not given, or None if the measure has no such parameter."""
        param = self.definition.params.get(key)
        return None if param is None else self.spec.options.get(key, param.default)

    def at(self, cutoff: int | None) -> Measure:
        """Return the same measure with another cutoff."""
        return Measure(self.spec.at(cutoff))

    def __str__(self) -> str:
        return str(self.spec)


def parse_measure(text: str | Spec | Measure) -> Measure:
    """Return the measure of a spelling, ours, that of ir_measures, or trec_eval's (``ndcg_cut_10``).

    Raises:
        UsageError: there is no such measure or parameter, or a value does not fit; the message suggests the nearest.
    """
    if isinstance(text, Measure):
        return text
    return Measure(_canonical(parse(text) if isinstance(text, str) else text))


def parse_measures(text: str) -> list[Measure]:
    """Return the measures of a list of spellings separated by white space or commas, without repetitions."""
    return list(dict.fromkeys(Measure(_canonical(spec)) for spec in parse_many(text)))


def _canonical(spec: Spec) -> Spec:
    """Replace a familiar name by ours."""
    if spec.name in DEFINITIONS:
        return spec
    names = _aliases()
    key, cutoff = spec.name.casefold(), spec.cutoff
    if key not in names and cutoff is None and (match := _TREC_NAME.fullmatch(spec.name)):
        key, cutoff = match[1].casefold(), int(match[2])
    if key not in names:
        known = ", ".join(sorted(DEFINITIONS))
        spelled = [alias for d in DEFINITIONS.values() for alias in (d.name, *d.aliases)]
        raise UsageError(f"there is no measure {spec.name!r} (there are: {known}).{nearest(spec.name, spelled)}")
    name, params = names[key]
    return Spec(name, tuple((params | dict(spec.params)).items()), cutoff)


def _aliases() -> dict[str, tuple[str, dict[str, Value]]]:
    """Return name and parameters by every name of a measure, in lower case."""
    names: dict[str, tuple[str, dict[str, Value]]] = {}
    for definition in DEFINITIONS.values():
        for alias in (definition.name, *definition.aliases):
            names[alias.casefold()] = (definition.name, {})
        for preset, params in definition.presets.items():
            names[preset.casefold()] = (definition.name, params)
    return names


def _check(spec: Spec) -> None:
    definition = DEFINITIONS.get(spec.name)
    if definition is None:
        raise UsageError(f"there is no measure {spec.name!r}.{nearest(spec.name, DEFINITIONS)}")
    if spec.cutoff is not None and not definition.cutoff:
        raise UsageError(f"{spec}: {spec.name} looks at the whole list and takes no cutoff")
    for key, value in spec.params:
        if key not in definition.params:
            have = ", ".join(sorted(definition.params)) or "none"
            raise UsageError(f"{spec}: no parameter {key!r} (there are: {have}).{nearest(key, definition.params)}")
        problem = definition.params[key].problem(value)
        if problem is not None:
            raise UsageError(f"{spec}: {key} {problem}")
