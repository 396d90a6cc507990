"""End-to-end answers and their quality."""

from judgekit.answers import metrics  # noqa: F401 - they enter the list
