import io
import re
from dataclasses import replace

import pandas as pd
import pytest
from rich.cells import cell_len
from rich.console import Console

from judgekit import report
from tests.report.conftest import HOSTILE, make_results


def printed(results, **console) -> str:
    out = io.StringIO()
    report.print_tables(results, Console(file=out, **console))
    return out.getvalue()


EXPECTED = """\
nDCG@5 against em of the answers of reader-small from the top 5 (query level; 0.5 is chance)
labeling                  concordance   requests      tokens      money   missing
─────────────────────────────────────────────────────────────────────────────────
containment      0.552 [0.525, 0.579]          0           0   0.00 USD         0
judge            0.675 [0.648, 0.702]      4,812   1,542,508   0.24 USD        17
erag             0.803 [0.776, 0.830]      4,812   1,439,093   0.23 USD         0
provenance       0.609 [0.582, 0.636]          0           –          –         0
answers, top 5                             1,500   2,009,000   0.30 USD
"""


def test_output_that_is_no_terminal_has_the_note_the_decision_and_the_table_without_colour_and_truncation():
    text = printed(make_results(note="No LLM was involved."), width=40)
    places = [text.index(one) for one in ("No LLM was", "\nCost      300", "\nFailing   Of two", EXPECTED)]
    assert places == sorted(places)
    assert places[0] == 0
    assert "\x1b" not in text
    assert "…" not in text
    assert all(line == line.rstrip() for line in text.splitlines())


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_terminal_is_never_overrun_and_no_number_is_cut(width):
    text = re.sub(r"\x1b\[[0-9;]*m", "", printed(make_results(), force_terminal=True, width=width))
    assert max(cell_len(line) for line in text.splitlines()) <= width
    assert "…" not in text
    for value in ("0.552", "0.675", "0.803 [0.776, 0.830]", "0.609"):
        assert value in text


def test_markup_and_control_characters_in_names_are_shown_not_obeyed():
    results = make_results(warnings=(HOSTILE,))
    text = printed(results)
    assert "[red]loud[/red]" in text
    assert "␛[31m" in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\x1b[31m" not in printed(results, force_terminal=True, width=100)


def test_runs_are_compared_by_the_r_that_keep_names():
    results = make_results()
    table = results.comparison
    pooled = table[(table["level"] == "within-query") & (table["coefficient"] == "r")]
    pooled = pooled.assign(coefficient="r_pooled", value=0.25, ci_low=0.125, ci_high=0.375)
    primary = replace(results.primary, use="choose-runs")
    results = replace(results, comparison=pd.concat([table, pooled]), primary=primary)
    text = printed(results)
    head, below = text[text.index("nDCG@5 against") :].splitlines()[:2]
    assert head.endswith("(within-query level; 0 is none, 1 is perfect)")
    assert below.split()[:2] == ["labeling", "r"]
    assert text.count("0.250 [0.125, 0.375]") == 4
    assert "concordance" not in text[text.index("nDCG@5 against") :]
