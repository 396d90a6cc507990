"""The claim as a picture: score against answer quality, by labeling, each circle a click away from its queries."""

import base64
import itertools
import json
import random
import zlib
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from judgekit import report
from judgekit.data.documents import Doc, MemoryDocs, Query
from judgekit.report.queries import Backing, pack
from tests.browser import Browser
from tests.report.conftest import LABELINGS, RUNS, SETTLED, click, go, make_backing, make_results
from tests.report.test_report_accessibility import AXE, dressed


def scored(queries: int = 60) -> Backing:
    """Return what lies behind a result, with scores of every labeling, and kinds of questions."""
    backing = make_backing(queries)
    ids = list(backing.queries)
    rows = []
    for labeling in LABELINGS:
        for r, run in enumerate(RUNS):
            for i, query in enumerate(ids):
                value = ((i + 2 * r + len(labeling)) % 5) / 4
                rows.append({"labeling": labeling, "run": run, "measure": "nDCG@5", "query_id": query, "value": value})
    table = pd.DataFrame(rows)
    # Other measures, means over queries and missing scores are no points.
    table = pd.concat([table, table.assign(measure="P@5", value=0.123), table.head(3).assign(query_id="all")])
    gone = (table["labeling"] == "judge") & (table["run"] == "dense") & (table["query_id"] == "q7")
    table["value"] = table["value"].mask(gone)
    return replace(backing, scores=table, kinds={query: ("open", "yes/no")[i % 2] for i, query in enumerate(ids)})


def index_of(backing: Backing) -> Any:
    packed = pack(make_results(), backing)
    assert packed is not None
    return json.loads(zlib.decompress(base64.b64decode(packed.index)))


def points(index: Any, labeling: str, run: str = "", within: bool = False) -> list[tuple[float, float]]:
    """Score and quality of each answer, by numpy."""
    place = [one["name"] for one in index["labelings"]].index(labeling)
    found: list[tuple[float, float]] = []
    for query in index["queries"]:
        pairs = np.array([query["scores"][place], query["quality"]], float)
        if within:
            known = np.isfinite(pairs).all(axis=0)
            pairs = pairs - pairs[:, known].mean(axis=1, keepdims=True)
        runs = [index["runs"].index(run)] if run else range(len(index["runs"]))
        found += [tuple(pairs[:, r].tolist()) for r in runs if np.isfinite(pairs[:, r]).all()]
    return found


def places(browser: Browser, labeling: int, state: str = "") -> list[tuple[float, float, int]]:
    found = browser.run(
        f"""(() => {{
          const text = atob(document.getElementById("index").textContent);
          const bytes = Uint8Array.from(text, (c) => c.charCodeAt(0));
          const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
          return new Response(stream).json().then((index) => {{
            const {{ places }} = judgekit.placesOf(index, judgekit.stateOf("#find={state}"), {labeling});
            return JSON.stringify([...places.values()].map(({{ x, y, points }}) => [x, y, points.length]));
          }});
        }})()"""
    )
    return [(x, y, n) for x, y, n in json.loads(found)]


def marks(browser: Browser) -> list[str]:
    return list(browser.run("[...document.querySelectorAll('#plots .mark')].map((m) => m.getAttribute('aria-label'))"))


def ids(browser: Browser) -> list[str]:
    return list(browser.run("[...document.querySelectorAll('#rows tr th .ci')].map((e) => e.textContent)"))


def test_the_page_knows_each_score_of_the_primary_measure_and_no_other():
    index = index_of(scored())
    assert (index["measure"], index["scored"]) == ("nDCG@5", True)
    values = {value for query in index["queries"] for row in query["scores"] for value in row}
    assert values == {0, 0.25, 0.5, 0.75, 1, None}
    judge, dense = list(LABELINGS).index("judge"), index["runs"].index("dense")
    lacking = [
        (query["id"], place, r)
        for query in index["queries"]
        for place, row in enumerate(query["scores"])
        for r, value in enumerate(row)
        if value is None
    ]
    assert lacking == [("q7", judge, dense)]
    assert {query["kind"] for query in index["queries"]} == {"open", "yes/no"}
    assert index_of(make_backing(3))["scored"] is False


