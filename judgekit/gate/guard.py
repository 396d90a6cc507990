"""The gate: two versions of a run, or of its answers, and whether the new one is shown to be worse.

Where both versions show the same documents nothing is lost, whatever their labels are; so only the questions whose
lists differ are labelled, and only there a document without a label leaves the loss open.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from judgekit import stages
from judgekit.analysis.modes import modes_of, of_mode
from judgekit.answers.imported import named, read_ratings
from judgekit.data.documents import Docs, Fields, Queries
from judgekit.data.files import write_atomic
from judgekit.data.frames import AsDocs, AsLabelings, AsQueries, AsRuns, as_docs, as_labelings, as_queries, as_runs
from judgekit.data.labelings import Labeling, Scale
from judgekit.data.readers import read_column
from judgekit.data.runs import Run
from judgekit.data.tables import ALL, RATINGS, Status
from judgekit.errors import DataError, UsageError
from judgekit.gate.decision import Decision, Outcome, Rules, Unjudged, decide_groups
from judgekit.gate.ladder import losses
from judgekit.labelers.base import Labeler, build
from judgekit.metrics import Measure, evaluate, parse_measures
from judgekit.progress import Event, Progress, silent
from judgekit.wire.types import Endpoint

if TYPE_CHECKING:
    from judgekit.client.budget import Budget
    from judgekit.client.session import Mode, Session

__all__ = ["Guarded", "Losses", "Moved", "by_answers", "by_labeler", "by_labels", "differing", "gate", "guard"]

Floats = npt.NDArray[np.float64]
Sides = Sequence[Sequence[tuple[str, str]]]
"""The documents of the base version and of the new one, best first, each with its label or why it has none."""


_UNJUDGED: Final = "not judged"
_NOTHING: Final = 1e-9


@dataclass(frozen=True)
class Losses:
    """What each question loses, from its least to its most, in shares of the range.

    Attributes:
        by: what is scored, in words.
        query_ids: the questions with a loss, shape (n,).
        low, high: shape (n,).
        lists: by question, the documents of both versions with their labels; nothing where none are known.
        notes: what has to be known, as sentences.
        cost: what the labels took, in words.
        obstacle: why nothing may be claimed, or "".
    """

    by: str
    query_ids: tuple[str, ...]
    low: Floats
    high: Floats
    lists: Mapping[str, Sides] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    cost: str = ""
    obstacle: str = ""


@dataclass(frozen=True)
class Moved:
    """A question that lost: what went from its list, and what came, each as (rank, document, label)."""

    query_id: str
    text: str
    loss: float
    most: float
    gone: tuple[tuple[int, str, str], ...]
    came: tuple[tuple[int, str, str], ...]


@dataclass(frozen=True)
class Guarded:
    """What a gate said.

    Attributes:
        outcome: ``pass``, ``fail`` or ``inconclusive``; of all questions and groups together.
        base, new: names of the versions.
        losses: what was lost, question by question.
        all: the decision on all questions.
        groups: the decision on each group.
        rules: of the gate.
        regressed: the questions that lost whatever their missing labels are, the worst first.
        counts: how many questions ``lose``, ``win``, ``do not change`` and are ``open``.
        sequential: what number of change this is, for bounds that hold at every look; None for one look.
    """

    outcome: Outcome
    base: str
    new: str
    losses: Losses
    all: Decision
    groups: Mapping[str, Decision]
    rules: Rules
    regressed: tuple[Moved, ...]
    counts: Mapping[str, int]
    sequential: int | None = None

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail, 5 inconclusive; with ``strict``, inconclusive is 1."""
        return {"pass": 0, "fail": 1, "inconclusive": 1 if self.rules.strict else 5}[self.outcome]

    def __str__(self) -> str:
        from judgekit.gate.formatting import text

        return text(self)


def differing(runs: Sequence[Run], query_ids: Sequence[str], k: int | None) -> list[str]:
    """Return the queries where the two runs differ in documents or in their order."""
    base, new = runs
    return [q for q in query_ids if base.top(q, k) != new.top(q, k)]


