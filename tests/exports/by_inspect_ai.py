# /// script
# dependencies = ["inspect-ai==0.3.285"]
# [tool]
# durations = ["total_time", "working_time"]
# ///
"""Inspect: the log of an evaluation for each run, as JSON, without its events; its mock stands in for a model."""

import json
import sys
from pathlib import Path

OUT = Path(sys.argv[1])

from halls import FAILS, QUESTIONS, RUNS  # noqa: E402
from inspect_ai import Task, eval  # noqa: E402
from inspect_ai.dataset import MemoryDataset, Sample  # noqa: E402
from inspect_ai.model import ModelOutput, ModelUsage, get_model  # noqa: E402
from inspect_ai.scorer import includes  # noqa: E402
from inspect_ai.solver import generate, solver  # noqa: E402


@solver
def failing():
    """Fail on one question of one run, as an application does without a connection."""

    async def solve(state, generate):
        if state.sample_id == FAILS and state.metadata["run"] == "dense":
            raise RuntimeError("no connection")
        return state

    return solve


for run in RUNS:
    samples, outputs = [], []
    for question in QUESTIONS:
        about = {"contexts": [passage.text for passage in question.found(run)], "run": run}
        samples.append(Sample(id=question.id, input=question.text, target=question.reference, metadata=about))
        if (question.id, run) != (FAILS, "dense"):
            output = ModelOutput.from_content("mockllm/model", question.answer(run))
            output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # counting asks a server
            outputs.append(output)
    model = get_model("mockllm/model", custom_outputs=outputs)
    task = Task(dataset=MemoryDataset(samples), solver=[failing(), generate()], scorer=includes(), name=run)
    eval(
        task,
        model=model,
        log_format="json",
        log_dir=run,
        display="none",
        max_samples=1,
        fail_on_error=False,
    )
    (log,) = Path(run).glob("*.json")
    held = json.loads(log.read_text())
    kept = {name: held[name] for name in ("version", "status", "samples")}
    for sample in kept["samples"]:
        # Ids drawn at random, and each request again.
        for name in ("messages", "events", "events_data", "uuid", "store", "attachments", "error_retries"):
            sample.pop(name, None)
        sample["output"] = {name: sample["output"][name] for name in ("model", "completion")}
        if "error" in sample:
            sample["error"] = {"message": sample["error"]["message"]}
    (OUT / f"{run}.json").write_text(json.dumps(kept, indent=1))
