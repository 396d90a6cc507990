"""Settings of runs: which of them never vary alone."""

from itertools import combinations
from pathlib import Path

from hypothesis import given, strategies as st

from judgekit.experiment.file import load
from judgekit.experiment.varied import never_alone
from tests.commands import Judgekit
from tests.small import RUNS, edited

SETTINGS = st.dictionaries(
    st.sampled_from(["r1", "r2", "r3", "r4"]),
    st.dictionaries(st.sampled_from(["retriever", "chunk", "reranker"]), st.integers(0, 1)),
)


def test_a_setting_that_never_varies_alone_is_named_with_the_closest_runs() -> None:
    runs = {
        "sparse": {"retriever": "bm25", "chunk": 256},
        "dense": {"retriever": "dense", "chunk": 512},
        "reranked": {"retriever": "dense", "chunk": 512, "reranker": "ce"},
    }
    first, second = never_alone(runs)
    assert first.startswith("No two runs differ in retriever alone: 'sparse' and 'dense' also differ in chunk.")
    assert second.endswith("A difference between runs cannot be put down to chunk.")
    # A run between them tells both apart.
    assert not [*never_alone({**runs, "between": {"retriever": "dense", "chunk": 256}})]
    assert not [*never_alone({"a": {}, "b": {}})]


@given(SETTINGS)
def test_it_is_named_if_and_only_if_no_two_runs_differ_in_it_alone(settings: dict[str, dict[str, int]]) -> None:
    named = {sentence.split(" alone")[0].removeprefix("No two runs differ in ") for sentence in never_alone(settings)}
    expected = set()
    for name in ("retriever", "chunk", "reranker"):
        alone = varied = False
        for first, second in combinations(settings.values(), 2):
            others = [key for key in {*first, *second} - {name} if first.get(key) != second.get(key)]
            differs = first.get(name) != second.get(name)
            varied |= differs
            alone |= differs and not others
        if varied and not alone:
            expected.add(name)
    assert named == expected


def test_a_run_says_it_before_anything_is_paid_for(judgekit: Judgekit, folder: Path) -> None:
    path = folder / "experiment.toml"
    for number, (name, file) in enumerate(RUNS.items()):
        settings = f'{{ retriever = "{name}", chunk = {number} }}'
        edited(path, f'{name} = "{file}"', f'{name} = {{ file = "{file}", settings = {settings} }}')
    said = judgekit("run", path, "--dry-run")
    assert "No two runs differ in retriever alone" in said.err
    settings = {name: {"retriever": name, "chunk": number} for number, name in enumerate(RUNS)}
    assert {name: run.settings for name, run in load(path).runs.items()} == settings
    # What is written into a results folder reads back.
    written = load(path).model_dump()["runs"]
    assert written == {name: {"file": file, "settings": settings[name]} for name, file in RUNS.items()}
    edited(path, "chunk = 1", "chunk = 0")
    assert "alone" not in judgekit("run", path, "--dry-run").err
