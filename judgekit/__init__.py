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
    name: home
    for home, names in {
        "analysis": "Comparison compare model_matrix plan_queries",
        "analysis.against": "against",
        "analysis.agreement": "agreement",
        "answers.quality": "AnswerMetric",
        "api": "agree answer label score",
        "audit.flow": "Audit audit",
        "client.budget": "Budget",
        "data.chunks": "carry chunks",
        "data.converting": "convert",
        "data.documents": "Doc Docs MemoryDocs Query",
        "data.files": "read_table write_table",
        "data.labelings": "Labeling Scale",
        "data.readers": "read_docs read_dpr read_queries",
        "data.retrievers": "run_from",
        "data.runs": "Run",
        "data.tables": "Status",
        "data.traces": "read_traces",
        "data.trec": "read_qrels read_run write_qrels write_run",
        "errors": "JudgekitError",
        "experiment.run": "plan run",
        "gate.guard": "Guarded guard",
        "labelers.base": "Labeler",
        "metrics": "Measure measure",
        "report.notebook": "figures",
        "wire.types": "Endpoint",
    }.items()
    for name in names.split()
}
"""Where each public name lives."""

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
