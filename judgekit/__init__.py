"""judgekit: which way of labelling retrieval results predicts the quality of the answers?

The public API; everything is imported on first use, so that ``import judgekit`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from judgekit.analysis.baseline_test import against as against
    from judgekit.analysis.comparison import Comparison as Comparison, compare as compare, decide as decide
    from judgekit.analysis.decision import Decision as Decision
    from judgekit.answers.quality import AnswerMetric as AnswerMetric
    from judgekit.api import agree as agree, answer as answer, label as label, score as score
    from judgekit.client.asking import Asking as Asking
    from judgekit.client.budget import Price as Price
    from judgekit.data.documents import Doc as Doc, Docs as Docs, MemoryDocs as MemoryDocs, Query as Query
    from judgekit.data.files import read_table as read_table, write_table as write_table
    from judgekit.data.labelings import Labeling as Labeling, Scale as Scale
    from judgekit.data.readers import read_docs as read_docs, read_queries as read_queries
    from judgekit.data.runs import Run as Run
    from judgekit.data.tables import Status as Status
    from judgekit.data.traces import read_traces as read_traces
    from judgekit.data.trec import (
        convert as convert,
        read_qrels as read_qrels,
        read_run as read_run,
        write_qrels as write_qrels,
        write_run as write_run,
    )
    from judgekit.errors import JudgekitError as JudgekitError
    from judgekit.experiment.build import build as build
    from judgekit.experiment.choose import choose as choose
    from judgekit.experiment.plan import plan as plan
    from judgekit.experiment.run import run as run
    from judgekit.experiment.step import Step as Step
    from judgekit.jobs.audit.flow import Audit as Audit, audit as audit
    from judgekit.jobs.carrying import carry as carry
    from judgekit.jobs.chunks import chunks as chunks
    from judgekit.jobs.guard.gate import Guarded as Guarded, guard as guard
    from judgekit.jobs.guard.passing import Gate as Gate
    from judgekit.jobs.judge_test import judge_test as judge_test
    from judgekit.labelers.base import Labeler as Labeler
    from judgekit.metrics import Measure as Measure, measure as measure
    from judgekit.registry import register as register
    from judgekit.report.notebook import figures as figures
    from judgekit.rules import DeclaredOutcome as DeclaredOutcome, Rules as Rules
    from judgekit.wire.types import Endpoint as Endpoint

__version__ = "0.3.0"

_HOMES = {
    name: home
    for home, names in {
        "analysis.comparison": "Comparison compare decide",
        "analysis.decision": "Decision",
        "rules": "Rules DeclaredOutcome",
        "analysis.baseline_test": "against",
        "answers.quality": "AnswerMetric",
        "api": "agree answer label score",
        "client.asking": "Asking",
        "client.budget": "Price",
        "data.documents": "Doc Docs MemoryDocs Query",
        "data.files": "read_table write_table",
        "data.labelings": "Labeling Scale",
        "data.readers": "read_docs read_queries",
        "data.runs": "Run",
        "data.tables": "Status",
        "data.trec": "convert read_qrels read_run write_qrels write_run",
        "data.traces": "read_traces",
        "errors": "JudgekitError",
        "experiment.build": "build",
        "experiment.choose": "choose",
        "experiment.plan": "plan",
        "experiment.run": "run",
        "experiment.step": "Step",
        "jobs.audit.flow": "Audit audit",
        "jobs.carrying": "carry",
        "jobs.chunks": "chunks",
        "jobs.guard.gate": "Guarded guard",
        "jobs.guard.passing": "Gate",
        "jobs.judge_test": "judge_test",
        "labelers.base": "Labeler",
        "metrics": "Measure measure",
        "registry": "register",
        "report.notebook": "figures",
        "wire.types": "Endpoint",
    }.items()
    for name in names.split()
}
"""Where each public name lives; those of plug-ins are in the register."""


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        # Kept after the first use; otherwise a loop would repeat the look-up.
        return globals().setdefault(name, getattr(import_module(f"judgekit.{_HOMES[name]}"), name))
    # Tools such as IPython ask for names with an underscore, which must not load all plug-ins.
    if name == "__all__" or (not name.startswith("_") and find_spec(f"judgekit.{name}") is None):
        # Not for the name of a module that is being imported.
        homes: dict[str, str] = import_module("judgekit.registry").register.load().homes
        if name == "__all__":
            return sorted({*_HOMES, *homes})
        if name in homes:
            return getattr(import_module(homes[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__getattr__("__all__"), "__version__"]
