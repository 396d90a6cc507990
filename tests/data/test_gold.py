"""Relevant documents that a collection lacks or holds twice: each command that has both names them."""

import json
import re

import pytest

import judgekit as jk
from judgekit.data.documents import Doc, MemoryDocs
from judgekit.data.gold import misplaced
from tests.commands import in_process

N = 12


@pytest.fixture
def judgekit(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return in_process(capfd)


@pytest.fixture
def written(tmp_path):
    """Return a writer of an experiment in which question i's relevant document is ``named(i)``."""

    def write(named, copies=0):
        rows = [{"query_id": f"q{i}", "text": f"What is item {i}?", "answers": [f"n{i}"]} for i in range(N)]
        (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        docs = [{"doc_id": f"d{i}", "text": f"It is n{i}."} for i in range(N)]
        docs += [{"doc_id": f"copy{i}", "text": f"it  IS n{i}. "} for i in range(copies)]
        (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in docs))
        for run, first in (("a", 0), ("b", 1)):
            lines = []
            for i in range(N):
                found = [f"copy{i}" if i < copies else f"d{i}", f"d{(i + 1) % N}"]
                lines += [f"q{i} Q0 {found[rank != first]} 1 {2 - rank} {run}\n" for rank in range(2)]
            (tmp_path / f"{run}.trec").write_text("".join(lines))
        (tmp_path / "gold.qrels").write_text("".join(f"q{i} 0 {named(i)} 1\n" for i in range(N)))
        (tmp_path / "ans.csv").write_text(
            "query_id,run,depth,answer\n" + "".join(f"q{i},{run},2,n{i}\n" for i in range(N) for run in "ab")
        )
        (tmp_path / "e.toml").write_text(
            '[data]\nqueries = "q.jsonl"\ndocs = "d.jsonl"\ndepth = 2\n[runs]\na = "a.trec"\nb = "b.trec"\n'
            '[[labelers]]\nname = "gold"\nkind = "provenance"\nqrels = "gold.qrels"\n[answers]\nimport = "ans.csv"\n'
            'answered_by = "m"\ndepths = [2]\nmetrics = ["em"]\n[metrics]\nmeasures = ["RR"]\n'
        )

    return write


COMMANDS = {
    "init": ["init", "--out", "made"],
    "plan": ["plan", "e.toml"],
    "run": ["run", "e.toml", "--out", "res"],
    "label": ["label", "provenance(qrels=gold.qrels)", "--queries", "q.jsonl", "--docs", "d.jsonl", "--run", "a.trec",
              "-o", "l.qrels"],
    "score": ["score", "--run", "a.trec", "--qrels", "gold.qrels", "--docs", "d.jsonl", "-m", "RR"],
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_relevant_documents_that_the_collection_lacks_are_counted_and_named(command, written, judgekit, tmp_path):
    def said():
        if command == "init":
            (tmp_path / "e.toml").unlink()
        done = judgekit(*COMMANDS[command])
        return done.out + done.err

    written(lambda i: f"d{i}")
    assert "in the collection" not in said()
    for folder in ("made", "res"):
        for path in (tmp_path / folder).glob("*.toml"):
            path.unlink()
    written(lambda i: f"d{i}" if i < 4 else f"doc-{i}")
    told = said()
    assert "8 of the 12 relevant documents of " in told
    assert re.search(r"are not in the collection, first 'doc-(\d+)' \(query 'q\1'\)", told)


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "init"])
def test_copies_of_relevant_documents_under_another_id_are_counted_and_named(command, written, judgekit):
    written(lambda i: f"d{i}", copies=3)
    done = judgekit(*COMMANDS[command])
    assert "3 documents have the text of a relevant document of " in done.err + done.out
    assert "First 'copy0', with the text of 'd0' (query 'q0')" in done.err + done.out


def test_what_is_judged_or_not_asked_about_is_no_copy_and_not_lacking():
    docs = MemoryDocs([Doc("a", "same"), Doc("b", "Same"), Doc("c", "other"), Doc("e", ""), Doc("f", " ")])

    def notes(judged, found):
        return list(misplaced("gold", judged, 1, found, docs))

    assert not notes({"q": {"a": 1, "b": 0}}, {"q": ["a", "b", "c"]})
    assert not notes({"q": {"e": 1}}, {"q": ["f"]}), "documents without text are not copies"
    assert not notes({"q": {"gone": 0, "a": 1}, "other": {"gone": 1}}, {"q": ["a"]})
    assert len(notes({"q": {"gone": 1, "a": 1}}, {"q": ["b"]})) == 2


def test_score_in_python_names_them_too(written, tmp_path):
    written(lambda i: f"doc-{i}")
    made = jk.score(tmp_path / "a.trec", {"gold": tmp_path / "gold.qrels"}, "RR", docs=tmp_path / "d.jsonl")
    assert any("12 of the 12 relevant documents of gold" in note for note in made.warnings)


def test_a_judgment_of_a_page_needs_no_document_of_that_id(written, tmp_path, judgekit):
    written(lambda i: f"page{i}")
    docs = [{"doc_id": f"d{i}", "page_id": f"page{i}", "text": f"It is n{i}."} for i in range(N)]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in docs))
    label = [part.replace("gold.qrels)", "gold.qrels,expand=page)") for part in COMMANDS["label"]]
    done = judgekit(*label, code=0)
    assert "in the collection" not in done.err
