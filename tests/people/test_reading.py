"""Judgments read back: whose, of what, and what they come to."""

import csv
import io
import json
import re
from dataclasses import is_dataclass, replace
from pathlib import Path

import pandas as pd
import pytest

from judgekit.context import Context
from judgekit.data.documents import Doc, MemoryDocs, Query, Unit
from judgekit.data.tables import Status
from judgekit.data.trec import Asked, write_qrels
from judgekit.errors import DataError, UsageError
from judgekit.labelers.base import build
from judgekit.people import correct, deciding, final, reading, tasks
from judgekit.people.reading import (
    People,
    asked_of,
    assessor_agreement,
    disputed,
    read_judgments,
    read_people,
    resolve,
    write_csv,
)
from judgekit.people.sampling import Handout, draw
from judgekit.people.sheet import page_of
from judgekit.people.tasks import Sample, Task

THREE = ("ann", "bob", "cem")
BINARY = {"prompt": "binary", "design": "pairs"}


def agrees(people: People, truth) -> bool:
    """Return whether all labels that there are are true."""
    rows = people.labeling.table.dropna(subset="relevance").itertuples()
    return all(row.relevance == truth[row.query_id, row.doc_id] for row in rows)


def write_rows(path: Path, rows: list[dict[str, str]], delimiter: str = ",") -> None:
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), delimiter=delimiter, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def three(collection, truth, judged):
    """Ann is always right, Bob wrong about the first query's documents, Cem skips the last query's."""
    sample = draw(collection, n=40, **BINARY, handout=Handout(THREE, 3))
    files = [
        judged(sample, "ann"),
        judged(sample, "bob", lambda row, true: true ^ (row["query_id"] < "q20")),
        judged(sample, "cem", lambda row, true: "skip" if row["query_id"] > "q40" else true),
    ]
    return sample, files


def test_the_majority_decides_and_a_tie_is_no_label(three, truth):
    sample, files = three
    assert agrees(resolve(read_judgments(files, sample)), truth)
    ties = resolve(read_judgments(files[:2], sample))
    status = ties.asked.set_index("query_id")["status"]
    assert set(status[status.index < "q20"]) == {"tie"}
    assert set(status[status.index >= "q20"]) == {"ok"}
    assert ties.labeling.table["relevance"].isna().sum() == (status == "tie").sum()
    assert set(ties.asked["judgments"]) == {2}


def test_the_rule_is_asked_for_once_with_the_sample(collection, truth, judged):
    sample = draw(collection, n=40, **BINARY, handout=Handout(THREE, 3, rule="mean"))
    files = [judged(sample, name, lambda _, true, name=name: true ^ (name == "bob")) for name in THREE]
    judgments = read_judgments(files, sample)
    mean = resolve(judgments)
    assert str(mean.labeling.scale) == "unit"
    assert set(mean.labeling.table["relevance"].round(3)) <= {0.333, 0.667}
    assert agrees(resolve(read_judgments([files[1]], sample)), {pair: 1 - label for pair, label in truth.items()})
    assert not disputed(judgments, sample).tasks  # a mean leaves nothing open


def test_ties_wait_for_an_adjudicator_whose_word_counts_there_only(three, truth, judged):
    sample, files = three
    two = read_judgments(files[:2], sample)
    again = disputed(two, sample)
    assert {task.query_id for task in again.tasks} == {t.query_id for t in sample.tasks if t.query_id < "q20"}
    assert set(resolve(two).asked["status"]) == {"ok", "tie"}
    assert page_of(again, "adjudicator")
    people = resolve(read_judgments([*files[:2], judged(again, "adjudicator")], sample))
    assert set(people.asked["status"]) == {"ok"}
    assert agrees(people, truth)
    assert not disputed(read_judgments(files, sample), sample).tasks  # two of three are a majority


def test_agreement_recovers_planted_flips(collection, truth, judged):
    sample = draw(collection, n=120, **BINARY, handout=Handout(THREE, 3, duplicates=0.5))
    flipped = {task.task for task in sample.tasks[::4]}
    files = [
        judged(sample, name, lambda row, true, name=name: true ^ (name == "cem" and row["task"] in flipped))
        for name in sample.assessors
    ]
    judgments = read_judgments(files, sample)
    assert set(assessor_agreement(read_judgments(files[:1], sample), resamples=200)) == {"self"}
    found = assessor_agreement(judgments, resamples=200)
    table = found["between"]
    same = table[(table["coefficient"] == "agreement")].set_index(["first", "second"])["value"]
    once = [task.task for task in sample.tasks if not task.repeat_of]
    share = sum(task in flipped for task in once) / len(once)
    assert same["ann", "bob"] == 1
    assert same["ann", "cem"] == same["bob", "cem"] == pytest.approx(1 - share)
    own = found["self"].set_index(["first", "coefficient"])["value"]
    assert own["ann", "agreement"] == 1
    assert own["cem", "agreement"] < 1


