"""What people were asked: a file beside their qrels that says which pairs were drawn, and with which probability.

With it a pair that the qrels do not list is known to be *not judged*; without it nobody can tell it from *not
relevant*. ``NAME.sample.json`` stands beside ``NAME``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from judgekit.data.labelings import Scale
from judgekit.data.streams import note_read, read_bytes, write_atomic
from judgekit.errors import DataError, UsageError

__all__ = ["ASKED_COLUMNS", "Asked", "asked_path"]

ASKED_COLUMNS: Final = ("query_id", "doc_id", "probability", "content", "status", "judgments")


def asked_path(qrels: Path) -> Path:
    """Return where the file lies that says what people were asked."""
    return qrels.with_name(f"{qrels.name}.sample.json")


@dataclass(frozen=True)
class Asked:
    """What people were asked.

    Attributes:
        sample: hash of the sample.
        design: how it was drawn.
        scale: of their labels.
        queries: how many queries it was drawn from.
        pairs: how many pairs it was drawn from.
        rows: per pair ``query_id, doc_id, probability, content, status, judgments``; status is ok, tie, skipped or
            open, content a hash of the texts that were shown.
        seconds: the median time of a judgment; 0 where no time was recorded.
    """

    sample: str
    design: str
    scale: str
    queries: int
    pairs: int
    rows: tuple[tuple[Any, ...], ...]
    seconds: float = 0.0

    def write(self, qrels: Path) -> Path:
        """Write this beside the qrels."""
        path = asked_path(qrels)
        content = {"judgekit": "people", **self.__dict__, "rows": [list(ASKED_COLUMNS), *map(list, self.rows)]}
        lines = ",\n  ".join(json.dumps(row, ensure_ascii=True) for row in content.pop("rows"))
        head = json.dumps(content, ensure_ascii=True, indent=1)
        write_atomic(path, f'{head[:-2]},\n "rows": [\n  {lines}\n ]\n}}\n')
        return path

    @classmethod
    def beside(cls, qrels: Path) -> Asked | None:
        """Return what people were asked if the file is there, else None."""
        path = asked_path(qrels)
        if not path.is_file():
            return None
        note_read(path)
        try:
            content = json.loads(read_bytes(path))
            if content.pop("judgekit") != "people":
                raise ValueError("not written by judgekit annotate read")
            header, *rows = map(tuple, content.pop("rows"))
            if header != ASKED_COLUMNS or any(len(row) != len(header) or not 0 < row[2] <= 1 for row in rows):
                raise ValueError("the rows are not those of a sample")
            Scale.parse(content["scale"])
            return cls(**content, rows=tuple(rows))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, UsageError) as error:
            raise DataError(
                f"does not list the questions that people were asked ({error}): read the judgments again", path
            ) from None
