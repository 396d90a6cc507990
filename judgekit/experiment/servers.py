"""The endpoints that a command names: an address, or those of a TOML file, which may be an experiment file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from judgekit.client.budget import Price
from judgekit.errors import ConfigError, UsageError, not_among
from judgekit.experiment.file import read_servers
from judgekit.wire.types import Endpoint

_FILE: Final = re.compile(r"(.+\.toml)(?::(.+))?")


@dataclass(frozen=True)
class Servers:
    """Endpoints by name, and prices by the name of an endpoint or the id of a model."""

    endpoints: Mapping[str, Endpoint]
    prices: Mapping[str, Price]


def servers_of(given: str, changes: Mapping[str, Any]) -> Servers:
    """Return the endpoints that ``--endpoint`` names, the one that it names with other values of some settings.

    Raises:
        ConfigError, UsageError: there is no such file or name, or a setting is not one.
    """
    if re.match(r"https?://", given):
        return Servers({"default": Endpoint(name="default", base_url=given, **changes)}, {})
    file = _FILE.fullmatch(given)
    if file is None:
        raise UsageError(f"--endpoint {given}: give an address, a TOML file with endpoints, or experiment.toml:NAME")
    path, name = Path(file[1]), file[2]
    tables, prices = read_servers(path)
    if name is not None:
        if name not in tables:
            raise UsageError(f"--endpoint {given}: {not_among(f'endpoint of {path}', name, tables)}")
        tables = {name: tables[name]}
    if changes and len(tables) != 1:
        raise UsageError(f"--{next(iter(changes))} is of one endpoint: name one of {path} with --endpoint {path}:NAME")
    try:
        endpoints = {name: Endpoint(name=name, **{**table, **changes}) for name, table in tables.items()}
    except ConfigError as error:
        raise ConfigError(error.reason, path, error.key) from None
    return Servers(endpoints, prices)
