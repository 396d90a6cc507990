import base64
import dataclasses
import hashlib
import math
import re
import subprocess
from importlib.resources import files
from pathlib import Path

import pandas as pd
import pytest

from judgekit import report
from judgekit.analysis.claims import Claim
from judgekit.analysis.flags import FLAGS
from judgekit.analysis.primary import FIND_QUESTIONS, Primary
from judgekit.data.tables import COMPARISON
from judgekit.report.beside import beside
from judgekit.report.formatting import marks, split_flags
from judgekit.report.grids import PerRun, per_run
from judgekit.report.model import Results, Section
from judgekit.report.page import SCRIPTS
from judgekit.report.queries import pack
from tests.commands import script
from tests.report.conftest import CLAIMS, HOSTILE, Outline, make_backing, make_results, parse_page, poisoned

KILT = Path(__file__).parents[2] / "examples" / "kilt"
TSC = Path(__file__).parents[2] / "node_modules/typescript/bin/tsc"
INSIDE = ("#", "data:text/csv;base64,")
"""What a link of the page may begin with."""


@pytest.fixture(scope="module")
def text() -> str:
    """The page of the usual results."""
    return report.render(make_results(note="No LLM was involved."))


@pytest.fixture(scope="module")
def page(text: str) -> Outline:
    return parse_page(text)


def drawn(**changes: object) -> Outline:
    return parse_page(report.render(make_results(**changes)))


def links(page: Outline) -> set[str]:
    return {value for tag, name, value in page.attributes if tag == "a" and name == "href"}


@pytest.mark.parametrize(("runs", "shown"), [(7, False), (8, True)])
def test_the_system_level_is_shown_from_eight_runs_on(runs, shown):
    results = make_results()
    facts = dataclasses.replace(results.facts, runs=(results.facts.runs[0],) * runs)
    whole = drawn(facts=facts).whole
    assert ("system level" in whole) == shown
    assert "within-query level" in whole
    # A table of means has no other level.
    means = results.comparison[results.comparison["level"] == "system"]
    assert "system level" in drawn(comparison=means, facts=facts).whole


def test_every_id_is_unique_and_every_anchor_leads_somewhere(page):
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    targets = {link[1:] for link in links(page) if link.startswith("#")}
    for _, name, value in page.attributes:
        targets |= set(value.split()) if name in ("aria-labelledby", "aria-describedby") else set()
    assert targets <= set(ids)


def test_the_page_refers_to_nothing_outside_of_itself(text, page):
    assert all(value.startswith(INSIDE) for _, name, value in page.attributes if name in ("href", "src"))
    assert not re.search(r"https?:|url\(|@import|//", text.split("</style>")[0].split("<style>")[1])
    assert page.tags["link"] == page.tags["img"] == page.tags["iframe"] == 0


def test_the_only_script_that_may_run_is_the_one_whose_hash_the_page_names():
    text = report.render(make_results(), pack(make_results(), make_backing()))
    (own,) = re.findall(r"<script>(.*?)</script>", text, re.S)
    named = re.findall(r"script-src ([^;]*);", text)
    assert named == [f"'sha256-{base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()}'"]
    assert "default-src 'none'" in text


def test_hostile_texts_in_every_field_stay_texts(page):
    results = poisoned(make_results(), HOSTILE)
    assert results.title.startswith(HOSTILE)
    assert results.comparison["labeling"].str.startswith(HOSTILE).all()
    text = report.render(results)
    harmed = parse_page(text)
    assert set(harmed.tags) <= set(page.tags)
    names = {name for _, name, _ in harmed.attributes}
    assert names <= {name for _, name, _ in page.attributes}
    assert not any(name.startswith("on") for name in names)
    assert all(value.startswith(INSIDE) for _, name, value in harmed.attributes if name in ("href", "src"))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert "<script>alert(1)</script>" in harmed.whole
    assert "{{ 7*7 }}" in harmed.whole


def test_every_cell_of_the_primary_table_shows_the_tables_numbers(page):
    results = make_results()
    frame = results.comparison.query(
        "level == 'query' and depth == 5 and run == 'all' and quality_metric == 'em' and coefficient == 'concordance'"
    )
    measures = list(dict.fromkeys(frame["measure"]))
    header = next(i for i, row in enumerate(page.rows) if row[:2] == ["Labeling", "nDCG@5 primary"])
    for row, info in zip(page.rows[header + 1 :], results.labelings, strict=False):
        assert row[0].startswith(info.name)
        for measure, shown in zip(measures, row[1:], strict=True):
            [cell] = frame[(frame["labeling"] == info.name) & (frame["measure"] == measure)].to_dict("records")
            assert f"{cell['value']:.3f}[" in shown
            assert f"[{cell['ci_low']:.3f}, {cell['ci_high']:.3f}]" in shown


