"""An independent recount of the studies agrees with every number of their tables and sentences."""

from __future__ import annotations

import csv
import json
import math
import os
import re
from collections import Counter
from functools import cache
from pathlib import Path
from statistics import mean

import pytest

from tests import recount

pytestmark = [
    pytest.mark.more,
    pytest.mark.skipif("STUDIES" not in os.environ, reason="STUDIES names no folder with copies of the repositories"),
]
DOCS = Path(__file__).parent.parent / "docs"
TABLES = DOCS.parent / "studies" / "tables.md"


@cache
def counted() -> dict[tuple[str, ...], dict[str, object]]:
    """All pairs, counted again."""
    return recount.pairs(settings())


@cache
def settings() -> list[recount.Setting]:
    """All configurations, read again."""
    found = [*recount.design(), *recount.again(), *recount.first()]
    return [*found, *recount.legal(), *recount.tonic(), *recount.chunks()]


@cache
def page() -> str:
    """The page, and its tables."""
    return (DOCS / "study.md").read_text() + TABLES.read_text()


def table(head: str) -> list[list[str]]:
    """The rows of the table whose head begins so."""
    lines = page().split(f"| {head}")[1].splitlines()[2:]
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def text(number: float, digits: int = 1) -> str:
    """A number as the page writes it."""
    return f"{round(number, digits) + 0.0:.{digits}f}"


def ranged(numbers: object) -> str:
    """A number with its interval, as the page writes it."""
    value, low, high = (text(number) for number in numbers[:3])  # type: ignore[index]
    return f"{value} ({low} to {high})"


def turned(numbers: object) -> tuple[float, float, float]:
    """The second configuration minus the first."""
    value, low, high = numbers[:3]  # type: ignore[index]
    return -value, -high, -low


def test_every_pair_of_the_table_is_counted_again() -> None:
    with (DOCS / "_static" / "study-pairs.csv").open(newline="") as file:
        written = list(csv.DictReader(file))
    again = counted()
    assert len(written) == len(again)
    for row in written:
        mine = again[row["repository"], row["setting"], row["first"], row["second"], row["measure"]]
        for name in ("comparable", "questions", "verdict"):
            assert row[name] == str(mine[name]), row
        for name in ("nested", "identical"):
            assert math.isclose(float(row[name] or "nan"), mine[name], rel_tol=6e-4) or not row[name], row  # type: ignore[arg-type]
            assert (row[name] == "") == math.isnan(mine[name]), row  # type: ignore[arg-type]
        for side in ("labels", "answers"):
            for name, value in zip(("value", "low", "high", "p"), mine[side], strict=True):  # type: ignore[call-overload]
                assert float(row[f"{side}_{name}"]) == pytest.approx(value, rel=6e-4, abs=1e-9), (row, side, name)


def test_the_rows_of_repositories_are_counted_again() -> None:
    for cells in table("repository | questions"):
        repo = re.sub(r".*github\.com/(.*)\)", r"\1", cells[0])
        rows = {key: row for key, row in counted().items() if key[0] == repo and row["comparable"]}
        for measure in {key[4] for key in rows}:
            verdicts = Counter(row["verdict"] for key, row in rows.items() if key[4] == measure)
            assert cells[3:6] == [str(verdicts[name]) for name in ("agree", "opposite", "not told")]
        assert cells[1] == f"{next(iter(rows.values()))['questions']:,}"
        for name, cell in zip(("nested", "identical"), cells[6:], strict=True):
            shares = [row[name] for row in rows.values()]
            ends = [f"{100 * end:.0f}" for end in (min(shares), max(shares))]  # type: ignore[type-var, operator]
            assert cell == ("not recorded" if "nan" in ends else f"{'–'.join(dict.fromkeys(ends))} %")


