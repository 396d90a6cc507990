"""Whether high or low values of a metric are the good ones: said by its name, by the file, or asked; never guessed."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import judgekit as jk
from judgekit.analysis.comparison import compare
from judgekit.answers.direction import Directions, by_name
from judgekit.errors import DataError, UsageError
from judgekit.rules import Rules
from tests.commands import in_process

FAST = Rules(resamples=100)


@pytest.mark.parametrize(
    ("name", "direction"),
    [
        ("noise_sensitivity(mode=relevant)", "lower"),
        ("NoiseSensitivity", "lower"),
        ("perplexity", "lower"),
        ("WER", "lower"),
        ("edit_distance", "lower"),
        ("Hallucination", "asked"),
        ("hallucination_score", "asked"),
        ("ToxicityMetric", "asked"),
        ("bias", "asked"),
        ("request_time", "not a score"),
        ("prompt_tokens", "not a score"),
        ("total_cost", "not a score"),
        ("faithfulness", "higher"),
        ("answer_similarity", "higher"),
        ("unbiased", "higher"),
        ("timeliness", "higher"),
        ("token_f1", "higher"),
        ("score_x", "higher"),
    ],
)
def test_names_say_a_direction_only_where_no_tool_disagrees(name, direction):
    assert by_name(name) == direction


def wide(questions: int = 120, noise: float = 0.4, easy: float = 0.0) -> pd.DataFrame:
    """Rows of another tool: ``truth`` follows the thumbs, every other metric runs against them."""
    rng = np.random.default_rng(2)
    rows = []
    for question in range(questions):
        ease = rng.normal()
        for run in ("a", "b", "c"):
            use = rng.normal() + 0.4 * "abc".index(run)
            against = -use + noise * rng.normal() + easy * ease
            good = use + ease > 0.3
            row = {"query_id": f"q{question:03}", "run": run, "thumb": float(good), "truth": use + noise * rng.normal()}
            rows.append(row | {"score_x": against, "hallucination": against, "perplexity": against, "latency": use})
    return pd.DataFrame(rows)


def lines(found: jk.Comparison) -> str:
    return " ".join(found.decision.text.split())


def test_until_it_is_asked_a_metric_on_which_tools_disagree_decides_nothing():
    found = compare(wide(), rules=FAST, outcome="thumb")
    assert set(found.table["labeling"]) == {"truth", "score_x", "perplexity"}
    notes = " ".join(found.warnings)
    assert "`--reverse hallucination` if lower is better, else `--as-given hallucination`" in notes
    assert "perplexity: lower counts as better." in notes
    assert "latency is book-keeping: not compared." in notes
    r = found.decision.of("keep")
    assert r["subject"].tolist()[0] in ("truth", "perplexity")


def test_reversing_turns_the_sign_and_nothing_else():
    table = wide()
    given = compare(table, rules=FAST, outcome="thumb", as_given=["hallucination"])
    turned = compare(table, rules=FAST, outcome="thumb", reverse=["hallucination"])

    def r_of(found: jk.Comparison) -> float:
        rows = found.table.query("labeling == 'hallucination' and coefficient == 'r_pooled'")
        return float(rows["value"].iloc[0])

    assert r_of(turned) == pytest.approx(-r_of(given))
    assert r_of(turned) > 0.5
    assert "You reversed hallucination. If these data were the reason" in lines(turned) + " ".join(
        turned.decision.details
    )


def test_a_metric_that_runs_against_the_answers_everywhere_is_asked_about():
    said = lines(compare(wide(), rules=FAST, outcome="thumb"))
    assert "Do not choose runs by score_x: it runs against the answers (r -." in said
    assert "Is lower better? Then give `--reverse score_x`; until then nothing is decided by it." in said
    assert "--reverse score_x" not in lines(compare(wide(), rules=FAST, outcome="thumb", as_given=["score_x"]))


def test_a_metric_that_follows_questions_but_not_runs_misleads_and_is_not_asked_about():
    said = lines(compare(wide(easy=3), rules=FAST, outcome="thumb"))
    assert (
        "Do not choose runs by score_x: it follows the answers over questions, but runs against them between runs"
        in said
    )
    assert "--reverse score_x" not in said


@pytest.mark.parametrize(("cell", "kept"), [(False, "score_x"), ("lower", "score_x"), ("False", "score_x")])
def test_the_file_says_a_direction(cell, kept):
    table = wide(noise=0.01)[["query_id", "run", "thumb", "score_x"]].assign(**{"score_x direction": cell})
    found = compare(table, rules=FAST, outcome="thumb")
    assert found.decision.kept == kept
    assert set(found.table["labeling"]) == {"score_x"}
    with pytest.raises(DataError, match="must say True or False"):
        compare(table.assign(**{"score_x direction": "up"}), rules=FAST, outcome="thumb")


def test_an_outcome_is_asked_about_and_turned_round():
    table = wide().assign(hallucination=lambda rows: 1 - rows["thumb"]).drop(columns="thumb")
    with pytest.raises(UsageError, match="--reverse hallucination"):
        compare(table, rules=FAST, outcome="hallucination")
    turned = compare(table, rules=FAST, outcome="hallucination", reverse=["hallucination"])
    assert turned.decision.leader == "c"
    assert compare(table, rules=FAST, outcome="hallucination", as_given=["hallucination"]).decision.leader == "a"


def test_long_tables_ask_about_the_outcome_too():
    table = wide()
    scores = table[["query_id", "run"]].assign(labeling="truth", measure="score", value=table["truth"])
    quality = table[["query_id", "run"]].assign(metric="toxicity", value=1 - table["thumb"])
    with pytest.raises(UsageError, match="--as-given toxicity"):
        compare(scores, quality, FAST, outcome="toxicity")
    assert compare(scores, quality, FAST, outcome="toxicity", reverse=["toxicity"]).decision.leader == "c"


def test_what_is_named_has_to_be_there_and_to_have_one_direction():
    with pytest.raises(UsageError, match="is named in both"):
        Directions(("x",), ("x",))
    with pytest.raises(UsageError, match="unknown metric 'scorex'"):
        compare(wide(), rules=FAST, outcome="thumb", reverse=["scorex"])


def test_the_command_line_says_and_takes_directions(capfd, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    judgekit = in_process(capfd)
    wide().to_csv("tool.csv", index=False)
    asked = ("compare", "--scores", "tool.csv", "--outcome", "thumb", "--resamples", "100", "--json")
    said = json.loads(judgekit(*asked, code=0).out)
    assert any("--reverse hallucination" in warning for warning in said["warnings"])
    assert "hallucination" not in {row["labeling"] for row in said["comparison"]}
    turned = json.loads(judgekit(*asked, "--reverse", "hallucination", code=0).out)
    by_name = {row["labeling"]: row["value"] for row in turned["comparison"] if row["coefficient"] == "r_pooled"}
    assert by_name["hallucination"] > 0.5
    assert by_name["perplexity"] > 0.5
    assert by_name["score_x"] < -0.5
