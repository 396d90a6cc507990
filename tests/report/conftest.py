"""Realistic results, built by a function, for every test of the report."""

import base64
import dataclasses
import itertools
import json
import math
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from judgekit import report
from judgekit.analysis.claims import Claim, lines_of
from judgekit.analysis.primary import FIND_QUESTIONS, Primary
from judgekit.data.documents import Doc, MemoryDocs, Query
from judgekit.data.tables import COMPARISON, SCORES
from judgekit.report.model import (
    DETAILS,
    DIFFERENCES,
    QUALITY_MEANS,
    Answers,
    Bill,
    Cost,
    Facts,
    LabelingInfo,
    Results,
    RunFacts,
    Section,
)
from judgekit.report.queries import Backing
from tests.browser import BROWSER, Browser

RUNS = ("bm25", "dense", "rrf", "tfidf", "title-only")
DEPTHS = (1, 5, 10)
MEASURES = ("nDCG", "P", "R", "AP", "RR", "Success")
LABELINGS = {"containment": 0.62, "judge": 0.71, "erag": 0.83, "provenance": 0.66}
NAN = math.nan


def _wobble(*keys: object) -> float:
    """A number in [-1, 1] that depends on the keys only (no hash seed, no random state)."""
    return ((sum(ord(c) * (i + 7) for i, c in enumerate(repr(keys))) % 997) / 498.5) - 1


@cache
def _comparison() -> pd.DataFrame:
    rows = []
    for level in ("query", "within-query", "system"):
        for depth in DEPTHS:
            for run in (*RUNS, "all") if level == "query" else ("all",):
                for metric in ("em", "f1"):
                    for labeling, base in LABELINGS.items():
                        for measure in MEASURES:
                            rows += _cell(level, depth, run, metric, labeling, base, measure)
    return COMPARISON.check(pd.DataFrame(rows))


def _cell(
    level: str, depth: int, run: str, metric: str, labeling: str, base: float, measure: str
) -> list[dict[str, Any]]:
    flags, reason = [], ""
    value = base - 0.02 * math.log2(depth) + 0.03 * _wobble(measure, labeling, run) + 0.01 * _wobble(level, metric)
    half = 0.02 + 0.02 * (1 + _wobble(measure, metric)) / 2
    if labeling == "erag" and depth == 1 and metric == "em":
        flags, value, half = ["by_construction"], 1.0, 0.0
    if measure == "R" and labeling == "provenance":
        flags.append("ties_at_cutoff")
    if measure == "Success" and metric == "em":
        flags.append("unjudged")
    if level == "system":
        flags.append("few_runs")
    if measure == "AP" and labeling == "containment" and run == "title-only":
        flags.append("few_differing")
        reason, value = "the score is the same for every query", NAN
    head = {
        "labeling": labeling, "measure": f"{measure}@{depth}", "run": run, "level": level, "depth": depth,
        "quality_metric": metric, "model": "reader-small", "n": 300, "undefined_reason": reason,
        "flags": ";".join(flags),
    }  # fmt: skip
    out = []
    for coefficient, scale in (("concordance", 1.0), ("tau_b", 1.4), ("rho", 1.6), ("r", 1.5)):
        centre = value if coefficient == "concordance" else (value - 0.5) * scale
        ends = (NAN, NAN) if level == "system" or reason else (centre - half, centre + half)
        out.append(
            head
            | {"coefficient": coefficient, "value": centre, "ci_low": ends[0], "ci_high": min(ends[1], 1.0)}
            | {"ci_method": "" if math.isnan(ends[0]) else "percentile bootstrap"}
        )
    return out


def labelings() -> tuple[LabelingInfo, ...]:
    pairs = 4812
    counts = {"ok": pairs, "unparsed": 0, "truncated": 0, "refused": 0, "failed": 0, "not_applicable": 0}
    model = {"endpoint": "local", "model": "reader-small"}
    return (
        LabelingInfo(
            "containment", "containment", "containment", "binary", references=True,
            counts=counts | {"ok": pairs - 60, "not_applicable": 60}, relevant=903, mean=0.19,
            spending=Bill(Cost(0, 0, 0, 0.0, request_seconds=0.0), Cost(0, 0, 0, 0.0, 0.4)),
        ),
        LabelingInfo(
            "judge", "judge", "judge(prompt=binary)", "binary", **model, prompt="judge-binary", kinship="same model",
            counts=counts | {"ok": pairs - 17, "unparsed": 12, "truncated": 3, "refused": 1, "failed": 1},
            relevant=1604, mean=0.334,
            spending=Bill(
                Cost(4812, 1_532_884, 9_624, 0.2395, request_seconds=412.5), Cost(12, 3_800, 24, 0.0006, 1.9), 4800, 1
            ),
        ),
        LabelingInfo(
            "erag", "utility", "utility(quality=em)", "binary", references=True, **model, prompt="answer-short",
            kinship="same model", outcome_metric="em", outcome_prompt="answer-short", counts=counts, relevant=1203,
            mean=0.25, spending=Bill(Cost(4812, 1_410_221, 28_872, 0.2288, request_seconds=498.0), Cost(), 4812, 0),
        ),
        LabelingInfo(
            "provenance", "qrels", "qrels(path=provenance.qrels)", "binary", people=True, counts=counts, relevant=291,
            mean=0.0605, outside_pool=9,
        ),
    )  # fmt: skip


