"""``texts``: a folder of text files as documents: Markdown, plain text, HTML without its tags."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Final

from judgekit.data.folders import TEXTS, text_files
from judgekit.data.records import DataRecord
from judgekit.data.streams import text_of
from judgekit.errors import DataError
from judgekit.registry import DataForm

_HEADING: Final = re.compile(r"^#{1,6}\s+(.+?)\s*#*\s*$", re.M)


def text_id(path: Path, folder: Path) -> str:
    """Return the id of a text file: its path inside the folder, with _ for white space."""
    return "_".join(path.relative_to(folder).as_posix().split())


def _texts(folder: Path) -> Iterator[DataRecord]:
    files = folder.is_dir() and text_files(folder)
    if not files:
        raise DataError(f"is not a folder with text files ({', '.join(TEXTS)})", folder)
    for file in files:
        title, text = _read(file)
        name = text_id(file, folder)
        # An error's line would belong to another file, so the error names the file instead.
        yield DataRecord(1, {"doc_id": name, "title": title, "text": text}, inside=name)


def _read(file: Path) -> tuple[str, str]:
    """Return title and text of a file; the title is its first heading, "" if it has none."""
    whole = text_of(file)
    if file.suffix.lower() in (".html", ".htm"):
        return _page(whole)
    # In plain text, a line that begins with # is a comment or a tag, not a heading.
    heading = None if file.suffix.lower() == ".txt" else _HEADING.search(whole)
    return heading[1] if heading else "", whole.strip()


_LEFT_OUT: Final = re.compile(r"<!--.*?-->|<(script|style|head|template|noscript)\b.*?</\1\s*>", re.I | re.S)
_TITLE: Final = re.compile(r"<(h[1-3])\b[^>]*>(.*?)</\1\s*>", re.I | re.S)
_BLOCK: Final = re.compile(r"</?(?:p|div|br|li|tr|section|article|pre|h[1-6])\b[^>]*>", re.I)
_TAG: Final = re.compile(r"</?[a-z!][^>]*>", re.I)


def _page(markup: str) -> tuple[str, str]:
    """Return the first heading of a page of HTML, and what a reader sees, with an empty line between blocks."""
    seen = _LEFT_OUT.sub("", markup)
    heading = _TITLE.search(seen)
    title = unescape(_TAG.sub("", heading[2])) if heading else ""
    blocks = [" ".join(unescape(_TAG.sub("", block)).split()) for block in _BLOCK.sub("\0", seen).split("\0")]
    return " ".join(title.split()), "\n\n".join(filter(None, blocks))


FOLDER: Final = DataForm(
    "texts",
    _texts,
    ("doc",),
    narrows=lambda _: ("doc",),
    marks=lambda beginning: beginning.path.is_dir() and bool(text_files(beginning.path)),
)
