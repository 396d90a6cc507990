"""The figures: what they show, that their numbers are the tables', and that they go into files."""

from __future__ import annotations

import dataclasses
import io
import math
import re
import xml.etree.ElementTree as ET
from base64 import b64decode
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from judgekit import report
from judgekit.analysis.primary import CHOOSE_RUNS
from judgekit.errors import UsageError
from judgekit.report import svg
from judgekit.report.charts import figures
from judgekit.report.erag_tables import speed_up
from judgekit.report.model import Results


def full(make_results, **changes) -> Results:
    """Results that have every figure."""
    results = make_results()
    other = results.comparison.assign(model="reader-large")
    labels = {"0": 3000, "1": 1795}
    primary = dataclasses.replace(results.primary, use=CHOOSE_RUNS)
    names = [info.name for info in results.labelings]
    given = {
        "primary": primary,
        "comparison": pd.concat([results.comparison, other], ignore_index=True),
        "labelings": tuple(dataclasses.replace(info, labels=labels) for info in results.labelings),
        "gains": pd.DataFrame(
            [(name, "", 0.01 * i, 0.01 * i - 0.02, 0.01 * i + 0.02) for i, name in enumerate(names)]
            + [("answers", "", 0.05, math.nan, math.nan)],
            columns=["labeling", "without", "gain", "ci_low", "ci_high"],
        ),
        "cases": pd.DataFrame(
            [(name, s / 4, q, 7 + s) for name in names for s in range(5) for q in (0.0, 1.0)],
            columns=["labeling", "score", "quality", "n"],
        ),
        "widths": pd.DataFrame(
            [(name, n, 3 / n**0.5, 0.3 / n**0.5) for name in names for n in (150, 300, 600)],
            columns=["labeling", "queries", "concordance_width", "gain_width"],
        ),
    }
    return make_results(**{**given, **changes})


NAMES = ["by-use", "cost", "against-k", "best-against-k", "against-model", "queries", "score-quality", "labels",
         "agreement"]  # fmt: skip


def test_a_full_result_has_every_figure_with_a_title_words_and_numbers(make_results):
    drawn = figures(full(make_results))
    assert [one.name for one in drawn] == NAMES
    for one in drawn:
        assert one.title
        assert one.caption.endswith(".")
        assert len(one.alt) > 20
        assert not re.search(r"\bnan\b", one.alt)
        assert len(pd.read_csv(io.StringIO(one.csv))) == len(one.data) > 0
        root = ET.fromstring(one.svg)
        assert [child.tag for child in root[:2]] == ["title", "desc"]
        assert root[1].text == one.alt


def test_marks_stay_inside_the_drawing(make_results):
    for one in figures(full(make_results)):
        root = ET.fromstring(one.svg)
        high = float(root.get("height", "0"))
        for mark in root.iter():
            for wide, names in ((svg.WIDTH, ("x", "x1", "x2", "cx")), (high, ("y", "y1", "y2", "cy"))):
                for name in names:
                    assert -1 <= float(mark.get(name, "0")) <= wide + 1, (one.name, ET.tostring(mark))


def test_a_result_without_the_data_has_no_such_figure(make_results):
    bare = make_results(labelings=(), agreement=None, comparison=make_results().comparison.query("depth == 5"))
    assert [one.name for one in figures(bare)] == ["by-use"]
    empty = make_results(comparison=make_results().comparison.head(0), agreement=None, labelings=())
    assert list(figures(empty)) == []


def test_both_uses_stand_side_by_side_that_of_the_verdict_first(make_results):
    data = figures(full(make_results)).named("by-use").data
    assert list(dict.fromkeys(data["use"])) == ["To choose between retrievers", "To find the questions that fail"]
    frame = make_results().comparison.query(
        "level == 'within-query' and depth == 5 and quality_metric == 'em' and measure == 'nDCG@5' and run == 'all'"
        " and coefficient == 'concordance'"
    )
    shown = data[(data["use"] == "To choose between retrievers") & (data["run"] == "")]
    assert dict(zip(shown["labeling"], shown["concordance"], strict=True)) == dict(
        zip(frame["labeling"], frame["value"], strict=True)
    )


def test_the_frontier_is_of_labelings_that_no_other_beats(make_results):
    cost = figures(full(make_results)).named("cost")
    assert dict(zip(cost.data["labeling"], cost.data["frontier"], strict=True)) == {
        "containment": True, "judge": False, "erag": True,
    }  # fmt: skip
    assert "Without a known cost: provenance." in cost.caption
    assert "em points" in cost.data.columns[2]


