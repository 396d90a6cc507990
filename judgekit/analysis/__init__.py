"""Correlation of scores with quality, resampling, agreement and the verdict."""

from judgekit.analysis.coefficients import COEFFICIENTS, attainable_tau_b, coefficients
from judgekit.analysis.compare import Comparison, compare
from judgekit.analysis.levels import LEVELS
from judgekit.analysis.verdict import Primary, Verdict

__all__ = [
    "COEFFICIENTS",
    "LEVELS",
    "Comparison",
    "Primary",
    "Verdict",
    "attainable_tau_b",
    "coefficients",
    "compare",
]
