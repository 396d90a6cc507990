"""Which labeling finds the questions that fail: of two questions, does the worse answered one score lower?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from judgekit.analysis.background import CLOSED_BOOK, LENGTH, RETRIEVER, TWIN
from judgekit.analysis.case import Case, Series
from judgekit.analysis.claims import Claim
from judgekit.analysis.keeping import is_kin, shared_in_words
from judgekit.analysis.primary import FIND_QUESTIONS
from judgekit.analysis.wording import Ranged, names_of, ranged, times

FINDS: Final = "finds"
_CHANCE: Final = 0.5
_CONTROLS: Final = {
    CLOSED_BOOK: "answers without documents",
    RETRIEVER: "the runs' own ranks",
    LENGTH: "the length of documents",
}


def failing(case: Case) -> Iterator[Claim]:
    """Yield which labeling finds the questions that fail, and one score per question beside it."""
    ranked = sorted(case.series(FIND_QUESTIONS), key=lambda each: (-each.estimate.value("concordance"), each.name))
    if not ranked:
        return
    # Each interval alone leaves half of its error below; of many labelings the best one is looked at.
    alone = 2 * case.rules.of(len(ranked)) - 1
    twins = {control.name: control for control in case.controls(FIND_QUESTIONS)}
    for series in ranked:
        value = _ranged(case, series)
        said = f"{series.name} finds the worse answered one {ranged(value, times)} times in 100"
        shown = series.ranged("concordance", alone, case.resamples).low > _CHANCE
        claim = Claim(FINDS, f"Of two questions, {said}.", series.name, "chance", *value, shown=shown)
        if series is not ranked[0]:
            yield claim
        elif shown:
            twin = twins.get(TWIN + series.name)
            beside = "" if twin is None else f"; one score per question {ranged(_ranged(case, twin), times)}"
            yield replace(claim, sentence=f"Of two questions, {said}{beside}.", line="Failing")
        else:
            none = f"No labeling is shown to find the questions that fail: of two questions, {said}."
            yield replace(claim, sentence=none, subject="", against=series.name, line="Failing")
    for finder, other in case.leads_in_concordance(ranked).shown:
        said = f"{finder} is shown to find more of the questions that fail than {other}."
        yield Claim("finds more", said, finder, other, shown=True)


def _ranged(case: Case, series: Series) -> Ranged:
    return series.ranged("concordance", case.rules.confidence, case.resamples)


def beside_failing(case: Case) -> Iterator[Claim]:
    """Yield the controls of finding questions, what labelings share with the outcome, and labelings left out."""
    labelings = case.series(FIND_QUESTIONS)
    unbeaten: dict[str, list[str]] = {}
    for control in case.controls(FIND_QUESTIONS):
        value, of_labeling = _ranged(case, control), control.name.removeprefix(TWIN)
        is_twin = of_labeling != control.name
        what = f"one score per question of {of_labeling}" if is_twin else _CONTROLS.get(control.name, control.name)
        if not np.isfinite(value.value):
            yield Claim("control", f"A control, {what}, says nothing: it is constant.", control.name, FIND_QUESTIONS)
            continue
        said = f"A control, {what}, finds the worse answered of two questions {ranged(value, times)} times in 100."
        yield Claim("control", said, control.name, FIND_QUESTIONS, *value)
        for labeling in labelings:
            if is_twin and labeling.name != of_labeling:
                continue  # another labeling's twin is not held against it
            if (labeling.name, control.name) not in case.leads_in_concordance([labeling, control]).shown:
                unbeaten.setdefault(labeling.name, []).append("one score per question" if is_twin else what)
    for name, beside in unbeaten.items():
        said = f"{name} is not shown to find more of them than {names_of(beside, 'or')}."
        yield Claim("no better", said, name, names_of(beside, "or"), qualifies=f"{FINDS}: {name}")
    for labeling in labelings:
        if is_kin(case, labeling.name):
            said = f"{labeling.name} {shared_in_words(case, labeling.name)}."
            yield Claim("shares", said, labeling.name, qualifies=f"{FINDS}: {labeling.name}")
    for name, why in case.excluded(FIND_QUESTIONS).items():
        yield Claim("excluded", f"{name} takes no part: {why}.", name, qualifies=FINDS)