def quality() -> pd.DataFrame:
    rows = [
        {"run": run, "depth": depth, "metric": metric, "n": 299, "abstained": 11 + i, "seems_abstained": 2,
         "missing": 1, "value": 0.25 + 0.02 * i + 0.03 * math.log2(depth) + (0.08 if metric == "f1" else 0.0)}
        for i, run in enumerate(RUNS) for depth in DEPTHS for metric in ("em", "f1")
    ]  # fmt: skip
    closed = {"run": "all", "depth": 0, "n": 300, "abstained": 90, "seems_abstained": 0, "missing": 0}
    rows += [closed | {"metric": "em", "value": 0.12}, closed | {"metric": "f1", "value": 0.17}]
    return QUALITY_MEANS.check(pd.DataFrame(rows).assign(model="reader-small", not_applicable=0))


def _differences() -> pd.DataFrame:
    rows = [
        {"first": first, "second": second, "measure": f"nDCG@{depth}", "run": run, "depth": depth,
         "coefficient": coefficient, "difference": LABELINGS[first] - LABELINGS[second]}
        for run, depth, coefficient in itertools.product(("bm25", "all"), DEPTHS, ("concordance", "tau_b"))
        for first, second in itertools.combinations(LABELINGS, 2)
    ]  # fmt: skip
    frame, same = pd.DataFrame(rows), {"level": "query", "quality_metric": "em", "model": "reader-small", "n": 300}
    gap = frame["difference"]
    shown, ends = abs(gap) > 0.04, {"ci_low": gap - 0.04, "ci_high": gap + 0.04, "ci_method": "t"}
    p, holm = shown.map({True: 0.0002, False: 0.2}), shown.map({True: 0.001, False: 0.4})
    return DIFFERENCES.check(frame.assign(**same, **ends, p=p, p_holm=holm))


def _details() -> pd.DataFrame:
    keys = ["labeling", "measure", "run", "level", "depth", "quality_metric", "model"]
    cells = _comparison()[keys].drop_duplicates(ignore_index=True)
    lacking = cells["labeling"].map(lambda name: 0.053 if name == "judge" else 0.0)
    return DETAILS.check(cells.assign(tau_b_max=0.71, lacking=lacking, queries=300))


def scores() -> pd.DataFrame:
    return SCORES.check(
        pd.DataFrame(
            {"labeling": name, "run": run, "measure": f"{m}@{k}", "query_id": "all",
             "value": 0.4 + 0.2 * _wobble(name, run, m, k)}
            for name in LABELINGS for run in RUNS for m in MEASURES for k in DEPTHS
        )
    )  # fmt: skip


CLAIMS = (
    Claim("finds", "Of two questions, erag finds the worse answered one 83 (80 to 86) times in 100.", "erag", "chance",
          0.83, 0.80, 0.86, shown=True, line="Failing"),
    Claim("no better", "erag is not shown to find more of them than one score per question.", "erag",
          qualifies="finds: erag"),
    Claim("finds more", "erag is shown to find more of the questions that fail than judge.", "erag", "judge"),
    *(Claim("run", f"{run} may be the best.", run, RUNS[0], -2.0 * i, -4.0 - 3 * i, 0.0, shown=i > 1)
      for i, run in enumerate(RUNS)),
    *(Claim("follows", f"{name} follows the answers.", name, "the answers", 0.2 * value, 0.1, 0.2 * value + 0.2,
            shown=True) for name, value in LABELINGS.items()),
    Claim("cost", "300 new questions would take $0.24 by judge.", "judge", "$0.24", 0.24),
    Claim("costs", "300 new questions would take $0.24 for judge.", line="Cost"),
)  # fmt: skip
DECISION = lines_of(CLAIMS)


