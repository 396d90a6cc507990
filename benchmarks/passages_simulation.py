"""Labels passages in worlds where it is known what an LLM makes of each, and follows what the product says to keep.

    python benchmarks/passages_simulation.py      # writes passages.csv and its tables, about five minutes

`decision_simulation` models a labeling by its noise, its bias and its price. Here labels come about as they do: each
question has passages that are relevant or not, a relevant one may be read or overlooked, and another one may mislead
the LLM to one of three wrong answers. An LLM that is not misled abstains. From this follow the answers from the top 5
and the labels of the answering model (erag, reads, own, distraction), a string match, a judge and a reranker.

The worlds are honest, but for what their names say: an LLM that abstains from what is not relevant; one that is often
misled, by all runs' passages alike; runs whose passages mislead it more or less often; questions whose own answer from
the list is mostly wrong; runs that the labelling reranker has reranked.

Two things are followed: the r of each labeling over very many questions, which is its truth, and what comes of the
labeling that the decision keeps: it chooses among six later runs on as many questions as there are at hand.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from judgekit.analysis.background import Background
from judgekit.analysis.case import Case
from judgekit.analysis.decision import decide_on
from judgekit.analysis.follow import pooled_correlation
from judgekit.analysis.inputs import Panel
from judgekit.analysis.levels import Resamples, estimates
from judgekit.analysis.money import Money
from judgekit.analysis.primary import CHOOSE_RUNS, Primary
from judgekit.analysis.resampling import resample_matrix
from judgekit.analysis.threads import one_thread
from judgekit.collection import Pool
from judgekit.rules import Rules

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

HERE: Final = Path(__file__).resolve().parent
TABLE: Final = HERE / "passages.csv"
PAGE: Final = HERE / "simulations.md"
LABELINGS: Final = ("containment", "rerank", "judge", "erag", "reads", "own", "distraction")
UNREFERENCED: Final = ("rerank", "judge", "reads", "own")
"""What needs no reference answers."""
OFFERED: Final = {"kept": LABELINGS, "kept of those without references": UNREFERENCED}
"""What a pilot may hold: the decision keeps one of all labelings, or one of those that need no references."""
PRICES: Final = {"containment": 0.0, "rerank": 0.5, "judge": 12.0, "answers": 18.0}
"""Units that a question takes; the answering model takes as many as a judge."""
PASSAGES: Final = 20
TOP: Final = 5
PILOT: Final = 6
LATER: Final = 6
QUESTIONS: Final = 200
AT_HAND: Final = 500
MANY: Final = 2_000
WRONG: Final = 3
"""How many wrong answers misleading passages lead to."""
DISCOUNT: Final = 1 / np.log2(np.arange(2, TOP + 2))


class World(NamedTuple):
    """How an LLM and the runs behave.

    Attributes:
        misled: probability that a passage that is not relevant misleads the LLM.
        apart: how far runs differ in it, on the scale of log odds.
        crowded: share of the questions whose first passages mislead to one wrong answer together.
        reranked: whether every second run was reranked by the labelling reranker.
    """

    misled: float = 0.1
    apart: float = 0.0
    crowded: float = 0.0
    reranked: bool = False


WORLDS: Final = {
    "abstains": World(),
    "often misled": World(misled=0.4),
    "misled by run": World(misled=0.2, apart=1.0),
    "own answer wrong": World(crowded=0.5),
    "reranked": World(reranked=True),
}


@dataclass(frozen=True)
class Runs:
    """The runs of a world, those of the pilot first: how well each finds what is relevant, and how much it misleads."""

    world: World
    skill: Floats
    misleading: Floats
    reranked: Bools

    @classmethod
    def draw(cls, world: World, rng: np.random.Generator) -> Runs:
        """Draw the runs of the pilot and the later ones."""
        runs = PILOT + LATER
        misleading = rng.normal(size=runs) * world.apart
        return cls(world, 1.2 + 0.25 * rng.normal(size=runs), misleading, np.arange(runs) % 2 == 0)

    def asked(self, which: slice, questions: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return the scores by all labelings, shape (L, R, n), and the quality of the answers, shape (R, n)."""
        passages = _Passages.draw(self.world, questions, rng)
        lists = np.stack([self._list(run, passages, rng) for run in range(len(self.skill))[which]])
        labels = passages.labels(_by_rank(lists), rng)
        scores = np.stack([_score(name, labels[name], lists) for name in LABELINGS])
        return scores, passages.answered(lists, rng)

    def _list(self, run: int, passages: _Passages, rng: np.random.Generator) -> Ints:
        """Return a run's first passages of each question, shape (n, TOP)."""
        value = self.skill[run] * passages.relevant + rng.normal(size=passages.relevant.shape)
        # What misleads is like the question: some runs like it more than others.
        value = value + self.misleading[run] * (passages.wrong >= 0)
        if self.world.reranked and self.reranked[run]:
            value = value + passages.reranker
        return np.argsort(-value, axis=1)[:, :TOP]


