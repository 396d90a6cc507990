"""The golden fixture: every score as worked out by hand."""

import csv
import subprocess
import sys
from math import isnan
from pathlib import Path

import numpy as np
import pytest

from judgekit.data.labelings import Scale
from judgekit.data.trec import read_qrels, read_run
from judgekit.metrics import Evaluation, evaluate
from tests.golden.expected import EXPECTED, MEANS, MEASURES

GOLDEN = Path(__file__).parent.parent / "golden"
SCALES = {"human": "binary", "judge": "grades:3:2", "utility": "unit"}


@pytest.fixture(scope="module")
def golden() -> Evaluation:
    runs = [read_run(GOLDEN / "runs" / f"{name}.trec") for name in "abc"]
    labelings = [read_qrels(GOLDEN / "labels" / f"{n}.qrels", scale=Scale.parse(s)) for n, s in SCALES.items()]
    return evaluate(runs, labelings, MEASURES, query_ids=["q1", "q2", "q3", "q4"], depth=3)


def test_every_score_is_the_one_worked_out_by_hand(golden: Evaluation) -> None:
    frame = golden.scores().set_index(["labeling", "run", "query_id", "measure"])["value"]
    assert len(frame) == len(EXPECTED) * len(MEASURES)
    for (labeling, run, query), values in EXPECTED.items():
        found = [frame[labeling, run, query, m] for m in MEASURES]
        np.testing.assert_allclose(found, values, rtol=1e-15, atol=0, err_msg=f"{labeling} {run} {query}")


def test_the_means_are_over_the_defined_queries(golden: Evaluation) -> None:
    frame = golden.means().set_index(["labeling", "run", "measure"])["value"]
    for key, value in MEANS.items():
        assert frame[key] == pytest.approx(value, rel=1e-15, nan_ok=True)


def test_the_counts_say_what_was_left_out(golden: Evaluation) -> None:
    notes = golden.notes.set_index(["labeling", "run", "measure"])
    assert notes.loc["judge", "a", "P@2"][["queries", "defined", "missing", "not_in_run"]].tolist() == [4, 3, 1, 1]
    assert notes.loc["utility", "c", "RR"]["reason"].startswith("RR needs to know which documents are relevant")


def test_the_score_table_holds_the_same_values() -> None:
    with (GOLDEN / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(EXPECTED) * len(MEASURES)
    for row in rows:
        value = EXPECTED[row["labeling"], row["run"], row["query_id"]][MEASURES.index(row["measure"])]
        assert row["value"] == "" if isnan(value) else float(row["value"]) == value


def test_scoring_files_needs_neither_pandas_nor_what_reads_parquet() -> None:
    # Missing labels beside a file are a table, which pandas reads: these qrels have none.
    code = (
        "import sys; from pathlib import Path; from judgekit.data.trec import read_qrels, read_run;"
        "from judgekit.metrics import evaluate;"
        "golden = Path(sys.argv[1]);"
        "runs = [read_run(golden / 'runs' / f'{name}.trec') for name in 'abc'];"
        "found = evaluate(runs, [read_qrels(golden / 'labels' / 'human.qrels')], ['nDCG@2', 'ERR', 'AUC']);"
        "assert len(found.summary) == 9; assert not {'pandas', 'pyarrow.parquet'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", code, str(GOLDEN)], check=True, cwd=GOLDEN.parent.parent)
