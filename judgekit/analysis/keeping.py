"""Which labels to keep for later runs: one rule, what qualifies it, and what else is known of each labeling.

The rule (`Case.eligible`): leave out labelings whose own pick is shown to be worse by the answers, that are shown to
flatter their pick, or that mislead; of the rest, keep the one with the largest r, unless what costs nothing follows
about as closely (`judgekit.analysis.rivals`). A price says nothing about accuracy, so it orders only labelings that
follow equally well. But it says whether labels are worth buying at all: who can answer a further run for no more than
its labels take should answer it.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from typing import Final

import numpy as np

from judgekit.analysis.background import LENGTH, RETRIEVER
from judgekit.analysis.case import HELPS, MISLEADS, NOT_SHOWN, PICKS_A_WORSE_ONE, Case, Follower
from judgekit.analysis.claims import BASED_ON, Claim, about_all
from judgekit.analysis.costs import further_run
from judgekit.analysis.follow import pooled_correlation
from judgekit.analysis.leakage import MARKS_ITSELF, kinship, shared
from judgekit.analysis.power import WORTH_ASKING, questions_to_show
from judgekit.analysis.primary import CHOOSE_RUNS
from judgekit.analysis.rankings import over_present
from judgekit.analysis.resampling import interval
from judgekit.analysis.wording import (
    Ranged,
    correlation,
    names_of,
    plural,
    points,
    ranged,
    rounded,
    some_of,
    times,
    with_r,
)

KEEP: Final = "keep"
CHEAPER: Final = "cheaper"
LEFT_OUT: Final = "left out"
FINDS: Final = "finds"
BIASES: Final = ("shares", LEFT_OUT, "flatters", "unlisted", "reranked")
"""Kinds of claims that say how the labels of their subject are biased."""
_VARIANTS: Final = "variants of yours, such as another chunk size, depth or reranker"


def keeping(case: Case) -> Iterator[Claim]:
    """Yield which labels to keep, whether they are worth buying for further runs, and which less expensive ones are."""
    if case.background.incomparable:
        yield Claim(KEEP, f"No labeling is compared. {case.background.incomparable}", line="Keep")
        return
    if not case.followers:
        yield Claim(KEEP, "No labeling can be compared for choosing between the runs.", line="Keep")
        return
    kept = case.kept
    if case.verdict.nothing:
        yield from _nothing_yet(case)
        return
    if kept is None:
        # An r that is not shown to be above 0 recommends nothing.
        yield _none(case)
        return
    further = further_run(case, kept.name)
    buy = further is None or not further.unit or further.labels_pay
    if not buy:
        first = f"Keep the labels of {kept.name} that you have"
    elif case.exists_already(kept.name):
        # Labels that exist cannot be asked for the new documents of a later run.
        first = f"Keep {kept.name} for these runs"
    else:
        first = f"Keep {kept.name}, for later runs too"
    reader = " of this model" if _shared_in_words(case, kept.name) == MARKS_ITSELF else ""
    name = "it" if buy else kept.name
    sentence = f"{first}: {name} follows {case.target}{reader} most closely, with {with_r(kept.r)}."
    if case.verdict.stopped:
        sentence = f"{first}: {name} is free, and follows {case.target}{reader} with {with_r(kept.r)}."
    sentence += _beside_rival(case)
    yield Claim(KEEP, sentence, kept.name, **kept.r._asdict(), shown=True, line="Keep", rank=1)
    if further is not None and not buy:
        more = "no more" if further.by_answers <= further.by_labels else "hardly more"
        said = f"For a new run, answer its questions: that costs {more} than labelling it."
        if further.pays_below >= 1:
            fewer = rounded(further.pays_below, down=True)
            said += f" Label it instead if fewer than about {fewer:,} of its passages have no label yet: that is"
            said += " clearly cheaper."
        yield Claim("answer instead", said, kept.name, shown=True, qualifies=KEEP, rank=-1)
    yield from _cheaper(case, kept, buy=buy)


def _beside_rival(case: Case) -> str:
    """Return how the paid labeling with the largest r compares with its best free rival; "" where there is none."""
    found = case.verdict
    if found.paid is None or found.rival is None:
        return ""
    lead = _lead(case, found.paid, found.rival)
    ahead = ranged(lead, correlation, without=case.no_interval())
    name = found.paid.name
    if not found.stopped:
        given = ", given with the data" if case.exists_already(found.rival.name) else ""
        said = f" Its r is {ahead} above that of {_in_words(found.rival)} (free{given})."
        if not lead.low > 0:
            said += f" This lead may be chance, but it is more than one standard error: enough to keep {name}."
        return said
    if lead.value <= 0:
        return f" {name}, the best that costs something, has no larger r: {ranged(found.paid.r, correlation)}."
    said = f" {name}, the best that costs something, has an r only {ahead} higher"
    return f"{said}: at most one standard error, too little to pay for."


def _lead(case: Case, paid: Follower, rival: Follower) -> Ranged:
    """Return the lead in r of the paid labeling; between labelings by the bound that holds for all of them."""
    compared = [follower.series for follower in case.followers]
    if rival.name in case.background.controls:
        compared = [paid.series, rival.series]
    return case.leads(CHOOSE_RUNS, compared).of(paid, rival)


def _nothing_yet(case: Case) -> Iterator[Claim]:
    """Yield that no labels need be bought, since a control follows about as closely as the best of them."""
    paid, rival = case.verdict.paid, case.verdict.rival
    if paid is None or rival is None:
        return
    lead = _lead(case, paid, rival)
    words = _in_words(rival)
    verb = "reach" if words in _PLURAL else "reaches"
    said = (
        f"Buy none of these labels yet: {paid.name} follows {case.target} most closely of those that cost something,"
        f" with {with_r(paid.r)}, but {words}, which {'are' if words in _PLURAL else 'is'} free, {verb}"
        f" {ranged(rival.r, correlation)}."
    )
    ahead = ranged(lead, correlation, without=case.no_interval())
    if lead.high < 0:
        said += f" {paid.name} is shown to follow less closely: its lead is {ahead}."
    else:
        said += f" The lead of {paid.name}, {ahead}, is not shown."
    yield Claim(KEEP, said, against=paid.name, **lead._asdict(), shown=True, line="Keep", rank=1)
    if rival.name != RETRIEVER:
        yield Claim("answer instead", f"To judge a new run, {_judge(case)}.", paid.name, shown=True, qualifies=KEEP)


def ranks_label_no_other_run(case: Case) -> Claim:
    """Return what the runs' own ranks cannot do, which stands wherever they are named."""
    said = "The runs' own ranks cannot label a run that differs from all of these"
    # Where a labeling is kept, it labels such a run.
    nothing = case.kept is None
    said += f": {_judge(case)}." if nothing else "."
    return Claim("ranks", said, RETRIEVER, shown=True, qualifies=KEEP if nothing else "", rank=3)


