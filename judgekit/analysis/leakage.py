"""What a labeling shares with the outcome: which cells are the outcome by construction, who judges whom."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from judgekit.data.tables import UNDECLARED
from judgekit.wire.types import family_of

if TYPE_CHECKING:
    from judgekit.labelers.base import Needs
    from judgekit.wire.types import Endpoint


MARKS_ITSELF: Final = "is labelled by the answering model: with another one it may do worse"


@dataclass(frozen=True, slots=True)
class AnsweredBy:
    """How the answers of one model were obtained.

    Attributes:
        endpoint: where the answers came from; for imported answers only the model's name.
        prompt: the answer prompt.
    """

    endpoint: Endpoint | str
    prompt: str


def same_by_construction(
    needs: Mapping[str, Needs], answering: Mapping[str, AnsweredBy], metrics: Collection[str]
) -> set[tuple[str, str, str]]:
    """Return the (labeling, model, metric) whose labels are the outcome at depth 1."""
    same: set[tuple[str, str, str]] = set()
    for labeling, need in needs.items():
        metric = need.outcome_metric
        if metric is None or metric not in metrics:
            continue
        for model, how in answering.items():
            same_model = any(_same(endpoint, how.endpoint) for endpoint in need.endpoints)
            if same_model and need.outcome_prompt == how.prompt:
                same.add((labeling, model, metric))
    return same


def kinship(need: Needs, how: AnsweredBy) -> str:
    """Return ``same model`` or ``same family`` if an LLM behind a labeling is also behind the answers, else ""."""
    model = how.endpoint if isinstance(how.endpoint, str) else how.endpoint.model
    if any(_same(one, how.endpoint) or one.model == model != UNDECLARED for one in need.asked):
        return "same model"
    # A sibling of the answering model may share its preferences.
    family = family_of(model)
    return "same family" if family and any(family_of(endpoint.model) == family for endpoint in need.asked) else ""


def shared(need: Needs, how: AnsweredBy | None, metric: str) -> str:
    """Return what a labeling shares with the outcome, as the rest of a sentence about it; "" for nothing."""
    kin = kinship(need, how) if how is not None else ""
    if kin == "same model" and need.outcome_metric == metric:
        return MARKS_ITSELF
    # A shared model outweighs anything else that is shared.
    if kin == "same model":
        return "asks the answering model: with another one it may do worse"
    if kin == "same family":
        return "asks a model of the answering model's family: with another one it may do worse"
    parts: list[str] = []
    if how is not None and need.outcome_prompt == how.prompt:
        parts.append("its prompt")
    if need.outcome_metric == metric:
        parts.append("the metric")
    if need.references:
        parts.append("the references")
    return f"shares {' and '.join(parts)} with the answers" if parts else ""


def _same(one: Endpoint, other: Endpoint | str) -> bool:
    # Many local servers ignore the model's name, so neither an address nor a name alone identifies a model.
    return not isinstance(other, str) and (one.identity, one.model) == (other.identity, other.model)
