"""Prompts, and what a reply to one says."""

from typing import Final

ANSWER_PROMPT: Final = "answer-short"
"""The prompt by which questions are answered, unless another is named."""