@dataclass(frozen=True)
class _Passages:
    """The passages of questions, shape (n, PASSAGES).

    Attributes:
        relevant: whether the answer stands in it.
        read: whether the LLM finds it there.
        wrong: the wrong answer to which it misleads the LLM, -1 for none.
        known: whether the LLM knows the answer without any passage, shape (n, 1).
        reranker: what a reranker says, as a logit.
    """

    relevant: Bools
    read: Bools
    wrong: Ints
    known: Bools
    reranker: Floats

    @classmethod
    def draw(cls, world: World, questions: int, rng: np.random.Generator) -> _Passages:
        shape = questions, PASSAGES
        relevant = rng.random(shape) < rng.beta(1, 6, size=(questions, 1))
        misled = ~relevant & (rng.random(shape) < world.misled)
        crowd = rng.random((questions, 1)) < world.crowded
        misled |= crowd & ~relevant & (rng.random(shape) < 0.6)
        answers = np.where(crowd, 0, rng.integers(WRONG, size=shape))
        logit = 3.0 * relevant - 2.0 + 1.2 * rng.normal(size=shape)
        return cls(
            relevant,
            relevant & (rng.random(shape) < 0.8),
            np.where(misled, answers, -1),
            rng.random((questions, 1)) < 0.1,
            logit,
        )

    def labels(self, listed: Ints, rng: np.random.Generator) -> dict[str, Floats]:
        """Return the labels of all passages by labeling; ``listed`` are the passages of the model's own answer."""
        shape = self.relevant.shape
        held = np.where(self.relevant, rng.random(shape) < 0.85, rng.random(shape) < 0.05)
        right = self.read | self.known
        answers = right | (self.wrong >= 0)
        own = self._answer(listed, rng)[:, None]
        agrees = np.where(own == WRONG, right, (self.wrong == own) & (own >= 0))
        return {
            "containment": held.astype(float),
            "rerank": 1 / (1 + np.exp(-self.reranker)),
            "judge": np.where(self.relevant, rng.random(shape) < 0.85, rng.random(shape) < 0.15).astype(float),
            "erag": right.astype(float),
            "reads": answers.astype(float),
            "own": agrees.astype(float),
            "distraction": np.where(held, 1.0, -1 / 3) * answers,
        }

    def answered(self, lists: Ints, rng: np.random.Generator) -> Floats:
        """Return whether the answer from each list is right, shape (R, n)."""
        return np.stack([self._answer(listed, rng) == WRONG for listed in lists]).astype(float)

    def _answer(self, listed: Ints, rng: np.random.Generator) -> Ints:
        """Return the answer to each question from a list: `WRONG` for the right one, a wrong one, or -1 for none."""
        read = np.take_along_axis(self.read, listed, axis=1)
        wrong = np.take_along_axis(self.wrong, listed, axis=1)
        weight = DISCOUNT[: listed.shape[1]]
        votes = [((wrong == answer) * weight).sum(axis=1) for answer in range(WRONG)]
        right = (read * weight).sum(axis=1)
        votes.append(right + self.known[:, 0] * 0.5)
        strength = np.stack(votes, axis=1)
        # The more speaks for an answer, the likelier it is given.
        noisy = np.where(strength > 0, strength + 0.4 * rng.gumbel(size=strength.shape), -np.inf)
        best = np.argmax(noisy, axis=1)
        return np.where(strength.any(axis=1), best, -1)


def _by_rank(lists: Ints) -> Ints:
    """Return the first passages of all runs together, by reciprocal ranks, shape (n, TOP)."""
    points = np.zeros((lists.shape[1], PASSAGES))
    for ranked in lists:
        np.put_along_axis(
            points, ranked, np.take_along_axis(points, ranked, axis=1) + 1 / np.arange(1, TOP + 1), axis=1
        )
    return np.argsort(-points, axis=1, kind="stable")[:, :TOP]


def _score(labeling: str, labels: Floats, lists: Ints) -> Floats:
    """Return nDCG@5 of each list, shape (R, n), UDCG@5 of labels that may be negative; ideal over what runs found."""
    gains = np.stack([np.take_along_axis(labels, ranked, axis=1) for ranked in lists])
    if labeling == "distraction":
        return np.asarray(1 / (1 + np.exp(-gains.mean(axis=2))))
    found = np.zeros(labels.shape, np.bool_)
    for ranked in lists:
        np.put_along_axis(found, ranked, values=True, axis=1)
    ideal = -np.sort(-np.where(found, labels, 0.0), axis=1)[:, :TOP] @ DISCOUNT
    return np.asarray((gains @ DISCOUNT) / np.where(ideal > 0, ideal, 1.0))


