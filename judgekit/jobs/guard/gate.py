"""The gate: whether the new version of a run, or of its answers, is worse, with the text of the result.

Ten lines for a terminal, Markdown for a pull request, and everything as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from judgekit import labelling
from judgekit.answers.direction import Directions
from judgekit.client.asking import UNLIMITED, Asking
from judgekit.data.documents import Queries
from judgekit.data.frames import (
    AsDocs,
    AsLabelings,
    AsQueries,
    AsRuns,
    as_docs,
    as_labelings,
    as_queries,
    as_runs,
    noted_runs,
)
from judgekit.data.outputs import is_results_folder
from judgekit.data.questions import PARTED, UNKNOWN, joined, questions_of, repeats_of
from judgekit.data.result_files import ResultFiles
from judgekit.data.runs import Run
from judgekit.errors import UsageError
from judgekit.job import Job, Settled, job
from judgekit.jobs.guard.decision import GateDecision, GateOutcome, decide, decide_suite
from judgekit.jobs.guard.losses import Losses, Versions, by_answers, by_labeler
from judgekit.jobs.guard.passing import Gate
from judgekit.labelers.base import Labeler
from judgekit.metrics import parse_measures
from judgekit.wire.types import Endpoint

if TYPE_CHECKING:
    from judgekit.client.session import Session

_NOTHING: Final = 1e-9
_LINES: Final = 10
_QUESTIONS: Final = 5
_CUT: Final = 60
"""The number of characters shown of a question."""


@dataclass(frozen=True)
class Guarded:
    """The outcome of a gate.

    Attributes:
        suite: whether it decides about these questions only.
        losses: the losses by question.
        mean: the decision on the mean loss.
        changes: rows ``query_id, text, least, most, moved`` of the questions that changed, largest loss first; losses
            are shares of the range.
    """

    suite: bool
    losses: Losses
    mean: GateDecision
    changes: pd.DataFrame

    @property
    def outcome(self) -> GateOutcome:
        """``pass``, ``fail`` or ``inconclusive``."""
        return self.mean.outcome

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of questions that are ``worse``, ``better``, ``unchanged`` and ``unknown``."""
        least, most = self.losses.table["least"], self.losses.table["most"]
        worse, better = int((least > _NOTHING).sum()), int((most < -_NOTHING).sum())
        unchanged = int(((least.abs() <= _NOTHING) & (most.abs() <= _NOTHING)).sum())
        unknown = len(least) - worse - better - unchanged
        return {"worse": worse, "better": better, "unchanged": unchanged, "unknown": unknown}

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail, 5 inconclusive."""
        return {"pass": 0, "fail": 1, "inconclusive": 5}[self.outcome]

    @property
    def worst(self) -> pd.DataFrame:
        """The changes that lose or may lose."""
        return self.changes[self.changes["most"] > 0]

    def __str__(self) -> str:
        """Return the text for a terminal: at most ten lines, the worst questions last."""
        details = [*_details(self)]
        room = _LINES - 1 - min(len(self.worst), 3)
        if len(details) > room:
            more = len(details) - room + 1
            details = [*details[: room - 1], f"{more} more notes: --json has them."]
        lines = [_headline(self), *(f"  {line}" for line in details)]
        for row in self.worst.head(min(_QUESTIONS, _LINES - len(lines))).to_dict("records"):
            lost, question = _span(row["least"], row["most"]), row["text"]
            if len(question) > _CUT:
                question = f"{question[: _CUT - 1]}…"
            lines.append("  ".join(["", row["query_id"], f"loses {lost}", row["moved"], question]).rstrip())
        return "\n".join(" ".join(line.splitlines()) for line in lines)


@job
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
) -> Job[Guarded]:
    """Say whether a new version is worse than the base: pass, fail or inconclusive.

    It infers from these questions to others like them. *fail*: a loss is shown, but it may be larger than ``max_drop``;
    *pass*: the loss is shown to be below ``max_drop``; else *inconclusive*. Each claim is false in at most .05 of cases
    (simulated, see docs/guard.md). With ``suite`` nothing is inferred: these questions lose more than ``max_drop`` on
    average, or not. If both versions show the same lists, the gate passes.

    Args:
        base: the old version: a run in any form that `judgekit.label` takes, or, without labels and labeler, ratings of
            its answers (a file or a DataFrame with ``query_id, value``, from 0 to 1).
        new: the new version, likewise.
        gate: what to measure, and how much of it may be lost.
        labels: an existing labeling, in any form that `judgekit.score` takes; or else
        labeler: the spelling of a labeler for what the versions show, which needs ``queries`` and ``docs``.
        queries: as for `judgekit.label`; without them, the questions are those of ``labels``.
        docs: as for `judgekit.label`.
        endpoints: as for `judgekit.label`.
        asking: as for `judgekit.label`.

    Returns:
        Whether the gate passes, the mean loss with its interval as a share of the measure's range, and the questions
        that changed, largest loss first.

    Raises:
        ConfigError, DataError, UsageError: nothing was sent.
        StoppedError: the endpoint failed; paid replies are in the store.
    """
    gate = gate or Gate()
    # A folder holds several runs and labels made for them, so it is unclear which are meant.
    for version in (base, new):
        if isinstance(version, str | Path) and is_results_folder(Path(version)):
            raise UsageError(
                f"{version} is a results folder: give the runs with --labeler, which asks only about differences, or"
                f" with labels of the folder as --qrels ({version}/labels/NAME.qrels)"
            )
    questions: Queries = {} if queries is None else as_queries(queries)
    if labels is None and labeler is None:
        if docs is not None or gate.measure is not None or endpoints is not None or gate.unjudged != "bounds":
            raise UsageError(
                "measure, docs, endpoints and unjudged are not for ratings of answers; to compare runs, add labels or a"
                " labeler"
            )
        directions = Directions(*(() if name is None else (name,) for name in (gate.reverse, gate.as_given)))
        return Settled.of(_decided(by_answers(base, new, directions), gate, questions))
    if gate.reverse or gate.as_given:
        raise UsageError("reverse and as_given are for ratings of answers: the direction of measures is known")
    if labels is not None and labeler is not None:
        raise UsageError("give labels or a labeler, not both: a gate measures the loss by one of them")
    (measure,) = parse_measures([gate.measure or "nDCG@10"])
    # Measures by evidence need documents' places; with a labeler, the pool has them.
    texts = None if docs is None or labels is None else as_docs(docs)
    old_run, old_notes = _run("base", base)
    new_run, new_notes = _run("new", new)
    notes = (*old_notes, *new_notes)
    versions = Versions(old_run, new_run, measure, gate.unjudged, texts)
    if labels is not None:
        labelings = as_labelings(labels)
        if len(labelings) != 1:
            raise UsageError(f"a gate takes one labeling, not {len(labelings)}")
        losses = versions.losses(labelings[0], None if queries is None else list(questions))
        return Settled.of(_decided(replace(losses, notes=(*notes, *losses.notes)), gate, questions))
    if queries is None or docs is None:
        raise UsageError("a labeler needs the queries and the documents")
    pool = labelling.PoolLabeler.make(
        labeler or "",
        questions,
        docs,
        versions.runs,
        depth=measure.cutoff or 10,
        endpoints=endpoints,
        cache=asking.cache,
    )
    versions = versions.pooled(pool)
    units = versions.changed(pool)

    async def do(session: Session, _: ResultFiles) -> Guarded:
        losses = await by_labeler(pool, versions, units, session, asking.progress)
        return _decided(replace(losses, notes=(*notes, *losses.notes)), gate, questions)

    return Job({f"label {pool.name}": partial(zip, repeat(pool.labeler), units)}, do, asking)


def _run(name: str, version: AsRuns) -> tuple[Run, tuple[str, ...]]:
    """Return a version's run under the version's name, and what looks wrong in it."""
    runs, notes = noted_runs(version)
    if len(runs) != 1:
        raise UsageError(f"give one run as the {name} version, not {len(runs)}")
    (run,) = as_runs({name: runs[0]})
    return run, notes


def _decided(losses: Losses, gate: Gate, queries: Queries) -> Guarded:
    losses, questions = _by_question(losses, gate, queries)
    table = losses.table
    means = table[["least", "most"]]
    if gate.groups not in (None, PARTED):
        # Paraphrases of a question fail together, so they are not independent evidence.
        groups = _groups(questions, queries, gate.groups)
        unit = joined(questions, dict(zip(questions, groups, strict=True)))
        means = means.groupby([unit[query_id] for query_id in table["query_id"]]).mean()
    rule = decide_suite if gate.suite else decide
    mean = rule(means["least"].to_numpy(), means["most"].to_numpy(), gate.max_drop / 100)
    # With too few questions even this would be inconclusive, although nothing can have been lost.
    if losses.same:
        mean = replace(mean, outcome="pass", needed=None)
    elif losses.obstacle:
        mean = replace(mean, outcome="inconclusive", needed=None)
    # A reordered list may lose nothing, but a reviewer may want to see it.
    changed = (table[["least", "most"]].abs().max(axis=1) > _NOTHING) | (table["moved"] != "")
    keys, ascending = ["least", "most", "query_id"], [False, False, True]
    changes = table[changed].sort_values(keys, ascending=ascending, ignore_index=True)
    texts = [queries[query_id].text if query_id in queries else "" for query_id in changes["query_id"]]
    changes.insert(1, "text", texts)
    return Guarded(gate.suite, losses, mean, changes)


def _by_question(losses: Losses, gate: Gate, queries: Queries) -> tuple[Losses, dict[str, str]]:
    """Return each question's loss (the mean of its rows), and the question of each row."""
    table = losses.table
    questions = dict(zip(table["query_id"], table["query_id"], strict=True))
    if gate.groups == PARTED:
        return losses, questions
    known = {query_id: queries[query_id] for query_id in questions if query_id in queries}
    if not known:
        # With a suite nothing is inferred, so nothing can count twice.
        unknown = () if gate.suite or losses.same else (UNKNOWN,)
        return replace(losses, notes=(*losses.notes, *unknown)), questions
    questions |= questions_of(known)
    repeats = repeats_of(known, questions)
    if not repeats.any:
        return losses, questions
    rows = table.assign(query_id=table["query_id"].map(questions)).sort_values(["query_id", "moved"])
    by_question = rows.groupby("query_id", as_index=False).agg({"least": "mean", "most": "mean", "moved": "last"})
    said = tuple(filter(None, [repeats.sentence, repeats.contradiction]))
    return replace(losses, table=by_question, notes=(*said, *losses.notes)), questions


