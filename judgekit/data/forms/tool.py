"""Declares a tool's records: the paths of question, answer, passages and so on.

A path is names from the record inwards, ``inputs.question``: a column of that name, or members of members;
``outputs.*`` is the only member, ``hits[].id`` the list of what the items of a list have. ``|`` separates alternatives,
of which the first that holds something counts: ``question | query``, and for each item ``hits[].id | name``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Final

from judgekit.data.forms.entry import (
    Entry,
    Passage,
    content_id,
    is_blank,
    list_of,
    listed_in,
    object_in,
    passage_of,
    turns_in,
)
from judgekit.data.records import Fields
from judgekit.data.tables import thumb_of
from judgekit.registry import DataForm

PLACES: Final = {
    **{name: name for name in ("question", "id", "answer", "reference", "gold", "gold_ids")},
    "contexts": "passages",
    "context_ids": "passage_ids",
}
"""The options of a spelling that name places, ``rag(answer=output.text):FILE``, by what they hold of a `Tool`."""
ROLES: Final = {
    "question": "question",
    "id": "id of the question",
    "answer": "answer",
    "reference": "reference answer",
    "passages": "passages",
    "passage_ids": "ids of the passages",
    "gold": "passages that answer it",
    "gold_ids": "ids of the passages that answer it",
    "run": "run",
    "failed": "error, in place of an answer",
}
_LISTS: Final = ("reference", "passages", "passage_ids", "gold", "gold_ids")


@dataclass(frozen=True)
class Tool:
    """The places of a question's parts in a tool's export.

    Attributes:
        name: of its form.
        release: the release whose exports the tests read.
        exports: the files that its users save, for the page on imports.
        tells: paths that exist in all of its records.
        question: its text.
        id: an id that all runs share.
        answer: the application's.
        reference: right answers.
        passages: the retrieved passages, best first: texts or objects.
        passage_ids: the ids of these, in the same order.
        gold: the passages that answer it, likewise.
        gold_ids: their ids; a tuple if any of several will do.
        run: the name of the run, if a file holds several.
        scores: patterns of the names of its own scores.
        lower: those for which lower is better.
        own: patterns of its other columns, if any other name may be a score.
        failed: the reason for a missing answer.
        reads: for parts that the tool spells in its own way: from what it wrote to the text or list that is meant;
            None if there is none. A `ValueError` says what is wrong with it.
        rows: the place of the records in a file that wraps them; ``queries.*``: the members of an object, each with its
            name as ``key``.
        each: the records of a record that holds several runs.
        refused: why a recognised file is not read, and what to do.
        mark: its separator of texts joined in a cell.
        together: columns that name a question and its run in a table with a row for each passage.
        apart: columns that tell several records of a question apart; the user chooses one value of each.
        options: the options in the form's spelling.
        example: a record.
    """

    name: str
    release: str = ""
    exports: str = ""
    tells: Sequence[str] = ()
    question: str = ""
    id: str = ""
    answer: str = ""
    reference: str = ""
    passages: str = ""
    passage_ids: str = ""
    gold: str = ""
    gold_ids: str = ""
    run: str = ""
    scores: str = ""
    lower: str = ""
    own: str = ""
    failed: str = ""
    reads: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    rows: str = ""
    each: Callable[[Fields], Iterator[Fields]] | None = None
    refused: str = ""
    mark: str = ""
    together: Sequence[str] = ()
    apart: Sequence[str] = ()
    options: Sequence[str] = ()
    example: str = ""

    def form(self, marks: Callable[[Fields], bool] | None = None) -> DataForm:
        """Return the form of its exports; ``marks`` recognises them if ``tells`` does not."""
        lists = [path for part in _LISTS if part not in self.reads for path in either(getattr(self, part))]
        return DataForm(
            self.name,
            partial(entry_by, self),
            ("query", "doc", "run", "qrels", "answer"),
            marks=marks or partial(_tells, self),
            nested=True,
            options=("run", *(("passages",) if self.passages else ()), *PLACES, *self.apart, *self.options),
            lists=tuple(dict.fromkeys(lists)),
            narrows=partial(_kinds, self),
            example=self.example,
            taken=partial(roles_of, self),
            rows=tuple(either(self.rows)),
            each=self.each,
            refused=self.refused,
            mark=self.mark,
            together=tuple(self.together),
            apart=tuple(self.apart),
            spelled=self.spelled,
        )

    def spelled(self, options: Mapping[str, Any]) -> DataForm:
        """Return the form with the places that options name."""
        places: dict[str, Any] = {part: str(options[key]) for key, part in PLACES.items() if key in options}
        # A column that the user names for one part is not taken for another as well.
        for part in PLACES.values():
            known = either(getattr(self, part))
            if part not in places and {*known} & {*places.values()}:
                places[part] = " | ".join(path for path in known if path not in places.values())
        reads = {part: read for part, read in self.reads.items() if part not in places}
        return replace(self, **places, reads=reads).form()


def either(paths: str) -> list[str]:
    """Return alternative paths one by one; those of each item of a list stay together."""
    place, several, inner = paths.partition("[].")
    return [path.strip() + several + inner for path in place.split("|") if path]


def at(fields: Fields, path: str) -> Any:
    """Return the value at a path of a record, or None."""
    if path in fields:
        return fields[path]
    place, several, inner = path.partition("[].")
    if several:
        return _in_each(at(fields, place), place, either(inner))
    *outer, last = path.split(".")
    held: Any = fields
    for name in outer:
        # A cell of CSV holds an object in the syntax of JSON or Python.
        held = object_in(held.get(name))
        if held is None:
            break
    if last == "*":
        flat = [value for name, value in fields.items() if fnmatchcase(str(name), path)]
        members = flat or list((held or {}).values())
        return members[0] if len(members) == 1 else None
    return None if held is None else held.get(last)


def _in_each(held: Any, place: str, paths: Sequence[str]) -> list[Any] | None:
    """Return the items' values at the first of some paths; None if there is no list, or an item lacks a value."""
    items = listed_in(held)
    if items is None and held is None:
        return None
    if items is None or not all(isinstance(item, Mapping) for item in items):
        raise ValueError(f"{place!r} must be a list of objects")
    values = []
    for item in items:
        held = (at(item, path) for path in paths)
        values.append(next((value for value in held if value is not None), None))
    return None if None in values else values


