"""The requests of several stages as one program, so that shared requests are counted and sent once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from judgekit.wire.types import Outcome, Program, Request, most_requests, next_requests

StageUnit = tuple[Program[Any], Any]
"""A unit and the program (a labeler, the answerer, a metric of imported answers) that says what it needs."""


class AllStages:
    """The requests of all stages as one program, so that those that two stages share are counted and sent once."""

    def requests(self, asked: StageUnit, replies: Sequence[Outcome], /) -> list[Request]:
        """Return the next wave of the unit's own program."""
        program, unit = asked
        return next_requests(program, unit, replies)

    def most(self, asked: StageUnit, /) -> int | None:
        """Return the most requests that the unit's own program makes of it."""
        return most_requests(*asked)
