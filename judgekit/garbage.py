"""Python's search for garbage, which finds little in what judgekit makes: many objects, hardly ever in cycles."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

OBJECTS: Final = 20_000
"""Objects made and not yet gone before garbage is looked for: as many as some hundred requests have."""

_lock: Final = threading.Lock()
_before: Final[list[tuple[int, int, int]]] = []
"""The settings that each of those who are at work found; the first of them are the program's own."""


@contextmanager
def collected_seldom() -> Iterator[None]:
    """Look for garbage seldom inside of the block; after the last of several blocks, in any threads, as before.

    Labelling a collection on disk takes a quarter less time. Settings that are more generous already are left alone.
    """
    with _lock:
        found = gc.get_threshold()
        _before.append(found)
        if 0 < found[0] < OBJECTS:
            gc.set_threshold(OBJECTS, *found[1:])
    try:
        yield
    finally:
        with _lock:
            # Whoever ends last comes to what the first one found, whichever of them that is.
            found = _before.pop()
            if not _before:
                gc.set_threshold(*found)
