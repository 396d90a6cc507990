"""Final labels: people's where there is one, else a labeling's, put on people's scale by what people judged.

On people's binary scale a label is relevant from the threshold on that separates best what people call relevant. On
every other scale it is what people give on average to such a label (isotonic regression), rounded where their scale has
whole numbers. How far such labels agree with people is measured on queries that the rule was not fitted on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from scipy.optimize import isotonic_regression

from judgekit.analysis.agreement import agreement
from judgekit.data.columns import Bools, Floats
from judgekit.data.labelings import Labeling, Scale
from judgekit.data.tables import Status, stacked
from judgekit.errors import UsageError
from judgekit.people.reading import People

SHOWN: Final = ("agreement", "kappa", "precision", "recall", "mean_difference")
"""The coefficients of agreement that are told."""

HALF: Final = 0.5
"""Share of people's votes or means from which on a passage counts as relevant."""
_FOLDS: Final = 5
_MOST_THRESHOLDS: Final = 20
_PAIR: Final = ["query_id", "doc_id"]


@dataclass(frozen=True)
class Rule:
    """What makes a final label of a labeling's value.

    Attributes:
        scale: of the final labels.
        threshold: on a binary scale the least value that is relevant; None elsewhere.
        values, means: elsewhere what people give on average where the labeling has these values.
    """

    scale: Scale
    threshold: float | None = None
    values: tuple[float, ...] = ()
    means: tuple[float, ...] = ()

    def __call__(self, values: Floats) -> Floats:
        """Return final labels; NaN stays NaN."""
        if self.threshold is not None:
            return np.where(np.isnan(values), np.nan, (values >= self.threshold).astype(np.float64))
        means = np.interp(values, self.values, self.means)
        if self.scale.integral:
            return np.floor(means + 0.5)
        return means

    def __str__(self) -> str:
        if self.threshold is not None:
            return f"relevant from {self.threshold:g} on"
        shown = sorted({round(at) for at in np.linspace(0, len(self.values) - 1, 5)})
        return ", ".join(f"{self.values[at]:.3g} becomes {self.means[at]:.2f}" for at in shown)


def _thresholds(values: Floats) -> list[float]:
    """Return the values from which on a label may count as relevant, of many some."""
    distinct: Floats = np.unique(values)[1:]
    if len(distinct) > _MOST_THRESHOLDS:
        distinct = np.quantile(distinct, np.linspace(0.05, 0.95, 19))
    return [*map(float, distinct)]


def best_threshold(values: Floats, relevant: Bools) -> float | None:
    """Return the threshold with the largest mean of sensitivity and specificity, of equal ones the lowest."""
    # Of labels that are all alike no threshold can be told from another.
    if relevant.all() or not relevant.any():
        return None
    tried: dict[float, float] = {}
    for cut in _thresholds(values):
        tried[cut] = float((values[relevant] >= cut).mean() + (values[~relevant] < cut).mean())
    if tried:
        return max(tried, key=lambda cut: tried[cut])
    return None


def fit(values: Floats, people: Floats, weight: Floats, scale: Scale) -> Rule | None:
    """Return the rule that people's labels lead to; None if they cannot tell, being all alike or too few."""
    if scale.kind == "binary":
        cut = best_threshold(values, people.astype(np.bool_))
        if cut is None:
            return None
        return Rule(scale, cut)
    distinct, place = np.unique(values, return_inverse=True)
    if len(distinct) < 2 or len(np.unique(people)) < 2:
        return None
    weights = np.bincount(place, weight)
    means = np.bincount(place, weight * people) / weights
    # A better label of the machine must never become a worse one of people, whatever a few pairs say.
    fitted = isotonic_regression(means, weights=weights).x
    return Rule(scale, values=tuple(distinct.tolist()), means=tuple(fitted.tolist()))


def held_out(table: pd.DataFrame, scale: Scale) -> Floats:
    """Return the final label of each judged pair by a rule that was fitted on the other queries; NaN where none was."""
    # A query belongs to a fold by its id, so that more judgments move none.
    fold = np.array([hashlib.sha256(query.encode()).digest()[0] % _FOLDS for query in table["query_id"]])
    out = np.full(len(table), np.nan)
    for number in range(_FOLDS):
        rest, mine = table[fold != number], fold == number
        # A rule agrees best with the pairs that it was fitted on.
        rule = fit(*_columns(rest), scale) if mine.any() else None
        if rule is not None:
            out[mine] = rule(table["machine"].to_numpy()[mine])
    return out


def _columns(table: pd.DataFrame) -> tuple[Floats, Floats, Floats]:
    return table["machine"].to_numpy(), table["people"].to_numpy(), 1 / table["probability"].to_numpy(np.float64)


