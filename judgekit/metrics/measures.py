"""Measures: the definition, which decorates the formula; the value with one spelling; and users' own measures.

``Measure("nDCG@10")``, ``Measure("P(rel=2)@5")``; ``Measure(str(m)) == m``.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import numpy as np

from judgekit.data.labelings import Scale
from judgekit.data.streams import note_read
from judgekit.errors import UsageError, not_among
from judgekit.metrics.hits import LabelledHits
from judgekit.metrics.join import Floats
from judgekit.spec import Spec, Value, parse, parse_many, run_file, split_file, user_code

_SCALES: Final = {
    "binary": "binary, grades, means; unit with rel=",
    "label": "all; on unit and signed labels without rel= ",
    "gain": "all; negative labels gain nothing",
    "amount": "binary, grades, unit",
    "nothing": "all",
    "own": "all",
}
ALIASES: Final[Mapping[str, str]] = {
    **{"Precision": "P", "Recall": "R", "set_recall": "SetR"},
    **{"HitRate": "Success", "HitRatio": "Success", "Hit": "Success", "HR": "Success"},
    **{"MRR": "RR", "recip_rank": "RR", "MAP": "AP", "map_cut": "AP", "ndcg_cut": "nDCG"},
    **{"MR": "MeanRank", "AUC-ROC": "AUC", "ROC-AUC": "AUC"},
    **{"relative_P": "R(by=possible)", "R_cap": "R(by=possible)", "set_relative_P": "SetP(relative=True)"},
}
"""Names of measures elsewhere, and their spelling here; case and underscores do not matter."""
_CUT: Final = re.compile(r"(P|recall|success|map_cut|ndcg_cut|relative_P)_([1-9]\d{0,8})|(\w+)_at_([1-9]\d{0,8})")
"""trec_eval's names with a cutoff, and MTEB's."""
_CUTS: Final = re.compile(r"(?<![\w(=])(P|recall|success|map_cut|ndcg_cut|relative_P)\.(\d+(?:,\d+)*)(?![\w.])")
"""Names with several cutoffs, as in trec_eval and pytrec_eval: ``ndcg_cut.5,10``."""


def is_number(value: Value) -> bool:
    """Return whether a parameter's value is a finite number; True is not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of a measure.

    Attributes:
        what: its effect.
        default: the default value (None: see ``what``).
        choices: the possible values, if they are few.
        valid: tells whether any other value is valid.
        expected: the condition of ``valid``, in words.
    """

    what: str
    default: Value | None = None
    choices: tuple[Value, ...] = ()
    valid: Callable[[Value], bool] | None = None
    expected: str = "a number"

    def problem(self, value: Value) -> str | None:
        """Return why ``value`` is invalid, or None."""
        if self.choices:
            # True == 1, but rel=True is not a number to choose.
            if any(value == c and type(value) is type(c) for c in self.choices):
                return None
            return f"must be one of {', '.join(map(str, self.choices))}, not {value!r}"
        if self.valid is not None and not self.valid(value):
            return f"must be {self.expected}, not {value!r}"
        return None


@dataclass(eq=False)
class Definition:
    """The definition of a measure; as the decorator of its formula, it adds the measure to the catalogue.

    A formula is vectorised over all labelings, runs and queries: it turns labelled hits and a measure into an array of
    shape (L, R, Q). `judgekit.measure` makes one of a user's per-list function.

    Attributes:
        name: the canonical name.
        title: the name in words.
        formula: the formula on one line.
        source: the source.
        rewards: what it rewards, in words for the owner of a search application.
        needs: ``binary`` if it only uses which documents are relevant, ``label`` if it does so for scales with a
            threshold and else uses the labels, ``gain`` if it uses labels as gains (negative ones as 0), ``amount`` if
            it uses them as shares or amounts that cannot be negative, ``nothing`` if values do not matter, ``own`` if a
            user's function gets the labels.
        low, high: the range; None without a fixed end.
        cutoff: whether it can have a cutoff.
        on: a note on the scales it is defined on, beyond ``needs``.
        params: its parameters.
        lower_is_better: whether smaller values are better.
        unbounded: tells whether a measure's bounds over unknown labels are its whole range.
        undefined: tells why a measure is not defined on a scale, or "".
        takes_largest: whether a measure depends on the scale's largest label.
        author: module and name of a user's function; empty for judgekit's own measures.
    """

    name: str
    title: str
    formula: str
    source: str
    rewards: str
    needs: str = "binary"
    low: float | None = 0.0
    high: float | None = 1.0
    cutoff: bool = True
    on: str = ""
    params: Mapping[str, Param] = field(default_factory=dict)
    lower_is_better: bool = False
    unbounded: Callable[[Measure], bool] = lambda _: False
    undefined: Callable[[Measure, Scale], str] = lambda *_: ""
    takes_largest: Callable[[Measure], bool] = lambda _: False
    author: tuple[str, ...] = ()
    compute: Formula = field(init=False)

    def __call__(self, compute: Formula) -> Definition:
        """Take the formula and enter the catalogue."""
        known = DEFINITIONS.get(self.name)
        # A notebook's cell may run again, and a file may change: the same function replaces itself.
        if known is None or not known.author or known.author != self.author:
            taken = _meant(Spec(self.name))
            if taken is not None:
                other = DEFINITIONS[taken.name]
                whose = f", declared by {other.author[1]} in {other.author[0]}" if other.author else " of judgekit"
                raise UsageError(f"there is already a measure {taken}{whose}: choose another name than {self.name!r}")
        self.compute = compute
        DEFINITIONS[self.name] = self
        return self

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names; all names are compared without case and underscores."""
        return tuple(alias for alias, spelled in ALIASES.items() if spelled == self.name)

    @property
    def scales(self) -> str:
        """The scales it is defined on, in words."""
        return _SCALES[self.needs] + self.on


