"""Follows decisions as they are printed, in worlds whose truth is known, beside other ways to spend the same money.

    python benchmarks/decision_simulation.py      # writes decision.csv and the tables of the page, about ten minutes

Each replicate draws a world: runs with true quality, labelings with noise and biases. A pilot of questions is answered
and labelled, and the product decides on it (`judgekit.analysis.decision.decide_on`). Two things are followed:

* *Choose*: the run that it says leads, its bound, and which runs it says may be the best.
* *Keep*: the labeling that it says to keep chooses among six later runs; where it keeps none, answers do. The pilot is
  paid from the same money as everything else, or was paid for the choice before. The other ways need no pilot, but for
  the leader by r.

Prices of labelings are in the order of their accuracy, and permuted.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import ndtr

from judgekit.analysis.background import Background
from judgekit.analysis.case import Case
from judgekit.analysis.decision import Decision, decide_on
from judgekit.analysis.inputs import Panel
from judgekit.analysis.levels import Resamples, estimates
from judgekit.analysis.money import Money
from judgekit.analysis.primary import CHOOSE_RUNS, Primary
from judgekit.analysis.resampling import one_thread, resample_matrix
from judgekit.rules import Rules

Floats = npt.NDArray[np.float64]

HERE: Final = Path(__file__).resolve().parent
TABLE: Final = HERE / "decision.csv"
PAGE: Final = HERE.parent / "docs" / "statistics.md"
LABELINGS: Final = ("words", "judge", "own", "strong")
NOISE: Final = (2.5, 1.5, 1.1, 0.8)
PRICES: Final = (2.0, 12.0, 20.0, 40.0)
ANSWERS: Final = 60.0
"""Units that a question takes: by each labeling, the less noisy the more, and for the answers of all runs."""
MONEY: Final = 40_000.0
AT_HAND: Final = 2_000
LATER: Final = 6
RESAMPLES: Final = 300
FAIR: Final = ("apart", "alike", "equal", "one ahead", "few right", "graded", "clusters", "rare wins")
ADVERSE: Final = ("biased strong", "biased judge", "useless", "depths")
WAYS: Final = (
    "decision",
    "decision, pilot not counted",
    "leader by r",
    "dearest",
    "cheapest",
    "answers only",
    "a coin",
)


_SHARES: Final = ("best excluded", "bound broken", "any said", "any broken")


@dataclass(frozen=True)
class Cell:
    """A kind of world with so many runs and questions in the pilot."""

    world: str
    runs: int
    questions: int


CELLS: Final = [
    *(Cell(world, 6, questions) for world in (*FAIR, *ADVERSE) for questions in (50, 200)),
    *(
        Cell(world, runs, questions)
        for world in ("apart", "alike")
        for runs in (2, 3, 12, 20)
        for questions in (50, 200)
    ),
]
_SPREAD: Final = {"alike": 0.04, "equal": 0.0, "one ahead": 0.0, "rare wins": 0.0}
"""How far the runs' skills lie apart; .25 in all other worlds."""


