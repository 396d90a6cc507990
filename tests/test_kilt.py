"""The recipe for real KILT works on a made-up one: passages, experiments, the paper's cells beside one's own."""

import json
import re
import shlex
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.commands import in_process, script
from tests.servers import FaultServer

KILT = Path(__file__).parent.parent / "examples" / "kilt"
SETS = ("nq", "triviaqa", "hotpotqa", "fever", "wow")
CITIES = ("Rome", "Oslo", "Lima", "Rome", "Kyiv", "Bern")
PUBLISHED = {
    "NQ": (96, 26.039),
    "TriviaQA": (96, 24.879),
    "HotpotQA": (96, 28.369),
    "FEVER": (72, 10.856),
    "WoW": (56, 5.315),
}
"""How many cells of the paper's Table 1 have a value, and their sum; each was compared with the paper's."""


def scripted(prompt: str) -> str:
    """Return what a reader and a judge say who go by the first city that a passage names."""
    said = re.search(r"born in (\w+)", prompt)
    if "SUPPORTS" in prompt:
        return "SUPPORTS" if said and said[1] == "Rome" else "NOT ENOUGH INFO"
    if "Yes" in prompt and "No" in prompt:
        return "Yes" if said and said[1] == "Rome" else "No"
    return said[1] if said else "unknown"


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
        ("erag", "AP@50", "SPLADE", "query", 50, "tau_b", 0.7, 0.6, 0.8),  # no run of the paper's
    ]
    (tmp_path / "triviaqa").mkdir()

    def written(rows: list[tuple[object, ...]]) -> list[list[object]]:
        """Return the cells of the paper that own rows fill."""
        pd.DataFrame(rows, columns=keys).to_csv(tmp_path / "triviaqa" / "comparison.csv", index=False)
        cells = beside.main([str(tmp_path / "triviaqa")])
        assert len(cells) == 480
        return [list(row.values()) for row in cells.dropna(subset="here").to_dict("records")]

    assert written(rows) == [["TriviaQA", "BM25", "erag", "AP", "tau_b", 0.474, 0.4, 0.3, 0.5, 50]]
    assert written(rows[2:3]) == [["TriviaQA", "BM25", "erag", "AP", "tau_b", 0.474, 0.9, 0.8, 1.0, 10]]
    with pytest.raises(SystemExit, match=r"triviaqa holds none of the paper's cells: .* BM25, Contriever;"):
        written(rows[3:])


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


def section(number: int) -> str:
    """Return a section of the README."""
    return (KILT / "README.md").read_text().split(f"## {number}.")[1].partition("\n## ")[0]


