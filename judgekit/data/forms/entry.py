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


def passage_of(item: Any) -> dict[str, Any]:
    """Return id, title, text and page of a retrieved passage: a library's object or its JSON, or a text."""

    def get(*names: str) -> Any:
        for name in names:
            value = item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)
            if value is not None:
                return value
        return None

    if isinstance(item, str):
        return {"text": item}
    if isinstance(item, tuple | list) and len(item) == 2:  # with its score, a pair in JSON too
        return passage_of(item[0])
    inner = get(*_INNER)
    if inner is not None:
        return passage_of(inner)
    read, meta = get("get_content"), get("metadata", "meta")
    text = read() if callable(read) else get(*_TEXTS)
    resource = get("text_resource")
    if text is None and isinstance(resource, Mapping):  # LlamaIndex' JSON since 0.12
        text = resource.get("text")
    meta = meta if isinstance(meta, Mapping) else {}
    passage = {"id": get(*_IDS), "title": get("title") or meta.get("title"), "text": text}
    for page in (get("page_id"), *(meta.get(name) for name in _SOURCES)):
        if isinstance(page, str) and page.strip():
            # An id has no white space: as folders of texts name their files.
            return {**passage, "page_id": "_".join(page.split())}
    return passage
