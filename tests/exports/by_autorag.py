# /// script
# dependencies = ["autorag==0.3.27"]
# ///
"""AutoRAG: the table of questions that it saves, and again after its passages were cut anew; without a model.

Its Parquet files are shown as lines of JSON.
"""

import sys
from pathlib import Path

OUT = Path(sys.argv[1])

import pandas as pd  # noqa: E402
from autorag.data.qa.generation_gt.base import add_gen_gt  # noqa: E402
from autorag.data.qa.sample import range_single_hop  # noqa: E402
from autorag.data.qa.schema import Corpus, Raw  # noqa: E402
from halls import QUESTIONS  # noqa: E402

GOLD = {question.gold.id: question for question in QUESTIONS}
DAY = "2026-01-02"


def corpus(passages):
    """Return a table of passages: id, text, page, and first and last character there."""
    columns = ["doc_id", "contents", "path", "start_end_idx"]
    table = pd.DataFrame(passages, columns=columns)
    return table.assign(metadata=[{"last_modified_datetime": DAY}] * len(table))


async def asked(row):
    """Ask the question that a passage answers."""
    question = GOLD[row["retrieval_gt"][0][0]]
    return add_gen_gt({**row, "query": question.text}, question.reference)


def show(qa, name):
    """Save questions and passages as AutoRAG does, and show the questions."""
    qa.to_parquet("qa.parquet", "corpus.parquet")
    pd.read_parquet("qa.parquet").to_json(OUT / f"{name}.jsonl", orient="records", lines=True)


pages, whole, halves = [], [], []
for question in QUESTIONS:
    path = f"hall-{question.id}.txt"
    text = "\n".join(passage.text for passage in question.passages)
    pages.append({"texts": text, "path": path, "page": -1, "last_modified_datetime": DAY})
    for passage in question.passages:
        start = text.index(passage.text)
        whole.append((passage.id, passage.text, path, (start, start + len(passage.text) - 1)))
        middle = len(passage.text) // 2
        for part, (first, last) in enumerate([(0, middle), (middle, len(passage.text))]):
            place = (start + first, start + last - 1)
            halves.append((f"{passage.id}-{part}", passage.text[first:last], path, place))
raw = Raw(pd.DataFrame(pages))
places = [place for place, passage in enumerate(whole) if passage[0] in GOLD]
questions = Corpus(corpus(whole), raw).sample(range_single_hop, idx_range=places).batch_apply(asked)
show(questions, "qa")
show(questions.update_corpus(Corpus(corpus(halves), raw)), "qa-cut-anew")
