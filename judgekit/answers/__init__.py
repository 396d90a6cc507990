"""End-to-end answers and their quality."""

from judgekit.answers.answerer import Answerer, make_answerer
from judgekit.answers.imported import Imported, read_answers, read_ratings
from judgekit.answers.quality import Answered, AnswerMetric, Score, catalog, metric
from judgekit.answers.reading import Answer

__all__ = [
    "Answer",
    "AnswerMetric",
    "Answered",
    "Answerer",
    "Imported",
    "Score",
    "catalog",
    "make_answerer",
    "metric",
    "read_answers",
    "read_ratings",
]
