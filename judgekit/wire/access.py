"""Access to an endpoint: its address, its proxy, and its key, which is never stored or shown."""

from __future__ import annotations

import ipaddress
import json
import os
import re
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import SplitResult, unquote_plus, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from judgekit.errors import ConfigError
from judgekit.wire.jsontext import parse_json

if TYPE_CHECKING:
    from judgekit.wire.types import Endpoint

RECORDED_URL: Final = "recorded:"
"""The base_url of the replies that a real model gave to the bundled sample's requests; no socket, no key."""

_KINDS: Final = "api|access|account|auth|bearer|hf|id|private|refresh|sas|secret|security|session|shared|subscription"
# Names of keys; not ``max_tokens`` or ``prompt_cache_key``, which are common parameters.
_KEY_NAME: Final = re.compile(
    rf"^(key|token)$|({_KINDS})[-_. ]?(key|token)$"
    r"|(^|[-_. ])(auth|authorization|bearer|credentials?|passw(or)?d|pwd|secret|sig|signature)$",
    re.IGNORECASE,
)

# Keys hold runs of letters and digits this long; names and versions do not.
_KEY_VALUE: Final = re.compile(r"[A-Za-z0-9]{20}")

_FROM_ENV: Final = "env:"
_METADATA: Final = frozenset({"metadata", "metadata.google.internal", "instance-data", "instance-data.ec2.internal"})
"""Names of the link-local addresses at which clouds give out credentials."""
_OUR_HEADERS: Final = frozenset({"accept", "connection", "content-length", "content-type", "host", "transfer-encoding"})
_INSTEAD: Final = "put the key in an environment variable and name that as api_key_env"


def address_problem(base_url: str) -> str | None:
    """Return why an address cannot be used, or must not be stored; possible keys are not shown."""
    parts = _split(base_url)
    if "@" in (base_url if parts is None else parts.netloc):
        return f"base_url holds a password, and base_url is stored and shown: {_INSTEAD}"
    query = re.split(r"[?#]", base_url, maxsplit=1)[1:]
    for field in re.split(r"[?#&;]", "".join(query)):
        name, _, value = unquote_plus(field).partition("=")
        if _KEY_NAME.search(name) or _KEY_VALUE.search(name) or _KEY_VALUE.search(value):
            return f"base_url holds what looks like a key behind its '?', and base_url is stored and shown: {_INSTEAD}"
    if parts is not None and _is_link_local(str(parts.hostname)):
        return f"base_url {base_url!r} is a link-local address, where clouds keep credentials: nothing is sent there"
    if parts is not None:
        return None
    return f"base_url {base_url!r} must start with http:// or https://, and usually ends in /v1"


def origin(base_url: str) -> str:
    """Return an address's scheme, host and port; "" for anything else."""
    parts = _split(base_url)
    if parts is None:
        return ""
    host = str(parts.hostname)
    if ":" in host:
        host = f"[{host}]"
    if parts.port is not None:
        host += f":{parts.port}"
    return f"{parts.scheme}://{host}"


def is_local(base_url: str) -> bool:
    """Return whether an address belongs to this machine."""
    return _reached_directly((urlsplit(base_url).hostname or "").rstrip("."), "")


def variables_of(api_key_env: object, headers: object) -> list[str]:
    """Return the names of the environment variables that a key and headers are read from."""
    names: list[str] = []
    if isinstance(api_key_env, str):
        names.append(api_key_env)
    if isinstance(headers, dict):
        for value in headers.values():
            if isinstance(value, str) and value.startswith(_FROM_ENV):
                names.append(value.removeprefix(_FROM_ENV))
    return names


def variable_problem(name: str) -> str | None:
    """Return why a text is not the name of a key's variable, without showing a possible key."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and not _KEY_VALUE.search(name):
        return None
    return "must be the NAME of an environment variable that holds the key; a key given here would be stored and shown"


def key_among(params: Any) -> str | None:
    """Return the name of a body parameter that is named like a key, at any depth, or None."""
    if isinstance(params, dict):
        for name, value in params.items():
            if isinstance(value, str) and _KEY_NAME.search(name):
                return str(name)
        params = list(params.values())
    if isinstance(params, list):
        return next(filter(None, map(key_among, params)), None)
    return None


def header_problem(name: str, value: str) -> str | None:
    """Return why a header must not have a value; possible keys are not shown."""
    if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) or name.lower() in _OUR_HEADERS:
        return "is not a header that can be set"
    if value.startswith(_FROM_ENV):
        return variable_problem(value.removeprefix(_FROM_ENV))
    if _KEY_NAME.search(name) or _KEY_VALUE.search(value):
        return 'holds what looks like a key, and settings are stored and shown: put it in a variable, "env:NAME"'
    if not (value.isascii() and value.isprintable()):
        return "holds characters that headers cannot have"
    return None


def url_below(base_url: str, path: str) -> str:
    """Return the address of an operation below a base URL, keeping its query string."""
    parts = urlsplit(base_url)
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") + path))


def proxy_for(base_url: str) -> str | None:
    """Return the environment's proxy for an address, including its password, or None."""
    parts = urlsplit(base_url)
    host = (parts.hostname or "").rstrip(".")
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(parts.netloc) or _reached_directly(host, proxies.get("no", "")):
        return None
    address = _split(proxy if "://" in proxy else f"http://{proxy}")
    if address is None:
        variable = f"{parts.scheme.upper()}_PROXY" if proxies.get(parts.scheme) else "ALL_PROXY"
        raise ConfigError(
            f"{variable} must name a proxy for {host} by an address like http://proxy:3128 (SOCKS and other kinds of"
            f" proxies are not supported); NO_PROXY={host} connects without one"
        )
    return urlunsplit(address)


