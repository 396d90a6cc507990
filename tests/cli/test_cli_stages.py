import json
import re

import pandas as pd
import pytest

from judgekit.data.files import read_table
from judgekit.data.labelings import Labeling
from judgekit.data.tables import COMPARISON, LABELS, QUALITY, SCORES
from tests.mock import URL
from tests.small import EXPERIMENT, FILES, QUICK, RUNS, edited, toml

DATA = ["--queries", "queries.jsonl", "--docs", "docs.jsonl", "--run", "good.trec", "--run", "poor.trec"]
MOCK = ["--endpoint", URL, "--model", "mock"]


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
    judgekit("answer", *DATA, "--depth", 0, "--depth", 1, "--depth", 3, "--out", "quality.parquet", *MOCK, code=0)
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
    against = json.loads(judgekit(*common, "--baseline", "poor", "--json").out)["against"]
    told = [(row["measure"], row["run"], row["wins"], row["ties"], row["losses"]) for row in against]
    assert told == [("RR", "good", 6, 0, 0), ("P@1", "good", 6, 0, 0), ("R@3", "good", 3, 3, 0)]
    assert "against poor:" in judgekit(*common, "--baseline", "poor").out


def test_a_score_that_is_not_known_is_null_in_json_and_no_word_that_json_lacks(judgekit, folder):
    (folder / "gold.missing.tsv").write_text("query_id\tdoc_id\tstatus\nq0\td0b\tfailed\n")
    said = judgekit("score", "--run", "good.trec", "--qrels", "gold.qrels", "-m", "P@2", "--per-query", "--json")
    rows = json.loads(said.out, parse_constant=pytest.fail)["scores"]
    assert {row["query_id"]: row["value"] for row in rows if row["query_id"] in ("q0", "q1")} == {"q0": None, "q1": 0.5}


COMPARE = ["compare", "--scores", "scores.csv", "--quality", "quality.csv"]


