"""Choose what people judge, each task with a known probability > 0, so that everything later can be weighted by it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, cycle, islice
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.stats import t

from judgekit.collection import Collection
from judgekit.data.documents import Doc, Queries
from judgekit.data.labelings import Labeling, Scale
from judgekit.errors import UsageError, not_among
from judgekit.metrics import Measure
from judgekit.people.tasks import Form, Rule, Sample, Task, answer_id
from judgekit.reading.prompts import find_prompt
from judgekit.scoring import score_pool

Floats = npt.NDArray[np.float64]
Pair = tuple[str, str]

ANSWERS_DESIGN: Final = "answers"
"""The design of samples of answers."""
ANSWER_GRADES: Final = ("Wrong", "Partly right", "Right")

_SURE: Final = 0.5
"""How often a pair is drawn that a judge is sure of, of what it is in a plain sample: a sure judge may be wrong."""
_GUIDELINE: Final[Mapping[str, str]] = {
    "grades": "How well does the passage answer the question? Judge what the passage says, not what you know.",
    "best": "Which passage answers the question best? First the correct one; of two correct ones the one with more of"
    " what is asked for and less else; of two alike the one with more detail. None, if none answers it.",
    "answers": "Is the answer right? Judge what it says about the question, by the reference answer where there is one,"
    " not its style or its length.",
}


def draw(
    collection: Collection,
    *,
    n: int = 100,
    design: str = "queries",
    form: Form = "grades",
    labelings: Mapping[str, Labeling] | None = None,
    by: str | None = None,
    prompt: str = "graded",
    assessors: Sequence[str] = ("1",),
    overlap: int = 1,
    duplicates: float = 0.0,
    rule: Rule = "majority",
    seed: int = 1,
) -> Sample:
    """Draw the pairs that people judge from the pool of all runs, with their probabilities."""
    _check(n, assessors, overlap, duplicates)
    random = np.random.default_rng(seed)
    pairs = _pool(collection)
    queries = [query_id for query_id, docs in collection.pairs.items() if docs]
    if form == "best" and design != "queries":
        raise UsageError("form 'best' shows documents of one query side by side: use the design 'queries'")
    if design == "queries":
        _enough(n, len(queries), "queries")
        chosen = {queries[at] for at in random.choice(len(queries), n, replace=False)}
        wanted = {pair: n / len(queries) for pair in pairs if pair[0] in chosen}
    else:
        _enough(n, len(pairs), "pairs")
        probability, at = _drawn(design, pairs, labelings or {}, by, n, random)
        wanted = {pairs[i]: float(probability[i]) for i in at}
    sample = _sample(collection, wanted, form=form, prompt=prompt, random=random)
    assigned = _assigned(sample.tasks, assessors, overlap, duplicates, random)
    spelling = design + (f"(by={by})" if by else "")
    return replace(sample, design=spelling, seed=seed, rule=rule, tasks=assigned, name="")


def draw_wanted(
    collection: Collection,
    wanted: Mapping[Pair, float],
    design: str,
    *,
    prompt: str = "graded",
    assessors: Sequence[str] = ("1",),
    overlap: int = 1,
    duplicates: float = 0.0,
    rule: Rule = "majority",
    seed: int = 1,
) -> Sample:
    """Have people grade these pairs of the pool, each of which had a probability to be drawn by a design."""
    _check(len(wanted), assessors, overlap, duplicates)
    random = np.random.default_rng(seed)
    sample = _sample(collection, wanted, form="grades", prompt=prompt, random=random)
    assigned = _assigned(sample.tasks, assessors, overlap, duplicates, random)
    return replace(sample, design=design, seed=seed, rule=rule, tasks=assigned, name="")


def _pool(collection: Collection) -> list[Pair]:
    pairs = [(query_id, doc_id) for query_id, docs in collection.pairs.items() for doc_id in docs]
    if not pairs:
        raise UsageError("the pool is empty, so no pair can be sampled")
    return pairs


def _sample(
    collection: Collection, wanted: Mapping[Pair, float], *, form: Form, prompt: str, random: np.random.Generator
) -> Sample:
    """Return the tasks of a sample, as the form shows them, which nobody has been given yet."""
    if form == "best":
        shown = _showings(wanted, random)
        scale, grades, told = Scale("unit"), tuple[str, ...](), ""
    else:
        shown = [(query_id, (doc_id,)) for query_id, doc_id in wanted]
        scale, grades, told = _rubric(prompt)
    tasks = tuple(
        Task.of(f"t{number:05d}", collection.queries[query], collection.docs.get(docs), wanted[query, docs[0]])
        for number, (query, docs) in enumerate(shown, 1)
    )
    queries = sum(1 for docs in collection.pairs.values() if docs)
    pairs = len(_pool(collection))
    return Sample(form, "", str(scale), grades, told or _GUIDELINE[form], queries, pairs, 0, "majority", tasks=tasks)


def draw_answers(
    queries: Queries,
    texts: Mapping[str, Mapping[str, str]],
    *,
    n: int,
    depth: int,
    assessors: Sequence[str] = ("1",),
    overlap: int = 1,
    duplicates: float = 0.0,
    rule: Rule = "majority",
    seed: int = 1,
) -> Sample:
    """Draw questions at random, all of whose answers people grade; nothing tells which run or model gave an answer.

    Args:
        queries: the questions.
        texts: the answers of each run by question. Only questions that all runs answered are drawn from.
        n: how many questions.
        depth: of the answers.
        assessors: their names.
        overlap: how many assessors grade each answer.
        duplicates: share of the tasks shown again.
        rule: what makes one grade of several.
        seed: of the draw.
    """
    _check(n, assessors, overlap, duplicates)
    there = answered_by_all(queries, texts)
    _enough(n, len(there), "questions that every run answered")
    random = np.random.default_rng(seed)
    tasks: list[Task] = []
    for at in sorted(random.choice(len(there), n, replace=False)):
        query = queries[there[at]]
        told = f"{query.text}\n\nReference answer: {'; or: '.join(query.answers)}" if query.answers else query.text
        # Equal answers of several runs are graded once. Their order says nothing of the runs.
        shown = sorted({texts[run][query.query_id] for run in texts}, key=answer_id)
        for text in shown:
            answer = Doc(answer_id(text), text)
            tasks.append(Task.of(f"t{len(tasks) + 1:05d}", replace(query, text=told), [answer], n / len(there)))
    assigned = _assigned(tasks, assessors, overlap, duplicates, random)
    design, scale = f"{ANSWERS_DESIGN}(depth={depth})", Scale("grades", len(ANSWER_GRADES) - 1)
    told = _GUIDELINE["answers"]
    return Sample("grades", design, str(scale), ANSWER_GRADES, told, len(there), len(there), seed, rule, tasks=assigned)


def answered_by_all(queries: Iterable[str], texts: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the questions that every run has an answer to, in their order."""
    return [query_id for query_id in queries if all(of_run.get(query_id) for of_run in texts.values())]


