"""End-to-end answers and their quality."""

from judgekit.answers.answerer import Answerer, make_answerer
from judgekit.answers.imported import read_answers, read_ratings
from judgekit.answers.quality import Answered, AnswerMetric, Score, catalog, metric
from judgekit.answers.reading import Answer

__all__ = [
    "Answer",
    "AnswerMetric",
    "Answered",
    "Answerer",
    "Score",
    "catalog",
    "make_answerer",
    "metric",
    "read_answers",
    "read_ratings",
]
