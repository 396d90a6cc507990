"""Follows decisions as they are printed, in worlds whose truth is known, beside other ways to spend the same money.

    python benchmarks/decision_simulation.py      # writes decision.csv and the tables of the page, about an hour

Each replicate draws a world: runs with true quality, labelings with noise and biases. A pilot of questions is answered
and labelled, and the product decides on it (`judgekit.analysis.decision.decide_on`). Two things are followed:

* *Choose*: the run that it says leads, its bound, and which runs it says may be the best.
* *Keep*: the labeling that it says to keep chooses among six later runs; where it keeps none, answers do. The pilot is
  paid from the same money as everything else, or was paid for the choice before. The other ways need no pilot, but for
  the leader by r. Whoever *saves* takes the less expensive labeling where the decision offers one. *Largest r* is what
  the decision would keep if it did not look at free rivals: what was advised before 0.4. How often anything is bought,
  labels or answers, stands beside the regret.

Prices of labelings are in the order of their accuracy, and permuted. Beside them stand a free labeling (*free*) and a
control (*ranks*, what the runs have in common), both good, useless or misleading in worlds of their own. In every
fifth world each question stands there twice. That any run will do is only said of many questions; these answers are
simulated alone, and the product's bounds are taken of them.

Rows are written as they come, a replicate of all cells after the other, and a second call goes on where the first one
ended. Stop it at any time: after Control-C it writes the tables of the replicates so far.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import ndtr

from judgekit.analysis.background import RETRIEVER, Background
from judgekit.analysis.best import compared_with_best
from judgekit.analysis.case import Case
from judgekit.analysis.decision import Decision, decide_on
from judgekit.analysis.follow import pooled_correlation
from judgekit.analysis.inputs import Panel
from judgekit.analysis.levels import Estimate, Resamples, estimates
from judgekit.analysis.money import Money, Pool
from judgekit.analysis.primary import CHOOSE_RUNS, Primary
from judgekit.analysis.resampling import resample_matrix
from judgekit.analysis.threads import one_thread
from judgekit.rules import Rules

Floats = npt.NDArray[np.float64]

HERE: Final = Path(__file__).resolve().parent
TABLE: Final = HERE / "decision.csv"
PAGE: Final = HERE / "simulations.md"
ROWS: Final = HERE / "build" / "decision_rows.csv"
LABELINGS: Final = ("words", "judge", "own", "strong")
NOISE: Final = (2.5, 1.5, 1.1, 0.8)
FREE: Final = "free"
RIVALS: Final = (FREE, RETRIEVER)
"""What costs nothing: a labeling, and a control."""
ALL: Final = (*LABELINGS, *RIVALS)
PRICES: Final = (2.0, 12.0, 20.0, 40.0)
ANSWERS: Final = 60.0
"""Units that a question takes: by each labeling, the less noisy the more, and for the answers of all runs."""
MONEY: Final = 40_000.0
AT_HAND: Final = 2_000
REPEATED: Final = 5
"""In each of so many worlds every question stands there twice."""
LATER: Final = 6
MANY: Final = 20_000
"""Questions that stand for the truth of a labeling's r."""
FAIR: Final = ("apart", "alike", "equal", "one ahead", "few right", "graded", "clusters", "rare wins", "labels alike")
ADVERSE: Final = ("biased strong", "biased judge", "useless", "depths")
BESIDE: Final = ("free good", "free useless", "free misleading", "ranks good", "ranks misleading")
"""Worlds in which what costs nothing is better or worse than elsewhere."""
WAYS: Final = (
    "decision",
    "decision, pilot not counted",
    "decision, saving",
    "largest r",
    "largest r, pilot not counted",
    "leader by r",
    "dearest",
    "cheapest",
    "answers only",
    "a coin",
)
ORDERS: Final = ("ordered", "permuted")
_SHARES: Final = ("best excluded", "bound broken")
_OF_CHEAPER: Final = ("offered", "covers", "width")
_KEY: Final = ["world", "runs", "questions", "seed"]