def _groups(query_ids: Iterable[str], queries: Queries, column: str) -> list[str]:
    """Return the group of each question."""
    groups: list[str] = []
    for query_id in query_ids:
        if query_id not in queries:
            raise UsageError(f"groups need the queries, and question {query_id!r} is not among them")
        groups.append(queries[query_id].group(column))
    return groups


def _points(value: float) -> str:
    if abs(value) >= 5e-5:
        return f"{100 * value:.2f}".rstrip("0").rstrip(".")
    return "0"


def _span(least: float, most: float) -> str:
    low, high = _points(least), _points(most)
    if low == high:
        return low
    return f"{low} to {high}"


_SHOWN: Final = {
    "pass": "the loss is shown to be below the limit",
    "fail": "a loss is shown",
    "inconclusive": "the data show neither a loss nor that any loss is below the limit",
}
_SUITE: Final = {
    "pass": "within the limit",
    "fail": "the mean loss is above the limit",
    "inconclusive": "missing labels decide",
}


def _headline(guarded: Guarded) -> str:
    mean = guarded.mean
    if guarded.losses.same:
        return f"{guarded.outcome}: nothing changed."
    bounds = ""
    if mean.low is not None and mean.high is not None:
        bounds = f" (one-sided 95% bounds {_span(mean.low, mean.high)})"
    shown = _SUITE if guarded.suite else _SHOWN
    loss = f"The mean loss is {_span(mean.least, mean.most)} points{bounds}; the limit is {_points(mean.margin)}"
    return f"{guarded.outcome}: {shown[guarded.outcome]}. {loss}."


