"""What a labeling shares with the outcome and lacks, in words: for the terminal and the page."""

from __future__ import annotations

from judgekit.report.model import LabelingInfo

__all__ = ["missing", "shares"]


def shares(info: LabelingInfo) -> str:
    """Return what a labeling shares with the outcome, in words; "" where it shares nothing."""
    parts = [info.kinship]
    parts += [f"metric {info.outcome_metric}"] if info.outcome_metric else []
    parts += [f"prompt {info.outcome_prompt}"] if info.outcome_prompt else []
    return ", ".join(filter(None, parts))


def missing(info: LabelingInfo) -> int:
    """Return how many labels are missing, which those that are not applicable are not."""
    return sum(n for status, n in info.counts.items() if status not in ("ok", "not_applicable"))
