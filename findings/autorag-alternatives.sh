#!/bin/sh
# AutoRAG 0.3.27 takes the gold passages ["d1", "d2"] for alternatives, and the parts into which a new chunker cut one as well.
# One expects that all of them are needed. Who finds one has recall 1.0; who writes [["d1"], ["d2"]] gets 0.5 for the same.
# judgekit asks which of both is meant (judgekit/data/forms/autorag.py).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet uv  # pip takes long to find releases that go together
"$folder/venv/bin/uv" pip install --quiet --python "$folder/venv/bin/python" autorag==0.3.27
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import sys
from importlib.metadata import version

import pandas as pd
from autorag.data.qa.schema import QA, Corpus, Raw
from autorag.evaluation.metric.retrieval import retrieval_recall
from autorag.schema.metricinput import MetricInput
from autorag.utils.preprocess import cast_qa_dataset

print("AutoRAG", version("autorag"))


def recall(gold, found):
    """Return AutoRAG's recall of one question."""
    return retrieval_recall([MetricInput(retrieval_gt=gold, retrieved_ids=found)])[0]


asked = {"qid": ["1", "2"], "query": ["Who?", "Who?"], "generation_gt": ["Ann", "Ann"]}
cast = cast_qa_dataset(pd.DataFrame({**asked, "retrieval_gt": [["d1", "d2"], [["d1"], ["d2"]]]}))
flat, nested = cast["retrieval_gt"]
by_hand = [recall(flat, ["d1", "d9"]), recall(nested, ["d1", "d9"])]
print("one of two found; expected: [0.5, 0.5] for", ["d1", "d2"], "and", [["d1"], ["d2"]], "seen:", by_hand)


def passages(ids, places):
    """Return passages of one page by the places of their characters."""
    rows = {"doc_id": ids, "contents": ["text"] * len(ids), "path": "page.txt", "start_end_idx": places}
    return pd.DataFrame(rows).assign(metadata=[{}] * len(ids))


page = pd.DataFrame({"texts": ["text"], "path": ["page.txt"], "page": [-1]})
raw = Raw(page)
question = pd.DataFrame({"qid": ["1"], "query": ["Who?"], "generation_gt": [["Ann"]], "retrieval_gt": [[["d1"]]]})
old = QA(question, Corpus(passages(["d1"], [(0, 99)]), raw))
new = old.update_corpus(Corpus(passages(["a", "b"], [(0, 49), (50, 99)]), raw)).data["retrieval_gt"][0]
half = recall(new, ["a", "z"])
print("the passage was cut in two, and one half found; expected: 0.5, seen:", half, "with", new)
sys.exit(0 if (by_hand, half) == ([1.0, 0.5], 1.0) else 1)
PYTHON
