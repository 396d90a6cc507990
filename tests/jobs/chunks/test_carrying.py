"""Labels carried to another cut of the collection: known ones stay, and nothing is guessed."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from sklearn.metrics import cohen_kappa_score

import judgekit as jk
from judgekit.data.labelings import Labeling, Scale
from judgekit.errors import DataError, UsageError
from tests.commands import Judgekit
from tests.mock import URL

WORDS = [f"w{number}" for number in range(400)]


def labeling(rows: dict[tuple[str, str], float], scale: str = "binary") -> Labeling:
    import pandas as pd

    table = pd.DataFrame([(q, d, v) for (q, d), v in rows.items()], columns=["query_id", "doc_id", "relevance"])
    return Labeling("people", Scale.parse(scale), table.astype({"relevance": "float64"}))


def docs(**texts: str) -> list[dict[str, str]]:
    return [{"doc_id": name, "text": text} for name, text in texts.items()]


def carried(rows: dict[tuple[str, str], float], old: list, new: list, scale: str = "binary") -> dict[str, float]:
    made = jk.carry(labeling(rows, scale), old, new)
    return dict(zip(made.labeling.table["doc_id"], made.labeling.table["relevance"], strict=True))


def words(first: int, behind: int) -> str:
    return " ".join(WORDS[first:behind])


def test_the_same_text_has_the_same_label_whatever_its_id_case_and_marks() -> None:
    old = docs(a=words(0, 30), b=words(30, 60))
    new = docs(x=words(0, 30).upper(), y=words(30, 60).replace(" ", ",  "))
    assert carried({("q", "a"): 3, ("q", "b"): 0}, old, new, "grades:3:2") == {"x": 3.0, "y": 0.0}


@pytest.mark.parametrize(
    ("first", "behind", "label"),
    [
        (0, 60, 1.0),  # holds the relevant passage
        (3, 45, 1.0),  # holds 27 of its 30 words
        (4, 45, None),  # holds 26
        (5, 25, None),  # lies in it: perhaps in the part that says nothing
        (32, 58, 0.0),  # lies in the one that is not relevant
        (33, 63, 0.0),  # three words at its end are of no judged passage: fewer than are compared
        (36, 70, None),  # more than that is not
        (200, 230, None),
    ],
)
def test_a_passage_is_relevant_if_it_holds_a_relevant_one_and_not_relevant_only_as_a_whole(
    first: int, behind: int, label: float | None
) -> None:
    old = docs(a=words(0, 30), b=words(30, 60))
    found = carried({("q", "a"): 1, ("q", "b"): 0}, old, docs(x=words(first, behind)))
    assert found == ({} if label is None else {"x": label})


def test_two_judged_passages_cover_a_new_one_together() -> None:
    old = docs(a=words(0, 30), b=words(30, 60))
    assert carried({("q", "a"): 0, ("q", "b"): 1}, old, docs(x=words(10, 50)), "grades:3:2") == {"x": 1.0}


def test_a_smaller_share_may_be_asked_for() -> None:
    old, rows, new = docs(a=words(0, 30)), labeling({("q", "a"): 1}), docs(x=words(0, 15), y=words(0, 14))
    assert jk.carry(rows, old, new, share=0.5).labeling.table["doc_id"].tolist() == ["x"]
    for share in (0, 1.1, float("nan")):
        with pytest.raises(UsageError, match="above 0 and at most 1"):
            jk.carry(rows, old, new, share=share)


def test_labels_stay_with_their_question_and_their_page() -> None:
    old = [{"doc_id": "a", "text": words(0, 30), "page_id": "p"}]
    new = [{"doc_id": "x", "text": words(0, 30), "page_id": "p"}, {"doc_id": "y", "text": words(0, 30), "page_id": "r"}]
    made = jk.carry(labeling({("q1", "a"): 1, ("q2", "a"): 0}), old, new)
    rows = made.labeling.table[["query_id", "doc_id", "relevance"]].to_numpy().tolist()
    assert rows == [["q1", "x", 1.0], ["q2", "x", 0.0]]


def test_what_is_left_is_counted() -> None:
    old = docs(a=words(0, 30), b=words(30, 60), c=words(60, 90))
    rows = {("q", "a"): 1.0, ("q", "b"): 1.0, ("q", "c"): 0.0, ("q", "gone"): 1.0}
    made = jk.carry(labeling(rows), old, docs(x=words(0, 12), y=words(45, 100), z=words(52, 70), v=words(60, 80)))
    assert (made.same, made.relevant, made.not_relevant) == (0, 0, 1)
    assert made.open == (("q", "x"), ("q", "y"), ("q", "z"))
    assert made.lost == (("q", "a"), ("q", "b"))
    assert made.unknown == ("gone",)
    assert jk.carry(labeling(rows), old, docs(x=words(0, 30))).lost == (("q", "b"),)


def test_scripts_without_spaces_are_compared_by_character() -> None:
    text = "京都の金閣寺は一三九七年に建てられた寺院である"
    new = docs(x=f"{text}。有名な寺である", y="東京は日本の首都である")
    assert carried({("q", "a"): 1}, docs(a=text), new) == {"x": 1.0}


def test_documents_that_were_never_judged_here_are_refused() -> None:
    with pytest.raises(DataError, match=r"none of the 1 judged documents is among the old documents, e\.g\. 'a'"):
        jk.carry(labeling({("q", "a"): 1}), docs(b="x"), docs(x="x"))


@given(st.lists(st.integers(0, 1), min_size=4, max_size=12), st.integers(10, 60), st.integers(0, 20))
def test_no_label_contradicts_the_text_that_was_judged(grades: list[int], size: int, shift: int) -> None:
    page = [f"w{number}" for number in range(30 * len(grades))]
    old = [{"doc_id": f"o{i}", "text": " ".join(page[30 * i : 30 * i + 30])} for i in range(len(grades))]
    spans = [(start, min(start + size, len(page))) for start in range(shift, len(page), size)]
    new = [{"doc_id": f"n{i}", "text": " ".join(page[a:b])} for i, (a, b) in enumerate(spans)]
    found = carried({("q", f"o{i}"): grade for i, grade in enumerate(grades)}, old, new)
    for i, (start, end) in enumerate(spans):
        shared = [max(0, min(end, 30 * o + 30) - max(start, 30 * o)) for o in range(len(grades))]
        holds = any(grade and n >= 27 for grade, n in zip(grades, shared, strict=True))
        touches = any(grade and n >= 5 for grade, n in zip(grades, shared, strict=True))
        if f"n{i}" not in found:
            assert touches or end - start < 5
        elif found[f"n{i}"]:
            assert holds
        else:
            assert not holds


def test_passages_cut_anew_three_ways_keep_their_labels() -> None:
    rng = random.Random(7)
    pages = [[rng.choice(WORDS) for _ in range(300)] for _ in range(40)]
    for number, page in enumerate(pages):
        page[rng.randrange(300)] = f"answer{number}"

    def cut(name: str, size: int, step: int) -> list[dict[str, str]]:
        return [
            {"doc_id": f"{name}-{p}-{start}", "text": " ".join(page[start : start + size]), "page_id": f"p{p}"}
            for p, page in enumerate(pages)
            for start in range(0, 300, step)
        ]

    def fresh(passages: list[dict[str, str]]) -> dict[tuple[str, str], float]:
        labels = {}
        for doc in passages:
            number = doc["page_id"].removeprefix("p")
            labels[f"q{number}", doc["doc_id"]] = float(f"answer{number}" in doc["text"].split())
        return labels

    old = cut("old", 60, 45)
    for name, size, step, least in (("shifted", 60, 60, 0.7), ("large", 150, 150, 0.9), ("small", 30, 20, 0.7)):
        new = cut(name, size, step)
        made = jk.carry(labeling(fresh(old)), old, new).labeling.table
        truth = fresh(new)
        pairs = list(zip(made["query_id"], made["doc_id"], strict=True))
        wrong = sum(truth[pair] != label for pair, label in zip(pairs, made["relevance"], strict=True))
        # Small pieces of a relevant passage have no label, so that only one label is left and kappa says nothing.
        if name == "small":
            assert wrong == 0
        else:
            assert cohen_kappa_score([truth[pair] for pair in pairs], made["relevance"].tolist()) >= 0.9, name
        assert len(pairs) >= least * len(new), name


def test_the_command_says_what_still_lacks_a_label(
    tmp_path: Path, judgekit: Judgekit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, made in (("old", docs(a=words(0, 30), b=words(30, 60))), ("new", docs(x=words(0, 30), y=words(25, 80)))):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in made))
    (tmp_path / "old.qrels").write_text("q 0 a 2\nq 0 b 0\n")
    (tmp_path / "new.trec").write_text("q Q0 x 1 2 r\nq Q0 y 2 1 r\n")
    given = ["old.qrels", "--docs", "old.jsonl", "--docs", "new.jsonl", "--scale", "grades:3", "--run", "new.trec"]
    done = judgekit("carry", *given, "--out", "new.qrels")
    assert done.code == 0
    assert (tmp_path / "new.qrels").read_text() == "q 0 x 2\n"
    assert "1 of the runs' 2 pairs at depth 10 still lack a label (50%)" in done.err
    assert "1 passages share text with a judged one" in done.err
    once = judgekit("carry", *given[:3], "--out", "other.qrels")
    assert (once.code, "give --docs twice" in once.err) == (2, True)


def test_carried_labels_are_of_the_new_documents(folder: Path, judgekit: Judgekit) -> None:
    """Made by judgekit from the old ones; a command that uses them with the new ones finds nothing amiss."""
    rows = [json.loads(line) for line in (folder / "docs.jsonl").read_text().splitlines()]
    cut = "".join(json.dumps(row | {"doc_id": f"new {row['doc_id']}".replace(" ", "-")}) + "\n" for row in rows)
    (folder / "new.jsonl").write_text(cut)
    run = (folder / "good.trec").read_text().replace(" d", " new-d")
    (folder / "new.trec").write_text(run)
    common = ("--queries", "queries.jsonl", "--depth", "4")
    judgekit(
        "label", "containment", *common, "--docs", "docs.jsonl", "--run", "good.trec", "--out", "old.qrels", code=0
    )
    carried = judgekit(
        "carry", "old.qrels", "--docs", "docs.jsonl", "--docs", "new.jsonl", "--out", "new.qrels", code=0
    )
    server = ("--endpoint", URL, "--model", "mock")
    used = ("label", "judge", *common, "--docs", "new.jsonl", "--run", "new.trec", "--known", "new.qrels", *server)
    for said in (carried, judgekit(*used, "--out", "judged.qrels", code=0)):
        assert "different docs" not in said.err
    elsewhere = (
        "label",
        "judge",
        *common,
        "--docs",
        "docs.jsonl",
        "--run",
        "good.trec",
        "--known",
        "new.qrels",
        *server,
    )
    said = judgekit(*elsewhere, "--out", "other.qrels")
    assert said.code == 2
    assert "are both about the same documents?" in said.err
