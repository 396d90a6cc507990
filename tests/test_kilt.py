"""The recipe for real KILT works on a made-up one: passages, experiments, the paper's cells beside one's own."""

import json
import re
import shlex
import shutil
import tomllib
from pathlib import Path

import pandas as pd
import pytest

from tests.commands import in_process, script

KILT = Path(__file__).parent.parent / "examples" / "kilt"
SETS = ("nq", "triviaqa", "hotpotqa", "fever", "wow")
PUBLISHED = {
    "NQ": (96, 26.039),
    "TriviaQA": (96, 24.879),
    "HotpotQA": (96, 28.369),
    "FEVER": (72, 10.856),
    "WoW": (56, 5.315),
}
"""How many cells of the paper's Table 1 have a value, and their sum; each was compared with the paper's."""


@pytest.fixture
def kilt(tmp_path: Path) -> Path:
    """A folder as the README makes it, with two pages and one question for each data set."""
    long = " ".join(f"word{n}" for n in range(150))
    texts = {"12": ["Ada\n", "Section::::Life.\n", "BULLET::::- a\n", long], "7": ["Bo\n", "Bo was born in Rome.\n"]}
    pages = [{"wikipedia_id": i, "wikipedia_title": text[0].strip(), "text": text} for i, text in texts.items()]
    (tmp_path / "source.json").write_text("".join(json.dumps(page) + "\n" for page in pages))
    script(KILT / "passages.py").main(str(tmp_path / "source.json"), str(tmp_path / "passages.jsonl"))
    for name in SETS:
        shutil.copy(KILT / f"{name}.toml", tmp_path)
        experiment = tomllib.loads((KILT / f"{name}.toml").read_text())
        output = [{"answer": "Rome", "provenance": [{"wikipedia_id": "7", "title": "Bo"}]}]
        query = {"id": f"{name}_1", "input": "Where was Bo born?", "output": output}
        (tmp_path / experiment["data"]["queries"]).write_text(json.dumps(query) + "\n")
        for path in experiment["runs"].values():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text("".join(f"{name}_1 Q0 {doc} {doc} {9 - doc} x\n" for doc in range(3)))
    return tmp_path


def test_passages_hold_100_words_of_a_page_and_are_numbered_over_all_pages(kilt: Path) -> None:
    made = [json.loads(line) for line in (kilt / "passages.jsonl").read_text().splitlines()]
    told = [(one["doc_id"], one["page_id"], len(one["text"].split())) for one in made]
    assert told == [("0", "12", 100), ("1", "12", 52), ("2", "7", 6)]
    assert made[0]["text"].startswith("Ada Section:Life. word0 ")
    assert made[2] == {"doc_id": "2", "title": "Bo", "text": "Bo Bo was born in Rome.", "page_id": "7"}


@pytest.mark.parametrize("name", SETS)
def test_the_experiment_is_planned(kilt: Path, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    said = in_process(capfd)("run", kilt / f"{name}.toml", "--dry-run", code=0)
    requests = {row[0]: row[1:3] for row in re.findall(r"^label (\w+) +(\d+) +(\d+)", said.out, re.M)}
    judge = tomllib.loads((kilt / f"{name}.toml").read_text())["endpoints"]["judge"]
    assert judge["params"]["chat_template_kwargs"] == {"enable_thinking": False}
    expected = {"judge": ("3", "3"), "erag": ("3", "3"), "provenance": ("1", "0")}
    assert expected.items() <= requests.items()
    assert ("containment" in requests) == (name in ("nq", "triviaqa", "hotpotqa")), "answers are short there alone"


def test_the_480_cells_of_the_paper_stand_beside_ones_own(tmp_path: Path) -> None:
    beside = script(KILT / "beside.py")
    published = beside.paper()
    told = published["paper"].groupby(published["dataset"]).agg(["count", "sum"]).round(3)
    assert {name: tuple(row) for name, row in told.iterrows()} == PUBLISHED
    keys = ["labeling", "measure", "run", "level", "depth", "coefficient", "value", "ci_low", "ci_high"]
    rows = [
        ("erag", "AP@50", "BM25", "query", 50, "tau_b", 0.4, 0.3, 0.5),
        ("erag", "AP@50", "all", "query", 50, "tau_b", 0.9, 0.8, 1.0),
        ("erag", "AP@10", "BM25", "query", 10, "tau_b", 0.9, 0.8, 1.0),
    ]
    rows.append(("erag", "AP@50", "SPLADE", "query", 50, "tau_b", 0.7, 0.6, 0.8))  # no run of the paper's
    (tmp_path / "triviaqa").mkdir()
    pd.DataFrame(rows, columns=keys).to_csv(tmp_path / "triviaqa" / "comparison.csv", index=False)
    cells = beside.main([str(tmp_path / "triviaqa")])
    assert len(cells) == 480
    (mine,) = cells.dropna(subset="here").to_dict("records")
    assert list(mine.values()) == ["TriviaQA", "BM25", "erag", "AP", "tau_b", 0.474, 0.4, 0.3, 0.5]


SETS_OF_PAGES = [frozenset({"1", "2"}), frozenset({"5"}), frozenset({"7", "9", "11"})]


def test_evidence_sets_are_scored_as_kilts_own_tests_say() -> None:
    scores = script(KILT / "evidence.py").kilt_scores
    first = scores(["2", "5", "7", "33", "1", "9", "44", "88"], SETS_OF_PAGES)
    assert first == {
        "KILT-Rprec": 1 / 2,
        "KILT-precision@1": 1,
        "KILT-precision@5": 2 / 5,
        "KILT-recall@5": 2 / 3,
        "KILT-success_rate@5": 1,
    }
    second = scores(["5"], [*SETS_OF_PAGES, frozenset({"5"})])
    assert (second["KILT-Rprec"], second["KILT-recall@5"], second["KILT-precision@5"]) == (1, 1 / 3, 1 / 5)
    assert set(scores([], SETS_OF_PAGES).values()) == {0}


def test_evidence_of_passages_becomes_a_table_that_is_compared(kilt: Path) -> None:
    run = next(kilt.glob("bergen/runs/*nq*bm25.trec"))
    table = script(KILT / "evidence.py").main(
        str(kilt / "nq-dev-kilt.jsonl"), str(kilt / "passages.jsonl"), f"BM25={run}"
    )
    # Documents 0 and 1 are of page 12 and 2 is of page 7, the evidence: as pages 12, 7.
    assert table.set_index("measure")["value"].to_dict() == {
        "KILT-Rprec": 0,
        "KILT-precision@1": 0,
        "KILT-precision@5": 1 / 5,
        "KILT-recall@5": 1,
        "KILT-success_rate@5": 1,
    }
    assert list(table.columns) == ["labeling", "run", "measure", "query_id", "value"]


def test_the_commands_of_the_recipe_exist(capfd: pytest.CaptureFixture[str]) -> None:
    commands = re.findall(r"^ *judgekit (\w+)([^#\n]*)", (KILT / "README.md").read_text(), re.M)
    assert {command for command, _ in commands} == {"run", "report"}
    for command, rest in commands:
        known = in_process(capfd)(command, "--help").out
        assert all(word in known for word in shlex.split(rest) if word.startswith("--"))
