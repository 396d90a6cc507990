"""The beginning of a file, which forms are held against."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Final

from judgekit.data.streams import check_file, head

_ROWS: Final = 20
ZIP: Final = b"PK\x03\x04"


@dataclass(frozen=True)
class Beginning:
    """A file or folder that is to be recognised.

    Attributes:
        path: where it is.
        expected: what it should be, for messages.
    """

    path: Path
    expected: str

    @cached_property
    def start(self) -> bytes:
        """The first 64 KiB, unpacked, without blanks in front; b"" of a folder."""
        if self.path.is_dir():
            return b""
        if self.path.is_file():
            check_file(self.path, self.expected)
            with self.path.open("rb") as stream:
                if stream.read(4) == ZIP and self.path.suffix == ".xlsx":
                    return ZIP
        return head(self.path, self.expected).lstrip()

    @cached_property
    def row(self) -> str:
        """The first line."""
        return self.start.split(b"\n", 1)[0].decode(errors="replace").rstrip()

    @cached_property
    def rows(self) -> list[list[str]]:
        """The cells of the first rows: between tabs if there is one in a row, else between white space."""
        every = self.start.decode(errors="replace").splitlines()
        whole = every[:-1] if len(every) > 1 and len(self.start) > 60_000 else every  # the last may be cut off
        return [row.split("\t") if "\t" in row else row.split() for row in islice(whole, _ROWS) if row.strip()]