def test_compare_takes_tables_that_judgekit_did_not_make(judgekit, folder):
    base = {"run": "r", "query_id": [f"q{i}" for i in range(30)]}
    good = pd.DataFrame({**base, "labeling": "mine", "measure": "nDCG@5", "value": range(30)})
    pd.concat([good, good.assign(labeling="other", value=[i % 2 for i in range(30)])]).to_csv("scores.csv", index=False)
    pd.DataFrame({**base, "value": [i // 15 for i in range(30)]}).to_csv("quality.csv", index=False)
    said = judgekit(*COMPARE, "--out", "comparison.csv", "--primary", "nDCG@5", code=0)
    comparison = read_table(COMPARISON, folder / "comparison.csv")
    told = comparison[["run", "depth", "quality_metric", "model"]].drop_duplicates().values.tolist()
    assert told == [["r", 5, "rating", "undeclared"]]
    chosen = comparison[(comparison["coefficient"] == "concordance") & (comparison["labeling"] == "mine")]
    assert list(chosen["value"]) == [1.0]
    assert "of two questions, mine finds the worse answered one 100 " in " ".join(said.out.split())
    assert "The quality table has no column 'depth': judgekit assumes that the answers' depth is 5." in said.err
    assert re.search(r" concordance +ci_low +ci_high +tau_b +rho +r\n.* 1\.0000 +0\.\d+ +1\.0000 ", said.out)
    pd.concat([good, good.assign(measure="P@10")]).to_csv("scores.csv", index=False)
    assert "lacks column 'depth', and the depths are 10, 5" in judgekit(*COMPARE, code=2).err


def test_compare_says_which_labeling_may_be_the_outcome_by_construction(judgekit):
    base = {"run": "r", "query_id": [f"q{i:02}" for i in range(60)]}
    outcome = [float(i % 3 == 0) for i in range(60)]
    erag = pd.DataFrame({**base, "labeling": "erag", "measure": "P@1", "value": outcome})
    noisy = erag.assign(labeling="judge", value=[value + i * 7 % 5 for i, value in enumerate(outcome)])
    pd.concat([erag, noisy]).to_csv("scores.csv", index=False)
    pd.DataFrame({**base, "depth": 1, "model": "bot", "metric": "em", "value": outcome}).to_csv("quality.csv")
    assert "that proves nothing; leave it out" in " ".join(judgekit(*COMPARE).err.split())


def test_scores_that_tie_across_a_cutoff_are_told_once_per_run_and_ordered_as_asked(judgekit, folder):
    (folder / "flat.trec").write_text("".join(f"q{q} Q0 d{d} 1 0.5 flat\n" for q in (1, 2) for d in range(4)))
    (folder / "flat.qrels").write_text("q1 0 d0 1\nq2 0 d9 1\n")
    flat = ["score", "--run", "flat.trec", "--qrels", "flat.qrels", "-m", "P@1 R@1 nDCG@3 AP"]
    said = judgekit(*flat)
    told = "note: flat: scores tie across cutoff 1 in 2, cutoff 3 in 2 of 2 queries; --ties sets which documents come"
    assert [line for line in said.err.splitlines() if "tie" in line] == [f"{told} first"]
    assert said.out.split()[-4:-1] == ["0.0000", "0.0000", "0.0000"], "d0 comes last"
    assert judgekit(*flat, "--ties", "doc-asc").out.split()[-4:-1] == ["0.5000", "0.5000", "0.5000"]


def test_a_query_that_is_a_document_of_the_collection_leaves_its_own_list(judgekit, folder):
    (folder / "s.trec").write_text("x1 Q0 x1 1 9 a\nx1 Q0 x3 2 8 a\nx1 Q0 x2 3 8 a\nx2 Q0 x2 1 9 a\nx2 Q0 x3 2 8 a\n")
    (folder / "s.qrels").write_text("x1 0 x2 1\nx2 0 x3 1\nx4 0 x2 1\n")
    score = ["score", "--run", "s.trec", "--qrels", "s.qrels", "-m", "RR@10"]

    def mean(*options: str) -> str:
        return judgekit(*score, *options, code=0).out.split()[-1]

    said = judgekit(*score)
    assert "begins with the query's own document for 2 of 2 queries: leave it out" in said.err
    assert said.out.split()[-1] == f"{(1 / 3 + 1 / 2) / 3:.4f}"
    assert mean("--drop-self") == f"{(1 / 2 + 1) / 3:.4f}"
    assert mean("--like", "beir") == f"{(1 / 2 + 1) / 2:.4f}"
    assert mean("--like", "beir", "--ties", "doc-asc") == f"{(1 + 1) / 2:.4f}"
    told = judgekit(*score, "--like", "beir").err
    assert "own document" not in told
    assert "1 of 3 queries have no score for s: the means of beir leave them out" in told
    assert "--like" in judgekit(*score, "--like", "bier", code=2).err


MADE = [
    *("agreement.csv", "answers/answer-short.parquet", "claims.csv", "comparison.csv", "confusion.csv"),
    *("details.csv", "differences.csv"),
    *(f"labels/{name}.{form}" for name in ("containment", "erag", "judge") for form in ("parquet", "qrels")),
    *("manifest.json", "replies.parquet", "report.html", "report.json", "resolved.toml", "scores.parquet"),
]


def test_run_does_it_all_a_second_time_without_a_request_and_report_draws_the_same_page(judgekit, folder):
    judgekit("run", "experiment.toml", "--out", "results", code=0)
    results = folder / "results"
    assert sorted(str(p.relative_to(results)) for p in results.rglob("*") if p.is_file()) == MADE
    replies = pd.read_parquet(results / "replies.parquet")
    labels = pd.read_parquet(results / "labels" / "judge.parquet")
    asked = replies[replies["labeling"] == "judge"]
    assert asked[["query_id", "doc_id"]].to_numpy().tolist() == labels[["query_id", "doc_id"]].to_numpy().tolist()
    assert (asked["requests"] >= 1).all()
    assert (asked["seconds"] > 0).all()
    assert set(replies["labeling"]) == {"erag", "judge"}
    before = {p: (results / p).read_bytes() for p in MADE if not p.startswith("report")}
    assert "0 sent" in judgekit("run", "experiment.toml", "--out", "results", code=0).err
    assert {p: (results / p).read_bytes() for p in before} == before
    drawn = (results / "report.html").read_bytes()
    (results / "report.html").unlink()
    judgekit("report", "results", "--figures", "figures", code=0)
    assert (results / "report.html").read_bytes() == drawn
    assert {path.suffix for path in (folder / "figures").iterdir()} == {
        ".svg",
        ".csv",
    }
    assert "a folder of their own" in judgekit("report", "results", "--figures", "results", code=2).err
    assert {p: (results / p).read_bytes() for p in before} == before


def test_dry_run_counts_and_sends_nothing(judgekit, finished):
    for cache, counts in (("none", "18 18 0 at least 18; up to 36"), ("store", "18 18 18 0")):
        said = judgekit("run", "experiment.toml", "--dry-run", "--cache", cache, code=0)
        assert f"label judge {counts}" in " ".join(said.out.split())
    assert not (finished / "none").exists()
    assert not (finished / "judgekit-out").exists()


FREE = toml(
    data=FILES | {"depth": 4},
    runs=RUNS,
    labelers=[{"kind": "containment"}, {"name": "gold", "kind": "provenance", "qrels": "gold.qrels"}],
    answers={"depths": [4], "ratings": ["thumbs.csv"]},
    analysis=QUICK,
)


def test_ratings_and_labelers_that_ask_nobody_need_no_endpoint(judgekit, folder):
    rows = [f"{run},q{i},{'up' if run == 'good' or i % 2 else 'down'}" for run in RUNS for i in range(6)]
    (folder / "thumbs.csv").write_text("\n".join(["run,query_id,value", *rows]) + "\n")
    (folder / "free.toml").write_text(FREE)
    assert "answer" not in judgekit("run", "free.toml", "--dry-run", code=0).out
    judgekit("run", "free.toml", "--out", "results", code=0)
    comparison = read_table(COMPARISON, folder / "results" / "comparison.csv")
    told = comparison[["quality_metric", "depth", "model"]].drop_duplicates().values.tolist()
    assert told == [["rating", 4, "undeclared"]]
    assert set(comparison["level"]) == {"query", "within-query", "system"}
    (folder / "again.toml").write_text((folder / "results" / "resolved.toml").read_text())
    judgekit("run", "again.toml", "--out", "again", code=0)  # the resolved file says that nothing is answered
    assert (folder / "again" / "scores.parquet").read_bytes() == (folder / "results" / "scores.parquet").read_bytes()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("depths = [4]", 'depths = [4]\nmetrics = ["em"]', "endpoint"),
        ("depths = [4]", 'depths = [4]\nprompt = "answer-long"', "endpoint"),
        ("depths = [4]", 'depths = [4]\nendpoint = "local"', "endpoint"),
        ('ratings = ["thumbs.csv"]', "metrics = []", "metrics, or files with ratings"),
        ("depths = [4]", "depths = [1, 4]", "lacks column 'depth', and the depths are 1, 4"),
    ],
)
def test_answers_that_are_asked_for_need_an_endpoint_beside_ratings_too(judgekit, folder, old, new, said):
    (folder / "thumbs.csv").write_text("run,query_id,value\ngood,q0,up\n")
    (folder / "free.toml").write_text(FREE.replace(old, new))
    assert said in judgekit("run", "free.toml", "--dry-run", code=2).err


def test_two_models_answer_and_the_matrix_of_models_is_shown(judgekit, folder):
    text = EXPERIMENT.replace("[1, 4]", '[1, 4]\nendpoint = ["local", "other"]')
    for kind, endpoint in (("judge", "local"), ("utility", "other")):
        text = text.replace(f'kind = "{kind}"', f'kind = "{kind}"\nendpoint = "{endpoint}"')
    (folder / "two.toml").write_text(text + toml(endpoints={"other": {"base_url": URL, "model": "mock-2"}}))
    judgekit("run", "two.toml", "--out", "results", code=0)
    comparison = read_table(COMPARISON, folder / "results" / "comparison.csv")
    assert set(comparison["model"]) == {"mock", "mock-2"}
    same = comparison[(comparison["labeling"] == "erag") & (comparison["model"] == "mock-2")]
    assert same["flags"][same["depth"] == 1].str.contains("by_construction").any()
    assert "mock-2" in (folder / "results" / "report.html").read_text()


@pytest.mark.parametrize(
    ("ratings", "primary", "metric", "told"),
    [
        (["thumbs.csv"], "nDCG@4", "thumb", "unknown outcome 'thumb'"),
        (["thumbs.csv"], "nDCG@1", "thumbs", "it is known only for the top 4"),
        (["em.csv"], "nDCG@4", "em", "which the experiment computes itself"),
        (["thumbs.csv", "thumbs.csv"], "nDCG@4", "thumbs", "two of the files rate 'thumbs'"),
    ],
)
def test_what_cannot_be_compared_in_the_end_is_refused_before_anything_is_sent(
    judgekit, folder, ratings, primary, metric, told
):
    for name in ("thumbs", "em"):
        rows = "".join(f"good,4,mock,q{i},{name},{i % 2}\n" for i in range(6))
        (folder / f"{name}.csv").write_text("run,depth,model,query_id,metric,value\n" + rows)
    answers = f'depths = [1, 4]\nmetrics = ["em", "f1"]\nratings = {ratings}\noutcome = "{metric}"'
    edited(folder / "experiment.toml", "depths = [1, 4]", answers)
    edited(folder / "experiment.toml", "[analysis]", f'[analysis]\nprimary = "{primary}"')
    assert told in judgekit("run", "experiment.toml", "--cache", "fresh", code=2).err
    assert not (folder / "fresh").exists()


def test_a_table_that_is_written_is_summed_up_on_the_screen(judgekit, folder):
    common = ["score", "--run", "good.trec", "--qrels", "gold.qrels", "-m", "nDCG@3 AP"]
    means = judgekit(*common).out
    said = judgekit(*common, "--per-query", "--out", "s.csv").out
    assert said == f"{means}scores: s.csv ({len(pd.read_csv(folder / 's.csv'))} rows)\n"


def test_labels_that_apply_to_no_pair_are_no_success(judgekit, folder):
    lines = (json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines())
    bare = [json.dumps({key: value for key, value in line.items() if key != "answers"}) for line in lines]
    (folder / "queries.jsonl").write_text("\n".join(bare) + "\n")
    data = ["--queries", "queries.jsonl", "--docs", "docs.jsonl", "--run", "good.trec"]
    said = judgekit("label", "containment", *data, "--out", "c.qrels", code=1)
    assert "containment applies to none of the pairs: c.qrels.parquet has the reasons" in said.err


def test_measures_may_be_given_one_by_one(judgekit, folder):
    said = judgekit(
        "score", "--run", "good.trec", "--qrels", "gold.qrels", "-m", "nDCG@3", "-m", "RR P@1", "--json", code=0
    )
    assert {row["measure"] for row in json.loads(said.out)["scores"]} == {"nDCG@3", "RR", "P@1"}


def test_the_table_of_all_labels_is_not_made_where_few_rows_are_needed(judgekit, folder, monkeypatch):
    """Ten million labels are written and counted in blocks: one table of them takes more memory than all else."""

    def whole(self):
        raise AssertionError("the whole table is made")

    monkeypatch.setattr(Labeling, "table", property(whole))
    judgekit("label", "containment", *DATA, "--depth", 3, "--out", "found.qrels", code=0)
    assert len(read_table(LABELS, folder / "found.qrels.parquet")) == 18
