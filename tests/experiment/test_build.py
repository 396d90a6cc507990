import json
import re

import numpy as np
import pandas as pd
import pytest

import judgekit as jk
from judgekit.data.labelings import Scale
from judgekit.data.trec import read_qrels
from judgekit.errors import UsageError
from tests.cli.test_cli_annotate import rated
from tests.small import edited

SAMPLED = '[data]\nsample = "pilot.csv"\n'


@pytest.fixture
def piloted(folder, judgekit):
    """Results of a pilot on half of the questions."""
    experiment = folder / "experiment.toml"
    edited(experiment, "[data]\n", SAMPLED)
    (folder / "pilot.csv").write_text("query_id,weight\nq0,1\nq1,1\nq2,2\nq3,2\n")
    assert judgekit("run", experiment, "--out", folder / "out").code == 0
    return folder


def test_all_queries_are_labelled_after_a_pilot_and_nothing_twice(piloted, judgekit):
    dry = judgekit("build", "experiment.toml", "-l", "judge", "--dry-run", code=0)
    assert not (piloted / "ground-truth").exists()
    pairs, _, stored, send = map(int, re.findall(r"\d+", dry.out.splitlines()[1])[:4])
    assert stored > 0
    assert send > 0
    built = judgekit("build", "experiment.toml", "-l", "judge", code=0)
    assert f"{send} sent, {stored} from the store" in built.err
    assert "no people judged" in built.err
    labels = read_qrels(piloted / "ground-truth" / "final.qrels")
    assert set(labels.row_queries) == {f"q{i}" for i in range(6)}
    assert len(labels) == pairs
    assert " 0 sent" in judgekit("build", "experiment.toml", "-l", "judge").err


def test_the_cost_of_a_label_is_that_of_all_replies_spread_over_the_pool(folder, judgekit):
    edited(folder / "experiment.toml", "[answers]", "[prices.mock]\nprompt = 1000.0\ncompletion = 0.0\n[answers]")
    (folder / "gold.csv").write_text("query_id,doc_id,relevance\nq0,d0a,1\nq1,d1b,0\n")
    told = judgekit("build", "experiment.toml", "-l", "judge", "--people", "gold.csv", code=0).err
    spent = float(re.findall(r"spent: ([\d.]+)", told)[0])
    table = pd.read_parquet(folder / "ground-truth" / "labels.parquet")
    by_judge = table[table["source"] == "judge"]
    assert by_judge["cost"].nunique() == 1
    assert by_judge["cost"].iloc[0] * len(table) == pytest.approx(spent, rel=1e-3)
    assert table.loc[table["source"] == "gold.csv", "cost"].isna().all(), "nobody knows what people cost"


def test_the_card_of_an_experiment_file_tells_the_biases_of_the_results_beside_it(folder, judgekit):
    def biases() -> str:
        judgekit("build", "experiment.toml", "-l", "judge", code=0)
        card = (folder / "ground-truth" / "card.md").read_text()
        return card.split("## Known biases\n\n")[1].split("\n")[0]

    unknown = "- Unknown: these labels were built without the results of a comparison."
    assert biases() == unknown
    judgekit("run", "experiment.toml", "--out", "results", code=0)
    assert biases() == "- judge asks the answering model: with another one it may do worse."
    edited(folder / "results" / "resolved.toml", "is experiment.toml", "is other.toml")
    (folder / "other.toml").write_text("")
    assert biases() == unknown
    judgekit("run", "experiment.toml", code=0)
    assert biases() == "- judge asks the answering model: with another one it may do worse."


def test_people_s_labels_come_first_and_the_card_says_what_it_is_made_of(piloted, judgekit):
    judgekit("annotate", "sample", "out", "--n", 4, "--prompt", "binary", "-o", "s.jsonl")
    rated(piloted / "s.csv")
    judgekit("annotate", "read", "s.jsonl", "s.csv", "-o", "people.qrels", code=0)
    judgekit("build", "out", "-l", "judge", "--people", "people.qrels", code=0)
    people = read_qrels(piloted / "people.qrels")
    table = pd.read_parquet(piloted / "ground-truth" / "labels.parquet")
    said = table[table["source"] == "people"]
    assert len(said) == len(people)
    assert said["relevance"].tolist() == people.table["relevance"].tolist()
    assert table["passage"].str.len().min() > 10
    assert table["query"].str.endswith("?").all()
    card = (piloted / "ground-truth" / "card.md").read_text()
    assert card.startswith("# Relevance labels: out\n")
    assert f"{len(people)} labels by people" in card
    assert "## Agreement with people\n\n- Relevant is what judge calls 1: people call " in card
    own = "- judge asks the answering model: with another one it may do worse.\n"
    assert f"## Known biases\n\n{own}- Passages that none of the runs holds" in card
    assert "kappa" in card
    assert str(piloted) not in card
    scored = judgekit("score", "--run", "good.trec", "--qrels", "ground-truth/final.qrels", "-m", "P@1",
                      "--scale", "final=binary")  # fmt: skip
    assert scored.code == 0, scored.err
    assert judgekit("build", "out", "-l", "judge", "--people", "people.qrels").code == 0
    assert (piloted / "ground-truth" / "card.md").read_text() == card


