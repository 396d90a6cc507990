"""Is a judge good enough? Its labels against people's, on questions that nothing was chosen on.

Queries are split once and for all into train, dev and test by a hash, so that a split needs no file. Prompts and
thresholds are chosen on dev; the test part is opened when everything is chosen, and each opening is logged beside the
people's labels: a test that was opened twice is not a test any more.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from judgekit.data.labelings import Labeling
from judgekit.data.streams import write_atomic
from judgekit.data.tables import Status
from judgekit.errors import DataError, UsageError
from judgekit.labelers.human import wilson
from judgekit.people.reading import People

__all__ = ["PARTS", "Part", "Validation", "log_opening", "part_of", "rogan_gladen", "validate"]

Part = Literal["train", "dev", "test"]
PARTS: Final[tuple[Part, ...]] = ("train", "dev", "test")
_SHARES: Final = (0.2, 0.6)
"""A fifth of the queries for examples in prompts, two fifths to choose on, two fifths to report on."""

Bools = npt.NDArray[np.bool_]


def part_of(query_id: str, seed: int = 1) -> Part:
    """Return the part that a query belongs to, whatever other queries there are."""
    number = int.from_bytes(hashlib.sha256(f"{seed}\0{query_id}".encode()).digest()[:8], "big") / 2**64
    return PARTS[sum(number >= share for share in _SHARES)]


def rogan_gladen(
    positive: float, labelled: int, sensitivity: tuple[float, int], specificity: tuple[float, int],
    confidence: float = 0.95,
) -> tuple[float, float, float]:  # fmt: skip
    """Return the share of relevant pairs that a judge with such errors implies, and its interval.

    (p + Sp - 1) / (Se + Sp - 1), clipped to [0, 1] (Rogan and Gladen, 1978), with the interval of Lang and Reiczigel
    (2014), which adds a pseudo-count to each of the three shares.

    Args:
        positive: the judge's share of relevant pairs.
        labelled: the number of pairs behind that share.
        sensitivity: its share of right labels among pairs that people call relevant, and how many those are.
        specificity: the same among the others.
        confidence: of the interval.
    """
    z = float(stats.norm.ppf((1 + confidence) / 2))
    (se, n_se), (sp, n_sp) = sensitivity, specificity
    gain = se + sp - 1
    if gain <= 0 or not (n_se and n_sp and labelled):
        return np.nan, 0.0, 1.0
    value = float(np.clip((positive + sp - 1) / gain, 0, 1))
    n, n1, n0 = labelled + z * z, n_se + 2, n_sp + 2
    p = (labelled * positive + z * z / 2) / n
    se, sp = (n_se * se + 1) / n1, (n_sp * sp + 1) / n0
    gain = se + sp - 1
    if gain <= 0:
        return value, 0.0, 1.0
    share = (p + sp - 1) / gain
    shift = 2 * z * z * (share * se * (1 - se) / n1 - (1 - share) * sp * (1 - sp) / n0)
    error = np.sqrt(p * (1 - p) / n + share**2 * se * (1 - se) / n1 + (1 - share) ** 2 * sp * (1 - sp) / n0) / gain
    low, high = np.clip([share + shift - z * error, share + shift + z * error], 0, 1)
    return value, min(float(low), value), max(float(high), value)


@dataclass(frozen=True)
class Validation:
    """How a judge's labels stand to people's.

    Attributes:
        grid: on dev, a row for each labeling and threshold: ``labeling, threshold, pairs, sensitivity, specificity,
            balanced, bias``; balanced is the mean of sensitivity and specificity, bias the judge's share of relevant
            pairs less people's.
        chosen: labeling and threshold with the largest balanced share; of equal ones the first.
        test: on test, or on the part that was asked for, rows ``what, value, ci_low, ci_high, pairs`` for the chosen.
        grades: on the same part, per grade of people's: ``grade, pairs, recall, ci_low, ci_high`` of the same grade.
        part: what ``test`` is about.
        notes: what a reader has to know, as sentences.
    """

    grid: pd.DataFrame
    chosen: tuple[str, float]
    test: pd.DataFrame
    grades: pd.DataFrame
    part: Part
    notes: tuple[str, ...]


def validate(
    people: People,
    labelings: Mapping[str, Labeling],
    *,
    part: Part = "dev",
    seed: int = 1,
    confidence: float = 0.95,
) -> Validation:
    """Choose a labeling and its threshold on dev, and say on ``part`` how it stands to people's labels.

    Pairs count by the inverse of the probability with which they were drawn where shares of all pairs are meant
    (prevalence, bias); sensitivity and specificity are counted plainly with Wilson intervals.

    Raises:
        UsageError: people's labels do not say what is relevant, no labeling is given, or a part has no pair.
    """
    cut = people.labeling.scale.min_rel
    if cut is None:
        raise UsageError("these human labels are shares of choices, which do not say what is relevant")
    if not labelings:
        raise UsageError("give a labeling to validate")
    keys = ["query_id", "doc_id"]
    said = _obtained(people.labeling).merge(people.asked[[*keys, "probability"]], on=keys)
    said = said.assign(part=[part_of(query, seed) for query in said["query_id"]])
    rows, joined = [], {}
    for name, labeling in labelings.items():
        joined[name] = said.merge(_obtained(labeling), on=keys, suffixes=("", "_machine"))
        dev = joined[name][joined[name]["part"] == "dev"]
        for threshold in _thresholds(dev["relevance_machine"].to_numpy()):
            truth, guess = (dev["relevance"] >= cut).to_numpy(), (dev["relevance_machine"] >= threshold).to_numpy()
            if truth.all() or not truth.any():
                continue
            se, sp = float(guess[truth].mean()), float((~guess[~truth]).mean())
            bias = _weighted(guess, dev["probability"]) - _weighted(truth, dev["probability"])
            rows.append((name, threshold, len(dev), se, sp, (se + sp) / 2, bias))
    if not rows:
        raise UsageError("dev needs pairs that people call relevant and pairs that they call not relevant: judge more")
    columns = ["labeling", "threshold", "pairs", "sensitivity", "specificity", "balanced", "bias"]
    grid = pd.DataFrame(rows, columns=columns)
    best = grid.iloc[int(grid["balanced"].to_numpy().argmax())]
    chosen = str(best["labeling"]), float(best["threshold"])
    held = joined[chosen[0]].query("part == @part")
    if not len(held):
        raise UsageError(f"people and {chosen[0]} labelled no common pair in the part {part!r}")
    test, notes = _shares(held, cut, chosen, labelings[chosen[0]], confidence)
    grades = _per_grade(held, confidence) if people.labeling.scale == labelings[chosen[0]].scale else pd.DataFrame()
    return Validation(grid, chosen, test, grades, part, notes)


def _obtained(labeling: Labeling) -> pd.DataFrame:
    """Return the labels that have a value."""
    return labeling.table.loc[labeling.table["status"] == Status.OK.value, ["query_id", "doc_id", "relevance"]]


def _thresholds(values: npt.NDArray[np.float64]) -> Sequence[float]:
    found = np.unique(values)[1:]
    return [float(x) for x in (found if len(found) <= 20 else np.quantile(found, np.linspace(0.05, 0.95, 19)))]


def _weighted(hits: Bools, probability: pd.Series) -> float:
    weight = 1 / probability.to_numpy(np.float64)
    return float((hits * weight).sum() / weight.sum())


def _shares(
    held: pd.DataFrame, cut: int, chosen: tuple[str, float], machine: Labeling, confidence: float
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    truth, guess = (held["relevance"] >= cut).to_numpy(), (held["relevance_machine"] >= chosen[1]).to_numpy()
    right = int((guess & truth).sum())
    counts = {
        "sensitivity": (right, int(truth.sum())),
        "specificity": (int((~guess & ~truth).sum()), int((~truth).sum())),
        "precision": (right, int(guess.sum())),
        "accuracy": (int((guess == truth).sum()), len(truth)),
        "accuracy of always choosing the commoner": (int(max(truth.sum(), (~truth).sum())), len(truth)),
    }
    every = _obtained(machine)["relevance"].to_numpy() >= chosen[1]
    (a, n1), (b, n0) = counts["sensitivity"], counts["specificity"]
    shares = (a / n1 if n1 else 0.0, n1), (b / n0 if n0 else 0.0, n0)
    corrected = rogan_gladen(float(every.mean()), len(every), *shares, confidence)
    notes = []
    if counts["accuracy"][0] <= counts["accuracy of always choosing the commoner"][0]:
        notes.append(f"{chosen[0]} is right no more often than always choosing the commoner label")
    if min(n1, n0) < 20:
        notes.append(f"only {n1} relevant and {n0} other pairs: intervals are wide, so judge more pairs")
    counts["share of relevant pairs, by the judge"] = int(every.sum()), len(every)
    rows = [(what, hits / n if n else np.nan, *wilson(hits, n, confidence), n) for what, (hits, n) in counts.items()]
    rows.append(("share of relevant pairs, corrected", *corrected, len(every)))
    return pd.DataFrame(rows, columns=["what", "value", "ci_low", "ci_high", "pairs"]), tuple(notes)


def _per_grade(held: pd.DataFrame, confidence: float) -> pd.DataFrame:
    rows = []
    for grade, part in held.groupby("relevance"):
        hits = int((part["relevance_machine"] == grade).sum())
        rows.append((grade, len(part), hits / len(part), *wilson(hits, len(part), confidence)))
    return pd.DataFrame(rows, columns=["grade", "pairs", "recall", "ci_low", "ci_high"])


def log_opening(path: Path, what: str) -> tuple[str, ...]:
    """Note in a file that the test part is opened, and return when that happened before.

    Raises:
        DataError: the file is not such a log, or cannot be written.
    """
    before: list[dict[str, str]] = []
    try:
        if path.is_file():
            before = json.loads(path.read_bytes())["opened"]  # not as an input: it is written again below
        earlier = tuple(f"{each['at']} for {each['what']}" for each in before)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError("does not log when the test part was opened", path) from error
    now = datetime.now(UTC).isoformat(timespec="seconds")
    write_atomic(path, json.dumps({"opened": [*before, {"at": now, "what": what}]}, indent=1) + "\n")
    return earlier
