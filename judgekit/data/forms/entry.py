"""What nested forms are made of: a question with its passages, whatever library or program wrote them down."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from judgekit.data.fields import DOC, QUERY, Names

ENTRY: Final[Names] = {**QUERY, "text": ("question", "query", "text")}
PASSAGE: Final[Names] = {**DOC, "id": ("id", "doc_id", "passage_id", "docid")}
_INNER: Final = ("node", "document", "kwargs")
_TEXTS: Final = ("page_content", "content", "text", "contents", "segment", "passage", "body")
_SOURCES: Final = ("source", "file_path")
"""Where loaders of LangChain and LlamaIndex write the path of the file that a passage is of."""
_IDS: Final = ("doc_id", "id", "node_id", "id_", "_id", "docid")


def content_id(title: str, text: str) -> str:
    """Return a doc id made of title and text, so that the same passage has the same id everywhere."""
    return hashed("p", f"{title}\n{text}")


def hashed(kind: str, text: str) -> str:
    """Return an id made of a text."""
    return kind + hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def first_of(fields: Mapping[str, Any], names: Iterable[str]) -> str | None:
    """Return the first of some names under which there is something."""
    return next((name for name in names if fields.get(name) not in (None, "")), None)


def passage_of(item: Any, id_field: str | None = None) -> dict[str, Any]:
    """Return id, title, text, metadata and score of a retrieved passage: a library's object or its JSON, or a text."""

    def get(*names: str) -> Any:
        held = (item.get(name) if isinstance(item, Mapping) else getattr(item, name, None) for name in names)
        return next((value for value in held if value is not None), None)

    if isinstance(item, str):
        return {"text": item}
    if isinstance(item, tuple | list) and len(item) == 2:  # with its score, a pair in JSON too
        return {**passage_of(item[0], id_field), "score": item[1]}
    inner = get(*_INNER)
    if inner is not None:
        whole = passage_of(inner, id_field)
        return {**whole, "score": whole.get("score") if get("score") is None else get("score")}
    read, meta = get("get_content"), get("metadata", "meta")
    text = read() if callable(read) else get(*_TEXTS)
    if text is None and isinstance(resource := get("text_resource"), Mapping):  # LlamaIndex' JSON since 0.12
        text = resource.get("text")
    meta = meta if isinstance(meta, Mapping) else {}
    own = meta.get(id_field, "") if id_field else get(*_IDS)
    passage = {"id": own, "title": get("title") or meta.get("title"), "text": text, "score": get("score")}
    page = get("page_id") or next((meta[name] for name in _SOURCES if isinstance(meta.get(name), str)), "")
    # An id has no white space: as folders of texts name their files.
    return {**passage, "page_id": "_".join(page.split())} if isinstance(page, str) and page.strip() else passage
