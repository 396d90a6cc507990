"""Tables, their validation, documents, the ordering of runs, readers and writers."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from judgekit.data.checks import check_runs
    from judgekit.data.documents import Doc, Docs, MemoryDocs, Query, Unit, render
    from judgekit.data.files import read_table, write_table
    from judgekit.data.labelings import Labeling, Scale
    from judgekit.data.ordering import Ties
    from judgekit.data.readers import read_docs, read_dpr, read_queries, write_docs, write_queries
    from judgekit.data.runs import Run
    from judgekit.data.tables import Status, Table
    from judgekit.data.trec import read_qrels, read_run, write_qrels, write_run

__all__ = [
    "Doc",
    "Docs",
    "Labeling",
    "MemoryDocs",
    "Query",
    "Run",
    "Scale",
    "Status",
    "Table",
    "Ties",
    "Unit",
    "check_runs",
    "read_docs",
    "read_dpr",
    "read_qrels",
    "read_queries",
    "read_run",
    "read_table",
    "render",
    "write_docs",
    "write_qrels",
    "write_queries",
    "write_run",
    "write_table",
]

_MODULES: Final = ("checks", "documents", "files", "labelings", "ordering", "readers", "runs", "tables", "trec")


def __getattr__(name: str) -> Any:
    """Import what is asked for only then: a module that needs a name does not pay for the readers."""
    if name in __all__:
        for module in map(import_module, (f"{__name__}.{m}" for m in _MODULES)):
            if name in module.__all__:
                return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
