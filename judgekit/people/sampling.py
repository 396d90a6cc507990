"""Chooses what people judge, each task with a known probability > 0, so that later results can be weighted."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, cycle, islice
from pathlib import Path
from typing import Final, Literal

import numpy as np

from judgekit.collection import Collection
from judgekit.data.columns import Floats, Ints
from judgekit.data.documents import Doc, Queries
from judgekit.data.labelings import Labeling, Scale
from judgekit.errors import UsageError
from judgekit.people.tasks import Form, Rule, Sample, Task, answer_id
from judgekit.reading.prompts import find_prompt

Pair = tuple[str, str]
Shown = tuple[str, tuple[str, ...]]
"""A task's question and documents."""

ANSWERS_DESIGN: Final = "answers"
"""The design of samples of answers."""
ANSWER_GRADES: Final = ("Wrong", "Partly right", "Right")

_GUIDELINE: Final[Mapping[str, str]] = {
    "grades": "How well does the passage answer the question? Judge what the passage says, not what you know.",
    "best": "Which passage answers the question best? First the correct one; of two correct ones the one with more of"
    " what is asked for and less else; of two alike the one with more detail. None, if none answers it.",
    "answers": "Is the answer right? Judge what it says about the question, by the reference answer where there is one,"
    " not its style or its length.",
}


@dataclass(frozen=True)
class Handout:
    """The distribution of a sample's tasks among assessors.

    Attributes:
        assessors: their names.
        overlap: number of assessors per task.
        duplicates: share of tasks to show again.
        rule: the rule that turns several judgments into one label.
        seed: seed of the draw and of the distribution.
    """

    assessors: Sequence[str] = ("1",)
    overlap: int = 1
    duplicates: float = 0.0
    rule: Rule = "majority"
    seed: int = 1

    def __post_init__(self) -> None:
        most = len(self.assessors)
        if len(set(self.assessors)) < most or not all(name.strip() for name in self.assessors):
            raise UsageError(f"assessors need distinct names, not {', '.join(self.assessors) or 'none'}")
        if not 1 <= self.overlap <= most:
            raise UsageError(f"overlap, how many assessors judge a pair, must be from 1 to {most}, not {self.overlap}")
        # Repeats only tell about assessors, and are not worth more than half of the tasks.
        if not 0 <= self.duplicates <= 0.5:
            raise UsageError(
                f"duplicates, the share of tasks shown twice, must be from 0 to 0.5, not {self.duplicates:g}"
            )

    def given(self, tasks: Sequence[Task], random: np.random.Generator) -> tuple[Task, ...]:
        """Return the tasks, each for ``overlap`` assessors in turn, followed by those shown again."""
        given, turns = list(tasks), cycle(self.assessors)
        # Shuffled, because tasks are sorted by query, and no assessor should get all of a query.
        for place in random.permutation(len(tasks)):
            given[place] = replace(tasks[place], assessors=tuple(islice(turns, self.overlap)))
        if self.duplicates:
            again = random.choice(len(tasks), math.ceil(self.duplicates * len(tasks)), replace=False)
            for place in sorted(again):
                task = given[place]
                given.append(replace(task, task=f"{task.task}r", repeat_of=task.task))
        return tuple(given)


def draw(
    collection: Collection,
    *,
    n: int = 100,
    design: Literal["queries", "pairs"] = "queries",
    form: Form = "grades",
    prompt: str = "graded",
    handout: Handout = Handout(),
) -> Sample:
    """Draw whole queries, or pairs, from the pool of all runs with equal probabilities."""
    pairs = [(query_id, doc_id) for query_id, docs in collection.pairs.items() for doc_id in docs]
    if not pairs:
        raise UsageError("the pool is empty, so no pair can be sampled")
    drawn_from: Sequence[str | Pair] = pairs
    if design == "queries":
        # Measures such as nDCG need the labels of all pooled documents of a query.
        drawn_from = [query_id for query_id, docs in collection.pairs.items() if docs]
    elif form == "best":
        raise UsageError("form 'best' shows documents of one query side by side: use the design 'queries'")
    _check(n, len(drawn_from), design)
    random = np.random.default_rng(handout.seed)
    drawn = {drawn_from[place] for place in random.choice(len(drawn_from), n, replace=False)}
    wanted: dict[Pair, float] = {}
    for pair in pairs:
        if (pair[0] if design == "queries" else pair) in drawn:
            wanted[pair] = n / len(drawn_from)
    return draw_wanted(collection, wanted, design, form=form, prompt=prompt, handout=handout, random=random)


