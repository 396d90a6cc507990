from dataclasses import replace
from pathlib import Path

import pytest

from judgekit.context import context_of
from judgekit.data.files import read_table
from judgekit.data.tables import QUALITY
from judgekit.errors import ConfigError, in_our_words
from judgekit.wire.types import Endpoint
from tests.cli.test_cli_stages import DATA, MOCK
from tests.small import EXPERIMENT, Judgekit, toml

UNDECLARED = "The answering model is not declared"
IMPORT = '[answers]\nimport = "app.csv"\ndepths = [4]\nmetrics = ["em", "correct"]\n'


@pytest.fixture
def answered(judgekit: Judgekit, folder: Path) -> Path:
    """A folder with app.csv: run, query_id, answer."""
    assert judgekit("answer", *DATA, "--depth", 4, "--out", "own.csv", *MOCK).code == 0
    own = read_table(QUALITY, folder / "own.csv")
    own[own["metric"] == "em"][["run", "query_id", "answer"]].to_csv(folder / "app.csv", index=False)
    (folder / "import.toml").write_text(EXPERIMENT.replace("[answers]\ndepths = [1, 4]\n", IMPORT))
    return folder


def test_answer_rates_imported_answers_as_it_rates_its_own(judgekit, answered):
    common = ["answer", "--queries", "queries.jsonl", "--import", "app.csv"]
    named = (answered / "app.csv").read_text().replace("\n", ",mock\n").replace("answer,mock", "answer,model", 1)
    (answered / "app.csv").write_text(named)
    judgekit(*common, "--depth", 4, "--out", "imported.csv", code=0)
    own, imported = (read_table(QUALITY, answered / name) for name in ("own.csv", "imported.csv"))
    columns = ["run", "depth", "model", "query_id", "metric", "value", "answer", "status"]
    assert imported[columns].equals(own[columns])
    assert (
        "answering needs --docs, --depth; or --import" in judgekit("answer", *DATA[:2], *DATA[4:], "--out", "x.csv").err
    )


def test_an_experiment_on_imported_answers_asks_for_no_answer_and_for_who_gave_them(judgekit, answered):
    judgekit("run", "import.toml", "--dry-run", code=0)
    said = judgekit("run", "import.toml", "--out", "results", code=0)
    quality = read_table(QUALITY, answered / "results" / "answers" / "answer-short.parquet")
    assert set(zip(quality["model"], quality["depth"], quality["metric"], strict=True)) == {
        ("undeclared", 4, "em"), ("undeclared", 4, "correct"),
    }  # fmt: skip
    assert len(quality) == 2 * 6 * 2
    assert UNDECLARED in said.out
    assert "the answering model" not in said.out
    declared = (answered / "import.toml").read_text().replace("import =", 'answered_by = "mock"\nimport =')
    (answered / "declared.toml").write_text(declared)
    said = judgekit("run", "declared.toml", "--out", "declared")
    assert UNDECLARED not in said.out
    assert "the model whose answers it predicts" in said.out
    resolved = (answered / "declared" / "resolved.toml").read_text()
    assert 'import = [\n    "app.csv",\n]' in resolved


APP = """
import re
from pathlib import Path

def answer(question, documents):
    with (Path(__file__).parent / "calls").open("a") as calls:
        calls.write(f"{len(documents)} ")
    found = re.search(r"built in (\\d+)", " ".join(one["text"] for one in documents))
    return found[1] if found else "unknown"
"""
ASKED = (
    EXPERIMENT.replace('kind = "judge"', 'kind = "judge"\nendpoint = "local"')
    .replace('kind = "utility"', 'kind = "utility"\nendpoint = "app"')
    .replace("[answers]", '[answers]\nendpoint = "app"')
) + toml(endpoints={"app": {"target": "my_app.py:answer"}})


def calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().split() if (folder / "calls").exists() else []


def test_an_application_answers_end_to_end_and_for_utility_labels_each_question_once(judgekit, folder):
    (folder / "my_app.py").write_text(APP)
    (folder / "asked.toml").write_text(ASKED)
    assert judgekit("run", "asked.toml", "--dry-run").code == 0
    said = judgekit("run", "asked.toml", "--out", "results", code=0)
    quality = read_table(QUALITY, folder / "results" / "answers" / "answer-short.parquet")
    means = quality[quality["metric"] == "em"].groupby(["run", "depth"])["value"].mean()
    assert dict(means) == {("all", 0): 0.0, ("good", 1): 1.0, ("good", 4): 1.0, ("poor", 1): 0.0, ("poor", 4): 0.5}
    first = calls(folder)
    assert len(first) == 6 + 18 + 12, "closed book, each pair of the pool, each list; a list of one is a pair"
    assert UNDECLARED in said.out
    assert "the model whose answers it predicts" in said.out
    assert judgekit("run", "asked.toml", "--out", "again").code == 0
    assert calls(folder) == first, "what it said is in the store"
    (folder / "my_app.py").write_text(APP.replace("unknown", "no idea"))
    assert judgekit("run", "asked.toml", "--out", "changed").code == 0
    assert len(calls(folder)) == 2 * len(first), "another program is asked anew"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("my_app.py:answer", "my_app.py:reply"), "endpoint 'app': "),
        (("my_app.py:answer", "my_app:answer"), r"[endpoints.app.target] must be a file and a function"),
        (('endpoint = "local"', 'endpoint = "app"'), "endpoint 'app' is an application that answers questions"),
        (("[answers]\n", '[answers]\nprompt = "answer-long"\n'), "is an application and takes no prompt"),
    ],
)
def test_what_is_wrong_with_an_application_is_said_before_anything_is_asked(change, message, judgekit, folder):
    (folder / "my_app.py").write_text(APP)
    (folder / "asked.toml").write_text(ASKED.replace(*change))
    assert message in judgekit("run", "asked.toml", "--out", "results", code=2).err
    assert not (folder / "results").exists()


