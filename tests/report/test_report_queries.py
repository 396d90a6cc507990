import base64
import json
import math
import zlib
from dataclasses import replace
from typing import Any

import pytest

from judgekit.report import queries as packing
from judgekit.report.queries import pack
from tests.browser import Browser
from tests.report.conftest import HOSTILE, SETTLED, click, go, make_backing, make_results, poisoned, unpacked


def listed(browser: Browser) -> Any:
    """The ids of the rows that are drawn."""
    return browser.run("[...document.querySelectorAll('#rows tr th .ci')].map((e) => e.textContent)")


def text(browser: Browser, selector: str) -> str:
    return str(browser.run(f"document.querySelector({selector!r})?.innerText ?? ''"))


@pytest.mark.parametrize(
    ("scale", "least", "labels"), [("grades:3:2", 2, [0, 1, 2, 3, 2, 2]), ("unit", 0.5, [0.4, 0.5, 0.6, 1, 0, 0.9])]
)
def test_relevant_documents_are_counted_in_the_top_k_and_from_the_scales_threshold_on(scale, least, labels):
    results, backing = make_results(), make_backing(1, len(labels))
    results = replace(results, labelings=(replace(results.labelings[1], name="judge", scale=scale),))
    table = backing.labels["judge"].assign(relevance=labels, status="ok")
    packed = pack(results, replace(backing, labels={"judge": table}, lists={"bm25": backing.lists["bm25"]}))
    assert packed is not None
    index = json.loads(zlib.decompress(base64.b64decode(packed.index)))
    assert (index["k"], index["runs"], index["queries"][0]["relevant"]) == (5, ["bm25"], [[3]])
    asked = "reader-small at local, prompt judge-binary"
    takes = "319 tokens of prompt, 2 tokens of reply, 0.086 s"
    told = {"name": "judge", "least": least, "scale": scale, "asked": asked, "takes": takes}
    assert index["labelings"] == [told]


def test_a_reply_says_which_model_sent_it():
    backing = make_backing(2)
    judged = backing.labels["judge"].assign(reply_model="reader-small-2026")
    packed = pack(make_results(), replace(backing, labels={**backing.labels, "judge": judged}))
    assert packed is not None
    place = list(backing.labels).index("judge")
    _, queries = unpacked(packed)
    for query in queries:
        assert {label["model"] for label in query["labels"][place]} == {"reader-small-2026"}
        assert {label.get("model") for label in query["labels"][0]} == {None}, "containment asks none"


@pytest.mark.parametrize(("values", "right"), [([0.0, 1.0], 0.5), ([0.25, 0.75], 0.5), ([2.0, 6.0], 4.0)])
def test_an_answer_is_right_from_half_on_or_from_the_middle_of_what_was_observed(values, right):
    backing = make_backing(2)
    table = backing.quality.assign(value=[values[query == "q1"] for query in backing.quality["query_id"]])
    packed = pack(make_results(), replace(backing, quality=table))
    assert json.loads(zlib.decompress(base64.b64decode(packed.index)))["right"] == right


def test_a_page_holds_the_first_5000_queries():
    packed = pack(make_results(), make_backing(5001, 1, words=0))
    assert (packed.left_out, len(packed.blocks)) == (1, 250)


def test_rows_are_drawn_as_far_as_they_are_looked_at_and_words_and_ids_are_searched(opened):
    browser = opened("#queries")
    assert text(browser, "#count") == "60 of 60 queries"
    assert len(listed(browser)) == 50
    browser.run(f"document.getElementById('list').scrollTop = 1e6; {SETTLED}")
    assert len(listed(browser)) == 60
    browser.run("const f = document.getElementById('find'); f.focus(); f.value = 'NUMBER 17'; f.oninput()")
    browser.run("new Promise((done) => setTimeout(done, 200))")
    assert listed(browser) == ["q17"]
    assert browser.run("location.hash") == "#find=NUMBER+17"


