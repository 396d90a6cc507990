"""What labelers and answer metrics may ask for while they are built: endpoints, files, documents."""

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
    """What a class may ask for while it is being built.

    Attributes:
        endpoints: by name.
        base: what files named in a spelling are relative to: the experiment file's folder, or the working directory.
        fields: how documents are rendered unless a spelling says otherwise.
        docs: the collection, for what has to look up documents outside of the pool; None without one.
    """

    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    base: Path = Path()
    fields: Fields = "title+text"
    docs: Docs | None = None

    def endpoint(self, name: str | None) -> Endpoint:
        """Return the endpoint of that name, or the only one if ``name`` is None."""
        if name is None:
            if len(self.endpoints) == 1:
                return next(iter(self.endpoints.values()))
            several = f"several endpoints are defined: name one of them (endpoints: {', '.join(self.endpoints)})"
            none = "no endpoint is defined: give jk.Endpoint(…), --endpoint, or a table [endpoints.NAME]"
            raise ConfigError(f"an LLM is needed, but {several if self.endpoints else none}")
        if name not in self.endpoints:
            raise ConfigError(not_among("endpoint", name, self.endpoints))
        return self.endpoints[name]

    def path(self, text: str) -> Path:
        """Return a file's path, relative ones being relative to ``base``."""
        # A prompt or a file of labels is an input like any other, and the manifest lists it.
        path = resolved(text, self.base)
        note_read(path)
        return path


def context_of(endpoints: Endpoint | Iterable[Endpoint] | None, fields: Fields, docs: Docs | None = None) -> Context:
    """Return what classes may ask for, of what a caller of the API gives."""
    given = [endpoints] if isinstance(endpoints, Endpoint) else list(endpoints or ())
    odd = next((one for one in given if not isinstance(one, Endpoint)), None)
    if odd is not None:
        raise UsageError(f"endpoints must be a jk.Endpoint or a list of them; got {odd!r}")
    return Context({e.name: e for e in given}, Path(), fields, docs)
