"""The one place that checks "one label per asked pair"."""

from __future__ import annotations

from collections.abc import Sequence

from judgekit.data.documents import Unit
from judgekit.data.tables import Status
from judgekit.errors import UsageError
from judgekit.labelers.base import Label, Labeler
from judgekit.spec import user_code
from judgekit.wire.types import Outcome, about


def checked(labeler: Labeler, unit: Unit, replies: Sequence[Outcome]) -> list[Label]:
    """Call ``labeler.label`` and enforce the contract: exactly one label per doc of the unit, on its scale."""
    # A labeler that breaks the contract is a bug of that labeler, so the message names it.
    labels = _labelled(labeler, unit, replies)
    asked = [(unit.query.query_id, doc.doc_id) for doc in unit.docs]
    got = [(label.query_id, label.doc_id) for label in labels]
    if got != asked and sorted(got) != sorted(asked):
        raise UsageError(f"labeler {labeler.spec} was asked to label {asked}, but labelled {got}")
    scale = labeler.scale
    fine: set[float] = set()
    for label in labels:
        if (label.relevance is None) == (label.status is Status.OK):
            raise UsageError(
                f"labeler {labeler.spec}: {label} must have a relevance if its status is ok, and none otherwise"
            )
        # Most labels of a unit are alike.
        if label.relevance is not None and label.relevance not in fine:
            problem = scale.problem(label.relevance)
            if problem:
                raise UsageError(f"labeler {labeler.spec}: {label} is off the scale: {problem}")
            fine.add(label.relevance)
    return labels


def _labelled(labeler: Labeler, unit: Unit, replies: Sequence[Outcome]) -> list[Label]:
    """Call ``label``; an error of a user's own labeler names the pair and the line."""
    if type(labeler).__module__.startswith("judgekit."):
        return labeler.label(unit, replies)
    with user_code(lambda: f"{about(labeler, unit)}: label", type(labeler).label.__code__.co_filename):
        return labeler.label(unit, replies)
