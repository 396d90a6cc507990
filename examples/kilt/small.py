"""Makes data in KILT's shape from judgekit's bundled sample, and `nq.toml` for them: the whole recipe on two cores.

    python small.py small --reader http://127.0.0.1:8080/v1 SmolLM2-135M --larger http://127.0.0.1:8081/v1 gemma-3-270m

Each document of the sample becomes a page of the knowledge source, and each relevant document provenance. The sample's
own runs take the place of BERGEN's. Where no larger reader is named, Figure 2 has one model.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from passages import main as cut

import judgekit.sample

SAMPLE = Path(judgekit.sample.__file__).parent
RUNS = {"BM25": "bm25", "TF-IDF": "tfidf", "Fourgrams": "fourgrams"}
DEPTHS = (1, 3, 5)


def rows(name: str) -> list[dict[str, str]]:
    """Return the records of a file of the sample."""
    return [json.loads(line) for line in (SAMPLE / name).read_text(encoding="utf-8").splitlines()]


def pages() -> Iterator[dict[str, object]]:
    """Yield the pages of the knowledge source."""
    for doc in rows("docs.jsonl"):
        yield {
            "wikipedia_id": doc["doc_id"],
            "wikipedia_title": doc["title"],
            "text": [f"{doc['title']}\n", f"{doc['text']}\n"],
        }


def questions(most: int) -> Iterator[dict[str, object]]:
    """Yield the first questions that have answers and relevant documents, as KILT's files hold them."""
    titles = {doc["doc_id"]: doc["title"] for doc in rows("docs.jsonl")}
    relevant: dict[str, list[str]] = {}
    for line in (SAMPLE / "provenance.qrels").read_text(encoding="utf-8").splitlines():
        query, _, doc, label = line.split()
        if int(label) > 0:
            relevant.setdefault(query, []).append(doc)
    having = [query for query in rows("queries.jsonl") if query.get("answers") and query["query_id"] in relevant]
    for query in having[:most]:
        provenance = [{"wikipedia_id": doc, "title": titles[doc]} for doc in relevant[query["query_id"]]]
        output = [{"answer": answer} for answer in query["answers"]]
        yield {"id": query["query_id"], "input": query["text"], "output": [*output, {"provenance": provenance}]}


def run(name: str, asked: set[str], passages_of: dict[str, list[str]]) -> Iterator[str]:
    """Yield the lines of a run of the sample, over passages instead of documents."""
    for line in (SAMPLE / "runs" / f"{name}.trec").read_text(encoding="utf-8").splitlines():
        query, _, doc, rank, score, _ = line.split()
        if query in asked:
            for passage in passages_of[doc]:
                yield f"{query} Q0 {passage} {rank} {score} {name}"


def experiment(reader: tuple[str, str], larger: tuple[str, str] | None) -> str:
    """Return `nq.toml` for these data: its runs, depths and servers are others, the rest is as it stands."""
    text = Path(__file__).with_name("nq.toml").read_text(encoding="utf-8")
    listed = "".join(f'{name} = "runs/{file}.trec"\n' for name, file in RUNS.items())
    text = re.sub(r"(?s)(\[runs\]\n).*?\n\n", lambda found: f"{found[1]}{listed}\n", text)
    text = text.replace("depth = 50", f"depth = {DEPTHS[-1]}").replace("nDCG@50", f"nDCG@{DEPTHS[-1]}")
    text = re.sub(r"depths = \[[^]]*\]", f"depths = {list(DEPTHS)}", text)
    text = re.sub(r'base_url = ".*"\nmodel = ".*"', f'base_url = "{reader[0]}"\nmodel = "{reader[1]}"', text)
    # Small models answer in sentences, which match no answer exactly.
    text = text.replace("em(norm=squad)", "contains(norm=squad)").replace("   # KILT's exact match", "")
    # Small models repeat themselves without end, and what is cut off is asked again with eight times the room.
    text = text.replace("temperature = 0", "temperature = 0, max_tokens = 32").replace("= 256", "= 4")
    if larger is not None:
        declared = f'[endpoints.larger]\nbase_url = "{larger[0]}"\nmodel = "{larger[1]}"\napi = "completions"\n'
        declared += "params = { temperature = 0, max_tokens = 32 }\nconcurrency = 4\n\n"
        labeler = '[[labelers]]\nname = "erag-larger"\nkind = "utility"\nquality = "contains(norm=squad)"\n'
        labeler += 'endpoint = "larger"\n\n'
        text = text.replace("[[labelers]]", f"{declared}[[labelers]]", 1)
        text = text.replace('[answers]\nendpoint = "reader"', f'{labeler}[answers]\nendpoint = ["reader", "larger"]')
    return text


def main(arguments: Sequence[str] | None = None) -> None:
    """Write everything that `judgekit run` needs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--reader", nargs=2, required=True, metavar=("URL", "MODEL"), help="answers and judges")
    parser.add_argument("--larger", nargs=2, metavar=("URL", "MODEL"), help="a second reader, for Figure 2")
    parser.add_argument("--questions", type=int, default=12)
    given = parser.parse_args(arguments)
    (given.folder / "runs").mkdir(parents=True, exist_ok=True)
    asked = list(questions(given.questions))
    write(given.folder / "kilt_knowledgesource.json", map(json.dumps, pages()))
    write(given.folder / "nq-dev-kilt.jsonl", map(json.dumps, asked))
    passages_of: dict[str, list[str]] = {}
    cut(str(given.folder / "kilt_knowledgesource.json"), str(given.folder / "passages.jsonl"))
    for line in (given.folder / "passages.jsonl").read_text(encoding="utf-8").splitlines():
        passage = json.loads(line)
        passages_of.setdefault(passage["page_id"], []).append(passage["doc_id"])
    ids = {str(query["id"]) for query in asked}
    for file in RUNS.values():
        write(given.folder / "runs" / f"{file}.trec", run(file, ids, passages_of))
    (given.folder / "nq.toml").write_text(experiment(tuple(given.reader), given.larger and tuple(given.larger)))


def write(path: Path, lines: Iterable[str]) -> None:
    """Write lines into a file."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