def _judge(case: Case) -> str:
    return "let people judge its new passages" if case.background.quality else "answer its questions"


_IN_WORDS: Final = {RETRIEVER: "the runs' own ranks", LENGTH: "the length of documents"}
_PLURAL: Final = ("the runs' own ranks",)


def _in_words(rival: Follower) -> str:
    return _IN_WORDS.get(rival.name, rival.name)


def _none(case: Case) -> Claim:
    by_judgments = bool(case.background.quality)  # there are no answers: existing labels are the outcome
    if not case.eligible:
        fault = _same_fault(case)
        said = f"Do not use these labels to choose between runs{fault}{'. Compare' if fault else ': compare'}"
        said += " runs by their answers, new runs too."
        if case.finders and case.finds(case.finders[0]):
            said += f" Keep the {case.finders[0].name} labels only to find failing questions within a run."
        if by_judgments:
            said = f"Keep the judgments that you have: no other labeling follows {case.target}."
        return Claim(KEEP, said + _free_qrels(case), line="Keep", rank=1)
    first = case.eligible[0]
    said = f"Do not choose runs by these labels yet: none is shown to follow {case.target}."
    said += f" {first.name} comes closest, with {with_r(first.r, case.no_interval(first.name))}."
    said += _until_shown(case, first)
    if by_judgments:
        said += " Keep the judgments that you have."
    else:
        said += " Until then, buy no labels and compare runs by their answers."
    return Claim(KEEP, said + _free_qrels(case), against=first.name, **first.r._asdict(), line="Keep", rank=1)


