"""Resources for labelers and answer metrics while they are built: endpoints, files, documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from judgekit.data.documents import Docs, Fields
from judgekit.data.sources import resolved
from judgekit.data.streams import note_read
from judgekit.errors import ConfigError, UsageError, not_among
from judgekit.wire.types import Endpoint


@dataclass(frozen=True)
class Context:
    """What a class may use while it is being built.

    Attributes:
        endpoints: by name.
        base: what files named in a spelling are relative to: the experiment file's folder, or the working directory.
        fields: how documents are rendered by default.
        docs: the collection, for looking up documents outside of the pool; None without one.
    """

    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    base: Path = Path()
    fields: Fields = "title+text"
    docs: Docs | None = None

    def endpoint(self, name: str | None, *, scores: bool = False) -> Endpoint:
        """Return the endpoint of that name, or the only LLM if ``name`` is None; the only reranker if it ``scores``."""
        if name is None:
            fit = [one for one in self.endpoints.values() if one.scores == scores and not one.application]
            # The caller refuses endpoints of another kind.
            fit = fit or list(self.endpoints.values())
            if len(fit) == 1:
                return fit[0]
            names = ", ".join(one.name for one in fit)
            several = f"several endpoints are defined: name one of them (endpoints: {names})"
            none = "no endpoint is defined: give jk.Endpoint(…), --endpoint, or a table [endpoints.NAME]"
            raise ConfigError(f"{'a reranker' if scores else 'an LLM'} is needed, but {several if fit else none}")
        if name not in self.endpoints:
            raise ConfigError(not_among("endpoint", name, self.endpoints))
        return self.endpoints[name]

    def path(self, text: str) -> Path:
        """Return a file's path; relative paths start at ``base``."""
        # A prompt or a file of labels is an input like any other, so the manifest lists it.
        path = resolved(text, self.base)
        note_read(path)
        return path


def context_of(endpoints: Endpoint | Iterable[Endpoint] | None, fields: Fields, docs: Docs | None = None) -> Context:
    """Return the resources for classes, from the arguments of an API call."""
    given = [endpoints] if isinstance(endpoints, Endpoint) else list(endpoints or ())
    odd = next((one for one in given if not isinstance(one, Endpoint)), None)
    if odd is not None:
        raise UsageError(f"endpoints must be a jk.Endpoint or a list of them; got {odd!r}")
    return Context({e.name: e for e in given}, Path(), fields, docs)
