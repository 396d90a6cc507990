"""Whatever is wrong with the input ends in a sentence that says what and where, and in exit code 2."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mock import URL

RUN = ["run", "experiment.toml", "--out", "results"]
SCORE = ["score", "--run", "good.trec", "--qrels", "gold.qrels"]
LABEL = ["label", "--queries", "queries.jsonl", "--docs", "docs.jsonl", "--run", "good.trec", "--out", "x.qrels", "--base-url", URL, "--model", "mock"]  # fmt: skip
Change = Callable[[Path], object]


def _edit(name: str, old: str, new: str) -> Change:
    def change(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1))

    return change


def _remove(name: str) -> Change:
    return lambda folder: (folder / name).unlink()


def _append(name: str, text: str) -> Change:
    return lambda folder: (folder / name).write_text((folder / name).read_text() + text)


CASES: list[tuple[str, Change, list[str], list[str]]] = [
    ("experiment file missing", _remove("experiment.toml"), RUN, ["experiment.toml", "no such file; expected an experiment file"]),
    ("queries missing", _remove("queries.jsonl"), RUN, ["queries.jsonl"]),
    ("docs missing", _remove("docs.jsonl"), RUN, ["docs.jsonl"]),
    ("run missing", _remove("good.trec"), RUN, ["good.trec"]),
    ("qrels missing", _remove("gold.qrels"), SCORE, ["gold.qrels"]),
    ("a query line that is not JSON", _append("queries.jsonl", "{nope\n"), RUN, ["queries.jsonl", "line 7"]),
    ("a doc line without text", _append("docs.jsonl", '{"doc_id": "x"}\n'), RUN, ["docs.jsonl", "line 19", "text"]),
    ("a run line with five columns", _append("good.trec", "q0 Q0 d0a 1 2.0\n"), RUN, ["good.trec", "line 19"]),
    ("a score that is not a number", _append("good.trec", "q0 Q0 d5a 1 high x\n"), RUN, ["good.trec", "line 19", "high"]),
    ("a score that is NaN", _append("good.trec", "q0 Q0 d5a 1 nan x\n"), RUN, ["good.trec", "line 19", "nan"]),
    ("a pair twice in a run", _append("good.trec", "q0 Q0 d0a 1 9.0 x\n"), RUN, ["good", "q0", "d0a", "twice"]),
    ("an unknown query", _append("good.trec", "q9 Q0 d0a 1 9.0 x\n"), RUN, ["good", "q9"]),
    ("an unknown doc", _append("good.trec", "q0 Q0 d99 1 9.0 x\n"), RUN, ["good", "d99"]),
    ("an empty run", lambda f: (f / "good.trec").write_text(""), RUN, ["good", "empty"]),
    ("a pair twice in the qrels", _append("gold.qrels", "q0 0 d0a 1\n"), SCORE, ["gold", "q0", "d0a", "twice"]),
    ("a qrels line too short", _append("gold.qrels", "q0 0 d0a\n"), SCORE, ["gold.qrels", "line 7"]),
    ("an unknown key", _edit("experiment.toml", "depths =", "depth ="), RUN, ["answers.depth", "Did you mean 'depths'?"]),
    ("a wrong type", _edit("experiment.toml", "depth = 4", 'depth = "four"'), RUN, ["data.depth", "'four'"]),
    ("an unknown labeler", _edit("experiment.toml", '"judge"\nkind = "judge"', '"judge"\nkind = "jugde"'), RUN, ["labelers.1", "jugde", "Did you mean 'judge'?"]),
    ("an unknown option", _edit("experiment.toml", 'kind = "judge"', 'kind = "judge"\npromt = "binary"'), RUN, ["labelers.1", "promt", "Did you mean 'prompt'?"]),
    ("an unknown prompt", _edit("experiment.toml", 'kind = "judge"', 'kind = "judge"\nprompt = "binry"'), RUN, ["labelers.1", "binry", "binary"]),
    ("an unknown endpoint", _edit("experiment.toml", 'kind = "judge"', 'kind = "judge"\nendpoint = "lokal"'), RUN, ["lokal", "Did you mean 'local'?"]),
    ("an unknown measure", _edit("experiment.toml", '"nDCG", "P"', '"nDGC"'), RUN, ["metrics.measures", "nDGC", "nDCG"]),
    ("an unknown answer metric", _edit("experiment.toml", "depths = [1, 4]", 'depths = [1, 4]\nmetrics = ["emm"]'), RUN, ["answers", "emm"]),
    ("a primary measure that is not computed", _edit("experiment.toml", "resamples = 100", 'resamples = 100\nprimary = "R@4"'), RUN, ["analysis.primary", "R@4"]),
    ("a variable that is not set", _edit("experiment.toml", f'"{URL}"\nmodel = "mock"', '"http://127.0.0.1:9/v1"\nmodel = "m"\napi_key_env = "JK_NO_SUCH_KEY"'), RUN, ["JK_NO_SUCH_KEY"]),
    ("two labelers of one name", _append("experiment.toml", ""), ["score", "--run", "good.trec", "--run", "good.trec", "--qrels", "gold.qrels"], ["good.trec", "named"]),
    ("half an endpoint", _append("experiment.toml", ""), ["label", "judge", "--queries", "queries.jsonl", "--docs", "docs.jsonl", "--run", "good.trec", "--out", "x.qrels", "--model", "m"], ["--base-url and --model"]),
    ("no endpoint", _append("experiment.toml", ""), ["label", "judge", "--queries", "queries.jsonl", "--docs", "docs.jsonl", "--run", "good.trec", "--out", "x.qrels"], ["endpoint"]),
    ("a scale for unknown qrels", _append("gold.qrels", ""), [*SCORE, "--scale", "golf=binary"], ["golf", "Did you mean 'gold'?"]),
    ("a folder that holds no results", _append("gold.qrels", ""), ["report", "."], ["results folder"]),
    ("a file that is not a results folder", _append("gold.qrels", ""), ["report", "gold.qrels"], ["gold.qrels", "results folder"]),
    ("a misspelt table", _edit("experiment.toml", "[data]", "[dat]"), RUN, ["[dat]", "Did you mean 'data'?"]),
    ("a misspelt needed key", _edit("experiment.toml", "depth = 4", "dept = 4"), RUN, ["data.dept", "Did you mean 'depth'?"]),
    ("an option given twice", _edit("experiment.toml", 'kind = "judge"', 'kind = "judge(prompt=graded)"\nprompt = "binary"'), RUN, ["labelers.1", "'prompt' is given twice"]),
    ("no model", _edit("experiment.toml", '"mock"', '""'), RUN, ["endpoints.local.model", "empty"]),
    ("a labeler without a name", _edit("experiment.toml", 'name = "judge"', 'name = " "'), RUN, ["labelers.1", "name is empty"]),
    ("labelers whose names differ in case only", _edit("experiment.toml", 'kind = "containment"', 'kind = "containment"\nname = "Judge"'), RUN, ["labelers", "'Judge' and 'judge'", "rename one of them"]),
    ("a run without a name", _edit("experiment.toml", 'good = "good.trec"', '"" = "good.trec"'), RUN, ["[runs]", "name of a run is empty"]),
    ("no reference answers", lambda f: (f / "queries.jsonl").write_text(re.sub(r', "answers": \[[^]]*\]', "", (f / "queries.jsonl").read_text())), RUN, ["answers.metrics", "no query has any"]),
    ("a cutoff beyond all bounds", _append("gold.qrels", ""), [*SCORE, "-m", "nDCG@99999999999999999999"], ["nDCG@99999999999999999999", "cutoff from 1"]),
    ("a run without a file", _append("gold.qrels", ""), ["score", "--run", "good=", "--qrels", "gold.qrels"], ["good=", "file name is missing"]),
    ("a table of another kind", _append("gold.qrels", ""), [*SCORE, "--out", "scores.xlsx"], ["scores.xlsx", ".parquet"]),
    ("results into a file", _append("gold.qrels", ""), ["run", "experiment.toml", "--out", "gold.qrels"], ["gold.qrels", "need a folder"]),
    ("no store", _append("gold.qrels", ""), ["cache", "stats", "--cache", "nowhere"], ["nowhere holds no store"]),
    ("fractions without a scale", _edit("gold.qrels", "d0a 1", "d0a 0.5"), SCORE, ["gold", "--scale"]),
]  # fmt: skip


@pytest.mark.parametrize(("change", "command", "words"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_bad_input_ends_in_a_sentence(judgekit, folder, change, command, words):
    change(folder)
    said = judgekit(*command, code=2)
    assert "Traceback" not in said.err
    for word in words:
        assert word in said.err
    assert not (folder / "results" / "report.html").exists()


def test_scores_without_values_per_query_are_refused_with_the_option_that_helps(judgekit, folder):
    assert judgekit(*SCORE, "--out", "means.csv").code == 0
    (folder / "quality.csv").write_text("run,depth,model,query_id,metric,value\ngood,5,m,q0,em,1\ngood,5,m,q1,em,0\n")
    assert "--per-query" in judgekit("compare", "--scores", "means.csv", "--quality", "quality.csv", code=2).err


@pytest.mark.parametrize("out", ["answers.txt", "results"])
def test_a_target_that_cannot_be_written_is_refused_before_anything_is_sent(judgekit, folder, out):
    (folder / "results").mkdir()
    said = judgekit("answer", *LABEL[1:7], *LABEL[9:], "--depth", "2", "--cache", "store", "--out", out, code=2)
    assert out in said.err
    assert not (folder / "store").exists()


def test_a_depth_beyond_all_lists_means_whole_lists(judgekit, folder):
    command = ["label", "containment", *LABEL[1:7], "--out"]
    assert judgekit(*command, "deep.qrels", "--depth", 10**20).code == 0
    assert judgekit(*command, "whole.qrels", "--depth", 3).code == 0
    assert (folder / "deep.qrels").read_text() == (folder / "whole.qrels").read_text()


def test_a_run_that_lacks_queries_is_named_beside_the_decision(judgekit, folder):
    lines = (folder / "poor.trec").read_text().splitlines(keepends=True)
    (folder / "poor.trec").write_text("".join(line for line in lines if line.startswith(("q0 ", "q1 "))))
    assert "poor returns nothing for 4 of 6 queries" in judgekit(*RUN, code=0).out