def test_what_choosing_is_worth_is_counted_again() -> None:
    names = {"RAG design study": recount.DESIGN, "RAGs for Complex QA": recount.AGAIN, "rag-complex-qa": recount.FIRST}
    rows = table("setting | labels pick")
    assert len(rows) == 11
    for cells in rows:
        repo, _, name = cells[0].partition(", ")
        (setting,) = (each for each in settings() if (each.repo, each.name) == (names[repo], name))
        for scores in setting.labels.values():
            means = {run: mean(values.values()) for run, values in scores.items()}
            assert max(means, key=lambda run: means[run]) == cells[1]
            assert recount.gain(setting, scores)[0] == pytest.approx(float(cells[2].split()[0]), abs=0.101)
        gained = [recount.gain(setting, scores) for scores in (setting.labels["recall"], setting.answers)]
        assert [ranged(each) for each in gained] == cells[2:4]
        assert text(recount.costs(setting)[cells[1]]) == cells[5]


def test_the_two_repositories_with_one_question_set_are_counted_again() -> None:
    again = counted()
    for cells in table("top | rag-complex-qa: recall"):
        one = again[recount.FIRST, f"Llama-3-8B, top {cells[0]}", "Contriever", "ADORE", "recall"]
        other = again[recount.AGAIN, f"top {cells[0]}", "Contriever", "ADORE", "recall"]
        assert cells[1:] == [ranged(turned(row[side])) for row in (one, other) for side in ("labels", "answers")]
    silent = [
        sum(each["predicted"] == "NO-RES" for each in recount.again_results(name, k).values())
        for name in ("Contriever", "ADORE")
        for k in (1, 3, 5)
    ]
    assert f"on {min(silent):,} to {max(silent):,} questions" in page()
    for metric in ("em", "f1"):
        found = recount.pairs([each for each in recount.first(metric) if not each.kind])
        assert {row["verdict"] for row in found.values()} == {"not told"}


def test_the_example_by_kind_is_counted_again() -> None:
    (setting,) = (each for each in recount.first("em") if each.name == "Llama-3-8B, top 5")
    oracle = json.loads(recount.shown(recount.FIRST, "llm-responses/llama3/oracle_esit.json"))
    golds = {prompt.rpartition("Question: ")[2].strip(): gold for prompt, (_, gold) in oracle.items()}
    kinds: dict[str, list[str]] = {"open": [], "options": [], "yes/no": []}
    for question in golds:
        gold = golds[question]
        words = [" " + " ".join(re.findall(r"\w+", each.lower())) + " " for each in (gold, question)]
        kinds["yes/no" if gold.lower() in ("yes", "no") else "options" if words[0] in words[1] else "open"].append(
            question
        )
    gaps = [recount._gap(values, "ADORE", "BM25") for values in (setting.labels["recall"], setting.answers)]
    overall = [ranged(recount.difference(gap)) for gap in gaps]
    assert f"recall {overall[0]}, exact match {overall[1]}" in page()
    parts = {kind: [text(100 * mean(gap[q] for q in queries)) for gap in gaps] for kind, queries in kinds.items()}
    assert f"both are above 0 ({', '.join(parts['open'])})" in page()
    assert f"both below ({', '.join(parts['options'])})" in page()


def test_sentences_about_indexes_and_abstention_are_counted_again() -> None:
    row = counted()[recount.DESIGN, "indexes, 50,000 papers", "flat", "IVF aggressive", "recall"]
    assert f"answers {ranged(row['answers'])} points, recall {ranged(row['labels'])}." in page()
    noise = []
    for number in (0, 1):
        once, twice = (
            {
                each["question_id"]: each
                for each in recount.rows(recount.DESIGN, f"results/{name}_evaluation_{number}.csv")
            }
            for name in ("exp1_topk_5", "exp3_index_flat")
        )
        noise.append(
            sum(
                row["answer_correctness"] != twice[query]["answer_correctness"]
                for query, row in once.items()
                if row["answerable"] == "True"
            )
        )
    assert f"other grades on {noise[0]} and {noise[1]} questions" in page()
    one, last, gap = recount.abstaining(1)
    ends = [text(end / 100, 2) for end in gap[:3]]
    assert f"Top 1 gets {text(one, 2)}, top 20 {text(last, 2)} (difference {ends[0]}, {ends[1]} to {ends[2]};" in page()
    assert recount.abstaining(0)[2][1] > 0


