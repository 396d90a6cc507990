"""The labeler protocol, the registry, and the one place that checks "one record per asked pair".

A labeler is two pure functions over *units* (a query with one or more docs)::

    requests(unit, replies) -> list[Request]     called again with what came back, until it returns []
    label(unit, replies)    -> list[Label]

One that hands on labels from a file may have a property ``imported``, (query id, doc id) -> relevance or None: the
report then counts the relevant documents that no run retrieved.

It holds configuration and no state, and does no I/O: a labeler that needs a file reads it when it is built.
A new labeler is one new file in this package whose ``LABELER`` is a class with ``kind`` and ``make(spec, context)``,
and no edit elsewhere; a third-party one is an entry point of the group ``judgekit.labelers`` that names such a class.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import ClassVar, Protocol, get_args, runtime_checkable

from judgekit.data.documents import Doc, Docs, Fields, Query, Unit
from judgekit.data.labelings import Scale
from judgekit.data.tables import Status
from judgekit.errors import UsageError, nearest
from judgekit.options import About, Options, about
from judgekit.spec import Spec, Value, parse
from judgekit.wire.types import Endpoint, Outcome, Request

__all__ = [
    "Context",
    "Label",
    "Labeler",
    "Needs",
    "Unit",
    "build",
    "catalog",
    "checked",
    "kinds",
    "options",
    "read_fields",
    "spell_fields",
]


@dataclass(slots=True)
class Label:
    """What a labeler says of one pair. ``relevance`` is None unless the status is ok. A value that is not changed.

    Attributes:
        raw: the text that the label was read from, if any.
        reason: why there is no label, as a sentence; of one that is there, why it may be wrong.
        extra: further columns of the labels table, numbers or texts: how often a vote was shown, its interval, the
            share of repeats that disagree, the answer that a utility label rates.
    """

    query_id: str
    doc_id: str
    relevance: float | None
    status: Status = Status.OK
    raw: str = ""
    reason: str = ""
    extra: Mapping[str, float | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Needs:
    """What a labeling needs and sees; the report says it beside every number.

    Attributes:
        references: whether it needs reference answers.
        endpoints: the LLMs whose verdicts or answers make the labels: none, one, or a jury.
        raters: LLMs that rate those answers.
        prompt: the name of the prompt that they are asked with.
        outcome_metric: the answer metric that it shares with the outcome (utility), if any.
        outcome_prompt: the answer prompt that it shares with the outcome, if any.
        people: whether the labels were made by people.
    """

    references: bool = False
    endpoints: tuple[Endpoint, ...] = ()
    raters: tuple[Endpoint, ...] = ()
    prompt: str = ""
    outcome_metric: str | None = None
    outcome_prompt: str | None = None
    people: bool = False

    @property
    def asked(self) -> tuple[Endpoint, ...]:
        """Every LLM that is asked for a label."""
        return (*self.endpoints, *self.raters)


@runtime_checkable
class Labeler(Protocol):
    """See the module's docstring. ``kind`` is the registered name; ``spec`` the canonical spelling."""

    kind: ClassVar[str]

    @property
    def spec(self) -> Spec:
        """The canonical spelling: ``build(parse(str(spec)), context)`` is an equal labeler."""
        ...

    @property
    def scale(self) -> Scale:
        """The declared scale of the labels."""
        ...

    @property
    def needs(self) -> Needs:
        """What the labeling needs and sees."""
        ...

    def units(self, query: Query, docs: Sequence[Doc]) -> Iterable[Unit]:
        """Cut a query's pooled docs into units; pointwise labelers make one per doc."""
        ...

    def requests(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Request]:
        """Return the next wave of requests, given the outcomes so far in order; [] when done."""
        ...

    def label(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Label]:
        """Return one label per doc of the unit."""
        ...


class Context(Protocol):
    """What a labeler may ask for while it is being built."""

    @property
    def fields(self) -> Fields:
        """How documents are rendered unless the labeler's spelling says otherwise."""
        ...

    @property
    def docs(self) -> Docs | None:
        """The collection, for a labeler that has to look up documents outside of the pool; None without one."""
        ...

    def endpoint(self, name: str | None) -> Endpoint:
        """Return the endpoint of that name, or the only one if ``name`` is None; else a `ConfigError`."""
        ...

    def path(self, text: str) -> Path:
        """Resolve a file named in a spelling (relative to the experiment file or the working directory)."""
        ...