def test_answers_that_an_import_leaves_out_or_leaves_empty_are_counted_as_answers(judgekit, answered):
    lines = (answered / "app.csv").read_text().splitlines()
    run, query_id, _ = lines[1].split(",", 2)
    (answered / "few.csv").write_text("\n".join([lines[0], f"{run},{query_id},", *lines[2:-1], ""]))
    said = judgekit("answer", "--queries", "queries.jsonl", "--import", "few.csv", "--out", "few.out.csv", code=1)
    assert f"few.csv lacks 1 of {len(lines) - 1:,} answers (unasked); the means are over the others" in said.err
    assert "1 answer is missing" in said.err
    assert "add the missing entries to the file" in said.err
    assert "asked for again" not in said.err


def test_a_result_says_of_how_many_answers_the_published_rule_differs(judgekit, folder):
    (folder / "asked.jsonl").write_text(
        '{"query_id": "q1", "text": "How far?", "answers": ["1.5"]}\n'
        '{"query_id": "q2", "text": "Who?", "answers": ["O\'Brien"]}\n'
        '{"query_id": "q3", "text": "Where?", "answers": ["Paris"]}\n'
    )
    (folder / "given.csv").write_text("query_id,answer\nq1,15\nq2,O’Brien\nq3,Paris\n", encoding="utf-8")
    common = ["answer", "--queries", "asked.jsonl", "--import", "given.csv", "--out", "rated.csv"]
    said = judgekit(*common, "--metric", "em", "--metric", "accuracy", code=0)
    assert "em: 2 of 3 values differ under em(norm=squad)" in said.err
    assert "accuracy:" not in said.err
    assert "differ under" not in judgekit(*common, "--metric", "em(norm=squad)", code=0).err


def test_labels_say_of_how_many_pairs_the_rule_by_tokens_differs(judgekit, folder):
    (folder / "asked.jsonl").write_text(
        '{"query_id": "q1", "text": "How far?", "answers": ["3"]}\n'
        '{"query_id": "q2", "text": "Who?", "answers": ["Ann"]}\n'
    )
    (folder / "texts.jsonl").write_text(
        '{"doc_id": "d1", "text": "3,500 km"}\n{"doc_id": "d2", "text": "Ann, 3 times"}\n'
    )
    (folder / "found.csv").write_text("query_id,doc_id,score\nq1,d1,2\nq1,d2,1\nq2,d1,2\nq2,d2,1\n")
    files = ["--queries", "asked.jsonl", "--docs", "texts.jsonl", "--run", "found.csv"]
    said = judgekit("label", "containment", *files, "--out", "found.qrels", code=0)
    assert "containment: 1 of 4 labels differ under containment(norm=squad)" in said.err
    assert (
        "differ under" not in judgekit("label", "containment(norm=squad)", *files, "--out", "other.qrels", code=0).err
    )


def test_a_labeler_of_a_file_is_listed_and_a_file_of_one_llm_and_one_reranker_needs_no_names(judgekit, folder):
    (folder / "mine.py").write_text(
        "import judgekit\nfrom dataclasses import dataclass\n\n\n@dataclass(frozen=True)\n"
        "class Longest(judgekit.Labeler):\n"
        '    """Relevant if it is long."""\n\n    kind = "longest"\n    scale = "binary"\n    least: int = 10\n\n'
        "    def relevance(self, query, doc):\n        return len(doc.text) >= self.least\n"
    )
    assert "mine.py:Longest: Relevant if it is long" in judgekit("list", "labelers", "mine.py:Longest", code=0).out
    assert "unknown labeler 'Shortest'" in judgekit("list", "labelers", "mine.py:Shortest", code=2).err
    llm, ranker = Endpoint("llm", "http://h/v1", "m"), Endpoint("ranker", "http://h/v1", "r", api="rerank")
    found = context_of([llm, ranker], "title+text")
    assert found.endpoint(None) is llm
    assert found.endpoint(None, scores=True) is ranker
    with pytest.raises(ConfigError, match=r"name one of them \(endpoints: llm, other\)"):
        context_of([llm, ranker, replace(llm, name="other")], "title+text").endpoint(None)


def test_means_over_different_queries_are_told_where_runs_are_compared(judgekit, folder):
    (folder / "some.trec").write_text("".join((folder / "good.trec").read_text().splitlines(keepends=True)[:2]))
    runs = ["score", "--run", "good.trec", "--run", "some.trec", "--qrels", "gold.qrels", "--baseline", "good"]
    (folder / "gold.qrels").write_text("q0 0 d0a 1\nq1 0 d1a 1\n")
    note = "--like beir takes each run's mean over other queries: leave it out to compare runs"
    assert note in judgekit(*runs, "--like", "beir", code=0).err
    assert "different queries" not in judgekit(*runs, code=0).err


def test_validators_speak_as_judgekit_does():
    said = {
        "Input should be greater than or equal to 1": "must be greater than or equal to 1",
        "Value error, Name it": "name it",
        "List should have at least 1 item after validation, not 0": "must have at least 1 item, not 0",
        "URL scheme is odd": "URL scheme is odd",
    }
    assert {message: in_our_words(message) for message in said} == said