def test_what_is_decided_by_construction_is_counted_again() -> None:
    names = {"RAG design study": recount.DESIGN, "RAGs for Complex QA": recount.AGAIN, "rag-complex-qa": recount.FIRST}
    kinds = {(each.repo, each.name): each.kind for each in settings()}
    for cells in table("repository | what differs"):
        rows = {key: row for key, row in counted().items() if key[0] == names[cells[0]] and kinds[key[:2]] == cells[1]}  # type: ignore[index]
        shares = [row["nested"] for row in rows.values()]
        ends = [f"{100 * end:.0f}" for end in (min(shares), max(shares))]  # type: ignore[type-var, operator]
        assert cells[3] == ("not recorded" if "nan" in ends else f"{'–'.join(dict.fromkeys(ends))} %")
        for measure, cell in zip(("recall", "precision"), cells[4:], strict=True):
            verdicts = Counter(row["verdict"] for key, row in rows.items() if key[4] == measure)
            said = " / ".join(str(verdicts[name]) for name in ("agree", "opposite", "not told"))
            assert cell == (said if verdicts else "–")
            assert not verdicts or sum(verdicts.values()) == int(cells[2])
    name = ("depths, Llama-3-8B, Contriever", "top 1", "top 5", "recall")
    again = counted()[recount.AGAIN, "depths, Contriever", "top 1", "top 5", "recall"]
    contains = counted()[recount.FIRST, *name]
    exact = recount.pairs([each for each in recount.first("em") if each.name == name[0]])[recount.FIRST, *name]
    said = [ranged(turned(row["answers"])) for row in (again, contains, exact)]
    assert f"*contains* {said[0]} in RAGs for Complex QA, {said[1]} with Llama-3-8B" in page()
    assert f"where exact match changes by {said[2]}." in page()


def test_experts_snippets_are_counted_again() -> None:
    questions, fewer, hit, answer = recount.bioasq()
    assert f"{questions} questions of BioASQ 12B" in page()
    assert f"is there {ranged(hit)} points more often, and answers are {ranged(answer)} points better" in page()
    assert f"are fewer for {fewer} questions" in page()


def test_small_sets_are_counted_again() -> None:
    tonic = [row for key, row in counted().items() if key[0] == recount.TONIC]
    signs = Counter(
        math.copysign(1, row["labels"][0] * row["answers"][0]) for row in tonic if row["labels"][0] * row["answers"][0]
    )  # type: ignore[index]
    assert (
        f"Of {len(tonic)} pairs none is told apart; the signs are the same for {signs[1]}, opposite for {signs[-1]}."
        in page()
    )
    asked = {
        data: {row["question"] for row in recount.rows(recount.CHUNKS, f"results/{data}_results.csv")}
        for data in ("squad", "hotpot")
    }
    assert {len(questions) for questions in asked.values()} == {100}


def test_judges_are_counted_again() -> None:
    again = recount.judges()
    for cells in table("judge | tau-b"):
        tau, found, opposite, unconfirmed = again[cells[0]]
        assert cells[1:] == [tau, f"{found:,}", str(opposite), str(unconfirmed)]


def test_experts_are_counted_again() -> None:
    number, systems = recount.experts()
    assert f"{number} of the 2,177 answers" in page()
    informs, supports = zip(*systems.values(), strict=True)
    assert f"({min(informs):.0f} to {max(informs):.0f} times in 100;" in page()
    assert f"lower in every one ({min(supports):.0f} to {max(supports):.0f})" in page()
    assert all(one > other for one, other in systems.values())
