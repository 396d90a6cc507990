"""Whoever cannot see, cannot use a mouse, or prints it, reads the same report."""

import json
from pathlib import Path

import pytest

from tests.browser import Browser
from tests.report.conftest import SETTLED

AXE = Path(__file__).parents[2] / "node_modules/axe-core/axe.min.js"
FRAGMENTS = ("", "#query=q17&doc=q17-d0&by=judge")

CONTRASTS = """(() => {
  const channel = (v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const parsed = (text) => text.match(/[\\d.]+/g).map(Number);
  const solid = (e) => {
    for (; e; e = e.parentElement) {
      const found = parsed(getComputedStyle(e).backgroundColor);
      if (found.length < 4 || found[3] === 1) return found;
    }
    return [255, 255, 255];
  };
  const poor = new Set(), walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !e.checkVisibility() || e.closest("title, desc, script, style")) continue;
    const style = getComputedStyle(e), svg = e.closest("svg");
    const [a, b] = [light(parsed(svg ? style.fill : style.color)), light(solid(svg || e))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) poor.add(`${e.tagName}.${e.getAttribute("class")}: ${((a + 0.05) / (b + 0.05)).toFixed(2)}`);
  }
  return [...poor];
})()"""  # noqa: E501  # a script reads best as it is


def dressed(browser: Browser, scheme: str, width: int = 1200) -> None:
    features = [
        {"name": "prefers-color-scheme", "value": scheme},
        {"name": "prefers-reduced-motion", "value": "reduce"},
    ]
    browser.send("Emulation.setEmulatedMedia", media="", features=features)
    browser.send("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500)
    browser.run(f"for (const one of document.querySelectorAll('details')) one.open = true; {SETTLED}")


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed (npm install --no-save axe-core@4.14.1)")
@pytest.mark.parametrize("fragment", FRAGMENTS)
@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 380)])
def test_axe_finds_nothing(opened, fragment, scheme, width):
    browser = opened(fragment)
    dressed(browser, scheme, width)
    browser.run(AXE.read_text(encoding="utf-8") + "; 1")
    found = json.loads(
        browser.run(
            "axe.run().then((r) => JSON.stringify(r.violations.map((v) => [v.id, v.nodes.map((n) => n.html)])))"
        )
    )
    assert found == []


@pytest.mark.parametrize("fragment", FRAGMENTS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_from_what_is_behind_it(opened, fragment, scheme):
    browser = opened(fragment)
    dressed(browser, scheme)
    assert browser.run(CONTRASTS) == []


def test_nothing_moves_for_those_who_asked_for_that(opened):
    browser = opened()
    dressed(browser, "light")
    browser.run("location.hash = '#query=q4'; new Promise((done) => requestAnimationFrame(done))")
    assert browser.run("document.getAnimations().length") == 0


def test_paper_holds_the_whole_report_and_an_open_query_alone(opened):
    browser = opened()
    browser.send("Emulation.setEmulatedMedia", media="print", features=[])
    parts = "[...document.querySelectorAll('main > section, nav, .filters')]"
    shown = f"{parts}.filter((e) => e.checkVisibility()).map((e) => e.id)"
    assert {"decision", "queries", "health"} <= set(browser.run(shown))
    assert "" not in browser.run(shown)
    assert not browser.run(
        "document.getElementById('list').scrollHeight > document.getElementById('list').clientHeight"
    )
    browser.run(f"location.hash = '#query=q4'; {SETTLED}")
    assert browser.run(shown) == []
    assert browser.run("document.getElementById('query').checkVisibility()")
