import dataclasses
import io
import re
import xml.etree.ElementTree as ET
from base64 import b64decode
from typing import Any

import pandas as pd
import pytest
from hypothesis import example, given, strategies as st
from markupsafe import Markup

from judgekit import report
from judgekit.analysis.claims import Claim
from judgekit.analysis.primary import CHOOSE_RUNS
from judgekit.errors import UsageError
from judgekit.report import formatting, svg
from judgekit.report.charts import decided, figures, paper_figures
from judgekit.report.drawing import Value
from judgekit.report.grids import speed_up
from judgekit.report.model import Results
from judgekit.report.svg import Figures
from tests.report.conftest import CLAIMS, LABELINGS, RUNS, make_results, parse_page


def full(**changes: Any) -> Results:
    """Results that have every figure."""
    results = make_results()
    other = results.comparison.assign(model="reader-large")
    given = {
        "primary": dataclasses.replace(results.primary, use=CHOOSE_RUNS),
        "comparison": pd.concat([results.comparison, other], ignore_index=True),
        "labelings": tuple(dataclasses.replace(i, labels={"0": 3000, "1": 1795}) for i in results.labelings),
    }
    return make_results(**{**given, **changes})


@pytest.fixture(scope="module")
def drawn() -> Figures:
    return figures(full())


NAMES = ["decision", "by-use", "against-k", "best-against-k", "against-model"]
PRIMARY = "depth == 5 and quality_metric == 'em' and measure == 'nDCG@5' and run == 'all'"


def test_every_figure_has_a_title_words_numbers_and_marks_that_say_theirs_inside_the_drawing(drawn):
    assert [one.name for one in drawn] == NAMES
    for one in drawn:
        assert one.title
        assert one.caption.endswith(".")
        assert len(one.alt) > 20
        assert not re.search(r"\bnan\b", one.alt)
        assert len(pd.read_csv(io.StringIO(one.csv))) == len(one.data) > 0
        for drawing, wide in ((one.svg, svg.WIDTH), (one.narrow, svg.NARROW)):
            root = ET.fromstring(drawing)
            assert [child.tag for child in root[:2]] == ["title", "desc"]
            assert root[1].text == one.alt
            marks = [e for e in root.iter("g") if e.get("class") == "mark"]
            assert marks
            assert all(mark[0].tag == "title" and mark[0].text for mark in marks)
            high = float(root.get("height", "0"))
            for mark in root.iter():
                for most, names in ((wide, ("x", "x1", "x2", "cx")), (high, ("y", "y1", "y2", "cy"))):
                    assert all(-1 <= float(mark.get(name, "0")) <= most + 1 for name in names), one.name


def test_on_a_phone_panels_stand_below_each_other_and_no_text_leaves_the_drawing(drawn):
    for one in drawn:
        root = ET.fromstring(one.narrow)
        starts = {e.get("x") for e in root.iter("text") if "strong" in (e.get("class") or "")}
        assert len(starts) <= 1, one.name
        for text in root.iter("text"):
            if text.get("transform"):
                continue
            words, at = formatting.text_width(text.text or "") * 0.85, float(text.get("x", "0"))
            style = text.get("class") or ""
            left = at - words if "end" in style else at - words / 2 if "middle" in style else at
            assert left >= -4, (one.name, text.text)
            assert left + words <= svg.NARROW + 4, (one.name, text.text)


def test_a_mark_says_its_numbers(drawn):
    assert re.search(r">erag: 0\.\d{3} \[0\.\d{3}, 0\.\d{3}\], n = 300<", drawn.named("by-use").svg)


def test_a_result_without_the_data_has_no_such_figure():
    bare = make_results(labelings=(), agreement=None, comparison=make_results().comparison.query("depth == 5"))
    assert [one.name for one in figures(bare)] == ["decision", "by-use"]
    # A name of the pages that cannot be drawn says what lacks, and is not called unknown.
    for name, lacks in (("best-against-k", "for two k or more"), ("against-model", "two models")):
        with pytest.raises(UsageError, match=f"no figure '{name}' could be drawn: it needs .*{lacks}"):
            Figures(figures(bare), summary=Markup("of a notebook")).named(name)
    with pytest.raises(UsageError, match=r"unknown figure 'best-against'.*Did you mean 'best-against-k'"):
        figures(bare).named("best-against")
    empty = make_results(comparison=make_results().comparison.head(0), agreement=None, labelings=(), claims=())
    assert list(figures(empty)) == []