def by_labels(
    versions: Sequence[Run],
    labeling: Labeling,
    measure: Measure,
    query_ids: Sequence[str] | None = None,
    *,
    unjudged: Unjudged = "bounds",
    partly: bool = False,
    docs: Docs | None = None,
) -> Losses:
    """Return what each question loses by a measure under a labeling.

    Args:
        versions: the base version and the new one.
        labeling: whose labels; rows of a file's labels that nobody judged (column ``judged``) count as unjudged.
        measure: the measure.
        query_ids: the questions; by default those that the labeling lists and a version has something for: others
            would water a loss down.
        unjudged: what a document without a label is: ``bounds``, anything on the scale; ``nonrelevant``, 0.
        partly: whether only questions with differing lists were labelled, so that the others lose nothing.
        docs: the documents, for measures that look at them.

    Raises:
        UsageError, DataError: the measure has no fixed range or is not defined, or no question has a loss.
    """
    if unjudged == "bounds":
        labeling = _judged(labeling)
    listed, notes = set(labeling.row_queries), []
    ids = sorted(listed if query_ids is None else set(query_ids))
    if query_ids is None:
        shown = {q for run in versions for q in run.query_ids}
        if nowhere := sum(q not in shown for q in ids):
            notes.append(
                f"neither version has results for {nowhere:,} questions of {labeling.name!r}, which are excluded; name"
                " the queries to count these questions as unchanged."
            )
        ids = [q for q in ids if q in shown] or ids
    runs = [_named(run.only(ids), name) for run, name in zip(versions, ("base", "new"), strict=True)]
    for run in runs:
        if not len(run):
            raise DataError(
                f"the {run.name} version has none of the {len(ids):,} questions: are these from the same collection?"
            )
    scored = evaluate(runs, [labeling], [measure], query_ids=ids, docs=docs)
    if scored.reasons:
        raise UsageError(f"{measure} is not defined here: {next(iter(scored.reasons.values()))}")
    notes = [*scored.warnings, *notes]
    if any(mean.missing or (mean.unjudged and unjudged == "bounds") for mean in scored.summary):
        scored = evaluate(runs, [labeling], [measure], query_ids=ids, missing="bounds", unjudged=unjudged, docs=docs)
    changed = set(differing(runs, ids, measure.cutoff))
    same = np.array([q not in changed for q in ids])
    low, high = losses(scored, 0, 0, 0, 1, labeling.scale.kind)
    there = np.isfinite(low) | (np.array([partly and q not in listed for q in ids]) & same)
    if not there.any():
        raise DataError(f"{labeling.name!r} defines {measure} on none of the {len(ids):,} questions")
    low, high = np.where(same, 0.0, low)[there], np.where(same, 0.0, high)[there]
    of = [q for q, here in zip(ids, there, strict=True) if here]
    if len(of) < len(ids):
        left = len(ids) - len(of)
        notes.append(f"{labeling.name!r} does not apply to {left:,} of {len(ids):,} questions, which are excluded.")
    for run in runs:
        lacking = len(set(ids) - set(run.query_ids))
        if lacking:
            notes.append(f"{run.name} has no results for {lacking:,} of {len(ids):,} questions: it scores 0 there.")
    lists = _labelled(labeling, runs, changed & set(of), measure.cutoff)
    labels = {(q, d): label for q, sides in lists.items() for side in sides for d, label in side}
    without = [label for label in labels.values() if not label[-1:].isdigit()]
    taken = without.count(_UNJUDGED) if unjudged != "bounds" else 0
    for count, as_what in ((len(without) - taken, "can be anything on the scale"), (taken, "count as not relevant")):
        if count:
            notes.append(f"{count:,} documents in questions whose lists differ have no label: they {as_what}.")
    return Losses(f"{measure} by {labeling.name!r}", tuple(of), low, high, lists, tuple(notes))


def _named(run: Run, name: str) -> Run:
    named = copy.copy(run)
    named.name = name
    return named


def _judged(labeling: Labeling) -> Labeling:
    """Return a labeling without the labels that a file's reader gave to documents that the file does not list."""
    table = labeling.table
    if "judged" not in table:
        return labeling
    nobody = (table["judged"] == 0) & (table["status"] == Status.OK.value)
    known = {"relevance": table["relevance"].mask(nobody), "status": table["status"].mask(nobody, Status.UNASKED.value)}
    return Labeling(labeling.name, labeling.scale, table.assign(**known), declared=labeling.declared)


