"""The one cell that the decision is about, fixed in advance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from judgekit.analysis.measures import WHOLE_RUN, cutoff_of, spelled_as
from judgekit.data.tables import ALL, UNDECLARED
from judgekit.errors import UsageError, not_among

if TYPE_CHECKING:
    from judgekit.analysis.inputs import Inputs, PanelKey
    from judgekit.rules import Rules

CHOOSE_RUNS: Final = "choose-runs"
FIND_QUESTIONS: Final = "find-questions"
USES: Final = {CHOOSE_RUNS: "within-query", FIND_QUESTIONS: "query"}
"""The uses of labels, each with the level that answers it."""


@dataclass(frozen=True, slots=True)
class Primary:
    """The one cell that the decision is about.

    Attributes:
        measure: of the labelings' scores.
        metric, model, depth: the answer quality that is predicted.
        use: what the labels are for.
        run: ``all``, or the only run's name.
        mode: the mode of answering, if several are compared; else "".
    """

    measure: str
    metric: str
    model: str
    depth: int
    use: str
    run: str = ALL
    mode: str = ""

    @property
    def level(self) -> str:
        """The level that answers the use; for an unknown use, from a damaged file, no level's name."""
        return USES.get(self.use, self.use)

    @property
    def answers(self) -> str:
        """The outcome, in words."""
        return f"{self.metric} of {self.rated}"

    @property
    def rated(self) -> str:
        """What the metric rates, in words: whose answers, and from how many documents."""
        imported = "imported " if self.model == UNDECLARED else ""
        of = f" of {self.model}" if self.model and not imported else ""
        depth = "" if self.depth == WHOLE_RUN else f" from the top {self.depth}"
        mode = f" (mode: {self.mode})" if self.mode else ""
        return f"the {imported}answers{of}{depth}{mode}"

    def __str__(self) -> str:
        # Trusted labels stand in the place of answers here.
        if self.metric == self.measure:  # without answers, by existing labels
            return f"{self.measure} of each labeling against {self.measure} by {self.model}"
        return f"{self.measure} against {self.answers}"


def choose_primary(
    inputs: Inputs, plan: Sequence[PanelKey], rules: Rules, metric: str | None, model: str | None
) -> Primary:
    """Return the primary cell; add a warning for each choice made for the user."""
    runs, use, measure = inputs.runs, rules.use, rules.primary
    if use == CHOOSE_RUNS and len(runs) < 2:
        raise UsageError(f"use {CHOOSE_RUNS!r} compares runs, but only one has both scores and quality")
    if measure is not None:
        measure = _chosen(inputs, "measure", spelled_as(measure, inputs.measures), inputs.measures)
    metric = _chosen(inputs, "metric", metric, inputs.metrics)
    # A model without values of this metric cannot be meant.
    rated = {key[2] for key in plan if key[1] == metric}
    model = _chosen(inputs, "model", model, [name for name in inputs.models if name in rated] or inputs.models)
    depths: dict[str, list[int]] = {}
    for name, *answers, depth in plan:
        if answers == [metric, model] and measure in (None, name):
            depths.setdefault(name, []).append(depth)
    if not depths:
        raise UsageError(
            f"the decision cannot be about {measure or 'any measure'}: no quality {metric!r} of {model!r} goes with it."
            " A measure at cutoff c needs answers from the top c."
        )
    if measure is None:
        # nDCG takes grades and order into account, and a larger cutoff more documents.
        graded = [name for name in depths if name.startswith("nDCG")]
        measure = max(graded, key=lambda name: cutoff_of(name) or 0, default=next(iter(depths)))
        if len(depths) > 1:
            inputs.warnings.append(f"No primary measure was chosen: the decision is about {measure!r}.")
    cutoff = cutoff_of(measure)
    return Primary(
        measure=measure,
        metric=metric,
        model=model,
        depth=cutoff if cutoff in depths[measure] else max(depths[measure]),
        use=use or (CHOOSE_RUNS if len(runs) > 1 else FIND_QUESTIONS),
        run=runs[0] if len(runs) == 1 else ALL,
    )


def _chosen(inputs: Inputs, what: str, given: str | None, have: Sequence[str]) -> str:
    """Return the requested name, which must exist, or else the first, with a warning if there are others."""
    if given is not None:
        if given not in have:
            raise UsageError(not_among(f"primary {what}", given, have))
        return given
    if len(have) > 1:
        inputs.warnings.append(
            f"No primary {what} was chosen: the decision is about {have[0]!r}, the first of {', '.join(have)}."
        )
    return have[0]
