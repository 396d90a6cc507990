"""A folder of one's own prompts: short names are found there first, and all of it is checked at once."""

from __future__ import annotations

from pathlib import Path

import pytest

import judgekit as jk
from judgekit.data.documents import Unit
from judgekit.errors import ConfigError, UsageError
from judgekit.labelers.base import build
from judgekit.reading.prompts import find_prompt, list_prompts, load_prompt
from judgekit.sample import EXPERIMENT
from judgekit.wire.types import Request
from tests.commands import in_process
from tests.labelers.scripted import DOC, PARIS, Here
from tests.small import MOCK, QUICK, toml

MINE = '''
kind = "judge"
about = "does the passage name a city?"
max_tokens = 64
guideline = "Does the passage name a city?"
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
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "mine"
    made.mkdir()
    (made / "city.toml").write_text(MINE)
    return made


def asked(prompt: str, here: Here) -> Request:
    (request,) = build(f"judge(prompt={prompt})", here).requests(Unit(PARIS, (DOC,)), [])
    return request


def test_a_short_name_is_that_of_the_folder_first_and_then_of_the_shipped_ones(folder: Path) -> None:
    here = Here(prompts=folder)
    assert b"name a city" in asked("city", here).body
    assert asked("graded", here) == asked("graded", Here())
    (folder / "graded.toml").write_text(MINE)
    assert asked("graded", here) == asked("city", here), "the same words, whatever the file is called"
    assert find_prompt("graded", Path, folder).name == "graded"
    assert {one.name for one in list_prompts(folder)} == {one.name for one in list_prompts()} | {"city"}
    with pytest.raises(UsageError, match="city"):
        load_prompt("city")


def test_every_prompt_of_the_folder_is_checked_at_once(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (folder / "bad.toml").write_text(MINE.replace("{passages}", ""))
    for name, said in (
        ("none", "is not a folder"),
        ("empty", "has no prompt in it"),
        ("mine", r"bad\.toml.*lacks the placeholder"),
    ):
        with pytest.raises(ConfigError, match=said):
            list_prompts(tmp_path / name)


def test_an_experiment_names_the_folder_beside_itself(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    sample = EXPERIMENT.parent
    tables = toml(
        data={"queries": f"{sample}/queries.jsonl", "docs": f"{sample}/docs.jsonl", "depth": 1, "limit": 3},
        runs={"bm25": f"{sample}/runs/bm25.trec"},
        prompts={"folder": "mine"},
        endpoints={"mock": MOCK},
        labelers=[{"kind": "judge", "prompt": "city"}],
        answers={"depths": [1]},
        analysis=QUICK,
    )
    (tmp_path / "experiment.toml").write_text(tables)
    monkeypatch.chdir(tmp_path.parent)
    relative = Path(tmp_path.name) / "experiment.toml"
    done = jk.run(relative, out=tmp_path / "out", cache=tmp_path / "cache")
    assert list(done.labelings) == ["judge(prompt=city)"]
    assert "mine/city.toml" in (tmp_path / "out" / "manifest.json").read_text()
    sample_command = ("annotate", "sample", relative, "--n", "2", "--prompt", "city", "--out", tmp_path / "s.jsonl")
    in_process(capfd)(*sample_command, code=0)
    assert '"guideline": "Does the passage name a city?"' in (tmp_path / "s.jsonl").read_text()
    (folder / "bad.toml").write_text(MINE.replace("{passages}", ""))
    with pytest.raises(ConfigError, match=r"bad\.toml.*lacks the placeholder"):
        jk.plan(relative)


def test_the_three_criteria_stand_in_the_same_order_for_a_judge_and_for_people() -> None:
    prompt = load_prompt("criteria")
    for text in (prompt.user, prompt.guideline):
        assert text.index("Correct:") < text.index("Dense:") < text.index("Detailed:")
    assert prompt.output.scale is not None
    assert (prompt.output.scale.high, prompt.output.scale.min_rel) == (3, 1)
    assert "three criteria, in this order. Correct:" in prompt.guideline
    assert "correct and dense" in str(prompt.output.form.others)
