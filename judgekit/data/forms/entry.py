"""The parts of nested forms: a question with its passages, from any library or program."""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from numbers import Real
from typing import Any, Final

from judgekit.data.fields import DOC, QUERY, Names
from judgekit.data.records import Fields, kind_of

Entry = dict[str, Any]
"""A question with what belongs to it, as `judgekit.registry.DataForm` describes what a nested form returns."""
Passage = dict[str, Any]
"""Id, title, text and page of a passage, as far as they are known."""
ENTRY: Final[Names] = {**QUERY, "text": ("question", "query", "text")}
PASSAGE: Final[Names] = {**DOC, "id": ("id", "doc_id", "passage_id", "docid")}
_INNER: Final = ("node", "document", "kwargs")
TEXTS: Final = ("page_content", "content", "text", "contents", "segment", "passage", "body", "chunk", "chunk_text")
_SHOWN: Final = re.compile(r"\s*page_content=['\"]")
"""LangChain's display of a document."""
_WORD: Final = re.compile(r"(?=[!-~]*\d)[!-~]{1,80}", re.ASCII)
"""A word of ASCII with a digit: other scripts write sentences without spaces."""
_SOURCES: Final = ("source", "file_path")
"""Fields in which loaders of LangChain and LlamaIndex write the path of a passage's file."""
IDS: Final = ("doc_id", "id", "node_id", "id_", "_id", "docid")


def content_id(title: str, text: str) -> str:
    """Return a doc id made of title and text, so that the same passage has the same id everywhere."""
    return hashed("p", f"{title}\n{text}")


def is_content_id(doc_id: str) -> bool:
    """Return whether an id looks like one that `content_id` makes."""
    return re.fullmatch(r"p[0-9a-f]{16}", doc_id) is not None


def hashed(kind: str, text: str) -> str:
    """Return an id made from a text."""
    return kind + hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def is_id(value: Any) -> bool:
    """Return whether a value may be an id: a text, or a whole number as tools write that count."""
    return isinstance(value, str | int) and not isinstance(value, bool)


def is_text_by_id(value: Any) -> bool:
    """Return whether a value that stands under its id is a query or doc: its text, or an object with ``text``."""
    return isinstance(value, str) or (isinstance(value, Mapping) and "text" in value)


def fields_by_id(own: str, value: Any, name: str) -> dict[str, Any]:
    """Return the fields of such a query or doc, with its id under a name; readers report any other value."""
    fields = value if isinstance(value, Mapping) else {"text": value}
    return {**fields, name: own}


def first_of(fields: Fields, names: Iterable[str]) -> str | None:
    """Return the first name with a value."""
    return next((name for name in names if not is_blank(fields.get(name))), None)


def is_blank(value: Any) -> bool:
    """Return whether a cell holds nothing; a table in a cell cannot be compared with a text."""
    return value is None or (isinstance(value, str) and not value)


def passage_of(item: Any) -> Passage:
    """Return id, title, text and page of a retrieved passage: a library's object or its JSON, or a text."""

    def get(*names: str) -> Any:
        held = (item.get(name) if isinstance(item, Mapping) else getattr(item, name, None) for name in names)
        return next((value for value in held if value is not None), None)

    if isinstance(item, str):
        if _SHOWN.match(item):
            raise ValueError(f"{item[:60]!r} is a document as Python shows it, not its text: write its page_content")
        return {"text": item}
    if isinstance(item, tuple | list):  # with its score, a pair in JSON too
        if not is_scored(item):
            raise ValueError(f"{item!r:.60} is neither a passage nor a pair of a passage and its score")
        return passage_of(item[0])
    inner = get(*_INNER)
    if inner is not None:
        return passage_of(inner)
    read, meta = get("get_content"), get("metadata", "meta")
    text = read() if callable(read) else get(*TEXTS)
    resource = get("text_resource")
    if text is None and isinstance(resource, Mapping):  # LlamaIndex' JSON since 0.12
        text = resource.get("text")
    meta = meta if isinstance(meta, Mapping) else {}
    passage = {"id": get(*IDS), "title": get("title") or meta.get("title"), "text": text}
    for page in (get("page_id"), *(meta.get(name) for name in _SOURCES)):
        if isinstance(page, str) and page.strip():
            # Ids have no white space, as for folders of text files.
            return {**passage, "page_id": "_".join(page.split())}
    return passage


def is_scored(item: Sequence[Any]) -> bool:
    """Return whether a list is a passage with its score; other pairs are titles with sentences, as in HotpotQA."""
    return len(item) == 2 and not isinstance(item[0], list) and (item[1] is None or isinstance(item[1], Real))


