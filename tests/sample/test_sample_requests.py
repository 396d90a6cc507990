"""The page of the demo shows the requests that its labelers make."""

import json
from pathlib import Path

from judgekit.data.documents import Unit
from judgekit.experiment.finished import read_results
from judgekit.experiment.results import backing
from judgekit.experiment.run import RunResult
from judgekit.report.queries import pack
from tests.report.conftest import unpacked, written


def test_the_samples_requests_are_those_of_its_labelers(demo: RunResult, demo_folder: Path) -> None:
    opened = read_results(demo_folder)
    behind = backing(*opened, None, None)
    index, queries = unpacked(pack(demo.results, behind))
    assert len(index["requests"]) == 2, "one for the judge, one for eRAG"
    seen = 0
    for place, name in enumerate(behind.labels):
        labeler = opened.prepared.labelers[name]
        for entry, rows in zip(index["queries"], queries, strict=True):
            query = opened.prepared.collection.queries[entry["id"]]
            for doc, label in zip(behind.docs.get(rows["docs"]), rows["labels"][place], strict=True):
                if label is None or "asked" not in label:
                    assert name in ("containment", "provenance")
                    continue
                asked = label["asked"] if isinstance(label["asked"], dict) else index["requests"][label["asked"]]
                (request,) = labeler.requests(Unit(query, (doc,)), ())
                whole = json.loads(asked["settings"])
                whole["messages"] = [
                    {"role": each["role"], "content": written(each["content"], query, doc)}
                    for each in asked["messages"]
                ]
                assert whole == json.loads(request.body)
                seen += 1
    assert seen == 2 * 2125