@dataclass(frozen=True, slots=True, init=False)
class Measure:
    """A measure with its parameters and cutoff.

    Attributes:
        spec: the canonical spelling.
    """

    spec: Spec

    def __init__(self, spelling: str | Spec | Measure) -> None:
        """Take a spelling: ours, that of ir_measures, or a name of trec_eval (``ndcg_cut_10``).

        Raises:
            UsageError: there is no such measure or parameter, or a value does not fit; the message suggests another.
        """
        spec = spelling.spec if isinstance(spelling, Measure) else spelling
        object.__setattr__(self, "spec", _canonical(parse(_with_cutoffs(spec)) if isinstance(spec, str) else spec))

    @property
    def name(self) -> str:
        """``nDCG``, ``P``, …"""
        return self.spec.name

    @property
    def cutoff(self) -> int | None:
        """The number of top documents that the measure looks at; None for all."""
        return self.spec.cutoff

    @property
    def by_evidence(self) -> bool:
        """Whether it counts evidence once, however many documents hold it; see `judgekit.metrics.evidence`."""
        return self.option("unit") == "evidence"

    @property
    def definition(self) -> Definition:
        """The definition: formula, source, range, scales."""
        return DEFINITIONS[self.spec.name]

    @property
    def lower_is_better(self) -> bool:
        """Whether smaller values are better (`MeanRank`)."""
        return self.definition.lower_is_better

    @property
    def rel(self) -> float | None:
        """The smallest label that counts as relevant; None to use what each labeling declares."""
        value = self.option("rel")
        return None if value is None else float(value)

    def option(self, key: str) -> Value | None:
        """Return a parameter's value or default; None if the measure has no such parameter."""
        param = self.definition.params.get(key)
        return None if param is None else self.spec.options.get(key, param.default)

    def at(self, cutoff: int | None) -> Measure:
        """Return the same measure with another cutoff."""
        return Measure(self.spec.at(cutoff))

    def __str__(self) -> str:
        return str(self.spec)


Formula = Callable[[LabelledHits, Measure], Floats]

DEFINITIONS: Final[dict[str, Definition]] = {}
"""Every measure by its canonical name: judgekit's own, and those that users have declared in this process."""


def catalog() -> list[Definition]:
    """Return every measure with formula, source, range, what it rewards, and the scales it is defined on."""
    return list(DEFINITIONS.values())


def _with_cutoffs(text: str) -> str:
    """Return a text with trec_eval's names with cutoffs, ``ndcg_cut.5,10``, split into single spellings."""
    return _CUTS.sub(lambda cut: " ".join(f"{cut[1]}_{k}" for k in cut[2].split(",")), text)


