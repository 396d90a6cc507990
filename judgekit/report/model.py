"""Everything that a report shows, as plain values: the seam between the stages and the pages.

The stages fill a `Results`; the terminal tables and the HTML page read nothing else, so that a page can be drawn
again from a results folder, and so that any other program can make one. Fields that are None or empty leave their
section out. Texts are never trusted: the pages escape all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

import pandas as pd

from judgekit.analysis.claims import Claim, further, lines_of
from judgekit.analysis.differences import DIFFERENCE_COLUMNS
from judgekit.analysis.primary import Primary
from judgekit.data.tables import ALL, COMPARISON, NOT_MISSING, SCORES, Table

QUALITY_MEANS: Final = Table(
    "quality means",
    {"run": "str", "depth": "int", "model": "str", "metric": "str", "value": "float", "n": "int"},
    {"mode": "str", **dict.fromkeys(("abstained", "seems_abstained", "missing", "not_applicable"), "int")},
)
"""Mean answer quality per run, depth, model, mode of answering and metric: ``n`` queries have a value; how many answers
abstained, only read as if they did, are missing (no usable reply), or have no value because the metric does not apply.
Closed book is depth 0, run ``all``."""

DETAILS: Final = Table(
    "details",
    {
        **dict.fromkeys(("labeling", "measure", "run", "level"), "str"),
        "depth": "int",
        **dict.fromkeys(("quality_metric", "model"), "str"),
        **dict.fromkeys(("tau_b_max", "lacking"), "float"),
    },
    {"queries": "int", "undefined_resamples": "float"},
)
"""What stands behind a cell of the comparison: the largest tau-b attainable with the same values, and the share of the
cases that the labeling lacks."""

DIFFERENCES: Final = Table("differences", DIFFERENCE_COLUMNS, {})
"""Paired differences between labelings, as the analysis gives them."""


def plain_columns(frame: pd.DataFrame | None) -> pd.DataFrame | None:
    """Return a table with bool, int, float and string columns only, so that it survives being saved as JSON."""
    # Missing numbers become NaN (ints with gaps become floats), missing texts "".
    if frame is None:
        return None
    # Plug-ins hand in whatever pandas made of their numbers: nullable, categorical, mixed.
    columns: dict[str, pd.Series] = {}
    for name in frame.columns:
        column = frame[name].reset_index(drop=True)
        if not pd.api.types.is_numeric_dtype(column.dtype):
            columns[str(name)] = column.map(lambda value: "" if pd.isna(value) else str(value)).astype("str")
        elif column.isna().any() or pd.api.types.is_float_dtype(column.dtype):
            columns[str(name)] = column.astype("float64")
        else:
            columns[str(name)] = column.astype("bool" if pd.api.types.is_bool_dtype(column.dtype) else "int64")
    return pd.DataFrame(columns)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a set of requests takes. None means unknown (no usage in any reply, no price), never 0.

    Attributes:
        requests: how many requests.
        prompt_tokens, completion_tokens: tokens in and out.
        money: in the currency of the price table.
        wall_s: seconds from first to last; known of what was sent now only.
        unreported: requests whose replies said nothing of tokens, so that tokens and money are lower bounds.
        request_seconds: the time of all requests added up, whenever they were sent.
        untimed: requests whose time is not known, so that ``request_seconds`` is a lower bound.
    """

    # Requests are counted by us and always known; the rest is what servers tell or do not tell.
    requests: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    money: float | None = None
    wall_s: float | None = None
    unreported: int = 0
    request_seconds: float | None = None
    untimed: int = 0

    @property
    def tokens(self) -> int | None:
        """In and out together; None where either is unknown."""
        parts = self.prompt_tokens, self.completion_tokens
        return None if None in parts else sum(part or 0 for part in parts)


