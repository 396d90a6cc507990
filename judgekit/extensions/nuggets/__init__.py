"""Nuggets, the facts that a good answer states, and citations: labels and answer metrics for long answers.

Nuggets lie in a file that people can read and edit (`judgekit.answers.nuggets`). An LLM says which of them an answer or
a passage states (`support`); the metrics and the labeler are what is made of that.
"""

from judgekit import register

register.spellings("judgekit.extensions.nuggets.labeler")
register.spellings("judgekit.extensions.nuggets.metrics")