def _same_fault(case: Case) -> str:
    """Return why no labeling is used, as the rest of a sentence, if all pick the same worse run; else ""."""
    reasons = {case.why_left_out(follower) for follower in case.followers}
    # What is said of reversed scores stands with the sentence of each labeling, and other first sentences of the line
    # have no place for a reason.
    reversed_ones = any(follower.name in case.directions.reverse for follower in case.followers)
    if len(reasons) != 1 or reversed_ones or case.background.quality or case.background.incomparable:
        return ""
    (why,) = reasons
    if not why.startswith(PICKS_A_WORSE_ONE):
        return ""
    picks = {1: "picks", 2: "both pick"}.get(len(case.followers), "all pick")
    return f": {names_of([follower.name for follower in case.followers])} {picks}{why.removeprefix(PICKS_A_WORSE_ONE)}"


def _until_shown(case: Case, follower: Follower) -> str:
    """Return how many questions would show an r that is not shown yet, and where more runs help instead."""
    said = ""
    needed = math.nan
    if not math.isnan(follower.r.low):
        telling = follower.series.estimate.telling
        behind = case.resamples.questions(case.scored)
        needed = questions_to_show(follower.r, behind, telling, case.rules.of(len(case.followers)))
        said = f" If its r stays at that, it takes about {rounded(needed):,} questions in all to show that"
        said += f" {follower.name} follows {case.target}."
    if len(case.panel.runs) == 2:
        said += f" Two runs seldom suffice: add {_VARIANTS}."
    elif needed > WORTH_ASKING * case.questions:
        said += f" More runs show it sooner: add {_VARIANTS}."
    return said


def _free_qrels(case: Case) -> str:
    """Return what labels that cost nothing are good for, with the command that writes them; "" where there are none."""
    background = case.background
    free = [series for series in case.finders if series.name in case.free and not case.exists_already(series.name)]
    if not free or not background.file:
        return ""
    name = free[0].name
    command = f"`judgekit build {shlex.quote(background.file)} --labeling {shlex.quote(name)}`"
    if case.finds(free[0]):
        return (
            f" For finding questions that fail, {name} is free and shown to work: {command} writes its labels (qrels)."
        )
    return f" For a first look at which passages are relevant, {name} is free: {command} writes its labels (qrels)."


def _shared_in_words(case: Case, name: str) -> str:
    """Return what a labeling shares with the outcome, as the rest of a sentence."""
    need = case.background.needs.get(name)
    return "" if need is None else shared(need, case.background.answering.get(case.panel.model), case.panel.metric)


def offered(case: Case) -> tuple[Follower | None, bool]:
    """Return the labeling that costs least, and whether it follows about as closely as the one to keep."""
    kept, prices, questions = case.kept, case.prices, case.questions
    if kept is None or kept.name not in prices:
        return None, False
    cheaper = []
    for other in case.eligible:
        # The free rival stands in the sentence of the labeling to keep.
        if case.verdict.rival is not None and other.name == case.verdict.rival.name:
            continue
        if other.useful and other.name in prices and prices[other.name].below(prices[kept.name], questions):
            cheaper.append(other)
    close = [other for other in cheaper if case.within_one_error(kept.series, other.series)]
    # Of those that nothing undercuts, the one that follows most closely is named.
    for other in close or cheaper:
        if not any(prices[rival.name].below(prices[other.name], questions) for rival in close or cheaper):
            return other, bool(close)
    return None, False