def parse_measures(given: str | Iterable[object], folder: Path = Path()) -> list[Measure]:
    """Return measures without repetitions, from spellings, measures of ir_measures or ``FILE.py:MEASURE``."""
    return read_measures(given, folder).measures


class ReadMeasures(NamedTuple):
    """Measures, and a sentence for each name of another tool with its meaning."""

    measures: list[Measure]
    notes: tuple[str, ...]


def read_measures(given: str | Iterable[object], folder: Path = Path()) -> ReadMeasures:
    """Return the same as `parse_measures`, with notes."""
    # A file's spelling ends at the next blank; the text before it is parsed as a list.
    found: list[Measure] = []
    notes: list[str] = []
    for item in re.split(r"(?<=[\s,])(?=[^\s,]+\.py:)", given) if isinstance(given, str) else given:
        if isinstance(item, Measure):
            found.append(item)
            continue
        file, text = split_file(str(item))
        if file is None:
            text = _with_cutoffs(text)
        specs = parse_many(text) if isinstance(given, str) else [_parse(item, text)]
        if file is not None:
            # The manifest names the file and its hash.
            note_read(folder / file)
            module = run_file(folder / file).__name__
            mine = [d.name for d in DEFINITIONS.values() if d.author[:1] == (module,)]
            if specs[0].name not in mine:
                raise UsageError(f"{file}: {not_among('measure', specs[0].name, mine)}")
        measures = [*map(Measure, specs)]
        found += measures
        notes += _taken(specs, measures)
    return ReadMeasures(list(dict.fromkeys(found)), tuple(notes))


def _taken(specs: Iterable[Spec], measures: Iterable[Measure]) -> Iterator[str]:
    """Yield a sentence for names of other tools, if there are any."""
    told = {}
    for spec, measure in zip(specs, measures, strict=True):
        if _folded(spec.name) != _folded(measure.name):
            told[str(spec)] = f"{spec} as {measure}"
    if told:
        yield f"names of other tools: {', '.join(told.values())}"


def _parse(item: object, text: str) -> Spec:
    """Return the spelling of an item of a list."""
    try:
        return parse(text)
    except UsageError as error:
        if isinstance(item, str):
            raise
        raise UsageError(
            "a measure is a spelling such as 'nDCG@10', a judgekit.Measure or a measure of ir_measures, not a"
            f" {type(item).__name__}"
        ) from error


def _folded(name: str) -> str:
    """Return the key shared by all spellings of a name: map and MAP, num_rel and NumRel, hit_rate and HitRate."""
    return name.replace("_", "").replace("-", "").casefold()


def _meant(spec: Spec) -> Spec | None:
    """Replace a familiar name by ours; None if there is no such measure."""
    if spec.name in DEFINITIONS:
        return spec
    key = _folded(spec.name)
    for name, spelled in (*((name, name) for name in DEFINITIONS), *ALIASES.items()):
        if _folded(name) == key:
            ours = parse(spelled)
            return Spec(ours.name, (*ours.params, *spec.params), spec.cutoff)
    # A number after such a name is a cutoff; after others it may not be: RBP_95 is RBP(p=0.95) elsewhere.
    cut = _CUT.fullmatch(spec.name)
    if cut is None or spec.cutoff is not None:
        return None
    return _meant(Spec(cut[1] or cut[3], spec.params, int(cut[2] or cut[4])))


def _canonical(given: Spec) -> Spec:
    """Return the checked spelling under our own name."""
    spec = _meant(given)
    if spec is None:
        raise UsageError(_why_unknown(given.name))
    definition = DEFINITIONS[spec.name]
    if spec.cutoff is not None and not definition.cutoff:
        raise UsageError(f"{spec}: {spec.name} looks at the whole list and takes no cutoff")
    for key, value in spec.params:
        if key not in definition.params:
            raise UsageError(f"{spec}: {not_among('parameter', key, sorted(definition.params))}")
        problem = definition.params[key].problem(value)
        if problem is not None:
            raise UsageError(f"{spec}: {key} {problem}")
    return spec


