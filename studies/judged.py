"""The comparison that public data lack: LLM labels of passages beside answers that are there, for three retrievers.

`make study-judged ENDPOINT=URL MODEL=NAME` counts requests and money, asks whether to go on, and labels. Stop it and
start it again as you like: replies that were paid for are kept. It leaves the labels, which hold no texts, and
``table.md``: the decision, and Table 1 of the eRAG paper.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from studies import contexts, page
from studies.source import SourceError

READER = "Llama-3-8B"
RUNS = {name: f"llama3/{name.lower()}_top5_esit.json" for name in ("ADORE", "BM25", "Contriever")}
RESULT = Path(__file__).with_name("judged.md")
"""What `make study` shows on the page: the ``table.md`` of a run over all questions, once somebody has put it here."""
PRICE = (0.15, 0.60)
"""Of a million prompt and reply tokens, if no other is given."""
DATA = """\
[data]
queries = "queries.jsonl"
docs = "docs.jsonl"
depth = 5

[runs]
ADORE = "ADORE.trec"
BM25 = "BM25.trec"
Contriever = "Contriever.trec"
"""
"""What `write_data` writes, as the sections of an experiment."""
EXPERIMENT = """\
title = "LLM labels on 2WikiMultihopQA, against answers of Llama-3-8B"

{data}
[endpoints.model]
base_url = {url}
model = {model}
params = {{ temperature = 0 }}
concurrency = {concurrency}
{key}
[prices.{model}]
prompt = {prompt}
completion = {completion}

[[labelers]]
name = "judge"
kind = "judge"

[[labelers]]
name = "graded"
kind = "judge"
prompt = "graded"

[[labelers]]
name = "eRAG"
kind = "utility"
prompt = "answer-short"
quality = "contains(norm=squad)"

[[labelers]]
name = "gold"
kind = "provenance"
qrels = "gold.qrels"

[answers]
import = "answers.jsonl"
answered_by = "Llama-3-8B"
depths = [5]
metrics = ["contains(norm=squad)", "em(norm=squad)", "f1(norm=squad)"]
outcome = "contains(norm=squad)"

[metrics]
measures = ["nDCG", "P", "R", "Success"]

[analysis]
primary = "nDCG@5"
by = "kind"
"""


def pairs() -> int:
    """Return how many pairs of a question and a passage would be labelled."""
    runs = [contexts.run(name) for name in RUNS.values()]
    return sum(len(set().union(*(run[query] for run in runs))) for query in contexts.ids())


def write_data(folder: Path) -> None:
    """Write questions, passages, the reader's answers, runs and gold passages."""
    folder.mkdir(parents=True, exist_ok=True)
    kinds = contexts.kinds()
    queries = [row | {"kind": kinds[row["query_id"]]} for row in contexts.queries().to_dict("records")]
    docs = [{"doc_id": name} | doc for name, doc in contexts.docs(RUNS.values()).items()]
    answers = contexts.answered({(READER, run): name for run, name in RUNS.items()}).drop(columns="model")
    rows_of_answers = answers.assign(depth=5).to_dict("records")
    tables: dict[str, Sequence[Mapping[Any, Any]]] = {"queries": queries, "docs": docs, "answers": rows_of_answers}
    for name, rows in tables.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    for run, name in RUNS.items():
        ranked = [(query, doc, score) for query, docs in contexts.run(name).items() for doc, score in docs.items()]
        (folder / f"{run}.trec").write_text(
            "".join(f"{query} Q0 {doc} 0 {score} {run}\n" for query, doc, score in ranked)
        )
    golds = [(query, doc) for query, docs in contexts.gold().items() for doc in docs]
    (folder / "gold.qrels").write_text("".join(f"{query} 0 {doc} 1\n" for query, doc in golds))


def write(folder: Path, endpoint: argparse.Namespace) -> Path:
    """Write what `judgekit run` needs, and return the experiment file."""
    write_data(folder)
    experiment = folder / "experiment.toml"
    experiment.write_text(
        EXPERIMENT.format(
            data=DATA,
            url=json.dumps(endpoint.url),
            model=json.dumps(endpoint.model),
            concurrency=endpoint.concurrency,
            key=f"api_key_env = {json.dumps(endpoint.key_env)}\n" if endpoint.key_env else "",
            prompt=endpoint.price[0],
            completion=endpoint.price[1],
        )
    )
    return experiment