def sentences(parts: Any) -> str | None:
    """Return a text that is given as a list of sentences."""
    return None if parts is None else " ".join(map(str, parts))


def rows_at(fields: Fields, place: str) -> list[dict[str, Any]]:
    """Return the records at a place in an object, or []."""
    held = at(fields, place.removesuffix(".*"))
    if place.endswith(".*") and isinstance(held, Mapping):
        held = [{"key": name, **row} if isinstance(row, Mapping) else row for name, row in held.items()]
    if not isinstance(held, list) or not all(isinstance(row, dict) for row in held):
        return []
    return held


def _part(tool: Tool, fields: Fields, part: str, path: str) -> Any:
    """Return what a record holds of a part at one of its paths, or None."""
    value = at(fields, path)
    return tool.reads[part](value) if part in tool.reads else value


def _seen(tool: Tool, fields: Fields, part: str, path: str) -> Any:
    """Return the same; True if it cannot be read, which becomes an error with its line later."""
    try:
        return _part(tool, fields, part, path)
    except ValueError:
        return True


def _tells(tool: Tool, fields: Fields) -> bool:
    return all(any(path in fields or at(fields, path) is not None for path in either(paths)) for paths in tool.tells)


def paths_of(tool: Tool, fields: Fields) -> dict[str, str]:
    """Return the first path of each part that a record holds."""
    found: dict[str, str] = {}
    for part in ROLES:
        for path in either(getattr(tool, part)):
            # deepeval keeps gold texts under a name that others use for retrieved passages.
            taken = part == "gold" and path == found.get("passages")
            if not taken and not is_blank(_seen(tool, fields, part, path)):
                found[part] = path
                break
    return found


