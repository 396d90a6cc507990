"""Correlation of scores with quality, resampling, agreement, claims and the decision."""

from judgekit.analysis.background import Background
from judgekit.analysis.claims import Claim
from judgekit.analysis.comparison import Comparison, compare, decide
from judgekit.analysis.decision import Decision
from judgekit.analysis.leakage import AnsweredBy, kinship, same_by_construction
from judgekit.analysis.levels import LEVELS
from judgekit.analysis.money import Money, Pool
from judgekit.analysis.primary import Primary
from judgekit.rules import Rules

__all__ = [
    "LEVELS",
    "AnsweredBy",
    "Background",
    "Claim",
    "Comparison",
    "Decision",
    "Money",
    "Pool",
    "Primary",
    "Rules",
    "compare",
    "decide",
    "kinship",
    "same_by_construction",
]
