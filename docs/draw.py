"""Draw the picture of the concepts: `python docs/draw.py` (`make pictures` runs it)."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

HERE: Final = Path(__file__).parent
TITLE: Final = "From queries and runs to scores and quality, and from both to the decision"
HIGH: Final = 60
GIVEN, LABELS, ANSWERS, RESULT = "#f3f3f3", "#e4eefb", "#e8f5e6", "#fdf3d8"


class Box(NamedTuple):
    """A step: its place, its names, and its colour."""

    x: int
    y: int
    wide: int
    name: str
    about: str
    fill: str

    @property
    def middle(self) -> int:
        """The middle of the box, from left to right."""
        return self.x + self.wide // 2


BOXES: Final = {
    box.name: box
    for box in (
        Box(8, 95, 120, "queries, runs", "and documents", GIVEN),
        Box(160, 32, 110, "pool", "pairs to label", LABELS),
        Box(305, 32, 110, "labelings", "a label per pair", LABELS),
        Box(450, 32, 110, "scores", "run × query", LABELS),
        Box(160, 158, 110, "answers", "from the top k", ANSWERS),
        Box(450, 158, 110, "quality", "run × query", ANSWERS),
        Box(595, 95, 150, "decision", "r, gain, cost", RESULT),
    )
}
ARROWS: Final = (
    ("queries, runs", "pool"),
    ("queries, runs", "answers"),
    ("pool", "labelings"),
    ("labelings", "scores"),
    ("answers", "quality"),
    ("scores", "decision"),
    ("quality", "decision"),
)
NOTES: Final = (
    (360, 20, "labeler: string match, judge, eRAG, people"),
    (505, 108, "measure: nDCG@5, …"),
    (215, 236, "your LLM or application"),
    (505, 236, "metric: exact match, ratings, …"),
)


def _arrow(start: Box, end: Box) -> str:
    """Return the path from the right side of a box to the left side of another, slanted if they differ in height."""
    lean = (end.y > start.y) - (end.y < start.y)
    return f'<path d="M{start.x + start.wide} {start.y + 30 + 13 * lean}L{end.x - 3} {end.y + 30 - 13 * lean}"/>'


def concepts() -> str:
    """Return the picture as SVG."""
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 250" role="img" aria-labelledby="title"'
        ' font-family="system-ui, sans-serif" font-size="13" text-anchor="middle">',
        f'<title id="title">{TITLE}</title>',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#555"/></marker></defs>',
        '<rect width="760" height="250" fill="#fff"/>',
        '<g fill="none" stroke="#555" stroke-width="1.4" marker-end="url(#tip)">',
        *(_arrow(BOXES[start], BOXES[end]) for start, end in ARROWS),
        '</g><g stroke="#333">',
        *(
            f'<rect x="{b.x}" y="{b.y}" width="{b.wide}" height="{HIGH}" rx="6" fill="{b.fill}"/>'
            for b in BOXES.values()
        ),
        '</g><g font-weight="600" fill="#111">',
        *(f'<text x="{box.middle}" y="{box.y + 26}">{box.name}</text>' for box in BOXES.values()),
        '</g><g font-size="11" fill="#333">',
        *(f'<text x="{box.middle}" y="{box.y + 44}">{box.about}</text>' for box in BOXES.values()),
        *(f'<text x="{x}" y="{y}">{text}</text>' for x, y, text in NOTES),
        "</g>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    (HERE / "_static" / "concepts.svg").write_text(concepts(), encoding="utf-8")