def test_the_list_begins_with_what_labelings_disagree_about_most_and_sorts_by_a_click(opened):
    browser = opened()
    shares = browser.run("[...document.querySelectorAll('#rows meter')].map((m) => m.value)")
    assert shares == sorted(shares, reverse=True)
    click(browser, "th[data-by=quality] button")
    values = browser.run("[...document.querySelectorAll('#rows td:nth-child(2)')].map((e) => Number(e.textContent))")
    assert values == sorted(values, reverse=True)
    click(browser, "th[data-by=quality] button")
    assert browser.run("document.querySelector('th[data-by=quality]').getAttribute('aria-sort')") == "ascending"


@pytest.mark.parametrize(
    ("fragment", "expected"),
    [
        ("#show=unparsed", ["q17"]),
        ("#show=missing&labeling=judge&sort=order", ["q17", "q18", "q19", "q31"]),
        ("#show=missing&labeling=erag", []),
        ("#show=refused&labeling=judge", ["q19"]),
    ],
)
def test_queries_whose_labels_are_missing_are_found_by_status_and_labeling(opened, fragment, expected):
    assert listed(opened(fragment)) == expected


def test_a_missing_answer_is_found_and_one_without_a_value_is_not_taken_for_missing(opened):
    backing = make_backing()
    here = (backing.quality["run"] == "dense") & (backing.quality["depth"] == 5)
    for query, status in (("q5", "failed"), ("q6", "not_applicable")):
        of = here & (backing.quality["query_id"] == query)
        backing.quality.loc[of, "status"], backing.quality.loc[of, "value"] = status, math.nan
    browser = opened("#show=missing&labeling=erag&run=dense", backing=backing)
    assert listed(browser) == ["q5"]
    go(browser, "#query=q5")
    assert "failed" in text(browser, ".given table .bad")


def test_contradictions_of_a_label_and_an_answer_are_found(opened):
    backing = make_backing()
    quality = backing.quality.query("run == 'bm25' and depth == 5 and metric == 'em'").set_index("query_id")["value"]
    table = backing.labels["erag"]
    shown = {(q, d) for q, docs in backing.lists["bm25"].items() for d in docs[:5]}
    there = [(q, d) in shown for q, d in zip(table["query_id"], table["doc_id"], strict=True)]
    relevant = table[there].groupby("query_id")["relevance"].sum()
    wrong = sorted(q for q in quality.index if quality[q] == 0 and relevant[q] > 0)
    right = sorted(q for q in quality.index if quality[q] == 1 and relevant[q] == 0)
    browser = opened("#show=wrong&labeling=erag&run=bm25")
    assert sorted(listed(browser)) == wrong
    go(browser, "#show=right&labeling=erag&run=bm25")
    assert sorted(listed(browser)) == right
    assert wrong


PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
LAPTOP = {"width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": False}


@pytest.mark.parametrize("size", [PHONE, LAPTOP])
def test_ten_rows_stay_in_view_and_a_query_on_the_screen_with_the_answers_that_were_decided_on_first(opened, size):
    browser = opened("#queries")
    browser.send("Emulation.setDeviceMetricsOverride", **size)
    go(browser, "#show=disagree")
    browser.run("document.getElementById('queries').scrollIntoView()")
    rows = "[...document.querySelectorAll('#rows tr')].map((row) => row.getBoundingClientRect())"
    bottom = "Math.min(innerHeight, document.getElementById('list').getBoundingClientRect().bottom)"
    assert browser.run(f"{rows}.filter((row) => row.bottom <= {bottom}).length") >= 10
    assert browser.run("document.getElementById('find').getBoundingClientRect().top >= 0")
    go(browser, "#query=q4")
    first = "document.querySelector('.answers tbody tr td')"
    assert browser.run(f"{first}.dataset.head") == "from the top 5, as decided on"
    edges = f"{first}.getBoundingClientRect()"
    assert browser.run(f"{edges}.left >= 0 && {edges}.right <= innerWidth")
    for one in ("document.documentElement", "document.getElementById('query')"):
        assert browser.run(f"{one}.scrollWidth <= innerWidth")


