"""The HTML page: well formed, self-contained, escaped, and showing the table's own numbers."""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

from judgekit import report
from judgekit.report.model import Example, Section

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


def outline(page: str) -> Outline:
    parser = Outline()
    parser.feed(page)
    parser.close()
    assert parser.problems == []
    assert parser.stack == []
    return parser


def test_the_page_is_well_formed_and_every_id_is_unique_and_every_anchor_leads_somewhere(make_results):
    page = outline(report.render(make_results()))
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    targets = {value[1:] for tag, name, value in page.attributes if tag == "a" and name == "href"}
    targets |= {
        i
        for _, name, value in page.attributes
        if name in ("aria-labelledby", "aria-describedby")
        for i in value.split()
    }
    assert targets <= set(ids)


def test_the_page_refers_to_nothing_outside_of_itself(make_results):
    text = report.render(make_results())
    page = outline(text)
    assert {
        value for _, name, value in page.attributes if name in ("href", "src") and not value.startswith("#")
    } == set()
    assert not re.search(r"https?:|url\(|@import|//", text.split("</style>")[0].split("<style>")[1])
    assert page.tags["script"] == page.tags["link"] == page.tags["img"] == page.tags["iframe"] == 0
    assert "default-src 'none'" in text


def test_the_same_results_give_the_same_bytes(make_results, tmp_path: Path):
    report.write_html(make_results(), tmp_path / "a.html")
    report.save(make_results(), tmp_path)
    report.write_html(report.load(tmp_path), tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_hostile_texts_in_every_field_stay_texts(make_results, hostile):
    plain = outline(report.render(make_results(note="a")))
    text = report.render(poison(make_results(), hostile))
    page = outline(text)
    assert set(page.tags) <= set(plain.tags)
    names = {name for _, name, _ in page.attributes}
    assert names <= {name for _, name, _ in plain.attributes}
    assert not any(name.startswith("on") for name in names)
    assert all(value.startswith("#") for _, name, value in page.attributes if name in ("href", "src"))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert "<script>alert(1)</script>" in page.whole
    assert "{{ 7*7 }}" in page.whole


def poison(value, text):
    """Put the text at the front of every string of a result."""
    if isinstance(value, pd.DataFrame):
        columns = {c: value[c].map(lambda v: text + v) if value[c].dtype == "str" else value[c] for c in value.columns}
        return pd.DataFrame(columns)
    if isinstance(value, str):
        return text + value
    if dataclasses.is_dataclass(value):
        return type(value)(**{f.name: poison(getattr(value, f.name), text) for f in dataclasses.fields(value)})
    if isinstance(value, tuple):
        return tuple(poison(v, text) for v in value)
    if isinstance(value, dict):
        return {poison(k, text): poison(v, text) for k, v in value.items()}
    return value


def test_poison_reaches_every_text(make_results, hostile):
    results = poison(make_results(), hostile)
    assert results.title.startswith(hostile)
    assert results.labelings[1].examples[0].raw.startswith(hostile)
    assert results.comparison["labeling"].str.startswith(hostile).all()


def test_every_cell_of_the_primary_table_shows_the_tables_numbers(make_results):
    results = make_results()
    rows = outline(report.render(results)).rows
    frame = results.comparison.query(
        "level == 'query' and depth == 5 and run == 'all' and quality_metric == 'em' and coefficient == 'concordance'"
    )
    measures = list(dict.fromkeys(frame["measure"]))
    header = next(i for i, row in enumerate(rows) if row[:2] == ["Labeling", "nDCG@5 primary"])
    for offset, info in enumerate(results.labelings, 1):
        row = rows[header + offset]
        assert row[0] == info.name
        for measure, shown in zip(measures, row[1:], strict=True):
            [cell] = frame[(frame["labeling"] == info.name) & (frame["measure"] == measure)].to_dict("records")
            assert f"{cell['value']:.3f}[" in shown
            assert f"[{cell['ci_low']:.3f}, {cell['ci_high']:.3f}]" in shown


def test_an_undefined_value_is_said_to_be_undefined_with_its_reason(make_results):
    frame = make_results().comparison
    hit = (frame["labeling"] == "judge") & (frame["measure"] == "AP@5")
    frame.loc[hit, ["value", "ci_low", "ci_high"]] = math.nan
    frame.loc[hit, "undefined_reason"] = "the series is constant"
    page = outline(report.render(make_results(comparison=frame)))
    assert "undefined: the series is constant" in page.whole
    assert not re.search(r"\bnan\b", page.whole, re.IGNORECASE)


def test_cells_that_are_the_outcome_are_marked(make_results):
    text = report.render(make_results())
    assert re.search(r'<td class="cell constructed">.*<span class="v">1\.000</span>', text)
    assert "the outcome (or a function of it) by construction" in text


def test_absent_sections_leave_no_trace(make_results):
    text = report.render(make_results(agreement=None, differences=None, models=None, sections=()))
    assert 'id="agreement"' not in text
    assert "Differences between labelings" not in text
    assert "How many queries are needed" not in text


def test_the_note_stands_before_everything_else(make_results):
    whole = outline(report.render(make_results(note="No LLM was involved."))).whole
    assert whole.index("No LLM was involved.") < whole.index("Verdict")


def test_raw_replies_of_missing_labels_can_be_read(make_results):
    whole = outline(report.render(make_results())).whole
    assert "The passage talks about bridges." in whole
    assert "HTTP 500: internal error" in whole


def test_a_section_of_another_room_is_drawn_with_its_table(make_results):
    table = pd.DataFrame({"name": ["a"], "share": [0.25], "n": [1200]})
    page = outline(report.render(make_results(sections=(Section("Extra <b>", "Some words.", table),))))
    assert ["a", "0.250", "1,200"] in page.rows
    assert "Extra <b>" in page.whole


@pytest.mark.parametrize("raw", ["", "x" * 5000, "\n\n\n"])
def test_raw_replies_of_any_length_are_shown_whole(make_results, raw: str):
    results = make_results()
    info = dataclasses.replace(results.labelings[0], examples=(Example("q", "d", "unparsed", "why", raw),))
    assert raw in report.render(dataclasses.replace(results, labelings=(info, *results.labelings[1:])))