@pytest.mark.more
def test_the_recipe_runs_from_the_experiments_to_the_figures(
    kilt: Path, fault_server: FaultServer, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(kilt)
    monkeypatch.setenv("JUDGEKIT_CACHE", str(kilt / "store"))
    fault_server.answer = lambda body, seen: scripted(str(body["messages"][-1]["content"]))
    passages = [
        {"doc_id": str(n), "title": "", "text": f"Bo was born in {city}.", "page_id": "7"}
        for n, city in enumerate(CITIES)
    ]
    (kilt / "passages.jsonl").write_text("".join(json.dumps(one) + "\n" for one in passages))
    for name in SETS:
        experiment = kilt / f"{name}.toml"
        text = re.sub(r"http://localhost:800\d/v1", fault_server.base_url, experiment.read_text())
        experiment.write_text(text)
        declared = tomllib.loads(text)
        right = "SUPPORTS" if name == "fever" else "Rome"
        output = [{"answer": right, "provenance": [{"wikipedia_id": "7", "title": "Bo"}]}]
        asked = [{"id": f"{name}_{n}", "input": f"Where was Bo {n} born?", "output": output} for n in range(12)]
        (kilt / declared["data"]["queries"]).write_text("".join(json.dumps(query) + "\n" for query in asked))
        for shift, path in enumerate(declared["runs"].values()):
            listed = [
                (query, [(n + (shift + 1) * rank) % len(CITIES) for rank in range(6)]) for n, query in enumerate(asked)
            ]
            (kilt / path).write_text(
                "".join(
                    f"{query['id']} Q0 {doc} 0 {9 - rank} x\n"
                    for query, docs in listed
                    for rank, doc in enumerate(dict.fromkeys(docs))
                )
            )
    judgekit = in_process(capfd)
    loop = re.search(r"do\n(.*?)done\n(.*?)```", section(4), re.S)
    assert loop is not None
    for name in SETS:
        for line in loop[1].splitlines():
            judgekit(*shlex.split(line.replace("$name", name), comments=True)[1:], code=0)
    report, together = loop[2].splitlines()
    judgekit(*shlex.split(report)[1:], code=0)
    folders = shlex.split(together.partition(">")[0])[2:]
    assert folders == [f"results/{name}" for name in SETS]
    cells = script(KILT / "beside.py").main(folders)
    assert len(cells) == 480
    assert cells["here"].notna().sum() > 0

    sent = len(fault_server.seen)
    (snippet,) = re.findall(r"```python\n(.*?)```", section(5), re.S)
    exec(snippet, {})
    assert {path.name for path in kilt.glob("*.svg")} == {"figure-1.svg", "figure-1-fixed.svg"}
    assert len(fault_server.seen) == sent, "from the store"


@pytest.mark.more
def test_the_small_recipe_makes_data_tables_and_figures(
    tmp_path: Path, fault_server: FaultServer, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(KILT)
    monkeypatch.setenv("JUDGEKIT_CACHE", str(tmp_path / "store"))
    small = script(KILT / "small.py")
    answers = {answer for query in small.rows("queries.jsonl") for answer in query.get("answers", [])}

    def first_answer(body: dict[str, Any], seen: int) -> str:
        """Answer with what a passage says of all answers, the longest of them first."""
        asked = body["messages"][-1]["content"] if "messages" in body else body["prompt"]
        found = [answer for answer in sorted(answers, key=len) if answer in asked.rpartition("<question>")[2]]
        if "Yes or No" in asked:
            return "Yes" if found else "No"
        return found[-1] if found and len(asked) % 3 else "unknown"

    fault_server.answer = first_answer
    given = ["--reader", fault_server.base_url, "a", "--larger", fault_server.base_url, "b", "--questions", "30"]
    small.main([str(tmp_path / "small"), *given])
    judgekit = in_process(capfd)
    judgekit("run", tmp_path / "small" / "nq.toml", "--out", tmp_path / "nq", code=0)
    judgekit("report", tmp_path / "nq", "--figures", tmp_path / "figures", code=0)
    drawn = {path.stem for path in (tmp_path / "figures").glob("*.svg")}
    assert {"best-against-k", "against-k", "against-model", "against-mode"} <= drawn
    table = pd.read_csv(tmp_path / "nq" / "comparison.csv", keep_default_na=False, na_values=[""])
    assert set(table["model"]) == {"a", "b"}
    told = table[(table["level"] == "query") & (table["run"] != "all") & (table["coefficient"] == "tau_b")]
    assert {"containment", "provenance", "erag", "erag-larger"} <= set(told.dropna(subset="value")["labeling"])
    cells = script(KILT / "beside.py").main([str(tmp_path / "nq")])
    assert set(cells.dropna(subset="here")["run"]) == {"BM25"}


def test_the_commands_of_the_recipe_exist(capfd: pytest.CaptureFixture[str]) -> None:
    commands = re.findall(r"^ *judgekit (\w+)([^#\n]*)", (KILT / "README.md").read_text(), re.M)
    assert {command for command, _ in commands} == {"run", "report"}
    for command, rest in commands:
        known = in_process(capfd)(command, "--help").out
        assert all(word in known for word in shlex.split(rest) if word.startswith("--"))
