"""Other tools' conventions beyond measures: ties, the queries of a mean, and queries that are documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from judgekit.data.runs import Ties
from judgekit.errors import UsageError, not_among
from judgekit.metrics.evaluation import Over


@dataclass(frozen=True)
class Peer:
    """How a tool scores runs.

    Attributes:
        ties: its order of documents with equal scores.
        over: the queries of its means.
        drop_self: whether it leaves out documents that are the query itself.
    """

    ties: Ties
    over: Over
    drop_self: bool = False


PEERS: Final = {
    "beir": Peer(Ties.DOC_DESC_32, "run", drop_self=True),
    "gdeval": Peer(Ties.DOC_DESC, "relevant"),
    "mteb": Peer(Ties.DOC_DESC_32, "run"),
    "pytrec_eval": Peer(Ties.DOC_DESC_32, "run"),
}
"""The tools for `judgekit score --like`; measures keep their spelling."""


def peer(name: str) -> Peer:
    """Return how a tool scores runs.

    Raises:
        UsageError: there is no such tool.
    """
    if name not in PEERS:
        raise UsageError(not_among("tool to score like", name, PEERS))
    return PEERS[name]
