#!/bin/sh
# lm-eval 0.4.13 logs an API's reply without text, as a filter or a reasoning model sends it, as the answer "", and scores it 0.
# The run ends with status 0, and no column of the samples tells it from an answer: a model that refused looks wrong. judgekit
# takes "" for a missing answer (judgekit/answers/imported.py).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet lm_eval==0.4.13 datasets==5.2.0 tenacity==9.1.4
cd "$folder"
cat > halls.yaml <<'YAML'
task: halls
dataset_path: json
dataset_kwargs: {data_files: {test: halls.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "{{reference}}"
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
YAML
printf '{"question": "Who built it?", "reference": "Ann"}\n{"question": "When?", "reference": "Ann"}\n' > halls.jsonl
cat > run.py <<'PYTHON'
import json
import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from threading import Thread


class Server(BaseHTTPRequestHandler):
    """Answers one question; of the other it says, as OpenAI does, that its filter took the answer."""

    def log_message(self, *said):
        pass

    def do_POST(self):
        asked = self.rfile.read(int(self.headers["content-length"])).decode()
        filtered = "When" in asked
        message = {"role": "assistant", "content": None if filtered else "Ann"}
        choice = {"index": 0, "message": message, "finish_reason": "content_filter" if filtered else "stop"}
        body = json.dumps({"id": "x", "object": "chat.completion", "model": "m", "choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


print("lm-eval", version("lm_eval"))
server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}/v1/chat/completions"
offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": "cache", "OPENAI_API_KEY": "none"}
command = [str(Path(sys.executable).parent / "lm_eval"), "run", "--model", "local-chat-completions", "--model_args"]
command += [f"model=m,base_url={url}", "--include_path", ".", "--tasks", "halls", "--apply_chat_template"]
command += ["--log_samples", "--output_path", "out"]
done = subprocess.run(command, env={**os.environ, **offline}, capture_output=True, text=True)
(logged,) = Path("out").glob("**/samples_halls_*.jsonl")
samples = [json.loads(line) for line in logged.read_text().splitlines()]
seen = [(sample["filtered_resps"], sample["exact_match"]) for sample in samples]
print("expected: an answer and its score, and a failure without a score")
print("exit status:", done.returncode, "seen:", seen)
print("columns of the second:", [*samples[1]])
sys.exit(0 if (done.returncode, seen) == (0, [(["Ann"], 1.0), ([""], 0.0)]) else 1)
PYTHON
"$folder/venv/bin/python" run.py
