"""A run's report on documents that are different chunks of the same pages."""

from judgekit.extensions.chunks import step  # noqa: F401 - it registers
