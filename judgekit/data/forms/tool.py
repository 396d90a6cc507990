"""Declares a tool's records: the paths of question, answer, passages and so on.

A path is names from the record inwards, ``inputs.question``: a column of that name, or members of members;
``outputs.*`` is the only member, ``hits[].id|name`` the list of what the items of a list have under either name. A
function takes the record. Of several paths the first that holds something counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Final

from judgekit.data.forms.entry import content_id, list_of, listed_in, object_in, passage_of
from judgekit.registry import DataForm

Path = str | Callable[[Mapping[str, Any]], Any]
_LISTS: Final = ("reference", "passages", "passage_ids", "gold", "gold_ids")
_ROLES: Final = {
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


@dataclass(frozen=True)
class Tool:
    """The places of a question's parts in a tool's export.

    Attributes:
        name: of its form.
        release: the release whose exports the tests read.
        exports: the files that its users save, for the page on imports.
        tells: paths that exist in all of its records; ``|`` separates alternatives.
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
        failed: the reason for a missing answer.
        rows: the place of the records in a file that wraps them; ``queries.*``: the members of an object, each with its
            name as ``key``.
        each: the records of a record that holds several runs.
        refused: why a recognised file is not read, and what to do.
        mark: its separator of texts joined in a cell.
        options: the options in the form's spelling.
        example: a record.
    """

    name: str
    release: str = ""
    exports: str = ""
    tells: Sequence[str] = ()
    question: Sequence[Path] = ()
    id: Sequence[Path] = ()
    answer: Sequence[Path] = ()
    reference: Sequence[Path] = ()
    passages: Sequence[Path] = ()
    passage_ids: Sequence[Path] = ()
    gold: Sequence[Path] = ()
    gold_ids: Sequence[Path] = ()
    run: Sequence[Path] = ()
    scores: Sequence[str] = ()
    lower: Sequence[str] = ()
    failed: Sequence[Path] = ()
    rows: Sequence[str] = ()
    each: Callable[[Mapping[str, Any]], Iterator[dict[str, Any]]] | None = None
    refused: str = ""
    mark: str = ""
    options: Sequence[str] = ()
    example: str = ""

    def form(self, marks: Callable[[Mapping[str, Any]], bool] | None = None) -> DataForm:
        """Return the form of its exports; ``marks`` recognises them if ``tells`` does not."""
        lists = [path for key in _LISTS for path in getattr(self, key) if isinstance(path, str)]
        return DataForm(
            self.name,
            partial(entry_by, self),
            ("query", "doc", "run", "qrels", "answer"),
            marks=marks or partial(_tells, self),
            nested=True,
            options=("run", *(("passages",) if self.passages else ()), *self.options),
            lists=tuple(dict.fromkeys(lists)),
            narrows=partial(_kinds, self),
            example=self.example,
            taken=partial(roles_of, self),
            rows=tuple(self.rows),
            each=self.each,
            refused=self.refused,
            mark=self.mark,
        )


def at(fields: Mapping[str, Any], path: Path) -> Any:
    """Return the value at a path of a record, or None."""
    if not isinstance(path, str):
        return path(fields)
    if path in fields:
        return fields[path]
    place, several, inner = path.partition("[].")
    if several:
        return _in_each(at(fields, place), place, inner.split("|"))
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
        value = next((value for value in (at(item, path) for path in paths) if value is not None), None)
        if value is None:
            return None
        values.append(value)
    return values


def sentences(path: str) -> Path:
    """Return a path function for a text given as a list of sentences."""

    def joined(fields: Mapping[str, Any]) -> str | None:
        parts = at(fields, path)
        return None if parts is None else " ".join(map(str, parts))

    joined.__name__ = path.split("[")[0]  # by which `roles_of` tells the column
    return joined


def texts_at(path: str) -> Path:
    """Return the path of stored documents, None where they were not returned or hold no known text."""

    def passages(fields: Mapping[str, Any]) -> Any:
        stored = at(fields, path) or [{}]
        texts = [isinstance(item, dict) and isinstance(passage_of(item)["text"], str) for item in stored]
        return stored if all(texts) else None

    return passages


def rows_at(fields: Mapping[str, Any], place: str) -> list[dict[str, Any]]:
    """Return the records at a place in an object, or []."""
    held = at(fields, place.removesuffix(".*"))
    if place.endswith(".*") and isinstance(held, Mapping):
        held = [{"key": name, **row} if isinstance(row, Mapping) else row for name, row in held.items()]
    if not isinstance(held, list) or not all(isinstance(row, dict) for row in held):
        return []
    return held


def _seen(fields: Mapping[str, Any], path: Path) -> Any:
    """Return the value at a path; True if it cannot be read, which becomes an error with its line later."""
    try:
        return at(fields, path)
    except ValueError:
        return True


def _first(fields: Mapping[str, Any], paths: Sequence[Path], but: Path | None = None) -> Path | None:
    """Return the first path with a value."""
    for path in paths:
        if path != but and _seen(fields, path) not in (None, ""):
            return path
    return None


def _tells(tool: Tool, fields: Mapping[str, Any]) -> bool:
    for either in tool.tells:
        if not any(path in fields or at(fields, path) is not None for path in either.split("|")):
            return False
    return True


def _paths(tool: Tool, fields: Mapping[str, Any]) -> dict[str, Path]:
    """Return the place of each part in a record."""
    found: dict[str, Path] = {}
    for key in _ROLES:
        # deepeval keeps gold texts under a name that others use for retrieved passages.
        path = _first(fields, getattr(tool, key), found.get("passages") if key == "gold" else None)
        if path is not None:
            found[key] = path
    return found


def entry_by(tool: Tool, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the contents of a tool's record."""
    paths = _paths(tool, fields)
    held = {key: at(fields, path) for key, path in paths.items()}
    passages = _with_ids(tool, held, paths, "passages")
    gold = _with_ids(tool, held, paths, "gold")
    known = {str(passage.get("text")): passage["id"] for passage in passages if passage.get("id") is not None}
    golden: dict[str | tuple[str, ...], int] = {}
    for passage in gold:
        text, title = passage.get("text"), str(passage.get("title") or "")
        own = passage.get("id")
        # A retrieved gold passage keeps its id there.
        if own is None:
            own = known.get(str(text), content_id(title, str(text)))
        golden[own if isinstance(own, tuple) else str(own)] = 1
    asked = object_in(held.get("question"))
    if asked is not None:
        raise ValueError(f"{paths['question']!r} is an object ({', '.join(map(str, asked))[:60]}), and no question")
    answer = None if "failed" in paths else held.get("answer")
    entry = {"query_id": _id(held.get("id")), "question": held.get("question"), "answer": answer}
    if "reference" in held:
        entry["answers"] = list_of(held["reference"], paths["reference"])
    if "run" in held:
        entry["run"] = str(held["run"])
    ranked: dict[str, dict[str, Any]] = {}
    # A vector store's score may be a distance, so the order of the list counts, by first occurrence.
    for passage in passages:
        own = passage.get("id")
        ranked.setdefault(f"{passage.get('title') or ''}\n{passage.get('text')}" if own is None else str(own), passage)
    sources = [passage for passage in gold if isinstance(passage.get("text"), str)]
    for passage in sources:
        if passage.get("id") is None and passage["text"] in known:
            passage["id"] = known[passage["text"]]
    return {**entry, "ctxs": [*ranked.values()], "gold": [*golden.items()], "sources": sources}


