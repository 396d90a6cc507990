import dataclasses
import io
import math
import re

import pytest
from hypothesis import given, strategies as st
from rich.console import Console

from judgekit import report
from judgekit.analysis.claims import Claim
from judgekit.data.outputs import clean
from judgekit.data.tables import COMPARISON, SCORES
from judgekit.report import formatting
from judgekit.report.model import QUALITY_MEANS, Bill, Cost, Facts
from tests.report.conftest import make_results, parse_page


def shown(results) -> tuple[str, str]:
    out = io.StringIO()
    report.print_tables(results, Console(file=out))
    return report.render(results), out.getvalue()


def test_results_with_nothing_in_them_still_make_a_page():
    results = make_results(
        comparison=COMPARISON.empty(), labelings=(), answers=(),
        claims=(Claim("no decision", "Nothing can be said.", line="Choose"),),
        facts=Facts(0, 0, 0, 0), scores=SCORES.empty(), quality=QUALITY_MEANS.empty(), settings="", warnings=(),
        differences=None, agreement=None, sections=(),
    )  # fmt: skip
    page, text = shown(results)
    whole = parse_page(page).whole
    assert "Nothing can be said." in whole
    assert "The comparison has no row for the primary cell." in whole
    assert "Nothing can be said." in text


def test_one_labeling_one_measure_one_depth_one_run():
    cell = "labeling == 'judge' and measure == 'nDCG@5' and quality_metric == 'em'"
    one = make_results().comparison.query(f"{cell} and run == 'bm25'")
    results = make_results(comparison=one)
    assert (make_results().primary.run, results.primary.run) == ("all", "bm25"), "a single run needs no mean over runs"
    page, text = shown(results)
    value = f"{one[one['coefficient'] == 'concordance']['value'].iloc[0]:.3f}"
    assert any(row[1].startswith(value) for row in parse_page(page).rows if row[0] == "judge")
    assert value in text


def test_a_comparison_without_any_value_says_why_everywhere():
    frame = make_results().comparison.assign(value=math.nan, ci_low=math.nan, ci_high=math.nan)
    frame["undefined_reason"] = "quality is constant"
    page, text = shown(make_results(comparison=frame))
    whole = parse_page(page).whole
    assert "undefined: quality is constant" in whole
    assert not re.search(r"\bnan\b", whole, re.IGNORECASE)
    assert "undefined: quality is constant" in text
    assert "nan" not in text.lower().split()


def test_unknown_costs_are_a_dash_partly_known_ones_a_lower_bound_and_what_was_asked_again_stands_beside():
    _, judge, erag, _ = make_results().labelings
    unknown = dataclasses.replace(judge, spending=Bill(Cost(4812), again=1204))
    partly = Bill(Cost(4812, 900, 40, 0.5, unreported=3, request_seconds=12.0, untimed=2))
    page, text = shown(make_results(labelings=(unknown, dataclasses.replace(erag, spending=partly))))
    rows = parse_page(page).rows
    assert ["judge", "4,812 (1,204 again)", "–", "–", "–", "–"] in rows
    assert ["erag", "4,812", "≥ 900", "≥ 40", "≥ 12.0 s", "≥ 0.50 USD"] in rows
    assert "≥ 0.50 USD" in text
    assert re.search(r"answers, top 5 +1,500 +2,009,000 +0\.30 USD", text)


@given(st.text())
def test_cleaned_text_has_no_control_characters_and_is_stable(text):
    cleaned = clean(text)
    assert clean(cleaned) == cleaned
    assert not any(ord(c) < 32 and c not in "\t\n" for c in cleaned)
    cleaned.encode()


@given(st.floats(allow_infinity=False))
def test_a_number_is_never_written_as_minus_zero_or_nan(value):
    text = formatting.number(value)
    assert text != "-0.000"
    assert "nan" not in text
    assert math.isnan(value) or math.isclose(float(text), value, abs_tol=0.0005 + 1e-12)


@pytest.mark.parametrize(("cells", "expected"), [(20, "judge(prompt=binary)"), (8, "judge…y)"), (1, "…")])
def test_long_names_are_cut_in_figures_only(cells, expected):
    assert formatting.cut("judge(prompt=binary)", cells) == expected