def _labelled(labeling: Labeling, runs: Sequence[Run], query_ids: Collection[str], k: int | None) -> dict[str, Sides]:
    """Return the documents of both lists of each query, each with its label, or why there is none."""
    rows = labeling.table[labeling.table["query_id"].isin(list(query_ids))]
    labels = {
        (q, d): f"{value:g}" if status == Status.OK.value else status
        for q, d, value, status in zip(rows["query_id"], rows["doc_id"], rows["relevance"], rows["status"], strict=True)
    }
    return {
        q: tuple(tuple((d, labels.get((q, d), _UNJUDGED)) for d in run.top(q, k)) for run in runs)
        for q in sorted(query_ids)
    }


def by_answers(
    versions: Sequence[pd.DataFrame],
    metric: str | None = None,
    depth: int | None = None,
    answer_mode: str | None = None,
) -> Losses:
    """Return what each question loses in the quality of its answer.

    Args:
        versions: quality tables of the base version and of the new one, each of one run.
        metric: which, if there are several.
        depth: answers from the top how many, if there are several.
        answer_mode: which mode of answering, if there are several.

    Raises:
        UsageError: a table holds several runs, models, metrics, depths or modes; or values are not from 0 to 1.
        DataError: no question is in both.
    """
    sides, metrics = [], []
    wanted = {"metric": metric, "depth": depth}
    asked = ", ".join(f"{column} {value}" for column, value in wanted.items() if value is not None)
    for name, given in zip(("base", "new"), versions, strict=True):
        table = named(given)
        table = table[table["query_id"] != ALL]
        for column, value in wanted.items():
            if value is not None and column in table:
                table = table[table[column] == value]
        table = table if answer_mode is None else of_mode(table, answer_mode)
        for column in ("run", "depth", "model", "metric", "mode"):
            have = modes_of(table) if column == "mode" else sorted(set(table[column])) if column in table else []
            if column == "run" and len(have) > 1 and ALL in have:
                table, have = table[table["run"] != ALL], [run for run in have if run != ALL]
            if len(have) > 1:
                how = "keep one" if column in ("run", "model") else f"name one ({column})"
                raise UsageError(f"the {name} answers have several {column}s ({', '.join(map(str, have))}): {how}")
        if table.empty:
            raise DataError(f"the {name} version has no answers{f' with {asked}' if asked else ''}")
        metrics += sorted(set(table["metric"]))
        values = table["value"]
        if (values < 0).any() or (values > 1).any():
            raise UsageError(
                f"the {name} answers have values from {values.min():g} to {values.max():g}: a gate needs 0 to 1"
            )
        excused = table["status"] == Status.NOT_APPLICABLE.value if "status" in table else values.isna() & False
        side = table[~excused].set_index("query_id")["value"]
        if side.index.has_duplicates:
            raise UsageError(f"the {name} answers rate question {side.index[side.index.duplicated()][0]!r} twice")
        sides.append(side)
    if len(set(metrics)) > 1:
        raise UsageError(f"the answers are rated by {metrics[0]!r} and by {metrics[1]!r}, which are not comparable")
    both = sorted(set(sides[0].index) & set(sides[1].index))
    if not both:
        raise DataError("the quality tables have no question in common")
    one, other = (side.loc[both].to_numpy(np.float64) for side in sides)
    low = np.nan_to_num(one, nan=0.0) - np.nan_to_num(other, nan=1.0)
    high = np.nan_to_num(one, nan=1.0) - np.nan_to_num(other, nan=0.0)
    notes = []
    left = len(set(sides[0].index) ^ set(sides[1].index))
    if left:
        notes.append(f"{left:,} questions have an answer from one version only and are excluded.")
    lost = int((np.isnan(one) | np.isnan(other)).sum())
    if lost:
        notes.append(f"{lost:,} answers are missing: they can be anything from 0 to 1.")
    return Losses(f"{metrics[0]} of the answers", tuple(both), low, high, {}, tuple(notes))