def test_the_best_of_three_is_chosen_of_shown(collection, people_of):
    sample = draw(collection, n=10, form="best")
    skipped, *chosen = sample.tasks
    people = people_of(sample, lambda row, _: "skip" if row["task"] == skipped.task else max(row["doc_ids"]))
    shown = [(task.query_id, doc, doc == max(task.doc_ids)) for task in chosen for doc in task.doc_ids]
    share = pd.DataFrame(shown, columns=["query_id", "doc_id", "relevance"]).groupby(["query_id", "doc_id"]).mean()
    assert str(people.labeling.scale) == "unit"
    assert people.labeling.table["relevance"].dropna().tolist() == share["relevance"].tolist()


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_goes_out_and_comes_back_filled_in(collection, truth, tmp_path, delimiter):
    sample = draw(collection, n=30, **BINARY, handout=Handout(THREE, 3))
    path = tmp_path / "sheet.csv"
    rows, comment = list(csv.DictReader(io.StringIO(write_csv(sample)))), 'a, "b"' + ";" * 20 + "\nc"
    for row in rows:
        row["rating"] = "" if row["query_id"] < "q10" else ["No", "Yes"][truth[row["query_id"], row["doc_id"]]]
        row["skipped"] = "cannot read the text" if row["query_id"] < "q10" else ""
        row["comment"] = "'=1+1" if row["query_id"] > "q50" else comment
    write_rows(path, rows, delimiter)
    judgments = read_judgments([path], sample)
    assert len(judgments.rows) == len(rows) == 90
    people = resolve(judgments)
    assert agrees(people, truth)
    assert set(people.asked.loc[people.asked["query_id"] < "q10", "status"]) == {"skipped"}
    left_to_decide = {task.query_id for task in disputed(judgments, sample).tasks}
    assert left_to_decide == {task.query_id for task in sample.tasks if task.query_id < "q10"}


def test_a_spreadsheet_gets_no_formula():
    evil = ['=HYPERLINK("http://x")', "+1", "-1", "@SUM(A1)", "\tx", "'quoted", "plain"]
    tasks = tuple(Task.of(f"t{i}", Query("q", text), [Doc(f"d{i}", text)], 1.0) for i, text in enumerate(evil))
    sample = Sample("grades", "pairs", "binary", ("No", "Yes"), "", 1, len(evil), 1, tasks=tasks)
    assert sample.key(tasks[0], "Zoë") == "kf6e2d130629609ce", "as in every sample that was ever written"
    cells = [cell for row in csv.reader(io.StringIO(write_csv(sample))) for cell in row]
    assert not [cell for cell in cells if cell[:1] in tuple("=+-@\t\r")]


def test_a_sheet_holds_nothing_that_a_terminal_obeys_or_that_turns_a_line_around():
    text = "plain\x1b[2J \u202eevil\u202c \x9b5m end\nnext line"
    task = Task.of("t1", Query("q", text), [Doc("d1", text, text)], 1.0)
    sheet = write_csv(Sample("grades", "pairs", "binary", ("No", "Yes"), "", 1, 1, 1, tasks=(task,)))
    assert not set("\x1b\u202e\u202c\x9b") & set(sheet)
    assert sheet.count("plain␛[2J ⟨U+202E⟩evil⟨U+202C⟩ ⟨U+009B⟩5m end\nnext line") == 3


def test_a_damaged_download_is_refused_with_its_line(collection, judged):
    path = judged(draw(collection, n=5, design="pairs", prompt="binary"), "1")
    rows = path.read_text().splitlines()
    for harmed, said in (
        (rows[:-1], "line 6: was cut off: download it again"),
        (rows[:3] + rows[4:], "was cut off"),
        ([rows[0], rows[1].replace('"value"', '"chance"'), *rows[2:]], "line 2: lacks 'value'"),
        ([rows[0], rows[1][:-5], *rows[2:]], "line 2: is not valid JSON"),
    ):
        path.write_text("\n".join(harmed) + "\n")
        with pytest.raises(DataError, match=said):
            read_judgments([path], draw(collection, n=5, design="pairs", prompt="binary"))


