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

from halls import QUESTIONS  # noqa: E402
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
lines = []
for question in QUESTIONS:
    maker.creator_llm = Scripted([f"The hall keeps {question.reference}", "It is old"])
    documents = [Document(passage.id, passage.text) for passage in question.passages]
    nuggets = maker.create(Request(Query(question.id, question.text), documents))
    kept = [dataclasses.asdict(nugget) for nugget in nuggets]
    lines.append(json.dumps({"query": question.text, "qid": question.id, "nuggets": kept}) + "\n")
(OUT / "nuggets.jsonl").write_text("".join(lines))