async def by_labeler(
    labeler: Labeler,
    name: str,
    collection: stages.Collection,
    measure: Measure,
    session: Session,
    rules: Rules,
    progress: Progress = silent,
) -> Losses:
    """Return what each question loses under a labeler, labelling what that needs.

    That is every document where no LLM is asked, else those of the questions whose lists differ.

    Args:
        labeler: which.
        name: of the labeling.
        collection: with the base version and the new one as its runs.
        measure: the measure.
        session: that asks.
        rules: how many requests may be sent, and what documents without a label are.
        progress: told what will be sent, before it is.
    """
    ids, stage = list(collection.queries), f"label {name}"
    if not labeler.needs.asked:
        made = await stages.label_pool(labeler, collection, session, name)
        return by_labels(collection.runs, made, measure, ids, unjudged=rules.unjudged, docs=collection.docs)
    changed = set(differing(collection.runs, ids, measure.cutoff))
    chosen, requests, left = [], 0, list[dict[str, str]]()
    for unit in stages.label_units(labeler, collection):
        if unit.query.query_id in changed:
            plan = session.plan([unit], labeler)
            if requests + plan.requests - plan.cached > rules.max_requests:
                left += [{"query_id": unit.query.query_id, "doc_id": doc.doc_id} for doc in unit.docs]
            else:
                requests += plan.requests - plan.cached
                chosen.append(unit)
    note = f"{name}: {requests:,} requests to send, for {len(changed):,} questions whose lists differ"
    progress(Event(stage, 0, len(chosen), note=note))
    made = await stages.label_pool(labeler, collection, session, name, units=chosen)
    usage = session.usage(stage)
    tokens = usage.incurred.prompt_tokens + usage.incurred.completion_tokens
    money = "" if not usage.sent or usage.incurred.money is None else f", {usage.incurred.money:.4g} by your prices"
    cost = f"{usage.sent:,} requests sent ({tokens:,} tokens{money}), {usage.cached:,} replies from the store"
    if left:
        cost += f"; {len(left):,} documents were not asked about, to stay within {rules.max_requests:,} requests"
        unasked = pd.DataFrame(left).assign(relevance=np.nan, status=Status.UNASKED.value)
        table = pd.concat([made.table, unasked], ignore_index=True) if len(made) else unasked
        made = Labeling(name, made.scale, table)
    found = by_labels(collection.runs, made, measure, ids, unjudged=rules.unjudged, partly=True, docs=collection.docs)
    mixed = "; ".join(session.mixed())
    obstacle = f"{mixed}. Forget what one of them said (`judgekit cache forget --model NAME`) and run again"
    return replace(found, cost=cost, obstacle=obstacle if mixed else "")


def gate(
    losses: Losses,
    rules: Rules,
    names: tuple[str, str] = ("base", "new"),
    *,
    groups: Mapping[str, str] | None = None,
    texts: Mapping[str, str] | None = None,
) -> Guarded:
    """Return what the rules say of losses.

    Args:
        losses: as `by_labels` or `by_answers` return them.
        rules: of the gate.
        names: of the base version and the new one.
        groups: the group of each question, if each group is to be guarded.
        texts: of the questions, for the regressed ones.

    Raises:
        DataError: a question has no group, or the state is another gate's.
    """
    low, high, change, alpha = losses.low, losses.high, None, rules.alpha
    state = None if rules.sequential is None else Path(rules.sequential)
    if state is not None:
        change, write = _look(state, losses, rules)
        alpha = rules.alpha / (change * (change + 1))
    of: list[str] = []
    if groups is not None:
        without = [q for q in losses.query_ids if q not in groups]
        if without:
            raise DataError(f"question {without[0]!r} has no group ({len(without):,} questions have none)")
        of = [str(groups[q]) for q in losses.query_ids]
    margin = rules.max_drop / 100
    each = margin if rules.max_group_drop is None else rules.max_group_drop / 100
    outcome, overall, found = decide_groups(low, high, of, margin, each, alpha=alpha, sequential=state is not None)
    if losses.obstacle:
        outcome, overall = "inconclusive", replace(overall, outcome="inconclusive", needed=None)
        found = {name: replace(one, outcome="inconclusive", needed=None) for name, one in found.items()}
    if state is not None:
        write_atomic(state, write)
    order = np.argsort(-low, kind="stable")
    moved = tuple(_moved(losses, int(i), texts or {}) for i in order if low[i] > _NOTHING)
    same = int((np.maximum(np.abs(low), np.abs(high)) <= _NOTHING).sum())
    counts = {"lose": len(moved), "win": int((high < -_NOTHING).sum()), "do not change": same}
    counts["are open"] = len(low) - sum(counts.values())
    return Guarded(outcome, *names, losses, overall, found, rules, moved, counts, change)


