"""The requests behind labels in the form for a page: text shared by a labeling's requests is kept once.

A request to an LLM is mostly its prompt, which is the same for all pairs, and the question and the passage, which the
page shows anyway. So its messages are cut into pieces, and pieces equal to one of these texts are replaced by a number.
Joined again, the pieces are exactly the request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from judgekit.data.documents import Doc, Query
from judgekit.data.outputs import clean

Piece = str | int
"""A text, or the number of its replacement: `QUESTION`, `TITLE` or `TEXT`."""

QUESTION: Final = 0
TITLE: Final = 1
TEXT: Final = 2

Asks = Callable[[Query, Doc], bytes | None]
"""Returns the body of the first request about a pair, as JSON; None if nothing is asked."""

_BETWEEN: Final = "\n"
"""The separator of title and text (`judgekit.data.documents.render`)."""


def pieces(content: str, query: Query, doc: Doc) -> list[Piece]:
    """Cut a message at the question, and at the document's text with its title."""
    parted = _parted([content], doc.text, TEXT)
    for place, piece in enumerate(parted[:-1]):
        ends = f"{doc.title}{_BETWEEN}"
        if doc.title and parted[place + 1] == TEXT and isinstance(piece, str) and piece.endswith(ends):
            parted[place : place + 1] = [piece.removesuffix(ends), TITLE, _BETWEEN]
            break  # a passage is shown once
    return [piece for piece in _parted(parted, query.text, QUESTION) if piece != ""]


def _parted(parts: Sequence[Piece], text: str, number: int) -> list[Piece]:
    """Cut the texts in ``parts`` at every occurrence of ``text``, and insert its number."""
    parted: list[Piece] = []
    for part in parts:
        if isinstance(part, int) or not text:
            parted.append(part)
            continue
        first, *rest = part.split(text)
        parted.append(first)
        for after in rest:
            parted += [number, after]
    return parted


def _shown(body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Take the texts for the model out of a body, by role: messages, or the single text of a completion.

    A reranker only gets the question and the document, which the page shows.
    """
    if "prompt" in body:
        yield "text", body.pop("prompt")
    for message in body.pop("messages", ()):
        content = message["content"]
        # Other content, such as an image from a user's labeler, is shown as JSON.
        yield message["role"], content if isinstance(content, str) else orjson.dumps(content).decode()


class Requests:
    """The requests of all labelings; those that differ only in question and passage are kept once.

    Attributes:
        kept: the shared requests: their messages in `pieces`, and the other fields of their bodies.
    """

    def __init__(self, asks: Mapping[str, Asks]) -> None:
        """Take the requests of labelings about a pair, by name; those that ask nothing are absent."""
        self._asks = asks
        self._numbers: dict[bytes, int] = {}
        self.kept: list[dict[str, Any]] = []

    def of(self, labeling: str, query: Query | None, doc: Doc) -> int | dict[str, Any] | None:
        """Return the request behind a label: its number in ``kept``, or the request itself if it is unique, or None."""
        asks = self._asks.get(labeling)
        if asks is None or query is None:
            return None
        body = asks(query, doc)
        if body is None:
            return None
        settings = dict(orjson.loads(body))
        messages = []
        for role, content in _shown(settings):
            cut = [clean(piece) if isinstance(piece, str) else piece for piece in pieces(content, query, doc)]
            messages.append({"role": role, "content": cut})
        if not messages:
            return None
        request = {"messages": messages, "settings": clean(orjson.dumps(settings).decode())}
        if not any(TEXT in message["content"] for message in messages):
            return request
        key = orjson.dumps(request)
        if key not in self._numbers:
            self._numbers[key] = len(self.kept)
            self.kept.append(request)
        return self._numbers[key]
