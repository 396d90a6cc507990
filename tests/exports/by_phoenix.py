# /// script
# dependencies = ["arize-phoenix==20.26.1"]
# ///
"""Phoenix: spans and annotations from a server on 127.0.0.1, by its client's tables and by its REST API."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
import warnings
from pathlib import Path

OUT = Path(sys.argv[1])
warnings.filterwarnings("ignore")


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


PORT = free_port()
ADDRESS = f"http://127.0.0.1:{PORT}"
os.environ.update(
    PHOENIX_WORKING_DIR=os.getcwd(),
    PHOENIX_PORT=str(PORT),
    PHOENIX_HOST="127.0.0.1",
    PHOENIX_GRPC_PORT=str(free_port()),
    PHOENIX_COLLECTOR_ENDPOINT=ADDRESS,
    PHOENIX_TELEMETRY_ENABLED="false",
)

import pandas as pd  # noqa: E402
from halls import FAILS, QUESTIONS, RUNS  # noqa: E402


def fetched(path: str) -> bytes:
    """Return what the server answers."""
    with urllib.request.urlopen(ADDRESS + path) as reply:
        return bytes(reply.read())


def traced() -> dict[tuple[str, str], str]:
    """Send a trace for each question and run; return the ids of their outermost spans."""
    from openinference.instrumentation import using_session
    from opentelemetry.trace import Status, StatusCode
    from phoenix.otel import register

    provider = register(project_name="halls", endpoint=f"{ADDRESS}/v1/traces", batch=False, verbose=False)
    tracer = provider.get_tracer("application")
    spans = {}
    for run in RUNS:
        for question in QUESTIONS:
            with (
                using_session(f"{run}-{question.id}"),
                tracer.start_as_current_span("answer", openinference_span_kind="chain") as root,
            ):
                root.set_input({"question": question.text} if run == "bm25" else question.text)
                with tracer.start_as_current_span(run, openinference_span_kind="retriever") as step:
                    step.set_input(question.text)
                    for rank, passage in enumerate(question.found(run)):
                        place = f"retrieval.documents.{rank}.document"
                        step.set_attribute(f"{place}.id", passage.id)
                        step.set_attribute(f"{place}.content", passage.text)
                        step.set_attribute(f"{place}.score", 1 / (rank + 1))
                    step.set_status(Status(StatusCode.OK))
                with tracer.start_as_current_span("llm", openinference_span_kind="llm") as step:
                    step.set_attribute("llm.model_name", "gpt-x")
                    step.set_input(question.text)
                    step.set_output(question.answer(run))
                root.set_output({"answer": question.answer(run)} if run == "bm25" else question.answer(run))
                root.set_status(Status(StatusCode.OK))
                spans[run, question.id] = f"{root.get_span_context().span_id:016x}"
    provider.force_flush()
    return spans


server = subprocess.Popen(
    [sys.executable, "-m", "phoenix.server.main", "serve"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
)
try:
    for _ in range(240):
        time.sleep(1)
        try:
            fetched("/healthz")
            break
        except OSError:
            continue
    spans = traced()
    time.sleep(5)
    from phoenix.client import Client

    client = Client(base_url=ADDRESS)
    for (run, number), span in spans.items():
        question = next(question for question in QUESTIONS if question.id == number)
        if number != FAILS:
            good = question.answer(run) == question.reference
            client.spans.add_span_annotation(
                span_id=span,
                annotation_name="thumb",
                annotator_kind="HUMAN",
                label="up" if good else "down",
                score=float(good),
            )
    time.sleep(5)
    table = client.spans.get_spans_dataframe(project_identifier="halls", limit=1000).sort_values("start_time")
    # Times in milliseconds, which no two runs share.
    moments = sorted({*table["start_time"], *table["end_time"]})
    places = {
        moment: pd.Timestamp("2026-01-02", tz="UTC") + pd.Timedelta(milliseconds=place)
        for place, moment in enumerate(moments)
    }
    for column in ("start_time", "end_time"):
        table[column] = table[column].map(places)
    # The server keeps attributes in no certain order.
    table = table[sorted(table.columns)]
    listed = table["attributes.retrieval.documents"]
    table["attributes.retrieval.documents"] = [
        [dict(sorted(document.items())) for document in found] if isinstance(found, list) else found for found in listed
    ]
    table.to_csv(OUT / "spans.csv")
    table.to_json(OUT / "spans.jsonl", orient="records", lines=True)
    annotations = client.spans.get_span_annotations_dataframe(spans_dataframe=table, project_identifier="halls")
    annotations = annotations.loc[[span for span in spans.values() if span in annotations.index]]
    annotations["id"] = "U3Bhbg=="  # numbered in any order
    annotations["created_at"] = annotations["updated_at"]  # that of a batch of any size
    annotations.to_csv(OUT / "annotations.csv")
    annotations.to_json(OUT / "annotations-without-index.jsonl", orient="records", lines=True)
    rest = json.loads(fetched("/v1/projects/halls/spans?limit=1000"))
    rest["data"].sort(key=lambda span: span["start_time"])
    for span in rest["data"]:
        span["id"] = "U3Bhbg=="
    (OUT / "rest-spans.json").write_text(json.dumps(rest, sort_keys=True))
    asked = "&".join(f"span_ids={span}" for span in spans.values())
    rest = json.loads(fetched(f"/v1/projects/halls/span_annotations?limit=1000&{asked}"))
    order = {span: place for place, span in enumerate(spans.values())}
    rest["data"].sort(key=lambda annotation: order[annotation["span_id"]])
    for annotation in rest["data"]:
        annotation |= {"id": "U3Bhbg==", "created_at": annotation["updated_at"]}
    (OUT / "rest-annotations.json").write_text(json.dumps(rest))
finally:
    server.terminate()
    server.wait()