def _cheaper(case: Case, kept: Follower, *, buy: bool) -> Iterator[Claim]:
    """Yield the labeling that costs least, and what it saves."""
    other, close = offered(case)
    if other is None:
        return
    saved = case.prices[other.name].saved(case.prices[kept.name], case.questions)
    needs = [f"{'fewer' if amount > 0 else 'no'} {name}" for name, amount in saved.items()]
    costs = "costs less" if "money" in saved else f"needs {names_of(needs)}"
    lead = case.leads(CHOOSE_RUNS, [follower.series for follower in case.followers]).of(kept, other)
    gap = ranged(lead, correlation, " lower", without=case.no_interval())
    if close:
        further = further_run(case, other.name)
        too = ", also for new runs" if not buy and further is not None and further.labels_pay else ""
        said = f"To save {names_of([*saved])}, keep {other.name} instead{too}: it {costs}, and its r is {gap}."
    else:
        chance = "" if lead.low > 0 else ", which may be chance"
        said = f"{other.name} {costs}, but its r is {gap}{chance}."
    yield Claim(
        kind=CHEAPER,
        sentence=said,
        subject=other.name,
        against=kept.name,
        value=-lead.value,
        low=-lead.high,
        high=-lead.low,
        shown=close,
        qualifies=KEEP,
        rank=2,
    )


def left_out(case: Case) -> Iterator[Claim]:
    """Yield the labelings that the rule leaves out."""
    fault = _same_fault(case)
    for follower in case.followers:
        why = case.why_left_out(follower)
        if why:
            said = f"Do not choose runs by {follower.name}: {why}."
            # Where all are left out for one reason, the first sentence of the line gives it.
            line = "" if fault else "Keep"
            yield Claim(LEFT_OUT, said, follower.name, names_of(follower.picks), shown=True, line=line, rank=4)


def without_use(case: Case) -> Iterator[Claim]:
    """Yield what else speaks against labelings: scores that tell no runs apart, and where none is used an r below 0."""
    for follower in case.followers:
        name, r = follower.name, follower.r
        if follower.name in case.panel.unbounded or case.why_left_out(follower):
            continue
        alike = _scores_all_alike(case, follower)
        if alike:
            said = f"{name} tells no runs apart: it scores them alike on every question."
        elif r.value <= 0 and not case.eligible:
            said = f"{name} does not follow {case.target}: {with_r(r, case.no_interval(name))}."
        else:
            continue
        yield Claim("no use", said, name, **r._asdict(), shown=alike, line="Keep", rank=4)


def _scores_all_alike(case: Case, follower: Follower) -> bool:
    scores, _, there = case.panel.within(follower.series.estimate.labeling)
    if not scores.size:
        return False
    present = np.ones_like(scores, bool) if there is None else there
    highest = np.where(present, scores, -np.inf).max(axis=0)
    lowest = np.where(present, scores, np.inf).min(axis=0)
    return bool((highest <= lowest).all())


def depends_on_runs(case: Case) -> Iterator[Claim]:
    """Yield the runs without which the labels to keep would not be shown to be useful."""
    panel, kept = case.panel, case.kept
    # Without one of two runs there is nothing to compare.
    if kept is None or len(panel.runs) < 3:
        return
    labeling = kept.series.estimate.labeling
    where = panel.beside(labeling).any(axis=0)
    scores, quality, there = panel.within(labeling)
    confidence = case.rules.of(len(case.followers))
    needed: list[str] = []
    for row, run in enumerate(panel.runs):
        # A weak run alone can make any labeling look useful.
        rest = np.arange(len(panel.runs)) != row
        x, y = scores[rest], quality[rest]
        if there is not None:
            x, y = over_present(x, there[rest]), over_present(y, there[rest])
        r = pooled_correlation(x, y, case.resamples.weights[where])
        units = case.resamples.units(np.flatnonzero(where)[r.telling])
        if not interval(r.value, r.draws, confidence, "fisher-t", units).low > 0:
            needed.append(run)
    if needed:
        names = some_of(needed, 6).replace(" and ", " or ")
        yield Claim(
            kind="hinge",
            sentence=f"Without {names}, {kept.name} would not be shown to follow {case.target}.",
            subject=kept.name,
            against=names_of(needed),
            qualifies=f"{KEEP}: {kept.name}",
            line="Hinges",
        )