LabelerFactory = Callable[[Spec, Context], Labeler]
"""The class method ``make`` of a labeler class: reads the options of a spelling, refuses unknown ones."""

ENTRY_POINTS = "judgekit.labelers"


def kinds() -> dict[str, LabelerFactory]:
    """Return every known labeler by its kind: the modules of this package, then the installed entry points.

    A built-in kind cannot be replaced by an entry point; that is a `UsageError`, so that a spelling always
    means the same.
    """
    found = _built_in()
    for point in entry_points(group=ENTRY_POINTS):
        if point.name in found:
            raise UsageError(f"the labeler {point.name!r} of {point.value} has the name of a built-in one")
        found[point.name] = point.load().make
    return found


def _built_in() -> dict[str, LabelerFactory]:
    package = importlib.import_module("judgekit.labelers")
    modules = [importlib.import_module(f"{package.__name__}.{m.name}") for m in pkgutil.iter_modules(package.__path__)]
    return {module.LABELER.kind: module.LABELER.make for module in modules if hasattr(module, "LABELER")}


def catalog() -> dict[str, About]:
    """Return what each known labeler is, by its kind; of an installed one that does not say, its docstring."""
    return {kind: about(getattr(make, "__self__", make)) for kind, make in sorted(kinds().items())}


def build(spec: Spec | str, context: Context) -> Labeler:
    """Build the labeler of a spelling such as ``judge(prompt=graded)``.

    Raises:
        UsageError: the kind is unknown or an option is not one of its own.
    """
    spec = parse(spec) if isinstance(spec, str) else spec
    known = _built_in()
    if spec.name not in known:
        known = kinds()  # looks through all installed packages, which takes longer than building a labeler
    if spec.name not in known:
        names = ", ".join(sorted(known))
        raise UsageError(f"there is no labeler {spec.name!r} (there are: {names}).{nearest(spec.name, known)}")
    if spec.cutoff is not None:
        raise UsageError(f"{spec}: a labeler has no cutoff")
    return known[spec.name](spec, context)


def checked(labeler: Labeler, unit: Unit, replies: Sequence[Outcome]) -> list[Label]:
    """Call ``labeler.label`` and hold it to the contract: exactly one label per doc of the unit, on its scale.

    This is the one place that checks it. A labeler that breaks the contract is a bug of that labeler, so the
    message names it.

    Raises:
        UsageError: a label is missing, is there twice, is about another pair, or is off the declared scale.
    """
    labels = labeler.label(unit, replies)
    asked = [(unit.query.query_id, doc.doc_id) for doc in unit.docs]
    got = [(label.query_id, label.doc_id) for label in labels]
    if got != asked and sorted(got) != sorted(asked):
        raise UsageError(f"labeler {labeler.spec} was asked for {asked} and labelled {got}")
    scale = labeler.scale
    for label in labels:
        if (label.relevance is None) == (label.status is Status.OK):
            raise UsageError(f"labeler {labeler.spec}: {label} has a relevance exactly if its status is ok")
        problem = None if label.relevance is None else scale.problem(label.relevance)
        if problem:
            raise UsageError(f"labeler {labeler.spec}: {label} is off the scale: {problem}")
    return labels


def options(spec: Spec, known: Iterable[str]) -> dict[str, Value]:
    """Return the options of a spelling, all of which must be ``known``; for use in ``make``.

    Raises:
        UsageError: an option is unknown; the message suggests the nearest.
    """
    return dict(Options(spec, known).values)


def read_fields(options: Options, context: Context) -> Fields:
    """Return how documents are rendered: as the spelling says (``fields=text``), else as the context does."""
    return options.choice("fields", context.fields, get_args(Fields))  # type: ignore[return-value]  # one of Fields


def spell_fields(fields: Fields, default: Fields) -> dict[str, tuple[Value, Value]]:
    """Return the option ``fields`` for `judgekit.options.spelling`.

    It is left out only where title and text are rendered and that is the context's rule too: a labeling's name
    says what its labels were made from.
    """
    return {"fields": (fields, "title+text" if default == "title+text" else "")}