def draw_wanted(
    collection: Collection,
    wanted: Mapping[Pair, float],
    design: str,
    *,
    form: Form = "grades",
    prompt: str = "graded",
    handout: Handout = Handout(),
    random: np.random.Generator | None = None,
) -> Sample:
    """Have people judge these pairs of the pool, drawn by a design with known probabilities."""
    _check(len(wanted))
    random = random or np.random.default_rng(handout.seed)
    shown: list[Shown] = [(query_id, (doc_id,)) for query_id, doc_id in wanted]
    if form == "best":
        shown = _showings(wanted, random)
        scale, grades, guideline = Scale("unit"), tuple[str, ...](), ""
    else:
        scale, grades, guideline = _rubric(prompt)
    tasks = []
    for number, (query_id, doc_ids) in enumerate(shown, 1):
        docs = collection.docs.get(doc_ids)
        tasks.append(Task.of(f"t{number:05d}", collection.queries[query_id], docs, wanted[query_id, doc_ids[0]]))
    return Sample(
        form=form,
        design=design,
        scale=str(scale),
        grades=grades,
        guideline=guideline or _GUIDELINE[form],
        queries=sum(1 for docs in collection.pairs.values() if docs),
        pairs=collection.n_pairs,
        seed=handout.seed,
        rule=handout.rule,
        tasks=handout.given(tasks, random),
    )


def draw_answers(
    queries: Queries,
    texts: Mapping[str, Mapping[str, str]],
    *,
    n: int,
    depth: int,
    handout: Handout = Handout(),
) -> Sample:
    """Draw random questions whose answers people grade, without seeing which run or model gave them.

    Args:
        queries: the questions.
        texts: the answers of each run by question. Only questions that all runs answered can be drawn.
        n: number of questions.
        depth: of the answers.
        handout: who grades them.
    """
    answered = answered_by_all(queries, texts)
    _check(n, len(answered), "questions that every run answered")
    random = np.random.default_rng(handout.seed)
    tasks: list[Task] = []
    for place in sorted(random.choice(len(answered), n, replace=False)):
        query = queries[answered[place]]
        if query.answers:
            # Without the right answer, people can only judge the style.
            query = replace(query, text=f"{query.text}\n\nReference answer: {'; or: '.join(query.answers)}")
        # Equal answers of several runs are graded once. Their order reveals nothing about the runs.
        for text in sorted({texts[run][query.query_id] for run in texts}, key=answer_id):
            answer = Doc(answer_id(text), text)
            tasks.append(Task.of(f"t{len(tasks) + 1:05d}", query, [answer], n / len(answered)))
    return Sample(
        form="grades",
        design=f"{ANSWERS_DESIGN}(depth={depth})",
        scale=str(Scale("grades", len(ANSWER_GRADES) - 1)),
        grades=ANSWER_GRADES,
        guideline=_GUIDELINE["answers"],
        queries=len(answered),
        pairs=len(answered),
        seed=handout.seed,
        rule=handout.rule,
        tasks=handout.given(tasks, random),
    )


