"""The decision: what it says in each situation, and what it never says."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import judgekit as jk
from judgekit.analysis import Background, Decision, Money, Pool, Rules, compare, decide
from judgekit.analysis.findings import HELPS, MISLEADS, NOT_SHOWN
from judgekit.analysis.intervals import better_than
from judgekit.analysis.money import check_costs
from judgekit.errors import DataError, UsageError
from judgekit.labelers.base import Needs
from tests.analysis.worlds import RUNS, tables, world
from tests.commands import Judgekit, in_process

Tables = tuple[pd.DataFrame, pd.DataFrame]
LINES = {"Do", "Why", "Cost", "How sure", "Beware", "Reuse", "Failing", "Next"}
OVERCLAIMS = re.compile(
    r"\b(alike|free|cheapest|cannot be told apart)\b|takes about|no labels are needed", re.IGNORECASE
)


@pytest.fixture
def judgekit(capfd: pytest.CaptureFixture[str]) -> Judgekit:
    return in_process(capfd)


def well_formed(decision: Decision) -> dict[str, str]:
    """Return the lines of a decision by title, when it has the form that every decision has."""
    lines = decision.text.splitlines()
    assert len(lines) <= 8
    assert all(len(line) <= 100 for line in lines), decision.text
    titles = [title for title, _ in decision.lines]
    assert titles[0] == "Do"
    assert set(titles) <= LINES
    assert len(titles) == len(set(titles))
    assert not OVERCLAIMS.search(" ".join((decision.text, *decision.details)))
    return dict(decision.lines)


def decided(data: Tables, **options: Any) -> tuple[Decision, dict[str, str]]:
    """Return the decision on two tables, and its lines."""
    found = compare(*data, **({"rules": Rules(resamples=200)} | options)).decision
    return found, well_formed(found)


def written(folder: Path, scores: pd.DataFrame, quality: pd.DataFrame) -> list[object]:
    """Return the arguments of `judgekit compare` on two tables, which are written."""
    scores.to_csv(folder / "scores.csv", index=False)
    quality.to_csv(folder / "quality.csv", index=False)
    return ["compare", "--scores", folder / "scores.csv", "--quality", folder / "quality.csv", "--seed", 1]


def test_a_labeling_that_picks_the_worse_run_is_not_better_than_all_others() -> None:
    """It follows the answers where these differ, and prefers the other run where they tie."""
    rng = np.random.default_rng(4)
    b = (rng.random(1000) < 0.55).astype(float)
    b[:490] = np.arange(490) < 255  # the answers of B are a little better
    differ = np.arange(1000) < 490
    quality = np.stack([np.where(differ, 1 - b, b), b])
    judge = quality + rng.normal(size=quality.shape)
    judge[0] += np.where(differ, 0.0, 0.5)
    other = quality * 0.1 + rng.normal(size=quality.shape)
    found, lines = decided(tables({"judge": judge, "other": other}, quality, ("A", "B")))
    assert lines["Do"] == "No decision. Do not buy labels yet."
    assert lines["Why"].startswith("Answers differ on 490 of 1,000 questions; ")
    bring = r"Bring (at least|more than) [\d,]+ questions \(perhaps none suffice\), or keep the cheaper retriever\."
    assert re.search(bring, lines["Next"])
    assert "judge would pick A, the answers so far B." in found.text
    assert found.findings["judge"].concordance.low > 0.6, "on the questions whose answers differ it is right"


@pytest.mark.parametrize(
    ("refused", "said"),
    [
        (lambda: Money(wage=18), "use one of the two"),
        (lambda: Money(judgment=1, wage=18, minutes=1), "use one of the two"),
        (lambda: Rules(margin_points=-1), "margin_points"),
        (lambda: Money(budget=-0.1), "budget must be at least 0, not -0.1"),
        (lambda: Money(price={"own": np.inf}), "price of own must be at least 0, not inf"),
        (lambda: check_costs(pd.DataFrame({"labeling": ["a", "b", "a"]})), "two rows for labeling 'a'"),
        (lambda: check_costs(pd.DataFrame({"labeling": ["a"], "requests": [-1]})), "a negative cost"),
    ],
)
def test_costs_and_margins_that_cannot_be_are_refused(refused: Callable[[], object], said: str) -> None:
    with pytest.raises((UsageError, DataError), match=said):
        refused()


def test_without_prices_requests_judgments_and_references_are_counted() -> None:
    needs = {"own": Needs(references=True)}
    costs = pd.DataFrame({"labeling": ["own", "answers"], "requests": [1000, 300]})
    pool = Pool(100, 500, 1000, 300, 100, (5, 40), (20, 30))
    data, background = world({"own": (0, 1.0)}, n=100), Background(costs=costs, pool=pool, needs=needs)
    lines = decided(data, background=background)[1]
    assert lines["Cost"] == "Requests at depth 5: answers 300; own 500. New questions need references: own and answers."
    assert lines["Do"] == "For ground truth to keep, label with own. To choose among these 4 runs, compare answers."
    once = replace(background, pool=replace(pool, labels_again=(91, 91), answers_again=(30, 30)))
    assert decided(data, background=once)[1]["Reuse"] == "A further run needs 91 new labels, or 30 answers."


@pytest.mark.parametrize(("name", "shown"), [("b", "b"), ("b" * 40, "b" * 23 + "…")])
def test_labelings_of_equal_r_do_not_lead_one_another(name: str, shown: str) -> None:
    scores, quality = world({"a": (0.0, 1.0)}, n=300)
    both = pd.concat([scores, scores.assign(labeling=name)])
    _, lines = decided((both, quality))
    equal = rf"Equal r so far, \.\d\d: a and {shown}, not shown apart\.( The costliest is safer\.|$)"
    assert re.match(equal, lines["Why"])


def test_below_twenty_differing_questions_signs_are_flipped_instead_of_saying_nothing() -> None:
    rng = np.random.default_rng(0)
    quality = np.zeros((2, 100))
    quality[0, :16] = 1
    noise = rng.normal(size=(2, 100)) * 0.1
    for differing, oftener in ((7, {("right", "wrong")}), (6, set())):  # six: by chance in 1 of 64
        quality[0, differing:] = 0
        data = tables({"right": quality + noise, "wrong": -quality + noise}, quality, ("A", "B"))
        assert decided(data)[0].findings.oftener == oftener


def test_nothing_is_claimed_where_two_more_losses_could_undo_it() -> None:
    place, quality = np.arange(60), np.stack([np.ones(60), np.zeros(60)])
    one = np.where(place < 3, -quality, quality)
    for ahead, oftener in ((20, set()), (40, {("one", "other")})):
        other = np.where((place >= 3) & (place < 3 + ahead), 0.0, quality)
        assert decided(tables({"one": one, "other": other}, quality, ("A", "B")))[0].findings.oftener == oftener


@pytest.mark.parametrize(("few", "claimed"), [(4, False), (5, True)])
def test_nothing_is_claimed_where_fewer_than_five_questions_fail_or_speak_against_it(few: int, claimed: bool) -> None:
    ahead = {("right", "wrong")} if claimed else set()
    place = np.arange(100)
    failing = np.where(place < few, 0.0, 1.0)[None]
    noise = np.random.default_rng(0).normal(size=(2, 1, 100)) / 2
    data = tables({"right": failing + noise[0], "wrong": noise[1] - failing}, failing, ("A",))
    assert decided(data)[0].findings.better == ahead
    quality = np.stack([np.ones(100), np.zeros(100)])
    lost, won = (np.where(where, -quality, quality) for where in (place < few, (few <= place) & (place < 70)))
    scores, answers = tables({"right": lost, "wrong": won}, quality, ("A", "B"))
    pairs = {query: str(int(query[1:]) // 2) for query in scores["query_id"]}
    assert decided((scores, answers), background=Background(groups=pairs))[0].findings.oftener == ahead


def test_answers_made_from_other_documents_than_the_runs_are_refused(judgekit: Judgekit, tmp_path: Path) -> None:
    (tmp_path / "queries.jsonl").write_text('{"query_id": "q1", "text": "Who?", "answers": ["Ada"]}\n')
    (tmp_path / "docs.jsonl").write_text("".join(f'{{"doc_id": "d{i}", "text": "Ada {i}"}}\n' for i in range(4)))
    (tmp_path / "bm25.trec").write_text("q1 Q0 d0 1 3 x\nq1 Q0 d1 2 2 x\nq1 Q0 d2 3 1 x\n")
    given = ["answer", "--queries", tmp_path / "queries.jsonl", "--run", f"bm25={tmp_path / 'bm25.trec'}"]
    given += ["--depth", 2, "--import", tmp_path / "answers.jsonl", "--out", tmp_path / "quality.csv", "--metric", "em"]

    def answered(**context: object) -> object:
        (tmp_path / "answers.jsonl").write_text(json.dumps({"query_id": "q1", "answer": "Ada", **context}) + "\n")
        return judgekit(*given)

    said = answered(context=["d3", "d1"])
    assert said.code == 2
    assert "1 imported answers were made from other documents than their run's top: that to query 'q1'" in said.err
    assert answered(context=["d1", "d0"]).code == 0, "in whichever order the prompt had them"
    assert "contexts" not in pd.read_csv(tmp_path / "quality.csv").columns
    assert answered(context="d0 d1").code == 0
    assert answered().code == 0
    assert set(pd.read_csv(tmp_path / "quality.csv")["contexts"]) == {"not checked"}


def test_a_choice_that_answers_themselves_hardly_win_is_not_worth_labels() -> None:
    rng = np.random.default_rng(0)
    right = (rng.random(2000) < 0.5).astype(float)
    quality = np.stack([np.where(rng.random(2000) < 0.03, 1 - right, right) for _ in range(3)])
    data = tables({"own": quality + rng.normal(size=quality.shape)}, quality, ("a", "b", "c"))
    costs = pd.DataFrame({"labeling": ["answers"], "requests": [6000], "money": [20.0]})
    there = Background(costs=costs, pool=Pool(2000, 9000, 9000, 6000, 5000), needs={"own": Needs()})
    found, lines = decided(data, background=there, money=Money(reference=0, budget=10))
    assert found.findings.not_worth
    assert lines["Do"] == "Buy no labels to choose among these 3 runs: keep the cheaper retriever."
    assert re.match(r"Answers themselves win at most [01]\.\d points over a coin flip\.", lines["Why"])
    answers = found.purchase.set_index("strategy").loc["answers"]
    assert answers["questions"] == 2000 + 1000, "those of the pilot are answered"
    assert not compare(*data, rules=Rules(resamples=100, margin_points=0.1)).decision.findings.not_worth


def test_the_same_label_for_every_document_of_a_question_is_worth_nothing_for_the_choice() -> None:
    data = world({"easy": (1.0, 0.0), "own": (0.0, 1.0)})
    found, _ = decided(data)
    assert found.winner == "own"
    assert found.findings["easy"].r.value == found.findings["easy"].gain.value == 0
    assert found.other.names == ("easy", "own"), "it tells easy questions from hard ones"
    assert ("own", "easy") in found.findings.better
    look = "To find the questions that fail, look where {} scores low."
    assert decided(data, rules=Rules(resamples=200, use="find-questions"))[1]["Do"].startswith(look.format("easy"))
    one = compare(*world({"own": (0.5, 1.0)}, runs=RUNS[:1]), rules=Rules(resamples=200))
    assert (one.primary.use, one.gains.empty) == ("find-questions", True), "one run can only be asked that"
    assert well_formed(one.decision)["Do"].startswith(look.format("own"))


def test_kinds_of_question_that_disagree_are_told_apart(judgekit: Judgekit, tmp_path: Path) -> None:
    """Gold labels choose rightly within each kind of question, and wrongly over both."""
    rng = np.random.default_rng(0)
    n, half = 2000, np.arange(2000) < 1000
    chance = np.where(half, [[0.70], [0.50]], [[0.38], [0.46]])
    quality = (rng.random((2, n)) < chance).astype(float)
    gold = rng.normal(size=(2, n)) * 0.5 + np.where(half, [[0.2], [0.0]], [[0.0], [1.0]])
    scores, answers = tables({"gold": gold}, quality, ("A", "B"))
    answers = answers.assign(kind=np.where(answers["query_id"] < "q1000", "open", "a or b"))
    found, lines = decided((scores, answers), rules=Rules(resamples=500, by="kind"))
    assert found.findings["gold"].says == MISLEADS
    assert {kind: part["gold"].says for kind, part in found.findings.kinds.items()} == {"open": HELPS, "a or b": HELPS}
    assert lines["Beware"].startswith("gold does otherwise within a or b and open questions: choose by kind.")
    assert "not declared" not in lines["How sure"]
    out = judgekit(*written(tmp_path, scores, answers), "--resamples", 100, "--by", "kind").out
    assert "gold does otherwise within a or b and open questions" in out
    with pytest.raises(UsageError, match="neither the quality nor the scores table has a column 'sort'"):
        compare(scores, answers, Rules(by="sort"))


def test_the_words_are_the_same_wherever_they_are_shown(judgekit: Judgekit, tmp_path: Path) -> None:
    data = world({"a|b": (0.0, 1.0), "other": (0.5, 0.5)}, n=60)
    found = decide(*data, rules=Rules(resamples=200, seed=1))
    given = [*written(tmp_path, *data), "--resamples", 200]
    assert judgekit(*given).out.startswith(found.text)
    assert json.loads(judgekit(*given, "--json").out)["decision"]["text"] == found.text
    markdown = judgekit(*given, "--format", "markdown").out
    html = found._repr_html_()
    for title, said in found.lines:
        assert f"| **{title}** | {said.replace('|', chr(92) + '|')} |" in markdown
        assert title in html
    assert "<details>" in markdown
    assert str(found) == found.text
    assert jk.decide is decide


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_every_decision_fits_whatever_names_are_long(noise: float) -> None:
    names = {f"judge(prompt=graded,endpoint=a-very-long-name-{i})": (noise, 1.0 - noise) for i in range(4)}
    runs = tuple(f"a-retriever-with-a-name-that-nobody-would-want-to-type-{i}" for i in range(4))
    for use in ("choose-runs", "find-questions"):
        _, lines = decided(world(names, n=60, runs=runs), rules=Rules(resamples=200, use=use))
    assert lines["Why"].endswith("."), "a list loses names, and no sentence its end"


def test_queries_that_go_together_are_resampled_together_and_few_groups_claim_nothing() -> None:
    scores, quality = world({"a": (0.0, 1.0)}, n=60)
    many = [
        pd.concat([frame.assign(query_id=frame["query_id"] + f"-{copy}") for copy in range(5)])
        for frame in (scores, quality)
    ]
    groups = {query: query.partition("-")[0] for query in many[0]["query_id"].unique()}
    alone, grouped, blind = (
        compare(*data, rules=Rules(resamples=999), **given).decision.findings["a"]
        for data, given in (((scores, quality), {}), (many, {"background": Background(groups=groups)}), (many, {}))
    )
    for name in ("concordance", "gain", "r"):
        wide, same, narrow = ((one := getattr(each, name)).high - one.low for each in (alone, grouped, blind))
        assert same == pytest.approx(wide, rel=0.2)
        assert narrow < 0.65 * wide
    few = {query: str(int(query[1:5]) % 10) for query in groups}
    found = compare(*many, rules=Rules(resamples=300), background=Background(groups=few))
    assert found.decision.findings["a"].says == NOT_SHOWN
    assert any("Only 10 groups" in warning for warning in found.warnings)


def test_groups_of_queries_leave_half_of_the_degrees_of_freedom(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    spy = lambda *values, **how: seen.append(how["freedom"]) or better_than(*values, **how)  # noqa: E731
    monkeypatch.setattr("judgekit.analysis.findings.better_than", spy)
    scores, quality = world({"own": (0.0, 1.0), "other": (1.0, 0.3)}, n=60)
    for groups in (None, dict(zip(*[scores["query_id"].unique()] * 2, strict=True))):
        compare(scores, quality, Rules(resamples=100), background=Background(groups=groups))
    alone, grouped = np.array_split(np.array(seen), 2)
    assert ((alone + 1) // 2 - 1 == grouped).all()


def test_answers_of_a_model_that_no_labeling_used_have_a_decision_of_their_own() -> None:
    scores, quality = world({"own": (0.0, 1.0)})
    needs = {"own": Needs(endpoints=(jk.Endpoint("x", "http://localhost:1/v1", "m"),))}
    both = pd.concat([quality, quality.assign(model="other")])
    found = compare(scores, both, rules=Rules(resamples=200), model="m", background=Background(needs=needs))
    assert set(found.independent) == {"other"}
    assert found.independent["other"].primary.model == "other"
    assert compare(scores, quality, rules=Rules(resamples=200), background=Background(needs=needs)).independent == {}
