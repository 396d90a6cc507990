"""Worked examples of articles and papers: numbers that somebody else has printed."""

import numpy as np
import pytest

from judgekit.data.labelings import Labeling
from judgekit.data.runs import Run, Ties
from judgekit.metrics import evaluate
from tests.metrics.material import labeling_of, run_of, scored_run


def one(run: Run, labeling: Labeling, measure: str) -> float:
    return evaluate([run], [labeling], [measure]).summary[0].value


@pytest.mark.parametrize(
    ("gains", "measure", "value"),
    [
        ("0 1 1 0 0 | 1", "P@5", 2 / 5),
        ("0 1 1 0 0 | 1", "R@5", 2 / 3),
        ("0 1 1 0 0 | 1", "F1@5", 1 / 2),
        ("0 1 1 0 0 | 1", "AP", 0.38888888888888884),
        ("0 1 1 0 0 | 1", "AP(by=hits)", 0.5833333333333333),
        ("0 1 1 0 1", "AP", 0.5888888888888889),
        ("3 2 3 1 0", "DCG@3", 5.7618595071429155),
        ("3 3 2 1 0", "DCG@3", 5.892789260714372),
        ("3 2 3 1 0", "nDCG@3", 0.9777813616305049),
        ("3 2 3 1 0", "nDCG(dcg='exp-log2')@3", 0.9594535145926796),
        ("3 2 3 1 0", "nDCG@5", 0.9792946214428092),
        ("3 2 3 1 0", "nDCG(dcg='exp-log2')@5", 0.9607618369839247),
        ("3 2 1 3 0", "nDCG@3", 0.808082437104775),
        ("3 2 1 3 0", "nDCG(ideal=retrieved)@3", 1.0),
        ("1 0 0 1 1", "P@5", 0.6),
        ("3 0 2", "DCG(dcg='exp-log2')@3", 8.5),
        ("3 2 0", "DCG(dcg='exp-log2')@3", 8.892789260714373),
        ("3 0 2", "nDCG(dcg='exp-log2')@3", 0.95583058934618),
        ("3 0 2", "nDCG@3", 0.9385574520455129),
        ("1 0 1 0 0", "AUC", 0.8333333333333334),
        ("3 0 2", "ERR", 0.890625),
        ("1 0 0 1", "AP(by=hits)", 0.75),
        ("0 0 0", "RR", 0.0),
        ("1 0 0 1", "P@10", 0.2),
        ("1 0 0 1", "P(by=retrieved)@10", 0.5),
        ("1 0 0 1 | 1", "AP", 0.5),
        ("1 1 1 1 1 1 | 1 1 1 1", "R", 0.6),
        ("0.2 0.5 0.8", "ERR", 0.5066666666666667),
        ("0.2 0.5 0.8", "P@3", 0.5),
        ("0.2 0.5 0.8", "HitRate@3", 0.8),
    ],
)
def test_lists_given_by_their_labels_and_those_of_documents_not_listed(gains: str, measure: str, value: float) -> None:
    listed, *unseen = ([float(g) for g in part.split()] for part in gains.split("|"))
    labels = {f"d{i:02}": v for i, v in enumerate(listed)}
    more = {f"u{i}": v for i, v in enumerate(*unseen)} if unseen else {}
    labeling = labeling_of("unit" if "." in gains else "grades:3", q=labels | more)
    assert one(run_of(q=" ".join(labels)), labeling, measure) == pytest.approx(value, rel=1e-14)


def test_means_of_first_ranks_and_hits() -> None:
    lists = {f"q{i}": " ".join(f"d{j}" for j in range(1, 6)) for i in range(1, 4)}
    first = {q: {f"d{rank}": 1} for q, rank in zip(lists, (3, 2, 5), strict=True)}
    assert one(run_of(**lists), labeling_of(**first), "MeanRank") == pytest.approx(10 / 3)
    first = {q: {f"d{rank}": 1} for q, rank in zip(lists, (2, 1, 4), strict=True)}
    assert one(run_of(**lists), labeling_of(**first), "MRR") == pytest.approx(0.5833333333333334)
    first = {q: {f"d{rank}": 1} for q, rank in zip(("q1", "q2"), (2, 3), strict=True)}
    assert one(run_of(**lists), labeling_of(**first), "MRR") == pytest.approx(0.41666666666666663)
    hits = {f"q{i}": {"d": int(i < 15)} for i in range(20)}
    assert one(run_of(**dict.fromkeys(hits, "a b c d")), labeling_of(**hits), "HitRate@5") == 0.75


QRELS = labeling_of("grades:2", Q0={"D0": 0, "D1": 0, "D2": 1}, Q1={"D0": 2, "D1": 1, "D2": 0})
FRAMES = {"Q0": {"D0": 0.0, "D1": 1.0, "D2": 1.0}, "Q1": {"D0": 2.0, "D1": 0.0, "D2": 0.0}}
TIED = {"Q0": {"D0": 1.0, "D1": 0.4, "D2": 1.0}, "Q1": {"D0": 2.0, "D1": 0.0, "D2": 0.0}}


def test_the_frames_of_ir_measures() -> None:
    assert evaluate([scored_run(**FRAMES)], [QRELS], ["nDCG@5"]).values.ravel().tolist() == [1.0, 0.9502344167898356]
    default = evaluate([scored_run(**TIED)], [QRELS], ["RR@1", "RR@2", "RR", "RR(rel=30)@1"])
    assert default.values[:, 0, 0].tolist() == [[1, 1], [1, 1], [1, 1], [0, 0]]
    ascending = evaluate([scored_run(ties=Ties.DOC_ASC, **TIED)], [QRELS], ["RR@1", "RR@2"])
    assert ascending.values[:, 0, 0].tolist() == [[0, 1], [0.5, 1]]


