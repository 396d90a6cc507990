"""Controls, which ignore the question, beside the labelings of a use: which labelings are not shown to do better?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from judgekit.analysis.background import CLOSED_BOOK, LENGTH, RETRIEVER, TWIN
from judgekit.analysis.case import COEFFICIENT, Case
from judgekit.analysis.claims import Claim
from judgekit.analysis.keeping import CHEAPER, FINDS, KEEP, offered, ranks_label_no_other_run
from judgekit.analysis.primary import CHOOSE_RUNS
from judgekit.analysis.wording import names_of, ranged, times, with_r

_WORDS: Final = {
    CLOSED_BOOK: "answers without documents",
    RETRIEVER: "the runs' own ranks",
    LENGTH: "the length of documents",
}


def controls(case: Case, use: str) -> Iterator[Claim]:
    """Yield how well each control does, which labelings are not shown to do better, and which are left out."""
    labelings, choosing = case.series(use), use == CHOOSE_RUNS
    unbeaten: dict[str, list[str]] = {}
    for control in case.controls(use):
        value = control.ranged(COEFFICIENT[use], case.rules.confidence, case.resamples)
        of_labeling = control.name.removeprefix(TWIN)
        is_twin = of_labeling != control.name
        words = (
            f"the mean of all {of_labeling} labels of a question" if is_twin else _WORDS.get(control.name, control.name)
        )
        # If all lists are equally long, length is constant.
        if not np.isfinite(value.value):
            yield Claim("control", f"A control, {words}, says nothing: it is constant.", control.name, use)
            continue
        if choosing:
            said = f"follows {case.target} with {with_r(value)}"
        else:
            said = f"finds {case.worse_one} of two questions {ranged(value, times)} times in 100"
        yield Claim("control", f"A control, {words}, {said}.", control.name, use, *value)
        for labeling in labelings:
            if is_twin and labeling.name != of_labeling:
                continue  # another labeling's twin is not held against it
            # A tie counts for the control, which costs nothing.
            if (labeling.name, control.name) not in case.leads(use, [labeling, control]).shown:
                short = words
                if choosing:
                    short = f"{words} ({with_r(value).replace(' (', ', ').rstrip(')')})"
                elif is_twin:
                    short = "the mean of all its labels of a question"
                if is_twin and labeling is case.finders[0] and case.finds(labeling):
                    # The sentence of the labeling that finds most of them compares it with this score.
                    said = f"{labeling.name} is not shown to find more of them than {short}."
                    yield Claim("no better", said, labeling.name, short)
                else:
                    unbeaten.setdefault(labeling.name, []).append(short)
    other, close = offered(case)
    if choosing and _names_ranks(case, unbeaten):
        yield ranks_label_no_other_run(case)
    for name, beside in unbeaten.items():
        does = "follow more closely than" if choosing else "find more of them than"
        # It stands with what recommends the labeling.
        stands = FINDS
        if choosing:
            stands = CHEAPER if close and other is not None and name == other.name else KEEP
        doubt = f"is not shown to {does} {names_of(beside, 'or')}"
        kept = choosing and case.kept is not None and case.kept.name == name
        if kept and name in case.free and not case.exists_already(name):
            # First what to do, since a reader who meets a doubt first asks whether to keep the labels at all.
            said = f"Screen new runs by {name}, but check their answers before you ship one: it {doubt}."
        elif kept:
            said = f"Caution: {name} {doubt}."
        else:
            said = f"{name} {doubt}."
        yield Claim("no better", said, name, names_of(beside, "or"), qualifies=f"{stands}: {name}")
    if labelings or choosing:
        for name, why in case.excluded(use).items():
            yield Claim("excluded", f"{name} is left out: {why}.", name, qualifies=KEEP if choosing else FINDS)


def _names_ranks(case: Case, unbeaten: Mapping[str, Sequence[str]]) -> bool:
    """Return whether the decision names the runs' own ranks beside the labeling to keep, or in its place."""
    rival = case.verdict.rival
    if rival is not None and rival.name == RETRIEVER:
        return True
    beside = unbeaten.get(case.kept.name, ()) if case.kept is not None else ()
    return any(said.startswith(_WORDS[RETRIEVER]) for said in beside)
