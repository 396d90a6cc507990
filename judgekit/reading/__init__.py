"""Prompts, and reading the replies to them."""

from typing import Final

ANSWER_PROMPT: Final = "answer-short"
"""The default prompt for answers."""

ANSWER_METRICS: Final = ("em", "f1")
"""The default metrics for answers."""
