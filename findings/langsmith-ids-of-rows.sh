#!/bin/sh
# LangSmith 0.15.1 gives each row of to_pandas() an "id" that is the run's own: two experiments on one data set share none.
# The question's id is "example_id". Whoever joins two experiments by "id" finds no question that both answered, and a paired
# comparison silently becomes one of different questions. judgekit joins by example_id (judgekit/data/forms/langsmith.py).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet langsmith==0.15.1 pandas
LANGSMITH_TRACING=false "$folder/venv/bin/python" - <<'PYTHON'
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from uuid import uuid4

from langsmith import Client, evaluate
from langsmith.schemas import Example

made = {"dataset_id": uuid4(), "created_at": datetime.now(UTC)}
examples = [Example(id=uuid4(), inputs={"question": f"Who {n}?"}, outputs={"answer": "Ann"}, **made) for n in range(3)]
client = Client(api_key="x", api_url="http://127.0.0.1:1", auto_batch_tracing=False)
tables = [
    evaluate(
        lambda inputs: {"answer": "Ann"}, data=examples, upload_results=False, max_concurrency=0, client=client
    ).to_pandas()
    for _ in range(2)
]
common = {name: len({*tables[0][name]} & {*tables[1][name]}) for name in ("id", "example_id")}
print("langsmith", version("langsmith"))
print("expected: two experiments on 3 examples have 3 ids in common")
print("in common:", common)
sys.exit(common != {"id": 0, "example_id": 3})
PYTHON
