import shutil
from pathlib import Path

import pandas as pd
import pytest

from judgekit.data.outputs import is_results_folder
from judgekit.experiment.run import prepare, result_files
from tests.mock import URL
from tests.small import Judgekit, edited

MOCK = ["--endpoint", URL, "--model", "mock", "--cache", "store"]
DATA = ["--queries", "queries.jsonl", "--docs", "docs.jsonl", "--run", "good.trec"]
PEOPLE = ["label", "provenance(qrels=gold.qrels)", *DATA]

ANSWER = ["answer", "--run", "good.trec", *MOCK, "--depth", "1", "--queries"]
COMMANDS = {
    "a query file": ([*PEOPLE, "--out", "queries.jsonl"], "queries.jsonl"),
    "a labeler's qrels": ([*PEOPLE, "--out", "gold.qrels"], "gold.qrels"),
    "the same by another path": ([*PEOPLE, "--out", "../{folder}/gold.qrels"], "gold.qrels"),
    "a hard link to it": ([*PEOPLE, "--out", "hard"], "gold.qrels"),
    "the missing labels beside its qrels": ([*PEOPLE, "--out", "gold.txt"], "gold.missing.tsv"),
    "the table beside the labels": (
        ["label", "human(file=x.qrels.parquet)", *DATA, "--out", "x.qrels"],
        "x.qrels.parquet",
    ),
    "a prompt": (["label", "judge(prompt=mine.toml)", *DATA, *MOCK, "--out", "mine.toml"], "mine.toml"),
    "a part of a folder of documents": (
        [*ANSWER, "queries.jsonl", "--docs", "parts", "--out", "parts/new.parquet"],
        "parts",
    ),
    "qrels that are scored": (
        ["score", "--run", "good.trec", "--qrels", "labels.csv", "--out", "labels.csv"],
        "labels.csv",
    ),
    "scores that are compared": (
        ["compare", "--scores", "scores.csv", "--quality", "quality.csv", "--out", "scores.csv"],
        "scores.csv",
    ),
    "a batch over the queries": (
        ["batch", "export", "experiment.toml", "--out", "queries.jsonl"],
        "queries.jsonl",
    ),
}


@pytest.fixture
def inputs(folder: Path, judgekit: Judgekit) -> Path:
    """The folder of the experiment with one more input of every kind."""
    (folder / "hard").hardlink_to(folder / "gold.qrels")
    (folder / "gold.missing.tsv").write_text("query_id\tdoc_id\tstatus\nq0\td0b\tfailed\n")
    shutil.copy(folder / "gold.qrels", folder / "labels.csv")
    pd.DataFrame({"query_id": ["q0"], "doc_id": ["d0a"], "relevance": [1]}).to_parquet(folder / "x.qrels.parquet")
    (folder / "mine.toml").write_text(judgekit("list", "prompts", "binary").out)
    (folder / "parts").mkdir()
    pd.read_json(folder / "docs.jsonl", lines=True).to_parquet(folder / "parts" / "part-00000.parquet")
    (folder / "scores.csv").write_text("labeling,run,measure,query_id,value\nl,good,AP,q0,0\nl,good,AP,q1,1\n")
    (folder / "quality.csv").write_text("run,depth,model,query_id,metric,value\ngood,5,m,q0,em,0\ngood,5,m,q1,em,1\n")
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file() and "store" not in p.parts}


@pytest.mark.parametrize(("command", "kept"), COMMANDS.values(), ids=COMMANDS)
def test_no_command_writes_over_what_it_reads(judgekit, inputs, command, kept):
    before = files(inputs)
    said = judgekit(*(part.format(folder=inputs.name) for part in command), code=2)
    assert "is an input of this command" in said.err
    assert kept in said.err
    assert files(inputs) == before


def test_an_experiment_run_into_its_own_folder_keeps_every_file(judgekit, folder):
    edited(folder / "experiment.toml", "[data]", "# my notes\n[data]")
    before = files(folder)
    for _ in range(2):
        judgekit("run", "experiment.toml", "--out", ".", "--cache", "store", code=0)
    assert (folder / "report.html").exists()
    assert files(folder).items() >= before.items()


RUN = ["run", "experiment.toml", "--cache", "store", "--out"]