def answered_by_all(queries: Iterable[str], texts: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the questions that every run answered, in order."""
    answered: list[str] = []
    for query_id in queries:
        if all(of_run.get(query_id) for of_run in texts.values()):
            answered.append(query_id)
    return answered


def _check(n: int, most: int | None = None, what: str = "") -> None:
    if n < 1:
        raise UsageError(f"n, how many to draw, must be at least 1, not {n}")
    if most is not None and n > most:
        raise UsageError(f"{n:,} {what} were requested, but only {most:,} exist")


def _rubric(prompt: str) -> tuple[Scale, tuple[str, ...], str]:
    """Return the scale, the names of the grades, and the instructions."""
    judge = find_prompt(prompt, Path)
    output = judge.output
    if judge.kind == "judge" and output.scale is not None:
        if output.type == "yes/no":
            return output.scale, ("No", "Yes"), judge.guideline
        if output.type == "grade":
            return output.scale, tuple(name for name, _ in output.form.others), judge.guideline
    raise UsageError(f"people give the grades of a judge prompt, but {prompt!r} declares none: use graded or binary")


def coarse(labeling: Labeling, labels: Floats) -> Floats:
    """Return labels in few values: grades unchanged, others in five equal steps of their scale; -1 for none."""
    scale = labeling.scale
    if not scale.integral:
        labels = np.minimum(np.floor(5 * (labels - scale.low) / (scale.high - scale.low)), 4)
    return np.asarray(np.where(np.isnan(labels), scale.low - 1.0, labels))


def probabilities(weight: Floats, n: int) -> Floats:
    """Return probabilities in proportion to weights, at most 1, whose sum is n or the number of positive weights."""
    probability, sure = np.zeros(len(weight)), np.zeros(len(weight), np.bool_)
    # Weights worth more than one draw are certain to be drawn; the others share the rest.
    while True:
        rest = ~sure & (weight > 0)
        probability[rest] = (n - sure.sum()) * weight[rest] / weight[rest].sum()
        probability[sure] = 1
        if not (more := probability > 1).any():
            return probability
        sure |= more


def systematic(weight: Floats, n: int, random: np.random.Generator) -> tuple[Floats, Ints]:
    """Draw exactly n cases with probabilities in proportion to their weights, at most 1 (Madow, 1949)."""
    # Shuffled first, so that no two cases are tied together.
    probability = probabilities(weight, n)
    order = random.permutation(len(weight))
    ends = np.cumsum(probability[order])
    places = random.random() + np.arange(n)
    at = np.minimum(np.searchsorted(ends, places * (ends[-1] / n), side="right"), len(weight) - 1)
    return probability, np.sort(order[at])


def _showings(wanted: Iterable[Pair], random: np.random.Generator) -> list[Shown]:
    """Return the documents of a query in threes (in twos if there are only two), each meeting others equally often."""
    # With more than three documents, each is shown at least twice: greedily the three that met least so far.
    pools: dict[str, list[str]] = {}
    for query_id, doc_id in wanted:
        pools.setdefault(query_id, []).append(doc_id)
    for query_id, pool in pools.items():
        if len(pool) < 2:
            raise UsageError(f"query {query_id!r} has a single document, and a choice needs two")
    showings: list[Shown] = []
    for query_id, pool in pools.items():
        shuffled = [pool[place] for place in random.permutation(len(pool))]
        showings += ((query_id, docs) for docs in _balanced(shuffled))
    return showings


def _balanced(docs: Sequence[str]) -> list[tuple[str, ...]]:
    if len(docs) <= 3:
        return [tuple(docs)]
    times, met = Counter[str](), Counter[frozenset[str]]()

    def before(three: tuple[str, ...]) -> tuple[int, int]:
        """Return how often these met, and how often they were shown."""
        return sum(met[frozenset(two)] for two in combinations(three, 2)), sum(times[doc] for doc in three)

    showings: list[tuple[str, ...]] = []
    while min(times[doc] for doc in docs) < 2:
        first = min(docs, key=times.__getitem__)
        others = [doc for doc in docs if doc != first]
        shown = min(((first, *two) for two in combinations(others, 2)), key=before)
        showings.append(shown)
        times.update(shown)
        met.update(map(frozenset, combinations(shown, 2)))
    return showings