def test_existing_judgments_by_people_enter_the_final_qrels_with_their_source(folder, judgekit):
    judged = [f"q{i},d{i}{part},{grade}\n" for i in range(6) for part, grade in (("a", 1), ("b", 0))]
    elsewhere = ["q0,d5b,1\n", "q0,z9,1\n", "x1,d0a,1\n"]  # one that no run found, two that are not there
    (folder / "nist.csv").write_text("".join(["topic,passage,label\n", *judged, *elsewhere]))
    given = "csv(query=topic,doc=passage,relevance=label):nist.csv"
    built = judgekit("build", "experiment.toml", "-l", "judge", "--people", given, code=0)
    table = pd.read_parquet(folder / "ground-truth" / "labels.parquet").set_index(["query_id", "doc_id"])
    by_people = table[table["source"] == "nist.csv"]
    assert (len(by_people), by_people.loc[("q3", "d3a"), "relevance"]) == (13, 1)
    assert set(table["source"]) == {"nist.csv", "judge"}
    assert "13 by nist.csv" in built.out
    assert "2 judgments of nist.csv are left out: they are about other questions or passages" in built.err
    card = (folder / "ground-truth" / "card.md").read_text()
    assert "- 13 labels by people (nist.csv), " in card
    assert "not drawn at random" in card


@pytest.mark.parametrize("grade", [1, 2])
def test_judgments_that_are_all_alike_leave_the_labeling_its_own_scale(grade, folder, judgekit):
    (folder / "gold.qrels").write_text("".join(f"q{i} 0 d{i}b {grade}\n" for i in range(6)))
    built = judgekit("build", "experiment.toml", "-l", "judge", "--people", "gold.qrels", code=0)
    labels = read_qrels(folder / "ground-truth" / "final.qrels").table.set_index(["query_id", "doc_id"])
    assert (labels.loc[("q0", "d0b"), "relevance"], set(labels["relevance"])) == (grade, {0, 1, grade})
    assert "Relevant is what judge declares, 1: people judged no question's passages as a whole" in built.out
    judgekit("run", "experiment.toml", "--out", "out", code=0)
    refused = judgekit("annotate", "correct", "gold.qrels", "out", code=2).err
    assert "the probability with which each passage was drawn is unknown" in refused


def graded(folder, judgekit, said, questions=40):
    """Let a judge that says 1 where ``said(relevant, random)``, and people who grade eight questions, label a pool."""
    random = np.random.default_rng(3)
    rows = [(f"q{q:02}", f"q{q:02}d{d}") for q in range(questions) for d in range(8)]
    relevant = {pair: random.random() < 0.25 for pair in rows}
    asked = (f'{{"query_id": "q{q:02}", "text": "What is {q}?", "answers": ["x"]}}\n' for q in range(questions))
    (folder / "big.jsonl").write_text("".join(asked))
    answers = (f"q{q:02},{run},8,{random.choice(['x', 'y'])}\n" for q in range(questions) for run in "ab")
    (folder / "ans.csv").write_text("query_id,run,depth,answer\n" + "".join(answers))
    (folder / "bigdocs.jsonl").write_text("".join(f'{{"doc_id": "{d}", "text": "It is {d}."}}\n' for _, d in rows))
    for name in "ab":
        (folder / f"{name}.trec").write_text("".join(f"{q} Q0 {d} 0 {random.random()} {name}\n" for q, d in rows))
    judged = "".join(f"{q} 0 {d} {int(said(relevant[q, d], random))}\n" for q, d in rows)
    (folder / "machine.qrels").write_text(judged)
    (folder / "big.toml").write_text(
        '[data]\nqueries = "big.jsonl"\ndocs = "bigdocs.jsonl"\ndepth = 8\n[runs]\na = "a.trec"\nb = "b.trec"\n'
        '[[labelers]]\nname = "judge"\nkind = "provenance"\nqrels = "machine.qrels"\n'
        '[answers]\nimport = "ans.csv"\nanswered_by = "m"\ndepths = [8]\nmetrics = ["em"]\n'
    )
    judgekit("annotate", "sample", "big.toml", "--n", 8, "-o", "s.jsonl", code=0)

    def grade(row):
        return str(int(random.choice([2, 3]) if relevant[row["query_id"], row["doc_id"]] else random.choice([0, 1])))

    rated(folder / "s.csv", grade)
    judgekit("annotate", "read", "s.jsonl", "s.csv", "-o", "people.qrels", code=0)
    return relevant


