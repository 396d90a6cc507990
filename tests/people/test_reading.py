"""Judgments read back: whose, of what, and what they come to."""

from __future__ import annotations

import csv
import io
import json
import re

import pandas as pd
import pytest

from judgekit.data.trec import Asked, write_qrels
from judgekit.errors import DataError, UsageError
from judgekit.people.reading import (
    asked_of,
    assessor_agreement,
    disputed,
    preferences,
    read_judgments,
    read_people,
    resolve,
    write_csv,
    write_label_studio,
)
from judgekit.people.sampling import draw, draw_answers
from judgekit.people.sheet import page_of

THREE = {"assessors": ("ann", "bob", "cem"), "overlap": 3, "prompt": "binary", "design": "pairs"}


def pair(row) -> tuple[str, str]:
    return row["query_id"], row["doc_ids"][0]


@pytest.fixture
def three(collection, truth, judged):
    """Ann is always right, Bob wrong about the first query's documents, Cem skips the last query's."""
    sample = draw(collection, n=40, **THREE)
    files = [
        judged(sample, "ann", lambda row: truth[pair(row)]),
        judged(sample, "bob", lambda row: 1 - truth[pair(row)] if row["query_id"] < "q20" else truth[pair(row)]),
        judged(sample, "cem", lambda row: "skip" if row["query_id"] > "q40" else truth[pair(row)]),
    ]
    return sample, files


def test_the_majority_decides_and_a_tie_is_no_label(three, truth):
    sample, files = three
    people = resolve(read_judgments(files, sample))
    for row in people.labeling.table.itertuples():
        assert row.relevance == truth[row.query_id, row.doc_id]
    ties = resolve(read_judgments(files[:2], sample))
    status = ties.asked.set_index("query_id")["status"]
    assert set(status[status.index < "q20"]) == {"tie"}
    assert set(status[status.index >= "q20"]) == {"ok"}
    assert ties.labeling.table["relevance"].isna().sum() == (status == "tie").sum()


def test_the_rule_is_asked_for_once_with_the_sample(collection, truth, judged):
    sample = draw(collection, n=40, rule="mean", **THREE)
    files = [
        judged(sample, name, lambda row, name=name: truth[pair(row)] ^ (name == "bob")) for name in THREE["assessors"]
    ]
    judgments = read_judgments(files, sample)
    mean = resolve(judgments)
    assert str(mean.labeling.scale) == "unit"
    assert set(mean.labeling.table["relevance"].round(3)) <= {0.333, 0.667}
    bob = resolve(judgments.only(["bob"])).labeling.table
    assert all(row.relevance == 1 - truth[row.query_id, row.doc_id] for row in bob.itertuples())
    assert not disputed(judgments, sample).tasks  # a mean leaves nothing open


def test_ties_wait_for_an_adjudicator_whose_word_counts_there_only(three, truth, judged):
    sample, files = three
    two = read_judgments(files[:2], sample)
    again = disputed(two, sample)
    assert {task.query_id for task in again.tasks} == {t.query_id for t in sample.tasks if t.query_id < "q20"}
    assert set(resolve(two).asked["status"]) == {"ok", "tie"}
    assert page_of(again, "adjudicator")
    word = judged(again, "adjudicator", lambda row: truth[pair(row)])
    people = resolve(read_judgments([*files[:2], word], sample))
    assert set(people.asked["status"]) == {"ok"}
    assert all(row.relevance == truth[row.query_id, row.doc_id] for row in people.labeling.table.itertuples())
    assert not disputed(read_judgments(files, sample), sample).tasks  # two of three are a majority


def test_agreement_recovers_planted_flips(collection, truth, judged):
    sample = draw(collection, n=120, duplicates=0.5, **THREE)
    flipped = {task.task for task in sample.tasks[::4]}
    files = [
        judged(sample, name, lambda row, name=name: truth[pair(row)] ^ (name == "cem" and row["task"] in flipped))
        for name in sample.assessors
    ]
    found = assessor_agreement(read_judgments(files, sample), resamples=200)
    table = found["between"].table
    same = table[(table["coefficient"] == "agreement")].set_index(["first", "second"])["value"]
    once = [task.task for task in sample.tasks if not task.repeat_of]
    share = sum(task in flipped for task in once) / len(once)
    assert same["ann", "bob"] == 1
    assert same["ann", "cem"] == same["bob", "cem"] == pytest.approx(1 - share)
    own = found["self"].table.set_index(["first", "coefficient"])["value"]
    assert own["ann", "agreement"] == 1
    assert own["cem", "agreement"] < 1
    assert set(found["rest"].table["second"]) == {"the others"}


