"""Where documents stand on their pages, however they were cut."""

from judgekit.plugins.chunks import command  # noqa: F401 - it registers
from judgekit.registry import register

register.names("judgekit.plugins.chunks.placing", "chunks")