def test_files_with_the_names_of_results_are_kept_where_judgekit_wrote_none(judgekit, folder):
    (folder / "mine" / "labels").mkdir(parents=True)
    (folder / "mine" / "labels" / "judge.qrels").write_text("q0 0 d0a 1\n")
    (folder / "mine" / "scores.parquet").write_text("my own")
    (folder / "mine" / "report.json").write_text('{"tests": []}\n')
    (folder / "mine" / "manifest.json").write_text('{"name": "my web app"}\n')
    before = files(folder)
    assert not is_results_folder(folder / "mine")
    said = judgekit(*RUN, "mine", code=2)
    assert "manifest.json and 3 more would be replaced" in said.err
    assert "--overwrite" in said.err
    assert files(folder) == before
    assert not (folder / "store").exists()
    judgekit(*RUN, "mine", "--overwrite", code=0)
    assert (folder / "mine" / "scores.parquet").read_bytes() != b"my own"


def test_results_of_another_experiment_or_of_more_questions_are_kept(judgekit, finished):
    before = files(finished / "out")
    shutil.copy(finished / "experiment.toml", finished / "other.toml")
    other = ["run", "other.toml", *RUN[2:], "out"]
    said = judgekit(*other, code=2)
    assert f"out holds results of another experiment ({finished / 'experiment.toml'})" in said.err
    edited(finished / "experiment.toml", "depth = 4", "depth = 4\nlimit = 4")
    said = judgekit(*RUN, "out", code=2)
    assert "out holds results of 2 questions that this run does not ask ('q4' is one)" in said.err
    assert "--overwrite" in said.err
    assert files(finished / "out") == before
    judgekit(*RUN, "out", "--overwrite", code=0)
    edited(finished / "experiment.toml", "\nlimit = 4", "")
    judgekit(*other, "--overwrite", code=0)


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
def test_a_run_keeps_its_input_in_the_place_of_a_result_whatever_the_user_says(judgekit, folder, overwrite):
    (folder / "labels").mkdir()
    (folder / "labels" / "people.qrels").write_bytes((folder / "gold.qrels").read_bytes())
    labeler = '[[labelers]]\nname = "people"\nkind = "provenance"\nqrels = "labels/people.qrels"\n[answers]'
    edited(folder / "experiment.toml", "[answers]", labeler)
    before = files(folder)
    said = judgekit("run", "experiment.toml", "--out", ".", "--cache", "store", *overwrite, code=2)
    assert "labels/people.qrels is an input" in said.err
    assert files(folder) == before


def test_a_run_writes_no_file_that_it_has_not_checked_also_after_one_that_was_killed(judgekit, finished):
    whole = {str(path.relative_to(finished / "out")) for path in map(Path, files(finished / "out"))}
    assert whole <= {*result_files(prepare(finished / "experiment.toml")), "manifest.json"}
    for path in (finished / "out").iterdir():  # killed between its labels and its scores
        if path.is_file() and path.name != "resolved.toml":
            path.unlink()
    judgekit(*RUN, "out", code=0)
    assert {str(path.relative_to(finished / "out")) for path in map(Path, files(finished / "out"))} == whole


LABEL = ["label", "containment", "--queries", "queries.jsonl", "--docs", "docs.jsonl", "--run", "good.trec", "--out"]


def test_a_file_of_somebody_else_is_named_before_it_is_replaced(judgekit, folder):
    (folder / "found.qrels").write_text("my own notes")
    note = "note: found.qrels is replaced, although no manifest says that judgekit wrote it"
    assert note in judgekit(*LABEL, "found.qrels", code=0).err
    # From now on it is ours, until somebody edits it.
    assert "is replaced" not in judgekit(*LABEL, "found.qrels", code=0).err
    with (folder / "found.qrels").open("a") as file:
        file.write("q0 0 mine 1\n")
    assert note in judgekit(*LABEL, "found.qrels", code=0).err


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("queries.jsonl/found.qrels", "queries.jsonl is a file, not a folder"),
        ("/dev/null", "is a pipe or a device: name a file to write"),
        (".", "is a folder: name a file to write"),
    ],
)
def test_an_output_that_cannot_be_written_is_told_before_anything_is_asked(judgekit, folder, out, message):
    (folder / "people.qrels").write_text("q0 0 d0a 1\nq0 0 d0b 0\n")
    served = ["--endpoint", "http://127.0.0.1:9/v1", "--model", "m"]
    commands = [
        ["judge-test", "judge", "--qrels", "people.qrels", *LABEL[2:-1], *served],
        ["label", "judge", *LABEL[2:-1], *served],
    ]
    for command in commands:
        assert message in judgekit(*command, "--out", out, code=2).err
    assert not (folder / "store").exists()