@dataclass(frozen=True)
class FinalLabels:
    """Final labels of a pool.

    Attributes:
        labeling: the labels; its scale is people's where there are people.
        rule: what made them of the labeling's values; None without people.
        table: in the rows of the labels table, the further columns ``source`` (``people`` or the file of their earlier
            judgments, the labeling's name, or "" where a label is missing), ``machine`` (the labeling's value) and
            ``confidence`` (how often people give the same label on held-out queries where this is the label; 1 for
            people's own, NaN where that is unknown).
        agreement: with people on held-out queries, rows as in `judgekit.agree`; empty without people.
        judged: pairs that both people and the labeling labelled.
        notes: what a reader has to know, as sentences.
    """

    labeling: Labeling
    rule: Rule | None
    table: pd.DataFrame
    agreement: pd.DataFrame
    judged: int
    notes: tuple[str, ...]


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
    rule = fit(*_columns(both), scale)
    if rule is None and not people.design:
        rule = _shared(machine.scale, scale)  # what was judged elsewhere cannot be drawn anew
    if rule is None:
        raise UsageError(
            f"{len(both):,} pairs have labels by people and by {machine.name}, too few or too similar to fit"
            " a rule: judge more passages, both relevant and not"
        )
    both["held"] = held_out(both, scale)
    known = both[both["held"].notna()]
    table = own.merge(labels[[*_PAIR, "people"]], on=_PAIR, how="outer")
    mapped, by_people = rule(table["machine"].to_numpy()), table["people"].notna()
    table["relevance"] = np.where(by_people, table["people"], mapped)
    table["status"] = table["status"].where(~by_people, Status.OK.value)
    table["source"] = np.where(by_people, people.labeling.name, np.where(np.isnan(mapped), "", machine.name))
    share = pd.Series(dtype=float)
    if scale.integral:
        share = (known["held"] == known["people"]).groupby(known["held"]).mean()
    table["confidence"] = np.where(by_people, 1.0, table["relevance"].map(share))
    table = table.sort_values(_PAIR, ignore_index=True)
    return FinalLabels(
        labeling=Labeling("final", scale, table[[*_PAIR, "relevance", "status"]]),
        rule=rule,
        table=table,
        agreement=_agreement(machine, known, scale, seed),
        judged=len(both),
        notes=(*_of_existing(people), *_notes(machine.name, known, mapped, scale)),
    )


def _shared(machine: Scale, people: Scale) -> Rule | None:
    """Return the rule that the scales themselves give: one threshold, or the same grades; None if they differ."""
    if people.kind == "binary" and machine.min_rel is not None:
        return Rule(people, machine.min_rel)
    if (machine.kind, machine.low, machine.high) != (people.kind, people.low, people.high):
        return None
    grades = tuple(float(grade) for grade in range(people.low, people.high + 1))
    return Rule(people, values=grades, means=grades)


def _of_existing(people: People) -> Iterator[str]:
    """Yield what is to be known of judgments that were not drawn at random."""
    if people.design:
        return
    name = people.labeling.name
    yield f"the judgments of {name} were not drawn at random: agreement with them is that on what they judge"
    if people.left_out:
        yield f"{people.left_out:,} judgments of {name} are about other questions or passages, and left out"


def _as_declared(machine: Labeling, own: pd.DataFrame) -> FinalLabels:
    table = own.assign(relevance=own["machine"], confidence=np.nan)
    table["source"] = np.where(table["status"] == Status.OK.value, machine.name, "")
    least = machine.scale.min_rel
    cut = "no label is declared relevant"
    if least is not None:
        cut = f"relevant from {least} on, as {machine.name} declares"
    note = f"no people judged: the labels are those of {machine.name} ({cut}), of unknown accuracy"
    labeling = Labeling("final", machine.scale, table)
    return FinalLabels(labeling, None, table, agreement=pd.DataFrame(), judged=0, notes=(note,))


def agreed(people: People, machines: Mapping[str, Labeling]) -> pd.DataFrame:
    """Return how far labelings agree with people on held-out queries, where people's labels can say it."""
    tables = [pd.DataFrame(columns=["first", "on", "coefficient", "value", "ci_low", "ci_high", "pairs"])]
    for labeling in machines.values():
        try:
            table = final_labels(labeling, people).agreement
        except UsageError:  # too few judgments to fit a rule, which corrected means do not need
            continue
        tables.append(table[table["coefficient"].isin(SHOWN)] if len(table) else table)
    return stacked(tables)


def _agreement(machine: Labeling, known: pd.DataFrame, scale: Scale, seed: int) -> pd.DataFrame:
    if not len(known):
        return pd.DataFrame()
    name = machine.name if machine.name != "people" else "people (labeling)"
    held, people = known["held"], known["people"]
    if not scale.integral:
        # The rule turns a judge's 0 into .007, say: as decimals nothing would ever agree with people's shares.
        least = machine.scale.min_rel
        held = held >= HALF if least is None else known["machine"] >= least
        people, scale = people >= HALF, Scale("binary")
    labelings = []
    for side, labels in ((name, held), ("people", people)):
        table = known[_PAIR].assign(relevance=labels.to_numpy(np.float64))
        labelings.append(Labeling(side, scale, table))
    return agreement(labelings, people=["people"], seed=seed).table


def _notes(name: str, known: pd.DataFrame, mapped: Floats, scale: Scale) -> Iterator[str]:
    """Yield what is wrong with mapped labels, held against what people gave."""
    if not len(known):
        yield "people judged too few queries to hold any out: the agreement of the other labels with people is unknown"
        return
    if not scale.integral:
        yield f"agreement is that of relevant or not: by people from a share of {HALF:g} on, by {name} as it declares"
        return
    commonest = known["people"].value_counts(normalize=True).iloc[0]
    if (known["held"] == known["people"]).mean() <= commonest:
        yield f"on held-out queries {name} is right no more often than always guessing people's commonest label"
    never = sorted(set(known["people"]) - set(mapped[~np.isnan(mapped)].tolist()))
    if never:
        grades = ", ".join(f"{grade:g}" for grade in never)
        yield f"people gave the grade {grades}, and no label of {name} is as good as that on average"
