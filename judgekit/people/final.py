"""Final labels: people's if there is one, else a labeling's, put on people's scale (`judgekit.people.mapping`).

Agreement with people is measured on what each side declares relevant, before any mapping. How often final labels equal
people's is measured on queries to which the rule was not fitted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pandas as pd

from judgekit.analysis.agreement import AGAINST_PEOPLE, agreement
from judgekit.collection import Collection
from judgekit.data.columns import Floats
from judgekit.data.labelings import Labeling, Scale
from judgekit.data.tables import Status, stacked
from judgekit.errors import UsageError
from judgekit.metrics import evaluate
from judgekit.people import findings
from judgekit.people.findings import Filled
from judgekit.people.mapping import Rule, columns_of, fit, matched_cut
from judgekit.people.reading import People

SHOWN: Final = ("agreement", "kappa", "precision", "recall", "mean_difference")
"""The coefficients of agreement to show."""
FINAL: Final = "final labels"
"""The name of agreement between final labels and people's, on people's scale."""

TENTHS: Final = 10
"""A final grade's gain is written in tenths, since qrels hold whole numbers."""
_FOLDS: Final = 5
_PAIR: Final = ["query_id", "doc_id"]
_AGREEMENT: Final = ["first", "on", "coefficient", "value", "ci_low", "ci_high", "pairs", "undefined_reason"]


@dataclass(frozen=True)
class FinalLabels:
    """The final labels of a pool.

    Attributes:
        labeling: the labels; with people's labels, on people's scale.
        rule: the rule that made them from the labeling's values; None without people.
        table: the rows of the labels table with further columns: ``gain`` (the label's value on the scale, not
            rounded), ``source`` (``people`` or the file of their earlier judgments, the labeling's name, or "" for a
            missing label), ``machine`` (the labeling's value) and ``confidence`` (how often people give this label on
            held-out queries where it is the final one; 1 for people's own labels, NaN if unknown).
        agreement: agreement with people, as in `judgekit.agree`: on ``relevance`` as each side declares it, on
            ``labels`` if both have the same scale, and on ``final labels`` of held-out queries if these say more; empty
            without people.
        judged: number of pairs that both people and the labeling labelled.
        filled: number of questions with a relevant document; None without people.
        sentences: a description of the labels.
        notes: warnings for a reader.
    """

    labeling: Labeling
    rule: Rule | None
    table: pd.DataFrame
    agreement: pd.DataFrame
    judged: int
    filled: Filled | None
    sentences: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def gains(self) -> Labeling | None:
        """The gains of final grades in tenths; None if rounding changed nothing."""
        scale = self.labeling.scale
        if self.rule is None or scale.kind != "grades":
            return None
        low, high, least = (TENTHS * int(grade) for grade in (scale.low, scale.high, scale.threshold))
        rows = self.table[[*_PAIR, "status"]].assign(relevance=(TENTHS * self.table["gain"]).round())
        return Labeling("final-gains", Scale("grades", high, low, least), rows)


