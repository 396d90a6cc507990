"""The labelers, one file each, and how they are built from their spellings."""

from judgekit.labelers.base import Context, Label, Labeler, Needs, build, catalog, checked, kinds

__all__ = ["Context", "Label", "Labeler", "Needs", "build", "catalog", "checked", "kinds"]
