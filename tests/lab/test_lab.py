"""Whatever the bytes that a command reads, it ends in time, fits into memory, and loses nothing in silence."""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pytest

from tests.mock import URL, Handler, serve
from tests.small import edited, make_experiment

ROOT = Path(__file__).resolve().parent.parent.parent
KEPT = Path(__file__).with_name("kept.txt")
CODES = {0, 1, 2, 3, 130}
MIB = 512
FEW = {"store": 8, "reply": 8, "sheet": 20, "experiment": 30}
PAGE = 8192
ODD = [
    *(b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"9" * 5000, b"[" * 5000, b'{"a":' * 3000, b"\x1b[2J", "\u202e".encode()),
    *(b"-1", b"1e999", b"NaN", b'"', b"'", b"\\", b"\r", b"\n", b",", b";", b"=1+1", b"\xef\xbb\xbf", b"null", b"[]"),
]
RUN = ["run", "experiment.toml", "--out", "results", "--cache", "store"]


def mutated(rng: random.Random, data: bytes) -> bytes:
    """Return bytes with a few places changed."""
    new = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(len(new) + 1)
        end = min(len(new), at + rng.choice([1, 2, 8, 100, 5000]))
        match rng.randrange(7):
            case 0:
                new[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                new[at:end] = rng.randbytes(end - at)
            case 2:
                del new[at:end]
            case 3:
                new[at:at] = new[at:end]
            case 4:
                new[at:at] = rng.choice(ODD)
            case 5:
                del new[at:]
            case 6:
                other = rng.randrange(len(new) + 1)
                new[at:at] = new[other : other + end - at]
    return bytes(new)


def damaged(rng: random.Random, data: bytes) -> bytes:
    """Return the file of a store with blocks overwritten, exchanged, or its end cut off."""
    new = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5])):
        one, other = (rng.randrange(len(new) // PAGE) * PAGE for _ in range(2))
        match rng.randrange(5):
            case 0:
                new[one : one + PAGE] = rng.randbytes(PAGE)
            case 1:
                new[one : one + PAGE] = bytes(PAGE)
            case 2:
                at, length = rng.randrange(len(new)), rng.choice([1, 4, 50])
                new[at : at + length] = rng.randbytes(length)
            case 3:
                at, length = one + rng.randrange(100), rng.choice([1, 2, 4])
                new[at : at + length] = rng.randbytes(length)
            case 4 if rng.random() < 0.5:
                del new[max(PAGE, one + rng.randrange(PAGE)) :]
            case _:
                new[one : one + PAGE] = new[other : other + PAGE]
        if len(new) < 2 * PAGE:
            break
    return bytes(new)


class Answers(Handler):
    """Answers as the mock does, but once with the bytes that it is given, and each time on a connection of its own."""

    odd: ClassVar[bytes | None] = None

    def reply(self, said: Mapping[str, Any]) -> None:
        odd, Answers.odd = Answers.odd, None
        self.wfile.write(whole(json.dumps(said).encode()) if odd is None else odd)
        self.close_connection = True


def whole(body: bytes) -> bytes:
    """Return a whole HTTP response."""
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n"
    return head.encode() + b"retry-after: 1\r\n\r\n" + body


class Lab:
    """Materials, a server, and the process that runs command lines."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        url = serve(Answers)
        command = [sys.executable, "-m", "tests.lab.bench"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_PROXY": "*", "JUDGEKIT_CACHE": str(folder / "cache")}
        self.bench = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.base = folder / "base"
        self.base.mkdir()
        make_experiment(self.base)
        edited(self.base / "experiment.toml", f'"{URL}"', f'"{url}"\nmax_retries = 1\ntimeout_s = 2')
        made = ["annotate", "sample", "results", "--n", "6", "--prompt", "binary", "--assessors", "ann"]
        for argv in (RUN, [*made, "-o", "sheet.jsonl"]):
            code, said = self.run(self.base, argv)
            assert code == 0, said
        sheet = pd.read_csv(self.base / "sheet.csv", dtype=str, keep_default_na=False)
        sheet.assign(rating=[str(n % 2) for n in range(len(sheet))]).to_csv(self.base / "sheet.csv", index=False)

    def run(self, folder: Path, argv: list[str]) -> tuple[int | None, str]:
        """Run a command line; return its code and all that was said in this folder."""
        assert self.bench.stdin is not None
        assert self.bench.stdout is not None
        self.bench.stdin.write(json.dumps({"argv": argv, "cwd": str(folder)}) + "\n")
        self.bench.stdin.flush()
        ended = json.loads(self.bench.stdout.readline())
        said = (folder / "said").read_text(errors="replace") if (folder / "said").exists() else ""
        assert ended["code"] in CODES, (argv, ended, said[-3000:])
        assert "Traceback" not in said, (argv, said[-3000:])
        assert ended["mib"] <= MIB, (argv, ended)
        return ended["code"], said

    def close(self) -> None:
        for stream in (self.bench.stdin, self.bench.stdout):
            if stream is not None:
                stream.close()
        self.bench.wait()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The laboratory of these tests."""
    made = Lab(tmp_path_factory.mktemp("lab"))
    yield made
    made.close()


def case(lab: Lab, kind: str, seed: int) -> None:
    """Try one case."""
    rng = random.Random(f"{kind} {seed}")
    folder = lab.folder / "case"
    shutil.rmtree(folder, ignore_errors=True)
    left_out = ("said", "results", *(() if kind == "experiment" else ("store",)))
    shutil.copytree(lab.base, folder, ignore=shutil.ignore_patterns(*left_out))
    if kind == "store":
        stored(lab, rng, folder)
    elif kind == "reply":
        replied(lab, rng, folder)
    elif kind == "sheet":
        name = rng.choice(["sheet.csv", "sheet.csv", "sheet.jsonl"])
        (folder / name).write_bytes(mutated(rng, (folder / name).read_bytes()))
        code, said = lab.run(folder, ["annotate", "read", "sheet.jsonl", "sheet.csv", "-o", "people.qrels"])
        assert (code == 0) <= (folder / "people.qrels").exists(), said
    else:
        name = rng.choice(["experiment.toml", "experiment.toml", "queries.jsonl", "docs.jsonl", "good.trec"])
        (folder / name).write_bytes(mutated(rng, (folder / name).read_bytes()))
        lab.run(folder, [*RUN, "--dry-run"])


def stored(lab: Lab, rng: random.Random, folder: Path) -> None:
    """Damage a store; whatever is asked for again is told."""
    shutil.copytree(lab.base / "store", folder / "store")
    file = folder / "store" / "cache.db"
    file.write_bytes(damaged(rng, file.read_bytes()))
    for argv in rng.sample([["stats"], ["verify"], ["verify", "--repair"], ["export", "all.jsonl"]], rng.randrange(3)):
        lab.run(folder, ["cache", *argv, "--cache", "store"])
    code, said = lab.run(folder, RUN)
    again = sum(int(count.replace(",", "")) for count in re.findall(r"([\d,]+) sent", said))
    assert code != 0 or not again or "damaged" in said, said


def replied(lab: Lab, rng: random.Random, folder: Path) -> None:
    """Answer once with odd bytes; every label and answer is there, or is told to be missing."""
    shutil.rmtree(folder / "store", ignore_errors=True)
    text = rng.choice(["Yes", "No", "1412", "The bridge was built in 1412."])
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    reply = json.dumps({"model": "mock", "choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 2}})
    if rng.random() < 0.5:
        Answers.odd = whole(mutated(rng, reply.encode()))
    else:
        Answers.odd = mutated(rng, whole(reply.encode()))
    code, said = lab.run(folder, RUN)
    if code in (0, 1):
        tables = [*(folder / "results/labels").glob("*.parquet"), *(folder / "results/answers").glob("*.parquet")]
        lost = sum(
            int((~pd.read_parquet(t)["status"].isin(["ok", "abstained", "not_applicable"])).sum()) for t in tables
        )
        assert not lost or "missing" in said, said


def kept(kind: str) -> list[int]:
    lines = (line.split() for line in KEPT.read_text().splitlines() if line and not line.startswith("#"))
    return [int(seed) for name, seed in lines if name == kind]


@pytest.mark.more
@pytest.mark.parametrize("kind", FEW)
def test_no_bytes_make_a_command_hang_fall_or_lose_in_silence(lab: Lab, kind: str) -> None:
    for seed in [*kept(kind), *range(FEW[kind])]:
        case(lab, kind, seed)


@pytest.mark.many
@pytest.mark.parametrize("kind", FEW)
def test_no_bytes_do_however_long_one_tries(lab: Lab, kind: str) -> None:
    failed, first = {}, time.time_ns()
    seed, end = first, time.monotonic() + float(os.environ.get("JUDGEKIT_LAB_S", "60"))
    while time.monotonic() < end:
        seed += 1
        try:
            case(lab, kind, seed)
        except AssertionError as problem:
            failed[f"{kind} {seed}"] = str(problem)[-1500:]
    print(f"{kind}: {seed - first:,} cases, {len(failed):,} failed")
    assert not failed, f"put these into {KEPT.name}: {failed}"