@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize("run", ["", "rrf"])
def test_circles_are_where_answers_are_and_count_them(opened, run, within):
    backing = scored()
    browser = opened(backing=backing)
    found = places(browser, 1, f"&run={run}&view={'within' if within else ''}")
    expected = points(index_of(backing), "judge", run, within)
    assert sum(n for *_, n in found) == len(expected) == (60 if run else 299)
    ends = 1.0
    if within:
        far = max(abs(value) for pair in points(index_of(backing), "judge", "", True) for value in pair)
        x_far, y_far = (max(abs(pair[i]) for pair in points(index_of(backing), "judge", "", True)) for i in (0, 1))
        assert far >= 0.5
        ends = 2 * max(x_far, y_far)
    # A place is at most half a step away from each of its answers.
    drawn = [(x, y) for x, y, n in found for _ in range(n)]
    reach = ends / 20 / 2 + 1e-3
    for axis in (0, 1):
        assert np.allclose(sorted(p[axis] for p in drawn), sorted(p[axis] for p in expected), atol=reach)
    if not within:
        assert Counter((x, y) for x, y in drawn) == Counter(expected)


def test_a_circle_lists_its_queries_and_filters_choose_what_is_drawn(opened):
    backing = scored()
    browser = opened("#queries", backing=backing)
    assert browser.run("document.getElementById('scatter').checkVisibility()")
    assert browser.run("document.querySelectorAll('#plots svg').length") == len(LABELINGS)
    go(browser, "#labeling=judge&run=rrf&kind=open")
    said = marks(browser)
    assert all(text.startswith("judge: nDCG@5 ") for text in said)
    assert sum(int(text.split(": ")[-1].split(" answer")[0]) for text in said) == 30
    browser.run(f"document.querySelector('#plots .mark').dispatchEvent(new MouseEvent('click')); {SETTLED}")
    listed = ids(browser)
    first = said[0]
    assert first.endswith(f": {len(listed)} answers to {len(listed)} queries")
    of_kind = {query["id"]: query for query in index_of(backing)["queries"] if query["kind"] == "open"}
    score, quality = (float(text.split(" ")[-1]) for text in first.split(": ")[1].split(", "))
    rrf = RUNS.index("rrf")
    expected = {q for q, one in of_kind.items() if (one["scores"][1][rrf], one["quality"][rrf]) == (score, quality)}
    assert set(listed) == expected
    assert "at=1." in browser.run("location.hash"), "it can be shared"
    assert browser.run("document.querySelector('#plots .mark').getAttribute('aria-pressed')") == "true"
    assert sum(int(text.split(": ")[-1].split(" answer")[0]) for text in marks(browser)) == 30, "the others stay"
    click(browser, "#clear")
    assert browser.run("document.querySelectorAll('#plots svg').length") == len(LABELINGS)


def test_a_circle_of_one_query_opens_it_and_keys_do_what_the_pointer_does(opened):
    browser = opened("#find=q7&labeling=erag&run=bm25", backing=scored())
    browser.run("document.querySelector('#plots .mark').focus()")
    before = browser.run("document.activeElement.getAttribute('aria-label')")
    assert browser.run("document.getElementById('tip').textContent") == before
    browser.press("Enter")
    browser.run(SETTLED)
    assert browser.run("document.getElementById('query').open")
    assert "query=q7" in browser.run("location.hash")
    browser = opened("#labeling=erag", backing=scored())
    browser.run("document.querySelector('#plots .mark').focus()")
    first = browser.run("document.activeElement.dataset.at")
    browser.press("ArrowRight")
    second = browser.run("document.activeElement.dataset.at")
    assert second != first
    browser.press("Enter")
    browser.run(SETTLED)
    assert f"at={second}" in browser.run("location.hash")
    assert browser.run("document.activeElement.dataset.at") == second, "the focus stays where it was"


def test_arrow_keys_go_from_query_to_query(opened):
    browser = opened("#sort=order&query=q4", backing=scored())
    browser.press("ArrowRight")
    browser.run(SETTLED)
    assert "query=q5" in browser.run("location.hash")
    browser.press("ArrowLeft")
    browser.run(SETTLED)
    assert "query=q4" in browser.run("location.hash")
    # A table that scrolls sideways keeps its arrow keys.
    browser.run("document.querySelector('#query .answers').focus()")
    browser.press("ArrowRight")
    browser.run(SETTLED)
    assert "query=q4" in browser.run("location.hash")


