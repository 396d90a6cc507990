"""The studies read what is listed and nothing else, and their page says what judgekit says."""

import hashlib
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest

import judgekit as jk
from studies import contexts, page, source

REPO = contexts.REPO
Put = Callable[..., None]


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Put]:
    """A function that commits files to a repository below STUDIES and lists them."""
    folder = tmp_path / "copies" / REPO
    folder.mkdir(parents=True)

    def git(*arguments: str) -> str:
        who = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
        return subprocess.run(
            ["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True, text=True
        ).stdout.strip()

    def commit(files: dict[str, str], listed: dict[str, str] | None = None) -> None:
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        git("add", "--all")
        git("commit", "--quiet", "--allow-empty", "-m", "x")
        lines = [
            f"{REPO}\t{path}\t{hashlib.sha256(text.encode()).hexdigest()}\n" for path, text in (listed or files).items()
        ]
        (tmp_path / "files.tsv").write_text("".join(lines))
        monkeypatch.setitem(source.COMMITS, REPO, git("rev-parse", "HEAD"))

    git("init", "--quiet")
    caches = (source.hashes, source._folder, contexts.answers, contexts.ids, contexts.run)
    monkeypatch.setattr(source, "FILES", tmp_path / "files.tsv")
    monkeypatch.setenv("STUDIES", str(tmp_path / "copies"))
    for cached in caches:
        cached.cache_clear()
    yield commit
    for cached in caches:
        cached.cache_clear()


def test_a_listed_file_is_read_at_its_commit_whatever_the_work_tree_holds(put: Put, tmp_path: Path) -> None:
    put({"a b/one.txt": "1 2\n", "two.txt": "x"})
    (tmp_path / "copies" / REPO / "a b" / "one.txt").write_text("later")
    assert source.text(REPO, "a b/one.txt") == "1 2\n"
    assert source.paths(REPO, "a b/") == ["a b/one.txt"]
    assert source.trec(REPO, "a b/one.txt", "query_id _").to_dict("list") == {"query_id": ["1"]}


@pytest.mark.parametrize(
    ("listed", "path", "says"),
    [
        ({"one.txt": "as it was"}, "one.txt", r"'one\.txt' in .* has changed: its SHA-256"),
        ({"gone.txt": "x"}, "gone.txt", r"'gone\.txt' is missing in .* at [0-9a-f]{7}: .*gone"),
        ({"one.txt": "x"}, "two.txt", r"'two\.txt' is not in files\.tsv"),
    ],
)
def test_what_is_not_as_listed_is_not_read(put: Put, listed: dict[str, str], path: str, says: str) -> None:
    put({"one.txt": "x", "two.txt": "x"}, listed)
    with pytest.raises(source.SourceError, match=says):
        source.text(REPO, path)


def test_prompts_of_all_forms_give_the_same_contexts(put: Put) -> None:
    gold = "(Title: Film (film)) Film ( 2009) is\ta film by Łukasz."
    copy, other = gold.replace("( 2009)", "(2009)"), "(Title: B) Another."
    forms = {
        contexts.ORACLE: f"Documents:\nDocument[1]{gold}\nDocument[2]{other}\n\nQuestion: Who made it?",
        "plain.json": f"Documents:Document[1]{gold}Document[2]{copy}Document[3]{other}Question: Who made it?",
        "told.json": f"\nAnswer.\nDocuments:\nDocument[1]{copy}\nDocument[2]{other}\n\nQuestion: Who made it?",
        "turned.json": f"Documents:\nDocument[1]{other}\nDocument[2]{gold}\n\nQuestion: Who made it?",
    }
    put({f"llm-responses/{name}": json.dumps({prompt: ["ukasz", "Łukasz"]}) for name, prompt in forms.items()})
    assert contexts.same_contexts(contexts.ORACLE, "plain.json", "told.json")
    assert not contexts.same_contexts(contexts.ORACLE, "turned.json")
    assert contexts.answers("plain.json")["Who made it?"][0][0][0] == "Film (film)"
    quality = contexts.quality({("reader", "top"): "plain.json"}, {"top": contexts.run("plain.json")})
    assert set(quality["value"]) == {1.0}, "a letter that the reader cannot write costs nothing"
    assert contexts.kinds() == {"q0001": "open"}


def test_the_decision_of_the_page_is_the_one_that_judgekit_prints() -> None:
    queries = [f"q{n}" for n in range(40)]
    rows = [("a", run, "score", query, (i + r) % 2) for r, run in enumerate("xy") for i, query in enumerate(queries)]
    scores = pd.DataFrame(rows, columns=["labeling", "run", "measure", "query_id", "value"])
    comparison = jk.compare(
        scores, scores[["run", "query_id", "value"]], rules=jk.Rules(primary="score", resamples=100)
    )
    assert comparison.decision.text in page.decision(comparison)


def test_a_mean_has_the_interval_of_student() -> None:
    assert page.means(pd.Series([0.0, 1.0, 0.0, 1.0])) == pytest.approx((50, 50 - 91.87, 50 + 91.87), abs=0.01)
    assert page.shown((-0.01, -1.25, 2.0)) == "0.0 (-1.2 to 2.0)"


@pytest.mark.more
@pytest.mark.skipif("STUDIES" not in os.environ, reason="STUDIES names no folder with copies of the repositories")
def test_the_page_is_what_the_studies_make(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from studies.__main__ import whole

    docs = page.DOCS
    (tmp_path / "_static").mkdir()
    monkeypatch.setattr(page, "DOCS", tmp_path)
    assert whole() + "\n" == (docs / "study.md").read_text()
    for drawn in (tmp_path / "_static").iterdir():
        assert drawn.read_text() == (docs / "_static" / drawn.name).read_text()
