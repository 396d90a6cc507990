"""judgekit: which way of labelling retrieval results predicts the quality of the answers?

The public API; everything is imported on first use, so that ``import judgekit`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from judgekit.analysis import Comparison, compare, model_matrix, plan_queries
    from judgekit.analysis.against import against
    from judgekit.analysis.agreement import agreement
    from judgekit.answers.quality import AnswerMetric
    from judgekit.api import agree, answer, label, score
    from judgekit.audit.flow import Audit, audit
    from judgekit.client.budget import Budget
    from judgekit.data.chunks import carry, chunks
    from judgekit.data.converting import convert
    from judgekit.data.documents import Doc, Docs, MemoryDocs, Query
    from judgekit.data.files import read_table, write_table
    from judgekit.data.labelings import Labeling, Scale
    from judgekit.data.readers import read_docs, read_dpr, read_queries
    from judgekit.data.retrievers import run_from
    from judgekit.data.runs import Run
    from judgekit.data.tables import Status
    from judgekit.data.traces import read_traces
    from judgekit.data.trec import read_qrels, read_run, write_qrels, write_run
    from judgekit.errors import JudgekitError
    from judgekit.experiment.run import plan, run
    from judgekit.gate.guard import Guarded, guard
    from judgekit.labelers.base import Labeler
    from judgekit.metrics import Measure, measure
    from judgekit.report.notebook import figures
    from judgekit.wire.types import Endpoint

__version__ = "0.2.0.dev0"

_HOMES = {
    "AnswerMetric": "answers.quality",
    "Audit": "audit.flow",
    "Budget": "client.budget",
    "Comparison": "analysis",
    "Doc": "data.documents",
    "Docs": "data.documents",
    "Endpoint": "wire.types",
    "Guarded": "gate.guard",
    "JudgekitError": "errors",
    "Labeler": "labelers.base",
    "Labeling": "data.labelings",
    "Measure": "metrics",
    "MemoryDocs": "data.documents",
    "Query": "data.documents",
    "Run": "data.runs",
    "Scale": "data.labelings",
    "Status": "data.tables",
    "against": "analysis.against",
    "agree": "api",
    "agreement": "analysis.agreement",
    "answer": "api",
    "audit": "audit.flow",
    "carry": "data.chunks",
    "chunks": "data.chunks",
    "compare": "analysis",
    "convert": "data.converting",
    "figures": "report.notebook",
    "guard": "gate.guard",
    "label": "api",
    "measure": "metrics",
    "model_matrix": "analysis",
    "plan": "experiment.run",
    "plan_queries": "analysis",
    "read_docs": "data.readers",
    "read_dpr": "data.readers",
    "read_qrels": "data.trec",
    "read_queries": "data.readers",
    "read_run": "data.trec",
    "read_table": "data.files",
    "read_traces": "data.traces",
    "run": "experiment.run",
    "run_from": "data.retrievers",
    "score": "api",
    "write_qrels": "data.trec",
    "write_run": "data.trec",
    "write_table": "data.files",
}

__all__ = [
    "AnswerMetric",
    "Audit",
    "Budget",
    "Comparison",
    "Doc",
    "Docs",
    "Endpoint",
    "Guarded",
    "JudgekitError",
    "Labeler",
    "Labeling",
    "Measure",
    "MemoryDocs",
    "Query",
    "Run",
    "Scale",
    "Status",
    "against",
    "agree",
    "agreement",
    "answer",
    "audit",
    "carry",
    "chunks",
    "compare",
    "convert",
    "figures",
    "guard",
    "label",
    "measure",
    "model_matrix",
    "plan",
    "plan_queries",
    "read_docs",
    "read_dpr",
    "read_qrels",
    "read_queries",
    "read_run",
    "read_table",
    "read_traces",
    "run",
    "run_from",
    "score",
    "write_qrels",
    "write_run",
    "write_table",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"judgekit.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