def test_people_s_grades_and_a_binary_judge_leave_documents_relevant_and_agree_as_declared(folder, judgekit):
    """By people's mean grade, 1.3, 34 of 40 questions had no relevant document, and kappa was 0."""
    graded(folder, judgekit, lambda relevant, random: random.random() < (0.75 if relevant else 0.25))
    built = judgekit("build", "big.toml", "-l", "judge", "--people", "people.qrels", code=0)
    out = folder / "ground-truth"
    labels = pd.read_parquet(out / "labels.parquet")
    final = read_qrels(out / "final.qrels", scale=Scale.parse("grades:3:2"))
    held = (final.table["relevance"] >= 2).groupby(final.table["query_id"]).any().sum()
    assert held > 36
    by_judge = labels[labels["source"] == "judge"]
    assert ((by_judge["relevance"] >= 2) == (by_judge["machine"] == 1)).all()
    assert set(by_judge["relevance"]) < {0, 1, 2, 3}
    assert f"{held} of 40 questions have a relevant document; of people's 8, 7." in built.out
    # The kappa of `agree` on the same files, in the build, on the card and in `correct`.
    scales = {"judge": "binary", "people": "grades:3:2"}
    files = {"judge": folder / "machine.qrels", "people": folder / "people.qrels"}
    table = jk.agree(files, people=["people"], scales=scales).table
    (kappa,) = table.loc[(table["coefficient"] == "kappa") & (table["on"] == "relevance"), "value"]
    assert kappa > 0.2
    judgekit("run", "big.toml", "--out", "results", code=0)
    corrected = judgekit("annotate", "correct", "people.qrels", "results", code=0).out
    card = (out / "card.md").read_text()
    assert f"{kappa:.4f}" in built.out
    assert f"{kappa:.4f}" in corrected
    assert f"| kappa | relevance | {kappa:.3f} |" in card
    assert "| nan" not in card
    # Gains, not rounded, for nDCG.
    gains = read_qrels(out / "final-gains.qrels")
    (gain,) = by_judge.loc[by_judge["machine"] == 1, "gain"].unique()
    assert 2 < gain < 3
    kept = gains.table.merge(by_judge[by_judge["machine"] == 1][["query_id", "doc_id"]])
    assert set(kept["relevance"]) == {round(10 * gain)}
    for name, scale in ("final-gains", "grades:30:20"), ("final", "grades:3:2"):
        scored = judgekit("score", "--run", "a.trec", "--qrels", f"ground-truth/{name}.qrels", "--scale",
                          f"{name}={scale}", "-m", "nDCG@8 RR", code=0).out  # fmt: skip
        ndcg, reciprocal = map(float, scored.splitlines()[1].split()[-2:])
        # The card has the gains' own digits, the file tenths.
        on_card = next(line for line in card.splitlines() if line.startswith("| a |")).split("|")
        assert float(on_card[2 if name == "final-gains" else 3]) == pytest.approx(ndcg, abs=0.006)
        assert reciprocal > 0.3
    # Built again with binary labels by people, the gains of the grades are gone.
    (folder / "binary.qrels").write_text("".join(f"q00 0 q00d{d} {d % 2}\n" for d in range(8)))
    judgekit("build", "big.toml", "-l", "judge", "--people", "binary.qrels", code=0)
    assert not (out / "final-gains.qrels").exists()


