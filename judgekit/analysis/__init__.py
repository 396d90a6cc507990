"""Correlation of scores with quality, resampling, agreement and the verdict."""

from judgekit.analysis.agreement import AGREEMENT, Agreement, agreement
from judgekit.analysis.coefficients import COEFFICIENTS, attainable_tau_b, coefficients
from judgekit.analysis.compare import Comparison, compare
from judgekit.analysis.construction import Answering, kinship, same_by_construction
from judgekit.analysis.flags import FLAGS
from judgekit.analysis.levels import LEVELS
from judgekit.analysis.planning import plan_queries
from judgekit.analysis.primary import CHOOSE_RUNS, FIND_QUESTIONS, USES, Primary
from judgekit.analysis.querylog import QueryLogCheck, check_query_log
from judgekit.analysis.sweeps import ModelMatrix, by_depth, by_prompt, cost_table, model_matrix, stack_datasets
from judgekit.analysis.verdict import Verdict

__all__ = [
    "AGREEMENT",
    "CHOOSE_RUNS",
    "COEFFICIENTS",
    "FIND_QUESTIONS",
    "FLAGS",
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
    "by_depth",
    "by_prompt",
    "check_query_log",
    "coefficients",
    "compare",
    "cost_table",
    "kinship",
    "model_matrix",
    "plan_queries",
    "same_by_construction",
    "stack_datasets",
]
