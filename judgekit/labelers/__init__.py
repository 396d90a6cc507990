"""The labelers, one file each, and how they are built from their spellings."""

from judgekit.labelers import containment, human, judge, needed, provenance, rerank, utility  # noqa: F401 - each enters the list
