"""The HTML page: well formed, self-contained, escaped, and showing the table's own numbers."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import math
import re

import pandas as pd
import pytest

from judgekit import report
from judgekit.analysis.flags import FLAGS
from judgekit.report.drawing import COEFFICIENTS
from judgekit.report.formatting import marks
from judgekit.report.model import Example, Section

INSIDE = ("#", "data:text/csv;base64,")
"""What a link of the page may begin with."""


def test_the_page_is_well_formed_and_every_id_is_unique_and_every_anchor_leads_somewhere(make_results, outline):
    page = outline(report.render(make_results()))
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    links = (value for tag, name, value in page.attributes if tag == "a" and name == "href")
    targets = {link[1:] for link in links if link.startswith("#")}
    targets |= {
        i
        for _, name, value in page.attributes
        if name in ("aria-labelledby", "aria-describedby")
        for i in value.split()
    }
    assert targets <= set(ids)


def test_the_page_refers_to_nothing_outside_of_itself(make_results, outline):
    text = report.render(make_results())
    page = outline(text)
    assert {
        value for _, name, value in page.attributes if name in ("href", "src") and not value.startswith(INSIDE)
    } == set()
    assert not re.search(r"https?:|url\(|@import|//", text.split("</style>")[0].split("<style>")[1])
    assert page.tags["link"] == page.tags["img"] == page.tags["iframe"] == 0


def test_the_only_script_that_may_run_is_the_one_whose_hash_the_page_names(make_results, make_backing):
    text = report.render(make_results(), make_backing())
    (own,) = re.findall(r"<script>(.*?)</script>", text, re.S)
    named = re.findall(r"script-src ([^;]*);", text)
    assert named == [f"'sha256-{base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()}'"]
    assert "default-src 'none'" in text


def test_the_same_results_give_the_same_bytes(make_results, tmp_path):
    report.write_html(make_results(), tmp_path / "a.html")
    report.save(make_results(), tmp_path)
    report.write_html(report.load(tmp_path), tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_hostile_texts_in_every_field_stay_texts(make_results, poison, hostile, outline):
    plain = outline(report.render(make_results(note="a")))
    text = report.render(poison(make_results(), hostile))
    page = outline(text)
    assert set(page.tags) <= set(plain.tags)
    names = {name for _, name, _ in page.attributes}
    assert names <= {name for _, name, _ in plain.attributes}
    assert not any(name.startswith("on") for name in names)
    assert all(value.startswith(INSIDE) for _, name, value in page.attributes if name in ("href", "src"))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert "<script>alert(1)</script>" in page.whole
    assert "{{ 7*7 }}" in page.whole


def test_poison_reaches_every_text(make_results, poison, hostile):
    results = poison(make_results(), hostile)
    assert results.title.startswith(hostile)
    assert results.labelings[1].examples[0].raw.startswith(hostile)
    assert results.comparison["labeling"].str.startswith(hostile).all()


def test_every_cell_of_the_primary_table_shows_the_tables_numbers(make_results, outline):
    results = make_results()
    rows = outline(report.render(results)).rows
    frame = results.comparison.query(
        "level == 'query' and depth == 5 and run == 'all' and quality_metric == 'em' and coefficient == 'concordance'"
    )
    measures = list(dict.fromkeys(frame["measure"]))
    header = next(i for i, row in enumerate(rows) if row[:2] == ["Labeling", "nDCG@5 primary"])
    for offset, info in enumerate(results.labelings, 1):
        row = rows[header + offset]
        assert row[0].startswith(info.name)
        for measure, shown in zip(measures, row[1:], strict=True):
            [cell] = frame[(frame["labeling"] == info.name) & (frame["measure"] == measure)].to_dict("records")
            assert f"{cell['value']:.3f}[" in shown
            assert f"[{cell['ci_low']:.3f}, {cell['ci_high']:.3f}]" in shown


def test_an_undefined_value_is_said_to_be_undefined_with_its_reason(make_results, outline):
    frame = make_results().comparison
    hit = (frame["labeling"] == "judge") & (frame["measure"] == "AP@5")
    frame.loc[hit, ["value", "ci_low", "ci_high"]] = math.nan
    frame.loc[hit, "undefined_reason"] = "the series is constant"
    page = outline(report.render(make_results(comparison=frame)))
    assert "undefined: the series is constant" in page.whole
    assert not re.search(r"\bnan\b", page.whole, re.IGNORECASE)


def test_cells_that_are_the_outcome_are_marked(make_results):
    primary = dataclasses.replace(make_results().primary, measure="nDCG@1", depth=1)
    text = report.render(make_results(primary=primary))
    assert re.search(r'<td class="cell constructed">.*<span class="v">1\.000</span>', text)
    assert f'<span class="mk">≡</span>{FLAGS["by_construction"]}' in text


def test_there_are_three_marks_and_a_note_in_words_for_every_flag(make_results, outline):
    frame = make_results().comparison
    frame.loc[frame["labeling"] == "judge", "flags"] += ";" + ";".join(FLAGS)
    whole = outline(report.render(make_results(comparison=frame))).whole
    assert set(marks(FLAGS)) == {"≡", "m", "!"}
    assert all(meaning in whole for meaning in FLAGS.values())
    assert f"{FLAGS['same_model']} (judge)" in whole


def test_a_flag_that_a_whole_labeling_has_stands_beside_its_name(make_results, outline):
    frame = make_results().comparison
    frame.loc[frame["labeling"] == "judge", "flags"] += ";same_model"
    rows = outline(report.render(make_results(comparison=frame))).rows
    meant = FLAGS["same_model"]
    row = next(row for row in rows if row[0] == f"judge m({meant})")
    assert all(meant not in cell for cell in row[1:])
    assert row[6].startswith("!(")


def test_a_flag_of_another_coefficient_stands_beside_that_one_only(make_results, outline):
    frame = make_results().comparison
    hit = (frame["labeling"] == "judge") & (frame["measure"] == "nDCG@5") & (frame["coefficient"] == "tau_b")
    frame.loc[hit, "flags"] = "coverage"
    rows = outline(report.render(make_results(comparison=frame))).rows
    notes = {row[2]: row[-1] for row in rows if row[:2] == ["judge", "nDCG@5"] and row[2] in COEFFICIENTS}
    assert notes == {"concordance": "", "tau_b": FLAGS["coverage"], "rho": "", "r": ""}


def test_the_differences_and_the_attainable_tau_of_the_primary_cell_are_shown(make_results, outline):
    page = outline(report.render(make_results()))
    assert ["judge", "erag", "-0.120", "[-0.160, -0.080]", "t", "< 0.001", "0.001", "300"] in page.rows
    row = next(row for row in page.rows if row[:4] == ["judge", "nDCG@5", "concordance", "0.675"])
    assert row[4:9] == ["[0.648, 0.702]", "percentile bootstrap", "300", "0.710", "0.053"]


def test_absent_sections_leave_no_trace(make_results):
    text = report.render(make_results(agreement=None, differences=None, details=None, models=None, sections=()))
    assert 'id="agreement"' not in text
    assert "Differences between labelings" not in text
    assert "attainable" not in text.split("How to read this")[0]
    assert "How many queries are needed" not in text


def test_the_note_stands_before_everything_else(make_results, outline):
    whole = outline(report.render(make_results(note="No LLM was involved."))).whole
    assert whole.index("No LLM was involved.") < whole.index("look where erag scores low")


def test_raw_replies_of_missing_labels_can_be_read(make_results, outline):
    whole = outline(report.render(make_results())).whole
    assert "The passage talks about bridges." in whole
    assert "HTTP 500: internal error" in whole


def test_a_section_of_another_room_is_drawn_with_its_table(make_results, outline):
    table = pd.DataFrame({"name": ["a"], "share": [0.25], "n": [1200]})
    page = outline(report.render(make_results(sections=(Section("Extra <b>", "Some words.", table),))))
    assert ["a", "0.250", "1,200"] in page.rows
    assert "Extra <b>" in page.whole


@pytest.mark.parametrize("raw", ["", "x" * 5000, "\n\n\n"])
def test_raw_replies_of_any_length_are_shown_whole(make_results, raw):
    results = make_results()
    info = dataclasses.replace(results.labelings[0], examples=(Example("q", "d", "unparsed", "why", raw),))
    assert raw in report.render(dataclasses.replace(results, labelings=(info, *results.labelings[1:])))


def test_the_decision_stands_first_and_what_was_found_is_folded_away(make_results, outline):
    page = outline(report.render(make_results()))
    assert page.whole.index("look where erag scores low") < page.whole.index("Primary cell")
    row = next(row for row in page.rows if row[0] == "erag")
    assert row[1:4] == ["helps", "0.400 [0.300, 0.500]", "2.700 [1.400, 4.100]"]
    assert "kind of question" not in page.whole, "no kinds were declared"
    assert page.tags["details"] >= 2
    assert any(row[0] == "judge" and row[1] == "16.000" for row in page.rows), "the purchase order"


def test_the_decision_by_another_model_stands_beside_it(make_results, outline):
    page = outline(report.render(make_results(independent={"other<b>": (("Do", "Label with judge."),)})))
    assert "other<b>" in page.whole
    assert page.tags["b"] == 0
    assert "Label with judge." in page.whole


def test_notices_retries_files_and_the_command_belong_to_health(make_results, outline):
    results = make_results(notices=("local: the model refuses temperature",), retries=(("local: no connection", 7),))
    facts = dataclasses.replace(
        results.facts, inputs=(("queries", "q.jsonl", "ab" * 32),), more=(("Command", "judgekit run e.toml"),)
    )
    page = outline(report.render(dataclasses.replace(results, facts=facts)))
    before, health = page.whole.split("what was asked, what came of it")
    assert "refuses temperature" not in before
    for said in ("refuses temperature", "local: no connection", "ab" * 32, "judgekit run e.toml"):
        assert said in health
    assert ["local: no connection", "7"] in page.rows


def test_a_status_leads_to_its_queries_and_an_example_to_its_reply(make_results, make_backing, outline):
    page = outline(report.render(make_results(), make_backing()))
    links = {value for tag, name, value in page.attributes if tag == "a" and name == "href"}
    assert {"#show=unparsed&labeling=judge", "#query=q17&doc=d204&by=judge"} <= links
    alone = outline(report.render(make_results()))
    links = {value for tag, name, value in alone.attributes if tag == "a" and name == "href"}
    assert not any("=" in link for link in links if link.startswith("#"))


def test_empty_columns_are_not_drawn_and_long_tables_are_folded(make_results, outline):
    table = pd.DataFrame({"run": [f"r{i}" for i in range(20)], "nothing": [math.nan] * 20, "said": [""] * 20})
    page = report.render(make_results(sections=(Section("Long", table=table),)))
    assert "(20 rows)</summary>" in page
    assert ["run"] in outline(page).rows