def test_the_best_measure_at_each_k_is_marked_as_chosen_after_looking(make_results):
    best = figures(full(make_results)).named("best-against-k")
    assert "chosen after looking" in best.caption
    assert (best.data["value"] >= best.data["primary"].fillna(0)).all()
    assert not ((best.data["labeling"] == "erag") & (best.data["k"] == 1)).any(), "the outcome by construction"
    frame = make_results().comparison
    rows = frame[
        (frame["labeling"] == "judge") & (frame["level"] == "within-query") & (frame["depth"] == 10)
        & (frame["quality_metric"] == "em") & (frame["coefficient"] == "concordance")
    ]  # fmt: skip
    [row] = best.data[(best.data["labeling"] == "judge") & (best.data["k"] == 10)].to_dict("records")
    assert (row["measure"], row["measures"]) == (rows.loc[rows["value"].idxmax(), "measure"], 6)


def test_a_figure_is_saved_for_paper_and_its_numbers_beside_it(make_results, tmp_path: Path):
    made = figures(full(make_results)).save(tmp_path / "figures")
    assert len(made) == 2 * len(NAMES)
    for path in made[::2]:
        text = path.read_text()
        assert "var(" not in text, "programs that are no browsers do not know variables"
        assert "@media" not in text
        assert ET.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    one = figures(full(make_results)).named("labels")
    with pytest.raises(UsageError, match=r"saved as \.svg, \.pdf or \.csv"):
        one.save(tmp_path / "labels.png")
    with pytest.raises(UsageError, match=r"unknown figure 'lables': .*'labels'?"):
        figures(full(make_results)).named("lables")


def test_a_figure_is_saved_as_pdf(make_results, tmp_path: Path):
    pytest.importorskip("vl_convert", reason="judgekit[pdf] is not installed")
    figures(full(make_results)).save(tmp_path, ("pdf",))
    assert all((tmp_path / f"{name}.pdf").read_bytes().startswith(b"%PDF") for name in NAMES)


def test_hostile_names_stay_texts_in_a_file_too(make_results, poison, hostile):
    frame = make_results().comparison
    for column in ("labeling", "model"):
        frame[column] = hostile + frame[column]
    primary = dataclasses.replace(make_results().primary, model=hostile + "reader-small")
    [by_use, *_] = figures(make_results(comparison=frame, primary=primary, labelings=()))
    root = ET.fromstring(by_use.file())
    assert not [mark for mark in root.iter() if mark.tag.rpartition("}")[2] in ("script", "img", "foreignObject", "a")]
    assert "<script>alert(1)</script>" in "".join(root.itertext())


@example([55.0])
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_the_ticks_of_an_axis_lie_on_it(values: list[float]):
    axis = svg.linear(values, 300, 10)
    assert all(10 - 1e-6 <= axis(tick) <= 300 + 1e-6 for tick, _ in axis.ticks)
    assert len({text for _, text in axis.ticks}) == len(axis.ticks) >= 1
    assert all(10 - 1e-6 <= axis(value) <= 300 + 1e-6 for value in values)


@given(st.lists(st.floats(1e-6, 1e9), min_size=1, max_size=20))
def test_a_logarithmic_axis_holds_its_values(values: list[float]):
    axis = svg.logarithmic(values, 0, 100)
    assert all(-1e-6 <= axis(value) <= 100 + 1e-6 for value in values)
    assert len(axis.ticks) < 30


def test_the_speed_up_is_that_of_the_papers_table_2(make_results):
    results = make_results()
    judge, whole = results.labelings[1].spending.standalone, results.answers[0]
    assert speed_up(results, judge) == pytest.approx(430.0 / 412.5)
    assert speed_up(results, dataclasses.replace(judge, untimed=1)) is None
    assert speed_up(results, results.labelings[0].spending.standalone) is None, "it asks nobody"
    untold = dataclasses.replace(whole, at_verdict=None)
    assert speed_up(make_results(answers=(untold,)), judge) is None


def test_the_page_gives_the_numbers_of_each_figure(make_results, outline):
    results = full(make_results)
    links = [value for tag, name, value in outline(report.render(results)).attributes if value.startswith("data:")]
    assert [pd.read_csv(io.BytesIO(b64decode(link.partition(",")[2]))).shape for link in links]
    assert sorted(links) == sorted(one.link for one in figures(results))
