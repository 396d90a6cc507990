"""Final labels: people's where there are some, else a labeling's on people's scale."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from judgekit.analysis.agreement import agreement as agree
from judgekit.data.labelings import Labeling, Scale
from judgekit.errors import UsageError
from judgekit.people.final import FINAL, SHOWN, agreed, final_labels, held_out
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


def test_relevance_and_gains_are_weighted_by_how_pairs_were_drawn():
    drawn = [("q1", "a", 0.0, 1 / 3), ("q1", "b", 1.0, 1.0), ("q2", "a", 2.0, 1 / 3), ("q2", "b", 3.0, 1.0)]
    values = [0.2, 0.2, 0.9, 0.9]
    labels = labeling_of({(q, d): value for (q, d, *_), value in zip(drawn, values, strict=True)}, "unit")
    rule = final_labels(labels, people_of(drawn, "grades:3:2")).rule
    assert rule.gains == pytest.approx((0.25, 2.25))
    shares = [("q1", "a", 0.0, 0.1), ("q1", "b", 3.0, 1.0), ("q2", "a", 3.0, 1.0)]
    labels = labeling_of({("q1", "a"): 0.0, ("q1", "b"): 0.6, ("q2", "a"): 0.8}, "unit")
    assert final_labels(labels, people_of(shares, "grades:3:2")).rule.cut == 0.6
    rare = [("q1", "a", 3.0, 1.0), ("q1", "b", 0.0, 0.1), ("q2", "a", 0.0, 1.0)]
    assert final_labels(labels, people_of(rare, "grades:3:2")).rule.cut == 0.8


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
    assert set(final.agreement["pairs"]) == {99}
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
    for query, scale in ("q00", Scale("binary")), ("q13", Scale("unit")):
        before = held_out(table, table, Scale("unit"), scale)
        turned = table.assign(people=np.where(table["query_id"] == query, 1 - table["people"], table["people"]))
        mine = (table["query_id"] == query).to_numpy()
        again = held_out(turned, turned, Scale("unit"), scale)
        assert (again[mine] == before[mine]).all()
        assert (again != before).any()


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


def test_people_who_say_the_same_of_all_leave_the_labeling_its_own_threshold(pool):
    grades, values = pool
    for scale, given, how_many in (("binary", 1, "all"), ("grades:3:2", 0, "none"), ("unit", 0.5, "all")):
        final = final_labels(labeling_of(values, "unit"), people_of([(*pair, given, 1.0) for pair in grades], scale))
        assert final.rule.cut == 0.5
        said = (
            f"Relevant is what judge declares, 0.5 or more: people call {how_many} of the 200 judged passages relevant."
        )
        assert final.sentences[0] == said


def test_labels_that_share_no_pair_with_people_are_refused_and_useless_ones_named(pool):
    grades, values = pool
    elsewhere = people_of([("q00", "other", 1.0, 1.0), ("q01", "other", 0.0, 1.0)], "grades:3:2")
    with pytest.raises(UsageError, match="no pair has labels by people and by judge"):
        final_labels(labeling_of(values, "unit"), elsewhere)
    assert agreed(elsewhere, {"judge": labeling_of(values, "unit")}).empty
    random = np.random.default_rng(1)
    noise = {pair: float(random.random()) for pair in grades}
    people = people_of([(q, d, float(g >= 3), 1.0) for (q, d), g in grades.items()], "binary")
    found = agreed(people, {"judge": labeling_of(values, "unit")})
    assert set(found["coefficient"]) == {*SHOWN} - {"mean_difference"}
    for machine, useless in ((noise, True), (values, False)):
        final = final_labels(labeling_of(machine, "unit"), people)
        assert any("no more often than always" in note for note in final.notes) == useless
        assert str(final.rule).startswith("relevant from ")


def test_agreement_is_that_of_the_labels_as_declared_before_any_mapping(pool):
    """A judge whose mean grade lies below relevance was said to agree not at all: kappa 0, precision undefined."""
    grades, _ = pool
    said = {pair: float(grade >= 1) for pair, grade in grades.items()}
    people = people_of([(*pair, float(g), 1.0) for pair, g in grades.items()], "grades:3:3")
    judge = labeling_of(said, "binary")
    final = final_labels(judge, people)
    on_relevance = final.agreement[final.agreement["on"] == "relevance"]
    expected = agree([judge, people.labeling], people=["people"]).table
    both = on_relevance.merge(expected, on="coefficient", suffixes=("", "_agree"))
    assert len(both) == len(on_relevance) == 6
    assert both["value"].tolist() == both["value_agree"].tolist()
    assert both.set_index("coefficient").loc["recall", "value"] == 1
    assert final.sentences[-1].startswith("judge agrees with people: kappa .")


def test_a_labeling_on_people_s_scale_is_compared_on_both(pool):
    grades, _ = pool
    people = people_of([(*pair, float(g), 1.0) for pair, g in grades.items()], "grades:3:2")
    graded = labeling_of({pair: float(min(g + 1, 3)) for pair, g in grades.items()}, "grades:3:2")
    final = final_labels(graded, people)
    assert set(final.agreement["on"]) == {"relevance", "labels", FINAL}
    kappa = final.agreement[final.agreement["coefficient"] == "kappa"].set_index("on")["value"]
    assert kappa[FINAL] > kappa["labels"], "the rule takes the shift out"
    same = final_labels(labeling_of({pair: float(g > 1) for pair, g in grades.items()}, "binary"),
                        people_of([(*pair, float(g > 1), 1.0) for pair, g in grades.items()], "binary"))  # fmt: skip
    assert set(same.agreement["on"]) == {"relevance"}, "final labels that are the labels say nothing more"


def test_a_label_that_nobody_gives_leaves_its_share_undefined_with_the_reason(pool):
    grades, _ = pool
    never = labeling_of(dict.fromkeys(grades, 0.0), "binary")
    people = people_of([(*pair, float(g), 1.0) for pair, g in grades.items()], "grades:3:2")
    final = final_labels(never, people)
    assert "precision is undefined (no label says relevant), recall .00" in final.sentences[-1]
    assert final.filled.emptied


def test_gains_stand_in_tenths_beside_grades_only(pool):
    grades, values = pool
    judged = [(q, d, float(g), 0.5) for (q, d), g in grades.items() if q < "q20"]
    final = final_labels(labeling_of(values, "unit"), people_of(judged, "grades:3:2"))
    assert str(final.gains.scale) == "grades:30:20"
    assert (final.gains.table["relevance"] / 10).tolist() == pytest.approx(final.table["gain"].tolist(), abs=0.05)
    assert ((final.gains.table["relevance"] >= 20) == (final.table["relevance"] >= 2)).all()
    assert (final.table["gain"] != final.table["relevance"]).any()
    relevant = [(q, d, float(g > 1), p) for q, d, g, p in judged]
    assert final_labels(labeling_of(values, "unit"), people_of(relevant, "binary")).gains is None


def test_judgments_made_elsewhere_set_the_share_on_whole_questions_only():
    """Files of relevant passages and few others say nothing of how many are relevant."""
    pairs = [(f"q{q}", f"d{d}") for q in range(10) for d in range(5)]
    machine = labeling_of({(q, d): (0.9, 0.6, 0.3, 0.2, 0.1)[int(d[1])] for q, d in pairs}, "unit")
    some = [(q, d, float(d == "d0" or d == "d1"), 1.0) for q, d in pairs if d in ("d0", "d1", "d4")]
    partly = replace(people_of(some, "binary"), design="")
    final = final_labels(machine, partly)
    assert final.rule.cut == 0.5
    assert "people judged no question's passages as a whole" in final.sentences[0]
    whole = [(q, d, float(d in ("d0", "d1", "d2")), 1.0) for q, d in pairs if q == "q1"]
    known = [row for row in some if row[0] != "q1"] + whole
    assert final_labels(machine, replace(people_of(known, "binary"), design="")).rule.cut == 0.3


def test_after_votes_a_passage_is_relevant_from_half_of_them_on():
    votes = {(f"q{i // 4}", f"d{i}"): (1, 0.5, 0.25, 0)[i % 4] for i in range(160)}
    people = people_of([(q, d, share, 1.0) for (q, d), share in votes.items()], "unit")
    judge = labeling_of({pair: float(share >= 0.5) for pair, share in votes.items()}, "binary")
    made = final_labels(judge, people)
    found = dict(zip(made.agreement["coefficient"], made.agreement["value"], strict=False))
    assert (found["agreement"], found["kappa"]) == (1, 1)
    assert made.rule.gains == (0.125, 0.75)
    assert made.sentences[1] == "A relevant label counts 0.75, another 0.12: people's mean among them."
