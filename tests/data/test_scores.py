"""Tables of scores by query, in the forms of the tools that write them."""

from pathlib import Path

import ir_measures
import pandas as pd
import pytest

import judgekit as jk
from judgekit.data.scores import as_scores
from judgekit.data.tables import ALL
from judgekit.errors import DataError
from tests.exports.halls import QUESTIONS, RUNS

EXPORTS = Path(__file__).parent.parent / "exports"
AUTOJUDGE = EXPORTS / "autojudge-1.1.0"
WORTH = {"coverage": 0.25, "grade": 0.5}


def values(table):
    return {(row.labeling, row.run, row.measure, row.query_id): row.value for row in table.itertuples()}


def expected(labeling):
    found = {}
    for run in RUNS:
        for measure, worth in WORTH.items():
            for number, question in enumerate(QUESTIONS):
                value = round((question.answer(run) == question.reference) * worth + number / 100, 4)
                found[labeling, run, measure, question.id] = value
    return found


@pytest.mark.parametrize("form", ["tot", "ir_measures", "ranking", "jsonl"])
def test_each_format_of_auto_judge_is_a_table_of_scores(form):
    found = as_scores(AUTOJUDGE / f"board.{form}", "auto")
    assert values(found[found["query_id"] != ALL]) == expected("auto")
    assert (found["query_id"] == ALL).sum() == len(RUNS) * len(WORTH)


def test_a_file_of_one_run_is_named_after_it_or_by_trec_eval(tmp_path):
    found = pd.concat([as_scores(AUTOJUDGE / f"{run}.eval", "auto") for run in RUNS])
    assert values(found[found["query_id"] != ALL]) == expected("auto")
    # As trec_eval -q writes it: names filled with blanks, the run's own name in a line.
    said = [("map", "301", "0.2500"), ("runid", "all", "bm25-tuned"), ("map", "all", "0.25")]
    (tmp_path / "x.eval").write_text("".join(f"{name:22}\t{query}\t{cell}\n" for name, query, cell in said))
    assert values(as_scores(tmp_path / "x.eval", "qrels")) == {
        ("qrels", "bm25-tuned", "map", "301"): 0.25,
        ("qrels", "bm25-tuned", "map", ALL): 0.25,
    }


def test_pyterriers_frame_by_query_is_one_as_a_file_and_in_python():
    path = EXPORTS / "pyterrier-1.0" / "perquery.csv"
    found = as_scores(path, "qrels")
    assert set(found["run"]) == {*RUNS}
    assert set(found["measure"]) == {"recip_rank", "ndcg_cut_3"}
    places = {question.id: question.passages.index(question.gold) for question in QUESTIONS}
    ranks = values(found[found["measure"] == "recip_rank"])
    assert ranks == {
        ("qrels", run, "recip_rank", query): pytest.approx(1 / (place + 1 if run == "dense" else 3 - place))
        for run in RUNS
        for query, place in places.items()
    }
    frame = pd.read_csv(path, dtype={"qid": str})
    assert values(as_scores(frame, "qrels")) == pytest.approx(values(found))


def test_python_takes_tables_by_the_names_of_their_labelings():
    good = {(run, q.id): float(q.answer(run) == q.reference) for run in RUNS for q in QUESTIONS}
    quality = pd.DataFrame([(*key, value) for key, value in good.items()], columns=["run", "query_id", "value"])
    made = jk.compare({"auto": AUTOJUDGE / "board.tot"}, quality)
    assert set(made.table["labeling"]) == {"auto"}
    assert set(made.table["measure"]) == set(WORTH)


def test_a_table_that_names_no_labels_asks_for_their_name():
    with pytest.raises(DataError, match=r"board.tot: does not say which labels.*--scores NAME=FILE"):
        as_scores(AUTOJUDGE / "board.tot")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a\tmap\t1\t0.5\n", "nothing says which column holds the measures.*run, measure, query_id, value"),
        ("q1 Q0 d1 1 9.5 bm25\nq1 Q0 d2 2 9.0 bm25\n", "is a run, by its ranks: score it with judgekit score"),
        ("1\tmap\t0.5\n", "first line with their names: measure, query_id, value between tabs, in the order of"),
        ("map\t1\t0.5\nmap\tall\n", "line 2: has 2 columns, and earlier lines have 3"),
        ("map\t1\t0.5\nmap\tall\tx\n", "line 2: column 'value'"),
        ("labeling,run,measure\n", "lacks column 'query_id'"),
    ],
)
def test_what_is_no_table_of_scores_is_refused_by_its_line(text, reason, tmp_path):
    (tmp_path / "s.eval").write_text(text)
    with pytest.raises(DataError, match=reason):
        as_scores(tmp_path / "s.eval", "x")


def test_what_ir_measures_yields_and_prints_is_a_table_of_scores(tmp_path):
    qrels = [ir_measures.Qrel(q.id, q.gold.id, 1, "0") for q in QUESTIONS]
    runs = {
        run: [ir_measures.ScoredDoc(q.id, doc.id, -rank) for q in QUESTIONS for rank, doc in enumerate(q.found(run))]
        for run in RUNS
    }
    wanted = [ir_measures.RR, ir_measures.nDCG @ 3]
    metrics = {run: [*ir_measures.iter_calc(wanted, qrels, rows)] for run, rows in runs.items()}
    frame = pd.concat([pd.DataFrame(rows).assign(run=run) for run, rows in metrics.items()])
    found = values(as_scores(frame, "gold"))
    assert len(found) == len(RUNS) * len(QUESTIONS) * 2
    for run, rows in metrics.items():
        for row in rows:
            assert found["gold", run, str(row.measure), row.query_id] == row.value
    listed = [{**row._asdict(), "run": run} for run, rows in metrics.items() for row in rows]
    good = pd.DataFrame([(run, q.id, q.answer(run) == q.reference) for run in RUNS for q in QUESTIONS])
    quality = good.set_axis(["run", "query_id", "value"], axis=1).astype({"value": float})
    made = [jk.compare({"gold": rows}, quality).table for rows in (frame, listed)]
    assert set(made[0]["measure"]) == {"RR", "nDCG@3"}
    pd.testing.assert_frame_equal(*made)
    # As its command prints means, and with --by_query --no_summary, under a first line that the error asks for.
    (tmp_path / "bm25.txt").write_text("nDCG@3\t0.5\nRR\t0.2500\n")
    assert values(as_scores(tmp_path / "bm25.txt", "gold")) == {
        ("gold", "bm25", "nDCG@3", ALL): 0.5,
        ("gold", "bm25", "RR", ALL): 0.25,
    }
    (tmp_path / "bm25.txt").write_text("query_id\tmeasure\tvalue\nq1\tRR\t0.5\n")
    assert values(as_scores(tmp_path / "bm25.txt", "gold")) == {("gold", "bm25", "RR", "q1"): 0.5}
