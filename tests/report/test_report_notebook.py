import dataclasses
import math

import pandas as pd
import pytest

import judgekit as jk
from judgekit.analysis.background import Background
from judgekit.collection import Pool
from judgekit.errors import UsageError

RUNS = ("bm25", "dense", "both")


def scores() -> pd.DataFrame:
    return pd.DataFrame(
        {"labeling": name, "run": run, "measure": f"nDCG@{k}", "query_id": f"q{i}",
         "value": ((i * 7 + j * s + k) % 11) / 10}
        for s, name in ((3, "judge"), (5, "erag<b>"))
        for j, run in enumerate(RUNS)
        for k in (5, 10)
        for i in range(60)
    )  # fmt: skip


def quality() -> pd.DataFrame:
    return pd.DataFrame(
        {"run": run, "depth": k, "model": model, "query_id": f"q{i}", "metric": "em",
         "value": float((i * 7 + j * 3 + k + (model == "large")) % 11 > 5), "status": "ok"}
        for j, run in enumerate(RUNS) for k in (5, 10) for model in ("small", "large") for i in range(60)
    )  # fmt: skip


@pytest.fixture(scope="module")
def comparison() -> jk.Comparison:
    costs = pd.DataFrame({"labeling": ["judge", "erag<b>"], "requests": [100.0, 200.0]})
    rules = jk.Rules(primary="nDCG@10", resamples=100)
    background = Background(costs=costs, pool=Pool(60, 60, 60, 60))
    return jk.compare(scores(), quality(), rules, outcome="em", model="small", background=background)


def labeling() -> jk.Labeling:
    frame = pd.DataFrame({"query_id": ["q", "q", "q"], "doc_id": ["a", "b", "c"], "relevance": [0, 2, math.nan]})
    return jk.Labeling("judge<i>", jk.Scale.parse("grades:2"), frame.assign(status=["ok", "ok", "unparsed"]))


def test_a_comparison_shows_its_decision_and_its_first_figure(comparison):
    page = comparison._repr_html_()
    assert page.startswith("<table><tbody><tr><th>Choose</th>")
    assert page.count("<svg ") == 1
    assert "erag&lt;b&gt;" in page
    assert "erag<b>" not in page


def test_plot_gives_all_figures_or_the_one_of_a_name(comparison):
    drawn = comparison.plot()
    names = ["decision", "by-use", "against-k", "against-model"]
    assert [one.name for one in drawn] == names
    assert drawn._repr_html_().count("<svg ") == len(names)
    assert "200 requests" in str(comparison.plot("decision").svg)
    assert "concordance" in comparison.plot("by-use").data.columns
    taus = jk.figures(comparison, coefficient="tau_b").named("by-use").data
    assert "Kendall’s τ-b" in taus.columns
    with pytest.raises(UsageError, match="unknown figure 'costs'"):
        comparison.plot("costs")
    run = RUNS[0]
    own = comparison.plot("by-use", run=run, coefficient="tau_b").data.set_index("labeling")["Kendall’s τ-b"]
    rows = comparison.table.query(
        "level == 'query' and run == @run and coefficient == 'tau_b' and measure == 'nDCG@10' and depth == 10"
        " and model == 'small'"
    )
    assert own.to_dict() == rows.set_index("labeling")["value"].to_dict()


def test_the_best_measure_of_each_labeling_is_told_by_run(comparison):
    found = comparison.best_at_k()
    assert list(found.columns) == ["run", "labeling", "k", "measure", "value", "primary", "measures"]
    assert list(dict.fromkeys(found["run"])) == sorted(RUNS)
    rows = comparison.table.query("level == 'query' and coefficient == 'tau_b' and model == 'small' and depth > 0")
    for row in found.itertuples():
        own = rows.query("run == @row.run and labeling == @row.labeling and depth == @row.k")
        assert row.value == own["value"].max()
        assert row.primary == own.set_index("measure")["value"][f"nDCG@{row.k}"]
    assert comparison.best_at_k("rho", run=RUNS[1])["run"].unique().tolist() == [RUNS[1]]
    assert comparison.best_at_k(run="all")["value"].tolist() != found["value"].tolist()
    with pytest.raises(UsageError, match="unknown run 'x'"):
        comparison.best_at_k(run="x")
    with pytest.raises(UsageError, match="unknown coefficient 'tau'"):
        comparison.best_at_k("tau")


def test_a_decision_a_labeling_and_an_evaluation_show_themselves(comparison):
    drawn = comparison.decision.plot("decision").data
    assert {"Runs: what shipping may lose", "Labelings: r, and the price"} == set(drawn["panel"])
    assert comparison.decision._repr_html_().startswith("<table><tbody><tr><th>Choose</th>")
    shown = labeling()._repr_html_()
    assert "judge&lt;i&gt;: 3 labels on grades:2 (2 ok, 1 unparsed): 1 × 0, 1 × 2." in shown
    run = jk.Run.from_frame(pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [1.0, 2.0]}), "bm25")
    found = jk.score([run], {"q": {"a": 0, "b": 2}}, ["P@1", "RR"])
    assert "<td>1.000</td>" in found._repr_html_()


def test_a_decision_without_figures_is_words_only(comparison):
    words = tuple(claim for claim in comparison.decision.claims if claim.kind == "choose")
    decision = dataclasses.replace(comparison.decision, claims=words)
    assert decision.plot() == ()
    assert "<svg" not in decision._repr_html_()


def test_figures_of_anything_else_say_what_they_are_drawn_of():
    with pytest.raises(UsageError, match=r"compare, label, score or run.*DataFrame"):
        jk.figures(scores())