def test_cells_that_are_the_outcome_are_marked():
    primary = dataclasses.replace(make_results().primary, measure="nDCG@1", depth=1)
    text = report.render(make_results(primary=primary))
    assert re.search(r'<td class="cell constructed">.*<span class="v">1\.000</span>', text)
    assert f'<span class="mk">≡</span>{FLAGS["by_construction"]}' in text


def test_there_are_three_marks_and_a_note_in_words_for_every_flag():
    frame = make_results().comparison
    frame.loc[frame["labeling"] == "judge", "flags"] += ";" + ";".join(FLAGS)
    whole = drawn(comparison=frame).whole
    assert set(marks(FLAGS)) == {"≡", "m", "!"}
    assert all(meaning in whole for meaning in FLAGS.values())
    assert f"{FLAGS['same_model']} (judge)" in whole


def test_a_flag_stands_beside_the_numbers_that_have_it():
    frame, meant = make_results().comparison, FLAGS["same_model"]
    frame.loc[frame["labeling"] == "judge", "flags"] += ";same_model"
    row = next(row for row in drawn(comparison=frame).rows if row[0] == "judge" and meant in row[1])
    assert all("m" in cell.partition("(")[0] for cell in row[1:])
    assert row[6].startswith("!m(")


def test_the_page_goes_from_the_note_and_the_decision_down_to_replies(text, page):
    compared = "exact match of the answers of reader-small from the top 5"
    said = ("No LLM was involved.", "erag finds the worse answered one 83", compared)
    places = [page.whole.index(one) for one in said]
    assert places == sorted(places)
    assert ["judge", "erag", "-0.120", "[-0.160, -0.080]", "t", "< 0.001", "0.001", "300"] in page.rows
    assert ["judge", "4,812", "1,532,884", "9,624", "6 min 52 s", "0.24 USD", "1.04 times"] in page.rows
    assert text.count("<p>Each cell: concordance") == 2, "one table for each level that is shown"
    assert "Each run on its own" in page.whole
    within = "Over questions, within a run: not which run is better."
    assert within in page.whole
    results = make_results()
    first = results.comparison["run"].isin(["all", results.comparison["run"].drop_duplicates().iloc[0]])
    alone = drawn(comparison=results.comparison[first]).whole
    assert "Each run on its own" in alone
    assert within not in alone, "a single run is compared with no other"


def test_what_a_claim_hinges_on_stands_first_among_the_threats():
    hinge = Claim(
        "hinge", "Without r03 nothing is shown of erag.", "erag", "r03", qualifies="keep: erag", line="Hinges"
    )
    threats = make_results(claims=(*CLAIMS, hinge), warnings=("Labels are missing.",)).threats
    assert threats == [hinge.sentence, "Labels are missing."]
    assert hinge.sentence in drawn(claims=(*CLAIMS, hinge), warnings=()).whole.partition("Threats to validity")[2]


def test_a_section_of_another_room_is_drawn_with_its_table():
    cell = {"name": ["a"], "value": [0.25], "ci_low": [0.2], "ci_high": [0.3], "n": [1200], "same": [True]}
    table = pd.DataFrame(cell)
    long = pd.DataFrame({"run": [f"r{i}" for i in range(20)], "nothing": [math.nan] * 20, "said": [""] * 20})
    page = drawn(sections=(Section("Extra <b>", "Some words.", table), Section("Long", table=long)))
    assert page.rows.count(["a", "0.250", "[0.200, 0.300]", "1,200", "yes"]) == 1
    assert "Extra <b>" in page.whole
    assert "(20 rows)" in page.whole, "a long table is folded"
    assert ["run"] in page.rows, "empty columns are not drawn"


