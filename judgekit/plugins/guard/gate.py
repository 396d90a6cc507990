"""The gate: two versions of a run, or of its answers, and whether the new one is worse, in words too.

Ten lines for a terminal, Markdown for a pull request, and everything as JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from judgekit import labelling
from judgekit.analysis.coefficients import Floats
from judgekit.client.asking import UNLIMITED, Asking
from judgekit.client.sync import with_session
from judgekit.data.documents import Queries
from judgekit.data.frames import AsDocs, AsLabelings, AsQueries, AsRuns, as_docs, as_labelings, as_queries, as_runs
from judgekit.data.outputs import is_results_folder
from judgekit.data.records import as_number
from judgekit.data.runs import Run
from judgekit.errors import DataError, UsageError
from judgekit.labelers.base import Labeler
from judgekit.metrics import parse_measures
from judgekit.plugins.guard.decision import GateDecision, Outcome, decide, decide_suite
from judgekit.plugins.guard.losses import Losses, by_answers, by_labeler, by_labels, of_folders
from judgekit.plugins.guard.passing import Gate
from judgekit.wire.types import Endpoint

_LIMIT: Final = "max_drop"
"""The column of the queries that says what a question may lose."""
_NOTHING: Final = 1e-9


@dataclass(frozen=True)
class Change:
    """A question that changed; its loss is from ``least`` to ``most``, in shares of the range.

    Attributes:
        limit: what it may lose in a suite; None where nothing says so.
        gone, came: what left its rank and what came to one, each as (rank, document, label).
    """

    query_id: str
    text: str
    least: float
    most: float
    limit: float | None
    gone: tuple[tuple[int, str, str], ...]
    came: tuple[tuple[int, str, str], ...]

    @property
    def over(self) -> bool:
        """Whether it loses more than it may."""
        return self.limit is not None and self.least > self.limit + _NOTHING

    @property
    def may_be_over(self) -> bool:
        """Whether it may lose more than it may, as missing labels decide."""
        return self.limit is not None and self.most > self.limit + _NOTHING


@dataclass(frozen=True)
class Guarded:
    """What a gate decided.

    Attributes:
        outcome: ``pass``, ``fail`` or ``inconclusive``.
        base, new: names of the versions.
        suite: whether it is about these questions alone.
        losses: what was lost, question by question.
        mean: the decision on the mean loss.
        changes: the questions that changed: those that lose more than they may, then those that lose most.
    """

    outcome: Outcome
    base: str
    new: str
    suite: bool
    losses: Losses
    mean: GateDecision
    changes: tuple[Change, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many questions are ``worse``, ``better``, ``unchanged`` and ``unknown``."""
        low, high = self.losses.low, self.losses.high
        worse, better = int((low > _NOTHING).sum()), int((high < -_NOTHING).sum())
        unchanged = int((~_moved(self.losses)).sum())
        unknown = len(low) - worse - better - unchanged
        return {"worse": worse, "better": better, "unchanged": unchanged, "unknown": unknown}

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail, 5 inconclusive."""
        return {"pass": 0, "fail": 1, "inconclusive": 5}[self.outcome]

    def __str__(self) -> str:
        """Return what a terminal shows: ten lines at most, the worst questions last."""
        details, worst = [*_details(self)], _worst(self)
        room = max(_LINES - 1 - len(details), min(len(worst), 3))
        kept = details[: _LINES - 1 - min(room, len(worst))]
        lines = [_headline(self), *(f"  {line}" for line in kept)]
        if len(kept) < len(details):
            lines[-1] += f" And {len(details) - len(kept)} more notes: --json has them."
        for change in worst[: min(room, _QUESTIONS)]:
            question = change.text if len(change.text) <= 60 else f"{change.text[:59]}…"
            lines.append("  ".join(["", change.query_id, f"loses {_lost(change)}", _moves(change), question]).rstrip())
        return "\n".join(" ".join(line.splitlines()) for line in lines)


def _moved(losses: Losses) -> npt.NDArray[np.bool_]:
    """Return which questions score otherwise, or may."""
    return (abs(losses.low) > _NOTHING) | (abs(losses.high) > _NOTHING)


def _decided(losses: Losses, names: tuple[str, str], gate: Gate, queries: Queries, groups: str | None) -> Guarded:
    low, high = losses.low, losses.high
    if groups is not None:
        low, high = _group_means(losses, queries, groups)
    limits: dict[str, float] = {}
    if gate.suite:
        mean = decide_suite(low, high, gate.max_drop / 100)
        limits = _limits(queries, losses)
        if not limits:
            losses = replace(losses, notes=(*losses.notes, "No question has a limit of its own."))
    else:
        mean = decide(low, high, gate.max_drop / 100)
    changes: list[Change] = []
    for i, (query_id, moved) in enumerate(zip(losses.query_ids, _moved(losses), strict=True)):
        if moved or query_id in losses.lists:
            changes.append(_change(losses, i, queries, limits.get(query_id)))
    if not changes and not losses.lists:
        mean = replace(mean, outcome="pass", needed=None)
    elif losses.obstacle:
        mean = replace(mean, outcome="inconclusive", needed=None)
    outcome = mean.outcome
    if not losses.obstacle and any(change.over for change in changes):
        outcome = "fail"
    elif outcome == "pass" and any(change.may_be_over for change in changes):
        outcome = "inconclusive"
    changes.sort(key=lambda change: (not change.over, -change.least, -change.most))
    base, new = names
    return Guarded(
        outcome=outcome, base=base, new=new, suite=gate.suite, losses=losses, mean=mean, changes=tuple(changes)
    )


def _group_means(losses: Losses, queries: Queries, column: str) -> tuple[Floats, Floats]:
    """Return the least and the largest mean loss of each group of questions."""
    groups: list[str] = []
    for query_id in losses.query_ids:
        if query_id not in queries:
            raise UsageError(f"groups need the queries, and question {query_id!r} is not among them")
        groups.append(queries[query_id].group(column))
    means = pd.DataFrame({"low": losses.low, "high": losses.high}).groupby(groups).mean()
    return means["low"].to_numpy(), means["high"].to_numpy()


def _limits(queries: Queries, losses: Losses) -> dict[str, float]:
    """Return what each question that names a limit may lose, in shares of the range."""
    limits: dict[str, float] = {}
    for query_id, query in queries.items():
        points = query.columns.get(_LIMIT)
        if not points:
            continue
        limits[query_id] = as_number(points) / 100
        if not 0 <= limits[query_id] <= 1:
            raise DataError(f"{_LIMIT} of question {query_id!r} must be 0 to 100 points, not {points!r}")
        if query_id not in losses.query_ids:
            raise DataError(f"question {query_id!r} has a {_LIMIT}, but {losses.by} does not rate it")
    return limits


def _change(losses: Losses, i: int, queries: Queries, limit: float | None) -> Change:
    query_id = losses.query_ids[i]
    base, new = losses.lists.get(query_id, ((), ()))
    return Change(
        query_id=query_id,
        text=queries[query_id].text if query_id in queries else "",
        least=float(losses.low[i]),
        most=float(losses.high[i]),
        limit=limit,
        gone=_only_in(base, new),
        came=_only_in(new, base),
    )


def _only_in(docs: Sequence[tuple[str, str]], other: Sequence[tuple[str, str]]) -> tuple[tuple[int, str, str], ...]:
    """Return (rank, document, label) of the documents that have another rank in the other list, or none."""
    ranks = {doc_id: rank for rank, (doc_id, _) in enumerate(other, 1)}
    only: list[tuple[int, str, str]] = []
    for rank, (doc_id, label) in enumerate(docs, 1):
        if ranks.get(doc_id) != rank:
            only.append((rank, doc_id, label))
    return tuple(only)


def guard(
    base: AsRuns,
    new: AsRuns,
    gate: Gate | None = None,
    *,
    labels: AsLabelings | None = None,
    labeler: str | Labeler | None = None,
    queries: AsQueries | None = None,
    docs: AsDocs | None = None,
    endpoints: Endpoint | Sequence[Endpoint] | None = None,
    asking: Asking = UNLIMITED,
) -> Guarded:
    """Say whether a new version is worse than the base: pass, fail or inconclusive.

    Of the questions that these stand for: *fail*, a loss is shown, and not that it is below ``max_drop``; *pass*, it is
    shown to be below; else *inconclusive*. Each of the two claims is false in at most .05 of cases (simulated, see
    docs/guard.md). With ``suite`` nothing is inferred: these questions lose more on average than ``max_drop``, or one
    of them loses more than its own column ``max_drop`` lets it, or not. Where both versions show the same lists,
    nothing changed, and that is a pass.

    Args:
        base: the old version: a run in any form that `judgekit.label` takes, a results folder, or, without labels and
            labeler, ratings of its answers (a file or a DataFrame with ``query_id, value``, from 0 to 1).
        new: the new version, likewise.
        gate: what is measured, and how much of it may be lost.
        labels: a labeling that exists, in any form that `judgekit.score` takes; or else
        labeler: the spelling of one that labels what the versions show, which needs ``queries`` and ``docs``; of
            results folders, the name of a labeling.
        queries: as for `judgekit.label`; without them, the questions are those of ``labels``.
        docs: as for `judgekit.label`.
        endpoints: as for `judgekit.label`.
        asking: as for `judgekit.label`.

    Raises:
        ConfigError, DataError, UsageError: nothing has been sent.
        StoppedError: the endpoint ended it; what was paid for is in the store.
    """
    gate = gate or Gate()
    if labels is not None and labeler is not None:
        raise UsageError("give labels or a labeler: a gate measures the loss by one of them")
    folders: list[Path] = []
    for version in (base, new):
        if not isinstance(version, str | Path) or not Path(version).is_dir():
            continue
        # A folder may also hold a run in parts, which needs labels or documents beside it.
        if is_results_folder(Path(version)) or (labels is None and docs is None):
            folders.append(Path(version))
    questions: Queries = {} if queries is None else as_queries(queries)
    if len(folders) == 1:
        other = base if str(new) == str(folders[0]) else new
        raise UsageError(f"{other} is a file and {folders[0]} a results folder: give two runs, or two results folders")
    if folders:
        own = {"labels": labels, "queries": queries, "docs": docs, "endpoints": endpoints}
        _refuse(own, f"{folders[0]}, which already names its inputs")
        name = None if labeler is None else str(labeler)
        losses, questions, own_groups = of_folders(folders, gate.run, name, gate.measure, gate.unjudged)
        return _decided(losses, (str(base), str(new)), gate, questions, gate.groups or own_groups)
    _refuse({"run": gate.run}, "files: it selects a run of two results folders")
    if labels is None and labeler is None:
        own = {"docs": docs, "measure": gate.measure, "endpoints": endpoints}
        _refuse(own | {"unjudged": gate.unjudged != "bounds"}, "ratings of answers; for runs, add labels or a labeler")
        return _decided(by_answers((base, new)), ("base", "new"), gate, questions, gate.groups)
    notes: list[str] = []
    runs = _pair(base, new, notes)
    (parsed,) = parse_measures([gate.measure or "nDCG@10"])
    if labels is not None:
        labelings = as_labelings(labels)
        if len(labelings) != 1:
            raise UsageError(f"a gate takes one labeling, not {len(labelings)}")
        texts = None if docs is None else as_docs(docs)
        ids = None if queries is None else list(questions)
        losses = by_labels(runs, labelings[0], parsed, ids, unjudged=gate.unjudged, docs=texts)
    else:
        if queries is None or docs is None:
            raise UsageError("a labeler needs the queries and the documents")
        depth = parsed.cutoff or 10
        pool = labelling.PoolLabeler.make(
            labeler or "", questions, docs, runs, depth, endpoints=endpoints, cache=asking.cache
        )
        losses = with_session(lambda session: by_labeler(pool, parsed, session, gate.unjudged, asking.progress), asking)
    losses = replace(losses, notes=(*notes, *losses.notes))
    return _decided(losses, (runs[0].name, runs[1].name), gate, questions, gate.groups)


def _refuse(inputs: Mapping[str, Any], beside: str) -> None:
    for name, value in inputs.items():
        if value is not None and value is not False:
            raise UsageError(f"{name} does not go with {beside}")


def _pair(base: AsRuns, new: AsRuns, notes: list[str]) -> list[Run]:
    pair = [as_runs(version, notes) for version in (base, new)]
    for runs, name in zip(pair, ("base", "new"), strict=True):
        if len(runs) != 1:
            raise UsageError(f"give one run as the {name} version, not {len(runs)}")
    (base_run,), (new_run,) = pair
    if base_run.name == new_run.name:
        return as_runs({f"{base_run.name} (base)": base_run, f"{new_run.name} (new)": new_run})
    return [base_run, new_run]


_LINES: Final = 10
_QUESTIONS: Final = 5
_SHOWN: Final = 2
"""Documents that are shown of each kind of change."""


def _points(value: float) -> str:
    return f"{100 * value:.2f}".rstrip("0").rstrip(".") if abs(value) >= 5e-5 else "0"


def _span(least: float, most: float) -> str:
    low, high = _points(least), _points(most)
    return low if low == high else f"{low} to {high}"


def _headline(guarded: Guarded) -> str:
    mean = guarded.mean
    if not guarded.changes and not guarded.losses.lists:
        return f"{guarded.outcome}: nothing changed."
    shown = {
        "pass": "the loss is shown to be below the limit",
        "fail": "a loss is shown",
        "inconclusive": "the data show neither a loss nor that any loss is below the limit",
    }
    if guarded.suite:
        above: list[str] = []
        if mean.outcome == "fail":
            above.append("the mean loss is above the limit")
        over = sum(change.over for change in guarded.changes)
        if over:
            above.append(f"questions above their own limits: {over:,}")
        shown = {"pass": "within the limits", "fail": "; ".join(above), "inconclusive": "missing labels decide"}
    bounds = ""
    if mean.low is not None and mean.high is not None:
        bounds = f" (one-sided 95% bounds {_span(mean.low, mean.high)})"
    loss = f"The mean loss is {_span(mean.least, mean.most)} points{bounds}; the limit is {_points(mean.margin)}"
    return f"{guarded.outcome}: {shown[guarded.outcome]}. {loss}."


def _details(guarded: Guarded) -> Iterator[str]:
    mean, losses = guarded.mean, guarded.losses
    if losses.obstacle:
        yield f"Nothing is claimed: {losses.obstacle}."
    units = "questions" if mean.queries == len(losses.query_ids) else f"questions in {mean.queries:,} groups"
    counts = ", ".join(f"{count:,} {what}" for what, count in guarded.counts.items() if count)
    yield f"{losses.by}, {guarded.base} against {guarded.new}, {len(losses.query_ids):,} {units}: {counts}."
    if guarded.outcome == "inconclusive":
        if mean.open or (guarded.suite and not losses.obstacle):
            way = "If the qrels list all that is relevant, add --unjudged nonrelevant; else label them with --labeler."
            yield "The outcome depends on missing labels or ratings." + (f" {way}" if losses.unlisted else "")
        if mean.low is None and not guarded.suite:
            yield "Fewer than five questions differ, too few for bounds."
        if mean.needed is not None:
            number = f"{mean.needed:,} {units.split()[-1]}"
            yield f"About {number} like these would settle it; --suite decides only about these."
    yield from losses.notes


def _moves(change: Change) -> str:
    """Return what left a list, what came and what moved, the documents with the highest ranks first."""
    before = {doc_id: rank for rank, doc_id, _ in change.gone}
    after = {doc_id: rank for rank, doc_id, _ in change.came}
    left = [f"{doc_id} [{label}]" for _, doc_id, label in change.gone if doc_id not in after]
    came = [f"{doc_id} [{label}]" for _, doc_id, label in change.came if doc_id not in before]
    parts: list[str] = []
    if left:
        parts.append(f"left {_first_few(left)}")
    if came:
        parts.append(f"came {_first_few(came)}")
    if not parts and before:
        farthest = sorted(change.gone, key=lambda place: -abs(place[0] - after[place[1]]))
        moved = [f"{doc_id} [{label}] {rank} → {after[doc_id]}" for rank, doc_id, label in farthest]
        parts.append(f"moved {_first_few(moved)}")
    return "; ".join(parts)


def _first_few(docs: Sequence[str]) -> str:
    more = len(docs) - _SHOWN
    return ", ".join(docs[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _lost(change: Change) -> str:
    limit = "" if change.limit is None else f" (may lose {_points(change.limit)})"
    return f"{_span(change.least, change.most)}{limit}"


def _worst(guarded: Guarded) -> list[Change]:
    """Return the questions that lose, or may."""
    return [change for change in guarded.changes if change.most > 0]


def content(guarded: Guarded) -> dict[str, Any]:
    """Return everything, for JSON; losses are shares of the range."""
    losses = guarded.losses
    return {
        "outcome": guarded.outcome,
        "exit_code": guarded.exit_code,
        "base": guarded.base,
        "new": guarded.new,
        "by": losses.by,
        "suite": guarded.suite,
        "mean": asdict(guarded.mean),
        "questions": guarded.counts,
        "changes": [asdict(change) for change in guarded.changes],
        "notes": [*losses.notes, *([losses.obstacle] if losses.obstacle else [])],
    }


def markdown(guarded: Guarded) -> str:
    """Return a comment for a pull request; what questions and ids say is shown as code."""
    lines = [f"### judgekit guard: {guarded.outcome}", "", _escaped(_headline(guarded)), ""]
    lines += [f"- {_escaped(line)}" for line in _details(guarded)]
    if worst := _worst(guarded):
        lines += ["", "| question | loses (points) | what changed |", "| --- | --- | --- |"]
        for change in worst[:_LINES]:
            moves, name = _moves(change), _code(f"{change.query_id} {change.text}".strip())
            lines.append(f"| {name} | {_lost(change)} | {_code(moves) if moves else ''} |")
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    return "`" + " ".join(text.split()).replace("`", "'").replace("|", "\\|") + "`"


def _escaped(text: str) -> str:
    return "".join(f"\\{c}" if c in "\\`*_[]<>|@#" else c for c in " ".join(text.split()))