@pytest.mark.parametrize(("coefficient", "column"), [("concordance", "concordance"), ("tau_b", "Kendall’s τ-b")])
def test_both_uses_stand_side_by_side_that_of_the_decision_first(coefficient, column):
    results = full()
    data = figures(results, coefficient).named("by-use").data
    assert list(dict.fromkeys(data["panel"])) == ["To choose between retrievers", "To find the questions that fail"]
    frame = results.comparison.query(f"{PRIMARY} and level == 'within-query' and model == 'reader-small'")
    frame = frame[frame["coefficient"] == coefficient].set_index("labeling")["value"]
    shown = data[data["panel"] == "To choose between retrievers"]
    assert dict(zip(shown["labeling"], shown[column], strict=True)) == frame.to_dict()
    with pytest.raises(UsageError, match="unknown coefficient 'tau'"):
        figures(results, "tau")


def test_figures_may_be_about_one_retriever():
    results = full()
    drawn = figures(results, "tau_b", "bm25")
    best = drawn.named("best-against-k")
    assert best.title == "Each labeling's best measure at each k, run bm25"
    cells = results.comparison.query(
        "level == 'query' and run == 'bm25' and coefficient == 'tau_b' and quality_metric == 'em'"
        " and model == 'reader-small' and depth == 5 and labeling == 'judge'"
    )
    shown = best.data.query("labeling == 'judge' and k == 5").iloc[0]
    assert shown["value"] == cells["value"].max()
    assert shown["measure"] == cells.loc[cells["value"].idxmax(), "measure"]
    everyone = figures(results, "tau_b").named("best-against-k").data.query("labeling == 'judge' and k == 5")
    assert shown["value"] not in set(everyone["value"]), "the mean over runs is another number"
    # One run has no rival: only the questions that it fails are looked for.
    assert set(drawn.named("by-use").data["panel"]) == {"To find the questions that fail"}
    with pytest.raises(UsageError, match=r"unknown run 'bm24'.*bm25"):
        figures(results, "tau_b", "bm24")
    both = paper_figures({"NQ": results, "WoW": results}, run="rrf")
    assert both.named("against-k").title.endswith("against the number of documents, run rrf")
    assert not both.named("by-use-choose-runs").title.endswith("rrf")


def test_the_first_figure_has_runs_with_their_bound_and_labelings_with_r_and_price(drawn):
    first = drawn[0]
    assert first.name == "decision"
    runs, labelings = (first.data[first.data["panel"] == panel] for panel in dict.fromkeys(first.data["panel"]))
    assert runs["labeling"].tolist() == list(RUNS)
    assert runs["low"].tolist() == [-4.0 - 3 * i for i in range(len(RUNS))], "what shipping may lose"
    assert set(labelings["labeling"]) == set(LABELINGS)
    text = " ".join(ET.fromstring(first.svg).itertext())
    assert "at most 7.0" in text
    assert f"{0.2 * LABELINGS['judge']:.2f}, $0.24" in text
    assert text.count("$") == text.count("$0.24"), "a price that is not known is not shown"
    only = figures(make_results(claims=tuple(claim for claim in CLAIMS if claim.kind == "finds")))[0]
    assert only.data["panel"].unique().tolist() == ["Finds the questions that fail"]


def test_figures_1_to_3_of_the_paper_over_several_results():
    first, second = full(), full(title="other")
    modes = first.comparison.query("model == 'reader-small' and depth == 5 and quality_metric == 'em'")
    modes = pd.concat([modes.assign(mode="concat"), modes.assign(mode="fused")], ignore_index=True)
    drawn = paper_figures({"NQ": dataclasses.replace(first, modes=modes), "WoW": second})
    assert [one.name for one in drawn] == [
        "by-use-choose-runs", "by-use-find-questions", "against-k", "best-against-k", "against-model", "against-mode",
    ]  # fmt: skip
    for name, panels in (("against-k", {"NQ", "WoW"}), ("against-model", {"NQ", "WoW"}), ("against-mode", {"NQ"})):
        data = drawn.named(name).data
        assert set(data.get("panel", {"NQ"})) == panels
        assert "Kendall’s τ-b" in data.columns
    frame = first.comparison.query(
        "level == 'query' and run == 'all' and labeling == 'judge' and measure == 'nDCG@10' and depth == 10"
        " and quality_metric == 'em' and coefficient == 'tau_b' and model == 'reader-small'"
    )
    data = drawn.named("against-k").data.query("panel == 'WoW' and labeling == 'judge'")
    assert data.set_index(data.columns[2])["Kendall’s τ-b"][10.0] == frame["value"].iloc[0]