def _id(value: Any) -> Any:
    """Return an id as text; tools that number their questions write real numbers."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value


def _with_ids(tool: Tool, held: Mapping[str, Any], paths: Mapping[str, Path], what: str) -> list[dict[str, Any]]:
    """Return passages with ids from a separate list."""
    names = what if what == "gold" else "passage"
    listed = [passage_of(item) for item in list_of(held.get(what, []), paths.get(what))]
    ids = [_id(value) for value in list_of(held.get(f"{names}_ids", []), paths.get(f"{names}_ids"))]
    if not ids:
        return listed
    if not listed:
        return [{"id": own} for own in ids]
    if len(ids) != len(listed):
        both = f"{paths[what]!r} holds {len(listed)} passages, {paths[f'{names}_ids']!r} {len(ids)} ids"
        raise ValueError(f"{both}: there must be an id for each")
    return [{**passage, "id": own} for passage, own in zip(listed, ids, strict=True)]


def _kinds(tool: Tool, fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the kinds in a file, by the record that reveals its form."""
    there = {key for key in _ROLES if any(_is_there(fields, path) for path in getattr(tool, key))}
    kinds = ["query"] if "question" in there else []
    retrieved = [_seen(fields, path) for path in tool.passages]
    if "passages" in there and any(value is not None for value in retrieved):
        kinds += ["doc", "run"]
    elif "passage_ids" in there:
        kinds.append("run")
    if {"gold", "gold_ids"} & _paths(tool, fields).keys():
        kinds.append("qrels")
    if {"answer", "failed"} & there:
        kinds.append("answer")
    return tuple(kinds)


def _is_there(fields: Mapping[str, Any], path: Path) -> bool:
    return (isinstance(path, str) and path in fields) or _seen(fields, path) is not None


def roles_of(tool: Tool, fields: Mapping[str, Any]) -> dict[str, str]:
    """Return the role of each column of a record, "" for unused ones."""
    taken: dict[str, str] = {}
    for key, path in _paths(tool, fields).items():
        name = path if isinstance(path, str) else path.__name__.strip("_")
        alone = key == "passages" and isinstance(_seen(fields, path), str) and not listed_in(_seen(fields, path))
        taken[name] = "one passage, since it is no list" if alone else _ROLES[key]
    taken |= {path: _ROLES["failed"] for path in tool.failed if isinstance(path, str) and path in fields}
    for name in _names(fields, tool.scores):
        if name in taken or any(path.startswith((f"{name}.", f"{name}[")) for path in taken):
            continue
        value = at(fields, name)
        number = value is None or isinstance(value, bool | int | float) or _is_number(value)
        score = any(fnmatchcase(name, pattern) for pattern in tool.scores)
        if score and (number or "*" not in tool.scores):
            less = any(fnmatchcase(name, pattern) for pattern in tool.lower)
            taken[name] = "score, lower is better" if less else "score"
        else:
            taken[name] = ""
    return taken


def _names(fields: Mapping[str, Any], patterns: Sequence[str]) -> Iterator[str]:
    """Yield the names of columns, and of object members that match a pattern."""
    for name, value in fields.items():
        members = [f"{name}.{member}" for member in value] if isinstance(value, Mapping) else []
        inside = [member for member in members if any(fnmatchcase(member, pattern) for pattern in patterns)]
        yield from inside or [str(name)]


def _is_number(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        float(value)
    except ValueError:
        return value in ("", "True", "False")
    return True
