"""The report of a results folder, drawn again while ever more of what it was made from is gone."""

import base64
import json
import re
import shutil
import zlib
from pathlib import Path
from typing import Any

import pytest

from judgekit.client.asking import Asking
from judgekit.experiment.file import load
from judgekit.experiment.finished import draw
from judgekit.experiment.run import run
from judgekit.sample import EXPERIMENT


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample with a few queries, in a folder of its own, and its results beside it."""
    folder = tmp_path_factory.mktemp("made")
    shutil.copytree(EXPERIMENT.parent, folder / "sample", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    config = load(folder / "sample" / EXPERIMENT.name).updated(data={"limit": 12})
    run(config, out=folder / "out", asking=Asking(cache=folder / "store"))
    shutil.rmtree(folder / "store")  # replies are read from the labels
    return folder


@pytest.fixture
def results(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "copy")
    text = (tmp_path / "copy/out/resolved.toml").read_text(encoding="utf-8")
    (tmp_path / "copy/out/resolved.toml").write_text(text.replace(str(made), str(tmp_path / "copy")), encoding="utf-8")
    return tmp_path / "copy/out"


def unpacked(page: str, name: str) -> Any:
    found = re.search(rf'id="{name}">([^<]*)<', page)
    assert found is not None, f"the page lacks {name}"
    return json.loads(zlib.decompress(base64.b64decode(found[1])))


def drawn(results: Path) -> str:
    draw(results)
    return (results / "report.html").read_text(encoding="utf-8")


def test_a_report_is_drawn_again_as_the_run_drew_it(made):
    before = (made / "out/report.html").read_text(encoding="utf-8")
    assert drawn(made / "out") == before
    index, rows = unpacked(before, "index"), unpacked(before, "rows-0")["queries"]
    names = [one["name"] for one in index["labelings"]]
    judge = names.index("judge")
    assert len(index["queries"]) == 12
    assert rows[0]["labels"][judge][0]["raw"], "replies and answers are behind the page"
    assert all(text for text in rows[0]["texts"])
    assert len(rows[0]["given"]) > len(index["runs"])


@pytest.mark.parametrize("harm", ["gone", "changed"])
def test_where_the_data_are_others_the_page_says_why_it_shows_no_question(results, harm):
    docs = results.parent / "sample/docs.jsonl"
    text = docs.read_text(encoding="utf-8").replace("the", "no")
    docs.unlink() if harm == "gone" else docs.write_text(text, encoding="utf-8")
    page = drawn(results)
    why = r"docs\.jsonl: no such file" if harm == "gone" else ""
    assert re.search(rf"Questions are not shown: .*{why}", page)
    assert 'id="index"' not in page
