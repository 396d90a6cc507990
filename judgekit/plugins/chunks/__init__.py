"""Where documents stand on their pages, however they were cut."""

from judgekit.plugins.chunks import command, step  # noqa: F401 - they register
from judgekit.registry import register

register.names("judgekit.plugins.chunks.placing", "chunks")
register.names("judgekit.plugins.chunks.carrying", "carry")
