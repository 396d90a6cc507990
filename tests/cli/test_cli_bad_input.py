import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mock import URL
from tests.small import EXPERIMENT, FILES, QUICK, RUNS, edited, toml

RUN = ["run", "experiment.toml", "--out", "results"]
DRY = ["run", "experiment.toml", "--dry-run"]
SCORE = ["score", "--run", "good.trec", "--qrels", "gold.qrels"]
DATA = ["--queries", "queries.jsonl", "--docs", "docs.jsonl", "--run", "good.trec"]
JUDGE = ["label", "judge", *DATA, "--out", "x.qrels"]
MOCK = ["--endpoint", URL, "--model", "mock"]
Change = Callable[[Path], object]


def _nothing(folder: Path) -> None:
    """The command itself is wrong."""


def _edit(name: str, old: str, new: str) -> Change:
    return lambda folder: edited(folder / name, old, new)


def _write(name: str, text: str) -> Change:
    return lambda folder: (folder / name).write_text(text)


def _append(name: str, text: str) -> Change:
    return lambda folder: (folder / name).write_text((folder / name).read_text() + text)


def _remove(name: str) -> Change:
    return lambda folder: (folder / name).unlink()


def _no_references(folder: Path) -> None:
    queries = folder / "queries.jsonl"
    queries.write_text(re.sub(r', "answers": \[[^]]*\]', "", queries.read_text()))


def _trusted(**tables: object) -> Change:
    """An experiment without answers whose outcome is a labeling that exists, with other tables in the place of some."""
    gold = {"name": "gold", "kind": "provenance", "qrels": "gold.qrels"}
    given = {
        "data": FILES | {"depth": 3},
        "runs": RUNS,
        "labelers": [gold],
        "answers": {"outcome": "gold", "depths": [3]},
        "analysis": QUICK | {"primary": "nDCG@3"},
    }

    def change(folder: Path) -> None:
        _no_references(folder)
        (folder / "experiment.toml").write_text(toml(**(given | tables)))

    return change