def _check(n: int, assessors: Sequence[str], overlap: int, duplicates: float) -> None:
    if n < 1:
        raise UsageError(f"n, how many to draw, must be at least 1, not {n}")
    if len(set(assessors)) < len(assessors) or not all(name.strip() for name in assessors):
        raise UsageError(f"assessors need distinct names, not {', '.join(assessors) or 'none'}")
    if not 1 <= overlap <= len(assessors):
        raise UsageError(f"overlap, how many assessors judge a pair, must be from 1 to {len(assessors)}, not {overlap}")
    if not 0 <= duplicates <= 0.5:
        raise UsageError(f"duplicates, the share of tasks shown twice, must be from 0 to 0.5, not {duplicates:g}")


def _enough(n: int, there: int, what: str) -> None:
    if n > there:
        raise UsageError(f"{n:,} {what} were asked for, but only {there:,} exist")


def _rubric(prompt: str) -> tuple[Scale, tuple[str, ...], str]:
    """Return the scale, the names of the grades, and what people are told."""
    found = find_prompt(prompt, Path)
    output = found.output
    if found.kind == "judge" and output.scale is not None:
        if output.type == "yes/no":
            return output.scale, ("No", "Yes"), found.guideline
        if output.type == "grade":
            return output.scale, tuple(name for name, _ in output.form.others), found.guideline
    raise UsageError(f"people give the grades of a judge prompt, and {prompt!r} declares none: use graded or binary")


