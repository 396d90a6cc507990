"""Which labeling finds the questions that fail: of two questions, does the worse answered one score lower?"""

from __future__ import annotations

from collections.abc import Iterator
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
    shown = {each.name: _ranged(case, each) for each in ranked}
    # Each interval alone leaves half of its error below; of many labelings the best one is looked at.
    alone = 2 * case.rules.of(len(ranked)) - 1
    first = ranked[0]
    value = shown[first.name]
    guides = first.ranged("concordance", alone, case.resamples).low > _CHANCE
    twin = next((each for each in case.controls(FIND_QUESTIONS) if each.name == TWIN + first.name), None)
    if guides:
        said = f"Of two questions, {first.name} finds the worse answered one {ranged(value, times)} times in 100"
        beside = "" if twin is None else f"; one score per question {ranged(_ranged(case, twin), times)}"
        yield Claim(FINDS, f"{said}{beside}.", first.name, "chance", *value, shown=True, line="Failing")
    else:
        said = (
            "No labeling is shown to find the questions that fail: of two questions,"
            f" {first.name} finds the worse answered one {ranged(value, times)} times in 100."
        )
        yield Claim(FINDS, said, against=first.name, value=value.value, low=value.low, high=value.high, line="Failing")
    for each in ranked[1:]:
        value = shown[each.name]
        said = f"Of two questions, {each.name} finds the worse answered one {ranged(value, times)} times in 100."
        low = each.ranged("concordance", alone, case.resamples).low
        yield Claim(FINDS, said, each.name, "chance", *value, shown=low > _CHANCE)
    for one, other in case.leads_in_concordance(ranked).shown:
        yield Claim(
            "finds more",
            f"{one} is shown to find more of the questions that fail than {other}.",
            one,
            other,
            shown=True,
        )


def _ranged(case: Case, series: Series) -> Ranged:
    return series.ranged("concordance", case.rules.confidence, case.resamples)


def beside_failing(case: Case) -> Iterator[Claim]:
    """Yield the controls of finding questions, what labelings share with the outcome, and labelings left out."""
    series = case.series(FIND_QUESTIONS)
    unbeaten: dict[str, list[str]] = {}
    for control in case.controls(FIND_QUESTIONS):
        value, twin_of = _ranged(case, control), control.name.removeprefix(TWIN)
        what = (
            f"one score per question of {twin_of}"
            if twin_of != control.name
            else _CONTROLS.get(control.name, control.name)
        )
        if not np.isfinite(value.value):
            yield Claim("control", f"A control, {what}, says nothing: it is constant.", control.name, FIND_QUESTIONS)
            continue
        said = f"A control, {what}, finds the worse answered of two questions {ranged(value, times)} times in 100."
        yield Claim("control", said, control.name, FIND_QUESTIONS, *value)
        for each in series:
            # Another labeling's twin is not held against it.
            mine = twin_of in (control.name, each.name)
            if mine and (each.name, control.name) not in case.leads_in_concordance([each, control]).shown:
                against = what if twin_of == control.name else "one score per question"
                unbeaten.setdefault(each.name, []).append(against)
    for name, beside in unbeaten.items():
        said = f"{name} is not shown to find more of them than {names_of(beside, 'or')}."
        yield Claim("no better", said, name, names_of(beside, "or"), qualifies=f"{FINDS}: {name}")
    for each in series:
        if is_kin(case, each.name):
            said = f"{each.name} {shared_in_words(case, each.name)}."
            yield Claim("shares", said, each.name, qualifies=f"{FINDS}: {each.name}")
    for name, why in case.excluded(FIND_QUESTIONS).items():
        yield Claim("excluded", f"{name} takes no part: {why}.", name, qualifies=FINDS)
