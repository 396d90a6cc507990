"""Correlation of scores with quality, resampling, agreement and the verdict."""

from judgekit.analysis.comparison import Comparison, compare, plan_queries
from judgekit.analysis.leakage import Answering, kinship, same_by_construction
from judgekit.analysis.levels import LEVELS
from judgekit.analysis.models import ModelMatrix, model_matrix
from judgekit.analysis.primary import GUARD, Primary
from judgekit.analysis.querylog import QueryLogCheck, check_query_log
from judgekit.analysis.verdict import Verdict

__all__ = [
    "GUARD",
    "LEVELS",
    "Answering",
    "Comparison",
    "ModelMatrix",
    "Primary",
    "QueryLogCheck",
    "Verdict",
    "check_query_log",
    "compare",
    "kinship",
    "model_matrix",
    "plan_queries",
    "same_by_construction",
]
