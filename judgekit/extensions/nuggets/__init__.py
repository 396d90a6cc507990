"""Nuggets, the facts that a good answer states, and citations: labels and answer metrics for long answers.

Nuggets are in a file that people can read and edit (`judgekit.answers.nuggets`). An LLM tells which of them an answer
or a passage states (`support`), for the metrics and the labeler.
"""

from judgekit import register

register.spellings("judgekit.extensions.nuggets.labeler")
register.spellings("judgekit.extensions.nuggets.metrics")
