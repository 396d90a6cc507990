"""Exported traces of an application as queries, docs, runs, answers and ratings."""

from judgekit.plugins.traces import command  # noqa: F401 - it registers
from judgekit.registry import register

register.names("judgekit.plugins.traces.reading", "read_traces")
