"""The one cell that the decision is about, fixed before anything is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from judgekit.analysis.measures import WHOLE_RUN, cutoff_of, spelled_as
from judgekit.data.tables import ALL, UNDECLARED
from judgekit.errors import UsageError, not_among

if TYPE_CHECKING:
    from judgekit.analysis.inputs import Inputs

CHOOSE_RUNS: Final = "choose-runs"
FIND_QUESTIONS: Final = "find-questions"
USES: Final = {CHOOSE_RUNS: "within-query", FIND_QUESTIONS: "query"}
"""What labels are wanted for, each use with the level that answers it."""


@dataclass(frozen=True, slots=True)
class Primary:
    """The one cell that the decision is about.

    Attributes:
        measure: of the labelings' scores.
        metric, model, depth: the answer quality that is predicted.
        use: what the labels are wanted for.
        run: ``all``, or the only run's name.
        mode: of answering, where answers of several modes are compared; else "".
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
        """The level that answers the use; of one that is unknown, as a damaged file may hold, no level's name."""
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
        if self.metric == self.measure:  # without answers, by existing labels
            return f"{self.measure} of each labeling against {self.measure} by {self.model}"
        return f"{self.measure} against {self.answers}"


def choose_primary(
    inputs: Inputs,
    panels: Sequence[tuple[str, str, str, int]],
    *,
    measure: str | None,
    metric: str | None,
    model: str | None,
    use: str | None,
) -> tuple[Primary, list[str]]:
    """Return the primary cell, and sentences on choices that had to be made for the user."""
    warnings: list[str] = []
    if use == CHOOSE_RUNS and len(inputs.runs) < 2:
        raise UsageError(f"use {CHOOSE_RUNS!r} compares runs, and only one has both scores and quality")
    use = use or (CHOOSE_RUNS if len(inputs.runs) > 1 else FIND_QUESTIONS)

    def choose(what: str, given: str | None, have: Sequence[str]) -> str:
        if given is not None:
            if given not in have:
                raise UsageError(not_among(f"primary {what}", given, have))
            return given
        if len(have) > 1:
            warnings.append(
                f"No primary {what} was chosen: the decision is about {have[0]!r}, the first of {', '.join(have)}."
            )
        return have[0]

    if measure is not None:
        measure = choose("measure", spelled_as(measure, inputs.measures), inputs.measures)
    metric = choose("metric", metric, inputs.metrics)
    rated = {b for _, a, b, _ in panels if a == metric}
    model = choose("model", model, [name for name in inputs.models if name in rated] or inputs.models)
    fits = [(m, d) for m, a, b, d in panels if (a, b) == (metric, model) and measure in (None, m)]
    if not fits:
        raise UsageError(
            f"the decision cannot be about {measure or 'any measure'}: it has no quality {metric!r} of"
            f" {model!r} to be paired with. A measure at cutoff c needs answers from the top c."
        )
    if measure is None:
        have = list(dict.fromkeys(m for m, _ in fits))
        measure = max((m for m in have if m.startswith("nDCG")), key=lambda m: cutoff_of(m) or 0, default=have[0])
        if len(have) > 1:
            warnings.append(f"No primary measure was chosen: the decision is about {measure!r}.")
    depths = sorted({d for m, d in fits if m == measure})
    cutoff = cutoff_of(measure)
    chosen = (cutoff if cutoff in depths else depths[-1]) or depths[-1]
    run = inputs.runs[0] if len(inputs.runs) == 1 else ALL
    cell = Primary(measure=measure, metric=metric, model=model, depth=chosen, use=use, run=run)
    return cell, warnings
