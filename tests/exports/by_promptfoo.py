# /// script
# dependencies = ["promptfoo==0.121.20"]
# [tool]
# installer = "npm"
# durations = ["totalLatencyMs", "evaluationDurationMs", "latencyMs", "timestamp", "createdAt", "durationMs"]
# ///
"""promptfoo: ``promptfoo eval --output out.jsonl`` (and out.json) of two providers, one of which fails once."""

import json
import os
import subprocess
import sys
from pathlib import Path

OUT = Path(sys.argv[1])
os.environ.update(PROMPTFOO_DISABLE_TELEMETRY="1", PROMPTFOO_DISABLE_UPDATE="1", PROMPTFOO_CONFIG_DIR=os.getcwd())
os.environ.update(PROMPTFOO_DISABLE_SHARING="1", PROMPTFOO_SELF_HOSTED="1")

from halls import FAILS, QUESTIONS, RUNS  # noqa: E402

PROVIDER = """
const answers = ANSWERS;
const passages = PASSAGES;
export default class Application {
  constructor(options) { this.run = options.config.run; }
  id() { return `halls:${this.run}`; }
  async callApi(prompt) {
    const answer = answers[this.run][prompt];
    if (answer === null) return { error: "no connection" };
    return { output: answer, metadata: { context: passages[this.run][prompt] } };
  }
}
"""
answers: dict[str, dict[str, str | None]] = {}
for run in RUNS:
    answers[run] = {question.text: question.answer(run) for question in QUESTIONS}
answers["dense"][next(question.text for question in QUESTIONS if question.id == FAILS)] = None
passages = {run: {q.text: [found.text for found in q.found(run)] for q in QUESTIONS} for run in RUNS}
script = PROVIDER.replace("ANSWERS", json.dumps(answers)).replace("PASSAGES", json.dumps(passages))
Path("application.mjs").write_text(script)
tests = []
for question in QUESTIONS:
    variables = {"id": question.id, "question": question.text, "reference": question.reference}
    tests.append({"vars": variables, "assert": [{"type": "icontains", "value": question.reference}]})
config = {
    "description": "halls",
    "prompts": ["{{question}}"],
    "providers": [{"id": "file://application.mjs", "label": run, "config": {"run": run}} for run in RUNS],
    "tests": tests,
}
Path("promptfooconfig.json").write_text(json.dumps(config))
for ending in ("jsonl", "json"):
    command = ["promptfoo", "eval", "-c", "promptfooconfig.json", "--no-cache", "-j", "1", "--no-progress-bar"]
    done = subprocess.run([*command, "--output", f"out.{ending}"], check=False, capture_output=True, text=True)
    if not Path(f"out.{ending}").is_file():
        raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
    (OUT / f"out.{ending}").write_text(Path(f"out.{ending}").read_text())