def test_labels_that_leave_most_questions_without_a_relevant_document_are_refused(folder, judgekit):
    graded(folder, judgekit, lambda relevant, random: relevant and random.random() < 0.1)
    build = ["build", "big.toml", "-l", "judge", "--people", "people.qrels"]
    refused = judgekit(*build, code=2).err
    assert re.search(
        r"No relevant document is left in \d+ of 40 questions: judge finds none on [4-7] of the 7", refused
    )
    assert not (folder / "ground-truth").exists()
    with pytest.raises(UsageError, match="accept_empty=True"):
        jk.build("big.toml", "judge", people="people.qrels")
    built = judgekit(*build, "--accept-empty", code=0)
    assert re.search(r"\d+ of 40 questions have a relevant document; of people's 8, 7", built.out)


def test_wrong_input_is_a_sentence(folder, judgekit):
    (folder / "mine").mkdir()
    (folder / "mine" / "card.md").write_text("mine")
    for command, said in [
        (["experiment.toml", "-l", "jugde"], "unknown labeling 'jugde'"),
        (["experiment.toml", "-l", "judge", "--people", "good.trec"], "were two files swapped?"),
        (["experiment.toml", "-l", "judge", "-o", "mine"], "does not hold results of judgekit"),
        (["nowhere.toml", "-l", "judge"], "nowhere.toml"),
    ]:
        done = judgekit("build", *command)
        assert (done.code, said in done.err) == (2, True), done.err
    edited(folder / "experiment.toml", "[answers]", "[prices.mock]\nprompt = 1.0\ncompletion = 1.0\n[answers]")
    judgekit("build", "experiment.toml", "-l", "judge", "--max-cost", "0.00001", code=3)
    assert not (folder / "ground-truth").exists()


def test_labels_that_could_not_be_had_stand_beside_the_final_ones(folder, judgekit):
    (folder / "gold.missing.tsv").write_text("query_id\tdoc_id\tstatus\nq0\td0b\tfailed\n")
    labeler = '[[labelers]]\nname = "gold"\nkind = "provenance"\nqrels = "gold.qrels"\n[answers]'
    edited(folder / "experiment.toml", "[answers]", labeler)
    judgekit("build", "experiment.toml", "-l", "gold", code=1)
    made = json.loads((folder / "ground-truth" / "manifest.json").read_text())["results"]
    assert "final.missing.tsv" in made


def test_ground_truth_of_another_experiment_is_not_replaced(folder, judgekit):
    (folder / "other.toml").write_text((folder / "experiment.toml").read_text())
    judgekit("build", "experiment.toml", "-l", "judge", code=0)
    made = (folder / "ground-truth" / "final.qrels").read_bytes()
    refused = judgekit("build", "other.toml", "-l", "containment", code=2).err
    assert "ground-truth holds results of another experiment" in refused
    assert "experiment.toml): choose another --out, or delete the folder first" in refused
    assert (folder / "ground-truth" / "final.qrels").read_bytes() == made
    judgekit("build", "other.toml", "-l", "containment", "-o", "other", code=0)
    judgekit("run", "experiment.toml", "--out", "out", code=0)
    assert "replace them" not in judgekit("build", "out", "-l", "judge", code=0).err
    built = judgekit("build", "out", "-l", "containment", code=0)
    assert "the labels of containment replace those of judge in ground-truth" in built.err


def test_judgments_that_the_final_qrels_leave_out_are_named_with_the_cure(folder, judgekit):
    labeler = '[[labelers]]\nname = "nist"\nkind = "human"\nfile = "nist.qrels"\n[answers]'
    edited(folder / "experiment.toml", "[answers]", labeler)
    judged = [(i, part, grade) for i in range(6) for part, grade in (("a", 2), ("b", 0))]
    (folder / "nist.qrels").write_text("".join(f"q{i} 0 d{i}{part} {grade}\n" for i, part, grade in judged))
    built = judgekit("build", "experiment.toml", "-l", "judge", code=0)
    said = "the judgments of nist are not in the final qrels: add `--people nist.qrels`"
    assert said in built.err
    assert said in (folder / "ground-truth" / "card.md").read_text()
    elsewhere = judgekit("build", folder / "experiment.toml", "-l", "judge", code=0)
    assert f"--people {folder / 'nist.qrels'}`" in elsewhere.err
    assert str(folder) not in (folder / "ground-truth" / "card.md").read_text()
    assert said not in judgekit("build", "experiment.toml", "-l", "judge", "--people", "nist.qrels", code=0).err
    assert said not in judgekit("build", "experiment.toml", "-l", "nist", code=0).err