def _split(url: str) -> SplitResult | None:
    """Return the parts of an address, or None if it is not one of HTTP."""
    with suppress(ValueError):
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return parts
    return None


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return a host's numeric address, also for 127.1 and 0x7f000001; None for a name."""
    try:
        address = ipaddress.ip_address(host if ":" in host else socket.inet_aton(host))
    except (OSError, ValueError):
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _is_link_local(host: str) -> bool:
    """Return whether a host is an address, or the name of one, at which clouds give out credentials."""
    address = _address(host.rstrip(".").partition("%")[0])
    if address is None:
        return host.rstrip(".").lower() in _METADATA
    return address.is_link_local


def _reached_directly(host: str, no_proxy: str) -> bool:
    """Return whether a host is this machine, or in a network of ``NO_PROXY`` such as ``10.0.0.0/8``."""
    address = _address(host)
    if address is None:
        return host == "localhost" or host.endswith(".localhost")
    for name in no_proxy.split(","):
        with suppress(ValueError):
            if address in ipaddress.ip_network(name.strip().strip("[]"), strict=False):
                return True
    return address.is_loopback or address.is_unspecified


def api_key(endpoint: Endpoint) -> str | None:
    """Return the endpoint's key from the environment, or None if it needs none."""
    own = getattr(endpoint.transport, "api_key", None)  # of a client of openai's
    if isinstance(own, str) and own:
        return own
    if endpoint.api_key_env is None or endpoint.base_url == RECORDED_URL:
        return None
    where = f"endpoints.{endpoint.name}.api_key_env"
    return _variable(endpoint.api_key_env, where, spaces=False)


def headers_of(endpoint: Endpoint) -> dict[str, str]:
    """Return the further headers of an endpoint's requests, by names in lower case."""
    headers: dict[str, str] = {}
    if endpoint.base_url == RECORDED_URL:
        return headers
    for name, value in endpoint.headers.items():
        if value.startswith(_FROM_ENV):
            value = _variable(value.removeprefix(_FROM_ENV), f"endpoints.{endpoint.name}.headers.{name}")
        headers[name.lower()] = value
    return headers


def _variable(name: str, where: str, spaces: bool = True) -> str:
    """Return the value of a variable; keys have no spaces."""
    value = os.environ.get(name, "").strip()
    if not value:
        raise ConfigError(f"the environment variable {name} is not set or empty", key=where)
    if not (value.isascii() and value.isprintable() and (spaces or " " not in value)):
        raise ConfigError(f"the environment variable {name} holds characters that no key has", key=where)
    return value


# A shorter key protects nothing ("EMPTY", "none", "sk-1234"), and occurs in texts by chance.
_LEAST: Final = 12

_CUT: Final = "***"


def _as_json_spells(key: str) -> str:
    """Return a pattern of all the ways in which JSON may write a key."""
    return "".join(rf"(?:{re.escape(c)}|\\{re.escape(c)}|(?i:\\u{ord(c):04x}))" for c in key)


class Secret:
    """Removes keys from a server's texts. Its `repr` shows none."""

    def __init__(self, *keys: str | None) -> None:
        """Guard ``keys``, except those that are None or too short to be secret."""
        self._keys = sorted({key for key in keys if key is not None and len(key) >= _LEAST}, key=len, reverse=True)
        self._bytes = [key.encode() for key in self._keys]
        self._escaped = re.compile("|".join(map(_as_json_spells, self._keys)).encode())

    @classmethod
    def of(cls, endpoint: Endpoint) -> Self:
        """Return the secrets of an endpoint: its key, and the headers that come from variables."""
        keys = [api_key(endpoint)]
        values = headers_of(endpoint)
        for name, value in endpoint.headers.items():
            if value.startswith(_FROM_ENV):
                secret = values.get(name.lower(), "")
                # The part after a scheme, as in "Bearer KEY", is also a secret.
                keys += [secret, secret.rpartition(" ")[2]]
        return cls(*keys)

    def __repr__(self) -> str:
        return "Secret()"

    def cut(self, text: str) -> str:
        """Return a text without the keys."""
        for key in self._keys:
            text = text.replace(key, _CUT)
        return text

    def cut_response(self, data: bytes) -> bytes:
        """Return a response body without the keys, in any JSON spelling; JSON stays JSON."""
        # Done before the body is read, so that live and stored replies are the same.
        plain = any(key in data for key in self._bytes)
        if not self._keys or not (plain or (b"\\" in data and self._escaped.search(data))):
            return data
        try:
            body = parse_json(data)
        except ValueError:
            return self._escaped.sub(_CUT.encode(), data)
        return json.dumps(self._without(body)).encode()

    def _without(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.cut(value)
        if isinstance(value, list):
            return [self._without(item) for item in value]
        if isinstance(value, dict):
            return {self.cut(key): self._without(item) for key, item in value.items()}
        return value
