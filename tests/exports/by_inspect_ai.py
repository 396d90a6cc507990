# /// script
# dependencies = ["inspect-ai==0.3.285"]
# [tool]
# durations = ["total_time", "working_time"]
# ///
"""Inspect: the log of an evaluation for each run, as JSON, without its events; its mock stands in for a model.

And one whose questions are chats with two targets, asked in two epochs and scored by two scorers.
"""

import json
import sys
from pathlib import Path

OUT = Path(sys.argv[1])

from halls import FAILS, QUESTIONS, RUNS  # noqa: E402
from inspect_ai import Epochs, Task, eval  # noqa: E402
from inspect_ai.dataset import MemoryDataset, Sample  # noqa: E402
from inspect_ai.model import (  # noqa: E402
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.scorer import includes, match  # noqa: E402
from inspect_ai.solver import generate, solver  # noqa: E402


@solver
def failing():
    """Fail on one question of one run, as an application does without a connection."""

    async def solve(state, generate):
        if state.sample_id == FAILS and state.metadata["run"] == "dense":
            raise RuntimeError("no connection")
        return state

    return solve


def logged(name, samples, replies, **settings):
    """Evaluate samples and keep the log without what is drawn at random."""
    outputs = [ModelOutput.from_content("mockllm/model", reply) for reply in replies]
    for output in outputs:
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # counting asks a server
    eval(
        Task(dataset=MemoryDataset(samples), solver=[failing(), generate()], name=name, **settings),
        model=get_model("mockllm/model", custom_outputs=outputs),
        log_format="json",
        log_dir=name,
        display="none",
        max_samples=1,
        fail_on_error=False,
    )
    (log,) = Path(name).glob("*.json")
    held = json.loads(log.read_text())
    kept = {part: held[part] for part in ("version", "status", "samples")}
    for sample in kept["samples"]:
        # Ids drawn at random, and each request again.
        for part in ("messages", "events", "events_data", "uuid", "store", "attachments", "error_retries"):
            sample.pop(part, None)
        for message in sample["input"] if isinstance(sample["input"], list) else ():
            message.pop("id", None)
        sample["output"] = {part: sample["output"][part] for part in ("model", "completion")}
        if "error" in sample:
            sample["error"] = {"message": sample["error"]["message"]}
    (OUT / f"{name}.json").write_text(json.dumps(kept, indent=1))


for run in RUNS:
    samples, replies = [], []
    for question in QUESTIONS:
        about = {"contexts": [passage.text for passage in question.found(run)], "run": run}
        samples.append(Sample(id=question.id, input=question.text, target=question.reference, metadata=about))
        if (question.id, run) != (FAILS, "dense"):
            replies.append(question.answer(run))
    logged(run, samples, replies, scorer=includes())

before = [ChatMessageUser(content="Where is it?"), ChatMessageAssistant(content="In the north.")]
samples = []
for question in QUESTIONS[:4]:
    chat = [ChatMessageSystem(content="Be short."), *before, ChatMessageUser(content=question.text)]
    about = {"contexts": [passage.text for passage in question.found("dense")], "run": "dense"}
    targets = [question.reference, question.reference.upper()]
    samples.append(
        Sample(id=question.id, input=chat[-1:] if question.id == "003" else chat, target=targets, metadata=about)
    )
replies = [question.answer(run) for run in RUNS for question in QUESTIONS[:4]]
logged("epochs", samples, replies, scorer=[includes(), match()], epochs=Epochs(2, "mean"))
