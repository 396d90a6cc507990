"""Prompts, and what a reply to one says."""

from typing import Final

ANSWER_PROMPT: Final = "answer-short"
"""The prompt by which questions are answered, unless another is named."""

ANSWER_METRICS: Final = ("em", "f1")
"""The metrics by which answers are rated, unless others are named."""
