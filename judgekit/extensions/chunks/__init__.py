"""What a run reports of documents that are different cuts of the same pages."""

from judgekit.extensions.chunks import step  # noqa: F401 - it registers