CASES: dict[str, tuple[Change, list[str], list[str]]] = {
    "experiment file missing": (_remove("experiment.toml"), RUN, ["experiment.toml", "no such file; expected an experiment file"]),
    "qrels missing": (_remove("gold.qrels"), SCORE, ["gold.qrels"]),
    "a query line that is not JSON": (_append("queries.jsonl", "{nope\n"), RUN, ["queries.jsonl", "line 7"]),
    "a pair twice in a run": (_append("good.trec", "q0 Q0 d0a 1 9.0 x\n"), RUN, ["good", "q0", "d0a", "twice"]),
    "fractions without a scale": (_edit("gold.qrels", "d0a 1", "d0a 0.5"), SCORE, ["gold", "--scale"]),
    "one pair of brackets": (_write("experiment.toml", EXPERIMENT.split("[[labelers]]")[0] + '[labelers]\nkind = "containment"\n'), RUN, ["experiment.toml: [labelers] write [[labelers]], with two brackets"]),
    "no reference answers": (_no_references, RUN, ["answers.metrics", "no query has any"]),
    "results into a file": (_nothing, [*RUN[:3], "gold.qrels"], ["gold.qrels", "need a folder"]),
    "a limit without prices": (_nothing, [*RUN, "--max-cost", "1"], ["a cost limit needs the price of the model 'mock'", "[prices.'mock']"]),
    "a label with a limit without prices": (_nothing, [*JUDGE, *MOCK, "--max-cost", "1", "--dry-run"], ["--max-cost needs prices", "[prices.'mock']"]),
    "two runs of one name": (_nothing, [*SCORE, "--run", "good.trec"], ["good.trec", "named"]),
    "one file under two names in options": (_nothing, ["score", "--run", "a=good.trec", "--run", "b=good.trec", "--qrels", "gold.qrels"], ["--run b=good.trec: 'a' is the same file"]),
    "a run without a file": (_nothing, ["score", "--run", "good=", "--qrels", "gold.qrels"], ["good=", "file name is missing"]),
    "half an endpoint": (_nothing, [*JUDGE, "--model", "m"], ["--model sets an option of a server: name the server with --endpoint"]),
    "a table of another kind": (_nothing, [*SCORE, "--out", "scores.xlsx"], ["scores.xlsx", ".parquet"]),
    "qrels of other queries": (_edit("gold.qrels", "q", "topic"), SCORE, ["qrels 'gold' list none of the queries and documents of good"]),
    "one of several qrels is foreign": (_write("other.qrels", "q0 0 elsewhere 1\n"), [*SCORE, "--qrels", "other.qrels"], ["qrels 'other' list none of the queries and documents of good"]),
    "qrels with ids in capitals": (_write("gold.qrels", "Q0 0 D0A 1\n"), SCORE, ["the same spelling of ids"]),
    "a folder that holds no results": (_nothing, ["report", "."], ["holds no report.json: give the folder that judgekit run wrote"]),
    "a run and a folder to guard": (lambda folder: (folder / "results").mkdir(), ["guard", "good.trec", "results", "--qrels", "gold.qrels"], ["results: is a folder without Parquet parts (*.parquet): give a file"]),
    "no store": (_nothing, ["cache"], ["holds no store: set JUDGEKIT_CACHE"]),
    "nothing said of what to forget": (_nothing, ["cache", "forget"], ["name the replies to forget by --query"]),
    "an address": (_nothing, ["score", "--run", "https://example.org/bm25.trec", "--qrels", "gold.qrels"], ["Download it first"]),
    "a name that is too long": (_edit("experiment.toml", '"docs.jsonl"', f'"{"docs" * 100}.jsonl"'), DRY, ["docsdocs' is not the name of a file: File name too long"]),
    "an outcome as the only labeling": (_trusted(), RUN, ["[labelers] the outcome is the order of the runs under gold", "add a labeler to compare with it, such as a judge"]),
    "a misspelt measure beside an outcome as the only labeling": (_trusted(analysis={"primary": "nDGC@3"}), RUN, ["[analysis.primary] unknown measure 'nDGC'", "Did you mean 'nDCG'?"]),
    "a misspelt measure in a choice": (_trusted(analysis={"primary": "nDGC@3"}), ["choose", "experiment.toml", "--margin", "2"], ["[analysis.primary] unknown measure 'nDGC'"]),
    "a misspelt measure in a plan": (_trusted(analysis={"primary": "nDGC@3"}), ["plan", "experiment.toml"], ["experiment.toml: [analysis.primary] unknown measure 'nDGC'"]),
    "a misspelt outcome": (_trusted(answers={"outcome": "glod", "depths": [3]}), RUN, ["[answers.outcome] unknown outcome 'glod'", "Did you mean 'gold'?"]),
    "a misspelt outcome in a plan": (_trusted(answers={"outcome": "glod", "depths": [3]}), ["plan", "experiment.toml"], ["Did you mean 'gold'?"]),
    "a depth in words": (_trusted(data=FILES | {"depth": "five"}), RUN, ["[data.depth] must be a whole number, not 'five'"]),
    "a run where qrels are expected": (_nothing, [*SCORE[:3], "--qrels", "good.trec"], ["good.trec, line 1: has 6 columns, expected 4", "That is a line of a run: were two files swapped?"]),
    "qrels where a run is expected": (_nothing, ["score", "--run", "gold.qrels", *SCORE[3:]], ["gold.qrels, line 1", "That is a line of judgments: were two files swapped?"]),
    "docs where queries are expected": (_nothing, ["label", "containment", "--queries", "docs.jsonl", *JUDGE[4:]], ["docs.jsonl, line 1", "this query lacks the field 'query_id'"]),
    "queries where a run is expected": (_nothing, ["score", "--run", "queries.jsonl", *SCORE[3:]], ["queries.jsonl, line 1", "this row lacks the field 'doc_id'"]),
    "UTF-16": (lambda folder: (folder / "gold.qrels").write_text("q0 0 d0a 1\n", encoding="utf-16"), SCORE, ["gold.qrels: is UTF-16 text", "iconv -f UTF-16 -t UTF-8 OLD > NEW"]),
    "a picture to convert": (lambda folder: (folder / "run.png").write_bytes(b"\x89PNG\r\n"), ["convert", "run.png", "run.trec"], ["run.png: is a picture; expected a TREC run"]),
    "an experiment to convert": (_nothing, ["convert", "experiment.toml", "run.trec"], ["is an experiment file, by its name; expected a TREC run"]),
    "a folder to run": (_nothing, ["run", "."], ["is a folder; expected an experiment file: give experiment.toml"]),
    "a folder to plan": (lambda folder: (folder / "sub").mkdir(), ["plan", "sub"], ["judgekit init makes one of a folder with data"]),
    "a run to run": (_nothing, ["run", "good.trec"], ["good.trec: is not TOML", "expected an experiment file"]),
    "a file to report": (_nothing, ["report", "good.trec"], ["good.trec: is a file: give the folder that judgekit run wrote"]),
    "lists of pandas": (_write("queries.jsonl", "query_id,text,answers\nq0,When?,\"['1412']\"\n"), ["label", "containment", *JUDGE[2:]], ["queries.jsonl, line 2", "is not a JSON list", "pandas: write the table with to_json"]),
    "recorded replies of other data": (_nothing, [*JUDGE, "--endpoint", "recorded:"], ["recorded replies belong to the bundled sample", "name the address of a server"]),
    "an endpoint with an unquoted value": (_nothing, [*JUDGE, "--endpoint", "l(base_url=http://h/v1?a=1)"], ["Put a value that holds '=' into quotes", "An endpoint is an address, or name(key=value, ...)"]),
    "a pointer of Git LFS": (_write("good.trec", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"), SCORE, ["good.trec: is a pointer of Git LFS", "git lfs pull"]),
    "a path of Windows in double quotes": (_edit("experiment.toml", '"docs.jsonl"', '"C:\\Users\\docs.jsonl"'), DRY, ["is not TOML", "between single quotes", "forward slashes"]),
    "a column's name with brackets": (_nothing, ["score", "--run", "csv(score=rating (1-5)):good.csv", "--qrels", "gold.qrels"], ["put a name that holds spaces, brackets or commas into quotes"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bad_input_ends_in_a_sentence(name, judgekit, folder):
    change, command, words = CASES[name]
    change(folder)
    said = judgekit(*command, code=2)
    assert "Traceback" not in said.err
    assert all(word in said.err for word in words), said.err
    assert not (folder / "results" / "report.html").exists()


def test_scores_without_values_per_query_are_refused_with_the_option_that_helps(judgekit, folder):
    judgekit(*SCORE, "--out", "means.csv", code=0)
    (folder / "quality.csv").write_text("run,depth,model,query_id,metric,value\ngood,5,m,q0,em,1\ngood,5,m,q1,em,0\n")
    assert "--per-query" in judgekit("compare", "--scores", "means.csv", "--quality", "quality.csv", code=2).err


@pytest.mark.parametrize("out", ["answers.txt", "results"])
def test_a_target_that_cannot_be_written_is_refused_before_anything_is_sent(judgekit, folder, out):
    (folder / "results").mkdir()
    assert out in judgekit("answer", *DATA, *MOCK, "--depth", "2", "--cache", "store", "--out", out, code=2).err
    assert not (folder / "store").exists()


def test_a_depth_beyond_all_lists_means_whole_lists(judgekit, folder):
    for out, depth in (("deep.qrels", 10**20), ("whole.qrels", 3)):
        judgekit("label", "containment", *DATA, "--out", out, "--depth", depth, code=0)
    assert (folder / "deep.qrels").read_text() == (folder / "whole.qrels").read_text()


def test_ranks_that_contradict_scores_are_said_by_every_command_that_reads_runs(judgekit, folder):
    rows = [line.split() for line in (folder / "good.trec").read_text().splitlines()]
    body = [f"{q} Q0 {d} {4 - int(float(s))} {-float(s)} x\n" for q, _, d, _, s, _ in rows]
    (folder / "good.trec").write_text("".join(body))
    for command in (SCORE, ["label", "containment", *JUDGE[2:]], DRY, RUN, ["convert", "good.trec", "other.trec"]):
        said = judgekit(*command, code=0)
        assert "run 'good' (" in said.err
        assert "its scores contradict its ranks (always the next rank has the higher score)" in said.err
    assert "its scores contradict its ranks" in (folder / "results" / "report.html").read_text()
