"""What labelers and metrics may ask for while they are built: endpoints by name, files, prompts, documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from judgekit.data.documents import Docs, Fields
from judgekit.data.sources import resolved
from judgekit.data.streams import note_read
from judgekit.errors import ConfigError, UsageError, not_among
from judgekit.reading.prompts import list_prompts
from judgekit.wire.types import Endpoint

if TYPE_CHECKING:
    pass

__all__ = ["Resources", "resources_of"]


@dataclass(frozen=True)
class Resources:
    """What labelers may ask for while they are built: endpoints by name, files, prompts, the rendering of documents.

    Raises:
        ConfigError: a prompt of the user's folder makes no sense, or there is none.
    """

    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    base: Path = Path()
    fields: Fields = "title+text"
    docs: Docs | None = None
    prompts: Path | None = None

    def __post_init__(self) -> None:
        if self.prompts is not None:
            list_prompts(self.prompts)

    def endpoint(self, name: str | None) -> Endpoint:
        """Return the endpoint of that name, or the only one if ``name`` is None."""
        have = ", ".join(self.endpoints) or "none"
        if name is None:
            if len(self.endpoints) == 1:
                return next(iter(self.endpoints.values()))
            if not self.endpoints:
                raise ConfigError(
                    "an LLM is needed, but no endpoint is defined: give its base_url and model (--base-url, --model)"
                )
            raise ConfigError(
                f"an LLM is needed, but several endpoints are defined: name one of them (endpoints: {have})"
            )
        if name not in self.endpoints:
            raise ConfigError(not_among("endpoint", name, self.endpoints))
        return self.endpoints[name]

    def path(self, text: str) -> Path:
        """Return a file's path, relative ones being relative to ``base``."""
        path = resolved(text, self.base)
        note_read(path)
        return path


def resources_of(
    endpoints: Endpoint | Iterable[Endpoint] | None, fields: Fields, docs: Docs | None = None
) -> Resources:
    """Return what labelers may ask for, from what a caller of the API gives."""
    given = [endpoints] if isinstance(endpoints, Endpoint) else list(endpoints or ())
    odd = next((one for one in given if not isinstance(one, Endpoint)), None)
    if odd is not None:
        raise UsageError(f"endpoints must be a jk.Endpoint or a list of them; got {odd!r}")
    return Resources({e.name: e for e in given}, Path(), fields, docs)
