"""Final labels: people's where there are some, else a labeling's on people's scale."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import isotonic_regression

from judgekit.data.labelings import Labeling, Scale
from judgekit.errors import UsageError
from judgekit.people.final import SHOWN, Rule, agreed, best_threshold, final_labels, fit, held_out
from judgekit.people.reading import People

ASKED = ["query_id", "doc_id", "probability", "content", "status", "judgments"]


def people_of(rows, scale: str) -> People:
    """People who gave (query, doc, grade, probability); None is a tie."""
    labels = pd.DataFrame([(q, d, g) for q, d, g, _ in rows], columns=["query_id", "doc_id", "relevance"])
    labels["status"] = ["ok" if g is not None else "unparsed" for _, _, g, _ in rows]
    labels = labels.astype({"relevance": "float64"})
    asked = [(q, d, p, "", "ok" if g is not None else "tie", 1) for q, d, g, p in rows]
    return People(Labeling("people", Scale.parse(scale), labels), pd.DataFrame(asked, columns=ASKED), "pairs", 0.0)


def labeling_of(values, scale: str, name: str = "judge") -> Labeling:
    rows = [(q, d, value) for (q, d), value in values.items()]
    return Labeling(name, Scale.parse(scale), pd.DataFrame(rows, columns=["query_id", "doc_id", "relevance"]))


@pytest.fixture(scope="module")
def pool():
    """200 pairs of 40 queries: a grade, and a probability that goes with it."""
    random = np.random.default_rng(3)
    grades = {(f"q{q:02d}", f"d{d}"): int(random.integers(4)) for q in range(40) for d in range(5)}
    values = {pair: float(np.clip(grade / 4 + random.normal(0.1, 0.1), 0, 1)) for pair, grade in grades.items()}
    return grades, values


def test_the_threshold_is_the_best_of_all_by_a_search(pool):
    grades, values = pool
    value, relevant = np.array(list(values.values())), np.array(list(grades.values())) >= 2
    found = best_threshold(np.round(value, 1), relevant)

    def balanced(cut):
        guess = np.round(value, 1) >= cut
        return (guess & relevant).sum() / relevant.sum() + (~guess & ~relevant).sum() / (~relevant).sum()

    assert balanced(found) == max(map(balanced, np.arange(0, 1.2, 0.05)))


def test_grades_are_what_people_give_on_average_weighted_by_how_they_were_drawn():
    values, people = np.array([0.1, 0.1, 0.5, 0.9]), np.array([0.0, 2.0, 1.0, 3.0])
    rule = fit(values, people, np.array([3.0, 1.0, 1.0, 1.0]), Scale("grades", 3))
    nine = Rule(Scale("unit"), values=tuple(map(float, range(9))), means=tuple(n / 8 for n in range(9)))
    assert str(nine) == "0 becomes 0.00, 2 becomes 0.25, 4 becomes 0.50, 6 becomes 0.75, 8 becomes 1.00"
    assert rule.means == tuple(isotonic_regression([0.5, 1.0, 3.0], weights=[4, 1, 1]).x)
    drawn = [("q1", "a", 0.0, 1 / 3), ("q1", "b", 2.0, 1.0), ("q2", "a", 1.0, 1.0), ("q2", "b", 3.0, 1.0)]
    labels = labeling_of({(q, d): value for (q, d, *_), value in zip(drawn, values, strict=True)}, "unit")
    assert final_labels(labels, people_of(drawn, "grades:3")).rule == rule
    assert rule(np.array([0.1, 0.5, 0.9, 1.0, np.nan])).tolist() == pytest.approx([1, 1, 3, 3, np.nan], nan_ok=True)


def test_people_s_labels_stand_and_the_others_follow_them(pool):
    grades, values = pool
    judged = [(q, d, float(g), 0.5) for (q, d), g in grades.items() if q < "q20"]
    judged[0] = (*judged[0][:2], None, 0.5)
    final = final_labels(labeling_of(values, "unit"), people_of(judged, "grades:3:2"))
    table = final.table.set_index(["query_id", "doc_id"])
    assert str(final.labeling.scale) == "grades:3:2"
    assert all(table.loc[(q, d), "relevance"] == g for q, d, g, _ in judged[1:])
    assert table["source"].value_counts().to_dict() == {"judge": 101, "people": 99}  # a tie is nobody's label
    rest = table[table["source"] == "judge"]
    assert set(table.loc[table["source"] == "people", "confidence"]) == {1}
    truth = np.array([grades[pair] for pair in rest.index])
    assert (rest["relevance"].to_numpy() == truth).mean() > 0.6
    assert final.judged == 99
    coarse = final_labels(labeling_of({pair: float(g > 1) for pair, g in grades.items()}, "binary"),
                          people_of([(*pair, float(g), 1.0) for pair, g in grades.items()], "grades:3:2"))  # fmt: skip
    assert any("people gave the grade" in note for note in coarse.notes) > any("the grade" in n for n in final.notes)
    namesake = final_labels(labeling_of(values, "unit", "people"), people_of(judged, "grades:3:2"))
    assert set(namesake.agreement["first"]) == {"people (labeling)"}
    agreed = final.agreement[final.agreement["coefficient"] == "agreement"].iloc[0]
    assert agreed["pairs"] == 99
    known = rest.groupby("relevance")["confidence"].nunique()
    assert set(known) == {1}  # one share for each label


def test_confidence_is_how_often_people_gave_that_label_where_they_judged():
    """Three of four passages that the machine calls relevant are, and none that it does not."""
    pairs = [(f"q{i:02}", f"d{d}") for i in range(40) for d in range(5)]
    judge = labeling_of({(q, d): float(d < "d2") for q, d in pairs}, "binary")
    judged = [(q, d, float(d < "d2" and int(q[1:]) % 4 > 0), 1.0) for q, d in pairs if d != "d1"]
    table = final_labels(judge, people_of(judged, "binary")).table
    by_judge = table[table["source"] == "judge"]
    assert by_judge.groupby("relevance")["confidence"].unique().to_dict() == {1.0: [0.75]}


def test_held_out_labels_come_from_rules_that_never_saw_the_query(pool):
    grades, values = pool
    rows = [(q, d, values[q, d], float(g >= 2), 1.0) for (q, d), g in grades.items()]
    table = pd.DataFrame(rows, columns=["query_id", "doc_id", "machine", "people", "probability"])
    for query, scale in ("q00", Scale("binary")), ("q13", Scale("unit")):  # on unit every judgment moves the rule
        before = held_out(table, scale)
        turned = table.assign(people=np.where(table["query_id"] == query, 1 - table["people"], table["people"]))
        mine = (table["query_id"] == query).to_numpy()
        assert (held_out(turned, scale)[mine] == before[mine]).all()


def test_without_people_the_labels_stand_as_declared_and_it_is_said(pool):
    final = final_labels(labeling_of(pool[1], "unit"), None)
    assert (str(final.labeling.scale), len(final.agreement), final.judged) == ("unit", 0, 0)
    assert set(final.table["source"]) == {"judge"}
    assert final.table["relevance"].tolist() == final.table["machine"].tolist()
    assert "no people judged: the labels are those of judge (no label is declared relevant)" in final.notes[0]
    graded = final_labels(labeling_of(pool[0], "grades:3:2"), None)
    assert "(relevant from 2 on, as judge declares)" in graded.notes[0]


def test_a_missing_label_is_missing_unless_people_gave_one():
    rows = pd.DataFrame(
        [("q1", "a", 1.0, "ok"), ("q1", "b", np.nan, "failed"), ("q2", "a", 0.0, "ok"), ("q2", "b", np.nan, "failed")],
        columns=["query_id", "doc_id", "relevance", "status"],
    )
    said = people_of([("q1", "a", 1.0, 1.0), ("q1", "b", 1.0, 1.0), ("q2", "a", 0.0, 1.0)], "binary")
    final = final_labels(Labeling("judge", Scale("binary"), rows), said)
    assert final.table["source"].tolist() == ["people", "people", "people", ""]
    assert final.labeling.counts()["failed"] == 1


def test_labels_that_cannot_be_mapped_are_refused_and_useless_ones_named(pool):
    grades, values = pool
    for scale in ("binary", "grades:3:2"):
        alike = people_of([(q, d, 1.0, 1.0) for q, d in grades], scale)
        with pytest.raises(UsageError, match="judge more"):
            final_labels(labeling_of(values, "unit"), alike)
    random = np.random.default_rng(1)
    noise = {pair: float(random.random()) for pair in grades}
    people = people_of([(q, d, float(g >= 3), 1.0) for (q, d), g in grades.items()], "binary")
    flat = labeling_of(dict.fromkeys(values, 0.5), "unit")
    found = agreed(people, {"flat": flat, "judge": labeling_of(values, "unit")})
    assert set(found["coefficient"]) == {*SHOWN} - {"mean_difference"}
    for machine, useless in ((noise, True), (values, False)):
        final = final_labels(labeling_of(machine, "unit"), people)
        assert any("no more often than always" in note for note in final.notes) == useless
        assert str(final.rule).startswith("relevant from ")


def test_after_votes_agreement_is_that_of_relevant_or_not():
    """Votes are shares: the rule turns the judge's 0 into a small share, which no vote equals."""
    votes = {(f"q{i // 4}", f"d{i}"): (1, 0.5, 0.25, 0)[i % 4] for i in range(160)}
    people = people_of([(q, d, share, 1.0) for (q, d), share in votes.items()], "unit")
    judge = labeling_of({pair: float(share >= 0.5) for pair, share in votes.items()}, "binary")
    made = final_labels(judge, people)
    found = dict(zip(made.agreement["coefficient"], made.agreement["value"], strict=False))
    assert (found["agreement"], found["kappa"]) == (1, 1)
    assert any("relevant or not" in note for note in made.notes)
