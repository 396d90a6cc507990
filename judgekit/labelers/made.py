"""How labels were made, as far as known: their needs, the models, the cost.

The record goes with the labels as plain values, through scores and manifests, to the comparison of labelings. Unknown
facts are absent, and reported there as unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from judgekit.client.budget import Amount
from judgekit.labelers.base import Needs
from judgekit.wire.types import Endpoint

Record = Mapping[str, Any]
"""Plain values that JSON holds."""

_PLAIN: Final = (
    "references",
    "prompt",
    "outcome_metric",
    "outcome_prompt",
    "people",
    "existing",
    "own_answers",
    "outcome_list",
)


def costs_of(amount: Amount) -> dict[str, float | None]:
    """Return the cost of requests, by the columns of a table of costs; unreported numbers are left out."""
    row: dict[str, float | None] = {
        "requests": amount.requests,
        "request_seconds": None if amount.untimed else amount.seconds,
    }
    if not amount.unreported:
        row["prompt_tokens"] = amount.prompt_tokens
        row["completion_tokens"] = amount.completion_tokens
        row["money"] = amount.money if amount.requests else 0.0
    return row


def endpoint_record(endpoint: Endpoint) -> dict[str, str]:
    """Return what identifies an endpoint: no key, and no address if it has a name."""
    return {"identity": endpoint.identity, "model": endpoint.model}


def endpoint_of(record: Mapping[str, str]) -> Endpoint:
    """Return an endpoint known only by its identity and model; nothing is sent to it."""
    return Endpoint(record["model"], "http://known-by-name", record["model"], namespace=record["identity"])


def labels_record(needs: Needs, amount: Amount, queries: int, pairs: int, depth: int) -> dict[str, Any]:
    """Return the record of a labeler's labels."""
    record: dict[str, Any] = {name: getattr(needs, name) for name in _PLAIN}
    record["endpoints"] = [endpoint_record(endpoint) for endpoint in needs.endpoints]
    record["raters"] = [endpoint_record(endpoint) for endpoint in needs.raters]
    # The cost of people's judgments is unknown.
    record["costs"] = {} if needs.people else costs_of(amount)
    return record | {"queries": queries, "pairs": pairs, "depth": depth}


def needs_of(record: Record) -> Needs:
    """Return the needs of labels from their record."""
    return Needs(
        endpoints=tuple(map(endpoint_of, record["endpoints"])),
        raters=tuple(map(endpoint_of, record["raters"])),
        # A record of an earlier version may lack newer fields.
        **{name: record[name] for name in _PLAIN if name in record},
    )
