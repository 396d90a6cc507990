#!/bin/sh
# Inspect 0.3.285's samples_df joins several right answers by commas, and holds no answer of the model.
# Two targets, Paris and France, and the one target "Paris,France" come out alike: as one reference, no right answer matches it.
# judgekit refuses the table and names the command that writes the log as JSON (judgekit/data/forms/refused.py).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet inspect-ai==0.3.285 pandas==2.3.3 pyarrow==22.0.0
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import sys
from importlib.metadata import version

from inspect_ai import Task, eval
from inspect_ai.analysis import samples_df
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import match

print("inspect-ai", version("inspect-ai"))
targets = [["Paris", "France"], "Paris,France"]
samples = [Sample(id=number, input="Where?", target=target) for number, target in enumerate(targets)]
outputs = [ModelOutput.from_content("mockllm/model", "Paris") for _ in samples]
for output in outputs:
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
model = get_model("mockllm/model", custom_outputs=outputs)
eval(Task(dataset=samples, scorer=match()), model=model, log_dir="logs", display="none")
table = samples_df("logs")
seen = table.sort_values("id")["target"].tolist()
replies = [name for name in table.columns if "Paris" in table[name].astype(str).tolist()]
print("two different targets are expected:", targets)
print("targets of the table:", seen)
print("columns that hold the reply 'Paris':", replies)
sys.exit(0 if seen == ["Paris,France", "Paris,France"] and not replies else 1)
PYTHON
