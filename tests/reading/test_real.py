"""What real models replied is read as a person reads it; `real/README.md` tells the rule."""

import gzip
import json
from collections import Counter

from judgekit.reading.prompts import load_prompt
from tests.reading.test_sentence import filled, read
from tests.reading.test_verdict import SHIPPED
from tests.reading.written import HERE, SAMPLE


def test_replies_of_real_models_are_read_as_a_person_reads_them() -> None:
    docs = {doc["doc_id"]: doc for doc in map(json.loads, (SAMPLE / "docs.jsonl").read_text().splitlines())}
    lines = (SAMPLE / "queries.jsonl").read_text().splitlines()
    questions = {query["query_id"]: query["text"] for query in map(json.loads, lines)}
    prompts = {name: load_prompt(name) for name in SHIPPED}
    stated, said = Counter[tuple[str, bool]](), Counter[tuple[str, bool]]()
    with gzip.open(HERE / "real" / "replies.jsonl.gz", "rt", encoding="utf-8") as replies:
        for reply in map(json.loads, replies):
            doc, prompt = docs[reply["doc_id"]], prompts[reply["prompt"]]
            values = filled(questions[reply["query_id"]], doc.get("title", ""), doc["text"])
            verdict = read(prompt, reply["reply"], values)
            assert verdict is None or verdict.value == reply["label"], reply
            if reply["label"] is not None:
                high = reply["label"] >= (2 if prompt.output.type == "grade" else 1)
                stated[reply["model"], high] += 1
                said[reply["model"], high] += verdict is not None
    assert {model for model, _ in stated} == {"SmolLM2-135M-Instruct", "MiniLM-L6 reader", "gemma-3-270m"}
    both = [sum(stated[key] for key in stated if key[1] is high) for high in (False, True)]
    assert sum(both) >= 2900
    assert both[1] >= sum(both) / 4, "a quarter is plainly Yes or a high grade"
    shares = [sum(said[key] for key in said if key[1] is high) / both[high] for high in (False, True)]
    assert min(shares) >= 0.95
    # A base model gives reasons that do not go with its Yes: these are asked again, as they are of any model.
    base = [said["gemma-3-270m", high] / stated["gemma-3-270m", high] for high in (False, True)]
    assert base[0] >= 0.97
    assert base[1] >= 0.9
    small = [said["SmolLM2-135M-Instruct", high] / stated["SmolLM2-135M-Instruct", high] for high in (False, True)]
    assert small[0] >= 0.97
    assert small[1] >= 0.9
