"""Where requests go: what settings may hold, since they are stored and shown, and the proxy on the way."""

from __future__ import annotations

import ipaddress
import re
import socket
from typing import Any, Final
from urllib.parse import SplitResult, unquote_plus, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from judgekit.errors import ConfigError

__all__ = ["address_problem", "chat_url", "key_among", "proxy_for", "variable_problem", "without_password"]

_KINDS: Final = "api|access|account|auth|bearer|hf|id|private|refresh|sas|secret|security|session|shared|subscription"
_KEY_NAME: Final = re.compile(
    rf"^(key|token)$|({_KINDS})[-_. ]?(key|token)$"
    r"|(^|[-_. ])(auth|authorization|bearer|credentials?|passw(or)?d|pwd|secret|sig|signature)$",
    re.IGNORECASE,
)
"""What keys are called; not ``max_tokens`` or ``prompt_cache_key``."""

_KEY_VALUE: Final = re.compile(r"[A-Za-z0-9]{20}")
"""As long a run of letters and digits as keys have, and names and versions have not."""

_INSTEAD: Final = "put the key in an environment variable and name that as api_key_env"


def address_problem(base_url: str) -> str | None:
    """Return why no request could be sent to an address, or why it must not be kept; what may be a key is not shown."""
    try:
        parts = urlsplit(base_url)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        whole = False
    if "@" in (parts.netloc if whole else base_url):
        return f"base_url holds a password, and base_url is stored and shown: {_INSTEAD}"
    query = re.split(r"[?#]", base_url, maxsplit=1)[1:]
    for field in re.split(r"[?#&;]", "".join(query)):
        name, _, value = unquote_plus(field).partition("=")
        if _KEY_NAME.search(name) or _KEY_VALUE.search(name) or _KEY_VALUE.search(value):
            return f"base_url holds what looks like a key behind its '?', and base_url is stored and shown: {_INSTEAD}"
    if whole:
        return None
    return (
        f"base_url {base_url!r} must start with http:// or https://, and usually ends in /v1 (or be mock:, which is"
        " not an LLM)"
    )


def variable_problem(name: str) -> str | None:
    """Return why a text is not the name of a variable that holds a key, without showing what may be the key itself."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and not _KEY_VALUE.search(name):
        return None
    return "must be the NAME of an environment variable that holds the key; a key given here would be stored and shown"


def key_among(params: Any) -> str | None:
    """Return the name of a body parameter that is called as keys are, at any depth, or None."""
    if isinstance(params, list):
        return next(filter(None, map(key_among, params)), None)
    if not isinstance(params, dict):
        return None
    own = next((name for name, value in params.items() if isinstance(value, str) and _KEY_NAME.search(name)), None)
    return own or key_among(list(params.values()))


def chat_url(base_url: str, path: str = "/chat/completions") -> str:
    """Return the address of an operation below a base URL, keeping its query string."""
    parts = urlsplit(base_url)
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") + path))


def proxy_for(base_url: str) -> str | None:
    """Return the address of the proxy that the environment names for an address, its password included, or None.

    ``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY`` and ``NO_PROXY`` count in lower case or else in upper case, as do
    the settings of macOS and Windows. This machine itself is never reached through a proxy.

    Raises:
        ConfigError: it is not an HTTP proxy.
    """
    parts = urlsplit(base_url)
    host = (parts.hostname or "").rstrip(".")
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or _here(host) or proxy_bypass(parts.netloc) or _in_networks(host, proxies.get("no", "")):
        return None
    found = _split(proxy if "://" in proxy else f"http://{proxy}")
    if found is None or found.scheme not in ("http", "https"):
        variable = f"{parts.scheme.upper()}_PROXY" if proxies.get(parts.scheme) else "ALL_PROXY"
        raise ConfigError(
            f"the proxy that {variable} names for {host} must be an address like http://proxy:3128 (proxies of other"
            f" kinds, SOCKS among them, are not supported); NO_PROXY={host} goes without one"
        )
    return urlunsplit(found)


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        return parts if parts.hostname and parts.port != 0 else None
    except ValueError:
        return None


def without_password(url: str) -> str:
    """Return an address as it may be shown."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))  # 127.1 and the like
    except OSError:
        return None


def _here(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = _ip(host)
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or address
    return address is not None and (address.is_loopback or address.is_unspecified)


def _in_networks(host: str, no_proxy: str) -> bool:
    """Say whether ``NO_PROXY`` excepts an IP address, also by a network such as ``10.0.0.0/8``."""
    address = _ip(host)
    if address is None:
        return False
    for name in no_proxy.split(","):
        try:
            if address in ipaddress.ip_network(name.strip().strip("[]"), strict=False):
                return True
        except ValueError:
            continue
    return False