def test_the_best_of_three_is_chosen_of_shown(collection, truth, judged):
    sample = draw(collection, n=10, form="best")

    def best(row):
        relevant = [doc for doc in row["doc_ids"] if truth[row["query_id"], doc]]
        return relevant[0] if relevant else "none"

    people = resolve(read_judgments([judged(sample, "1", best)], sample))
    assert str(people.labeling.scale) == "unit"
    for row in people.labeling.table.itertuples():
        assert row.relevance == 0 or truth[row.query_id, row.doc_id]
    assert people.labeling.table["relevance"].max() == 1


def test_preferences_between_answers_are_answer_quality(collection, judged):
    rows = [(run, 3, q, f"{run} {q}") for run in ("good", "poor") for q in collection.queries]
    quality = pd.DataFrame(rows, columns=["run", "depth", "query_id", "answer"])
    sample = draw_answers(collection, quality, runs=("good", "poor"), depth=3, n=30)
    said = {"q0": "good", "q1": "tie", "q2": "bad", "q3": "poor"}
    table = preferences(
        read_judgments([judged(sample, "1", lambda row: said.get(row["query_id"][:2], "good"))], sample)
    )
    values = table.set_index(["query_id", "run"])["value"]
    for query in {task.query_id for task in sample.tasks}:
        expected = {"q0": (1, 0), "q1": (0.5, 0.5), "q2": (0, 0), "q3": (0, 1)}.get(query[:2], (1, 0))
        assert (values[query, "good"], values[query, "poor"]) == expected
    assert set(table["metric"]) == {"preferred"}
    assert set(table["depth"]) == {3}


def test_an_empty_sheet_is_called_empty(collection, tmp_path):
    (tmp_path / "sheet.csv").write_text("")
    with pytest.raises(DataError, match="is empty; expected a sheet that `judgekit annotate sample` wrote"):
        read_judgments([tmp_path / "sheet.csv"], draw(collection, n=30, **THREE))


def test_csv_goes_out_and_comes_back_byte_for_byte(collection, truth, tmp_path):
    sample = draw(collection, n=30, **THREE)
    path = tmp_path / "sheet.csv"
    text = write_csv(sample)
    rows = list(csv.DictReader(io.StringIO(text)))
    for row in rows:
        row["rating"] = "" if row["query_id"] < "q10" else ["No", "Yes"][truth[row["query_id"], row["doc_id"]]]
        row["skipped"] = "cannot read the text" if row["query_id"] < "q10" else ""
        row["comment"] = "=1+1" if row["query_id"] > "q50" else 'a, "b"\nc'
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(out.getvalue(), newline="")
    judgments = read_judgments([path], sample)
    again = write_csv(sample, judgments.rows)
    path.write_text(again, newline="")
    assert write_csv(sample, read_judgments([path], sample).rows) == again
    people = resolve(judgments)
    assert all(row.relevance == truth[row.query_id, row.doc_id] for row in people.labeling.table.dropna().itertuples())
    assert set(people.asked.loc[people.asked["query_id"] < "q10", "status"]) == {"skipped"}


def test_a_spreadsheet_gets_no_formula():
    from judgekit.data.documents import Doc, Query
    from judgekit.people.tasks import Sample, Task

    evil = ['=HYPERLINK("http://x")', "+1", "-1", "@SUM(A1)", "\tx", "'quoted", "plain"]
    tasks = tuple(Task.of(f"t{i}", Query("q", text), [Doc(f"d{i}", text)], 1.0) for i, text in enumerate(evil))
    sample = Sample("grades", "pairs", "binary", ("No", "Yes"), "", 1, len(evil), 1, tasks=tasks)
    cells = [cell for row in csv.reader(io.StringIO(write_csv(sample))) for cell in row]
    assert not [cell for cell in cells if cell[:1] in tuple("=+-@\t\r")]


def test_a_plain_table_of_query_docid_rating_is_read(collection, truth, tmp_path):
    sample = draw(collection, n=20, design="pairs", prompt="binary")
    rows = [(t.query_id, t.doc_ids[0], truth[t.query_id, t.doc_ids[0]]) for t in sample.tasks]
    path = tmp_path / "dora.csv"
    path.write_text("query,docid,rating\n" + "".join(f"{q},{d},{r}\n" for q, d, r in rows))
    judgments = read_judgments([path], sample)
    assert {row.assessor for row in judgments.rows} == {"dora"}
    assert len(resolve(judgments).labeling) == 20
    path.write_text("query,docid,rating\nq00,strange,1\n")
    with pytest.raises(DataError, match=r"dora\.csv, line 2: query 'q00', doc 'strange' is not in the sample"):
        read_judgments([path], sample)


