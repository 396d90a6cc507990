"""Correlation of scores with quality, resampling, agreement and the verdict."""

from judgekit.analysis.agreement import AGREEMENT, Agreement, agreement
from judgekit.analysis.coefficients import COEFFICIENTS, attainable_tau_b, coefficients
from judgekit.analysis.compare import Comparison, compare
from judgekit.analysis.construction import Answering, kinship, same_by_construction
from judgekit.analysis.flags import FLAGS
from judgekit.analysis.levels import LEVELS
from judgekit.analysis.models import ModelMatrix, model_matrix
from judgekit.analysis.planning import plan_queries
from judgekit.analysis.primary import CHOOSE_RUNS, FIND_QUESTIONS, GUARD, USES, Primary
from judgekit.analysis.querylog import QueryLogCheck, check_query_log
from judgekit.analysis.verdict import Verdict

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
    "agreement",
    "attainable_tau_b",
    "check_query_log",
    "coefficients",
    "compare",
    "kinship",
    "model_matrix",
    "plan_queries",
    "same_by_construction",
]