@dataclass(frozen=True)
class World:
    """Runs and labelings whose truth is known: skills and biases of all runs, those of the pilot first."""

    kind: str
    skill: Floats
    bias: Floats
    wins: Floats
    threshold: float

    @classmethod
    def draw(cls, cell: Cell, rng: np.random.Generator) -> World:
        """Draw a world with the runs of the pilot and the later ones."""
        runs = cell.runs + LATER
        skill = rng.normal(size=runs) * _SPREAD.get(cell.world, 0.25)
        wins = np.zeros(runs)
        if cell.world == "one ahead":
            skill[[0, cell.runs]] += 0.35
        if cell.world == "rare wins":
            wins[[0, cell.runs]] = 0.03
        bias = np.zeros((len(LABELINGS), runs))
        if cell.world == "biased strong":
            bias[3] = 0.6 * rng.normal(size=runs)
        elif cell.world == "biased judge":
            bias[1] = 0.6 * rng.normal(size=runs)
        elif cell.world == "depths":  # labels that like many, where those who return more answer worse
            bias[1:] = -2.5 * skill
        return cls(cell.world, skill, bias, wins, 1.9 if cell.world == "few right" else 0.2)

    @property
    def quality(self) -> Floats:
        """The true mean quality of each run."""
        mean = ndtr((self.skill - self.threshold) / np.sqrt(2.2))
        if self.kind == "graded":
            steps = [ndtr((self.skill - at) / np.sqrt(2.2)) for at in (-0.8, -0.2, 0.5, 1.2)]
            return np.asarray(np.mean(steps, axis=0))
        return np.asarray(mean * (1 - self.wins) + self.wins)

    def ask(self, which: slice, questions: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return the scores by all labelings, shape (L, R, n), and the quality of answers, shape (R, n)."""
        skill = self.skill[which, None]
        shape = len(skill), questions
        if self.kind == "clusters":
            ease, luck = (np.repeat(rng.normal(size=(*each, -(-questions // 5))), 5, axis=-1)[..., :questions]
                          for each in ((), shape[:1]))  # fmt: skip
        else:
            ease, luck = rng.normal(size=questions), rng.normal(size=shape)
        use = skill + 0.7 * luck  # what the documents of a run are worth
        latent = ease + use + np.sqrt(2.2 - 1 - 0.49) * rng.normal(size=shape)
        if self.kind == "graded":
            quality = sum((latent > at).astype(float) for at in (-0.8, -0.2, 0.5, 1.2)) / 4
        elif self.kind in ("equal", "rare wins"):
            right = latent[0] > self.threshold
            quality = np.where(rng.random(shape) < 0.1, latent > self.threshold, right).astype(float)
        else:
            quality = (latent > self.threshold).astype(float)
        if self.wins.any():
            quality = np.where(rng.random(shape) < self.wins[which, None], 1.0, quality)
        noise = rng.normal(size=(len(LABELINGS), *shape)) * np.array(NOISE)[:, None, None]
        known = 0.0 if self.kind == "useless" else use + 0.3 * ease
        return known + self.bias[:, which, None] + noise, np.asarray(quality)


def decided(scores: Floats, quality: Floats, groups: npt.NDArray[np.intp] | None, seed: int) -> tuple[Case, Decision]:
    """Return what the product decides on a pilot."""
    runs, questions = quality.shape
    names = tuple(f"r{run:02d}" for run in range(runs))
    panel = Panel(
        measure="nDCG@10",
        depth=10,
        metric="em",
        model="m",
        labelings=LABELINGS,
        runs=names,
        queries=tuple(f"q{question:04d}" for question in range(questions)),
        scores=scores,
        quality=quality,
        asked=np.ones((runs, questions), np.bool_),
    )
    resamples = Resamples(resample_matrix(questions, RESAMPLES, seed, groups), groups)
    case = Case(
        primary=Primary("nDCG@10", "em", "m", 10, CHOOSE_RUNS),
        panel=panel,
        found={"within-query": list(estimates(panel, "within-query", resamples, ("concordance",)))},
        resamples=resamples,
        rules=Rules(),
        background=Background(),
        money=Money(),
    )
    return case, decide_on(case)


def followed(cell: Cell, seed: int) -> dict[str, Any]:
    """Return what comes of following the decision in one world, and of the other ways to spend the money."""
    rng = np.random.default_rng([seed, CELLS.index(cell)])
    world = World.draw(cell, rng)
    scores, quality = world.ask(slice(cell.runs), cell.questions, rng)
    groups = np.arange(cell.questions) // 5 if cell.world == "clusters" else None
    case, decision = decided(scores, quality, groups, seed)
    truth = world.quality[: cell.runs]
    claims = {claim.kind for claim in decision.claims}
    runs = {claim.subject: claim for claim in decision.claims if claim.kind == "run"}
    leader = int(decision.leader[1:])
    best = f"r{int(np.argmax(truth)):02d}"
    loss = 100 * (truth.max() - truth)
    row: dict[str, Any] = {
        "world": cell.world,
        "runs": cell.runs,
        "questions": cell.questions,
        "best excluded": runs[best].shown,
        "bound broken": loss[leader] > -runs[decision.leader].low + 1e-9,
        "any said": "any" in claims,
        "any broken": "any" in claims and loss.max() > Rules().margin_points,
        "loss of the leader": loss[leader],
        "kept": decision.kept,
    }
    leading = case.followers[0].name
    for order in ("ordered", "permuted"):
        prices = dict(zip(LABELINGS, PRICES if order == "ordered" else rng.permutation(PRICES), strict=True))
        pilot = cell.questions * (sum(prices.values()) + ANSWERS)
        chosen = {
            "decision": (decision.kept or "answers", MONEY - pilot),
            "decision, pilot not counted": (decision.kept or "answers", MONEY),
            "leader by r": (leading, MONEY - pilot),
            "dearest": (max(prices, key=lambda name: prices[name]), MONEY),
            "cheapest": (min(prices, key=lambda name: prices[name]), MONEY),
            "answers only": ("answers", MONEY),
            "a coin": ("", 0.0),
        }
        row |= {f"{way}, {order}": regret for way, regret in _regrets(world, cell, chosen, prices, seed)}
    return row


def _regrets(
    world: World, cell: Cell, chosen: dict[str, tuple[str, float]], prices: dict[str, float], seed: int
) -> Iterator[tuple[str, float]]:
    """Yield what each way loses among the later runs; all of them ask the same questions, as many as money buys."""
    later = slice(cell.runs, cell.runs + LATER)
    scores, quality = world.ask(later, AT_HAND, np.random.default_rng([seed, 7]))
    loss = 100 * (world.quality[later].max() - world.quality[later])
    for way, (name, money) in chosen.items():
        price = ANSWERS if name == "answers" else prices.get(name, 0.0)
        number = min(int(money / price), AT_HAND) if price and money > 0 else 0
        values = quality if name == "answers" else scores[LABELINGS.index(name)] if name else quality
        if number:
            yield way, float(loss[np.argmax(values[:, :number].mean(axis=1))])
        else:
            yield way, float(loss.mean())


@one_thread
def simulate(replicates: int) -> pd.DataFrame:
    """Return a row for each cell and replicate."""
    return pd.DataFrame([followed(cell, seed) for cell in CELLS for seed in range(replicates)])


def _mean(values: pd.Series, digits: int = 2) -> str:
    error = values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.{digits}f} ({error:.{digits}f})".replace("0.", ".")


def claims_table(table: pd.DataFrame) -> str:
    """Return how often what is said of runs is false, with standard errors."""
    parts = {"all": table}
    for runs, part in table.groupby("runs"):
        parts[f"{runs} runs"] = part
    for questions, part in table.groupby("questions"):
        parts[f"{questions} questions"] = part
    titles = "best run left out | leader's bound broken | any will do: said | and false | leader's loss"
    rows = [f"| experiments | n | {titles} |",
            "| --- | --- | --- | --- | --- | --- | --- |"]  # fmt: skip
    for title, part in parts.items():
        shares = [_mean(part[name].astype(float), 3) for name in _SHARES]
        rows.append(f"| {title} | {len(part):,} | {' | '.join(shares)} | {_mean(part['loss of the leader'])} |")
    by_world = table.groupby("world")[["best excluded", "bound broken"]].mean()
    worst = by_world.max()
    rows += ["", f"Worst world: {worst.iloc[0]:.3f} ({by_world.iloc[:, 0].idxmax()}) and {worst.iloc[1]:.3f}"
             f" ({by_world.iloc[:, 1].idxmax()})."]  # fmt: skip
    return "\n".join(rows)


def regret_table(table: pd.DataFrame) -> str:
    """Return what each way to choose labels for later runs loses, with standard errors."""
    adverse = table["world"].isin(ADVERSE)
    parts = {"all": table, "labels fair": table[~adverse], "adverse": table[adverse]}
    rows = [f"| worlds, prices | n | {' | '.join(WAYS)} |", f"| --- | --- |{' --- |' * len(WAYS)}"]
    for order in ("ordered", "permuted"):
        for title, part in parts.items():
            means = " | ".join(_mean(part[f"{way}, {order}"]) for way in WAYS)
            rows.append(f"| {title}, {order} | {len(part):,} | {means} |")
    rows += ["", "Paired differences, decision minus the other way:", ""]
    rows += [f"| prices | {' | '.join(WAYS[2:-1])} |", f"| --- |{' --- |' * len(WAYS[2:-1])}"]
    for order in ("ordered", "permuted"):
        gaps = (table[f"decision, {order}"] - table[f"{way}, {order}"] for way in WAYS[2:-1])
        rows.append(f"| {order} | {' | '.join(_mean(gap) for gap in gaps)} |")
    kept = table["kept"].replace("", "none").value_counts(normalize=True)
    listed = ", ".join(f"{name} {share:.2f}".replace("0.", ".") for name, share in kept.items())
    return "\n".join([*rows, "", f"Kept: {listed}."])


def page(text: str, table: pd.DataFrame) -> str:
    """Return the page with the tables of the simulation."""
    for name, made in (("choose", claims_table(table)), ("keep", regret_table(table))):
        marks = f"<!-- simulated: {name} -->", f"<!-- /simulated: {name} -->"
        text = re.sub(f"{marks[0]}.*?{marks[1]}", lambda _, m=marks, t=made: f"{m[0]}\n{t}\n{m[1]}", text, flags=re.S)
    return text


def main() -> None:
    """Simulate, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=300)
    table = simulate(parser.parse_args().replicates)
    cells = table.drop(columns="kept").astype(dict.fromkeys(_SHARES, float)).groupby(["world", "runs", "questions"])
    cells.mean().assign(replicates=cells.size()).round(4).reset_index().to_csv(TABLE, index=False)
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), table), encoding="utf-8")


if __name__ == "__main__":
    main()
