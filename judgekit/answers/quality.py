"""Answer quality: the protocol of answer metrics and their registry.

A metric reads an answer and the query's references and gives a value on its declared scale, or says why there is
none. Most need nothing more; one that asks an LLM is a program as well (`Metric.requests`), over units that hold the
query and the answer. A new metric is one file in `judgekit.answers.metrics` whose ``METRIC`` is a class with
``names`` and ``make(spec, endpoints)``, and no edit elsewhere; a third-party one is an entry point of the group
``judgekit.answer_metrics`` that names such a class.
"""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import NamedTuple, Protocol

from judgekit.answers.reading import Answer
from judgekit.data.documents import Query
from judgekit.data.labelings import Scale
from judgekit.data.tables import Status
from judgekit.errors import UsageError, nearest
from judgekit.options import About, about
from judgekit.spec import Spec, parse
from judgekit.wire.types import Endpoint, Outcome, Request

__all__ = ["Answered", "Endpoints", "Metric", "ReferenceMetric", "Score", "catalog", "metric", "unscored"]

ENTRY_POINTS = "judgekit.answer_metrics"


@dataclass(frozen=True, slots=True)
class Answered:
    """A query and an answer to it: the unit that answer metrics look at."""

    query: Query
    answer: Answer


class Score(NamedTuple):
    """The quality of an answer; ``value`` is None unless the status is ok."""

    value: float | None
    status: Status = Status.OK
    reason: str = ""


class Metric(Protocol):
    """An answer metric. It holds configuration and no state."""

    @property
    def name(self) -> str:
        """The canonical spelling, which is what the column ``metric`` of the quality table holds."""
        ...

    @property
    def scale(self) -> Scale:
        """``binary`` or ``unit``."""
        ...

    @property
    def needs_references(self) -> bool:
        """Whether the query must have reference answers."""
        ...

    @property
    def endpoint(self) -> Endpoint | None:
        """The LLM that is asked, if any."""
        ...

    def requests(self, unit: Answered, replies: Sequence[Outcome], /) -> list[Request]:
        """Return the next wave of requests; always [] for a metric that asks no LLM."""
        ...

    def read(self, unit: Answered, replies: Sequence[Outcome], /) -> Score:
        """Return the quality, once `requests` has no more to ask."""
        ...

    def score(self, answer: Answer, query: Query) -> Score:
        """Return the quality without any LLM; a `UsageError` where the metric needs one."""
        ...


class ReferenceMetric(ABC):
    """A metric that compares an answer with each reference and takes the best, without any LLM."""

    needs_references = True
    endpoint: Endpoint | None = None

    def leaves(self, reference: str) -> bool:
        """Return whether there is anything in a reference that an answer can be compared with."""
        return True

    @abstractmethod
    def compare(self, text: str, references: Sequence[str]) -> float:
        """Return how good ``text`` is beside the best of the references, which are at least one; in [0, 1]."""

    def requests(self, unit: Answered, replies: Sequence[Outcome], /) -> list[Request]:
        """Return [], there is nothing to ask."""
        return []

    def read(self, unit: Answered, replies: Sequence[Outcome], /) -> Score:
        """Return the quality of the unit's answer."""
        return self.score(unit.answer, unit.query)

    def score(self, answer: Answer, query: Query) -> Score:
        """Return the quality: abstentions are compared like any answer, answers that are not there have none."""
        references = tuple(filter(self.leaves, query.answers))
        if query.answers and not references:
            reason = f"nothing of the reference answers of query {query.query_id!r} is left to compare"
            return Score(None, Status.NOT_APPLICABLE, reason)
        return unscored(answer, query) or Score(self.compare(answer.text, references))


def unscored(answer: Answer, query: Query) -> Score | None:
    """Return why a metric with references has no value here: no reference, or no answer; None if it has one."""
    if not query.answers:
        return Score(None, Status.NOT_APPLICABLE, f"query {query.query_id!r} has no reference answer")
    if answer.status is not Status.OK:
        return Score(None, answer.status, answer.reason)
    return None


class Endpoints(Protocol):
    """What a metric may ask for while it is being built; a labeler's context is one."""

    def endpoint(self, name: str | None) -> Endpoint:
        """Return the endpoint of that name, or the only one if ``name`` is None."""
        ...

    def path(self, text: str) -> Path:
        """Resolve the path of a file."""
        ...


MetricFactory = Callable[[Spec, "Endpoints | None"], Metric]
"""The class method ``make`` of a metric class: reads the options of a spelling, refuses unknown ones."""


def _metrics() -> dict[str, MetricFactory]:
    """Return every known metric by its name; a built-in one cannot be replaced by an entry point."""
    found = _built_in()
    for point in entry_points(group=ENTRY_POINTS):
        kind = point.load()
        for name in kind.names:
            if name in found:
                raise UsageError(f"the answer metric {name!r} of {point.value} has the name of another one")
            found[name] = kind.make
    return found


def _built_in() -> dict[str, MetricFactory]:
    package = importlib.import_module("judgekit.answers.metrics")
    modules = [importlib.import_module(f"{package.__name__}.{m.name}") for m in pkgutil.iter_modules(package.__path__)]
    return {name: module.METRIC.make for module in modules for name in module.METRIC.names}


def catalog() -> dict[str, About]:
    """Return what each answer metric is, by its name, installed ones included."""
    return {name: about(getattr(make, "__self__", make)) for name, make in sorted(_metrics().items())}


def metric(spec: Spec | str, endpoints: Endpoints | None = None) -> Metric:
    """Build the answer metric of a spelling such as ``em``, ``rouge-l`` or ``correct(endpoint=judge)``.

    Args:
        spec: the spelling.
        endpoints: where a metric that asks an LLM finds it.

    Raises:
        UsageError: there is no such metric, or an option is not one of its own.
    """
    spec = parse(spec) if isinstance(spec, str) else spec
    known = _built_in()
    if spec.name not in known:
        known = _metrics()  # looks through all installed packages, which takes longer than building a metric
    if spec.name not in known:
        names = ", ".join(sorted(known))
        raise UsageError(f"there is no answer metric {spec.name!r} (there are: {names}).{nearest(spec.name, known)}")
    if spec.cutoff is not None:
        raise UsageError(f"{spec}: an answer metric has no cutoff")
    return known[spec.name](spec, endpoints)