def make_results(**changes: Any) -> Results:
    """Return a realistic result; any field can be replaced."""
    results = Results(
        title="Which labels predict the answers?",
        comparison=_comparison().copy(),
        labelings=labelings(),
        answers=(
            Answers(
                "reader-small", "local", "answer-short", {"ok": 4499, "failed": 1},
                Bill(
                    Cost(4500, 6_204_113, 27_120, 0.9495, request_seconds=1290.0), Cost(0, 0, 0, 0.0, 0.2), 4500, 1
                ),
                Cost(1500, 2_000_000, 9_000, 0.3, request_seconds=430.0),
            ),
        ),
        primary=Primary("nDCG@5", "em", "reader-small", 5, FIND_QUESTIONS),
        claims=CLAIMS,
        facts=Facts(
            queries=300, docs=10_768, depth=10, pool_pairs=4812,
            runs=tuple(RunFacts(run, 300 - i, i, 3 * i, 2 * i) for i, run in enumerate(RUNS)),
            seed=1, resamples=1000, versions={"judgekit": "0.1.0", "Python": "3.11.7", "numpy": "2.4.0"},
        ),
        scores=scores(),
        quality=quality(),
        settings='[data]\nqueries = "queries.jsonl"\ndepth = 10\n',
        warnings=("17 of 4,812 labels of judge are missing; 16 queries are left out of the comparison.",),
        currency="USD",
        differences=_differences(),
        details=_details(),
        agreement=pd.DataFrame(
            [("judge", "erag", 4795, 0.512, 0.47, 0.551), ("judge", "provenance", 4795, 0.221, 0.18, 0.26)],
            columns=["first", "second", "n", "kappa", "ci_low", "ci_high"],
        ),
        sections=(Section("How many queries are needed", "To halve the intervals, about 1,200."),),
    )  # fmt: skip
    return dataclasses.replace(results, **changes)


STATUSES = {17: "unparsed", 18: "truncated", 19: "refused", 31: "failed"}
"""What became of the judge's first label of some queries."""


def make_backing(
    queries: int = 60, docs: int = 6, *, text: str = "", ids: str = "", words: int = 40, raw: str = "", **changes: Any
) -> Backing:
    """Return what lies behind a result: every text begins with ``text``, every label is ok but a few of the judge's."""
    names = [f"{ids}q{i}" for i in range(queries)]
    found = {q: [f"{q}-d{d}" for d in range(docs)] for q in names}
    asked = [
        Query(q, f"{text}Which bridge is number {i}?", (f"{text}Bridge {i}", "the old one"))
        for i, q in enumerate(names)
    ]
    passages = [
        Doc(d, f"{text}Passage {n} of {q}: Bridge {i}. " + " ".join(f"w{(31 * i + n + w) % 997}" for w in range(words)),
            f"{text}Title {n}")
        for i, q in enumerate(names) for n, d in enumerate(found[q])
    ]  # fmt: skip
    labels = {}
    for place, name in enumerate(LABELINGS):
        rows = [
            {"query_id": q, "doc_id": d, "relevance": float((i + n * (place + 1)) % 3 == 0), "status": "ok",
             "raw": f"{text}{raw}{name} says {(i + n) % 2}" if name != "containment" else "", "reason": ""}
            for i, q in enumerate(names) for n, d in enumerate(found[q])
        ]  # fmt: skip
        labels[name] = pd.DataFrame(rows)
    for i, status in STATUSES.items():
        if i < queries:
            row = labels["judge"].index[labels["judge"]["doc_id"] == f"{ids}q{i}-d0"]
            labels["judge"].loc[row, ["status", "reason", "raw"]] = [status, f"{text}because", f"{text}no verdict here"]
            labels["judge"].loc[row, "relevance"] = NAN
    rows = [
        {"run": run, "depth": k, "model": "reader-small", "query_id": q, "metric": metric, "status": "ok", "reason": "",
         "value": float((i + r + k) % 4 == 0), "answer": f"{text}answer {run} {k}"}
        for i, q in enumerate(names) for r, run in enumerate(RUNS) for k in (1, 5) for metric in ("em", "f1")
    ]  # fmt: skip
    lists = {run: {q: found[q][r % 2 :] + found[q][: r % 2] for q in names} for r, run in enumerate(RUNS)}
    return dataclasses.replace(
        Backing(labels, pd.DataFrame(rows), {q.query_id: q for q in asked}, MemoryDocs(passages), lists), **changes
    )