def about_labels(case: Case) -> Iterator[Claim]:
    """Yield what a labeling shares with the outcome, and with the runs."""
    answering = case.background.answering.get(case.panel.model)
    for name, need in case.background.needs.items():
        if name not in case.panel.labelings:
            continue
        clause = _shared_in_words(case, name)
        if clause:
            limits = ""
            if clause == MARKS_ITSELF:
                # Keep says that it follows the answers of this model.
                limits = f"{FINDS}: {name}"
            elif name not in case.holding and answering is not None and kinship(need, answering):
                limits = about_all(name)
            yield Claim("shares", f"{name} {clause}.", name, qualifies=limits)
        # A run that is added later returns documents that such labels have never seen.
        if need.existing:
            said = f"{name} exists already: it cannot label new documents, and those that it does not list count as 0."
            yield Claim("unlisted", said, name, qualifies=f"{KEEP}: {name}")
        models = {endpoint.model for endpoint in need.asked}
        for run, model in case.background.reranked.items():
            if model in models and run in case.panel.runs:
                said = f"{name} asks the model that reranked {run}, and may favour it."
                yield Claim("reranked", said, name, run, qualifies=f"{KEEP}: {name}")


def kinds_that_disagree(case: Case) -> Iterator[Claim]:
    """Yield r by kind of question, and the labelings that help for one kind and mislead for another."""
    parts_of = case.of_kinds()
    parts = {kind: {follower.name: follower for follower in part.followers} for kind, part in parts_of.items()}
    for follower in case.followers:
        name = follower.name
        findings = {kind: followers[name].finding for kind, followers in parts.items() if name in followers}
        for kind in findings:
            other = parts[kind][name]
            without = parts_of[kind].no_interval(name)
            said = f"{kind} questions: {name} {_gain_in_words(other, without)}, with {with_r(other.r, without)}."
            yield Claim("by kind", said, name, kind, **other.r._asdict(), shown=other.useful)
        # A labeling that helps overall may mislead within a kind, and the other way round.
        if {HELPS, MISLEADS} <= {follower.finding, *findings.values()}:
            otherwise = [kind for kind in findings if findings[kind] not in (NOT_SHOWN, follower.finding)]
            said = f"{name} does otherwise within {names_of(otherwise)} questions: choose by kind."
            kind_of_claim = LEFT_OUT if case.why_left_out(follower) else KEEP
            stands = KEEP if _same_fault(case) else f"{kind_of_claim}: {name}"
            yield Claim("kinds", said, name, names_of(otherwise), shown=True, qualifies=stands)


def missing_labels(case: Case) -> Iterator[Claim]:
    """Yield which labels are missing, and whether claims depend on them."""
    panel = case.panel
    covered = case.resamples.questions(case.scored)
    if covered < case.questions:
        said = f"Labels are compared on {plural(covered, 'question')}: the others have no scores."
        yield Claim("unscored", said, value=covered, qualifies=KEEP, line=BASED_ON)
    lacking: dict[tuple[str, ...], list[str]] = {}
    for name, queries in panel.unbounded.items():
        lacking.setdefault(queries, []).append(name)
    for queries, names in lacking.items():
        lacks, them = ("lacks", "it") if len(names) == 1 else ("lack", "them")
        said = (
            f"{names_of(names)} {lacks} scores on {plural(len(queries), 'question')} ({some_of(queries)}), where"
            f" nothing bounds them: nothing is claimed of {them}, nor in comparison with {them}. Add these scores."
        )
        yield Claim("missing labels", said, names_of(names), value=len(queries), line="Keep", rank=5)
    cases = int(panel.asked.sum())
    for name, number in panel.unknown.items():
        if name not in panel.unbounded:
            yield _open(case, name, number, cases)
    for name, number in panel.lacking_few.items():
        if name not in case.background.controls:
            said = (
                f"{name} has no score on {number:,} of {cases:,} answers ({_share(number / cases)}): it is compared on"
                f" the others; other labelings keep all {plural(panel.compared, 'question')}."
            )
            yield Claim("few missing", said, name, value=number, shown=True, line=_beside(case, name))
    for name, number in panel.inapplicable.items():
        # Controls never win, so nothing hangs on where they are defined.
        if name not in case.background.controls:
            others = int(panel.complete(panel.labelings.index(name)).sum())
            said = (
                f"{name} has no score on {plural(number, 'question')}: labelings are compared on the other {others:,}."
            )
            yield Claim("not applicable", said, name, value=number, qualifies=KEEP, line=BASED_ON)


