"""`init` proposes an outcome that tells the answers apart, and takes ratings beside the answers."""

import json

import pytest

from judgekit.experiment.file import load
from judgekit.setup.telling import Told

QUESTIONS = range(20)


@pytest.fixture
def place(tmp_path):
    """An empty folder."""
    folder = tmp_path / "tables"
    folder.mkdir()
    return folder


def right_of(run, number):
    return number % 4 != 0 if run == "dense" else number % 2 == 0


def tables(folder, said, reference=lambda number: f"Person {number}"):
    """Write a table of ragas for each of two runs, whose answers ``said`` words."""
    for run in ("bm25", "dense"):
        rows = []
        for number in QUESTIONS:
            passages = [f"Hall {number} was built by Person {number}.", f"Hall {number} is near {run}."]
            row = {"user_input": f"Who built hall {number}?", "retrieved_contexts": passages, "faithfulness": 0.5}
            answer = said(number, right_of(run, number))
            rows.append({**row, "response": answer, "reference": reference(number)})
        (folder / f"{run}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def in_a_sentence(number, right):
    return f"It was built by Person {number}, I think." if right else "It was built in 1920, I think."


def test_answers_in_sentences_are_not_compared_word_by_word(place, judgekit):
    tables(place, in_a_sentence)
    said = judgekit("init", place, code=0)
    assert "scores of ragas, no labels and not used: faithfulness" in said.out
    answers = load(place / "experiment.toml").answers
    assert (answers.outcome, answers.metrics, answers.ratings) == ("contains", ["contains", "f1"], [])
    differ = sum(right_of("bm25", number) != right_of("dense", number) for number in QUESTIONS)
    text = (place / "experiment.toml").read_text()
    assert f"the reference stands in the answer: tells the runs apart on {differ} of 20 questions" in text
    assert 'outcome = "em"' not in text, "no answer is the reference"
    ran = judgekit("run", place / "experiment.toml", "--out", place / "results", code=0)
    assert "dense" in ran.out
    assert "every answer of every run" not in ran.out


def test_answers_that_meet_the_reference_are_compared_word_by_word(place, judgekit):
    tables(place, lambda number, right: f"Person {number}" if right else "I don't know.")
    judgekit("init", place, code=0)
    assert load(place / "experiment.toml").answers.outcome == "em"


def test_long_references_are_compared_by_common_words(place, judgekit):
    def sentence(number):
        return f"The hall was built by Person {number} in the year 19{number:02} for the town"

    tables(place, lambda number, right: sentence(number)[4:] if right else "Nobody can say so today.", sentence)
    judgekit("init", place, code=0)
    assert load(place / "experiment.toml").answers.outcome == "f1"


def test_an_outcome_that_is_the_same_for_all_answers_is_refused(place, judgekit):
    tables(place, lambda number, right: "Nobody knows.")
    said = judgekit("init", place, code=0)
    answers = load(place / "experiment.toml").answers
    assert (answers.outcome, answers.metrics) == ("correct", ["correct"])
    assert "Without an LLM nothing tells these answers apart" in (place / "experiment.toml").read_text()
    assert "Fill in base_url and model of your server" in said.out


@pytest.mark.parametrize(("rated", "outcome"), [(6, "contains"), (20, "rating")])
def test_ratings_stand_beside_the_answers(rated, outcome, place, judgekit):
    tables(place, in_a_sentence)
    thumbs = [
        f"Who built hall {number}?,{run},{'up' if right_of(run, number) else 'down'}\n"
        for number in range(rated)
        for run in ("bm25", "dense")
    ]
    (place / "thumbs.csv").write_text("user_input,run,thumb\n" + "".join(thumbs))
    judgekit("init", place, code=0)
    config = load(place / "experiment.toml")
    assert config.answers.outcome == outcome
    assert config.answers.imported == ["bm25.jsonl", "dense.jsonl"]
    assert config.answers.metrics == ["contains", "f1"]
    assert config.answers.ratings
    text = (place / "experiment.toml").read_text()
    assert ("people's ratings of 12 of 40 answers" in text) == (rated == 6)
    judgekit("run", place / "experiment.toml", "--out", place / "results", code=0)


def test_several_files_of_answers_with_a_depth_stand_beside_ratings(place, judgekit):
    questions = [{"id": f"q{n}", "question": f"Who built hall {n}?", "answers": [f"Person {n}"]} for n in QUESTIONS]
    passages = [{"id": f"d{n}", "text": f"Hall {n} was built by Person {n}."} for n in QUESTIONS]
    for name, rows in (("questions", questions), ("passages", passages)):
        (place / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    thumbs = ["query_id,run,value"]
    for shift, run in enumerate(("bm25", "dense")):
        (place / f"{run}.trec").write_text("".join(f"q{n} Q0 d{(n + shift) % 20} 1 1.0 {run}\n" for n in QUESTIONS))
        answers = [f"q{n},{run},1,{in_a_sentence(n, right_of(run, n))!r}" for n in QUESTIONS]
        (place / f"{run}-answers.csv").write_text("query_id,run,depth,answer\n" + "\n".join(answers).replace("'", '"'))
        thumbs += [f"q{n},{run},{'up' if right_of(run, n) else 'down'}" for n in QUESTIONS]
    (place / "thumbs.csv").write_text("\n".join(thumbs))
    judgekit("init", place, code=0)
    answers = load(place / "experiment.toml").answers
    assert (answers.ratings, answers.imported) == (["thumbs.csv"], ["bm25-answers.csv", "dense-answers.csv"])


def test_one_answer_of_a_hundred_does_not_choose_exact_match():
    assert Told(100, {"em": 1, "contains": 40, "f1": 90, "rouge-l": 90}).order(2) == ["contains", "em", "f1", "rouge-l"]
    assert Told(100, {"em": 20, "contains": 40, "f1": 90, "rouge-l": 90}).order(2)[0] == "em"
    assert Told(100, {"em": 0, "contains": 0, "f1": 3, "rouge-l": 0}).order(2) == ["f1"]
    assert Told(100, {"em": 9, "contains": 9, "f1": 3, "rouge-l": 5}).order(20)[0] == "rouge-l"


def test_ids_that_no_two_rows_share_are_not_those_of_repeated_questions(place, judgekit):
    tables(place, in_a_sentence)
    rows = []
    for run in ("bm25", "dense"):
        rows += [json.loads(line) for line in (place / f"{run}.jsonl").read_text().splitlines()]
        (place / f"{run}.jsonl").unlink()
    both = place / "both.jsonl"
    both.write_text("".join(json.dumps({"id": f"row{number}", **row}) + "\n" for number, row in enumerate(rows)))
    said = judgekit("init", place, code=2)
    assert "its 40 rows ask 20 questions, but no two share an id ('row0')" in said.err
    runs = ["bm25"] * 20 + ["dense"] * 20
    both.write_text("".join(json.dumps({"run": run, **row}) + "\n" for run, row in zip(runs, rows, strict=True)))
    said = judgekit("init", place, code=0)
    assert "2 runs, each written to a file: imported/bm25.jsonl, imported/dense.jsonl" in said.out
    assert load(place / "experiment.toml").runs.keys() == {"bm25", "dense"}


def test_two_files_that_number_their_questions_anew_share_them(place, judgekit):
    tables(place, in_a_sentence)
    for first, run in ((0, "bm25"), (100, "dense")):
        path = place / f"{run}.jsonl"
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        path.write_text("".join(json.dumps({"id": f"i{first + n}", **row}) + "\n" for n, row in enumerate(rows)))
    said = judgekit("init", place, code=0)
    assert "results for 20 questions of bm25.jsonl, found by their text: written to imported/dense.jsonl" in said.out
    judgekit("run", place / "experiment.toml", "--out", place / "results", code=0)