def final_labels(machine: Labeling, people: People | None, *, seed: int = 1) -> FinalLabels:
    """Return the final labels of all pairs that a labeling labelled or people judged."""
    own = machine.table[[*_PAIR, "relevance", "status"]].rename(columns={"relevance": "machine"})
    if people is None:
        return _as_declared(machine, own)
    scale = people.labeling.scale
    labels = people.labeling.table
    labels = labels.loc[labels["status"] == Status.OK.value, [*_PAIR, "relevance"]]
    labels = labels.rename(columns={"relevance": "people"}).merge(people.asked[[*_PAIR, "probability"]], on=_PAIR)
    both = labels.merge(own[own["machine"].notna()], on=_PAIR)
    if both.empty and (people.design or _kind(machine.scale) != _kind(scale)):
        raise UsageError(
            f"no pair has labels by people and by {machine.name}, so nothing puts {machine.name}'s labels on people's"
            f" scale {scale}: judge passages of the pool"
        )
    whole = _judged_whole(own, labels)
    # Judgments from elsewhere often cover relevant passages only, so only complete questions show people's share.
    counted = both if people.design else both[both["query_id"].isin(whole)]
    rule = _fitted(both, counted, machine.scale, scale)
    both["held"] = held_out(both, counted, machine.scale, scale)
    table = own.merge(labels[[*_PAIR, "people"]], on=_PAIR, how="outer")
    mapped, by_people = rule(table["machine"].to_numpy()), table["people"].notna()
    table["relevance"] = np.where(by_people, table["people"], mapped)
    table["gain"] = np.where(by_people, table["people"], rule.gain(table["machine"].to_numpy()))
    table["status"] = table["status"].where(~by_people, Status.OK.value)
    table["source"] = np.where(by_people, people.labeling.name, np.where(np.isnan(mapped), "", machine.name))
    known = both[both["held"].notna()]
    share = pd.Series(dtype=float)
    if scale.integral:
        share = (known["held"] == known["people"]).groupby(known["held"]).mean()
    table["confidence"] = np.where(by_people, 1.0, table["relevance"].map(share))
    table = table.sort_values(_PAIR, ignore_index=True)
    filled = _filled(table, both, whole, rule, machine.scale)
    agreed = _agreement(machine, both, scale, seed)
    return FinalLabels(
        labeling=Labeling("final", scale, table[[*_PAIR, "relevance", "status"]]),
        rule=rule,
        table=table,
        agreement=agreed,
        judged=len(both),
        filled=filled,
        sentences=(
            findings.relevance(machine, rule, counted, scale),
            *findings.gains(machine.name, rule, both),
            str(filled),
            *findings.agreeing(machine.name, agreed),
        ),
        notes=(
            *findings.of_existing(people),
            *findings.misfits(machine.name, known, mapped, scale),
            *findings.apart(machine.name, rule, both[both["query_id"].isin(whole)], scale),
        ),
    )


def _kind(scale: Scale) -> tuple[str, int, int]:
    return scale.kind, scale.low, scale.high


def _judged_whole(own: pd.DataFrame, labels: pd.DataFrame) -> set[str]:
    """Return the queries whose whole pool was labelled by people."""
    judged = own[_PAIR].merge(labels[[*_PAIR]], on=_PAIR, how="left", indicator="judged")
    whole = (judged["judged"] == "both").groupby(judged["query_id"]).all()
    return set(whole.index[whole])


def _fitted(both: pd.DataFrame, counted: pd.DataFrame, machine: Scale, scale: Scale) -> Rule:
    """Return the rule fitted to people's labels; ``counted`` are the pairs that show which share is relevant."""
    values, people, weight = columns_of(counted)
    cut = matched_cut(values, people >= scale.threshold, weight, machine.threshold)
    return fit(*columns_of(both), scale, cut)


def held_out(both: pd.DataFrame, counted: pd.DataFrame, machine: Scale, scale: Scale) -> Floats:
    """Return each judged pair's final label by a rule fitted to the other queries; NaN without one."""

    # A query's fold follows from its id, so more judgments change no fold.
    def fold_of(table: pd.DataFrame) -> Floats:
        folds = [hashlib.sha256(query.encode()).digest()[0] % _FOLDS for query in table["query_id"]]
        return np.array(folds, np.float64)

    fold, fold_counted = fold_of(both), fold_of(counted)
    out = np.full(len(both), np.nan)
    for number in range(_FOLDS):
        rest, mine = both[fold != number], fold == number
        # A rule agrees best with the pairs to which it was fitted.
        if mine.any() and len(rest):
            rule = _fitted(rest, counted[fold_counted != number], machine, scale)
            out[mine] = rule(both["machine"].to_numpy()[mine])
    return out


def _filled(table: pd.DataFrame, both: pd.DataFrame, whole: set[str], rule: Rule, machine: Scale) -> Filled:
    least = rule.scale.threshold

    def holding(relevant: pd.Series) -> set[str]:
        return set(table.loc[relevant, "query_id"])

    by_people = holding(table["people"] >= least)
    found = set(both.loc[both["people"] >= least, "query_id"])
    return Filled(
        questions=table["query_id"].nunique(),
        declared=len(holding(table["machine"] >= machine.threshold)),
        final=len(holding(table["relevance"] >= least)),
        judged=len(whole),
        by_people=len(whole & by_people),
        found=len(found),
        kept=len(found & holding(table["machine"] >= rule.cut)),
    )