def _drawn(
    design: str,
    pairs: Sequence[Pair],
    labelings: Mapping[str, Labeling],
    by: str | None,
    n: int,
    random: np.random.Generator,
) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return the probability of every pair, and the positions of those drawn."""
    if design == "pairs":
        return np.full(len(pairs), n / len(pairs)), np.sort(random.choice(len(pairs), n, replace=False))
    if by is not None and by not in labelings:
        raise UsageError(not_among("labeling", by, labelings))
    if design == "doubtful":
        if by is None:
            raise UsageError("design 'doubtful' draws by the probabilities of one labeling: name it with by")
        if labelings[by].scale.kind != "unit":
            raise UsageError(f"design 'doubtful' needs probabilities, and {by!r} has the scale {labelings[by].scale}")
        said = labelings[by].at(pairs)
        return systematic(doubtful(said), n, random)
    chosen = [labelings[by]] if by else list(labelings.values())
    if not chosen:
        raise UsageError("design 'stratified' needs the labels of a finished run: name its folder")
    table = np.stack([coarse(labeling, labeling.at(pairs)) for labeling in chosen])
    strata = np.unique(table, axis=1, return_inverse=True)[1].reshape(-1)
    return proportional(strata, n, random)


def doubtful(said: Floats) -> Floats:
    """Return weights by how unsure a judge is of each pair, from its P(yes); none far below 1, the mean."""
    doubt = np.where(np.isnan(said), 0.5, np.sqrt(np.clip(said * (1 - said), 0.0, None)))
    return _SURE + (1 - _SURE) * (doubt / doubt.mean() if doubt.any() else np.ones(len(doubt)))


def coarse(labeling: Labeling, said: Floats) -> Floats:
    """Return labels of few values: grades as they are, others in five equal steps of their scale; none is -1."""
    scale = labeling.scale
    if not scale.integral:
        steps = np.floor(5 * (said - scale.low) / (scale.high - scale.low))
        said = np.minimum(steps, 4)
    return np.asarray(np.where(np.isnan(said), scale.low - 1.0, said))


def proportional(
    strata: npt.NDArray[np.int64], n: int, random: np.random.Generator
) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Draw n of the cases, from each stratum in proportion and at least one: probability of each, positions drawn."""
    size = np.bincount(strata)
    if len(size) > n:
        raise UsageError(f"{n:,} pairs are fewer than the {len(size):,} strata: sample more, or use pairs")
    share = np.maximum(n * size / len(strata), 1)
    while True:  # what a small stratum gets beyond its share, the large ones give
        over = share.sum() - n
        large = share > 1
        if over <= 1e-9:
            break
        share[large] = np.maximum(share[large] - over * share[large] / share[large].sum(), 1)
    taken = np.floor(share + 1e-9).astype(np.int64)
    rest = np.argsort(taken - share, kind="stable")[: n - int(taken.sum())]
    taken[rest] += 1
    drawn = [
        random.choice(np.flatnonzero(strata == stratum), count, replace=False) for stratum, count in enumerate(taken)
    ]
    return (taken / size)[strata], np.sort(np.concatenate(drawn))


def probabilities(weight: Floats, n: int) -> Floats:
    """Return probabilities in proportion to weights, none above 1, that add up to n, or to all that weigh something."""
    probability, sure = np.zeros(len(weight)), np.zeros(len(weight), np.bool_)
    while True:
        rest = ~sure & (weight > 0)
        probability[rest] = (n - sure.sum()) * weight[rest] / weight[rest].sum()
        probability[sure] = 1
        if not (more := probability > 1).any():
            return probability
        sure |= more


