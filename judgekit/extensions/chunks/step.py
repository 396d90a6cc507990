"""A run's report on documents that are different chunks of the same pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from judgekit import Step, register

if TYPE_CHECKING:
    from judgekit.extend import Section, State


@register.step(after="compare")
class CutsStep(Step):
    """Show what each chunking finds, and the cost of answering from it."""

    name = "cuts"

    def section(self, state: State) -> Iterable[Section]:
        """Return a table by labeling and run, if documents have spans."""
        from judgekit.extensions.chunks.cuts import cuts

        return cuts(state)
