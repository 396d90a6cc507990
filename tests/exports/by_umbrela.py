# /// script
# dependencies = ["umbrela==0.0.7"]
# [tool]
# bare = ["umbrela"]
# ///
"""umbrela: the rows that its judges return, a line each; without a model, and without the libraries that ask one."""

import json
import sys
from pathlib import Path

OUT = Path(sys.argv[1])

from halls import FAILS, QUESTIONS  # noqa: E402
from umbrela.utils import common_utils  # noqa: E402


def reply(query: str, passage: str) -> str:
    """Return what a model says of a passage; nothing that can be read of one question."""
    if f"hall {int(FAILS)}?" in query:
        return "I cannot tell."
    return '##final score: {"O": 3}' if "keeps" in passage else '##final score: {"O": 0}'


rows = []
for question in QUESTIONS:
    candidates = [{"docid": passage.id, "doc": {"segment": passage.text}} for passage in question.passages]
    request = {"query": {"qid": question.id, "text": question.text}, "candidates": candidates}
    pairs = common_utils.preprocess_request_dict(request)
    prompts = common_utils.generate_prompts(pairs, "", "{examples}Query: {query}\nPassage: {passage}\n##final score:")
    outputs = [reply(*pair) for pair in pairs]
    rows += common_utils.prepare_judgments(outputs, pairs, prompts, "scripted")
(OUT / "judgments.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
