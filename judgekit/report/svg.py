"""Figures for users: a drawing, its numbers, and their files.

Colours and strokes come from `figures.css` by class, so that a figure follows the light or dark scheme of a page.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final, Self

import pandas as pd
from markupsafe import Markup

from judgekit.data.streams import write_atomic
from judgekit.errors import UsageError, not_among
from judgekit.report.markup import fill

WIDTH: Final = 760.0
NARROW: Final = 360.0
"""Pixels of a drawing on a page, and on a phone."""


@cache
def style() -> str:
    """Return the style sheet of all figures, with the colours of the light and of the dark scheme."""
    return files("judgekit.report").joinpath("templates", "figures.css").read_text(encoding="utf-8")


@cache
def _printed() -> str:
    """Return the style sheet for paper, with light colours instead of variables, which most programs do not know."""
    # One style sheet for page and file, since two would drift apart.
    light = style().split("@media")[0]
    colours = dict(re.findall(r"(--\w+): (#\w+);", light))
    rules = re.sub(r"^  --.*\n|  background: [^;]*;", "", light, flags=re.MULTILINE) + style().rpartition("\n}\n")[2]
    return re.sub(r"var\((--\w+)\)", lambda match: colours[match[1]], rules)


@dataclass(frozen=True, eq=False)
class Figure:
    """A figure; in a notebook it shows itself.

    Attributes:
        name: a slug for files, unique among the figures of a report.
        title: the title.
        caption: how to read it.
        alt: a description for those who cannot see it.
        data: the shown numbers, with columns in words.
        svg: the drawing, for a page that has `style`.
        narrow: the same drawing for a phone, with its panels below each other.
    """

    name: str
    title: str
    caption: str = field(repr=False)
    alt: str = field(repr=False)
    data: pd.DataFrame = field(repr=False)
    svg: Markup = field(repr=False)
    narrow: Markup = field(repr=False)

    @property
    def csv(self) -> str:
        """The numbers as CSV."""
        return str(self.data.to_csv(index=False))

    @property
    def link(self) -> str:
        """The numbers inside of a link, for a page that loads nothing."""
        return f"data:text/csv;base64,{b64encode(self.csv.encode(errors='replace')).decode()}"

    def file(self) -> str:
        """Return the drawing as a self-contained SVG file for any program."""
        # A page needs neither the name space nor the style, which would be repeated for each figure.
        made = str(self.svg).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
        return made.replace("><title", f"><style>{_printed()}</style><title", 1)

    def save(self, path: str | Path) -> None:
        """Write the figure as ``.svg``, or its numbers as ``.csv``, atomically."""
        path = Path(path)
        match path.suffix.lower():
            case ".csv":
                write_atomic(path, self.csv)
            case ".svg":
                write_atomic(path, self.file())
            case _:
                raise UsageError(f"a figure is saved as .svg or .csv, not as {path.name!r}")

    def _repr_html_(self) -> str:
        return fill("notebook.html", style=Markup(style()), figure=self)  # the style sheet is our own file


class Figures(tuple[Figure, ...]):
    """A tuple of the available figures, which can also be looked up by name; in a notebook they show themselves.

    Attributes:
        summary: a description of their subject in words and a table, as HTML.
        needs: the requirements of each named figure, in words.
    """

    summary: Markup
    needs: Mapping[str, str]

    def __new__(
        cls,
        figures: Iterable[Figure | None] = (),
        summary: Markup | None = None,
        needs: Mapping[str, str] | None = None,
    ) -> Self:
        """Make a tuple of them; those from other `Figures` keep their requirements."""
        self = super().__new__(cls, filter(None, figures))
        self.summary = summary or Markup("")
        self.needs = needs or getattr(figures, "needs", {})
        return self

    def named(self, name: str) -> Figure:
        """Return the figure of a name."""
        # By name, not by number, since the available figures depend on the data.
        by_name = {figure.name: figure for figure in self}
        if name not in by_name and name in self.needs:
            raise UsageError(f"no figure {name!r} could be drawn: it needs {self.needs[name]}")
        if name not in by_name:
            raise UsageError(not_among("figure", name, list(by_name), also=self.needs))
        return by_name[name]

    def save(self, folder: str | Path) -> list[Path]:
        """Write all of them as SVG and CSV into a folder, which is made if missing; return the files."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        paths = []
        for figure in self:
            for ending in ("svg", "csv"):
                path = Path(folder) / f"{figure.name}.{ending}"
                figure.save(path)
                paths.append(path)
        return paths

    def _repr_html_(self) -> str:
        return "".join(figure._repr_html_() for figure in self)