FIGURES = """(() => {
  document.querySelectorAll("details").forEach((one) => { one.open = true; });
  return [...document.querySelectorAll("svg.figure")].filter((figure) => figure.checkVisibility()).map((figure) => {
    const scale = figure.getScreenCTM().a, texts = [...figure.querySelectorAll("text")];
    const box = (part) => part.getBoundingClientRect();
    const parts = [...texts, ...figure.querySelectorAll(".mark")].map(box);
    const { left, right } = box(figure);
    return {
      left, right, inside: parts.every((part) => part.left >= left && part.right <= right),
      smallest: Math.min(...texts.map((text) => scale * parseFloat(getComputedStyle(text).fontSize))),
    };
  });
})()"""


def test_on_a_phone_every_figure_is_seen_whole_without_scrolling_and_its_texts_are_large_enough(opened):
    browser = opened()
    browser.send("Emulation.setDeviceMetricsOverride", **PHONE)
    figures = browser.run(FIGURES)
    assert figures
    for figure in figures:
        assert 0 <= figure["left"] < figure["right"] <= PHONE["width"]
        assert figure["inside"], "a drawing cuts what leaves it"
        assert figure["smallest"] >= 10


def test_sections_load_folded_and_the_navigation_stays_and_unfolds_them(opened):
    browser = opened()
    opened_sections = "[...document.querySelectorAll('main > section > details[open]')].map((d) => d.parentElement.id)"
    assert browser.run(opened_sections) == []
    click(browser, "#contents a[href='#labels']")
    assert browser.run(opened_sections) == ["labels"]
    assert browser.run("document.getElementById('labels-h').getBoundingClientRect().top < innerHeight / 2")
    assert browser.run("document.querySelector('#contents').getBoundingClientRect().top") == 0
    go(browser, "#agreement")
    assert browser.run("document.getElementById('agreement').getBoundingClientRect().top < innerHeight / 2")


def test_the_first_screen_is_the_decision_and_one_figure(opened):
    browser = opened()
    browser.send("Emulation.setDeviceMetricsOverride", **LAPTOP)
    inside = "[...document.querySelectorAll('.decision, svg.figure')].filter((e) => e.checkVisibility())"
    assert browser.run(f"{inside}.map((e) => e.getBoundingClientRect().bottom < innerHeight)") == [True, True]


def test_figures_answer_to_the_keyboard_and_to_the_pointer(opened):
    browser = opened()
    browser.run("document.querySelector('svg.figure .mark').focus()")
    first = text(browser, "#tip")
    assert first == "bm25: at most 4.0 [-4.0, 0.0]"
    assert "[" in first
    browser.press("ArrowRight")
    assert text(browser, "#tip") not in ("", first)
    assert browser.run("document.activeElement.getAttribute('aria-label')") == text(browser, "#tip")
    browser.press("Escape")
    assert not browser.run("document.getElementById('tip').checkVisibility()")
    at = browser.run(
        "(({x, y, width, height}) => [x + width / 2, y + height / 2])"
        "(document.querySelector('svg.figure .mark').getBoundingClientRect())"
    )
    browser.send("Input.dispatchMouseEvent", type="mouseMoved", x=at[0], y=at[1])
    browser.run(SETTLED)
    assert text(browser, "#tip") == first
    assert browser.run("document.querySelectorAll('svg.figure [tabindex=\"0\"]').length") == browser.run(
        "document.querySelectorAll('svg.figure').length"
    ), "one stop for each figure"


def test_from_a_wrong_label_to_the_raw_reply_it_takes_three_clicks(opened):
    browser = opened()
    shown = "document.getElementById('explorer').getBoundingClientRect().top < innerHeight"
    assert not browser.run(shown)
    click(browser, ".look a[href='#find=']")
    assert browser.run(shown), "also where the link changes nothing"
    click(browser, ".look a[href='#show=wrong']")
    click(browser, "#rows a")
    assert browser.run("document.getElementById('query').open")
    click(browser, "#query .labels li:nth-child(3) button")
    assert "erag says" in text(browser, "#reply pre")
    assert browser.console == []


