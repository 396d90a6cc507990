"""Which labeling finds the questions that fail: of two questions, does the worse answered one score lower?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from judgekit.analysis.background import TWIN
from judgekit.analysis.case import Case, Series
from judgekit.analysis.claims import Claim
from judgekit.analysis.keeping import FINDS
from judgekit.analysis.primary import FIND_QUESTIONS
from judgekit.analysis.wording import Ranged, ranged, times

_CHANCE: Final = 0.5


def failing(case: Case) -> Iterator[Claim]:
    """Yield which labeling finds the questions that fail, and one score per question beside it."""
    # What nothing bounds is described and claims nothing, so it stands last. Ties go by name, so that no order of files
    # decides.
    unbounded = case.panel.unbounded
    ranked = sorted(
        case.series(FIND_QUESTIONS),
        key=lambda each: (each.name in unbounded, -each.estimate.value("concordance"), each.name),
    )
    if not ranked:
        return
    # Each interval alone leaves half of its error below; of many labelings the best one is looked at.
    alone = 2 * case.rules.of(len(ranked)) - 1
    twins = {control.name: control for control in case.controls(FIND_QUESTIONS)}
    for series in ranked:
        value = _ranged(case, series)
        open_ = series.name in unbounded
        how_often = times(value.value) if open_ else ranged(value, times)
        said = f"{series.name} finds {case.worse_one} {how_often} times in 100"
        if open_:
            said += " where its scores are known, and nothing bounds the others"
        shown = not open_ and series.ranged("concordance", alone, case.resamples).low > _CHANCE
        claim = Claim(FINDS, f"Of two questions, {said}.", series.name, "chance", *value, shown=shown)
        if series is not ranked[0]:
            yield claim
        elif shown:
            twin = twins.get(TWIN + series.name)
            beside = (
                "" if twin is None else f"; one score per question finds it {ranged(_ranged(case, twin), times)} times"
            )
            yield replace(claim, sentence=f"Of two questions, {said}{beside}.", line="Failing")
        else:
            none = f"No labeling is shown to find the questions that fail: of two questions, {said}."
            yield replace(claim, sentence=none, subject="", against=series.name, line="Failing")
    for finder, other in case.leads(FIND_QUESTIONS, ranked).shown:
        said = f"{finder} is shown to find more of the questions that fail than {other}."
        yield Claim("finds more", said, finder, other, shown=True)


def _ranged(case: Case, series: Series) -> Ranged:
    if series.name in case.panel.unbounded:
        return Ranged(series.estimate.value("concordance"))
    return series.ranged("concordance", case.rules.confidence, case.resamples)


ON_QUESTIONS_THAT_FAIL: Final = (failing,)
"""What `decision` asks for claims, in this order: a new finding of this module is one function more."""
