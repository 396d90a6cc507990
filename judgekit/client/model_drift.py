"""Which model really answered, according to its replies: a requested name may come to mean another model.

A server that updates a model keeps its name, so that half of a labeling may come from one model and half from another,
without an error anywhere. A reply names the model that made it and often a fingerprint of the machine and the program.
Two names behind one endpoint and one requested name are a *mix*: the labels do not come from one model, and no decision
is given on them unless the user accepts it. A jury is not a mix: each of its endpoints is looked at alone. Several
fingerprints under one name are not a mix either, since some servers have one per replica. A server that names no model,
or always the same one, can hide a change: that is what ``revision`` is for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from judgekit.wire.types import Endpoint, Origin, Outcome, Reply

if TYPE_CHECKING:
    import pandas as pd

Origins = Mapping[Endpoint, Counter[Origin]]
"""The number of replies of each model and fingerprint, by endpoint."""

_BETWEEN = "; "


def origin(outcomes: Sequence[Outcome]) -> Origin:
    """Return the model and the fingerprint behind a label or an answer; several are joined by semicolons."""
    if len(outcomes) == 1 and isinstance(outcomes[0], Reply):
        return outcomes[0].origin
    models: dict[str, None] = {}
    marks: dict[str, None] = {}
    for outcome in outcomes:
        if isinstance(outcome, Reply):
            model, mark = outcome.origin
            models[model] = marks[mark] = None
    return _BETWEEN.join(filter(None, models)), _BETWEEN.join(filter(None, marks))


def _models(counts: Mapping[Origin, int]) -> Counter[str]:
    """Return the number of replies by the model that they name."""
    models = Counter[str]()
    for (model, _), replies in counts.items():
        if model:
            models[model] += replies
    return models


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({replies:,})" for name, replies in sorted(counts.items()))


def mixed(origins: Origins) -> Iterator[str]:
    """Yield a sentence for every endpoint whose replies come from more than one model."""
    for endpoint, counts in origins.items():
        models = _models(counts)
        if len(models) > 1:
            yield (
                f"the replies of the endpoint {endpoint.name!r} come from {len(models)} models, although only"
                f" {endpoint.model!r} was requested: {_listed(models)}"
            )


def changes(before: Collection[Origins], now: Origins) -> Iterator[str]:
    """Yield a sentence for every endpoint that answered as another model in earlier stages."""
    for endpoint, counts in now.items():
        models = set(_models(counts))
        earlier: set[str] = set()
        for origins in before:
            earlier.update(_models(origins.get(endpoint, {})))
        if len(models) == 1 and earlier - models:
            yield (
                f"the replies of the endpoint {endpoint.name!r} come from {models.pop()}, those of earlier stages from"
                f" {', '.join(sorted(earlier - models))}"
            )


def mixed_answers(quality: pd.DataFrame) -> str:
    """Return a sentence if the answers of one model in a quality table come from more than one model, else ""."""
    if "reply_model" not in quality.columns:
        return ""
    named = quality[quality["reply_model"].fillna("") != ""]
    # A table may leave out columns that hold only one value.
    named = named.drop_duplicates(quality.columns.intersection(["run", "depth", "model", "query_id"]).tolist())
    for model, rows in named.groupby("model") if "model" in quality.columns else [("", named)]:
        replies = Counter(rows["reply_model"].str.split(_BETWEEN).explode())
        if len(replies) > 1:
            of = f" of {model!r}" if model else ""
            return f"The answers{of} come from {len(replies)} models: {_listed(replies)}"
    return ""
