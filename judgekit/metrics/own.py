"""A user's own measure: a function of one list, declared where it stands, in a notebook cell or a file."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from numbers import Real
from typing import Any, Final, TypeVar, overload

import numpy as np

from judgekit.errors import UsageError
from judgekit.metrics.hits import LabelledHits
from judgekit.metrics.join import Floats
from judgekit.metrics.measures import Definition, Formula, Measure, Param, is_number
from judgekit.spec import Spec, Value, parse, user_code

__all__ = ["measure"]

Function = TypeVar("Function", bound=Callable[..., float])

_HOW: Final = "a measure is a function of (ranked, judged) or (ranked, judged, cutoff), then parameters with defaults"


@overload
def measure(name: Function) -> Function: ...


@overload
def measure(
    name: str = ...,
    *,
    rewards: str = ...,
    lower_is_better: bool = ...,
) -> Callable[[Function], Function]: ...


def measure(
    name: str | Callable[..., float] = "",
    *,
    rewards: str = "",
    lower_is_better: bool = False,
) -> Callable[..., Any]:
    """Declare a measure of your own by a function that scores one list.

    In a notebook cell or in a file::

        @jk.measure("FirstGood", rewards="a good first document")
        def first_good(ranked, judged, cutoff, *, least=1.0):
            return float(ranked[0] >= least)

        jk.score(runs, labelings, "FirstGood(least=2)@5 nDCG@10")

    The function gets ``ranked``, the labels of the top k documents, best first, NaN where a document has no label;
    ``judged``, all labels of the query; and ``cutoff``, the k, or None for all. It returns a number, or NaN where the
    measure is undefined. A function without ``cutoff`` looks at whole lists. Further arguments are parameters of the
    measure: bool, number or str, as the default is. A parameter ``rel=None`` is the least label that counts as
    relevant, which is the one that the labeling declares unless the measure gives another. Bare, ``@jk.measure`` gives
    the measure the name of its function.

    Where a run has nothing for a query the function is not asked: the score is 0, and undefined where lower is better.
    Such a measure has no bounds over unknown labels.

    Declaring a function again replaces it, so that a cell can be run again; the name of another measure is refused.

    Args:
        name: how it is spelled; by default as the function is named.
        rewards: what it rewards.
        lower_is_better: whether smaller values are better.

    Raises:
        UsageError: the name is taken, or the function is not of that form.
    """

    def declare(function: Function) -> Function:
        name = spelling or getattr(function, "__name__", "measure")
        if parse(name) != Spec(name):
            raise UsageError(f"{name!r} is not a name: parameters and cutoff are given where the measure is used")
        by_cutoff, params = _signature(name, function)
        first_line = (inspect.getdoc(function) or name).splitlines()[0]
        Definition(
            name,
            first_line,
            f"{function.__name__} in {function.__module__}",
            "declared by the user",
            rewards,
            "binary" if "rel" in params else "own",
            low=None,
            high=None,
            cutoff=by_cutoff,
            params=params,
            lower_is_better=lower_is_better,
            author=(function.__module__, function.__qualname__),
        )(_by_list(function, by_cutoff))
        return function

    if callable(name):
        spelling = ""
        return declare(name)
    spelling = name
    return declare


def _signature(name: str, function: Callable[..., float]) -> tuple[bool, dict[str, Param]]:
    """Return whether a function takes a cutoff, and its parameters."""
    if not inspect.isfunction(function):
        raise UsageError(f"{name}: {_HOW}, not a {type(function).__name__}")
    arguments = list(inspect.signature(function).parameters.values())
    named = [a.name for a in arguments if a.kind in (a.POSITIONAL_OR_KEYWORD, a.KEYWORD_ONLY)]
    by_cutoff = named[2:3] == ["cutoff"]
    if named[:2] != ["ranked", "judged"] or len(named) < len(arguments):
        raise UsageError(f"{name}: {_HOW}, and {function.__name__} is a function of ({', '.join(map(str, arguments))})")
    return by_cutoff, {a.name: _param(name, a.name, a.default) for a in arguments[2 + by_cutoff :]}


def _param(name: str, key: str, default: object) -> Param:
    if key == "rel" and default is None:
        return Param("least label that counts as relevant; by default what the labeling declares", valid=is_number)
    if isinstance(default, bool):
        return Param("True or False", default, (False, True))
    if isinstance(default, str):
        return Param("a text", default, valid=lambda value: isinstance(value, str), expected="a text")
    if isinstance(default, int | float):
        return Param("a number", default, valid=is_number)
    raise UsageError(f"{name}: the parameter {key!r} needs a default that is True, False, a number or a text")


def _by_list(function: Callable[..., float], by_cutoff: bool) -> Formula:
    """Return the formula that asks a function about one list after another."""

    def compute(hits: LabelledHits, measure: Measure) -> Floats:
        options: dict[str, Value | None] = {key: measure.option(key) for key in measure.definition.params}
        if by_cutoff:
            options["cutoff"] = measure.cutoff
        top = hits.labelled().top(measure.cutoff)
        least = hits.threshold(measure.rel)
        length = np.broadcast_to(hits.looked_at(measure.cutoff), hits.shape).reshape(-1)
        starts = np.append(0, np.cumsum(length))
        ranked = np.full(starts[-1], np.nan)
        ranked[starts[top.cell] + top.rank - 1] = top.label
        group, label = hits.groups(~np.isnan(hits.table))
        order = np.argsort(group, kind="stable")
        labels, ends = label[order], np.searchsorted(group[order], np.arange(hits.shape[0] * hits.shape[2] + 1))
        out = np.full(hits.cells, np.nan if measure.lower_is_better else 0.0)
        cell = 0

        def which() -> str:
            labeling, run, query = np.unravel_index(cell, hits.shape)
            under, of = hits.join.labelings[int(labeling)].name, hits.join.runs[int(run)].name
            return f"{measure} of query {hits.join.query_ids[int(query)]!r} in {of} under {under}"

        with user_code(which, function.__code__.co_filename):
            for cell in np.flatnonzero((length > 0) & hits.asked.reshape(-1)).tolist():
                labeling, query = cell // math.prod(hits.shape[1:]), cell % hits.shape[2]
                if "rel" in options:
                    options["rel"] = float(least[labeling])
                one = labeling * hits.shape[2] + query
                value = function(
                    ranked[starts[cell] : starts[cell + 1]].copy(), labels[ends[one] : ends[one + 1]].copy(), **options
                )
                if not isinstance(value, Real | np.bool_) or math.isinf(value):
                    raise UsageError(f"{which()} is {value!r}, not a number (or NaN where it is undefined)")
                out[cell] = value
        return out.reshape(hits.shape)

    return compute