def test_files_that_do_not_belong_together_are_refused(collection, judged, tmp_path):
    one = draw(collection, n=5, design="pairs", prompt="binary")
    other = draw(collection, n=5, design="pairs", prompt="binary", handout=Handout(seed=2))
    files = [judged(s, "1", name=f"{i}.jsonl") for i, s in enumerate((one, other))]
    copy, other_columns, empty = (tmp_path / name for name in ("copy.jsonl", "other.csv", "empty.csv"))
    copy.write_bytes(files[0].read_bytes())
    other_columns.write_text("task,rating\nt1,Yes\n")
    empty.write_text("")
    for given, said in (
        (files, r"1\.jsonl, line 1: belongs to another sample than the one given"),
        ([files[0], copy], r"is judged by assessor '1' in .*0\.jsonl as well"),
        ([other_columns], "has the columns task, rating; expected a sheet"),
        ([empty], "is empty; expected a sheet that `judgekit annotate sample` wrote"),
    ):
        with pytest.raises(DataError, match=said):
            read_judgments(given, one)
    with pytest.raises(UsageError, match="hold no judgment"):
        read_judgments([], one)


@pytest.mark.parametrize(
    ("at", "key", "value", "said"),
    [
        (1, "doc_ids", ["q00d0"], "the doc_ids"),
        (1, "query_id", "q59", "the query_id 'q59'"),
        (1, "task", "t99999", "task 't99999' is not in the sample"),
        (1, "key", "k0123456789abcdef", "the key is not theirs"),
        (1, "value", True, "true is not a grade"),
        (1, "value", 7, "line 2: grade 7 is outside the scale binary"),
        (1, "value", float("nan"), "is not finite"),
        (1, "seconds", -1, "seconds are -1"),
        (1, "seconds", "9", "seconds are '9'"),
        (0, "judgekit", "a sample", "line 1: is not judgments"),
        (0, "assessor", "bob", "was not given to assessor 'bob'"),
        (0, "sample", "0123456789abcdef", "another sample"),
    ],
)
def test_only_what_was_said_is_taken_from_a_download(collection, judged, at, key, value, said):
    options = {"n": 5, **BINARY, "handout": Handout(("ann", "bob"))}
    sample = draw(collection, **options)
    path = judged(sample, "ann")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert rows[at].get(key) is not value
    rows[at][key] = value
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=re.escape(said)):
        read_judgments([path], sample)


def test_only_what_was_said_is_taken_from_a_spreadsheet(collection, tmp_path):
    sample = draw(collection, n=5, design="pairs", prompt="binary", handout=Handout(assessors=("ann",)))
    for column, value, said in (
        ("query_id", "q59", ": import the column as text"),
        ("key", "", "the key is not theirs"),
        ("sample", "x", "another sample"),
        ("rating", "true", "'true' is not a grade"),
    ):
        rows = list(csv.DictReader(io.StringIO(write_csv(sample))))
        rows[0][column] = value
        write_rows(tmp_path / "sheet.csv", rows)
        with pytest.raises(DataError, match=re.escape(said)):
            read_judgments([tmp_path / "sheet.csv"], sample)


def test_labels_stand_beside_what_was_asked_and_are_tied_to_the_texts(collection, three, tmp_path):
    sample, files = three
    judgments = read_judgments(files, sample)
    people = resolve(judgments)
    write_qrels(people.labeling, tmp_path / "people.qrels")
    asked_of(judgments, people).write(tmp_path / "people.qrels")
    read = read_people(tmp_path / "people.qrels", collection)
    pd.testing.assert_frame_equal(read.asked, people.asked)
    columns = ["query_id", "doc_id", "relevance"]
    pd.testing.assert_frame_equal(read.labeling.table[columns], people.labeling.table[columns])
    labeler = build("human(file=people.qrels)", Context(base=tmp_path))
    query, doc = people.asked.iloc[0][["query_id", "doc_id"]]
    labels = labeler.label(Unit(Query(query, "?"), (Doc(doc, ""), Doc("not-sampled", ""))), ())
    assert [label.status for label in labels] == [Status.OK, Status.UNASKED]
    changed = MemoryDocs(Doc(doc.doc_id, doc.text + "!", doc.title) for doc in collection.docs)
    fewer = {query_id: one for query_id, one in collection.queries.items() if query_id != query}
    for other, said in (
        ({"docs": changed}, "the text differs from the one that people judged"),
        ({"queries": fewer}, f"query '{query}' is not in this experiment"),
        ({"runs": tuple(run.cut(0) for run in collection.runs)}, "is not in the pool of the experiment's runs"),
    ):
        with pytest.raises(DataError, match=said):
            read_people(tmp_path / "people.qrels", replace(collection, **other))
    with pytest.raises(DataError, match="no such file; expected labels"):
        read_people(tmp_path / "none.qrels", collection)
    (tmp_path / "people.qrels.sample.json").write_text('{"judgekit": "people"}')
    with pytest.raises(DataError, match="does not list the questions"):
        Asked.beside(tmp_path / "people.qrels")


def test_values_are_frozen():
    for module in (correct, deciding, final, reading, tasks):
        own = [one for one in vars(module).values() if is_dataclass(one) and one.__module__ == module.__name__]
        assert all(one.__dataclass_params__.frozen for one in own)