def _moved(losses: Losses, i: int, texts: Mapping[str, str]) -> Moved:
    query_id = losses.query_ids[i]
    base, new = ([(rank, *one) for rank, one in enumerate(side, 1)] for side in losses.lists.get(query_id, ((), ())))
    gone, came = (
        tuple(one for one in side if one[:2] not in {there[:2] for there in other})
        for side, other in ((base, new), (new, base))
    )
    return Moved(query_id, texts.get(query_id, ""), float(losses.low[i]), float(losses.high[i]), gone, came)


def _look(path: Path, losses: Losses, rules: Rules) -> tuple[int, str]:
    """Return the number of this change, and the state to write: the same losses with more questions are another look.

    Raises:
        DataError: the file is not a state, or is of another gate.
    """
    about = {"by": losses.by, "alpha": rules.alpha, "max_drop": rules.max_drop}
    now = {
        q: [round(float(a), 9), round(float(b), 9)]
        for q, a, b in zip(losses.query_ids, losses.low, losses.high, strict=True)
    }
    change, before = 1, None
    if path.exists():
        try:
            state = json.loads(path.read_bytes())
            change, before, known = int(state["change"]), dict(state["losses"]), {k: state[k] for k in about}
        except (OSError, ValueError, KeyError, TypeError):
            raise DataError("does not hold the state of a sequential gate: name another file", path) from None
        if known != about:
            raise DataError(f"holds the state of another gate ({known}): name another file for {about}", path)
        change += any(now.get(q) != loss for q, loss in before.items())
    return change, json.dumps({**about, "change": change, "losses": now}, indent=1, ensure_ascii=True) + "\n"