def test_label_studio_tasks_come_back_annotated(collection, truth, tmp_path):
    sample = draw(collection, n=20, design="pairs", prompt="graded")
    text, config = write_label_studio(sample)
    assert config.count("<Choice ") == 4
    rows = json.loads(text)
    for row in rows:
        grade = sample.grades[3 * truth[row["data"]["query_id"], row["data"]["doc_id"]]]
        said = {"from_name": "rating", "to_name": "text", "type": "choices", "value": {"choices": [grade]}}
        row["annotations"] = [{"completed_by": {"email": "ann@x"}, "result": [said]}]
    path = tmp_path / "export.json"
    path.write_text(json.dumps(rows))
    people = resolve(read_judgments([path], sample))
    assert all(row.relevance == 3 * truth[row.query_id, row.doc_id] for row in people.labeling.table.itertuples())


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda rows: rows[:-1], "was cut off: download it again"),
        (lambda rows: rows[:3] + rows[4:], "was cut off"),
        (lambda rows: [rows[0], rows[1].replace('"value": 0', '"value": 7').replace('"value": 1', '"value": 7'),
                       *rows[2:]], "line 2: grade 7 is outside the scale binary"),
        (lambda rows: [rows[0], rows[1].replace('"probability"', '"chance"'), *rows[2:]], "line 2: lacks 'prob"),
        (lambda rows: [rows[0].replace("judgments", "sample"), *rows[1:]], "line 1: is not judgments"),
        (lambda rows: [rows[0], rows[1][:-5], *rows[2:]], "line 2: is not valid JSON"),
    ],
)  # fmt: skip
def test_a_damaged_download_is_refused_with_its_line(collection, truth, judged, harm, said):
    sample = draw(collection, n=5, design="pairs", prompt="binary")
    path = judged(sample, "1", lambda row: truth[pair(row)])
    path.write_text("\n".join(harm(path.read_text().splitlines())) + "\n")
    with pytest.raises(DataError, match=said):
        read_judgments([path], sample)


def test_files_that_do_not_belong_together_are_refused(collection, truth, judged, tmp_path):
    one = draw(collection, n=5, design="pairs", prompt="binary")
    other = draw(collection, n=5, design="pairs", prompt="binary", seed=2)
    files = [judged(s, "1", lambda row: truth[pair(row)], f"{i}.jsonl") for i, s in enumerate((one, other))]
    with pytest.raises(DataError, match=r"1\.jsonl, line 1: belongs to another sample than the one given"):
        read_judgments(files, one)
    with pytest.raises(DataError, match="belongs to another sample than the one given"):
        read_judgments(files[:1], other)
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(files[0].read_bytes())
    with pytest.raises(DataError, match=r"is judged by assessor '1' in .*0\.jsonl as well"):
        read_judgments([files[0], copy], one)
    (tmp_path / "x.csv").write_text("task,rating\n")
    with pytest.raises(DataError, match="has the columns task, rating; expected"):
        read_judgments([tmp_path / "x.csv"], one)
    with pytest.raises(UsageError, match="hold no judgment"):
        read_judgments([], one)


@pytest.mark.parametrize(
    ("at", "key", "value", "said"),
    [
        (1, "doc_ids", ["q00d0"], "the doc_ids"),
        (1, "query_id", "q59", "the query_id 'q59'"),
        (1, "task", "t99999", "task 't99999' is not in the sample"),
        (1, "task", True, "must be texts"),
        (1, "repeat_of", "t00001", "the repeat_of 't00001'"),
        (1, "content", "0123456789abcdef", "the content"),
        (1, "probability", 1e-9, "the probability 1e-09"),
        (1, "probability", True, "the probability True"),
        (1, "key", "k0123456789abcdef", "the key is not theirs"),
        (1, "value", True, "true is not a grade"),
        (1, "value", float("nan"), "is not finite"),
        (1, "seconds", -1, "seconds are -1"),
        (1, "seconds", "9", "seconds are '9'"),
        (1, "comment", 3, "must be texts"),
        (1, "relevance", 1, "has 'relevance'"),
        (0, "assessor", "bob", "was not given to assessor 'bob'"),
        (0, "assessor", None, "has another assessor"),
        (0, "scale", "unit", "has another scale"),
        (0, "pairs", 9, "has another pairs"),
        (0, "sample", "0123456789abcdef", "another sample"),
    ],
)
def test_only_what_was_said_is_taken_from_a_download(collection, truth, judged, at, key, value, said):
    options = {"n": 5, "design": "pairs", "prompt": "binary", "assessors": ("ann", "bob"), "overlap": 1}
    sample = draw(collection, **options)
    path = judged(sample, "ann", lambda row: truth[pair(row)])
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert rows[at].get(key) is not value
    rows[at][key] = value
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=re.escape(said)):
        read_judgments([path], sample)


