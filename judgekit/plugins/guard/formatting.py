"""What a gate decided, in words: ten lines for a terminal, Markdown for a pull request, and everything as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from judgekit.plugins.guard.gate import Change, Guarded

__all__ = ["content", "markdown", "text"]

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
        over = sum(change.over for change in guarded.changes)
        each = f"{over:,} question{'s' if over > 1 else ''}"
        failed = f"{each} {'are above their limits' if over > 1 else 'is above its limit'}"
        if mean.outcome == "fail":
            failed = "the mean loss is above the limit"
            failed += f", and so {'are' if over > 1 else 'is'} {each}" if over else ""
        shown = {
            "pass": "within the limits",
            "fail": failed,
            "inconclusive": "missing labels decide",
        }
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
    if losses.cost:
        yield f"Labels: {losses.cost}."


def _moves(change: Change) -> str:
    """Return what left a list, what came and what moved, the documents with the highest ranks first."""
    before = {doc_id: (rank, label) for rank, doc_id, label in change.gone}
    after = {doc_id: (rank, label) for rank, doc_id, label in change.came}
    stayed = sorted(
        (doc_id for doc_id in before if doc_id in after), key=lambda doc_id: -abs(before[doc_id][0] - after[doc_id][0])
    )
    kinds = {
        "left": [f"{doc_id} [{label}]" for doc_id, (_, label) in before.items() if doc_id not in after],
        "came": [f"{doc_id} [{label}]" for doc_id, (_, label) in after.items() if doc_id not in before],
        "moved": [f"{doc_id} [{before[doc_id][1]}] {before[doc_id][0]} → {after[doc_id][0]}" for doc_id in stayed],
    }
    if kinds["left"] or kinds["came"]:
        del kinds["moved"]
    return "; ".join(f"{kind} {_some(docs)}" for kind, docs in kinds.items() if docs)


def _some(docs: Sequence[str]) -> str:
    more = len(docs) - _SHOWN
    return ", ".join(docs[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _lost(change: Change) -> str:
    limit = "" if change.limit is None else f" (may lose {_points(change.limit)})"
    return f"{_span(change.least, change.most)}{limit}"


def _worst(guarded: Guarded) -> list[Change]:
    """Return the questions that lose, or may."""
    return [change for change in guarded.changes if change.most > 0]


def text(guarded: Guarded) -> str:
    """Return what a terminal shows: ten lines at most, the worst questions last."""
    details, worst = [*_details(guarded)], _worst(guarded)
    room = max(_LINES - 1 - len(details), min(len(worst), 3))
    kept = details[: _LINES - 1 - min(room, len(worst))]
    lines = [_headline(guarded), *(f"  {line}" for line in kept)]
    if len(kept) < len(details):
        lines[-1] += f" And {len(details) - len(kept)} more notes: --json has them."
    for change in worst[: min(room, _QUESTIONS)]:
        asked = change.text if len(change.text) <= 60 else f"{change.text[:59]}…"
        lines.append("  ".join(["", change.query_id, f"loses {_lost(change)}", _moves(change), asked]).rstrip())
    return "\n".join(" ".join(line.splitlines()) for line in lines)


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
        "cost": losses.cost,
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
