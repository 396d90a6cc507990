"""The one cell that the verdict is about, fixed before anything is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from judgekit.analysis.inputs import Inputs, Panel
from judgekit.analysis.measures import cutoff_of, spelled_as
from judgekit.data.tables import ALL
from judgekit.errors import UsageError, nearest

__all__ = ["Primary", "settle"]

_PLACE = {
    "query": "over queries",
    "within-query": "between runs on the same query",
    "system": "over runs, by their means",
}


@dataclass(frozen=True, slots=True)
class Primary:
    """The one cell that the verdict is about.

    Attributes:
        measure: None means the best measure of each labeling, chosen anew inside every resample.
        metric, model, depth: the answer quality that is predicted.
        level: where.
        run: ``all``, or the only run's name.
    """

    measure: str | None
    metric: str
    model: str
    depth: int
    level: str
    run: str

    def __str__(self) -> str:
        measure = self.measure or "the best measure of each labeling"
        return (
            f"{measure} against {self.metric} of the answers of {self.model} from the top {self.depth},"
            f" {_PLACE[self.level]}"
        )

    def same_quality(self, panel: Panel) -> bool:
        """Return whether a panel is about the same answers and metric."""
        return (panel.metric, panel.model, panel.depth) == (self.metric, self.model, self.depth)

    def holds(self, panel: Panel) -> bool:
        """Return whether a panel takes part in the verdict."""
        return self.same_quality(panel) and self.measure in (None, panel.measure)


def settle(
    inputs: Inputs,
    panels: Sequence[tuple[str, str, str, int]],
    *,
    measure: str | None,
    metric: str | None,
    model: str | None,
    level: str,
    depth: int | None,
) -> tuple[Primary, list[str]]:
    """Return the primary cell, and sentences on choices that had to be made for the user.

    What is not given: the first metric and model by name, the measure's cutoff or else the largest
    depth, and for the measure each labeling's best.

    Args:
        inputs: the tables.
        panels: (measure, metric, model, depth) of all panels.
        measure: the user's choice or None, as all further ones.
        metric: as in the quality table.
        model: as in the quality table.
        level: one of `LEVELS`.
        depth: an answer depth.

    Raises:
        UsageError: something chosen is not there.
    """
    warnings: list[str] = []

    def choose(what: str, given: str | None, have: Sequence[str]) -> str:
        if given is not None:
            if given not in have:
                raise UsageError(
                    f"the primary {what} {given!r} is not in the tables (there are: {', '.join(have)})."
                    f"{nearest(given, have)}"
                )
            return given
        if len(have) > 1:
            warnings.append(
                f"No primary {what} was chosen: the verdict is about {have[0]!r}, the first of {', '.join(have)}."
            )
        return have[0]

    if measure is not None:
        measure = choose("measure", spelled_as(measure, inputs.measures), inputs.measures)
    metric = choose("metric", metric, inputs.metrics)
    model = choose("model", model, inputs.models)
    cutoff = None if measure is None else cutoff_of(measure)
    depths = sorted({d for m, a, b, d in panels if (a, b) == (metric, model) and measure in (None, m)})
    if not depths:
        raise UsageError(
            f"the verdict cannot be about {measure or 'any measure'}: it is paired with no quality {metric!r} of"
            f" {model!r}. A measure at cutoff c needs answers from the top c."
        )
    if depth is not None and depth not in depths:
        raise UsageError(
            f"the verdict cannot be about depth {depth}: {measure or 'the measures'} can be compared at"
            f" {', '.join(map(str, depths))}"
        )
    chosen = depth or (cutoff if cutoff in depths else depths[-1]) or depths[-1]
    if measure is None:
        there = {m for m, a, b, d in panels if (a, b, d) == (metric, model, chosen)}
        measure = there.pop() if len(there) == 1 else None
    run = inputs.runs[0] if len(inputs.runs) == 1 and level == "query" else ALL
    return Primary(measure, metric, model, chosen, level, run), warnings