@dataclass(frozen=True)
class Cell:
    """A kind of world with so many runs and questions in the pilot."""

    world: str
    runs: int
    questions: int


CELLS: Final = [
    *(Cell(world, 6, questions) for world in (*FAIR, *ADVERSE, *BESIDE) for questions in (50, 200)),
    *(Cell("labels alike", 3, questions) for questions in (50, 200)),
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
        bias = np.zeros((len(ALL), runs))
        if cell.world == "biased strong":
            bias[3] = 0.6 * rng.normal(size=runs)
        elif cell.world == "biased judge":
            bias[1] = 0.6 * rng.normal(size=runs)
        elif cell.world == "depths":  # labels that like many, where those who return more answer worse
            bias[1 : len(LABELINGS)] = -2.5 * skill
        elif cell.world == "free misleading":
            bias[ALL.index(FREE)] = -2 * skill
        elif cell.world == "ranks misleading":
            bias[ALL.index(RETRIEVER)] = -2 * skill
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
        size = np.full(len(LABELINGS), 1.1) if self.kind == "labels alike" else np.array(NOISE)
        size = np.append(size, [0.9 if self.kind == "free good" else 2.0, 0.9 if self.kind == "ranks good" else 2.5])
        noise = rng.normal(size=(len(ALL), *shape)) * size[:, None, None]
        known = np.broadcast_to(0.0 if self.kind == "useless" else use + 0.3 * ease, noise.shape).copy()
        if self.kind == "free useless":
            known[ALL.index(FREE)] = 0.0
        return known + self.bias[:, which, None] + noise, np.asarray(quality)


@dataclass(frozen=True)
class Pilot:
    """The answers and labels of a pilot, with what the product has of them.

    Attributes:
        panel, resamples, found: as a comparison makes them; found are the estimates of all labelings.
    """

    panel: Panel
    resamples: Resamples
    found: list[Estimate]

    @classmethod
    def of(cls, cell: Cell, scores: Floats, quality: Floats, resamples: int, seed: int) -> Pilot:
        """Return the pilot with a matrix of resamples."""
        panel = Panel(
            measure="nDCG@10",
            depth=10,
            metric="em",
            model="m",
            labelings=ALL,
            runs=tuple(f"r{run:02d}" for run in range(cell.runs)),
            queries=tuple(f"q{question:04d}" for question in range(quality.shape[1])),
            scores=scores,
            quality=quality,
            asked=np.ones(quality.shape, np.bool_),
        )
        groups = np.arange(quality.shape[1]) // 5 if cell.world == "clusters" else None
        drawn = Resamples(resample_matrix(quality.shape[1], resamples, seed, groups), groups)
        return cls(panel, drawn, list(estimates(panel, "within-query", drawn, ("concordance",))))

    def decided(self, prices: Mapping[str, float]) -> tuple[Case, Decision]:
        """Return what the product decides at prices of a question by labeling."""
        questions = len(self.panel.queries)
        taken = {**prices, FREE: 0.0, "answers": ANSWERS}
        costs = pd.DataFrame({"labeling": list(taken), "money": [questions * price for price in taken.values()]})
        pairs = 10 * questions
        case = Case(
            primary=Primary("nDCG@10", "em", "m", 10, CHOOSE_RUNS),
            panel=self.panel,
            found={"within-query": self.found},
            resamples=self.resamples,
            rules=Rules(),
            background=Background(
                money=Money("EUR"), costs=costs, pool=Pool(questions, pairs, pairs, AT_HAND), controls=[RETRIEVER]
            ),
        )
        return case, decide_on(case)


def followed(cell: Cell, seed: int, resamples: int) -> dict[str, Any]:
    """Return what comes of following the decision in one world, and of the other ways to spend the money."""
    rng = np.random.default_rng([seed, CELLS.index(cell)])
    world = World.draw(cell, rng)
    # Of repeated questions the product makes one each (`judgekit.analysis.repeats`): the pilot pays for all of them.
    asked = cell.questions // 2 if seed % REPEATED == 0 else cell.questions
    pilot = Pilot.of(cell, *world.ask(slice(cell.runs), asked, rng), resamples, seed)
    loss = 100 * (world.quality[: cell.runs].max() - world.quality[: cell.runs])
    row: dict[str, Any] = {"world": cell.world, "runs": cell.runs, "questions": cell.questions, "seed": seed}
    for order in ORDERS:
        values = PRICES if order == "ordered" else rng.permutation(PRICES).tolist()
        prices = dict(zip(LABELINGS, values, strict=True))
        case, decision = pilot.decided(prices)
        if order == "ordered":
            runs = {claim.subject: claim for claim in decision.claims if claim.kind == "run"}
            leader = int(decision.leader[1:])
            row |= {
                "best excluded": float(runs[f"r{int(np.argmin(loss)):02d}"].shown),
                "bound broken": float(loss[leader] > -runs[decision.leader].low + 1e-9),
                "loss of the leader": loss[leader],
                "kept": decision.kept,
            }
        cheaper = next((claim for claim in decision.claims if claim.kind == "cheaper"), None)
        saving = decision.kept or "answers"
        row |= {f"{name}, {order}": np.nan for name in _OF_CHEAPER}
        if cheaper is not None:
            gap = _true_r(world, cell, seed, cheaper.subject) - _true_r(world, cell, seed, cheaper.against)
            row[f"offered, {order}"] = float(cheaper.shown)
            if np.isfinite(cheaper.low):
                row[f"covers, {order}"] = float(cheaper.low <= gap <= cheaper.high)
            row[f"width, {order}"] = cheaper.high - cheaper.low
            saving = cheaper.subject if cheaper.shown else saving
        left = MONEY - cell.questions * (sum(values) + ANSWERS)
        useful = [follower.name for follower in case.eligible if follower.useful]
        before = useful[0] if useful else "answers"
        kept = decision.kept or "answers"
        # Where all answers are wrong alike nothing follows them.
        leader = case.followers[0].name if case.followers else "answers"
        row |= {f"bought, {order}": float(kept != FREE), f"bought before, {order}": float(before != FREE)}
        row |= {
            f"labels bought, {order}": float(kept in LABELINGS),
            f"labels bought before, {order}": float(before in LABELINGS),
        }
        chosen = {
            "decision": (kept, left),
            "decision, pilot not counted": (kept, MONEY),
            "largest r": (before, left),
            "largest r, pilot not counted": (before, MONEY),
            "decision, saving": (saving, left),
            "leader by r": (leader, left),
            "dearest": (max(prices, key=lambda name: prices[name]), MONEY),
            "cheapest": (min(prices, key=lambda name: prices[name]), MONEY),
            "answers only": ("answers", MONEY),
            "a coin": ("", 0.0),
        }
        row |= {f"{way}, {order}": regret for way, regret in _regrets(world, cell, chosen, prices, seed)}
    return row


def _true_r(world: World, cell: Cell, seed: int, labeling: str) -> float:
    """Return the r of a labeling for the runs of the pilot, over very many questions."""
    scores, quality = world.ask(slice(cell.runs), MANY, np.random.default_rng([seed, 11]))
    return pooled_correlation(scores[ALL.index(labeling)], quality, np.ones((MANY, 1))).value


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
        if name == FREE:
            number = AT_HAND
        values = quality if name == "answers" else scores[ALL.index(name)] if name else quality
        if number:
            yield way, float(loss[np.argmax(values[:, :number].mean(axis=1))])
        else:
            yield way, float(loss.mean())


def near(runs: int, questions: int, differ: float, gap: float, rng: np.random.Generator) -> Floats:
    """Return answers of runs of which two differ on a share of the questions; the first leads, or lags, by a gap."""
    own = rng.random(questions) < 2 * differ
    quality = np.where(own, rng.random((runs, questions)) < 0.5, rng.random(questions) < 0.5)
    moved = rng.random(questions) < 2 * gap
    quality[0] = quality[0] | moved if rng.random() < 0.5 else quality[0] & ~moved
    return quality.astype(np.float64)


@one_thread
def any_will_do(replicates: int) -> pd.DataFrame:
    """Return how often any run is said to do, and how often that is false, by how far apart runs are."""
    margin, rows = Rules().margin_points, []
    for questions in (500, 1500, 4000):
        weights = resample_matrix(questions, 300, 1)
        for runs, differ in itertools.product((2, 3, 6, 12), (0.02, 0.1)):
            for apart in ("equal", "up to twice the margin", "just above the margin"):
                rng = np.random.default_rng([questions, runs, int(100 * differ), len(apart)])
                said = broken = 0
                for _ in range(replicates):
                    gap = {"equal": 0.0, "just above the margin": 1.02 * margin}.get(apart, 2 * margin * rng.random())
                    quality = near(runs, questions, differ, gap / 100, rng)
                    enough = 100 * compared_with_best(quality, weights).cost.max() <= margin
                    said += enough
                    broken += enough and gap > margin
                rows.append((apart, runs, questions, differ, said / replicates, broken / replicates, replicates))
    names = ["runs apart", "runs", "questions", "differ", "said", "false", "n"]
    return pd.DataFrame(rows, columns=names)


@one_thread
def simulate(replicates: int, resamples: int, rows: Path) -> pd.DataFrame:
    """Return a row for each cell and replicate, the replicates that are whole; rows are written as they come."""
    rows.parent.mkdir(exist_ok=True)
    done = set(zip(*(pd.read_csv(rows)[name] for name in _KEY), strict=True)) if rows.exists() else set()
    with suppress(KeyboardInterrupt):
        for seed, cell in itertools.product(range(replicates), CELLS):
            if (cell.world, cell.runs, cell.questions, seed) in done:
                continue
            row = pd.DataFrame([followed(cell, seed, resamples)])
            row.to_csv(rows, mode="a", header=not rows.exists(), index=False)
            if cell == CELLS[-1]:
                print(f"{seed + 1} of {replicates}", file=sys.stderr, flush=True)
    table = pd.read_csv(rows, keep_default_na=False, na_values=[""]).fillna({"kept": ""})
    table = table[table.groupby("seed")["world"].transform("size") == len(CELLS)]
    return table.sort_values("seed", kind="stable")


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
    rows = ["| experiments | n | best run left out | leader's bound broken | leader's loss |",
            "| --- | --- | --- | --- | --- |"]  # fmt: skip
    for title, part in parts.items():
        shares = [_mean(part[name], 3) for name in _SHARES]
        rows.append(f"| {title} | {len(part):,} | {' | '.join(shares)} | {_mean(part['loss of the leader'])} |")
    for name in _SHARES:
        world = str(table.groupby("world")[name].mean().idxmax())
        rows += ["", f"Worst world, {name}: {_mean(table[table['world'] == world][name], 3)} ({world})."]
    return "\n".join(rows)


def any_table(table: pd.DataFrame) -> str:
    """Return how often any run is said to do, and how often that is false."""
    rows = ["| runs apart | n | said | said and false |", "| --- | --- | --- | --- |"]
    parts = {"all": table, **dict(iter(table.groupby("runs apart", sort=False)))}
    for title, part in parts.items():
        rows.append(f"| {title} | {part['n'].sum():,} | {part['said'].mean():.3f} | {part['false'].mean():.3f} |")
    worst = table.sort_values("false", kind="stable").iloc[-1]
    where = f"{worst['runs']} runs, {worst['questions']:,} questions, {worst['differ']:.0%} answered differently"
    rows += ["", f"Worst cell: false in {worst['false']:.3f} of {worst['n']} ({where}, {worst['runs apart']})."]
    return "\n".join(rows).replace("0.", ".")


def cheaper_table(table: pd.DataFrame) -> str:
    """Return how often the interval of the difference in r holds the truth, where one is printed."""
    rows = [
        "| a less expensive labeling is | prices | n | interval holds | its width |",
        "| --- | --- | --- | --- | --- |",
    ]
    for offered, title in ((1.0, "offered"), (0.0, "described")):
        for order in ORDERS:
            part = table[(table[f"offered, {order}"] == offered) & table[f"covers, {order}"].notna()]
            holds, width = _mean(part[f"covers, {order}"], 3), _mean(part[f"width, {order}"])
            rows.append(f"| {title} | {order} | {len(part):,} | {holds} | {width} |")
    return "\n".join(rows)


def regret_table(table: pd.DataFrame) -> str:
    """Return what each way to choose labels for later runs loses, with standard errors."""
    adverse, beside = table["world"].isin(ADVERSE), table["world"].isin(BESIDE)
    parts = {"all": table, "labels fair": table[~adverse & ~beside], "adverse": table[adverse]}
    parts["what is free is good or bad"] = table[beside]
    rows = [f"| worlds, prices | n | {' | '.join(WAYS)} |", f"| --- | --- |{' --- |' * len(WAYS)}"]
    for order in ORDERS:
        for title, part in parts.items():
            means = " | ".join(_mean(part[f"{way}, {order}"]) for way in WAYS)
            rows.append(f"| {title}, {order} | {len(part):,} | {means} |")
    rows += ["", "Paired differences, decision minus the other way:", ""]
    rows += [f"| prices | {' | '.join(WAYS[2:-1])} |", f"| --- |{' --- |' * len(WAYS[2:-1])}"]
    for order in ORDERS:
        gaps = (table[f"decision, {order}"] - table[f"{way}, {order}"] for way in WAYS[2:-1])
        rows.append(f"| {order} | {' | '.join(_mean(gap) for gap in gaps)} |")
    rows += ["", rivals_table(table, parts), ""]
    kept = table["kept"].replace("", "none").value_counts(normalize=True)
    listed = ", ".join(f"{name} {share:.2f}".replace("0.", ".") for name, share in kept.items())
    return "\n".join([*rows, "", f"Kept: {listed}."]).replace("dearest", "most expensive")


def rivals_table(table: pd.DataFrame, parts: Mapping[str, pd.DataFrame]) -> str:
    """Return the regret with and without free rivals, paired, and how often anything is bought."""
    rows = [
        "| worlds, prices | n | regret minus that of the largest r | pilot not counted | bought, before | bought"
        " | labels bought, before | labels bought |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    every = {**parts, **{world: table[table["world"] == world] for world in BESIDE}}
    for order in ORDERS:
        for title, part in every.items():
            gaps = [
                _mean(part[f"decision{also}, {order}"] - part[f"largest r{also}, {order}"])
                for also in ("", ", pilot not counted")
            ]
            shares = ("bought before", "bought", "labels bought before", "labels bought")
            bought = [_mean(part[f"{share}, {order}"]) for share in shares]
            rows.append(f"| {title}, {order} | {len(part):,} | {' | '.join([*gaps, *bought])} |")
    return "\n".join(rows)


def page(text: str, table: pd.DataFrame, near_runs: pd.DataFrame) -> str:
    """Return the page with the tables of the simulation."""
    tables = {
        "choose": claims_table(table),
        "any": any_table(near_runs),
        "keep": regret_table(table),
        "cheaper": cheaper_table(table),
    }
    for name, made in tables.items():
        first, last = f"<!-- simulated: {name} -->\n", f"\n<!-- /simulated: {name} -->"
        before, _, rest = text.partition(first)
        text = before + first + made + last + rest.partition(last)[2]
    return text


def main() -> None:
    """Simulate, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=300)
    parser.add_argument("--resamples", type=int, default=Rules().resamples)
    parser.add_argument("--rows", type=Path, default=ROWS, help="where rows are kept until all are there")
    given = parser.parse_args()
    table = simulate(given.replicates, given.resamples, given.rows)
    near_runs = any_will_do(given.replicates)
    cells = table.drop(columns=["kept", "seed"]).groupby(["world", "runs", "questions"])
    # A cell that is never offered anything has no mean of what is offered, and no error.
    means = cells.mean().join(cells.sem().add_suffix(", error")).assign(replicates=cells.size())
    means.round(4).reset_index().to_csv(TABLE, index=False)
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), table, near_runs), encoding="utf-8")


if __name__ == "__main__":
    main()