def test_answers_are_not_cut_on_a_wide_screen(opened):
    browser = opened("#query=q4", backing=scored())
    browser.send("Emulation.setDeviceMetricsOverride", width=1400, height=900, deviceScaleFactor=1, mobile=False)
    browser.run(SETTLED)
    table = "document.querySelector('#query .answers')"
    assert browser.run(f"{table}.scrollWidth <= {table}.clientWidth")
    assert browser.run(f"{table}.clientWidth > 1000")


def large(queries: int = 2000, runs: int = 8, labelings: int = 5) -> tuple[Any, Backing]:
    """Return a large result: 15 passages of 80 words a query, each labelled five times."""
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(20_000)]
    # Words come as often as in a language: the one of rank n with a chance of 1 / n.
    often = [*itertools.accumulate(1 / (rank + 3) for rank in range(len(words)))]
    names, asked = [f"run{r}" for r in range(runs)], [f"q{i}" for i in range(queries)]
    pool = {query: [f"{query}-{d}" for d in range(15)] for query in asked}
    docs = [
        Doc(doc, " ".join(rng.choices(words, cum_weights=often, k=80)), "Title")
        for each in pool.values()
        for doc in each
    ]
    pairs = [(query, doc) for query, each in pool.items() for doc in each]
    labels = {}
    for name in (f"labeling{place}" for place in range(labelings)):
        frame = pd.DataFrame(pairs, columns=["query_id", "doc_id"])
        raw = ["RELEVANT" if rng.random() < 0.3 else "NOT RELEVANT" for _ in pairs]
        labels[name] = frame.assign(
            relevance=[float(text == "RELEVANT") for text in raw], status="ok", raw=raw, reason=""
        )
    quality = [
        {"run": run, "depth": 5, "model": "reader-small", "query_id": query, "metric": "em", "status": "ok",
         "reason": "", "value": float(rng.random() < 0.5),
         "answer": " ".join(rng.choices(words, cum_weights=often, k=5))}
        for run in names for query in asked
    ]  # fmt: skip
    scores = [
        {"labeling": name, "run": run, "measure": "nDCG@5", "query_id": query, "value": rng.random()}
        for name in labels for run in names for query in asked
    ]  # fmt: skip
    texts = {query: Query(query, " ".join(rng.choices(words, cum_weights=often, k=12)), ("one",)) for query in asked}
    lists = {run: {query: rng.sample(pool[query], 5) for query in asked} for run in names}
    tables = pd.DataFrame(quality), texts, MemoryDocs(docs), lists, pd.DataFrame(scores)
    return make_results(), Backing(labels, *tables)


def asked(query: Query, doc: Doc) -> bytes:
    return json.dumps({"messages": [{"role": "user", "content": f"Judge. {query.text} {doc.text}"}]}).encode()


def test_2000_queries_of_8_runs_and_5_labelings_stay_below_12_megabytes(tmp_path):
    results, backing = large()
    # What requests share is held once; what each took is told for every label.
    rng, tables = random.Random(2), []
    for name, table in backing.labels.items():
        took = table[["query_id", "doc_id"]].assign(labeling=name, requests=1)
        took["prompt_tokens"] = [float(rng.randint(150, 400)) for _ in range(len(took))]
        took["completion_tokens"] = [float(rng.randint(1, 3)) for _ in range(len(took))]
        took["seconds"] = [rng.lognormvariate(-1, 0.5) for _ in range(len(took))]
        tables.append(took.assign(stored_at=[1.8e9 + place / 20 for place in range(len(took))]))
    backing = replace(backing, asks=dict.fromkeys(backing.labels, asked), replies=pd.concat(tables))
    report.write_html(results, tmp_path / "report.html", backing)
    assert 4_000_000 < (tmp_path / "report.html").stat().st_size < 12_000_000


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed (npm install --no-save axe-core@4.14.1)")
@pytest.mark.parametrize(("scheme", "width"), [("light", 1400), ("dark", 380)])
def test_axe_finds_nothing_in_the_figure(opened, scheme, width):
    browser = opened("#queries", backing=scored())
    dressed(browser, scheme, width)
    browser.run(AXE.read_text(encoding="utf-8") + "; 1")
    rules = (
        "axe.run('#queries').then((r) => JSON.stringify(r.violations.map((v) => [v.id, v.nodes.map((n) => n.html)])))"
    )
    assert json.loads(browser.run(rules)) == []
    assert browser.run("document.documentElement.scrollWidth <= innerWidth"), "nothing leaves the screen"