def entry_by(tool: Tool, fields: Fields) -> Entry:
    """Return the contents of a tool's record."""
    paths = paths_of(tool, fields)
    held = {part: _part(tool, fields, part, path) for part, path in paths.items()}
    passages = _with_ids(held, paths, "passages", "passage_ids")
    gold = _with_ids(held, paths, "gold", "gold_ids")
    known = {str(passage.get("text")): passage["id"] for passage in passages if passage.get("id") is not None}
    golden: dict[str | tuple[str, ...], int] = {}
    for passage in gold:
        if passage.get("id") is None:
            text = passage.get("text")
            if not isinstance(text, str):
                raise ValueError(f"{paths['gold']!r} holds a passage with neither an id nor a text")
            # A retrieved gold passage keeps its id there.
            passage["id"] = known.get(text, content_id(str(passage.get("title") or ""), text))
        own = passage["id"]
        golden[own if isinstance(own, tuple) else str(own)] = 1
    turns = turns_in(held.get("question"))
    if turns:
        held["question"] = turns[-1]["content"]
    asked = object_in(held.get("question"))
    if asked is not None:
        raise ValueError(f"{paths['question']!r} is an object ({', '.join(map(str, asked))[:60]}), and no question")
    for part in ("question", "answer"):
        # The only message of a conversation is a text, the only answer of a list is not.
        if "[]." in str(paths.get(part)) and len(held[part]) == 1:
            held[part] = held[part][0]
    answer = None if "failed" in paths else held.get("answer")
    entry = {"query_id": _id(held.get("id")), "question": held.get("question"), "answer": answer}
    if len(turns) > 1:
        entry["messages"] = turns
    if "reference" in held:
        entry["answers"] = list_of(held["reference"], paths["reference"])
    if "run" in held:
        entry["run"] = str(held["run"])
    ranked: dict[str, Passage] = {}
    # A vector store's score may be a distance, so the order of the list counts, by first occurrence.
    for passage in passages:
        own = passage.get("id")
        key = f"{passage.get('title') or ''}\n{passage.get('text')}" if own is None else str(own)
        if ranked.setdefault(key, passage).get("text") != passage.get("text"):
            raise ValueError(f"passages with different texts have the id {own!r}: write the id of each passage")
    sources = [passage for passage in gold if isinstance(passage.get("text"), str)]
    return {**entry, "ctxs": [*ranked.values()], "gold": [*golden.items()], "sources": sources}


def _id(value: Any) -> Any:
    """Return an id as text; tools that number their questions write real numbers."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value


def _with_ids(held: Fields, paths: Mapping[str, str], what: str, names: str) -> list[Passage]:
    """Return passages with ids from a separate list."""
    passages = [passage_of(item) for item in list_of(held.get(what), paths.get(what))]
    ids = [_id(value) for value in list_of(held.get(names), paths.get(names))]
    if not ids:
        return passages
    if not passages:
        return [{"id": own} for own in ids]
    if len(ids) != len(passages):
        both = f"{paths[what]!r} holds {len(passages)} passages, {paths[names]!r} {len(ids)} ids"
        raise ValueError(f"{both}: there must be an id for each")
    return [{**passage, "id": own} for passage, own in zip(passages, ids, strict=True)]


def _kinds(tool: Tool, fields: Fields) -> tuple[str, ...]:
    """Return the kinds in a file, by the record that reveals its form."""

    def there(part: str) -> bool:
        paths = either(getattr(tool, part))
        return any(path in fields or _seen(tool, fields, part, path) is not None for path in paths)

    kinds = ["query"] if there("question") else []
    if any(_seen(tool, fields, "passages", path) is not None for path in either(tool.passages)):
        kinds += ["doc", "run"]
    elif there("passage_ids"):
        kinds.append("run")
    if {"gold", "gold_ids"} & paths_of(tool, fields).keys():
        kinds.append("qrels")
    if there("answer") or there("failed"):
        kinds.append("answer")
    return tuple(kinds)


def roles_of(tool: Tool, fields: Fields) -> dict[str, str]:
    """Return the role of each column of a record, "" for unused ones."""
    taken: dict[str, str] = {}
    for part, path in paths_of(tool, fields).items():
        value = _seen(tool, fields, part, path)
        alone = part == "passages" and isinstance(value, str) and not listed_in(value) and not tool.together
        role = "one passage, since it is no list" if alone else ROLES[part]
        # The results of an engine hold the passages and their ids.
        taken[path] = f"{taken[path]}, {role}" if path in taken else role
    taken |= {path: ROLES["failed"] for path in either(tool.failed) if path in fields}
    for name in _names(fields, tool.scores):
        if name in taken or any(path.startswith((f"{name}.", f"{name}[")) for path in taken):
            continue
        score = _matches(name, tool.scores) and not _matches(name, tool.own)
        score = score and (tool.scores != "*" or _may_be_score(at(fields, name)))
        lower = ", lower is better" if _matches(name, tool.lower) else ""
        taken[name] = f"score{lower}" if score else ""
    return taken


def _names(fields: Fields, patterns: str) -> Iterator[str]:
    """Yield the names of columns, and of object members that match a pattern."""
    for name, value in fields.items():
        members = [f"{name}.{member}" for member in value] if isinstance(value, Mapping) else []
        inside = [member for member in members if _matches(member, patterns)]
        yield from inside or [str(name)]


def _matches(name: str, patterns: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in either(patterns))


def _may_be_score(value: Any) -> bool:
    if not isinstance(value, str):
        return value is None or isinstance(value, int | float)
    try:
        float(value)
    except ValueError:
        return not value or thumb_of(value) is not None
    return True
