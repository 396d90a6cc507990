import re
import tomllib
from pathlib import Path

from judgekit import __version__
from judgekit.metrics import catalog
from judgekit.reading.prompts import list_prompts, prompt_folder
from tests.mock import URL
from tests.scripted import Scripted


def test_measures_are_listed_with_formula_source_range_and_what_they_reward(judgekit):
    said = judgekit("list", "measures", code=0)
    for entry in catalog():
        assert all(part in said.out for part in (f"{entry.name}: {entry.title}", entry.formula, entry.rewards))
    one = judgekit("list", "measures", "MAP")
    assert one.out.count("formula") == 1
    assert one.out.startswith("AP:")


def test_prompts_are_listed_and_shown_as_their_files_which_are_checked(judgekit, folder):
    said = judgekit("list", "prompts")
    assert [line.split()[0] for line in said.out.splitlines()] == [prompt.name for prompt in list_prompts()]
    assert judgekit("list", "prompts", "binary").out == (prompt_folder() / "binary.toml").read_text()
    judgekit("list", "prompts", "binari", code=2)
    (folder / "mine.toml").write_text("kind = 'judge'\n")
    assert "mine.toml" in judgekit("list", "prompts", "mine.toml", code=2).err
    assert "'graded' has UMBRELA's form (arXiv 2406.06519)" in judgekit("list", "prompts", "umbrela", code=2).err


def test_labelers_and_answer_metrics_are_listed_with_what_they_are_and_one_is_shown(judgekit):
    said = judgekit("list", "labelers", code=0)
    for kind in ("containment", "judge", "utility", "provenance", "human"):
        assert f"\n{kind}: " in f"\n{said.out}"
    one = judgekit("list", "labelers", "judge")
    assert one.out.startswith("judge: ")
    assert "\ncontainment: " not in one.out
    unknown = judgekit("list", "labelers", "jugde", code=2)
    assert (unknown.out, "Did you mean 'judge'" in unknown.err) == ("", True)
    said = judgekit("list", "metrics")
    assert {"em", "f1"} <= {line.split(":")[0] for line in said.out.splitlines()}
    assert judgekit("list", "metrics", "em").out.startswith("em: ")
    assert "answer metric 'nDCG'" in judgekit("list", "metrics", "nDCG").err


def test_an_endpoint_is_checked_call_by_call(judgekit):
    said = judgekit("check-endpoint", "--endpoint", URL, "--model", "mock", code=0)
    for what in ("chat completion", "log-probabilities"):
        assert what in said.out


def test_a_server_that_does_not_answer_ends_a_check_with_3_and_one_without_extras_with_0(judgekit, fault_server):
    check = ("check-endpoint", "--endpoint", fault_server.base_url, "--model", "m")
    fault_server.answer = lambda body, seen: "Yes"
    judgekit(*check, code=0)
    fault_server.answer = lambda body, seen: Scripted(401, b'{"error": {"message": "no key"}}')
    judgekit(*check, code=3)


def test_the_help_groups_the_commands(judgekit):
    said = judgekit("--help").out
    headings = [line[:-1] for line in said.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["Options", "Journey", "Stages", "More", "Tools"]
    stages = said.partition("\nStages:")[2].partition("\nMore:")[0]
    names = [line.split()[0] for line in stages.splitlines() if line[2:3].strip()]
    assert names == ["label", "answer", "score", "compare", "agree"]


def test_the_version_names_the_distribution_of_pyproject_and_every_page_installs_that(judgekit):
    root = Path(__file__).parents[2]
    name = tomllib.loads((root / "pyproject.toml").read_text())["project"]["name"]
    assert judgekit("--version", code=0).out == f"judgekit {__version__} (distribution {name})\n"
    pages = [*root.glob("*.md"), *root.glob("docs/*.md"), *root.glob("examples/*.yml"), *root.glob("notebooks/*.ipynb")]
    for page in pages:
        assert not re.search(r"pip install '?judgekit(?!-qrels)\b", page.read_text(encoding="utf-8")), page
