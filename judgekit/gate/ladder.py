"""The degradation ladder: copies of a run that are known to be worse, and which labels would notice.

A step is a change of one list with one spelling. A copy with a step in some of the queries is worse there and the
same elsewhere, so one scoring of the changed lists gives the power at every share of the queries: queries are drawn
with replacement, and `judgekit.gate.decision` says whether the loss is shown. Nothing else changes in these copies:
what they say is the best that can be hoped for, unless ``noise`` adds changes for better and worse.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from judgekit.data.documents import Doc, Docs
from judgekit.data.labelings import Labeling
from judgekit.data.ordering import Ties
from judgekit.data.runs import Run
from judgekit.errors import DataError, UsageError, not_among
from judgekit.gate.decision import POWER, SHARES, shown
from judgekit.metrics import Measure, evaluate
from judgekit.metrics.results import Evaluation
from judgekit.spec import Spec, parse

__all__ = ["CONTROLS", "Earlier", "Ladder", "Lists", "losses", "make_ladder", "notice", "parse_steps"]

Floats = npt.NDArray[np.float64]

_DRAWS, _INNER = 2_000, 200
_EARLIER: Final = "earlier version of "


@dataclass(frozen=True)
class Lists:
    """What steps may look at.

    Attributes:
        run: the run as it is, deeper than ``depth`` where its file is.
        depth: how many documents of a list are looked at.
        query_ids: all queries.
        relevant: relevant doc ids by query, for ``drop``.
        earlier: an earlier version of the collection, for ``stale``.
        docs: the collection, where it is known.
        other: a version of the run that is known to be worse, for ``pair``.
    """

    run: Run
    depth: int
    query_ids: Sequence[str]
    relevant: Mapping[str, frozenset[str]] = field(default_factory=dict)
    earlier: Docs | None = None
    docs: Docs | None = None
    other: Run | None = None


def _pair(lists: Lists, query_id: str, _: list[str]) -> list[str]:
    return [] if lists.other is None else lists.other.top(query_id)


def _demote(lists: Lists, _: str, docs: list[str], *, n: int) -> list[str]:
    return [*docs[n : 2 * n], *docs[:n], *docs[2 * n :]]


def _drop(lists: Lists, query_id: str, docs: list[str], *, source: str) -> list[str]:
    if not source:
        return [d for d in docs if d not in lists.relevant.get(query_id, ())]
    pages = {d.doc_id: d.page_id or "" for d in lists.docs.get(docs)} if lists.docs is not None else {}
    return [d for d in docs if not fnmatchcase(d, source) and not fnmatchcase(pages.get(d, ""), source)]


def _truncate(lists: Lists, _: str, docs: list[str], *, k: int) -> list[str]:
    return docs[:k]


def _distract(lists: Lists, query_id: str, docs: list[str], *, n: int, rank: int) -> list[str]:
    if rank:
        return [*docs[rank - 1 :][:n], *docs]
    following = lists.query_ids[(lists.query_ids.index(query_id) + 1) % len(lists.query_ids)]
    return [*[d for d in lists.run.top(following, lists.depth) if d not in docs][:n], *docs]


def _stale(lists: Lists, _: str, docs: list[str]) -> list[str]:
    if lists.earlier is None:
        raise UsageError("stale needs the documents of an earlier version: name their file (earlier)")
    there = [d for d in docs if d in lists.earlier]
    today = lists.docs.get(there) if lists.docs is not None else [None] * len(there)
    changed = {old.doc_id for old, new in zip(lists.earlier.get(there), today, strict=True) if old != new}
    return [_EARLIER + d if d in changed else d for d in docs]


class Earlier:
    """A collection with the documents of an earlier version beside them, under ids of their own."""

    def __init__(self, docs: Docs, earlier: Docs) -> None:
        self._docs, self._earlier = docs, earlier

    def get(self, doc_ids: Sequence[str]) -> list[Doc]:
        """Return the documents in the order asked for."""
        return [(self._earlier if old else self._docs).get([d])[0] for d, old in map(_version, doc_ids)]

    def __contains__(self, doc_id: object) -> bool:
        name, old = _version(str(doc_id))
        return name in (self._earlier if old else self._docs)

    def __len__(self) -> int:
        return len(self._docs) + len(self._earlier)


def _version(doc_id: str) -> tuple[str, bool]:
    return doc_id.removeprefix(_EARLIER), doc_id.startswith(_EARLIER)


_STEPS: Final[Mapping[str, tuple[Callable[..., list[str]] | None, Mapping[str, Any]]]] = {
    "demote": (_demote, {"n": 5}),
    "drop": (_drop, {"source": ""}),
    "distract": (_distract, {"n": 1, "rank": 0}),
    "truncate": (_truncate, {"k": 1}),
    "stale": (_stale, {}),
    "pair": (_pair, {}),
    "identity": (None, {}),
    "balanced": (_demote, {"n": 5}),
}
"""Every step, with its options."""
CONTROLS: Final = ("identity", "balanced")
"""Steps that lose nothing on average: what the gate shows of them are false alarms."""


def parse_steps(given: Iterable[str], depth: int) -> list[Spec]:
    """Return steps in their one spelling; ``n`` of ``demote`` is at most half of the depth, where it is not given.

    Raises:
        UsageError: there is no such step or option.
    """
    found = []
    for text in given:
        spec = parse(text)
        if spec.name not in _STEPS:
            raise UsageError(not_among("step", spec.name, _STEPS))
        options = dict(_STEPS[spec.name][1])
        if spec.name in ("demote", "balanced"):
            options["n"] = max(min(options["n"], depth // 2), 1)
        for key, value in spec.params:
            if key not in options or type(value) is not type(options[key]) or (isinstance(value, int) and value < 1):
                have = ", ".join(f"{k}={v!r}" for k, v in options.items()) or "none"
                raise UsageError(f"{spec}: unknown option or wrong value ({spec.name} takes: {have})")
        shown_options = {k: v for k, v in (options | dict(spec.params)).items() if v not in ("", 0)}
        found.append(Spec(spec.name, tuple(shown_options.items())))
    return list(dict.fromkeys(found))


def degraded(step: Spec, lists: Lists) -> Run:
    """Return the run with a step in every query."""
    function, run = _STEPS[step.name][0], lists.run
    if function is None:
        frame = run.frame()
        return Run.from_frame(frame, str(step), ties=Ties.DOC_ASC).cut(lists.depth)
    rows: list[tuple[str, str, float]] = []
    options = {**_STEPS[step.name][1], **step.options}
    for query_id in lists.query_ids:
        docs = run.top(query_id)
        changed = list(dict.fromkeys(function(lists, query_id, docs, **options)))[: lists.depth] if docs else []
        rows += [(query_id, doc_id, -float(rank)) for rank, doc_id in enumerate(changed)]
    if not rows:
        raise UsageError(f"{step} leaves no document in any list of {run.name!r}")
    queries, shown_docs, scores = zip(*rows, strict=True)
    return Run(str(step), queries, shown_docs, scores)


def losses(evaluation: Evaluation, measure: int, labeling: int, base: int, new: int, scale: str) -> tuple[Floats, ...]:
    """Return the least and the largest loss of each query, in shares of the measure's range; NaN where undefined.

    Raises:
        UsageError: the measure has no fixed range.
    """
    one = evaluation.measures[measure]
    about = one.definition
    if about.low is None or about.high is None:
        raise UsageError(f"{one} has no fixed range, so a loss has no size: choose another measure")
    start = -1.0 if scale == "signed" and about.needs == "label" else about.low
    ends = [getattr(evaluation, end)[measure, labeling] for end in ("low", "high")]
    if one.lower_is_better:
        ends = [-end for end in reversed(ends)]
    low, high = ends
    width = about.high - start
    return tuple(np.clip(each / width, -1, 1) for each in (low[base] - high[new], high[base] - low[new]))


@dataclass(frozen=True)
class Noticed:
    """How well the loss that a step makes is noticed.

    Attributes:
        power: share of cases in which it is shown, by percent of the queries that the step changes.
        smallest, low, high: the smallest percent of the queries that is noticed nine times in ten, with its 95 %
            interval (bootstrap over queries, and over which of them are changed); infinite where 100 are not enough.
        queries: how many queries it takes to notice a change of ``at`` percent of them nine times in ten.
    """

    power: Mapping[float, float]
    smallest: float
    low: float
    high: float
    queries: float


def _curve(
    loss: Floats, n: npt.NDArray[np.int64], draws: int, rng: np.random.Generator, alpha: float, noise: float, both: bool
) -> Floats:
    """Return the power with 1, 2, … changed queries, of n queries each (one number per entry)."""
    drawn = rng.choice(loss, (draws, len(n)))
    if both:
        drawn = np.stack([drawn, -rng.choice(loss, drawn.shape)])
        total, squares = drawn.sum(0).cumsum(1), (drawn**2).sum(0).cumsum(1)
    else:
        total, squares = drawn.cumsum(1), (drawn**2).cumsum(1)
    if noise:
        others = np.round(noise / 100 * n).astype(int)
        more = rng.choice(loss, (draws, int(others.max()) + 1)) * rng.choice(
            [-1.0, 1.0], (draws, int(others.max()) + 1)
        )
        more[:, 0] = 0
        total, squares = total + more.cumsum(1)[:, others], squares + (more**2).cumsum(1)[:, others]
    power: Floats = shown(np.round(total, 9), squares, n, alpha).mean(0)
    return power


def _first(power: Floats) -> float:
    enough = np.flatnonzero(power >= POWER)
    return float(enough[0] + 1) if len(enough) else math.inf


def notice(
    loss: Floats,
    *,
    shares: Sequence[float] = SHARES,
    alpha: float = 0.05,
    noise: float = 0.0,
    both: bool = False,
    at: float = 1.0,
    resamples: int = 200,
    seed: int = 1,
) -> Noticed:
    """Return how well a step is noticed, from what it takes from each query.

    Args:
        loss: of each query if the step changes it, in shares of the range, shape (n,).
        shares: percent of the queries.
        alpha: of the gate.
        noise: percent of the queries that lose or win by such a step, by the toss of a coin, beside it.
        both: as many queries win: a control, whose "power" is its false alarms.
        at: percent of the queries, for ``queries``.
        resamples: of the queries, for the interval; 0 for none.
        seed: of the draws.
    """
    n, rng = len(loss), np.random.default_rng(seed)
    here = np.full(n, n)
    power = _curve(loss, here, _DRAWS, rng, alpha, noise, both)
    again = [_first(_curve(rng.choice(loss, n), here, _INNER, rng, alpha, noise, both)) for _ in range(resamples)]
    least = _first(power)
    low, high = np.quantile([least, *again], [0.025, 0.975], method="inverted_cdf")
    most = max(int(min(40 * at / 100 * n, 2_000)), 1)
    larger = np.ceil(np.arange(1, most + 1) * 100 / at).astype(np.int64) if 0 < at <= 100 else np.array([1])
    needed = _first(_curve(loss, larger, _INNER * 2, rng, alpha, noise, both)) if 0 < at <= 100 else math.inf
    return Noticed(
        {share: float(power[min(max(round(share / 100 * n), 1), n) - 1]) for share in shares},
        100 * least / n,
        100 * min(float(low), least) / n,
        100 * max(float(high), least) / n,
        float(larger[int(needed) - 1]) if math.isfinite(needed) else math.inf,
    )


@dataclass(frozen=True)
class Ladder:
    """What each labeling would notice.

    Attributes:
        table: one row per labeling, measure and step: ``labeling, measure, step, queries, changed`` (percent of the
            queries whose score the step changes), ``loss`` (points of the measure where it is applied to all),
            ``quality, quality_low, quality_high`` (points of answer quality, likewise; NaN where nothing was answered),
            ``power_1`` and so on, ``smallest, smallest_low, smallest_high`` (percent of the queries that is noticed
            nine times in ten), ``at`` (a number of percent: a loss of one point where answers tell, else 1), ``power``
            and ``questions`` (for that loss).
        queries: how many.
        notes: what has to be known.
    """

    table: pd.DataFrame
    queries: int
    notes: tuple[str, ...] = ()

    def sentences(self, measure: str, costs: Mapping[str, str]) -> tuple[str, ...]:
        """Return what the labelings notice by a measure, step by step.

        Args:
            measure: which.
            costs: by labeling, what it cost, in words.
        """
        out = []
        table = self.table[self.table["measure"] == measure]
        for step in dict.fromkeys(table["step"]):
            rows: list[dict[str, Any]] = table[table["step"] == step].to_dict("records")
            if parse(step).name in CONTROLS:
                worst = max(value for row in rows for key, value in row.items() if str(key).startswith("power_"))
                out.append(
                    f"Where nothing is lost on average ({step}), the gate fails falsely in up to {worst:.1%} of cases."
                )
                continue
            row = rows[0]
            points = row["quality_low"] > 0
            what = f"a loss of 1 point ({step} in {row['at']:.1f} % of them)" if points else f"{step} in 1 % of them"
            said = "; ".join(
                f"{row['labeling']!r} {100 * row['power']:.0f} times in 100{costs.get(row['labeling'], '')}"
                f" (9 in 10 {_when(row['smallest'], row['questions'])})"
                for row in sorted(rows, key=lambda row: -row["power"])
            )
            where = "On these" if out else f"On {self.queries:,} of your questions"
            out.append(f"{where}, {what} is noticed by {said}.{_effect(row)}")
        return tuple(out)


def _effect(row: Mapping[str, Any]) -> str:
    """Return what the answers say of a step that is not shown to make them worse."""
    if not row["quality_low"] <= 0:
        return ""
    told = f"{row['step']} in all of them costs {row['quality']:.1f} points of quality"
    told += f" ({row['quality_low']:.1f} to {row['quality_high']:.1f})"
    better = "the answers get better, so noticing it is a false alarm"
    return f" But {told}: {better if row['quality_high'] < 0 else 'the answers are not shown to get worse'}."


def _when(smallest: float, questions: float) -> str:
    """Return from which share of the questions on, or on how many, a step is noticed nine times in ten."""
    share = f"from {smallest:.1f} % on" if math.isfinite(smallest) else "never"
    return f"{share}, or on {questions:,.0f} questions" if math.isfinite(questions) else share


def make_ladder(
    lists: Lists,
    labelings: Sequence[Labeling],
    measures: Sequence[Measure],
    steps: Sequence[Spec],
    runs: Sequence[Run],
    *,
    quality: Mapping[str, tuple[float, float, float]] | None = None,
    shares: Sequence[float] = SHARES,
    alpha: float = 0.05,
    noise: float = 0.0,
    seed: int = 1,
) -> Ladder:
    """Return what labelings notice of steps.

    Args:
        lists: of the run that is made worse.
        labelings: with labels of all documents that the runs show.
        measures: by which they notice.
        steps: as `parse_steps` returns them.
        runs: the run with each step in every query, as `degraded` makes them.
        quality: by step, the loss of answer quality where every query is changed, with its interval.
        shares: percent of the queries.
        alpha: of the gate.
        noise: see `notice`.
        seed: of the draws.

    Raises:
        UsageError: a measure has no fixed range.
        DataError: a labeling has a score on fewer than two queries.
    """
    base = lists.run.cut(lists.depth)
    named = [base, *runs]
    scored = evaluate(named, labelings, measures, query_ids=list(lists.query_ids), docs=lists.docs)
    rows = []
    for j, labeling in enumerate(labelings):
        for i, measure in enumerate(measures):
            if scored.reasons.get((labeling.name, str(measure))):
                continue
            for k, step in enumerate(steps, 1):
                loss = losses(scored, i, j, 0, k, labeling.scale.kind)[0]
                loss = loss[np.isfinite(loss)]
                if len(loss) < 2:
                    raise DataError(f"{labeling.name!r} gives {measure} on {len(loss)} queries: too few for a ladder")
                made = (quality or {}).get(str(step), (math.nan,) * 3)
                at = 1 / made[0] if made[1] > 0 else 1.0
                found = notice(
                    loss, shares=[*shares, at], alpha=alpha, noise=noise, both=step.name == "balanced", at=at, seed=seed
                )
                rows.append(
                    {
                        "labeling": labeling.name,
                        "measure": str(measure),
                        "step": str(step),
                        "queries": len(loss),
                        "changed": 100 * float((np.abs(loss) > 1e-9).mean()),
                        "loss": 100 * float(loss.mean()),
                        **dict(zip(("quality", "quality_low", "quality_high"), (100 * q for q in made), strict=True)),
                        **{f"power_{share:g}": found.power[share] for share in shares},
                        "smallest": found.smallest,
                        "smallest_low": found.low,
                        "smallest_high": found.high,
                        "at": at,
                        "power": found.power[at] if at <= 100 else 0.0,
                        "questions": found.queries,
                    }
                )
    return Ladder(pd.DataFrame(rows), len(lists.query_ids))
