"""Which transport an endpoint's ``base_url`` asks for."""

from __future__ import annotations

from collections.abc import Callable

from judgekit.wire.types import MOCK_URL, RECORDED_URL, Endpoint, Transport

__all__ = ["open_transport"]


def open_transport(endpoint: Endpoint, note: Callable[[str], None] = lambda _: None) -> Transport:
    """Return the mock for ``mock:``, the sample's recorded replies for ``recorded:``, else HTTP.

    Args:
        endpoint: whom to ask.
        note: told the proxy, if there is one.

    Raises:
        ConfigError: see `api_key` and `proxy_for`.
    """
    if endpoint.base_url == MOCK_URL:
        from judgekit.client.mock import MockTransport

        return MockTransport()
    if endpoint.base_url == RECORDED_URL:
        from judgekit.client.recorded import RecordedTransport

        return RecordedTransport()
    from judgekit.client.http import HttpTransport

    return HttpTransport(endpoint, note)
