import json
from pathlib import Path

import pandas as pd

import judgekit as jk
from judgekit.data.documents import Doc
from judgekit.data.readers import write_docs
from tests.small import MOCK, QUICK, TOWNS, YEARS, Judgekit, toml


def test_documents_of_two_cuts_get_their_spans(judgekit: Judgekit) -> None:
    page = "The harbour froze in 1740, and  nobody sailed.\nIn 1741 the ice broke, and boats went out to sea again."
    Path("pages.json").write_text(json.dumps([{"page_id": "p", "text": page}]))
    write_docs([Doc("w0", page[:46], "", "p"), Doc("w1", page[47:], "", "p")], "whole.jsonl")
    half = [Doc("h0", page[:70], "", "p"), Doc("h1", page[70:], "", "p"), Doc("x", "of nowhere at all", "", "p")]
    write_docs(half, "half.jsonl")
    said = judgekit("chunks", "pages.json", "whole.jsonl", "half.jsonl", "--out", "docs.jsonl", code=0)
    assert "4 of 5 documents have a span" in said.out
    assert "x has no span: its text was not found on its page" in said.err
    docs = jk.read_docs("docs.jsonl").get(["w0", "w1", "h0", "h1"])
    assert [(d.start, d.end) for d in docs] == [(0, 46), (47, 102), (0, 70), (70, 102)]


def test_wrong_input_is_said_and_nothing_is_written(judgekit: Judgekit) -> None:
    write_docs([Doc("a", "one two three four five")], "one.jsonl")
    write_docs([Doc("a", "another text under one id")], "other.jsonl")
    for args, expected in (
        (("chunks", "one.jsonl", "one.jsonl", "other.jsonl", "--out", "x"), "'a' has a different title or text"),
        (("chunks", "none.jsonl", "one.jsonl", "--out", "x"), "no such file"),
        (("chunks", "one.jsonl", "other.jsonl", "--out", "one.jsonl"), "never replaced"),
    ):
        said = judgekit(*args, code=2)
        assert expected in said.err.replace("\n", " ")
        assert not Path("x").exists()


EXPERIMENT = toml(
    data={"queries": "queries.jsonl", "docs": "cuts.jsonl", "depth": 4},
    runs={"whole": "whole.trec", "pieces": "pieces.trec"},
    endpoints={"local": MOCK},
    labelers=[{"kind": "containment"}],
    answers={"depths": [2]},
    metrics={"measures": ["nDCG", "R"]},
    analysis=QUICK | {"primary": "nDCG@2"},
)


def cut_twice() -> None:
    """Write pages of five stretches, cut twice: whole stretches, and two pieces of each."""
    docs, runs = [], {"whole": [], "pieces": []}
    for i, (town, year) in enumerate(zip(TOWNS, YEARS, strict=True)):
        at = 0
        for part in range(4):
            text = (
                f"The stone bridge of {town} was built in {year if part == 0 else 'stages'} by masons of part {part}."
            )
            for name, start, end in (("w", 0, len(text)), ("a", 0, 50), ("b", 20, len(text))):
                span = {"page_id": town, "start": at + start, "end": at + end}
                docs.append({"doc_id": f"{town}{part}{name}", "text": text[start:end], **span})
                runs["whole" if name == "w" else "pieces"].append(f"q{i} Q0 {town}{part}{name} 0 {len(docs) * -1} x")
            at += len(text) + 1
    Path("cuts.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in docs))
    for name, rows in runs.items():
        Path(f"{name}.trec").write_text("\n".join(rows) + "\n")
    Path("cuts.toml").write_text(EXPERIMENT)


def test_an_experiment_over_two_cuts_counts_evidence_and_has_a_table_by_run(judgekit: Judgekit) -> None:
    cut_twice()
    judgekit("run", "cuts.toml", "--out", "out")
    scores = pd.read_parquet("out/scores.parquet")
    assert set(scores["measure"]) == {"nDCG(unit=evidence)@2", "R(unit=evidence)@2"}
    labels = pd.read_parquet("out/labels/containment.parquet")
    assert {"page_id", "start", "end", "evidence"} <= set(labels.columns)
    page = Path("out/report.html").read_text()
    assert "The same evidence, cut differently" in page
    section = next(s for s in jk.run("cuts.toml", out="out").results.sections if "cut differently" in s.title)
    table = section.table.set_index("run")
    assert table["evidence recall"].to_dict() == {"whole": 1.0, "pieces": 1.0}
    assert (table["tokens per prompt"] > 0).all()
    assert table["characters per document"]["pieces"] < table["characters per document"]["whole"]


def test_score_counts_evidence_where_it_is_given_documents(judgekit: Judgekit) -> None:
    cut_twice()
    labels = [f"q{i} 0 {town}0{name} 1" for i, town in enumerate(TOWNS) for name in "wab"]
    Path("all.qrels").write_text("\n".join(labels) + "\n")
    args = ("score", "--run", "whole.trec", "--run", "pieces.trec", "--qrels", "all.qrels", "-m", "R@2")
    assert "R(unit=evidence)@2" in judgekit(*args, "--docs", "cuts.jsonl", code=0).out
    assert "R@2" in judgekit(*args).out