def unpacked(packed: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The index of a page, and all its queries."""
    index, *blocks = (json.loads(zlib.decompress(base64.b64decode(text))) for text in (packed.index, *packed.blocks))
    queries = []
    for block in blocks:
        for place, query in enumerate(block["queries"]):
            queries.append({**query, "took": [numbers[place] for numbers in block["took"]]})
    return index, queries


def written(content: list[Any], query: Query, doc: Doc) -> str:
    """A message put together from its pieces, as the page does it."""
    own = (query.text, doc.title, doc.text)
    return "".join(own[piece] if isinstance(piece, int) else piece for piece in content)


HOSTILE = (
    "</title></style></script><script>alert(1)</script><img src=x onerror=alert(2)>"
    "\" onmouseover='alert(3)' x=`y` {{ 7*7 }} {% raw %} javascript:alert(4) [red]loud[/red] [link=https://evil]x[/link]"
    " &amp; &#60; ]]> <!-- \u202egnp.exe\u2066 \x00\x07\x1b[31m\x9b"
)
"""A text that would break out of HTML, an attribute, a style, a URL, the reading direction or a terminal."""


VOID = {"meta", "br", "hr", "img", "link", "input"}


class Outline(HTMLParser):
    """Checks nesting while parsing; collects tags, attributes, texts, ids and table rows."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.stack: list[str] = []
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.text: list[str] = []
        self.rows: list[list[str]] = []
        self.problems: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if len({name for name, _ in attrs}) != len(attrs):
            self.problems.append(f"an attribute of <{tag}> is there twice")
        if tag not in VOID:
            self.stack.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if not self.stack or self.stack[-1] != tag:
            self.problems.append(f"</{tag}> at {self.getpos()} closes {self.stack[-3:]}")
        else:
            self.stack.pop()

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        if self.rows and {"td", "th"} & set(self.stack):
            self.rows[-1][-1] += data

    @property
    def whole(self) -> str:
        return " ".join(self.text)


def parse_page(page: str) -> Outline:
    parser = Outline()
    parser.feed(page)
    parser.close()
    assert parser.problems == []
    assert parser.stack == []
    return parser


def poisoned(value: Any, text: str) -> Any:
    """Put the text at the front of every string of a result."""
    if isinstance(value, pd.DataFrame):
        strings = {c for c in value.columns if pd.api.types.is_string_dtype(value[c])}
        return pd.DataFrame({c: text + value[c] if c in strings else value[c] for c in value.columns})
    if isinstance(value, str):
        return text + value
    if dataclasses.is_dataclass(value):
        return type(value)(**{f.name: poisoned(getattr(value, f.name), text) for f in dataclasses.fields(value)})
    if isinstance(value, tuple):
        return tuple(poisoned(v, text) for v in value)
    if isinstance(value, dict):
        return {poisoned(k, text): poisoned(v, text) for k, v in value.items()}
    return value


SETTLED = """new Promise((done) => {
  const look = () => document.querySelector("[aria-busy=true]") ? setTimeout(look, 20) : done();
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(look, 60)));
})"""


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if BROWSER is None:
        pytest.skip("no Chromium is installed")
    folder = tmp_path_factory.mktemp("browser")
    (folder / "downloads").mkdir()
    with Browser(folder / "profile", folder / "downloads") as browser:
        yield browser


@pytest.fixture
def opened(chromium: Browser, tmp_path: Path) -> Iterator[Callable[..., Browser]]:
    """Open a report in the browser; at the end nothing was asked of anyone."""

    def open_(fragment: str = "", results: Any = None, backing: Backing | None = None) -> Browser:
        page = tmp_path / "report.html"
        report.write_html(results or make_results(), page, backing or make_backing())
        chromium.open("about:blank")
        chromium.send("Emulation.setEmulatedMedia", media="", features=[])
        chromium.send("Emulation.clearDeviceMetricsOverride")
        chromium.requests.clear()
        chromium.console.clear()
        chromium.open(page.as_uri() + fragment)
        chromium.run(SETTLED)
        return chromium

    yield open_
    assert chromium.requests
    assert all(url.startswith(tmp_path.as_uri()) for url in chromium.requests)


def go(browser: Browser, fragment: str) -> None:
    browser.run(f"location.hash = {fragment!r}; {SETTLED}")


def click(browser: Browser, selector: str) -> None:
    browser.run(f"document.querySelector({selector!r}).click(); {SETTLED}")
