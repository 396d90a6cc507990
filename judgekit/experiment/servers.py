"""The endpoints that a command names: an address, a spelling, a name in an experiment file, or a TOML file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from judgekit.client.budget import Price
from judgekit.errors import ConfigError, UsageError, not_among
from judgekit.experiment.file import endpoint_of, read_servers
from judgekit.spec import parse
from judgekit.wire.types import Endpoint

_FILE: Final = re.compile(r"(.+\.toml)(?::(.+))?")
_NAME: Final = re.compile(r"[\w.-]+")
_FORM: Final = (
    "An endpoint is an address, or name(key=value, ...), e.g. local(base_url='http://localhost:8000/v1', model=m)."
)
_HERE: Final = "experiment.toml"
"""The experiment file in which a bare name is looked up."""


@dataclass(frozen=True)
class Servers:
    """Endpoints by name, and prices by the name of an endpoint or the id of a model."""

    endpoints: Mapping[str, Endpoint]
    prices: Mapping[str, Price]


def servers_of(given: str, changes: Mapping[str, Any]) -> Servers:
    """Return the endpoints that ``--endpoint`` names; changed settings apply to exactly one endpoint.

    Raises:
        ConfigError, UsageError: the file, the name or a setting does not exist.
    """
    if given.startswith("recorded:"):
        raise UsageError(
            f"--endpoint {given}: recorded replies belong to the bundled sample, `judgekit demo`; name the address of a"
            " server, e.g. http://localhost:8000/v1"
        )
    if re.match(r"https?://", given):
        return Servers({"default": endpoint_of("default", {"base_url": given, **changes})}, {})
    # Look up a bare name in the experiment of this folder, where most commands are run.
    in_file = _FILE.fullmatch(given) or (_FILE.fullmatch(f"{_HERE}:{given}") if _NAME.fullmatch(given) else None)
    if in_file is None:
        spec = parse(given, _FORM)
        return Servers({spec.name: endpoint_of(spec.name, {**spec.options, **changes})}, {})
    path, name = Path(in_file[1]), in_file[2]
    if name is not None and not path.is_file():
        raise UsageError(f"--endpoint {given}: there is no {path} here; give an address, a spelling or a TOML file")
    tables, prices = read_servers(path)
    if name is not None:
        if name not in tables:
            raise UsageError(f"--endpoint {given}: {not_among(f'endpoint of {path}', name, tables)}")
        tables = {name: tables[name]}
    if changes and len(tables) != 1:
        raise UsageError(
            f"--{next(iter(changes))} sets an option of one endpoint: name one of {path} with --endpoint {path}:NAME"
        )
    try:
        endpoints = {name: Endpoint(name=name, **{**table, **changes}) for name, table in tables.items()}
    except ConfigError as error:
        raise ConfigError(error.reason, path, error.key) from None
    return Servers(endpoints, prices)
