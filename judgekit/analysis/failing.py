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


def failing(case: Case) -> Iterator[Claim]:
    """Yield which labeling finds the questions that fail, and how one score per question does."""
    ranked = case.finders
    if not ranked:
        return
    measure = case.primary.measure
    unshown = [follower.name for follower in case.followers if not follower.useful]
    unfit = [follower.name for follower in case.followers if case.why_left_out(follower)]
    twins = {control.name: control for control in case.controls(FIND_QUESTIONS)}
    for series in ranked:
        value = _ranged(case, series)
        open_ = series.name in case.panel.unbounded
        how_often = times(value.value) if open_ else ranged(value, times)
        said = f"of two questions, {series.name} finds {case.worse_one} {how_often} times in 100"
        if open_:
            said += " where its scores are known, and nothing bounds the others"
        shown = case.finds(series)
        claim = Claim(FINDS, f"O{said[1:]}; chance finds 50.", series.name, "chance", *value, shown=shown)
        if series is not ranked[0]:
            yield claim
        elif shown:
            sort = f"sort them by their {series.name} score ({measure}), lowest first"
            sentence = f"To find questions that fail, {sort}: {said} (chance: 50)."
            if series.name in unfit:
                sentence += " Use this score only to sort the questions of one run: do not compare runs by it."
            elif series.name in unshown:
                sentence += (
                    " Use this score only to sort the questions of one run: it is not shown to tell the better run."
                )
                if case.kept is None and series.name not in case.free:
                    sentence += f" The {series.name} labels that you have will do: buy none for this."
            twin = twins.get(TWIN + series.name)
            if twin is not None:
                # The question-only twin: the labels of all its documents.
                often = ranged(_ranged(case, twin), times)
                sentence += f" The mean of all {series.name} labels of a question, one score for all runs, finds it"
                fewer = (series.name, twin.name) in case.leads(FIND_QUESTIONS, [series, twin]).shown
                shown_fewer = "shown to be fewer" if fewer else "not shown to be fewer: it may do as well"
                sentence += f" {often} times, which is {shown_fewer}."
            yield replace(claim, sentence=sentence, line="Failing")
        else:
            none = f"No labeling is shown to find the questions that fail: {said}; chance finds 50."
            yield replace(claim, sentence=none, subject="", against=series.name, line="Failing")
    for finder, other in case.leads(FIND_QUESTIONS, ranked).shown:
        said = f"{finder} is shown to find more of the questions that fail than {other}."
        yield Claim("finds more", said, finder, other, shown=True)


def _ranged(case: Case, series: Series) -> Ranged:
    if series.name in case.panel.unbounded:
        return Ranged(series.estimate.value("concordance"))
    return series.ranged("concordance", case.rules.confidence, case.resamples)


ON_QUESTIONS_THAT_FAIL: Final = (failing,)
"""The functions that `decision` calls for claims, in order; a new finding is one more function."""