def test_the_best_measure_at_each_k_is_marked_as_chosen_after_looking(drawn):
    best = drawn.named("best-against-k")
    assert "Chosen after looking" in best.caption
    assert (best.data["value"] >= best.data["primary"].fillna(0)).all()
    assert not ((best.data["labeling"] == "erag") & (best.data["k"] == 1)).any(), "the outcome by construction"
    cell = "labeling == 'judge' and depth == 10 and quality_metric == 'em' and coefficient == 'concordance'"
    rows = make_results().comparison.query(f"level == 'within-query' and {cell}")
    found = best.data.query("labeling == 'judge' and k == 10 and panel == 'To choose between retrievers'")
    assert found[["measure", "measures"]].values.tolist() == [[rows.loc[rows["value"].idxmax(), "measure"], 6]]


def test_a_figure_is_saved_for_paper_and_its_numbers_beside_it(drawn, tmp_path):
    made = drawn.save(tmp_path / "figures")
    assert len(made) == 2 * len(NAMES)
    for path in made[::2]:
        text = path.read_text()
        assert "var(" not in text, "programs that are no browsers do not know variables"
        assert "@media" not in text
        assert ET.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    one = drawn.named("by-use")
    with pytest.raises(UsageError, match=r"saved as \.svg or \.csv"):
        one.save(tmp_path / "by-use.png")
    with pytest.raises(UsageError, match=r"unknown figure 'by-uses': .*'by-use'?"):
        drawn.named("by-uses")


@example([55.0])
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_the_ticks_of_an_axis_lie_on_it(values):
    axis = Value("").axis(values, 300, 10)
    assert all(10 - 1e-6 <= axis(tick) <= 300 + 1e-6 for tick, _ in axis.ticks)
    assert len({text for _, text in axis.ticks}) == len(axis.ticks) >= 1
    assert all(10 - 1e-6 <= axis(value) <= 300 + 1e-6 for value in values)


def test_the_speed_up_is_that_of_the_papers_table_2():
    results = make_results()
    judge, whole = results.labelings[1].spending.standalone, results.answers[0]
    assert speed_up(results, judge) == pytest.approx(430.0 / 412.5)
    assert speed_up(results, dataclasses.replace(judge, untimed=1)) is None
    assert speed_up(results, results.labelings[0].spending.standalone) is None, "it asks nobody"
    untold = dataclasses.replace(whole, at_decision=None)
    assert speed_up(make_results(answers=(untold,)), judge) is None


def test_the_page_gives_the_numbers_of_each_figure():
    results = full()
    links = [value for tag, name, value in parse_page(report.render(results)).attributes if value.startswith("data:")]
    assert [pd.read_csv(io.BytesIO(b64decode(link.partition(",")[2]))).shape for link in links]
    assert sorted(links) == sorted(one.link for one in figures(results))


def test_what_is_written_at_the_end_of_a_row_stands_beside_its_interval():
    claims = [
        Claim("run", "", "bm25", value=0.0, low=-5.9, high=0.0),
        Claim("run", "", "dense", value=-12.0, low=-24.7, high=-1.0, shown=True),
        Claim("follows", "", "judge", value=0.44, low=0.26, high=0.59),
        Claim("cost", "", "judge", "1,092 requests"),
    ]
    figure = decided(claims, {})
    assert figure is not None
    drawn = ET.fromstring(figure.svg)
    lines = [e.attrib for e in drawn.iter() if e.tag.endswith("line") and "whisker" in e.attrib.get("class", "")]
    texts = [e for e in drawn.iter() if e.tag.endswith("text") and e.attrib.get("class") == "end quiet"]
    assert [text.text for text in texts] == ["at most 5.9", "at most 24.7", "0.44, 1,092 requests"]
    for line, text in zip(lines, texts, strict=True):
        assert float(line["x2"]) < float(text.attrib["x"]) - formatting.text_width(str(text.text))
