"""``kilt``: KILT's questions with evidence, and its guesses."""

from __future__ import annotations

from typing import Any, Final

from judgekit.data.forms.entry import Entry, Passage, content_id, listed_in, object_in
from judgekit.data.records import Fields
from judgekit.registry import DataForm


def _kilt(fields: Fields) -> Entry:
    answers, passages = list[Any](), list[Passage]()
    titles: dict[str, str] = {}
    for number, output in enumerate(fields["output"]):
        if not isinstance(output, dict):
            raise ValueError(f"output[{number}]: expected an object with answer or provenance")
        if output.get("answer") not in (None, "", *answers):
            answers.append(output["answer"])
        for evidence in output.get("provenance") or ():
            page = evidence.get("wikipedia_id", evidence.get("title")) if isinstance(evidence, dict) else None
            if page is None:
                raise ValueError(f"output[{number}].provenance: expected objects with wikipedia_id or title")
            page = "_".join(str(page).split())  # as Wikipedia writes titles in addresses: ids hold no white space
            text, title = evidence.get("text"), evidence.get("title") or ""
            known = isinstance(text, str) and isinstance(title, str)
            doc_id = content_id(title, text) if known else page
            # The first output is the guess; the others are further right answers, with evidence of their own.
            if number == 0 and doc_id not in titles:
                passage = {"id": doc_id, "text": text, "title": title, "page_id": page}
                passages.append({**passage, "score": evidence.get("score")})
            titles[doc_id] = title
    return {
        "query_id": fields.get("id"),
        "question": fields.get("input"),
        "answers": answers,
        "gold": [(doc_id, 1) for doc_id in titles],
        "titles": titles,
        "ctxs": passages,
        "answer": answers[0] if answers else None,
    }


def _held(fields: Fields) -> tuple[str, ...]:
    """Return the kinds in a file: guesses have texts or scores, evidence has neither."""
    # Both are one form: KILT's gold files name pages only, and systems write texts or scores.
    for output in fields["output"]:
        for evidence in listed_in((object_in(output) or {}).get("provenance")) or ():
            if {"text", "score"} & {*(object_in(evidence) or {})}:
                return ("query", "doc", "run", "answer")
    return ("query", "qrels")


KILT: Final = DataForm(
    "kilt",
    _kilt,
    ("query", "doc", "run", "qrels", "answer"),
    marks=lambda fields: isinstance(fields.get("output"), list) and {"id", "input"} <= set(fields),
    nested=True,
    narrows=_held,
    example='{"id": "q1", "input": "Who?", "output": [{"answer": "Ann", "provenance": [{"wikipedia_id": "12"}]}]}\n',
)
