"""What the replies behind each label took: requests, tokens, seconds, and when they were stored.

Only numbers are kept, one of each kind per label, since a labeling may have millions of labels. What a server does not
say is NaN: if one of two replies has no count of tokens, the sum is unknown.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from judgekit.wire.types import Outcome, Reply


class Exchange(NamedTuple):
    """What the replies behind one label took together; NaN is unknown.

    Attributes:
        requests: the number of requests that were answered.
        prompt_tokens, completion_tokens: their tokens, as the server counted them.
        seconds: from sending each request to having its reply, added up.
        stored_at: when the last reply was stored, seconds since 1970.
    """

    requests: float
    prompt_tokens: float
    completion_tokens: float
    seconds: float
    stored_at: float


def exchange_of(outcomes: Sequence[Outcome]) -> Exchange:
    """Return what the replies among outcomes took."""
    prompt = completion = seconds = 0.0
    times: list[float] = []
    for outcome in outcomes:
        if not isinstance(outcome, Reply):
            continue
        usage = outcome.usage
        prompt += _known(None if usage is None else usage.prompt)
        completion += _known(None if usage is None else usage.completion)
        seconds += _known(outcome.seconds)
        times.append(_known(outcome.stored_at))
    if not times:
        return _NOTHING
    # The order in which max sees a NaN would decide.
    stored_at = math.nan if any(map(math.isnan, times)) else max(times)
    return Exchange(len(times), prompt, completion, seconds, stored_at)


_NOTHING = Exchange(*[math.nan] * len(Exchange._fields))
"""What is known of a label that no reply is behind, or whose replies are behind other labels, too."""


def _known(number: float | None) -> float:
    return math.nan if number is None else number


class Exchanges:
    """The exchanges of a labeling, in the order of its labels."""

    def __init__(self) -> None:
        self._columns = [array("d") for _ in Exchange._fields]

    def add(self, outcomes: Sequence[Outcome], labels: int) -> None:
        """Add the replies behind some labels; those behind several labels belong to none of them alone."""
        exchange = exchange_of(outcomes) if labels == 1 else _NOTHING
        for column, number in zip(self._columns, exchange, strict=True):
            column.extend([number] * labels)

    def table(self) -> pa.Table:
        """Return a row for each label, with a column for each number of an `Exchange`."""
        columns = [np.frombuffer(column, np.float64) if column else np.empty(0) for column in self._columns]
        return pa.table(columns, names=Exchange._fields)