def look_like_ids(passages: Sequence[Any]) -> bool:
    """Return whether all passages are words with a digit, as ids are, and none has an id of its own."""
    texts = [passage.get("text") if isinstance(passage, Mapping) else None for passage in passages]
    own = any(passage.get("id") is not None for passage in passages if isinstance(passage, Mapping))
    return bool(texts) and not own and all(isinstance(text, str) and _WORD.fullmatch(text) for text in texts)


def list_of(value: Any, name: object) -> list[Any]:
    """Return the list under a name; a single text or a list in a list counts as one."""
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        raise ValueError(f"{name!r} must be a list of texts, not {kind_of(value)}")
    # Vector stores answer several questions at once; one question gives one list.
    if len(value) == 1 and isinstance(value[0], list):
        return list(value[0])
    return value


_ROLES: Final = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant"}
"""The roles of turns, by their names in chat APIs and in LangChain; instructions and calls of tools are no turns."""


def turns_in(value: Any) -> list[dict[str, str]]:
    """Return the turns of a conversation, the question last; [] for anything else."""
    messages = listed_in(value) or []
    if not messages or not all(isinstance(message, Mapping) and "content" in message for message in messages):
        return []
    turns = []
    for message in messages:
        role = _ROLES.get(str(message.get("role", message.get("type"))))
        if role is not None:
            turns.append({"role": role, "content": _text_of(message["content"])})
    if not turns or turns[-1]["role"] != "user":
        raise ValueError("the conversation does not end with a question of the user")
    return turns


def _text_of(content: Any) -> str:
    """Return the text of a message, which chat APIs also give in parts."""
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, Mapping) else part for part in parts]
    if not texts or not all(isinstance(text, str) for text in texts):
        raise ValueError("a message of the conversation is no text (a picture or a file)")
    return "\n".join(map(str, texts))


def object_in(value: Any) -> Fields | None:
    """Return an object, also from a text in the syntax of JSON or Python; None for anything else."""
    held = _spelled(value, "{")
    return held if isinstance(held, Mapping) else None


def listed_in(value: Any) -> list[Any] | None:
    """Return a list, likewise."""
    held = _spelled(value, "[")
    return held if isinstance(held, list) else None


def _spelled(value: Any, mark: str) -> Any:
    """Return what a text spells that begins with a mark, or the text; any other value as it is."""
    if isinstance(value, str) and value.lstrip().startswith(mark):
        for read in (json.loads, ast.literal_eval):
            with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                return read(value)
    return value


def checked_entry(entry: Any) -> Entry:
    """Return an entry with checked members; raise a `ValueError` for an invalid one."""
    if not isinstance(entry, Mapping):
        raise ValueError(f"the form must return a dictionary, not {kind_of(entry)}")
    for name in ("ctxs", "sources", "gold", "rows"):
        if not isinstance(entry.get(name, []), list | tuple):
            raise ValueError(f"{name!r} must be a list, not {kind_of(entry[name])}")
    if not isinstance(entry.get("titles", {}), Mapping):
        raise ValueError(f"'titles' must be an object of ids and titles, not {kind_of(entry['titles'])}")
    for number, pair in enumerate(entry.get("gold", ())):
        ids = pair[0] if isinstance(pair, list | tuple) and len(pair) == 2 else None
        if not all(isinstance(own, str | int | float) for own in (ids if isinstance(ids, tuple) else [ids])):
            raise ValueError(f"gold[{number}] must be the id of a passage with its grade, not {pair!r:.60}")
    return dict(entry)


def ungrouped(gold: Iterable[Any], way: object, spelled: str) -> list[Any]:
    """Return judgments of single passages; groups of alternatives as the user declares, else a `ValueError` asks.

    Args:
        gold: pairs of an id, or of a tuple of ids, and a grade.
        way: ``each`` if every passage of a group is relevant by itself, ``first`` if only its first one counts.
        spelled: how the user writes it, with ``{}`` in its place.
    """
    if way not in (None, "each", "first"):
        raise ValueError(f"alternatives={way}: expected alternatives=each or alternatives=first")
    pairs: list[Any] = []
    for pair in gold:
        group, grade = pair
        if not isinstance(group, tuple):
            pairs.append(pair)
            continue
        if len(group) > 1 and way is None:
            raise ValueError(
                f"any of the passages {', '.join(map(repr, group))} will do, which judgments of single passages cannot"
                f" say: write {spelled.format('each')} if each is relevant by itself, or {spelled.format('first')} if"
                " only the first of each group is"
            )
        chosen = group if way == "each" else group[:1]
        pairs += [(doc, grade) for doc in chosen if (doc, grade) not in pairs]
    return pairs
