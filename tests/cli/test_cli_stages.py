"""Each stage from files to files, and all of them together: what a user types, and what is there afterwards."""

from __future__ import annotations

import json
import math

import pandas as pd
import pytest

from judgekit.data.files import read_table
from judgekit.data.tables import COMPARISON, LABELS, QUALITY, SCORES
from tests.mock import URL
from tests.small import FILES, QUICK, RUNS, edited, toml

DATA = ["--queries", "queries.jsonl", "--docs", "docs.jsonl", "--run", "good.trec", "--run", "poor.trec"]
MOCK = ["--base-url", URL, "--model", "mock"]


def test_label_writes_qrels_and_beside_them_the_labels_with_status_and_raw_reply(judgekit, folder):
    judgekit("label", "judge", *DATA, "--depth", 3, "--out", "judge.qrels", *MOCK, code=0)
    qrels = [line.split() for line in (folder / "judge.qrels").read_text().splitlines()]
    labels = read_table(LABELS, folder / "judge.qrels.parquet")
    assert len(qrels) == len(labels) == 18
    assert set(labels["status"]) == {"ok"}
    assert set(labels["raw"]) <= {"Yes", "No"}
    assert {(q, d): float(r) for q, _, d, r in qrels} == {
        (q, d): r for q, d, r in zip(labels["query_id"], labels["doc_id"], labels["relevance"], strict=True)
    }


def test_answer_writes_the_quality_table_of_every_run_depth_and_metric(judgekit, folder):
    judgekit("answer", *DATA, "--depth", 1, "--depth", 3, "--out", "quality.parquet", *MOCK, code=0)
    quality = read_table(QUALITY, folder / "quality.parquet")
    assert len(quality) == 6 * 2 * (1 + 2 * 2)
    assert set(zip(quality["run"], quality["depth"], strict=True)) == {
        ("all", 0), ("good", 1), ("good", 3), ("poor", 1), ("poor", 3),
    }  # fmt: skip
    means = quality.groupby(["run", "depth", "metric"])["value"].mean()
    assert means["good", 1, "em"] > means["poor", 1, "em"]
    assert means["all", 0, "em"] == 0


def test_score_prints_means_and_per_query_values_in_three_formats(judgekit, folder):
    common = ["score", "--run", "good.trec", "--run", "poor.trec", "--qrels", "gold.qrels", "-m", "RR P@1 R@3"]
    table = judgekit(*common, code=0)
    assert [line.split() for line in table.out.splitlines()] == [
        ["labeling", "run", "RR", "P@1", "R@3"],
        ["gold", "good", "1.0000", "1.0000", "1.0000"],
        ["gold", "poor", "0.1667", "0.0000", "0.5000"],
    ]
    rows = json.loads(judgekit(*common, "--per-query", "--json").out)["scores"]
    assert len(rows) == 2 * 3 * (6 + 1)
    assert set(rows[0]) == set(SCORES.columns)
    assert {"labeling": "gold", "run": "good", "measure": "RR", "query_id": "all", "value": 1.0} in rows


def test_means_of_graders_are_gains_as_they_are_and_relevant_from_the_declared_grade_on(judgekit, folder):
    labels = {"d0a": 1.8, "d0b": 2.4, "d5c": 0.5, "d1c": 5.0}
    (folder / "graders.qrels").write_text("".join(f"q0 0 {doc} {value}\n" for doc, value in labels.items()))
    common = ["score", "--run", "good.trec", "--qrels", "graders.qrels"]
    asked = [*common, "-m", "nDCG@3 P@3 R@3 RR@3 ERR@3", "--json"]
    refused = judgekit(*asked, code=2)
    assert "line 1: the relevance 1.8 is not a whole number" in refused.err
    assert "--scale NAME=means:5:2" in refused.err
    assert "declare means:5:2" in judgekit(*asked, "--scale", "graders=grades:5:2").err
    said = judgekit(*asked, "--scale", "graders=means:5:2", code=0)
    values = {row["measure"]: row["value"] for row in json.loads(said.out)["scores"]}
    top, best = [labels["d0a"], labels["d0b"], labels["d1c"]], sorted(labels.values(), reverse=True)[:3]
    dcg, ideal, err, left = 0.0, 0.0, 0.0, 1.0
    for rank, (gain, ideally) in enumerate(zip(top, best, strict=True), 1):
        dcg += gain / math.log2(rank + 1)
        ideal += ideally / math.log2(rank + 1)
        chance = (2**gain - 1) / 2**5
        err += left * chance / rank
        left *= 1 - chance
    assert values == pytest.approx({"nDCG@3": dcg / ideal, "P@3": 2 / 3, "R@3": 1.0, "RR@3": 1 / 2, "ERR@3": err})


