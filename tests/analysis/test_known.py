"""What is known of labels and answers goes with them: Python, files and the command line say the same."""

import json

import pandas as pd
import pytest

import judgekit as jk
from judgekit.analysis.background import Background
from judgekit.client.asking import Asking
from tests.analysis.worlds import world
from tests.mock import URL

DEPTH = 3
RULES = jk.Rules(primary="nDCG@3", resamples=100)


@pytest.fixture
def made(folder, tmp_path):
    """Labels by a judge and by words, and answers, by the model that also judges."""
    llm = jk.Endpoint("local", base_url=URL, model="mock")
    data = {"queries": folder / "queries.jsonl", "docs": folder / "docs.jsonl", "asking": Asking(cache=tmp_path / "s")}
    runs = {"good": folder / "good.trec", "poor": folder / "poor.trec"}
    judge = jk.label("judge", runs=runs, depth=DEPTH, endpoints=llm, **data)
    words = jk.label("containment", runs=runs, depth=DEPTH, **data)
    quality = jk.answer(runs=runs, depths=[DEPTH], endpoints=llm, metrics=["em"], **data)
    return jk.score(runs, {"judge": judge, "words": words}, ["nDCG@3"], depth=DEPTH), quality


def said(decision) -> dict[str, str]:
    return {f"{claim.kind}: {claim.subject}: {claim.against}": claim.sentence for claim in decision.claims}


def test_labels_and_answers_carry_what_is_known_of_them_into_the_decision(made):
    decision = jk.decide(*made, RULES, outcome="em")
    claims = said(decision)
    assert claims["shares: judge: "] == "judge asks the answering model: with another one it may do worse."
    assert claims["shares: words: "].startswith("words shares the references")
    (costs,) = [claim for claim in decision.claims if claim.kind == "costs"]
    # 18 labels of 6 questions; the answers of equal lists are shared.
    assert "as many new questions takes" in costs.sentence
    assert "for judge" in costs.sentence
    assert "no requests for words" in costs.sentence or "none for words" in costs.sentence
    assert not any(claim.kind == "unknown" for claim in decision.claims)


def test_tables_files_and_the_command_line_say_the_same(made, folder, tmp_path, judgekit):
    scores, quality = made
    wanted = said(jk.decide(scores, quality, RULES, outcome="em"))
    assert said(jk.decide(scores.scores(), quality, RULES, outcome="em")) == wanted
    data = ["--queries", "queries.jsonl", "--docs", "docs.jsonl", "--run", "good.trec", "--run", "poor.trec",
            "--depth", DEPTH]  # fmt: skip
    asked = ["--endpoint", URL, "--model", "mock"]
    judgekit("label", "judge", *data, *asked, "-o", "judge.qrels", code=0)
    judgekit("label", "containment", *data, "-o", "words.qrels", code=0)
    judgekit("answer", *data, *asked, "--metric", "em", "-o", "quality.parquet", code=0)
    judgekit("score", "--run", "good.trec", "--run", "poor.trec", "--qrels", "judge.qrels", "--qrels", "words.qrels",
             "--scale", "judge=binary", "--scale", "words=binary", "-m", "nDCG@3", "--per-query", "-o", "scores.csv",
             code=0)  # fmt: skip
    compare = ["compare", "--scores", "scores.csv", "--quality", "quality.parquet", "--primary", "nDCG@3", "--outcome",
               "em", "--resamples", 100, "--json"]  # fmt: skip
    printed = json.loads(judgekit(*compare, code=0).out)["decision"]["claims"]
    by_command = {f"{claim['kind']}: {claim['subject']}: {claim['against']}": claim["sentence"] for claim in printed}
    assert by_command == wanted
    from_files = jk.decide(folder / "scores.csv", folder / "quality.parquet", RULES, outcome="em")
    assert said(from_files) == wanted
    # A file that was changed since is not the one that the manifest speaks of.
    (folder / "scores.csv").write_text((folder / "scores.csv").read_text() + "\n")
    changed = jk.decide(folder / "scores.csv", folder / "quality.parquet", RULES, outcome="em")
    assert any(claim.kind == "unknown" for claim in changed.claims)


def test_what_goes_with_a_table_survives_parquet_and_holds_no_key(made, tmp_path):
    scores, _ = made
    table = scores.scores()
    table.to_parquet(tmp_path / "mine.parquet")
    again = pd.read_parquet(tmp_path / "mine.parquet")
    assert again.attrs == json.loads(json.dumps(table.attrs))
    assert set(again.attrs["judgekit"]["labels"]) == {"judge", "words"}
    assert "api_key" not in json.dumps(table.attrs)


def test_what_the_caller_says_counts_and_what_nobody_says_is_said_to_be_unknown(made):
    scores, quality = made
    costs = pd.DataFrame({"labeling": ["judge", "words"], "requests": [7.0, 0.0]})
    background = Background(costs=costs)
    decision = jk.decide(scores, quality, RULES, outcome="em", background=background)
    assert decision.of("cost").set_index("subject").loc["judge", "value"] == pytest.approx(7)
    tables = world({"own": (0.0, 1.0), "other": (0.5, 0.5)}, n=60)
    lines = dict(jk.decide(*tables, jk.Rules(resamples=100)).lines)
    assert lines["Cost"] == (
        "It is not known which model made the labels of other and own, what they need or what they cost."
    )


def test_the_tables_of_a_results_folder_say_what_the_run_said(folder, judgekit):
    judgekit("run", "experiment.toml", "--out", "results", code=0)
    results = folder / "results"
    claimed = pd.read_csv(results / "claims.csv", keep_default_na=False)
    kinds = ("shares", "costs", "unknown")
    wanted = [*claimed.loc[claimed["kind"].isin(kinds), "sentence"]]
    assert any("answering model" in sentence for sentence in wanted), "the judge is the model that answers"
    rules = jk.Rules(primary="nDCG@4", resamples=100)
    decision = jk.decide(results / "scores.parquet", next((results / "answers").glob("*.parquet")), rules, outcome="em")
    assert [claim.sentence for claim in decision.claims if claim.kind in kinds] == wanted
