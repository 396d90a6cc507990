# /// script
# dependencies = ["trulens-core==2.16.0"]
# [tool]
# durations = ["latency", "start_time", "end_time"]
# ///
"""TruLens: the frame of records of two versions of an application with a metric of one's own, as CSV and JSON lines."""

import os
import sys
from pathlib import Path

os.environ["TRULENS_OTEL_TRACING"] = "1"

from halls import QUESTIONS, RUNS
from trulens.apps.app import TruApp
from trulens.core import TruSession
from trulens.core.otel.instrument import instrument
from trulens.otel.semconv.trace import SpanAttributes

OUT = Path(sys.argv[1])
BY_TEXT = {question.text: question for question in QUESTIONS}


class Application:
    """Answers what the collection says."""

    def __init__(self, run: str) -> None:
        """Name the run."""
        self.run = run

    @instrument(
        span_type=SpanAttributes.SpanType.RETRIEVAL,
        attributes={
            SpanAttributes.RETRIEVAL.QUERY_TEXT: "query",
            SpanAttributes.RETRIEVAL.RETRIEVED_CONTEXTS: "return",
        },
    )
    def retrieve(self, query: str) -> list[str]:
        """Return the texts of the passages."""
        return [passage.text for passage in BY_TEXT[query].found(self.run)]

    @instrument(span_type=SpanAttributes.SpanType.RECORD_ROOT)
    def query(self, query: str) -> str:
        """Return the answer."""
        self.retrieve(query)
        return BY_TEXT[query].answer(self.run)


session = TruSession()
session.reset_database()
for run in RUNS:
    application = Application(run)
    recorded = TruApp(application, app_name="halls", app_version=run, main_method=application.query)
    for question in QUESTIONS:
        with recorded:
            application.query(question.text)
session.force_flush()
records, _ = session.get_records_and_feedback()
records = records.sort_values(["app_version", "input"]).reset_index(drop=True)
# What these columns repeat as JSON stands in others, beside times.
records = records.drop(columns=["app_json", "record_json", "cost_json", "perf_json"])
records.to_csv(OUT / "records.csv", index=False)
# As exact as in CSV: rounded times would not stand in the same order each time.
records.to_json(OUT / "records.jsonl", orient="records", lines=True, date_format="iso", date_unit="us")
