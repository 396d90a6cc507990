"""Final labels: people's where there is one, else a labeling's, put on people's scale (`judgekit.people.mapping`).

How far a labeling agrees with people is asked of what each side declares relevant, before any mapping. How often a
final label is people's is measured on queries that the rule was not fitted on.
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
"""The coefficients of agreement that are shown."""
FINAL: Final = "final labels"
"""What agreement is taken on, where it is that of the final labels on people's scale."""

TENTHS: Final = 10
"""A final grade's gain is written in tenths, since qrels hold whole numbers."""
_FOLDS: Final = 5
_PAIR: Final = ["query_id", "doc_id"]
_AGREEMENT: Final = ["first", "on", "coefficient", "value", "ci_low", "ci_high", "pairs", "undefined_reason"]


@dataclass(frozen=True)
class FinalLabels:
    """Final labels of a pool.

    Attributes:
        labeling: the labels; its scale is people's where there are people.
        rule: what made them of the labeling's values; None without people.
        table: in the rows of the labels table, the further columns ``gain`` (what the label counts on the scale, not
            rounded), ``source`` (``people`` or the file of their earlier judgments, the labeling's name, or "" where a
            label is missing), ``machine`` (the labeling's value) and ``confidence`` (how often people give the same
            label on held-out queries where this is the label; 1 for people's own, NaN where that is unknown).
        agreement: with people, rows as in `judgekit.agree`: on ``relevance`` as each side declares it, on ``labels``
            where both have the same scale, and on ``final labels`` of held-out queries where these say more; empty
            without people.
        judged: pairs that both people and the labeling labelled.
        filled: how many questions have a relevant document; None without people.
        sentences: what the labels are, for a reader.
        notes: what a reader has to beware of.
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
        """The gains of final grades in tenths; None where rounding took nothing from them."""
        scale = self.labeling.scale
        if self.rule is None or scale.kind != "grades":
            return None
        low, high, least = (TENTHS * int(grade) for grade in (scale.low, scale.high, scale.threshold))
        rows = self.table[[*_PAIR, "status"]].assign(relevance=(TENTHS * self.table["gain"]).round())
        return Labeling("final-gains", Scale("grades", high, low, least), rows)


def final_labels(machine: Labeling, people: People | None, *, seed: int = 1) -> FinalLabels:
    """Return the final labels of everything that a labeling labelled, and of what people judged."""
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
    # Judgments made elsewhere are often of relevant passages alone: only whole questions show people's share.
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
    """Return the queries whose whole pool has labels by people."""
    judged = own[_PAIR].merge(labels[[*_PAIR]], on=_PAIR, how="left", indicator="judged")
    whole = (judged["judged"] == "both").groupby(judged["query_id"]).all()
    return set(whole.index[whole])


def _fitted(both: pd.DataFrame, counted: pd.DataFrame, machine: Scale, scale: Scale) -> Rule:
    """Return the rule that people's labels lead to; ``counted`` are the pairs that show what share is relevant."""
    values, people, weight = columns_of(counted)
    cut = matched_cut(values, people >= scale.threshold, weight, machine.threshold)
    return fit(*columns_of(both), scale, cut)


def held_out(both: pd.DataFrame, counted: pd.DataFrame, machine: Scale, scale: Scale) -> Floats:
    """Return the final label of each judged pair by a rule that was fitted on the other queries; NaN where none was."""

    # A query belongs to a fold by its id, so that more judgments move none.
    def fold_of(table: pd.DataFrame) -> Floats:
        folds = [hashlib.sha256(query.encode()).digest()[0] % _FOLDS for query in table["query_id"]]
        return np.array(folds, np.float64)

    fold, fold_counted = fold_of(both), fold_of(counted)
    out = np.full(len(both), np.nan)
    for number in range(_FOLDS):
        rest, mine = both[fold != number], fold == number
        # A rule agrees best with the pairs that it was fitted on.
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
    """Return how far labelings agree with people, where any pair has both labels."""
    tables = [pd.DataFrame(columns=_AGREEMENT)]
    for labeling in machines.values():
        try:
            table = final_labels(labeling, people).agreement
        except UsageError:  # no judged pair has a label: corrected means may still be had
            continue
        tables.append(table[table["coefficient"].isin(SHOWN)])
    return stacked(tables)


def _agreement(machine: Labeling, both: pd.DataFrame, scale: Scale, seed: int) -> pd.DataFrame:
    """Return agreement with people on relevance and labels as declared, and on final labels where these say more."""
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
        # Relevance is told as it was declared: on their own scale final labels are told as a whole.
        kept = "relevance" if on.kind == "binary" else "labels"
        tables.append(table[(table["on"] == kept) & ~table["coefficient"].isin(AGAINST_PEOPLE)].assign(on=FINAL))
    return stacked(tables)


def ndcg_of_runs(collection: Collection, final: FinalLabels) -> list[tuple[str, float, float]]:
    """Return each run with its nDCG at the depth from the gains, and from the rounded labels."""
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