def test_one_call_has_measures_with_rules_of_their_own_for_ties() -> None:
    spelled = ["RR(ties='doc-asc')@1", "RR(ties=doc-asc)@2", "nDCG@5", "RR@1"]
    found = evaluate([scored_run(**TIED)], [QRELS], spelled)
    assert found.values[[0, 1, 3], 0, 0].tolist() == [[0, 1], [0.5, 1], [1, 1]]
    alone = evaluate([scored_run(**TIED)], [QRELS], ["nDCG@5"])
    np.testing.assert_array_equal(found.values[2], alone.values[0])
    assert str(found.measures[0]) == "RR(ties='doc-asc')@1"
    # Runs are cut to a depth in the measure's own order.
    cut = evaluate([scored_run(q={"a": 1.0, "b": 1.0})], [labeling_of(q={"a": 1})], "RR(ties=doc-asc) RR", depth=1)
    assert cut.values.ravel().tolist() == [1, 0]


def test_the_rank_of_the_best_document_only() -> None:
    labeling = labeling_of("grades:3", **{f"q{i}": {"D1": 3, "D2": 2, "D3": 1} for i in range(4)})
    run = run_of(q0="D1 D2 D3", q1="D3 D1 D2", q2="D3 D2 D1", q3="D2 D3")
    assert evaluate([run], [labeling], ["RR(best=True)"]).values.ravel().tolist() == [1, 1 / 2, 1 / 3, 0]


@pytest.mark.parametrize(
    ("labels", "measure", "mean"),
    [
        # Trappolini et al. 2025: probabilities of abstaining .1 (relevant), .4 and 1 (irrelevant); weights 1 and -1/3.
        ({"d1": 0.9, "d2": -0.2, "d3": 0.0}, "UDCG@3", (0.9 - 0.6 / 3 - 0) / 3),
        ({"d1": 0.9, "d2": -0.6, "d3": 0.0}, "UDCG(harm=0.3333333333333333)@3", (0.9 - 0.6 / 3 - 0) / 3),
        ({"d1": 0.9, "d2": -0.2, "d3": 0.0}, "UDCG(gain=2)@3", (1.8 - 0.2) / 3),
        ({"d1": 0.9, "d2": -0.2, "d3": 0.0}, "UDCG@2", (0.9 - 0.2) / 2),
        # A passage without a label counts in the mean; a place that no passage fills does not.
        ({"d1": 0.9, "d2": -0.2}, "UDCG@3", (0.9 - 0.2) / 3),
        ({"d1": 0.9, "d2": -0.2, "d3": 0.0}, "UDCG@10", (0.9 - 0.2) / 3),
    ],
)
def test_utility_and_distraction_are_weighed_as_in_the_paper(
    labels: dict[str, float], measure: str, mean: float
) -> None:
    value = one(run_of(q="d1 d2 d3"), labeling_of("signed", q=labels), measure)
    assert value == pytest.approx(1 / (1 + np.exp(-mean)), rel=1e-14)


PUBLISHED = [
    # Of https://github.com/GiovanniTRA/UDCG at a02faf3, data/dataset_with_udcg.json (Llama-3.2-3B-Instruct): how many
    # of the five passages, the first ones, are relevant; each one's probability of abstaining; UDCG by their script.
    (
        2,
        [2.086162567138672e-06, 1.341104507446289e-05, 0.1318359375, 0.1812744140625, 0.02081298828125],
        0.5553808928170055,
    ),
    (
        2,
        [
            *[5.960464477539063e-08, 6.616115570068359e-06, 0.00018215179443359375],
            *[0.006114959716796875, 0.0093536376953125],
        ],
        0.5501411475208001,
    ),
    (
        1,
        [
            *[3.0100345611572266e-05, 0.00010311603546142578, 0.007602691650390625],
            *[0.01299285888671875, 0.00013053417205810547],
        ],
        0.4837510250741193,
    ),
]


@pytest.mark.parametrize(("relevant", "abstaining", "published"), PUBLISHED)
def test_it_gives_the_values_that_the_authors_published(
    relevant: int, abstaining: list[float], published: float
) -> None:
    names = [f"d{place}" for place in range(1, 6)]
    useful = dict(zip(names, (1 - probability for probability in abstaining), strict=True))
    whole = {name: u if place < relevant else -u for place, (name, u) in enumerate(useful.items())}
    run = run_of(q=" ".join(names))
    # The file was made with the weight -.333; the script's own default, and the labels of utility, have -1/3.
    weighed = one(run, labeling_of("signed", q=whole), "UDCG(harm=0.333)@5")
    assert weighed == pytest.approx(published, rel=1e-12)
    own = {name: value if value > 0 else value / 3 for name, value in whole.items()}
    assert one(run, labeling_of("signed", q=own), "UDCG@5") == pytest.approx(published, abs=1e-4)
    assert one(run, labeling_of("signed", q=own), "UDCG@5") == pytest.approx(
        one(run, labeling_of("signed", q=whole), f"UDCG(harm={1 / 3!r})@5"), rel=1e-12
    )
    # Their script gives a question without passages 0.
    other = run_of(other="d1")
    assert evaluate([other], [labeling_of("signed", q=own)], "UDCG@5").values.ravel()[0] == 0