def _details(guarded: Guarded) -> Iterator[str]:
    mean, losses = guarded.mean, guarded.losses
    if losses.obstacle:
        yield f"Nothing is claimed: {losses.obstacle}."
    questions = len(losses.table)
    units = "questions" if mean.queries == questions else f"questions in {mean.queries:,} groups"
    counts = ", ".join(f"{count:,} {what}" for what, count in guarded.counts.items() if count)
    yield f"{losses.by}, {questions:,} {units}: {counts}."
    if guarded.outcome == "inconclusive":
        if mean.open:
            open_by = "The outcome depends on missing labels or ratings."
            if losses.unlisted:
                open_by += " If the qrels list all that is relevant, add --unjudged nonrelevant; else label them with"
                open_by += " --labeler."
            yield open_by
        if mean.low is None and not guarded.suite:
            yield "Fewer than five questions differ, too few for bounds."
        if mean.needed is not None:
            number = f"{mean.needed:,} {units.split()[-1]}"
            yield f"About {number} like these would settle it; --suite decides only about these."
    yield from losses.notes


def content(guarded: Guarded) -> dict[str, Any]:
    """Return the whole result for JSON; losses are shares of the range."""
    losses = guarded.losses
    return {
        "outcome": guarded.outcome,
        "exit_code": guarded.exit_code,
        "by": losses.by,
        "suite": guarded.suite,
        "mean": asdict(guarded.mean),
        "questions": guarded.counts,
        "changes": guarded.changes.to_dict("records"),
        "notes": [*losses.notes, *filter(None, [losses.obstacle])],
    }


def markdown(guarded: Guarded) -> str:
    """Return a comment for a pull request: the text as a code block, so that questions are not read as Markdown."""
    # A question with three backticks would end the block, and its Markdown would take effect.
    text = str(guarded).replace("`", "'")
    return f"### judgekit guard: {guarded.outcome}\n\n```text\n{text}\n```\n"
