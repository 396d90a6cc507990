"""Which of two small models is the study's reader: F1 of their answers to the same questions from the same passages.

``python -m studies.readers --url URL`` asks Gemma 3 270M, a base model, which llama-server serves as in
examples/kilt/README.md, and writes its F1 beside that of the finished run of `studies.small_model` into
``small/readers.csv``. No question and no passage is in it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from studies import judged, small_model
from studies.source import SourceError

RUN = "BM25"
DEPTH = 5
ASKED = 50
ENDPOINT = """\
[endpoints.gemma]
base_url = {url}
namespace = "gemma-3-270m-q4_k_m on llama-server b10434"
model = {model}
api = "completions"
params = {{ temperature = 0 }}
concurrency = 4
timeout_s = 900
"""
PROMPT = small_model.PUBLISHED / "few-shot.toml"


def answer(out: Path, url: str) -> pd.DataFrame:
    """Return the quality table of Gemma's answers to the first questions."""
    data = out / "experiment"
    judged.write_data(data)
    asked = (data / "queries.jsonl").read_text(encoding="utf-8").splitlines()[:ASKED]
    (data / "asked.jsonl").write_text("".join(f"{line}\n" for line in asked), encoding="utf-8")
    endpoint = data / "gemma.toml"
    endpoint.write_text(ENDPOINT.format(url=json.dumps(url), model=json.dumps(small_model.BASE)), encoding="utf-8")
    command = [sys.executable, "-m", "judgekit", "answer", "--queries", str(data / "asked.jsonl")]
    command += ["--docs", str(data / "docs.jsonl"), "--run", str(data / f"{RUN}.trec"), "--depth", str(DEPTH)]
    command += ["--prompt", str(PROMPT), "--metric", "f1", "--metric", "contains", "--endpoint", str(endpoint)]
    command += ["--cache", str(out / "replies"), "--out", str(out / "gemma.csv")]
    if subprocess.run(command, check=False).returncode not in (0, 1):
        raise SourceError(f"{small_model.BASE} did not answer: see above")
    return pd.read_csv(out / "gemma.csv")


def beside(gemma: pd.DataFrame, small: pd.DataFrame) -> pd.DataFrame:
    """Return F1 of both models by question; a question that only one of them answered is left out."""
    columns = {}
    for model, table in ((small_model.BASE, gemma), (small_model.MODEL, small)):
        chosen = table[(table["run"] == RUN) & (table["depth"] == DEPTH) & (table["metric"] == "f1")]
        columns[model] = chosen.set_index("query_id")["value"]
    return pd.DataFrame(columns).dropna().rename_axis("query_id").round(6)


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask, and write both models' F1."""
    parser = argparse.ArgumentParser(prog="python -m studies.readers", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--url", required=True, help="a server of Gemma 3 270M with the completions API")
    parser.add_argument("--out", type=Path, default=Path("build/study-small"), help="folder of the small model's run")
    parser.add_argument("--found", type=Path, default=small_model.READERS, help="table to write")
    given = parser.parse_args(arguments)
    small = pd.read_parquet(
        small_model.results(given.out, "small", small_model.PARTS[0]) / "answers" / "answer-short.parquet"
    )
    beside(answer(given.out, given.url), small).to_csv(given.found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
