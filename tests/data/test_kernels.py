"""Compiled code gives bit for bit what the code without it gives."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgekit.analysis import coefficients
from judgekit.analysis.resampling import resample_matrix
from judgekit.data import columns, trec
from judgekit.data.columns import RunLengthIds, row_keys, run_lengths, same_key, strings


@pytest.fixture(scope="module")
def kernels() -> ModuleType:
    pytest.importorskip("numba", reason="the extra fast")
    found = columns.compiled(worth=True)
    assert found is not None
    return found


def without(monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> None:
    for module in modules:
        monkeypatch.setattr(module, "compiled", lambda **_: None)


def read(path: Path, layout: trec._Layout, kernels: ModuleType) -> tuple[trec._Columns | None, trec._Columns | None]:
    """Return what Arrow reads, and what compiled code reads."""
    delimiter = "\t" if b"\t" in path.read_bytes().split(b"\n", 1)[0] else " "
    blocks = kernels.read(path, layout.columns, layout.places[2], delimiter)
    ours = trec._joined(None if block is None else trec._Columns(*block) for block in blocks)
    return trec._joined(trec._batches(columns.pa.input_stream(str(path)), layout, delimiter)), ours


def same(one: trec._Columns, other: trec._Columns) -> bool:
    assert one.queries.ids == other.queries.ids
    assert one.docs.equals(other.docs)
    assert one.values.tobytes() == other.values.tobytes()
    return np.array_equal(one.queries.codes, other.queries.codes) and np.array_equal(
        one.queries.bounds, other.queries.bounds
    )


RUNS = {
    "plain": "1 Q0 a 1 2.5 r\n1 Q0 b 2 1.25 r\n2 Q0 a 1 7 r\n",
    "by tabs": "1\tQ0\ta\t1\t2.5\tr\n1\tQ0\tb\t2\t1\tr\n",
    "lines of Windows": "1 Q0 a 1 2.5 r\r\n1 Q0 b 2 1 r\r\n",
    "no last newline": "1 Q0 a 1 2.5 r\n1 Q0 b 2 1 r",
    "queries that come back": "1 Q0 a 1 2 r\n2 Q0 a 1 2 r\n1 Q0 b 1 1 r\n12 Q0 b 1 1 r\n",
    "many digits": "1 Q0 a 1 0.12345678901234567 r\n1 Q0 b 2 123456789012345678901 r\n1 Q0 c 3 -0.0 r\n",
    "exponents": "1 Q0 a 1 1e-7 r\n1 Q0 b 2 -2.5E+3 r\n1 Q0 c 3 1.7976931348623157e308 r\n",
    "negative ones": "1 Q0 a 1 -0.5 r\n1 Q0 b 2 -12 r\n1 Q0 c 3 -.5 r\n",
}
ODD = {
    "a plus": "1 Q0 a 1 +2.5 r\n",
    "not ASCII": "1 Q0 ä 1 2.5 r\n",
    "an empty line": "1 Q0 a 1 2.5 r\n\n1 Q0 b 2 1 r\n",
    "two spaces": "1 Q0 a  2.5 r\n",
    "a space at the end": "1 Q0 a 1 2.5 r \n",
    "a column too few": "1 Q0 a 1 2.5\n",
    "a column too many": "1 Q0 a 1 2.5 r x\n",
    "a tab among spaces": "1 Q0 a\t1 2.5 r\n1 Q0 b 1 2.5 r\n",
    "no number": "1 Q0 a 1 x r\n",
    "nothing but a sign": "1 Q0 a 1 - r\n",
    "nothing but a point": "1 Q0 a 1 . r\n",
    "two points": "1 Q0 a 1 1.2.3 r\n",
    "infinity": "1 Q0 a 1 inf r\n",
    "not a number": "1 Q0 a 1 nan r\n",
    "hexadecimal": "1 Q0 a 1 0x10 r\n",
    "a NUL": "1 Q0 a\0 1 2.5 r\n",
    "a lone carriage return": "1 Q0 a 1 2.5 r\r1 Q0 b 1 2.5 r\n",
}


@pytest.mark.parametrize("text", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("block", [1 << 22, 40])
def test_a_run_is_read_as_arrow_reads_it(
    tmp_path: Path, kernels: ModuleType, monkeypatch: pytest.MonkeyPatch, text: str, block: int
) -> None:
    monkeypatch.setattr(kernels, "_BLOCK", block)
    (path := tmp_path / "run.trec").write_bytes(text.encode())
    expected, found = read(path, trec._TREC["run"], kernels)
    assert expected is not None
    assert found is not None
    assert same(expected, found)


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_what_is_odd_is_left_to_others(tmp_path: Path, kernels: ModuleType, text: str) -> None:
    (path := tmp_path / "run.trec").write_bytes(text.encode())
    assert read(path, trec._TREC["run"], kernels)[1] is None


@pytest.mark.parametrize("grades", ["0 1 3", "0 1 -1", "1.0 2 3", "0.5 1 0", "1e0 2 3", "9007199254740993 1 0"])
def test_qrels_are_read_as_arrow_reads_them(tmp_path: Path, kernels: ModuleType, grades: str) -> None:
    text = "".join(f"{number // 2} 0 d{number} {grade}\n" for number, grade in enumerate(grades.split()))
    (path := tmp_path / "a.qrels").write_bytes(text.encode())
    expected, found = read(path, trec._TREC["qrels"], kernels)
    assert expected is not None
    assert found is not None
    assert same(expected, found)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.floats(allow_nan=False, allow_infinity=False)), min_size=1, max_size=60)
)
def test_every_score_is_the_number_that_python_reads(
    tmp_path_factory: pytest.TempPathFactory, kernels: ModuleType, rows: list[tuple[int, float]]
) -> None:
    path = tmp_path_factory.mktemp("scores") / "run.trec"
    texts = [(repr(score), f"{score:.4f}", f"{score:.7g}")[row % 3] for row, (_, score) in enumerate(rows)]
    path.write_text("".join(f"q{q} Q0 d{i} 1 {t} r\n" for i, ((q, _), t) in enumerate(zip(rows, texts, strict=True))))
    expected, found = read(path, trec._TREC["run"], kernels)
    assert expected is not None
    assert found is not None
    assert same(expected, found)
    assert found.values.tolist() == [float(text) for text in texts]


def table(rng: np.random.Generator, rows: int) -> tuple[RunLengthIds, columns.pa.StringArray]:
    ids = ["x" * int(n) + str(i % 40) for i, n in enumerate(rng.integers(0, 30, rows))]
    return run_lengths(strings(sorted(f"query {i % 7}" for i in range(rows)))), strings(ids)


@pytest.mark.parametrize("rows", [1, 3, 2_000])
def test_keys_and_what_is_found_by_them_are_the_same(
    kernels: ModuleType, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    queries, docs = table(np.random.default_rng(rows), rows)
    there, some = table(np.random.default_rng(5), 500)

    def work() -> list[bytes]:
        keys, among = row_keys(queries, docs), np.unique(row_keys(there, some))
        twice = [rows.tobytes() for rows in same_key(keys, queries.bounds)]
        return [keys.tobytes(), *(x.tobytes() for pair in columns.find([keys, keys[:2]], among) for x in pair), *twice]

    compiled = work()
    without(monkeypatch, columns)
    assert compiled == work()


@pytest.mark.parametrize("levels", [2, 5, 10**6])
@pytest.mark.parametrize("values", [3, 50, 10**6])
@pytest.mark.parametrize("queries", [1, 2, 300, 900])
def test_coefficients_of_resamples_are_the_same_to_the_last_bit(
    kernels: ModuleType, monkeypatch: pytest.MonkeyPatch, queries: int, values: int, levels: int
) -> None:
    rng = np.random.default_rng(values)
    quality, scores = rng.integers(0, levels, queries), rng.integers(0, values, queries) / 7
    weights = resample_matrix(queries, 150, 1)

    def work() -> list[bytes]:
        target = coefficients.Target(quality, weights, once=True)
        return [target.coefficients(scores, coefficients.COEFFICIENTS[:count]).tobytes() for count in (1, 4)]

    compiled = work()
    without(monkeypatch, coefficients)
    assert compiled == work()


def test_without_numba_or_a_folder_for_what_it_compiles_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    def njit(**_: object) -> object:
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(columns, "_kernels", columns._kernels.__wrapped__)
    for numba in (None, SimpleNamespace(njit=njit)):
        monkeypatch.delitem(sys.modules, "judgekit.data.kernels", raising=False)
        monkeypatch.delattr("judgekit.data.kernels", raising=False)
        monkeypatch.setitem(sys.modules, "numba", numba)
        assert columns.compiled(worth=True) is None
