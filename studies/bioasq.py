"""Biomedical questions of BioASQ 12B, answered from snippets that a system found, and from those of experts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pandas as pd

from studies.pairs import Difference, difference
from studies.source import text

REPO = "webis-de/clef24-mibi-bioasq-"
GOLD = "varsha-cl/DocBot"
"""Holds a copy of the organisers' golden answers, whose own server asks for a registration."""
BATCHES = (1, 2)
FOUND, MARKED = "a+", "b"
"""The phases: answers from the system's own snippets, and from those that experts marked."""
SNIPPETS = 10

Question = Mapping[str, Any]


def _questions(repo: str, path: str) -> dict[str, Question]:
    return {question["id"]: question for question in json.loads(text(repo, path))["questions"]}


def _span(snippet: Mapping[str, Any]) -> tuple[str, bool, int, int]:
    """Return the article of a snippet, whether it is in the title, and its first and last letter."""
    article = re.findall(r"\d+", snippet["document"])[-1]
    # The batches spell the keys in two ways.
    section, start, end = (
        snippet[name] if name in snippet else snippet[re.sub("([A-Z])", r"_\1", name).lower()]
        for name in ("beginSection", "offsetInBeginSection", "offsetInEndSection")
    )
    return article, section == "title", int(start), int(end)


def _hit(answered: Question, golden: Question) -> bool:
    """Return whether one of the snippets overlaps one that the experts marked."""
    marked = [_span(snippet) for snippet in golden["snippets"]]
    found = [_span(snippet) for snippet in answered["snippets"][:SNIPPETS]]
    return any(
        mine[:2] == theirs[:2] and mine[2] < theirs[3] and theirs[2] < mine[3] for mine in found for theirs in marked
    )


def _plain(answer: object) -> str:
    return " ".join(re.findall(r"\w+", str(answer).lower()))


def _names(answer: object) -> list[str]:
    """Return each spelling of an answer, which may be a list of synonyms."""
    return [_plain(name) for name in (answer if isinstance(answer, list) else [answer])]


def _quality(answered: Question, golden: Question) -> float:
    """Return the accuracy of yes or no, and of the first factoid, and the F1 of a list."""
    given, right = answered["exact_answer"] or [], golden["exact_answer"]
    if golden["type"] == "yesno":
        return float(_plain(given) == _plain(right))
    if golden["type"] == "factoid":
        synonyms = {name for answer in right for name in _names(answer)}
        return float(bool(given) and _names(given[0])[0] in synonyms)
    items = [set(_names(answer)) for answer in right]
    names = [_names(answer)[0] for answer in given if answer]
    if not names:
        return 0.0
    precision = sum(any(name in item for item in items) for name in names) / len(names)
    recall = sum(any(name in item for name in names) for item in items) / len(items)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def table() -> pd.DataFrame:
    """Return a row for each question with an exact answer: hit and quality from found and from marked snippets."""
    found = {}
    for batch in BATCHES:
        golden = _questions(GOLD, f"Task12BGoldenEnriched/12B{batch}_golden.json")
        path = f"submissions/bioasq_task_12b_phase_{{}}_batch_{batch}_mibi_rag_snippets.json"
        phases = {phase: _questions(REPO, path.format(phase)) for phase in (FOUND, MARKED)}
        for query, right in golden.items():
            if right["type"] == "summary":
                continue
            found[query] = {"type": right["type"]}
            for phase, answers in phases.items():
                found[query][f"hit {phase}"] = float(_hit(answers[query], right))
                found[query][f"answer {phase}"] = _quality(answers[query], right)
                found[query][f"snippets {phase}"] = len(answers[query]["snippets"])
    return pd.DataFrame.from_dict(found, orient="index")


def change(name: str) -> Difference:
    """Return what the marked snippets change, of ``hit`` or of ``answer``, in points."""
    rows = table()
    return difference(rows[f"{name} {MARKED}"] - rows[f"{name} {FOUND}"])
