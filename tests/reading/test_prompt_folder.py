"""A folder of one's own prompts: short names are found there first, and all of it is checked at once."""

from __future__ import annotations

from pathlib import Path

import pytest

import judgekit as jk
from judgekit.answers.answerer import make_answerer
from judgekit.data.documents import Unit
from judgekit.errors import ConfigError, UsageError
from judgekit.labelers.base import build
from judgekit.reading.prompts import find_prompt, list_prompts, load_prompt, prompt_folder
from judgekit.sample import EXPERIMENT
from tests.commands import Judgekit, in_process
from tests.labelers.scripted import DOC, PARIS, Here
from tests.mock import URL

MINE = '''
kind = "judge"
about = "does the passage name a city?"
max_tokens = 64
guideline = "Does the passage\nname a city?"
user = """
Does the passage name a city that the question asks for? Reply Yes or No.
<question>
{question}
</question>
{passages}
"""
[output]
type = "yes/no"
'''


@pytest.fixture
def judgekit(capfd: pytest.CaptureFixture[str]) -> Judgekit:
    return in_process(capfd)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "mine"
    made.mkdir()
    (made / "city.toml").write_text(MINE.replace("\nname", " name"))
    return made


def test_a_short_name_is_that_of_the_folder_first_and_then_of_the_shipped_ones(folder: Path) -> None:
    here = Here(prompts=folder)
    unit = Unit(PARIS, (DOC,))
    (asked,) = build("judge(prompt=city)", here).requests(unit, [])
    assert b"name a city" in asked.body
    assert build("judge(prompt=graded)", here).requests(unit, []) == build("judge(prompt=graded)", Here()).requests(
        unit, []
    )
    (folder / "graded.toml").write_text(MINE.replace("\nname", " name"))
    (own,) = build("judge(prompt=graded)", here).requests(unit, [])
    assert own == asked, "the same words are the same request, whatever the file is called"
    assert find_prompt("graded", Path, folder).name == "graded"
    with pytest.raises(UsageError, match="city"):
        load_prompt("city")


def test_answers_take_prompt_and_closed_book_sibling_from_the_folder(folder: Path) -> None:
    text = (prompt_folder() / "closed-book.toml").read_text().replace("Answer", "Kindly answer")
    (folder / "closed-book.toml").write_text(text)
    empty = Unit(PARIS, ())
    (mine,) = make_answerer(Here().endpoint(None), "answer-short", Here(prompts=folder)).requests(empty, [])
    (shipped,) = make_answerer(Here().endpoint(None), "answer-short", Here()).requests(empty, [])
    assert b"Kindly answer" in mine.body
    assert b"Kindly answer" not in shipped.body


def test_a_list_holds_both(folder: Path) -> None:
    assert {one.name for one in list_prompts(folder)} == {one.name for one in list_prompts()} | {"city"}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("bad.toml", MINE.replace("\nname", " name").replace("{passages}", ""), "bad.toml.*lacks the placeholder"),
        ("odd.toml", "kind = 3", "odd.toml"),
    ],
)
def test_every_prompt_of_the_folder_is_checked_at_once(folder: Path, name: str, text: str, said: str) -> None:
    (folder / name).write_text(text)
    path = experiment(folder.parent)
    with pytest.raises(ConfigError, match=said):
        jk.plan(path)


def test_a_folder_that_is_not_there_or_empty_is_said(tmp_path: Path) -> None:
    for name, said in (("none", "is not a folder"), ("empty", "has no prompt in it")):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(ConfigError, match=said):
            list_prompts(tmp_path / name)


def experiment(folder: Path) -> Path:
    path = folder / "experiment.toml"
    sample = EXPERIMENT.parent
    path.write_text(
        f"""
[data]
queries = "{sample}/queries.jsonl"
docs = "{sample}/docs.jsonl"
depth = 1
limit = 3
[runs]
bm25 = "{sample}/runs/bm25.trec"
[prompts]
folder = "mine"
[endpoints.mock]
base_url = "{URL}"
model = "mock"
[[labelers]]
kind = "judge"
prompt = "city"
[answers]
depths = [1]
"""
    )
    return path


def test_an_experiment_names_the_folder_beside_itself(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, judgekit: Judgekit
) -> None:
    experiment(tmp_path)
    monkeypatch.chdir(tmp_path.parent)
    relative = Path(tmp_path.name) / "experiment.toml"
    done = jk.run(relative, out=tmp_path / "out", cache=tmp_path / "cache")
    assert list(done.labelings) == ["judge(prompt=city)"]
    assert "mine/city.toml" in (tmp_path / "out" / "manifest.json").read_text()
    judgekit("annotate", "sample", str(relative), "--n", "2", "--prompt", "city", "--out", str(tmp_path / "s.jsonl"))
    assert '"guideline": "Does the passage name a city?"' in (tmp_path / "s.jsonl").read_text()


def test_the_three_criteria_stand_in_the_same_order_for_a_judge_and_for_people(
    tmp_path: Path, folder: Path, judgekit: Judgekit
) -> None:
    prompt = load_prompt("criteria")
    for text in (prompt.user, prompt.guideline):
        assert text.index("Correct:") < text.index("Dense:") < text.index("Detailed:")
    assert prompt.output.scale is not None
    assert (prompt.output.scale.high, prompt.output.scale.min_rel) == (3, 1)
    judgekit(
        "annotate", "sample", str(experiment(tmp_path)), "--n", "2", "--prompt", "criteria", "-o", str(tmp_path / "s")
    )
    said = (tmp_path / "s").read_text()
    assert "three criteria, in this order. Correct:" in said
    assert "correct and dense" in said
