"""Correlation of scores with quality, resampling, agreement and the verdict; each part is imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from judgekit.analysis.agreement import AGREEMENT, Agreement
    from judgekit.analysis.coefficients import COEFFICIENTS, attainable_tau_b
    from judgekit.analysis.comparison import Comparison, compare, plan_queries
    from judgekit.analysis.flags import FLAGS
    from judgekit.analysis.leakage import Answering, kinship, same_by_construction
    from judgekit.analysis.levels import LEVELS
    from judgekit.analysis.models import ModelMatrix, model_matrix
    from judgekit.analysis.primary import CHOOSE_RUNS, FIND_QUESTIONS, GUARD, USES, Primary
    from judgekit.analysis.querylog import QueryLogCheck, check_query_log
    from judgekit.analysis.verdict import Verdict

_HOMES = {
    "agreement": ("AGREEMENT", "Agreement"),
    "coefficients": ("COEFFICIENTS", "attainable_tau_b"),
    "comparison": ("Comparison", "compare", "plan_queries"),
    "leakage": ("Answering", "kinship", "same_by_construction"),
    "flags": ("FLAGS",),
    "levels": ("LEVELS",),
    "models": ("ModelMatrix", "model_matrix"),
    "primary": ("CHOOSE_RUNS", "FIND_QUESTIONS", "GUARD", "USES", "Primary"),
    "querylog": ("QueryLogCheck", "check_query_log"),
    "verdict": ("Verdict",),
}

__all__ = [
    "AGREEMENT",
    "CHOOSE_RUNS",
    "COEFFICIENTS",
    "FIND_QUESTIONS",
    "FLAGS",
    "GUARD",
    "LEVELS",
    "USES",
    "Agreement",
    "Answering",
    "Comparison",
    "ModelMatrix",
    "Primary",
    "QueryLogCheck",
    "Verdict",
    "attainable_tau_b",
    "check_query_log",
    "compare",
    "kinship",
    "model_matrix",
    "plan_queries",
    "same_by_construction",
]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
