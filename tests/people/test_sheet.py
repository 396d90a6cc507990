"""The page on which people judge, driven in a real browser."""

import json
from pathlib import Path

import pytest

from judgekit.collection import Collection
from judgekit.data.documents import Doc, MemoryDocs, Query
from judgekit.errors import UsageError
from judgekit.people.reading import read_judgments, resolve
from judgekit.people.sampling import Handout, draw
from judgekit.people.sheet import make_sheets, page_of
from tests.browser import BROWSER, Browser


@pytest.fixture
def browser(tmp_path: Path):
    if BROWSER is None:
        pytest.skip("no Chromium is installed")
    (tmp_path / "downloads").mkdir()
    with Browser(tmp_path / "profile", tmp_path / "downloads") as page:
        yield page


def test_forty_tasks_with_a_reload_in_the_middle_lose_nothing(collection, browser, tmp_path, truth):
    sample = draw(collection, n=40, design="pairs", prompt="binary", handout=Handout(assessors=("ann",)))
    (page,) = make_sheets(sample, tmp_path / "sheet.html")
    browser.open(page.as_uri())
    for done in range(40):
        if done == 20:
            browser.open(page.as_uri())  # keeps what was judged, and where
        query, doc = browser.run("[task().query_id, task().doc_ids[0]]")
        browser.press(str(truth[query, doc]))
    assert browser.run('document.getElementById("count").textContent').endswith("40 done. All done: download.")
    browser.press("d")
    people = resolve(read_judgments([browser.downloaded("*.jsonl")], sample))
    table = people.labeling.table
    assert len(table) == 40
    assert all(truth[row.query_id, row.doc_id] == row.relevance for row in table.itertuples())
    assert browser.console == []
    assert {url for url in browser.requests if not url.startswith("blob:")} == {page.as_uri()}


def test_skips_comments_and_a_changed_mind_are_kept(collection, browser, tmp_path):
    sample = draw(collection, n=5, design="pairs", prompt="graded", handout=Handout(assessors=("ann",)))
    (page,) = make_sheets(sample, tmp_path / "sheet.html")
    browser.open(page.as_uri())
    browser.press("3", "ArrowLeft", "1", "ArrowRight")
    browser.run("""(() => { const skip = document.getElementById("skip"); skip.value = "cannot decide";
        skip.dispatchEvent(new Event("change")); })()""")
    browser.press("c")
    browser.press(*"odd")  # in the comment "o" and "d" are letters, not commands
    browser.press("Escape", "2", "d")
    download = browser.downloaded("*.jsonl")
    rows = {row.task.task: row for row in read_judgments([download], sample).rows}
    said = sorted([(row.value, row.skipped) for row in rows.values()], key=str)
    assert said == sorted([(1.0, ""), (None, "cannot decide"), (2.0, ""), (None, ""), (None, "")], key=str)
    assert [json.loads(line).get("comment") for line in download.read_text().splitlines()].count("odd") == 1
    assert all(row.seconds >= 0 for row in rows.values())


def test_a_download_can_be_gone_on_with_in_another_browser(collection, browser, tmp_path, judged):
    sample = draw(collection, n=4, design="pairs", prompt="binary", handout=Handout(("ann", "bob"), overlap=2))
    pages = make_sheets(sample, tmp_path / "sheet.html")
    assert [page.name for page in pages] == ["sheet-ann.html", "sheet-bob.html"]
    earlier = judged(sample, "ann")
    browser.open(pages[0].as_uri())
    load = 'load(new File([%s], "x")).then(() => document.getElementById("%s").textContent)'
    assert "4 done" in browser.run(load % (json.dumps(earlier.read_text()), "count"))
    cut = earlier.read_text().splitlines()[:-1]
    assert "cut off" in browser.run(load % (json.dumps("\n".join(cut)), "warning"))
    browser.open(pages[1].as_uri())
    assert "another" in browser.run(load % (json.dumps(earlier.read_text()), "warning"))


def test_hostile_texts_stay_texts_and_words_of_the_question_are_highlighted(browser, tmp_path):
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)> Paris"
    made = Collection.make(
        [Query("q", f"Where is Paris {evil}")], MemoryDocs([Doc("d", evil, evil)]), {"r": {"q": {"d": 1.0}}}, 1
    )
    (page,) = make_sheets(draw(made, n=1), tmp_path / "sheet.html")
    browser.open(page.as_uri())
    assert browser.run('document.querySelectorAll("img, script:not([type])").length') == 1  # our own script
    assert evil in browser.run('document.querySelector("article div").textContent')
    browser.press("h")
    assert "Paris" in browser.run('[...document.querySelectorAll("article mark")].map((m) => m.textContent)')
    assert browser.console == []


def test_the_page_holds_no_machine_label_and_each_assessor_has_an_order_of_their_own(collection):
    sample = draw(collection, n=200, design="pairs", handout=Handout(("ann", "bob"), overlap=2))
    tasks = {}
    for name in sample.assessors:
        page = page_of(sample, name)
        data = json.loads(page.split('id="data">')[1].split("</script>")[0])
        shown = "content doc_ids key order probability query_id question repeat_of task texts"
        assert {" ".join(sorted(task)) for task in data["tasks"]} == {shown}
        tasks[name] = [task["task"] for task in data["tasks"]]
        assert page_of(sample, name) == page
    assert tasks["ann"] != tasks["bob"]
    assert sorted(tasks["ann"]) == sorted(tasks["bob"])
    with pytest.raises(UsageError, match="unknown assessor 'cem'"):
        page_of(sample, "cem")
