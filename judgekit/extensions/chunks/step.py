"""What a run reports of documents that are different cuts of the same pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from judgekit import Step, register

if TYPE_CHECKING:
    from judgekit.extend import Section, State


@register.step(after="compare")
class CutsStep(Step):
    """Show what each cut of the pages finds, and what answering from it takes."""

    name = "cuts"

    def section(self, state: State) -> Iterable[Section]:
        """Return a table by labeling and run where documents say where they stand."""
        from judgekit.extensions.chunks.cuts import cuts

        return cuts(state)
