"""The requests of several stages as one program, so that shared requests are counted and sent once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from judgekit.wire.types import Outcome, Program, Request, most_requests, next_requests

StageUnit = tuple[Program[Any], Any]
"""A unit and its program: a labeler, the answerer, or a metric for imported answers."""


class AllStages:
    """The requests of all stages as one program, so that shared ones are counted and sent once."""

    def requests(self, asked: StageUnit, replies: Sequence[Outcome], /) -> list[Request]:
        """Return the next wave of the unit's own program."""
        program, unit = asked
        return next_requests(program, unit, replies)

    def most(self, asked: StageUnit, /) -> int | None:
        """Return the largest number of requests of the unit's own program."""
        return most_requests(*asked)
