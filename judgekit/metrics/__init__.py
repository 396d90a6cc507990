"""The shared metrics engine: measures, each defined next to its formula, and vectorised evaluation."""

from judgekit.metrics import formulas  # noqa: F401 - it enters judgekit's measures into the catalogue
from judgekit.metrics.evaluation import evaluate, foreign, incomparable
from judgekit.metrics.evidence import of_evidence, suited
from judgekit.metrics.measures import DEFINITIONS, Definition, Measure, catalog, measure, parse_measures, read_measures
from judgekit.metrics.peers import PEERS, Peer, peer
from judgekit.metrics.results import Evaluation, Mean

__all__ = [
    "DEFINITIONS",
    "PEERS",
    "Definition",
    "Evaluation",
    "Mean",
    "Measure",
    "Peer",
    "catalog",
    "evaluate",
    "foreign",
    "incomparable",
    "measure",
    "of_evidence",
    "parse_measures",
    "peer",
    "read_measures",
    "suited",
]
