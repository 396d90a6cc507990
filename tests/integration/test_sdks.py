"""What docs/coming-from.md sends to MLflow, Phoenix and LangSmith arrives, with the real packages.

`tests/test_docs.py` runs these snippets against modules that take anything. Here the packages themselves run, in a
Python of their own (JUDGEKIT_SDKS), since they need other versions than judgekit. MLflow writes into a folder; the
other two send to a server on 127.0.0.1 that says yes.
"""

import gzip
import io
import json
import os
import re
import subprocess
from collections.abc import Iterator
from email import message_from_bytes
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pandas as pd
import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "coming-from.md"
LABELS = pd.DataFrame(
    {
        "labeling": ["containment", "containment"],
        "query_id": ["001", "q2"],
        "doc_id": ["d1", "007"],
        "relevance": [1.0, 0.0],
        "query": ["Who built it?", "When, and by whom?"],
        "passage": ['by "Ann", twice', "two\nlines, é"],
    }
)
DATASET = {"id": "00000000-0000-4000-8000-000000000001", "name": "ground truth", "description": None, "metadata": {}}
DATASET |= {"created_at": "2026-01-02T00:00:00Z", "updated_at": "2026-01-02T00:00:00Z", "example_count": 2}
RESPONSES = {
    "/v1/datasets/upload": {"data": {"dataset_id": DATASET["id"], "version_id": DATASET["id"]}},
    "/v1/datasets": {"data": [DATASET], "next_cursor": None},
    f"/v1/datasets/{DATASET['id']}": {"data": DATASET},
    f"/v1/datasets/{DATASET['id']}/examples": {
        "data": {"dataset_id": DATASET["id"], "version_id": DATASET["id"], "examples": []}
    },
    "/datasets/upload": DATASET,
}
"""What the servers of Phoenix and LangSmith respond, as far as their clients read it."""


@pytest.fixture(scope="module")
def python() -> str:
    found = os.environ.get("JUDGEKIT_SDKS")
    if not found:
        pytest.skip("needs JUDGEKIT_SDKS, a Python with mlflow-skinny, arize-phoenix-client, langsmith and pyarrow")
    return found


@pytest.fixture
def uploads() -> Iterator[tuple[str, dict[str, Message]]]:
    """The address of a server, and what was uploaded to it by path."""
    uploaded = {}

    class Server(BaseHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            path = self.path.partition("?")[0]
            if self.command == "POST" and path in RESPONSES:
                kind = f"content-type: {self.headers['content-type']}\r\n\r\n"
                uploaded[path] = message_from_bytes(kind.encode() + body)
            response = json.dumps(RESPONSES.get(path, {})).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(response)))
            self.end_headers()
            self.wfile.write(response)

        do_POST = do_GET

    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", uploaded
    server.shutdown()
    server.server_close()


def ran(python: str, code: str, folder: Path, address: str) -> subprocess.CompletedProcess[str]:
    """Run a snippet in a folder that holds the labels."""
    (folder / "ground-truth").mkdir(exist_ok=True)
    LABELS.to_parquet(folder / "ground-truth" / "labels.parquet")
    places = {"MLFLOW_TRACKING_URI": (folder / "mlruns").as_uri(), "MLFLOW_ALLOW_FILE_STORE": "true"}
    places |= {"PHOENIX_COLLECTOR_ENDPOINT": address, "LANGSMITH_ENDPOINT": address, "LANGSMITH_API_KEY": "none"}
    env = {**os.environ, **places}
    env.pop("PYTHONPATH", None)
    return subprocess.run([python, "-c", code], cwd=folder, env=env, capture_output=True, text=True, timeout=300)


def snippet(package: str) -> str:
    section = PAGE.read_text("utf-8").split("## MLflow, Phoenix, LangSmith")[1].partition("\n## ")[0]
    (code,) = (code for code in re.findall(r"```python\n(.*?)```", section, re.S) if package in code)
    return code


def sent(upload: Message) -> tuple[dict[str, set[str]], pd.DataFrame]:
    """Return the fields of an upload, and the table in its file."""
    fields: dict[str, set[str]] = {}
    for part in upload.get_payload():
        name = part.get_param("name", header="content-disposition").removesuffix("[]")
        content = part.get_payload(decode=True)
        if name == "file":
            content = gzip.decompress(content) if part["content-encoding"] == "gzip" else content
            table = pd.read_csv(io.BytesIO(content), dtype={"query_id": str, "doc_id": str})
        else:
            fields.setdefault(name, set()).add(content.decode())
    return fields, table


def test_mlflow_keeps_the_table_and_the_number(python: str, tmp_path: Path) -> None:
    read = """
import json
runs = mlflow.search_runs(search_all_experiments=True)
table = mlflow.load_table("labels.json", run_ids=runs["run_id"].tolist())
print(json.dumps([runs["tags.mlflow.runName"].tolist(), runs["metrics.relevant"].tolist(), table.to_dict("list")]))
"""
    done = ran(python, snippet("mlflow") + read, tmp_path, "")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [["ground truth"], [0.5], LABELS.to_dict("list")]


@pytest.mark.parametrize(("package", "path"), [("phoenix", "/v1/datasets/upload"), ("langsmith", "/datasets/upload")])
def test_a_data_set_arrives_with_all_rows(package, path, python, uploads, tmp_path) -> None:
    address, uploaded = uploads
    done = ran(python, snippet(package), tmp_path, address)
    assert done.returncode == 0, done.stderr
    assert [*uploaded] == [path]
    fields, table = sent(uploaded[path])
    assert fields["name"] == {"ground truth"}
    assert (fields["input_keys"], fields["output_keys"]) == ({"query", "passage"}, {"relevance"})
    if package == "phoenix":
        assert fields["metadata_keys"] == {"query_id", "doc_id"}
    columns = set().union(*(fields[name] for name in fields if name.endswith("_keys")))
    for column in columns:
        assert table[column].tolist() == LABELS[column].tolist()


def test_what_a_package_does_not_take_is_noticed(python: str, tmp_path: Path) -> None:
    code = snippet("mlflow").replace('"labels.json")', '"labels.json", columns=[])')
    assert "unexpected keyword argument 'columns'" in ran(python, code, tmp_path, "").stderr