def test_compare_takes_tables_that_judgekit_did_not_make(judgekit, folder):
    names = [f"q{i}" for i in range(30)]
    good = pd.DataFrame({"labeling": "mine", "run": "r", "measure": "nDCG@5", "query_id": names, "value": range(30)})
    poor = good.assign(labeling="other", value=[i % 2 for i in range(30)])
    thumbs = pd.DataFrame(
        {
            "run": "r",
            "depth": 5,
            "model": "our bot",
            "query_id": names,
            "metric": "thumbs",
            "value": [i >= 15 for i in range(30)],
        }
    )
    pd.concat([good, poor]).to_csv(folder / "scores.csv", index=False)
    thumbs.astype({"value": float}).to_csv(folder / "thumbs.csv", index=False)
    said = judgekit("compare", "--scores", "scores.csv", "--quality", "thumbs.csv", "--out", "comparison.csv", code=0)
    comparison = read_table(COMPARISON, folder / "comparison.csv")
    chosen = comparison[(comparison["coefficient"] == "concordance") & (comparison["labeling"] == "mine")]
    assert list(chosen["value"]) == [1.0]
    assert "look where mine scores low" in said.out


def test_compare_takes_ratings_that_say_no_more_than_they_have_to(judgekit, folder):
    names = [f"q{i}" for i in range(30)]
    scores = pd.DataFrame({"labeling": "x", "run": "r", "measure": "P@5", "query_id": names, "value": range(30)})
    scores.to_csv(folder / "scores.csv", index=False)
    pd.DataFrame({"query_id": names, "value": [i // 15 for i in range(30)]}).to_csv(folder / "thumbs.csv", index=False)
    common = ["compare", "--scores", "scores.csv", "--quality", "thumbs.csv"]
    said = judgekit(*common, "--out", "comparison.csv", "--by-construction", "x=rating", code=0)
    comparison = read_table(COMPARISON, folder / "comparison.csv")
    told = comparison[["run", "depth", "quality_metric", "model"]].drop_duplicates().values.tolist()
    assert told == [["r", 5, "rating", "undeclared"]]
    assert "The quality table has no column 'depth': judgekit takes the answers' depth to be 5." in said.err
    two = [scores, scores.assign(measure="P@10"), scores.assign(run="other")]
    pd.concat(two[:2]).to_csv(folder / "scores.csv", index=False)
    assert "lacks column 'depth', and the depths are 10, 5" in judgekit(*common).err
    assert judgekit(*common, "--depth", 10).code == 0
    pd.concat([two[0], two[2]]).to_csv(folder / "scores.csv", index=False)
    assert "lacks column 'run', and the runs are other, r" in judgekit(*common).err


def test_compare_takes_means_alone_as_campaigns_publish_them(judgekit, folder):
    runs = [f"r{i}" for i in range(6)]
    base = {"run": runs, "query_id": "all", "value": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}
    pd.DataFrame({**base, "labeling": "x", "measure": "nDCG@10"}).to_csv(folder / "means.csv", index=False)
    pd.DataFrame({**base, "metric": "em"}).to_csv(folder / "quality.csv", index=False)
    common = ["compare", "--scores", "means.csv", "--quality", "quality.csv"]
    said = judgekit(*common, "--json", code=0)
    rows = {row["coefficient"]: row for row in json.loads(said.out)["comparison"]}
    assert (rows["concordance"]["level"], rows["concordance"]["value"], rows["concordance"]["n"]) == ("system", 1.0, 6)
    assert rows["concordance"]["ci_low"] is None
    assert any("hold only means" in line for line in json.loads(said.out)["warnings"])
    assert "The tables hold only means over queries" in " ".join(judgekit(*common).out.split())
    assert judgekit(*common, "--level", "query").code == 2  # nothing there to show


def test_compare_is_told_which_labeling_is_the_outcome_by_construction(judgekit, folder):
    names = [f"q{i:02}" for i in range(60)]
    base = {"run": "r", "query_id": names}
    outcome = [float(i % 3 == 0) for i in range(60)]
    noisy = [value + i * 7 % 5 for i, value in enumerate(outcome)]
    scores = [
        pd.DataFrame({**base, "labeling": "erag", "measure": "P@1", "value": outcome}),
        pd.DataFrame({**base, "labeling": "judge", "measure": "P@1", "value": noisy}),
    ]
    pd.concat(scores).to_csv(folder / "scores.csv", index=False)
    quality = pd.DataFrame({**base, "depth": 1, "model": "bot", "metric": "em", "value": outcome})
    quality.to_csv(folder / "quality.csv", index=False)
    common = ["compare", "--scores", "scores.csv", "--quality", "quality.csv"]
    said = judgekit(*common)
    assert "look where erag scores low. erag 100 in 100." in said.out
    assert "declare it with by_construction" in said.err
    said = judgekit(*common, "--by-construction", "erag=em")
    assert "erag is left out: its labels are the outcome by construction." in said.out
    assert "by_construction" not in said.err
    for wrong, reason in (
        ("egar=em", "unknown labeling 'egar'"),
        ("erag=me", "unknown metric 'me'"),
        ("erag", "unknown labeling ''"),
    ):
        assert reason in judgekit(*common, "--by-construction", wrong, code=2).err


def test_scores_that_tie_across_a_cutoff_are_told_once_per_run(judgekit, folder):
    (folder / "flat.trec").write_text("".join(f"q{q} Q0 d{d} 1 0.5 flat\n" for q in (1, 2) for d in range(4)))
    (folder / "flat.qrels").write_text("q1 0 d1 1\nq2 0 d9 1\n")
    said = judgekit("score", "--run", "flat.trec", "--qrels", "flat.qrels", "-m", "P@1 R@1 nDCG@3 AP")
    told = [line for line in said.err.splitlines() if "tie" in line]
    assert told == [
        "note: flat: scores tie across cutoff 1 in 2, cutoff 3 in 2 of 2 queries; --ties sets which documents come"
        " first"
    ]


def test_run_does_it_all_a_second_time_without_a_request_and_report_draws_the_same_page(judgekit, folder):
    judgekit("run", "experiment.toml", "--out", "results", code=0)
    made = sorted(str(p.relative_to(folder / "results")) for p in (folder / "results").rglob("*") if p.is_file())
    assert made == [
        "agreement.csv",
        "answers/answer-short.parquet",
        "comparison.csv",
        "confusion.csv",
        "controls.csv",
        "details.csv",
        "differences.csv",
        "gains.csv",
        "kinds.csv",
        "labels/containment.parquet",
        "labels/containment.qrels",
        "labels/erag.parquet",
        "labels/erag.qrels",
        "labels/judge.parquet",
        "labels/judge.qrels",
        "manifest.json",
        "purchase.csv",
        "report.html",
        "report.json",
        "resolved.toml",
        "scores.parquet",
    ]
    before = {p: (folder / "results" / p).read_bytes() for p in made if not p.startswith("report")}
    assert "0 sent" in judgekit("run", "experiment.toml", "--out", "results", code=0).err
    assert {p: (folder / "results" / p).read_bytes() for p in before} == before
    page = folder / "results" / "report.html"
    drawn = page.read_bytes()
    page.unlink()
    said = judgekit("report", "results", "--figures", "figures", code=0)
    assert page.read_bytes() == drawn
    assert {path.suffix for path in (folder / "figures").iterdir()} == {".svg", ".csv"}
    agreement = (folder / "results" / "agreement.csv").read_bytes()
    for wrong, what in ((["--figures", "results"], "a folder of their own"), (["--pdf"], "needs --figures FOLDER")):
        said = judgekit("report", "results", *wrong)
        assert (said.code, what in said.err) == (2, True)
    assert (folder / "results" / "agreement.csv").read_bytes() == agreement


def test_dry_run_counts_and_sends_nothing(judgekit, folder):
    before = judgekit("run", "experiment.toml", "--dry-run", code=0)
    rows = {line.split("  ")[0]: line.split() for line in before.out.splitlines()}
    assert " ".join(rows["label judge"][2:11]) == "18 18 0 at least 18; up to 36"
    assert not (folder / "judgekit-out").exists()
    assert judgekit("run", "experiment.toml", "--out", "results").code == 0
    after = judgekit("run", "experiment.toml", "--dry-run")
    rows = {line.split("  ")[0]: line.split() for line in after.out.splitlines()}
    assert rows["label judge"][2:6] == ["18", "18", "18", "0"]


@pytest.mark.parametrize("command", [[], ["run"], ["label"], ["answer"], ["score"], ["compare"], ["report"], ["demo"]])
def test_every_command_explains_itself(judgekit, command):
    assert "Usage: judgekit" in judgekit(*command, "--help", code=0).out


def test_ratings_of_answers_are_compared_like_any_answer_metric(judgekit, folder):
    rows = [f"{run},4,q{i},{'up' if run == 'good' or i % 2 else 'down'}" for run in ("good", "poor") for i in range(6)]
    (folder / "thumbs.csv").write_text("\n".join(["run,depth,query_id,value", *rows]) + "\n")
    ratings = 'depths = [1, 4]\nratings = ["thumbs.csv"]'
    edited(folder / "experiment.toml", "depths = [1, 4]", ratings)
    judgekit("run", "experiment.toml", "--out", "results", code=0)
    comparison = read_table(COMPARISON, folder / "results" / "comparison.csv")
    assert "rating" in set(comparison["quality_metric"])
    (folder / "thumbs.csv").write_text("run,depth,query_id,value\nother,4,q0,up\n")
    assert "'other'" in judgekit("run", "experiment.toml", "--out", "results", code=2).err


FREE = toml(
    data=FILES | {"depth": 4},
    runs=RUNS,
    labelers=[{"kind": "containment"}, {"name": "gold", "kind": "provenance", "qrels": "gold.qrels"}],
    answers={"depths": [4], "ratings": ["thumbs.csv"]},
    analysis=QUICK,
)


def test_ratings_and_labelers_that_ask_nobody_need_no_endpoint(judgekit, folder, monkeypatch):
    rows = [f"{run},q{i},{'up' if run == 'good' or i % 2 else 'down'}" for run in ("good", "poor") for i in range(6)]
    (folder / "thumbs.csv").write_text("\n".join(["run,query_id,value", *rows]) + "\n")
    (folder / "free.toml").write_text(FREE)
    assert "answer" not in judgekit("run", "free.toml", "--dry-run", code=0).out
    judgekit("run", "free.toml", "--out", "results", code=0)
    comparison = read_table(COMPARISON, folder / "results" / "comparison.csv")
    assert set(zip(comparison["quality_metric"], comparison["depth"], comparison["model"], strict=True)) == {
        ("rating", 4, "undeclared")
    }
    assert set(comparison["level"]) == {"query", "within-query", "system"}
    assert len(read_table(QUALITY, folder / "results" / "answers" / "ratings.parquet")) == 12
    assert (folder / "results" / "report.html").exists()
    (folder / "again.toml").write_text((folder / "results" / "resolved.toml").read_text())
    assert judgekit("run", "again.toml", "--out", "again").code == 0, "the resolved file says that nothing is answered"
    assert (folder / "again" / "scores.parquet").read_bytes() == (folder / "results" / "scores.parquet").read_bytes()


def test_answers_that_are_asked_for_need_an_endpoint_beside_ratings_too(judgekit, folder):
    (folder / "thumbs.csv").write_text("run,query_id,value\ngood,q0,up\n")
    for wish in ('metrics = ["em"]', 'prompt = "answer-long"', 'endpoint = "local"'):
        (folder / "free.toml").write_text(FREE.replace("depths = [4]", f"depths = [4]\n{wish}"))
        assert "endpoint" in judgekit("run", "free.toml", "--dry-run", code=2).err
    (folder / "free.toml").write_text(FREE.replace('ratings = ["thumbs.csv"]', "metrics = []"))
    assert "metrics, or files with ratings" in judgekit("run", "free.toml", "--dry-run").err
    (folder / "free.toml").write_text(FREE.replace("depths = [4]", "depths = [1, 4]"))
    assert "lacks column 'depth', and the depths are 1, 4" in judgekit("run", "free.toml", "--dry-run").err


def test_a_judge_can_be_compared_with_ratings_alone(judgekit, folder):
    rows = [f"{run},q{i},{i % 2 or run == 'good'}" for run in ("good", "poor") for i in range(6)]
    (folder / "thumbs.csv").write_text("\n".join(["run,query_id,value", *rows]) + "\n")
    edited(
        folder / "experiment.toml",
        "depths = [1, 4]",
        'depths = [4]\nmetrics = []\nratings = ["thumbs.csv"]',
        to="rated.toml",
    )
    judgekit("run", "rated.toml", "--out", "results", code=0)
    assert set(read_table(COMPARISON, folder / "results" / "comparison.csv")["labeling"]) == {
        "containment", "judge", "erag",
    }  # fmt: skip


def test_two_models_answer_and_the_matrix_of_models_is_shown(judgekit, folder):
    text = (folder / "experiment.toml").read_text()
    other = f'[endpoints.other]\nbase_url = "{URL}"\nmodel = "mock-2"\n[[labelers]]\nkind = "containment"'
    text = text.replace('[[labelers]]\nkind = "containment"', other).replace(
        'kind = "judge"', 'kind = "judge"\nendpoint = "local"'
    )
    text = text.replace('kind = "utility"', 'kind = "utility"\nendpoint = "other"')
    text = text.replace("depths = [1, 4]", 'depths = [1, 4]\nendpoint = ["local", "other"]')
    (folder / "experiment.toml").write_text(text)
    judgekit("run", "experiment.toml", "--out", "results", code=0)
    comparison = read_table(COMPARISON, folder / "results" / "comparison.csv")
    assert set(comparison["model"]) == {"mock", "mock-2"}
    same = comparison[(comparison["labeling"] == "erag") & (comparison["model"] == "mock-2")]
    assert same["flags"][same["depth"] == 1].str.contains("by_construction").any()
    assert "mock-2" in (folder / "results" / "report.html").read_text()


def test_what_cannot_be_compared_in_the_end_is_refused_before_anything_is_sent(judgekit, folder):
    (folder / "thumbs.csv").write_text(
        "run,depth,query_id,metric,value\n" + "".join(f"good,4,q{i},thumbs,{i % 2}\n" for i in range(6))
    )
    (folder / "em.csv").write_text("run,depth,model,query_id,metric,value\ngood,4,mock,q1,em,1\n")
    text = (folder / "experiment.toml").read_text()

    def said(ratings: list[str], primary: str, metric: str) -> str:
        new = text.replace("depths = [1, 4]", f'depths = [1, 4]\nmetrics = ["em", "f1"]\nratings = {ratings}')
        new = new.replace("[analysis]", f'[analysis]\nprimary = "{primary}"\nprimary_metric = "{metric}"')
        (folder / "mine.toml").write_text(new)
        for dry in (["--dry-run"], ["--out", "results"]):
            done = judgekit("run", "mine.toml", "--cache", "fresh", *dry, code=2)
            assert not (folder / "fresh").exists()
        return done.err

    assert "unknown answer metric 'thumb'" in said(["thumbs.csv"], "nDCG@4", "thumb")
    assert "Did you mean 'thumbs'?" in said(["thumbs.csv"], "nDCG@4", "thumb")
    assert "ratings of answers from the top 4 only" in said(["thumbs.csv"], "nDCG@1", "thumbs")
    assert "which the experiment computes itself" in said(["em.csv"], "nDCG@4", "em")
    assert "two of the files rate 'thumbs'" in said(["thumbs.csv", "thumbs.csv"], "nDCG@4", "thumbs")


def test_the_comparison_shows_the_interval_of_every_concordance(judgekit, folder):
    queries = [f"q{i}" for i in range(20)]
    scores = "".join(f"gold,good,P@5,{q},{(i % 10) / 10}\n" for i, q in enumerate(queries))
    quality = "".join(f"good,5,m,{q},em,{int(i % 3 == 0)}\n" for i, q in enumerate(queries))
    (folder / "s.csv").write_text("labeling,run,measure,query_id,value\n" + scores)
    (folder / "q.csv").write_text("run,depth,model,query_id,metric,value\n" + quality)
    said = judgekit("compare", "--scores", "s.csv", "--quality", "q.csv", "--primary", "P@5", "--primary-metric", "em")
    assert said.code == 0, said.err
    lines = said.out.splitlines()
    head, row = next((line, lines[i + 1]) for i, line in enumerate(lines) if "ci_low" in line)
    assert head.split()[-6:] == ["concordance", "ci_low", "ci_high", "tau_b", "rho", "r"]
    value, low, high = map(float, row.split()[-6:-3])
    assert low < value < high


def test_a_table_given_twice_is_named_by_its_keys(judgekit, folder):
    (folder / "s.csv").write_text("labeling,run,measure,query_id,value\ngold,good,P@5,q1,1\ngold,good,P@5,q2,0\n")
    (folder / "q.csv").write_text("run,depth,model,query_id,metric,value,abstained\ngood,5,m,q1,em,1,0\n")
    said = judgekit("compare", "--scores", "s.csv", "--quality", "q.csv", "--quality", "q.csv", code=2)
    assert "two values for run 'good', depth '5', model 'm', query_id 'q1', metric 'em'\n" in said.err


def test_the_language_of_queries_is_read_and_doubtful_zeros_are_counted(judgekit, folder):
    queries = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    for query in queries:
        query["language"] = "fi" if query in queries[4:] else "en"
    (folder / "queries.jsonl").write_text("".join(json.dumps(query) + "\n" for query in queries))
    said = judgekit("label", "containment", *DATA, "--depth", 3, "--out", "c.qrels", code=0)
    labels = read_table(LABELS, folder / "c.qrels.parquet")
    doubtful = labels[labels["reason"].str.contains("'fi'")]
    assert set(doubtful["query_id"]) == {"q4", "q5"}
    assert set(doubtful["relevance"]) == {0.0}
    count = f"{len(doubtful)} of {len(labels)} labels, in 2 of 6 queries"
    assert f"{count}, may be wrong: not found in this form" in " ".join(said.err.split())


def test_a_table_that_is_written_is_summed_up_on_the_screen(judgekit, folder):
    common = ["score", "--run", "good.trec", "--qrels", "gold.qrels", "-m", "nDCG@3 AP"]
    means = judgekit(*common).out
    said = judgekit(*common, "--per-query", "--out", "s.csv").out
    assert said == f"{means}scores: s.csv ({len(pd.read_csv(folder / 's.csv'))} rows)\n"
    assert means == judgekit(*common, "--out", "s.csv").out.partition("scores:")[0]