@dataclass(frozen=True, slots=True)
class Bill:
    """The cost of one labeling, or of answering end to end.

    Attributes:
        standalone: what it would take with an empty store.
        incurred: what was paid for now.
        cached, failed: requests replayed from the store, and failed for good.
        again: requests, of those that were answered, asked because the reply to another could not be used.
    """

    standalone: Cost = Cost()
    incurred: Cost = Cost()
    cached: int = 0
    failed: int = 0
    again: int = 0


@dataclass(frozen=True, slots=True)
class LabelingInfo:
    """What one labeling is, needs, costs, and how its labels came out.

    Attributes:
        name: as in the comparison table.
        kind: the labeler's registered name, or ``qrels`` for an imported file.
        spelling: the canonical spelling.
        scale: the declared scale as text.
        references: whether it needs reference answers.
        people: whether people made the labels.
        endpoint, model, prompt: the LLM that is asked and how, or ""; the names of several are joined by ``+``.
        kinship: ``same model`` or ``same family`` where an LLM is that of the answers, else "".
        outcome_metric, outcome_prompt: the answer metric and prompt that it shares with the outcome, or "".
        counts: labels per status; every status named.
        relevant: how many labels count as relevant (None where the scale has no threshold).
        mean: mean relevance of the obtained labels.
        labels: how often each label was given, the least relevant first.
        spending: requests, tokens, money, time.
        outside_pool: relevant documents of an imported file that no run retrieved.
    """

    name: str
    kind: str
    spelling: str = ""
    scale: str = ""
    references: bool = False
    people: bool = False
    endpoint: str = ""
    model: str = ""
    prompt: str = ""
    kinship: str = ""
    outcome_metric: str = ""
    outcome_prompt: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    relevant: int | None = None
    mean: float | None = None
    labels: Mapping[str, int] = field(default_factory=dict)
    spending: Bill = Bill()
    outside_pool: int | None = None

    @property
    def shares(self) -> str:
        """What it shares with the outcome, in words; "" where it shares nothing."""
        # What is shared stands in one cell, since each alone seems harmless and all together are the outcome itself.
        parts = [self.kinship]
        parts += [f"metric {self.outcome_metric}"] if self.outcome_metric else []
        parts += [f"prompt {self.outcome_prompt}"] if self.outcome_prompt else []
        return ", ".join(filter(None, parts))

    @property
    def missing(self) -> int:
        """How many labels are missing, which those that are not applicable are not."""
        return sum(n for status, n in self.counts.items() if status not in NOT_MISSING)


@dataclass(frozen=True, slots=True)
class Answers:
    """Answering end to end with one model.

    Attributes:
        model: as in the quality and comparison tables.
        endpoint, prompt: where and how it was asked.
        counts: answers per status.
        spending: requests, tokens, money, time; over all runs and depths, rating by an LLM included.
        at_decision: what the answers that the decision is about take, those from its depth, rated by its metric; None
            where it is about others.
        mode: of answering, where several are compared.
    """

    model: str
    # Empty for answers that were imported: who made them is all that is known.
    endpoint: str = ""
    prompt: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    spending: Bill = Bill()
    at_decision: Cost | None = None
    mode: str = ""

    @property
    def name(self) -> str:
        """Who answered and, where there are several, in which mode."""
        return f"{self.model} ({self.mode})" if self.mode else self.model


@dataclass(frozen=True, slots=True)
class RunFacts:
    """One run: its queries, missing queries, lists shorter than the depth, and ties across a cutoff."""

    name: str
    queries: int
    missing: int = 0
    short: int = 0
    ties: int = 0


@dataclass(frozen=True, slots=True)
class Facts:
    """The data and the circumstances.

    Attributes:
        queries, docs: sizes of the files.
        depth: depth of the pool.
        pool_pairs: (query, doc) pairs that were labelled once each.
        runs: one entry per run.
        seed, resamples, confidence: of the intervals.
        versions: versions of judgekit, Python and libraries.
        inputs: every file that was read: what it is, where, and its SHA-256.
        more: further (name, value) lines.
    """

    queries: int
    docs: int
    depth: int
    pool_pairs: int
    runs: tuple[RunFacts, ...] = ()
    seed: int | None = None
    resamples: int | None = None
    confidence: float = 0.95
    versions: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[tuple[str, str, str], ...] = ()
    more: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Section:
    """A further section of the page: a title, a paragraph, and a table (any columns), each of which may be empty."""

    title: str
    text: str = ""
    table: pd.DataFrame | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", plain_columns(self.table))