def test_tasks_of_two_assessors_cannot_be_swapped_in_a_download(collection, truth, judged):
    sample = draw(collection, n=6, design="pairs", prompt="binary", assessors=("ann", "bob"))
    files = [judged(sample, name, lambda row: truth[pair(row)]) for name in ("ann", "bob")]
    ann, bob = (path.read_text().splitlines() for path in files)
    ann[1], bob[1] = bob[1], ann[1]
    files[0].write_text("\n".join(ann) + "\n")
    with pytest.raises(DataError, match=r"line 2: task 't\d+' was not given to assessor 'ann'"):
        read_judgments(files[:1], sample)


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("query_id", "q59", "the query_id 'q59'"),
        ("doc_id", "q00d0", "the doc_id 'q00d0'"),
        ("assessor", "bob", "was not given to assessor 'bob'"),
        ("task", "t00003", "the query_id"),
        ("key", "", "the key is not theirs"),
        ("sample", "x", "another sample"),
        ("rating", "true", "'true' is not a grade"),
    ],
)
def test_only_what_was_said_is_taken_from_a_spreadsheet(collection, tmp_path, column, value, said):
    sample = draw(collection, n=5, design="pairs", prompt="binary", assessors=("ann",))
    rows = list(csv.DictReader(io.StringIO(write_csv(sample))))
    rows[0][column] = value
    with (tmp_path / "sheet.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    with pytest.raises(DataError, match=re.escape(said)):
        read_judgments([tmp_path / "sheet.csv"], sample)


@pytest.mark.parametrize("name", ["sample", "task", "key", "query_id", "doc_id"])
def test_only_what_was_said_is_taken_from_label_studio(collection, tmp_path, name):
    sample = draw(collection, n=5, design="pairs", prompt="binary")
    rows = json.loads(write_label_studio(sample)[0])
    rows[0]["data"][name] = "changed"
    said = {"from_name": "rating", "value": {"choices": ["Yes"]}}
    rows[0]["annotations"] = [{"completed_by": 1, "result": [said]}]
    (tmp_path / "export.json").write_text(json.dumps(rows))
    with pytest.raises(DataError, match=r"another sample|changed|the key is not theirs"):
        read_judgments([tmp_path / "export.json"], sample)


def test_labels_stand_beside_what_was_asked_and_are_tied_to_the_texts(collection, three, tmp_path):
    from judgekit.data.documents import Doc, MemoryDocs
    from judgekit.stages import Collection

    sample, files = three
    judgments = read_judgments(files, sample)
    people = resolve(judgments)
    write_qrels(people.labeling, tmp_path / "people.qrels")
    asked_of(judgments, people).write(tmp_path / "people.qrels")
    read = read_people(tmp_path / "people.qrels", collection)
    pd.testing.assert_frame_equal(read.asked, people.asked)
    pd.testing.assert_frame_equal(
        read.labeling.table[["query_id", "doc_id", "relevance"]],
        people.labeling.table[["query_id", "doc_id", "relevance"]],
    )
    changed = MemoryDocs(Doc(doc.doc_id, doc.text + "!", doc.title) for doc in collection.docs)
    with pytest.raises(DataError, match="the text is not the one that people judged"):
        read_people(
            tmp_path / "people.qrels", Collection(collection.queries, changed, collection.runs, collection.depth)
        )
    (tmp_path / "people.qrels.sample.json").write_text('{"judgekit": "people"}')
    with pytest.raises(DataError, match="does not list the questions"):
        Asked.beside(tmp_path / "people.qrels")


def test_the_human_labeler_takes_what_was_not_sampled_for_not_judged(three, tmp_path):
    from judgekit.data.tables import Status
    from judgekit.kinds import Context
    from judgekit.labelers.base import build

    sample, files = three
    judgments = read_judgments(files, sample)
    people = resolve(judgments)
    write_qrels(people.labeling, tmp_path / "people.qrels")
    asked_of(judgments, people).write(tmp_path / "people.qrels")
    from judgekit.data.documents import Doc, Query, Unit

    labeler = build("human(file=people.qrels)", Context(base=tmp_path))
    query, doc = people.asked.iloc[0][["query_id", "doc_id"]]
    labels = labeler.label(Unit(Query(query, "?"), (Doc(doc, ""), Doc("not-sampled", ""))), ())
    assert [label.status for label in labels] == [Status.OK, Status.UNASKED]
