"""Nuggets, the facts that a good answer states, and citations: labels and answer metrics for long answers.

Nuggets lie in a file that people can read and edit (`facts`). An LLM says which of them an answer or a passage states
(`support`); the metrics and the labeler are what is made of that.
"""

from judgekit.plugins.nuggets import command  # noqa: F401 - it registers
from judgekit.registry import register

register.spellings("judgekit.plugins.nuggets.labeler")
register.spellings("judgekit.plugins.nuggets.metrics")