def test_the_page_draws_the_papers_table_1_with_its_480_cells_and_data_sets_over_runs():
    frame = script(KILT / "beside.py").paper().rename(columns={"paper": "value"})
    values = frame["value"]
    frame = frame.assign(
        level="query", depth=50,
        undefined_reason=values.isna().map({True: "not applicable: no short answer", False: ""}), quality_metric="em",
        model="t5", ci_low=math.nan, ci_high=math.nan, ci_method="", n=0, flags="",
    )  # fmt: skip
    primary = Primary("P", "em", "t5", 50, FIND_QUESTIONS)
    rows = drawn(comparison=COMPARISON.check(frame), primary=primary, labelings=()).rows
    header = next(i for i, row in enumerate(rows) if row[:4] == ["Labeling", "Measure", "τ", "ρ"])
    assert rows[header - 2][1:] == list(dict.fromkeys(frame["dataset"]))
    assert rows[header - 1][1:] == [run for _ in range(5) for run in dict.fromkeys(frame["run"])]
    shown = [cell for row in rows[header + 1 : header + 25] for cell in row[-20:]]
    there = [f"{value:.3f}" for value in values if not math.isnan(value)]
    assert sorted(cell for cell in shown if not cell.startswith("not applicable")) == sorted(there)
    assert sum(cell.startswith("not applicable") for cell in shown) == 480 - len(there)


def test_table_1_carries_the_flags_of_its_cells_here_and_over_several_results():
    results = make_results()
    table = results.comparison
    at = (table["level"] == "query") & (table["depth"] == 5) & (table["quality_metric"] == "em")
    said = table["flags"].where(~(at & table["measure"].isin(["R@5", "Success@5"])), "recall_is_success;binary_binary")
    said = said.where(~(at & (table["labeling"] == "erag") & (table["measure"] == "P@5")), "by_construction")
    flagged = dataclasses.replace(results, comparison=table.assign(flags=said))
    for (labeling, measure, _, run, _), own in table_1_of(flagged).flags.items():
        if measure in ("R@5", "Success@5"):
            assert set(own) == {"recall_is_success", "binary_binary"}
        elif (labeling, measure) == ("erag", "P@5"):
            assert own == ("by_construction",)
        else:
            rows = table[at & (table["labeling"] == labeling) & (table["measure"] == measure) & (table["run"] == run)]
            assert set(own) == set(split_flags(rows["flags"].iloc[0]))
    pages = [report.render(flagged), beside({"NQ": flagged, "WoW": results}, {})]
    for text in pages:
        page = parse_page(text)
        key = "table-1" if text is pages[1] else "per-run"
        table_1 = text[text.index(f'id="{key}-c"') :]
        notes = table_1[: table_1.index("</ul>")]
        assert "recall equals success on every query" in notes
        assert "the labels are the outcome itself at depth 1" in notes
        marked = [cell for row in page.rows if "R@5" in row[:2] for cell in row if "recall equals success" in cell]
        assert marked, "beside the number, in words for who cannot see the mark"
    assert not table_1_of(make_results(comparison=table.assign(flags=""))).notes


def table_1_of(results: Results) -> PerRun:
    found = per_run(results)
    assert found is not None
    return found


def test_the_answers_of_each_mode_are_named():
    fused = dataclasses.replace(make_results().answers[0], mode="fused")
    assert drawn(answers=(fused,)).whole.count("reader-small (fused)") == 5, "who answered in which mode"


def test_notices_retries_files_and_the_command_belong_to_health():
    facts = dataclasses.replace(
        make_results().facts, inputs=(("queries", "q.jsonl", "ab" * 32),), more=(("Command", "judgekit run e.toml"),)
    )
    notices = ("local: the model refuses temperature",)
    page = drawn(notices=notices, retries=(("local: no connection", 7),), facts=facts)
    before, health = page.whole.split("what was asked, what came of it")
    assert "refuses temperature" not in before
    for said in ("refuses temperature", "local: no connection", "ab" * 32, "judgekit run e.toml"):
        assert said in health
    assert ["local: no connection", "7"] in page.rows


def test_a_status_leads_to_its_queries(page):
    there = parse_page(report.render(make_results(), pack(make_results(), make_backing())))
    assert "#show=unparsed&labeling=judge" in links(there)
    assert not any("=" in link for link in links(page) if link.startswith("#"))


@pytest.mark.skipif(not TSC.exists(), reason="TypeScript is not installed (npm install --no-save typescript@5.9)")
def test_the_types_that_the_scripts_declare_hold(tmp_path):
    folder = files("judgekit.report") / "templates"
    text = "".join((folder / name).read_text(encoding="utf-8") for name in SCRIPTS)
    (tmp_path / "page.js").write_text(text, encoding="utf-8")
    options = ["--checkJs", "--noEmit", "--target", "es2024", "--lib", "dom,dom.iterable,es2024"]
    done = subprocess.run(["node", TSC, *options, tmp_path / "page.js"], capture_output=True, text=True, timeout=120)
    assert done.stdout == ""