def publish(results: Path, decision: str, model: str, folder: Path) -> Path:
    """Write the labels, the decision and Table 1 of a finished run into a folder, and return the table's file."""
    folder.mkdir(parents=True, exist_ok=True)
    for labels in sorted((results / "labels").glob("*.qrels*")):
        shutil.copy(labels, folder / labels.name)
    rows = pd.read_csv(results / "comparison.csv", keep_default_na=False)
    rows = rows[
        (rows["level"] == "query") & (rows["run"] != "all") & (rows["quality_metric"] == "contains(norm=squad)")
    ]
    cells = {
        (row["labeling"], row["measure"], row["run"], row["coefficient"]): row["value"]
        for row in rows.to_dict("records")
    }
    lines = [
        (labeling, measure, *(_cell(cells, labeling, measure, run) for run in RUNS))
        for labeling, measure in dict.fromkeys((key[0], key[1]) for key in cells)
    ]
    made = folder / "table.md"
    head = ["labels", "measure", *(f"{run}: tau-b, rho" for run in RUNS)]
    queries = int(rows["n"].max())
    made.write_text(
        f"Labels by {model}; answers of {READER}, *contains*, top 5; {queries:,} questions.\n\n"
        f"<!-- not run: make study-judged writes it -->\n```text\n{decision}\n```\n\n{page.table(head, lines)}\n"
    )
    return made


def _cell(cells: Mapping[tuple[str, str, str, str], object], labeling: str, measure: str, run: str) -> str:
    """Return tau-b and rho; a dash where one is undefined."""
    values = [str(cells.get((labeling, measure, run, name), "")) for name in ("tau_b", "rho")]
    return ", ".join(f"{float(value):.2f}" if value else "–" for value in values)


def place() -> str:
    """Return what was found, once somebody has put it here; nothing before."""
    return RESULT.read_text().strip() if RESULT.exists() else ""


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m studies.judged", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("url", help="base URL of an OpenAI-compatible endpoint, such as http://localhost:8000/v1")
    parser.add_argument("--model", required=True, help="the model that labels")
    parser.add_argument("--out", type=Path, default=Path("build/study-judged"), help="folder to write and go on in")
    parser.add_argument("--key-env", default="", help="environment variable with the API key")
    parser.add_argument("--concurrency", type=int, default=64, help="requests at the same time")
    parser.add_argument("--price", type=float, nargs=2, default=PRICE, metavar=("PROMPT", "REPLY"), help="per million")
    parser.add_argument("--limit", type=int, help="only so many questions, as a trial")
    parser.add_argument("--yes", action="store_true", help="do not ask before paying")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Count the cost, ask, label and publish; return the exit code."""
    given = _arguments(arguments)
    given.price = tuple(given.price)
    try:
        experiment = write(given.out / "experiment", given)
    except SourceError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    run = [sys.executable, "-m", "judgekit", "run", str(experiment), "--cache", str(given.out / "replies")]
    run += ["--limit", str(given.limit)] if given.limit else []
    counted = subprocess.run([*run, "--dry-run"], check=False)
    if counted.returncode:
        return counted.returncode
    if not given.yes and (not sys.stdin.isatty() or input("Go on? [y/N] ").strip().lower() != "y"):
        sys.stdout.write("Nothing was asked. Answer y, or give --yes (YES=1 with make).\n")
        return 0
    results = given.out / "results"
    made = subprocess.run([*run, "--out", str(results), "--json"], check=False, stdout=subprocess.PIPE, text=True)
    # 1: finished, but labels are missing. They are listed beside the labels, and the decision says so.
    if made.returncode not in (0, 1):
        return made.returncode
    table = publish(results, decision_of(made.stdout), given.model, given.out / "published")
    sys.stdout.write(f"{table}: the decision and Table 1. The labels are beside it.\n")
    if not given.limit:
        sys.stdout.write(f"Copy it to {RESULT} to show it on the page of the studies.\n")
    return made.returncode


def decision_of(printed: str) -> str:
    """Return the decision's text from what `judgekit run --json` printed."""
    return str(json.loads(printed)["decision"]["text"])


if __name__ == "__main__":
    sys.exit(main())
