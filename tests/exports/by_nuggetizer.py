# /// script
# dependencies = ["nuggetizer==0.0.5"]
# ///
"""nuggetizer: the nuggets that it creates, a line for each question; without a model."""

import dataclasses
import json
import os
import sys
from pathlib import Path

OUT = Path(sys.argv[1])
os.environ["OPENAI_API_KEY"] = "none"

from halls import QUESTIONS, RUNS  # noqa: E402
from nuggetizer.core.types import Document, Query, Request  # noqa: E402
from nuggetizer.models.nuggetizer import Nuggetizer  # noqa: E402


class Scripted:
    """A model that always replies the same."""

    def __init__(self, reply: list[str]) -> None:
        """Keep the reply."""
        self.reply = reply

    def run(self, messages, temperature=0):
        """Return the reply, and the tokens that it took."""
        return str(self.reply), 1


maker = Nuggetizer(model="gpt-4o")
maker.scorer_llm = Scripted(["vital", "okay"])
lines, assigned = [], []
for question in QUESTIONS:
    maker.creator_llm = Scripted([f"The hall keeps {question.reference}", "It is old"])
    documents = [Document(passage.id, passage.text) for passage in question.passages]
    nuggets = maker.create(Request(Query(question.id, question.text), documents))
    kept = [dataclasses.asdict(nugget) for nugget in nuggets]
    lines.append(json.dumps({"query": question.text, "qid": question.id, "nuggets": kept}) + "\n")
    for run in RUNS:
        right = question.answer(run) == question.reference
        maker.assigner_llm = Scripted(["support" if right else "not_support", "partial_support"])
        said = maker.assign(question.text, question.answer(run), nuggets)
        about = {"query": question.text, "qid": question.id, "answer_text": question.answer(run), "run_id": run}
        found = [dataclasses.asdict(nugget) for nugget in said]
        assigned.append(
            json.dumps({**about, "response_length": len(question.answer(run).split()), "nuggets": found}) + "\n"
        )
(OUT / "assigned.jsonl").write_text("".join(assigned))
(OUT / "nuggets.jsonl").write_text("".join(lines))