def guard(
    base: AsRuns | None = None,
    new: AsRuns | None = None,
    *,
    labels: AsLabelings | None = None,
    labeler: str | Labeler | None = None,
    queries: AsQueries | None = None,
    docs: AsDocs | None = None,
    measure: str = "nDCG@10",
    quality: tuple[Any, Any] | None = None,
    metric: str | None = None,
    depth: int | None = None,
    answer_mode: str | None = None,
    max_drop: float = 1.0,
    by: str | Mapping[str, str] | None = None,
    max_group_drop: float | None = None,
    unjudged: Unjudged = "bounds",
    scale: str | Scale | None = None,
    alpha: float = 0.05,
    strict: bool = False,
    sequential: str | Path | None = None,
    endpoints: Endpoint | Sequence[Endpoint] | None = None,
    fields: Fields = "title+text",
    prompts: str | Path | None = None,
    cache: str | Path | None = None,
    mode: Mode = "on",
    max_requests: int = 1_000,
    budget: Budget | None = None,
    progress: Progress = silent,
) -> Guarded:
    """Say whether a new version is shown to be worse than the base: pass, fail or inconclusive.

    *Fail*: a loss is shown, and not that it is below ``max_drop``. *Pass*: it is shown to be below. Else
    *inconclusive*. Each of the two claims is false in at most ``alpha`` of cases (simulated, see docs/guard.md).

    Args:
        base: the old version: a run, in any form that `judgekit.label` takes.
        new: the new version.
        labels: a labeling that exists, in any form that `judgekit.score` takes; or else
        labeler: the spelling of one that labels what the versions show, which needs ``queries`` and ``docs``.
        queries: as for `judgekit.label`; without them, the questions are those of ``labels``.
        docs: as for `judgekit.label`.
        measure: by which the versions are scored.
        quality: instead of labels, the quality tables (or files) of the answers of both: the gate is on these.
        metric: of ``quality``, if it has several.
        depth: of ``quality``, if it has several; with a labeler and a measure without a cutoff, documents per list.
        answer_mode: of ``quality``, if it has several modes of answering.
        max_drop: the loss that must not be, in hundredths of the measure's range.
        by: a column of ``queries``, or the group of each query: every group is guarded too.
        max_group_drop: the loss that must not be in a group; by default the same.
        unjudged: what a document without a label is: ``bounds``, anything on the scale; ``nonrelevant``, 0.
        scale: of ``labels``.
        alpha: how often each claim may be false.
        strict: let inconclusive have the exit code 1.
        sequential: a JSON file that keeps what was seen, so that all looks and all changes together keep ``alpha``.
        endpoints: as for `judgekit.label`, like the next three.
        fields: how documents are rendered.
        prompts: a folder of prompts of your own; short names are found there first.
        cache: folder of the reply store.
        mode: ``on``, ``off``, ``read-only`` or ``refresh``.
        max_requests: for new labels, at most; documents beyond it have no label.
        budget: where to stop.
        progress: called with events.

    Raises:
        ConfigError, DataError, UsageError: nothing has been sent.
        StoppedError: the endpoint or the budget ended it; what was paid for is in the store.
    """
    column = by if by is None or isinstance(by, str) else "the groups given"
    state = None if sequential is None else str(sequential)
    rules = Rules(measure, max_drop, max_group_drop, column, unjudged, alpha, strict, state, max_requests)
    if sum(way is not None for way in (labels, labeler, quality)) != 1:
        raise UsageError(
            "give labels, a labeler, or the quality of both versions' answers: a gate sees a loss by one of them"
        )
    asked: Queries | None = None if queries is None else as_queries(queries)
    groups = _groups(by, queries)
    texts = {q: query.text for q, query in (asked or {}).items()}
    if quality is not None:
        found = by_answers([_quality(table) for table in quality], metric, depth, answer_mode)
        names = ("base", "new")
    else:
        if base is None or new is None:
            raise UsageError("a gate needs two runs: the base version and the new one")
        runs = _pair(base, new)
        names = (runs[0].name, runs[1].name)
        one = parse_measures([measure])[0]
        ids = None if asked is None else list(asked)
        if labels is not None:
            labelings = as_labelings(labels)
            if len(labelings) != 1:
                raise UsageError(f"a gate takes one labeling, not {len(labelings)}")
            if scale is not None:
                labelings = as_labelings(labels, {labelings[0].name: scale})
            found = by_labels(
                runs, labelings[0], one, ids, unjudged=unjudged, docs=None if docs is None else as_docs(docs)
            )
        else:
            if asked is None or docs is None:
                raise UsageError("a labeler needs the queries and the documents")
            k = one.cutoff or depth or 10
            collection = stages.Collection.make(asked, docs, runs, k, cache=cache)
            built = build(labeler or "", stages.resources_of(endpoints, fields, collection.docs, prompts))
            found = stages.with_session(
                lambda session: by_labeler(built, str(built.spec), collection, one, session, rules, progress),
                cache=cache,
                mode=mode,
                budget=budget,
                progress=progress,
            )
    return gate(found, rules, names, groups=groups, texts=texts)


def _pair(base: AsRuns, new: AsRuns) -> list[Run]:
    found = [as_runs(one) for one in (base, new)]
    for runs, name in zip(found, ("base", "new"), strict=True):
        if len(runs) != 1:
            raise UsageError(f"give one run as the {name} version, not {len(runs)}")
    pair = [runs[0] for runs in found]
    if pair[0].name == pair[1].name:
        pair = [_named(run, f"{run.name} ({name})") for run, name in zip(pair, ("base", "new"), strict=True)]
    return pair


def _groups(by: str | Mapping[str, str] | None, queries: AsQueries | None) -> Mapping[str, str] | None:
    if by is None or not isinstance(by, str):
        return by
    if isinstance(queries, str | Path):
        return read_column(queries, by)
    if isinstance(queries, pd.DataFrame) and by in queries:
        return dict(zip(queries["query_id"], queries[by].astype(str), strict=True))
    raise UsageError(f"the queries have no column {by!r}: give a file or a DataFrame that has it, or the groups")


def _quality(table: Any) -> pd.DataFrame:
    return RATINGS.check(table) if isinstance(table, pd.DataFrame) else read_ratings(table)