def test_a_fragment_opens_a_query_and_a_label_and_back_closes_it(opened):
    browser = opened("#query=q17&doc=q17-d0&by=judge")
    assert text(browser, "#query-h") == "Which bridge is number 17?"
    assert all(said in text(browser, "#reply") for said in ("unparsed", "because", "no verdict here"))
    browser.press("Escape")
    browser.run(SETTLED)
    assert not browser.run("document.getElementById('query').open")
    assert "query=" not in browser.run("location.hash")
    go(browser, "#query=nobody")
    assert "does not hold a query" in text(browser, "#query-body")


def test_a_query_shows_references_answers_documents_with_whole_words_marked_and_every_label(opened):
    browser = opened("#query=q4")
    assert "Bridge 4" in text(browser, ".about ul")
    assert "answer bm25 5" in text(browser, ".given table")
    assert browser.run("document.querySelectorAll('.docs article').length") == 6
    assert text(browser, ".docs mark") == "Bridge 4"
    names = "[...document.querySelectorAll('.docs article:first-child .label span:first-child')]"
    assert browser.run(f"{names}.map((e) => e.textContent)") == ["containment", "judge", "erag", "provenance"]
    marked = "judgekit.marked('Bridge 12, bridge-1; BRIDGE\\u00a01!', ['Bridge 1'])"
    assert browser.run(f"{marked}.filter((p) => p[1]).map((p) => p[0])") == ["bridge-1", "BRIDGE\u00a01"]
    assert browser.run("judgekit.marked('a (b) c', ['(b'])") == [["a (", False], ["b", True], [") c", False]]


def test_everything_can_be_done_with_the_keyboard(opened):
    browser = opened("#queries")
    for selector, after in (("#rows a", "document.getElementById('query').open"),
                            ("button.label", "document.activeElement.id == 'reply'")):  # fmt: skip
        browser.run(f"document.querySelector({selector!r}).focus()")
        browser.press("Enter")
        browser.run(SETTLED)
        assert browser.run(after)
    browser.press("Escape")
    browser.run(SETTLED)
    assert browser.run("document.activeElement.closest('#rows') !== null")


def test_scripts_in_documents_ids_and_replies_stay_texts(opened):
    elements = "[...new Set([...document.querySelectorAll('body *')].map((e) => e.localName))]"
    usual = set(opened().run(elements))
    results = poisoned(make_results(note="a"), HOSTILE)
    results = replace(results, labelings=tuple(replace(one, scale="binary") for one in results.labelings))
    backing = make_backing(8, text=HOSTILE, ids=HOSTILE)
    backing = replace(backing, labels={HOSTILE + name: table for name, table in backing.labels.items()})
    browser = opened("#sort=order", results, backing)
    assert set(browser.run(elements)) <= usual
    click(browser, "#rows a")
    assert "<script>alert(1)</script>" in text(browser, "#query-body")
    assert browser.run("document.querySelectorAll('#query img, #query script, #query style').length") == 0
    click(browser, "button.label:not(.none)")
    assert browser.console == []


def test_a_page_holds_as_many_queries_as_a_browser_opens_and_says_what_is_left_out(opened, tmp_path, monkeypatch):
    monkeypatch.setattr(packing, "MOST_CHARACTERS", 1000)
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries/0000.js").write_text("rows of a page of 0.2")
    browser = opened("#query=q17")
    assert text(browser, "#count") == "20 of 20 queries"
    assert "40 further queries are left out here" in text(browser, "#queries")
    assert browser.run("document.querySelectorAll('.docs article').length") == 6
    assert list(tmp_path.glob("queries/*")) == [], "a page without texts leaves none behind"


def test_a_thousand_queries_stay_small_and_open_at_once(opened, tmp_path):
    words = "a reply of some length that a judge may write before it comes to its verdict, "
    backing = make_backing(1000, 20, words=90, raw=words)
    more = {"judge 2": backing.labels["judge"], "erag 2": backing.labels["erag"]}
    browser = opened("#queries", backing=replace(backing, labels={**backing.labels, **more}))
    assert text(browser, "#count") == "1,000 of 1,000 queries"
    size = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert size < 12_000_000
    drawn = browser.run("performance.getEntriesByType('navigation')[0].domComplete")
    assert drawn < 5000  # a second on a machine of its own; this one may be busy
