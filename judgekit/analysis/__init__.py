"""Correlation of scores with quality, resampling, agreement and the verdict."""

from judgekit.analysis.agreement import AGREEMENT, Agreement, agreement
from judgekit.analysis.coefficients import COEFFICIENTS, attainable_tau_b, coefficients
from judgekit.analysis.compare import Comparison, compare
from judgekit.analysis.construction import Answering, kinship, same_by_construction
from judgekit.analysis.flags import FLAGS
from judgekit.analysis.levels import LEVELS
from judgekit.analysis.planning import plan_queries
from judgekit.analysis.primary import Primary
from judgekit.analysis.querylog import QueryLogCheck, check_query_log
from judgekit.analysis.verdict import Verdict

__all__ = [
    "AGREEMENT",
    "COEFFICIENTS",
    "FLAGS",
    "LEVELS",
    "Agreement",
    "Answering",
    "Comparison",
    "Primary",
    "QueryLogCheck",
    "Verdict",
    "agreement",
    "attainable_tau_b",
    "check_query_log",
    "coefficients",
    "compare",
    "kinship",
    "plan_queries",
    "same_by_construction",
]