def systematic(weight: Floats, n: int, random: np.random.Generator) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Draw n of the cases with probabilities in proportion to their weights, none above 1, exactly (Madow, 1949)."""
    # The cases are put into a random order first, so that no two of them are tied together.
    probability = probabilities(weight, n)
    order = random.permutation(len(weight))
    ends = np.cumsum(probability[order])
    places = random.random() + np.arange(n)
    at = np.minimum(np.searchsorted(ends, places * (ends[-1] / n), side="right"), len(weight) - 1)
    return probability, np.sort(order[at])


def _showings(wanted: Iterable[Pair], random: np.random.Generator) -> list[tuple[str, tuple[str, ...]]]:
    """Return three documents of a query at a time (two where it has no more), each meeting others equally often."""
    # Every document is shown at least twice where there are more than three: greedily the three that met least so far.
    pools: dict[str, list[str]] = {}
    for query_id, doc_id in wanted:
        pools.setdefault(query_id, []).append(doc_id)
    alone = next((query_id for query_id, pool in pools.items() if len(pool) < 2), None)
    if alone is not None:
        raise UsageError(f"query {alone!r} has a single document, and a choice needs two")
    return [
        (query_id, shown)
        for query_id, pool in pools.items()
        for shown in _balanced([pool[i] for i in random.permutation(len(pool))])
    ]


def _balanced(docs: Sequence[str]) -> list[tuple[str, ...]]:
    if len(docs) <= 3:
        return [tuple(docs)]
    times, met = Counter[str](), Counter[frozenset[str]]()

    def before(three: tuple[str, ...]) -> tuple[int, int]:
        """Return how often two of these met, and how often all of them were shown."""
        return sum(met[frozenset(two)] for two in combinations(three, 2)), sum(times[doc] for doc in three)

    out: list[tuple[str, ...]] = []
    while min(times[doc] for doc in docs) < 2:
        first = min(docs, key=lambda doc: times[doc])
        others = combinations([doc for doc in docs if doc != first], 2)
        shown = min(((first, *two) for two in others), key=before)
        out.append(shown)
        times.update(shown)
        met.update(map(frozenset, combinations(shown, 2)))
    return out


def _assigned(
    tasks: Sequence[Task], assessors: Sequence[str], overlap: int, duplicates: float, random: np.random.Generator
) -> tuple[Task, ...]:
    """Give each task to ``overlap`` assessors in turn, and repeat some for the same ones."""
    out, turns = list(tasks), cycle(assessors)
    for at in random.permutation(len(tasks)):
        out[at] = replace(tasks[at], assessors=tuple(islice(turns, overlap)))
    again = random.choice(len(out), math.ceil(duplicates * len(out)), replace=False) if duplicates else ()
    chosen = (out[at] for at in sorted(map(int, again)))
    return (*out, *(replace(task, task=f"{task.task}r", repeat_of=task.task) for task in chosen))


def expected(
    sample: Sample, collection: Collection, primary: str, labelings: Mapping[str, Labeling], by: str | None = None
) -> dict[str, float]:
    """Return half the width of the 95 % intervals to expect from people's labels alone, by what is estimated."""
    # The labels that are there stand for people's: those of `by`, else of the first labeling; half are 1 without any.
    labeling = labelings[by] if by else next(iter(labelings.values()), None)
    whole = sample.design == "queries"
    n = len({task.query_id for task in sample.tasks}) if whole else len(sample.tasks)
    if labeling is not None and whole and n > 2 and sample.form == "grades":
        ((values,),) = score_pool(collection, [labeling], [Measure(primary)]).values
        values = values[:, np.isfinite(values).all(axis=0)]
        reach = float(t.ppf(0.975, n - 1)) / np.sqrt(n)
        out = {f"{primary} of a run": reach * float(values.std(axis=1, ddof=1).mean())}
        spreads = [float((a - b).std(ddof=1)) for a, b in combinations(values, 2)]
        return out | ({"the difference of two runs": reach * max(spreads)} if spreads else {})
    share = 0.5
    if labeling is not None and labeling.scale.min_rel is not None:
        said = labeling.row_relevance[np.isfinite(labeling.row_relevance)]
        share = float((said >= labeling.scale.min_rel).mean()) if len(said) else share
    return {"a share": 1.96 * float(np.sqrt(share * (1 - share) / n))}
