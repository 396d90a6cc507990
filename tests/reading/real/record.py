"""Records what a real model replies to the shipped prompts over the bundled sample, with examples before the question.

python -m tests.reading.real.record http://127.0.0.1:8080/v1 MODEL OUT.jsonl --name NAME [--chat] [--each 100]

A base model continues a text; with ``--chat`` the examples are earlier turns. Replies that are cut off are left out.
"""

import argparse
import json
import random
import tomllib
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from judgekit.data.documents import Doc
from judgekit.reading.prompts import Prompt, load_prompt, neutral, passages
from tests.reading.written import SAMPLE

SHOTS = Path(__file__).with_name("shots.toml")
BREAK = "\n\n=====\n\n"
REPLY = "\n\nReply:\n"


def pairs(seed: int) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield a question of the sample and a passage without end: its own passage or a random one, half each."""
    docs = {doc["doc_id"]: doc for doc in map(json.loads, (SAMPLE / "docs.jsonl").read_text().splitlines())}
    queries = [json.loads(line) for line in (SAMPLE / "queries.jsonl").read_text().splitlines()]
    gold: dict[str, str] = {}
    for line in (SAMPLE / "provenance.qrels").read_text().splitlines():
        query_id, _, doc_id, relevance = line.split()
        if int(relevance) > 0:
            gold.setdefault(query_id, doc_id)
    rng = random.Random(seed)
    while True:
        query = rng.choice(queries)
        own = rng.random() < 0.5 and query["query_id"] in gold
        yield query, docs[gold[query["query_id"]] if own else rng.choice(list(docs))]


QUESTION = "<question>"


def asked(prompt: Prompt, question: str, title: str, text: str) -> tuple[str, str]:
    """Return what a prompt says before the question, and the rest of it."""
    filled = {"question": neutral(question), "passages": passages([Doc("d", text, title)])}
    whole = "\n\n".join(message["content"].strip() for message in prompt.messages(filled))
    told, found, rest = whole.partition(QUESTION)
    return told, found + rest


def bodies(form: dict[str, Any], sources: list[dict[str, str]], given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield a line of the file without its reply, with the request's body under ``body``.

    What the prompt says before the question is said once, then come the examples, then what is asked.
    """
    for name in form["prompts"]:
        prompt = load_prompt(name)
        examples = [
            (asked(prompt, source["question"], "", source["passage"])[1], said)
            for source, said in zip(sources, form["replies"], strict=True)
        ]
        random.Random(f"{given.seed} {name} {form['name']}").shuffle(examples)
        chosen = pairs(random.Random(f"{given.seed} {name} {form['name']} pairs").randrange(10**9))
        for number in range(given.each // len(form["prompts"])):
            query, doc = next(chosen)
            told, last = asked(prompt, query["text"], doc.get("title") or "", doc["text"])
            body: dict[str, Any] = {"model": given.model, "temperature": 0.8, "seed": given.seed + number}
            body["max_tokens"] = 80
            if given.chat:
                texts = [*(text for example in examples for text in example), last]
                roles = ["user", "assistant"] * len(examples) + ["user"]
                texts[0] = told + texts[0]
                body["messages"] = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)]
            else:
                shown = [question + REPLY + said for question, said in examples]
                body["prompt"] = told + BREAK.join([*shown, last + REPLY.rstrip()])
                body["stop"] = ["====="]
            about = {"prompt": name, "query_id": query["query_id"], "doc_id": doc["doc_id"], "form": form["name"]}
            yield {"model": given.name, **about, "body": body}


def reply(line: dict[str, Any], url: str) -> dict[str, Any] | None:
    """Return the line with what the model replied; None for a reply that was cut off."""
    body = line.pop("body")
    route = "chat/completions" if "messages" in body else "completions"
    request = urllib.request.Request(f"{url}/{route}", json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        choice = json.loads(answer.read())["choices"][0]
    text = choice["message"]["content"] if "message" in choice else choice["text"]
    return None if choice["finish_reason"] != "stop" else {**line, "reply": text.strip()}


def main() -> None:
    """Ask and write, a line for each reply."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("model")
    parser.add_argument("out", type=Path)
    parser.add_argument("--name", required=True, help="what the lines call the model")
    parser.add_argument("--chat", action="store_true")
    parser.add_argument("--each", type=int, default=100, help="replies of each form")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--forms", nargs="*", help="those of shots.toml to ask for, in this order; all, if left out")
    parser.add_argument("--concurrency", type=int, default=4)
    given = parser.parse_args()
    told = tomllib.loads(SHOTS.read_text())
    with given.out.open("a") as out, ThreadPoolExecutor(given.concurrency) as pool:
        forms = {form["name"]: form for form in told["form"]}
        for form in map(forms.__getitem__, given.forms or forms):
            for line in pool.map(lambda line: reply(line, given.url), bodies(form, told["source"], given)):
                if line is not None:
                    out.write(json.dumps(line, ensure_ascii=False) + "\n")
                    out.flush()


if __name__ == "__main__":
    main()
