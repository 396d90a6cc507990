"""What a gate said, in words: for the terminal, as JSON, as JUnit XML, and as Markdown for a pull request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import orjson

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


def _parts(found: Guarded) -> dict[str, Decision]:
    return {"all questions": found.all, **found.groups}


def _headline(found: Guarded) -> str:
    one = found.all
    said = {
        "pass": "the loss is shown to be below the limit",
        "fail": "a loss is shown",
        "inconclusive": "the data show neither a loss nor that it is below the limit",
    }
    where = [name for name, group in found.groups.items() if group.outcome == found.outcome]
    only = f" in {', '.join(where)}" if found.outcome not in (one.outcome, "pass") else ""
    return (
        f"{found.outcome}: {said[found.outcome]}{only}. {found.losses.by}, {found.base} against {found.new}, on"
        f" {one.queries:,} questions: the loss is {_loss(one)} points; the limit is {_points(one.margin)}."
    )


def _details(found: Guarded) -> Iterator[str]:
    one, losses = found.all, found.losses
    if losses.obstacle:
        yield f"Nothing is claimed: {losses.obstacle}."
    yield f"Questions: {', '.join(f'{count:,} {what}' for what, count in found.counts.items() if count)}."
    looks = f", valid at every look and for all changes so far (this is change {found.sequential})"
    level = f"{1 - found.rules.alpha:.0%}"
    yield f"In brackets are one-sided {level} bounds for questions like these{looks if found.sequential else ''}."
    if one.smallest < 1:
        yield f"A loss of {_points(one.smallest)} points would have been shown 9 times in 10."
    elif one.smallest >= 1:
        lacking = ", and labels for these documents" if one.unknown else ""
        yield f"No loss would have been shown 9 times in 10: that takes more than {one.queries:,} questions{lacking}."
    unsettled = [name for name, each in _parts(found).items() if each.open]
    if unsettled:
        yield f"The outcome depends on documents without a label ({', '.join(unsettled)}): label them."
    if found.outcome == "inconclusive":
        for name, each in _parts(found).items():
            if each.needed is not None:
                where = "" if each is one else f" in {name}"
                yield f"About {each.needed:,} questions like these{where} would settle it."
    yield from losses.notes
    if losses.cost:
        yield f"Labels: {losses.cost}."


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
    """Return everything; losses are shares of the range, and a number that is not finite is null."""
    losses = found.losses
    content = {
        "outcome": found.outcome,
        "exit_code": found.exit_code,
        "base": found.base,
        "new": found.new,
        "by": losses.by,
        "rules": found.rules,
        "all": found.all,
        "groups": found.groups,
        "questions": found.counts,
        "regressed": found.regressed,
        "notes": [*losses.notes, *([losses.obstacle] if losses.obstacle else [])],
        "cost": losses.cost,
        "change": found.sequential,
    }
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def junit(found: Guarded) -> str:
    """Return one test case for all questions and one for each group; inconclusive is skipped, or fails if strict."""
    cases = _parts(found)
    tags = {"fail": "failure", "inconclusive": "failure" if found.rules.strict else "skipped"}
    suite = ElementTree.Element("testsuite", name="judgekit guard", tests=str(len(cases)))
    for name, one in cases.items():
        named = _printable(f"{found.losses.by}: {name}")
        case = ElementTree.SubElement(suite, "testcase", classname="judgekit.guard", name=named)
        said = f"{one.outcome}: {_loss(one)} points on {one.queries:,} questions; the limit is {_points(one.margin)}"
        if one.outcome in tags:
            ElementTree.SubElement(case, tags[one.outcome], message=said).text = _printable(text(found))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("skipped", str(len(suite.findall("testcase/skipped"))))
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _printable(text: str) -> str:
    """Return a text without the control characters that XML cannot hold."""
    return "".join(c if c in "\n\t" or (c >= " " and c not in "\ufffe\uffff") else "?" for c in text)


def markdown(found: Guarded) -> str:
    """Return a comment for a pull request; what questions and ids say is shown as code."""
    lines = [f"### judgekit guard: {found.outcome}", "", _escaped(_headline(found)), ""]
    lines += ["| questions | n | outcome | loss in points (bounds) | limit |", "| --- | --- | --- | --- | --- |"]
    for name, one in _parts(found).items():
        what = name if one is found.all else _code(name)
        lines.append(f"| {what} | {one.queries:,} | {one.outcome} | {_loss(one)} | {_points(one.margin)} |")
    lines += ["", *(f"- {_escaped(line)}" for line in _details(found))]
    if found.regressed:
        lines += ["", "<details><summary>Questions that lose most</summary>", ""]
        lines += ["| question | points | what left its rank → what came there |", "| --- | --- | --- |"]
        for moved in found.regressed[:_SHOWN]:
            lists = _lists(moved)
            name = _code(f"{moved.query_id} {moved.text}".strip())
            lines.append(f"| {name} | {_lost(moved)} | {_code(lists) if lists else ''} |")
        lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    return "`" + " ".join(text.split()).replace("`", "'").replace("|", "\\|") + "`"


def _escaped(text: str) -> str:
    return "".join(f"\\{c}" if c in "\\`*_[]<>|@#" else c for c in " ".join(text.split()))