def _why_unknown(name: str) -> str:
    """Return the error text for a name without a measure."""
    base, cutoff = name, ""
    if match := re.fullmatch(r"(.+?)_?(\d+)", name):
        base, cutoff = match[1], f"@{match[2]}"
    if _folded(base) == "accuracy":
        # sentence-transformers' accuracy@k; elsewhere it is the share of right answers, so it is not an alias.
        return f"unknown measure {name!r}: for the share of queries with a relevant document within k, Success@k"
    known = _meant(Spec(base))
    if known is not None and cutoff and not int(cutoff[1:]):
        return f"unknown measure {name!r}: a cutoff must be 1 or more, as in '{known.name}@10'"
    if known is not None:
        rule = "write the cutoff behind an @. " if cutoff else ""
        return f"unknown measure {name!r}: {rule}Did you mean '{known.name}{cutoff}'?"
    return not_among("measure", name, sorted(DEFINITIONS), also=ALIASES)


Function = TypeVar("Function", bound=Callable[..., float])

_HOW: Final = "a measure is a function of (ranked, judged) or (ranked, judged, cutoff), then parameters with defaults"


def measure(name: str, *, rewards: str = "", lower_is_better: bool = False) -> Callable[[Function], Function]:
    """Declare your own measure: a function that scores one list.

    In a notebook cell or in a file::

        @jk.measure("FirstGood", rewards="a good first document")
        def first_good(ranked, judged, cutoff, *, least=1.0):
            return float(ranked[0] >= least)

        jk.score(runs, labelings, "FirstGood(least=2)@5 nDCG@10")

    The function gets ``ranked``, the labels of the top k documents, best first, NaN without a label; ``judged``, all
    labels of the query; and ``cutoff``, the k, or None for all. It returns a number, or NaN if the measure is
    undefined. A function without ``cutoff`` looks at whole lists. Further arguments are parameters of the measure:
    bool, number or str, like their defaults. A parameter ``rel=None`` is the smallest label that counts as relevant:
    the labeling's own, unless the measure sets another.

    The function is not called if a run returns nothing for a query: the score is then 0, or undefined if lower is
    better. Such a measure has no bounds for unknown labels.

    Declaring the function again replaces it, so you can run a cell again. The name of another measure is refused.

    Args:
        name: its name in spellings.
        rewards: what it rewards.
        lower_is_better: whether smaller values are better.

    Returns:
        The decorator, which returns the function unchanged.

    Raises:
        UsageError: the name is taken, or the function has other arguments.
    """
    if not isinstance(name, str):
        raise UsageError('name the measure: @jk.measure("FirstGood")')
    if parse(name) != Spec(name):
        raise UsageError(f"{name!r} is not a name: parameters and cutoff are given where the measure is used")

    def declare(function: Function) -> Function:
        by_cutoff, params = _signature(name, function)
        first_line = (inspect.getdoc(function) or name).splitlines()[0]
        Definition(
            name,
            first_line,
            formula=f"{function.__name__} in {function.__module__}",
            source="declared by the user",
            rewards=rewards,
            needs="binary" if "rel" in params else "own",
            low=None,
            high=None,
            cutoff=by_cutoff,
            params=params,
            lower_is_better=lower_is_better,
            author=(function.__module__, function.__qualname__),
        )(_by_list(function, by_cutoff))
        return function

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
        return Param("smallest label that counts as relevant; by default as the labeling declares", valid=is_number)
    # Before numbers: True is one in Python.
    if isinstance(default, bool):
        return Param("True or False", default, (False, True))
    if isinstance(default, str):
        return Param("a text", default, valid=lambda value: isinstance(value, str), expected="a text")
    if isinstance(default, int | float):
        return Param("a number", default, valid=is_number)
    raise UsageError(f"{name}: the parameter {key!r} needs a default that is True, False, a number or a text")


def _by_list(function: Callable[..., float], by_cutoff: bool) -> Formula:
    """Return the formula that calls a function for one list after another."""

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
        # The function never gets an empty list, so it need not define its value.
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
                group_number = labeling * hits.shape[2] + query
                # Copies, since a function that sorts its arguments in place would spoil the next measure's.
                shown = ranked[starts[cell] : starts[cell + 1]].copy()
                judged = labels[ends[group_number] : ends[group_number + 1]].copy()
                value = function(shown, judged, **options)
                if not isinstance(value, Real | np.bool_) or math.isinf(value):
                    raise UsageError(f"{which()} is {value!r}, not a number (or NaN where it is undefined)")
                out[cell] = value
        return out.reshape(hits.shape)

    return compute
