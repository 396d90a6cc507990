"""``serve``: the store for other tools."""

from __future__ import annotations

import os
import sys
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgekit.cli.common import store_path
from judgekit.cli.options import PriceOptions, ServerOptions, StoreOptions
from judgekit.errors import UsageError

if TYPE_CHECKING:
    import socket

__all__ = ["serve"]


def serve(
    experiment: Annotated[
        Path | None, typer.Argument(help="Experiment file: its endpoints and prices are used.")
    ] = None,
    *,
    server: ServerOptions,
    host: Annotated[str, typer.Option(help="Address to serve at; one that others reach needs a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to serve at; 0 takes a free one.")] = 8787,
    token_env: Annotated[
        str | None,
        typer.Option(metavar="VAR", help="Name of the environment variable with the token that tools send as key."),
    ] = None,
    replies: StoreOptions,
    money: PriceOptions,
) -> None:
    """Serve the reply store to other tools, as an OpenAI-compatible server that passes on what the store lacks.

    Point any tool at http://127.0.0.1:8787/v1: what any tool asked before, or `judgekit run`, is not paid for again.
    """
    import asyncio
    from contextlib import nullcontext

    from judgekit.client.serve import owned
    from judgekit.client.serve import serve as serving
    from judgekit.client.session import Session

    asked = server.endpoints()
    if experiment is None:
        prices = money.prices()
    else:
        from judgekit.experiment.file import load

        if asked or money.price:
            raise UsageError("an experiment file names endpoints and prices: leave out --base-url, --model and --price")
        config = load(experiment)
        asked, prices = config.servers(), config.price_list()
    token = os.environ.get(token_env, "").strip() if token_env else None
    if token == "":
        raise UsageError(f"--token-env: the environment variable {token_env} is not set or empty")

    def tell(text: str) -> None:
        sys.stderr.write(f"{text}\n")

    folder, mode = store_path(replies.cache), replies.cache_mode
    with (
        _listening(host, port, token) as listening,
        Session(folder, mode, money.budget(), prices, lambda event: tell(f"note: {event.note}")) as session,
        owned(folder) if mode in ("on", "refresh") else nullcontext(),
    ):
        tell(f"store: {folder} ({mode})" if mode != "off" else "nothing is stored (--cache-mode off)")
        counts = asyncio.run(serving(session, asked.values(), listening, token, tell))
    for name, count in counts.items():
        told = f"{count['store']:,} from the store, {count['joined']:,} joined, {count['sent']:,} sent"
        tell(f"{name}: {told}, {count['failed']:,} failed")


def _listening(host: str, port: int, token: str | None) -> socket.socket:
    import socket

    try:
        listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as problem:
        said = os.strerror(problem.errno) if problem.errno and problem.errno > 0 else problem.strerror
        raise UsageError(f"cannot serve at --host {host} --port {port}: {said}; name another host or port") from None
    if token is None and not ip_address(listening.getsockname()[0]).is_loopback:
        listening.close()
        raise UsageError(
            f"--host {host} lets other machines in: give --token-env VAR, the name of an environment variable with a"
            " token that tools send as their key"
        )
    return listening
