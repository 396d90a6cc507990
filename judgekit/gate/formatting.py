"""What a gate said, in words: for the terminal, as JSON, as JUnit XML, and as Markdown for a pull request."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from judgekit.gate.decision import Decision

if TYPE_CHECKING:
    from judgekit.gate.guard import Guarded, Moved

__all__ = ["as_json", "junit", "markdown", "text"]

_SHOWN = 10


def _points(value: float) -> str:
    return f"{100 * value:.2f}".rstrip("0").rstrip(".") if value else "0"


def _loss(one: Decision) -> str:
    mean = _points(one.least) if one.least == one.most else f"{_points(one.least)} to {_points(one.most)}"
    return f"{mean} ({_points(one.low)} to {_points(one.high)})"


def _headline(found: Guarded) -> str:
    one = found.all
    said = {
        "pass": "the loss is shown to be below the limit",
        "fail": "a loss is shown",
        "inconclusive": "the data show neither a loss nor that it is below the limit",
    }
    where = [name for name, group in found.groups.items() if group.outcome == found.outcome]
    only = "" if one.outcome == found.outcome else f" in {', '.join(where)}" if found.outcome != "pass" else ""
    return (
        f"{found.outcome}: {said[found.outcome]}{only}. {found.losses.by}, {found.base} against {found.new}, on"
        f" {one.queries:,} questions: the loss is {_loss(one)} points; the limit is {_points(one.margin)}."
    )


def _details(found: Guarded) -> Iterator[str]:
    one = found.all
    if found.losses.obstacle:
        yield f"Nothing is claimed: {found.losses.obstacle}."
    yield f"Questions: {', '.join(f'{count:,} {what}' for what, count in found.counts.items() if count)}."
    level = f"{1 - found.rules.alpha:.0%}"
    yield (
        f"In brackets are one-sided {level} bounds for questions like these"
        + (
            f", valid at every look and for all changes so far (this is change {found.sequential})."
            if found.sequential
            else "."
        )
    )
    if one.smallest < 1:
        yield f"A loss of {_points(one.smallest)} points would have been shown 9 times in 10."
    elif one.smallest >= 1:
        lacking = ", and labels for these documents" if one.unknown else ""
        yield f"No loss would have been shown 9 times in 10: that takes more than {one.queries:,} questions{lacking}."
    open_ = [name or "all questions" for name, each in {"": one, **found.groups}.items() if each.open]
    if open_:
        yield f"The outcome depends on documents without a label ({', '.join(open_)}): label them."
    if found.outcome == "inconclusive":
        for name, each in {"": one, **found.groups}.items():
            if each.needed is not None:
                yield f"About {each.needed:,} questions like these{f' in {name}' if name else ''} would settle it."
    yield from found.losses.notes
    if found.losses.cost:
        yield f"Labels: {found.losses.cost}."


def _lists(moved: Moved) -> str:
    gone, came = (
        ", ".join(f"{rank}. {doc_id} [{label}]" for rank, doc_id, label in side) for side in (moved.gone, moved.came)
    )
    return f"{gone} -> {came}" if gone or came else ""


def _lost(moved: Moved) -> str:
    return _points(moved.loss) if moved.loss == moved.most else f"{_points(moved.loss)} to {_points(moved.most)}"


def text(found: Guarded) -> str:
    """Return what a terminal shows."""
    lines = [_headline(found), *(f"  {line}" for line in _details(found))]
    for name, one in found.groups.items():
        lines.append(
            f"  {name}: {one.outcome}, {one.queries:,} questions, {_loss(one)} points, limit {_points(one.margin)}"
        )
    if found.regressed:
        lines.append("Questions that lose most (points; what left its rank -> what came there, with labels):")
        for moved in found.regressed[:_SHOWN]:
            lines.append(f"  {moved.query_id}  {_lost(moved)}  {moved.text}".rstrip())
            if lists := _lists(moved):
                lines.append(f"      {lists}")
        if len(found.regressed) > _SHOWN:
            lines.append(f"  and {len(found.regressed) - _SHOWN:,} more")
    return "\n".join(lines)


def as_json(found: Guarded) -> str:
    """Return everything; losses are shares of the range."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items()}
        return None if isinstance(value, float) and not math.isfinite(value) else value

    losses = found.losses
    content = {
        "outcome": found.outcome,
        "exit_code": found.exit_code,
        "base": found.base,
        "new": found.new,
        "by": losses.by,
        "rules": asdict(found.rules),
        "all": asdict(found.all),
        "groups": {name: asdict(one) for name, one in found.groups.items()},
        "questions": dict(found.counts),
        "regressed": [asdict(moved) for moved in found.regressed],
        "notes": [*losses.notes, *([losses.obstacle] if losses.obstacle else [])],
        "cost": losses.cost,
        "change": found.sequential,
    }
    return json.dumps(plain(content), indent=1, ensure_ascii=False) + "\n"


def junit(found: Guarded) -> str:
    """Return one test case for all questions and one for each group; inconclusive is skipped, or fails if strict."""
    cases = {"all questions": found.all, **found.groups}
    suite = ElementTree.Element("testsuite", name="judgekit guard", tests=str(len(cases)))
    counts = {"failure": 0, "skipped": 0}
    for name, one in cases.items():
        case = ElementTree.SubElement(suite, "testcase", classname="judgekit.guard", name=f"{found.losses.by}: {name}")
        tag = {"pass": "", "fail": "failure", "inconclusive": "failure" if found.rules.strict else "skipped"}[
            one.outcome
        ]
        if tag:
            counts[tag] += 1
            said = (
                f"{one.outcome}: {_loss(one)} points on {one.queries:,} questions; the limit is {_points(one.margin)}"
            )
            ElementTree.SubElement(case, tag, message=_printable(said)).text = _printable(text(found))
    suite.set("failures", str(counts["failure"]))
    suite.set("skipped", str(counts["skipped"]))
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _printable(text: str) -> str:
    """Return a text without the control characters that XML cannot hold."""
    return "".join(c if c in "\n\t" or (c >= " " and c not in "\ufffe\uffff") else "?" for c in text)


def markdown(found: Guarded) -> str:
    """Return a comment for a pull request; what questions and ids say is shown as code."""
    lines = [f"### judgekit guard: {found.outcome}", "", _escaped(_headline(found)), ""]
    rows = {"all questions": found.all, **found.groups}
    lines += ["| questions | n | outcome | loss in points (bounds) | limit |", "| --- | --- | --- | --- | --- |"]
    for name, one in rows.items():
        what = name if name == "all questions" else _code(name)
        lines.append(f"| {what} | {one.queries:,} | {one.outcome} | {_loss(one)} | {_points(one.margin)} |")
    lines += ["", *(f"- {_escaped(line)}" for line in _details(found))]
    if found.regressed:
        lines += ["", "<details><summary>Questions that lose most</summary>", ""]
        lines += ["| question | points | what left its rank → what came there |", "| --- | --- | --- |"]
        for moved in found.regressed[:_SHOWN]:
            name = _code(f"{moved.query_id} {moved.text}".strip())
            lines.append(f"| {name} | {_lost(moved)} | {_code(_lists(moved)) if _lists(moved) else ''} |")
        lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    return "`" + " ".join(text.split()).replace("`", "'").replace("|", "\\|") + "`"


def _escaped(text: str) -> str:
    return "".join(f"\\{c}" if c in "\\`*_[]<>|@#" else c for c in " ".join(text.split()))
