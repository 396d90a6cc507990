"""The shared metrics engine: measure grammar and vectorised evaluation."""

from judgekit.metrics.catalog import Definition, catalog
from judgekit.metrics.evaluation import evaluate
from judgekit.metrics.measure import Measure, parse_measure, parse_measures
from judgekit.metrics.results import Evaluation, Mean

__all__ = ["Definition", "Evaluation", "Mean", "Measure", "catalog", "evaluate", "parse_measure", "parse_measures"]
