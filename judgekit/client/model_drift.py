"""Which model really answered, as far as replies say: the name a request asks for may come to mean another model.

A server that updates a model keeps its name, so that half of a labeling may come from one model and half from another,
without an error anywhere. A reply names the model that made it and often a fingerprint of the machine and the program.
Two names behind one endpoint and one requested name are a *mix*: the labels do not come from one model, and no decision
is given on them unless the user accepts it. A jury is not a mix: each of its endpoints is looked at alone. Several
fingerprints under one name are only told, since some servers have one for each replica. A server that names no model,
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
"""How many replies of each model and fingerprint came from each endpoint."""

_BETWEEN = "; "


def origin(outcomes: Sequence[Outcome]) -> Origin:
    """Return the model and the fingerprint behind a label or an answer; several are joined by semicolons."""
    if len(outcomes) == 1 and isinstance(outcomes[0], Reply):
        return outcomes[0].origin
    found = list(dict.fromkeys(outcome.origin for outcome in outcomes if isinstance(outcome, Reply)))
    models, marks = ([one[place] for one in found if one[place]] for place in (0, 1))
    return _BETWEEN.join(dict.fromkeys(models)), _BETWEEN.join(dict.fromkeys(marks))


def _models(counts: Mapping[Origin, int]) -> dict[str, int]:
    models: Counter[str] = Counter()
    for (model, _), replies in counts.items():
        if model:
            models[model] += replies
    return dict(sorted(models.items()))


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({replies:,})" for name, replies in counts.items())


def mixed(origins: Origins) -> list[str]:
    """Return a sentence for every endpoint whose replies come from more than one model."""
    found = {endpoint: _models(counts) for endpoint, counts in origins.items()}
    return [
        f"the replies of the endpoint {endpoint.name!r} come from {len(models)} models, although only"
        f" {endpoint.model!r} was requested: {_listed(models)}"
        for endpoint, models in found.items()
        if len(models) > 1
    ]


def changes(before: Collection[Origins], now: Origins) -> Iterator[str]:
    """Yield a sentence for every endpoint that answers as one model now and as another one in earlier stages.

    Another one tells of every model of an endpoint whose replies carry more than one fingerprint.
    """
    for endpoint, counts in now.items():
        models = list(_models(counts))
        earlier = {model for origins in before for model in _models(origins.get(endpoint, {}))}
        if len(models) == 1 and earlier - set(models):
            yield (
                f"the replies of the endpoint {endpoint.name!r} come from {models[0]}, those of earlier stages from"
                f" {', '.join(sorted(earlier - set(models)))}"
            )
        for model in sorted({model for model, _ in counts}):
            marks = {mark: n for (of, mark), n in sorted(counts.items()) if of == model and mark}
            if len(marks) > 1:
                yield (
                    f"the replies of {model or endpoint.model} at the endpoint {endpoint.name!r} carry {len(marks)}"
                    f" fingerprints: {_listed(marks)}. Replicas may have different fingerprints, or the"
                    " server may have changed. Give the endpoint another `revision` to ask it everything again"
                )


def mixed_answers(quality: pd.DataFrame) -> str:
    """Return a sentence if the answers of one model in a quality table come from more than one model, else ""."""
    if "reply_model" not in quality.columns:
        return ""
    named = quality[quality["reply_model"].fillna("") != ""]
    # A table may leave out what is there only once.
    named = named.drop_duplicates([key for key in ("run", "depth", "model", "query_id") if key in quality.columns])
    for model, rows in named.groupby("model") if "model" in quality.columns else [("", named)]:
        found = Counter(name for names in rows["reply_model"] for name in names.split(_BETWEEN))
        if len(found) > 1:
            of = f" of {model!r}" if model else ""
            return f"The answers{of} come from {len(found)} models: {_listed(dict(sorted(found.items())))}"
    return ""
