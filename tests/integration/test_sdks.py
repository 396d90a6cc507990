"""What docs/coming-from.md sends to MLflow, Phoenix and LangSmith is what their packages take; no server is asked.

`tests/test_docs.py` runs these snippets against modules that take anything; here they meet the signatures of the real
ones, which a Python of its own has (JUDGEKIT_SDKS), since they need other versions than judgekit.
"""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "coming-from.md"
CALLS = {
    "mlflow.start_run": ("import mlflow", "mlflow.start_run"),
    "mlflow.log_table": ("import mlflow", "mlflow.log_table"),
    "mlflow.log_metric": ("import mlflow", "mlflow.log_metric"),
    "Client().datasets.create_dataset": (
        "from phoenix.client.resources.datasets import Datasets",
        "functools.partial(Datasets.create_dataset, None)",
    ),
    "Client().upload_dataframe": (
        "from langsmith import Client",
        "functools.partial(Client.upload_dataframe, None)",
    ),
}
"""What the page calls, and where it is in the package."""

SCRIPT = """
import ast, functools, inspect, json, sys

given = json.loads(sys.stdin.read())
keys = {}
for code in given["snippets"]:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            keys[node.targets[0].id] = ast.literal_eval(node.value)
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in given["calls"]:
            imported, place = given["calls"][ast.unparse(node.func)]
            names = {"functools": functools}
            exec(imported, names)
            options = {}
            for keyword in node.keywords:
                options |= {keyword.arg: 0} if keyword.arg else keys[keyword.value.id]
            inspect.signature(eval(place, names)).bind(*node.args, **options)
            print(ast.unparse(node.func))
"""


@pytest.fixture(scope="module")
def python() -> str:
    found = os.environ.get("JUDGEKIT_SDKS")
    if not found:
        pytest.skip("needs JUDGEKIT_SDKS, a Python with mlflow-skinny, arize-phoenix-client and langsmith")
    return found


def bound(python: str, snippets: list[str]) -> subprocess.CompletedProcess[str]:
    """Hold the calls of snippets to the signatures of the packages."""
    given = json.dumps({"snippets": snippets, "calls": CALLS})
    return subprocess.run([python, "-c", SCRIPT], input=given, capture_output=True, text=True)


def test_the_page_calls_the_packages_as_they_are(python: str) -> None:
    section = PAGE.read_text().split("## MLflow, Phoenix, LangSmith")[1].partition("\n## ")[0]
    snippets = re.findall(r"```python\n(.*?)```", section, re.S)
    done = bound(python, snippets)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:-1] == [*CALLS]


def test_a_call_that_a_package_does_not_take_is_noticed(python: str) -> None:
    assert (
        "unexpected keyword argument 'columns'"
        in bound(python, ['mlflow.log_table(labels, "labels.json", columns=labels)']).stderr
    )