def _beside(case: Case, name: str) -> str:
    """Return the line of what was compared, for the labeling to keep; "" for a further finding."""
    return BASED_ON if case.kept is not None and case.kept.name == name else ""


def _share(share: float) -> str:
    return f"{100 * share:.2g} %"


def _open(case: Case, name: str, number: int, cases: int) -> Claim:
    """Return that claims of a labeling hold whatever its missing scores are, or that there are none."""
    said = (
        f"{name} lacks {number:,} of {cases:,} scores ({_share(number / cases)}): claims of it must hold whatever"
        " these are."
    )
    follower = next((each for each in case.followers if each.name == name), None)
    none = follower is not None and not (follower.useful or follower.finding != NOT_SHOWN)
    if none:
        said += " None does: ask for the missing ones again."
        return Claim("missing labels", said, name, value=number, line="Keep", rank=5)
    stands = f"{KEEP}: {name}"
    return Claim("missing labels", said, name, value=number, qualifies=stands, line=_beside(case, name))


def each_labeling(case: Case) -> Iterator[Claim]:
    """Yield for each labeling how closely it follows the answers, what choosing by it wins, and how it is biased."""
    for follower in case.followers:
        name, gain = follower.name, follower.gain
        concordance = follower.series.ranged("concordance", case.rules.confidence, case.resamples)
        said = (
            f"{name} follows {case.target} with {with_r(follower.r, case.no_interval(name))}: it puts the better run"
            f" first {ranged(concordance, times, without=case.no_interval(name))} times in 100."
        )
        yield Claim("follows", said, name, case.target, **follower.r._asdict(), shown=follower.useful)
        wins = Ranged(*(100 * number for number in gain))._asdict()
        shown = follower.finding != NOT_SHOWN
        won = _gain_in_words(follower, case.no_interval(name))
        yield Claim("gain", f"{name} {won}.", name, "a coin flip", **wins, shown=shown)
        picks = names_of(follower.picks, "or")
        yield Claim("picks", f"{name} puts {picks} first.", name, picks)
        for run, flattered in follower.biased_runs.items():
            said = f"{name} {'flatters' if flattered else 'undervalues'} {run}."
            yield Claim("flatters", said, name, run, value=1 if flattered else -1, shown=True)
    if case.followers:
        for closer, other in case.leads(CHOOSE_RUNS, [follower.series for follower in case.followers]).shown:
            said = f"{closer} is shown to follow {case.target} more closely than {other}, question by question."
            yield Claim("closer", said, closer, other, shown=True)


def _gain_in_words(follower: Follower, without: str) -> str:
    finding = "is not shown to help or to mislead" if follower.finding == NOT_SHOWN else follower.finding
    wins = ranged(follower.gain, points, " points", without=without)
    return f"{finding}: choosing by it wins {wins} over a coin flip"


ON_THE_LABELS_TO_KEEP: Final = (keeping, left_out, without_use, depends_on_runs, kinds_that_disagree, missing_labels)
ON_EACH_LABELING: Final = (each_labeling,)
"""What `decision` asks for claims, in this order: a new finding of this module is one function more."""