def kept(labelings: tuple[str, ...], scores: Floats, quality: Floats, resamples: int, seed: int) -> str:
    """Return which of some labelings the decision keeps on a pilot, "" for none; scores are those of all."""
    questions = quality.shape[1]
    panel = Panel(
        measure="nDCG@5",
        depth=TOP,
        metric="em",
        model="m",
        labelings=labelings,
        runs=tuple(f"r{run}" for run in range(len(quality))),
        queries=tuple(f"q{question:04d}" for question in range(questions)),
        scores=scores[[LABELINGS.index(name) for name in labelings]],
        quality=quality,
        asked=np.ones(quality.shape, np.bool_),
    )
    drawn = Resamples(resample_matrix(questions, resamples, seed), None)
    prices = {name: PRICES.get(name, PRICES["judge"]) for name in (*labelings, "answers")}
    costs = pd.DataFrame({"labeling": list(prices), "money": [questions * price for price in prices.values()]})
    pairs = 12 * questions
    case = Case(
        primary=Primary("nDCG@5", "em", "m", TOP, CHOOSE_RUNS),
        panel=panel,
        found={"within-query": list(estimates(panel, "within-query", drawn, ("concordance",)))},
        resamples=drawn,
        rules=Rules(),
        background=Background(money=Money("EUR"), costs=costs, pool=Pool(questions, pairs, pairs, AT_HAND)),
    )
    return decide_on(case).kept


def followed(name: str, seed: int, resamples: int) -> dict[str, Any]:
    """Return the true r of each labeling in a world, what is kept, and what each choice of a later run loses."""
    rng = np.random.default_rng([seed, list(WORLDS).index(name)])
    runs = Runs.draw(WORLDS[name], rng)
    row: dict[str, Any] = {"world": name, "seed": seed}
    scores, quality = runs.asked(slice(PILOT), QUESTIONS, rng)
    for way, labelings in OFFERED.items():
        row[way] = kept(labelings, scores, quality, resamples, seed)
    scores, quality = runs.asked(slice(PILOT), MANY, rng)
    for place, labeling in enumerate(LABELINGS):
        row[f"r, {labeling}"] = pooled_correlation(scores[place], quality, np.ones((MANY, 1))).value
    later = slice(PILOT, PILOT + LATER)
    truth = 100 * runs.asked(later, 20 * AT_HAND, rng)[1].mean(axis=1)
    scores, quality = runs.asked(later, AT_HAND, rng)
    chosen = {labeling: scores[place].mean(axis=1) for place, labeling in enumerate(LABELINGS)}
    chosen["answers"] = quality.mean(axis=1)
    losses = {way: float(truth.max() - truth[np.argmax(means)]) for way, means in chosen.items()}
    row |= {f"loss, {way}": loss for way, loss in losses.items()}
    row |= {f"loss, {way}": losses[row[way] or "answers"] for way in OFFERED}
    row["loss, a coin"] = float(truth.max() - truth.mean())
    return row


@one_thread
def simulate(replicates: int, resamples: int) -> pd.DataFrame:
    """Return a row for each world and replicate."""
    return pd.DataFrame(
        [followed(name, seed, resamples) for seed, name in itertools.product(range(replicates), WORLDS)]
    )


def _mean(values: pd.Series, digits: int = 2) -> str:
    error = values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.{digits}f} ({error:.{digits}f})".replace("0.", ".")


def _table(parts: Mapping[str, pd.DataFrame], what: str, ways: tuple[str, ...]) -> Iterator[str]:
    yield f"| {what} | {' | '.join(ways)} |"
    yield f"| --- |{' --- |' * len(ways)}"
    for title, part in parts.items():
        yield f"| {title} | {' | '.join(_mean(part[f'{what}, {way}']) for way in ways)} |"


def tables(rows: pd.DataFrame) -> str:
    """Return what the page shows: r, losses, and what is kept, with standard errors."""
    parts = {name: rows[rows["world"] == name] for name in WORLDS}
    lines = [
        *_table(parts, "r", LABELINGS),
        "",
        *_table(parts, "loss", (*LABELINGS, "answers", *OFFERED, "a coin")),
        "",
    ]
    for title, part in parts.items():
        listed = []
        for way in OFFERED:
            shares = part[way].replace("", "none").value_counts(normalize=True)
            each = ", ".join(f"{name} {share:.2f}".replace("0.", ".") for name, share in shares.items())
            listed.append(f"{way}: {each}")
        lines.append(f"- {title} ({len(part)} replicates). {'; '.join(listed)}.")
    return "\n".join(lines)


def main() -> None:
    """Simulate, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=20)
    parser.add_argument("--resamples", type=int, default=300)
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--page", type=Path, default=PAGE)
    given = parser.parse_args()
    rows = simulate(given.replicates, given.resamples)
    rows.round(4).to_csv(given.table, index=False)
    text = given.page.read_text(encoding="utf-8")
    first, last = "<!-- simulated: passages -->\n", "\n<!-- /simulated: passages -->"
    before, _, rest = text.partition(first)
    after = rest.partition(last.lstrip("\n"))[2]
    given.page.write_text(before + first + tables(rows) + last + after, encoding="utf-8")


if __name__ == "__main__":
    main()
