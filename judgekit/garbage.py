"""Python's garbage collection, which finds little here: judgekit makes many objects, but hardly any cycles."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

OBJECTS: Final = 20_000
"""The number of new objects before a collection: those of some hundred requests."""

_lock: Final = threading.Lock()
_before: Final[list[tuple[int, int, int]]] = []
"""The settings found by each active block; the first ones are the program's own."""


@contextmanager
def collected_seldom() -> Iterator[None]:
    """Collect garbage rarely inside the block; after the last of several blocks, in any threads, as before.

    Labelling a collection on disk takes a quarter less time. More generous settings stay.
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
            # The last block to end restores the settings found by the first.
            found = _before.pop()
            if not _before:
                gc.set_threshold(*found)
