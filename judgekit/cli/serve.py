"""``serve``: the store for other tools."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgekit.cli.common import (
    ApiKeyEnv,
    BaseUrl,
    Cache,
    CacheMode,
    Concurrency,
    Model,
    Transport,
    endpoints,
    store_path,
)

if TYPE_CHECKING:
    from judgekit.client.budget import Prices

__all__ = ["serve"]


def serve(
    experiment: Annotated[
        Path | None, typer.Argument(help="Experiment file: its endpoints and prices are used.")
    ] = None,
    base_url: BaseUrl = None,
    model: Model = None,
    api_key_env: ApiKeyEnv = None,
    concurrency: Concurrency = 16,
    transport: Transport = "http",
    host: Annotated[str, typer.Option(help="Address to serve at; one that others reach needs a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to serve at; 0 takes a free one.")] = 8787,
    token_env: Annotated[
        str | None,
        typer.Option(metavar="VAR", help="Name of the environment variable with the token that tools send as key."),
    ] = None,
    cache: Cache = None,
    cache_mode: CacheMode = "on",
    max_requests: Annotated[int | None, typer.Option(min=0, help="Send no more requests than these.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=0, help="Use no more tokens than these.")] = None,
    max_cost: Annotated[float | None, typer.Option(min=0, help="Spend no more than this (needs prices).")] = None,
) -> None:
    """Serve the reply store to other tools, as an OpenAI-compatible server that passes on what the store lacks.

    Point any tool at http://127.0.0.1:8787/v1: what any tool asked before, or `judgekit run`, is not paid for again.
    """
    import asyncio
    from contextlib import nullcontext

    from judgekit.client.budget import Budget
    from judgekit.client.serve import owned
    from judgekit.client.serve import serve as serving
    from judgekit.client.session import Session
    from judgekit.errors import UsageError
    from judgekit.wire.access import on_this_machine

    prices: Prices = {}
    asked = endpoints(base_url, model, api_key_env, concurrency, transport)
    if experiment is not None:
        from judgekit.experiment.file import load

        if asked:
            raise UsageError("an experiment file names the endpoints: leave out --base-url and --model, or the file")
        config = load(experiment)
        asked, prices = config.servers(), config.price_list()
    token = os.environ.get(token_env, "").strip() if token_env else None
    if token == "":
        raise UsageError(f"--token-env: the environment variable {token_env} is not set or empty")
    if token is None and not (on_this_machine(host) and host not in ("0.0.0.0", "::")):
        raise UsageError(
            f"--host {host} lets other machines in: give --token-env VAR, the name of an environment variable with a"
            " token that tools send as their key"
        )

    def note(text: str) -> None:
        sys.stderr.write(f"note: {text}\n")

    folder = store_path(cache)
    budget = Budget(max_requests, max_tokens, max_cost)
    with (
        _listening(host, port) as listening,
        Session(folder, cache_mode, budget, prices, lambda event: note(event.note) if event.note else None) as session,
        owned(folder) if cache_mode in ("on", "refresh") else nullcontext(),
    ):
        where = f"[{host}]" if ":" in host else host
        models = [f"  {one.model} ({name}) of {one.address}" for name, one in asked.items() if not one.application]
        kept = "nothing is stored" if cache_mode == "off" else f"store: {folder} ({cache_mode})"
        lines = [f"serving http://{where}:{listening.getsockname()[1]}/v1", *models, f"  {kept}; Ctrl-C stops"]
        sys.stderr.write("\n".join(lines) + "\n")
        counts = asyncio.run(serving(session, asked.values(), listening, token, note))
    for name, count in counts.items():
        told = f"{count['store']:,} from the store, {count['joined']:,} joined, {count['sent']:,} sent"
        sys.stderr.write(f"{name}: {told}, {count['failed']:,} failed\n")


def _listening(host: str, port: int) -> socket.socket:
    from judgekit.errors import UsageError

    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as problem:
        reason = f"cannot serve at {host}, port {port}: {os.strerror(problem.errno or 0)}"
        raise UsageError(f"{reason}; name another port with --port, or address with --host") from None