@dataclass(frozen=True)
class Results:
    """All that a report shows.

    Attributes:
        title: the page's title.
        comparison: a `COMPARISON` table.
        labelings: one entry per labeling, in the order in which they are shown.
        answers: one entry per answer model.
        primary: the cell that the decision is about.
        claims: all that is said, see `judgekit.analysis.claims`; the decision is a view of them.
        facts: data and circumstances.
        scores: `SCORES` rows with query_id ``all``: mean score per labeling, run and measure.
        quality: a `QUALITY_MEANS` table.
        settings: the resolved experiment as text.
        note: a sentence above everything else, such as that no LLM was involved.
        warnings: what threatens the validity of the decision, in sentences.
        notices: what else was told: of servers, limits, negotiations.
        retries: how often a request was sent again because it got no reply, by endpoint and reason.
        currency: of all money, e.g. ``USD``.
        differences: a `DIFFERENCES` table; the page shows those of the primary cell.
        details: a `DETAILS` table.
        agreement: agreement between labelings; any columns.
        modes: the primary cell in each mode of answering, where there are several: a comparison with a column ``mode``.
        sections: further sections.
    """

    # For those who read it from a file with pydantic: of all of its parts.
    __pydantic_config__: ClassVar = {"arbitrary_types_allowed": True}

    title: str
    comparison: pd.DataFrame
    labelings: tuple[LabelingInfo, ...]
    answers: tuple[Answers, ...]
    primary: Primary
    claims: tuple[Claim, ...]
    facts: Facts
    scores: pd.DataFrame = field(default_factory=SCORES.empty)
    quality: pd.DataFrame = field(default_factory=QUALITY_MEANS.empty)
    settings: str = ""
    note: str = ""
    warnings: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    retries: tuple[tuple[str, int], ...] = ()
    currency: str = ""
    differences: pd.DataFrame | None = None
    details: pd.DataFrame | None = None
    agreement: pd.DataFrame | None = None
    modes: pd.DataFrame | None = None
    sections: tuple[Section, ...] = ()

    def __post_init__(self) -> None:
        # Checked here and not by each page: plug-ins and other programs make results, too.
        object.__setattr__(self, "comparison", COMPARISON.check(self.comparison))
        object.__setattr__(self, "scores", SCORES.check(self.scores))
        object.__setattr__(self, "quality", QUALITY_MEANS.check(self.quality))
        for name, table in (("differences", DIFFERENCES), ("details", DETAILS)):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, table.check(getattr(self, name)))
        for name in ("agreement", "modes"):
            object.__setattr__(self, name, plain_columns(getattr(self, name)))
        runs = list(dict.fromkeys(self.comparison["run"]))
        if self.primary.run == ALL and len(runs) == 1:
            # With a single run there is no mean over runs: that run's own rows are the comparison.
            object.__setattr__(self, "primary", replace(self.primary, run=str(runs[0])))

    @property
    def decision(self) -> tuple[tuple[str, str], ...]:
        """The lines of the decision, a title and its sentences each."""
        return lines_of(self.claims)

    @property
    def further(self) -> list[str]:
        """The sentences of further claims."""
        return further(self.claims)

    @property
    def threats(self) -> list[str]:
        """What threatens the validity of the decision, in sentences; on which runs a claim hinges comes first."""
        # A decision that hangs on one run is the first thing to doubt about it.
        return [*(claim.sentence for claim in self.of("hinge")), *self.warnings]

    def of(self, kind: str) -> list[Claim]:
        """Return the claims of a kind."""
        return [claim for claim in self.claims if claim.kind == kind]
