"""The terminal tables: fitted on a terminal, plain and whole elsewhere."""

from __future__ import annotations

import io
import re

import pytest
from rich.cells import cell_len
from rich.console import Console

from judgekit import report


def printed(results, **console) -> str:
    out = io.StringIO()
    report.print_tables(results, Console(file=out, **console))
    return out.getvalue()


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


EXPECTED = """\
Concordance with answer quality (query level, answers from the top 5, em, reader-small; 0.5 is chance)
labeling                   nDCG@5*                    P@5                      R@5
──────────────────────────────────────────────────────────────────────────────────
containment   0.552 [0.525, 0.579]   0.599 [0.570, 0.628]     0.600 [0.570, 0.630]
judge         0.675 [0.648, 0.702]   0.660 [0.631, 0.690]     0.662 [0.632, 0.691]
erag          0.803 [0.776, 0.830]   0.808 [0.779, 0.838]     0.809 [0.780, 0.839]
provenance    0.609 [0.582, 0.636]   0.616 [0.586, 0.645]   ! 0.617 [0.587, 0.647]
labeling                      AP@5                   RR@5                Success@5
──────────────────────────────────────────────────────────────────────────────────
containment   0.572 [0.541, 0.604]   0.583 [0.548, 0.618]   ! 0.568 [0.543, 0.594]
judge         0.654 [0.623, 0.686]   0.665 [0.630, 0.700]   ! 0.693 [0.667, 0.718]
erag          0.796 [0.764, 0.827]   0.806 [0.771, 0.841]   ! 0.800 [0.774, 0.826]
provenance    0.643 [0.611, 0.674]   0.593 [0.558, 0.628]   ! 0.605 [0.579, 0.631]
"""


def test_the_primary_table_as_it_is_printed_to_a_file(make_results):
    assert EXPECTED in printed(make_results())


def test_output_that_is_no_terminal_has_no_colour_and_no_truncation(make_results):
    text = printed(make_results(), width=40)
    assert "\x1b" not in text
    assert "…" not in text
    assert "0.803 [0.776, 0.830]" in text
    assert all(line == line.rstrip() for line in text.splitlines())


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_a_terminal_is_never_overrun_and_no_number_is_cut(make_results, width: int):
    text = plain(printed(make_results(), force_terminal=True, width=width))
    assert max(cell_len(line) for line in text.splitlines()) <= width
    assert "…" not in text
    for value in ("0.803", "0.808", "0.809", "0.796", "0.806", "0.800"):
        assert value in text


def test_the_note_comes_first_then_the_verdict_then_the_tables(make_results):
    lines = printed(make_results(note="No LLM was involved.")).splitlines()
    assert lines[0] == "No LLM was involved."
    starts = [next(i for i, line in enumerate(lines) if line.startswith(s)) for s in ("Verdict: Under", "Concordance")]
    assert starts == sorted(starts)


def test_markup_and_control_characters_in_names_are_shown_not_obeyed(make_results, hostile):
    results = make_results(warnings=(hostile,))
    text = printed(results)
    assert "[red]loud[/red]" in text
    assert "␛[31m" in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\x1b[31m" not in printed(results, force_terminal=True, width=100)