def _as_declared(machine: Labeling, own: pd.DataFrame) -> FinalLabels:
    table = own.assign(relevance=own["machine"], gain=own["machine"], confidence=np.nan)
    table["source"] = np.where(table["status"] == Status.OK.value, machine.name, "")
    least = machine.scale.min_rel
    cut = "no label is declared relevant"
    if least is not None:
        cut = f"relevant from {least} on, as {machine.name} declares"
    note = f"no people judged: the labels are those of {machine.name} ({cut}), of unknown accuracy"
    labeling = Labeling("final", machine.scale, table)
    agreed = pd.DataFrame(columns=_AGREEMENT)
    return FinalLabels(labeling, None, table, agreed, judged=0, filled=None, sentences=(), notes=(note,))


def agreed(people: People, machines: Mapping[str, Labeling]) -> pd.DataFrame:
    """Return the agreement of labelings with people, if any pair has both labels."""
    tables = [pd.DataFrame(columns=_AGREEMENT)]
    for labeling in machines.values():
        try:
            table = final_labels(labeling, people).agreement
        except UsageError:  # no judged pair has a label; corrected means are still possible
            continue
        tables.append(table[table["coefficient"].isin(SHOWN)])
    return stacked(tables)


def _agreement(machine: Labeling, both: pd.DataFrame, scale: Scale, seed: int) -> pd.DataFrame:
    """Return agreement with people on relevance and labels as declared, and on final labels if these say more."""
    name = machine.name if machine.name != "people" else "people (labeling)"

    def compared(ours: pd.Series, theirs: pd.Series, on: Scale) -> pd.DataFrame:
        sides = [
            Labeling(side, on, both.loc[ours.notna(), _PAIR].assign(relevance=labels[ours.notna()].astype(np.float64)))
            for side, labels in ((name, ours), ("people", theirs))
        ]
        return agreement(sides, people=["people"], seed=seed).table

    if both.empty:
        return pd.DataFrame(columns=_AGREEMENT)
    declared = both["machine"] >= machine.scale.threshold
    relevant = both["people"] >= scale.threshold
    tables = [compared(declared, relevant, Scale("binary"))]
    if machine.scale == scale and scale.kind != "binary":
        graded = compared(both["machine"], both["people"], scale)
        tables.append(graded[graded["on"] == "labels"])
    final = both["held"] if scale.integral else (both["held"] >= scale.threshold).where(both["held"].notna())
    theirs = both["people"] if scale.integral else relevant
    if final.notna().any() and not (final == declared).all():
        on = scale if scale.integral else Scale("binary")
        table = compared(final, theirs, on)
        # Relevance is reported as declared; final labels are reported on people's scale.
        kept = "relevance" if on.kind == "binary" else "labels"
        tables.append(table[(table["on"] == kept) & ~table["coefficient"].isin(AGAINST_PEOPLE)].assign(on=FINAL))
    return stacked(tables)


def ndcg_of_runs(collection: Collection, final: FinalLabels) -> list[tuple[str, float, float]]:
    """Return each run's nDCG at the depth, by the gains and by the rounded labels."""
    scale = final.labeling.scale
    rows = final.table[[*_PAIR, "status"]]
    labelings = [
        Labeling("gains", replace(scale, kind="means"), rows.assign(relevance=final.table["gain"])),
        Labeling("rounded", scale, rows.assign(relevance=final.table["relevance"])),
    ]
    measure = f"nDCG@{collection.depth}"
    made = evaluate(
        list(collection.runs), labelings, [measure], query_ids=[*collection.queries], depth=collection.depth
    )
    by_run = {(mean.labeling, mean.run): mean.value for mean in made.summary}
    return [(run.name, by_run["gains", run.name], by_run["rounded", run.name]) for run in collection.runs]
