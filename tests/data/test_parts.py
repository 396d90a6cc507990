"""Large runs, read in parts: what comes out is what comes out of one piece, and no more than a part is in memory."""

import gzip
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import judgekit as jk
from judgekit.collection import Collection
from judgekit.data import parts
from judgekit.data.columns import text_batches
from judgekit.data.frames import as_runs, noted_lists, noted_runs
from judgekit.data.labelings import Labeling, Scale
from judgekit.data.parts import DiskRun, read_runs
from judgekit.data.pooled import counts_of
from judgekit.data.runs import Run, Ties
from judgekit.data.sources import PairColumns
from judgekit.data.trec import read_run
from judgekit.errors import DataError
from judgekit.metrics import Evaluation, evaluate
from judgekit.metrics.cuts import disjoint
from tests.metrics.material import EVERY

Row = tuple[str, str, float]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read each file in parts, of seven rows or one query."""
    monkeypatch.setattr(parts, "MEMORY_LIMIT", 0)
    monkeypatch.setattr(parts, "_ROWS", 7)


def rows_of(seed: int, *, queries: int = 23, docs: str = "d") -> list[Row]:
    """Return the rows of a run: many ties, lists of one to fifteen documents; some begin with the query itself."""
    chance = random.Random(seed)
    ids = [f"q{number}" for number in range(queries)]
    chance.shuffle(ids)
    rows = []
    for query in ids:
        found = [f"{docs}{number}" for number in chance.sample(range(40), chance.randint(1, 15))]
        if docs == "d" and chance.random() < 0.5:
            found.insert(0, query)
        rows += [(query, doc, float(chance.randint(-2, 3))) for doc in found]
    return rows


def trec(rows: list[Row], space: str = " ") -> str:
    lines = [space.join((q, "Q0", d, "1", str(s), "tag")) for q, d, s in rows]
    return "\n".join(lines) + "\n"


def refused_alike(path: Path, message: str) -> None:
    """Check that a file is refused in one piece and in parts by the same message."""
    with pytest.raises(DataError, match=message) as whole:
        read_run(path)
    with pytest.raises(DataError) as found:
        DiskRun(path).whole()
    assert str(found.value) == str(whole.value)


def labels(seed: int = 1) -> list[Labeling]:
    """Return grades of some documents, and of others labels of which some are missing or do not apply."""
    chance = random.Random(seed)
    made = []
    for name, statuses in (("grades", ["ok"]), ("lost", ["ok", "ok", "ok", "refused", "not_applicable"])):
        cells = []
        for query in range(20):
            for doc in chance.sample(range(40), 12):
                status = chance.choice(statuses) if query % 3 else "ok"
                relevance = chance.randint(0, 3) if status == "ok" else None
                cells.append((f"q{query}", f"d{doc}", relevance, status))
        frame = pd.DataFrame(cells, columns=["query_id", "doc_id", "relevance", "status"])
        made.append(Labeling(name, Scale("grades", 3), frame.astype({"relevance": "float64"})))
    return made


def same(found: Evaluation, wanted: Evaluation) -> None:
    for name in ("values", "low", "high", "listed"):
        assert getattr(found, name).tobytes() == getattr(wanted, name).tobytes(), name
    # As texts: NaN is not itself.
    assert [*map(str, found.summary)] == [*map(str, wanted.summary)]
    assert found.warnings == wanted.warnings
    assert found.scores().to_csv() == wanted.scores().to_csv()


def one_piece(files: dict[str, Path], ties: Ties = Ties.DOC_DESC) -> list[Run]:
    return [read_run(path, name, ties) for name, path in files.items()]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Three runs, the last over other documents."""
    found = {}
    for seed, (name, docs) in enumerate({"a": "d", "b": "d", "other": "x"}.items()):
        found[name] = tmp_path / f"{name}.trec"
        found[name].write_text(trec(rows_of(seed, docs=docs)))
    return found


@pytest.mark.parametrize(
    ("measures", "options", "ties"),
    [
        (EVERY, {}, Ties.DOC_DESC),
        ("P(ties=doc-asc)@3 nDCG@4 RR(best=True) Bpref UDCG@3 MeanRank", {"missing": "zero"}, Ties.RUN_ORDER),
        ("AP P(judged_only=True)@3 nDCG Judged@3", {"missing": "condense", "over": "run"}, Ties.DOC_ASC),
        ("P@3 nDCG@5 RR AP R@2 P(ties=run-order)@3", {"missing": "bounds", "over": "relevant"}, Ties.DOC_DESC_32),
        ("P@3 nDCG@5 RR@4", {"unjudged": "bounds", "depth": 5}, Ties.DOC_DESC),
        ("P@3 nDCG@5 RR@9", {"query_ids": ["q3", "q30", "q7", "q19"], "depth": 9}, Ties.DOC_DESC),
    ],
    ids=["every measure", "zero", "condense", "bounds", "unjudged", "queries"],
)
def test_scores_of_parts_are_those_of_one_piece(
    files: dict[str, Path], measures: str, options: dict[str, Any], ties: Ties
) -> None:
    runs = read_runs(files, ties)
    assert all(isinstance(run, DiskRun) for run in runs)
    assert len(runs[0].of_parts(len)) > 5
    found = evaluate(runs, labels(), measures, **options)
    same(found, evaluate(one_piece(files, ties), labels(), measures, **options))
    assert any("other share 0% of their documents" in warning for warning in found.warnings)


@pytest.mark.parametrize(
    "spelled",
    [
        pytest.param(lambda rows: trec(rows, "\t"), id="tabs"),
        pytest.param(
            lambda rows: trec(rows[:9]) + trec(rows[9:99], "  ") + trec(rows[99:], " \t"), id="any white space"
        ),
        pytest.param(lambda rows: "﻿" + trec(rows, "  "), id="byte order mark"),
        pytest.param(lambda rows: "# a comment\n" + trec(rows, "  ") + " \n\n", id="comment and blank lines"),
        pytest.param(
            lambda rows: pd.DataFrame(rows, columns=["query_id", "doc_id", "score"]).to_csv(index=False), id="csv"
        ),
        pytest.param(
            lambda rows: 'query_id,doc_id,score\n"' + "".join(f'{q}",{d},{s}\n"' for q, d, s in rows)[:-1], id="quotes"
        ),
        pytest.param(
            lambda rows: "".join(f'{{"query_id": "{q}", "doc_id": "{d}", "score": {s}}}\n' for q, d, s in rows),
            id="json",
        ),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_every_form_of_a_file_is_read_in_parts(
    tmp_path: Path, spelled: Callable[[list[Row]], str], packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judgekit.data.columns._BLOCK", 100)
    path = tmp_path / "run.txt"
    text = spelled(rows_of(4)).encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    run = DiskRun(path)
    assert len(run.of_parts(len)) > 5
    assert not run.note
    whole = run.whole().frame()
    assert whole.to_csv() == read_run(path).frame().to_csv()
    assert len(whole) == len(rows_of(4))


def test_parquet_is_read_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    pd.DataFrame(rows_of(5), columns=["query_id", "doc_id", "score"]).to_parquet(path)
    run = DiskRun(path)
    assert len(run.of_parts(len)) > 5
    assert run.whole().frame().to_csv() == read_run(path).frame().to_csv()


def test_a_part_holds_whole_queries_and_no_more_than_it_must(files: dict[str, Path]) -> None:
    found = DiskRun(files["a"]).of_parts(lambda part: (sorted(part.query_ids), len(part), part.counts.max()))
    every = [query for queries, _, _ in found for query in queries]
    assert sorted(every) == sorted({row[0] for row in rows_of(0)})
    # Seven rows, the piece of seven in which its last query begins, and the rest of that query.
    assert all(rows <= 14 + most for _, rows, most in found)


def test_a_file_whose_queries_are_scattered_is_read_in_one_piece_and_says_so(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rows = rows_of(0)
    random.Random(3).shuffle(rows)
    files["a"].write_text(trec(rows))
    runs = read_runs(files)
    measures = "P@3 nDCG AP Bpref RR"
    same(evaluate(runs, labels(), measures), evaluate(one_piece(files), labels(), measures))
    assert [bool(run.note) for run in runs if isinstance(run, DiskRun)] == [True, False, False]
    (tmp_path / "gold.qrels").write_text("q1 0 d1 1\nq2 0 d3 1\n")
    warnings = jk.score(list(files.values()), tmp_path / "gold.qrels", "P@3").warnings
    assert [line for line in warnings if "sort -s -k 1,1 OLD > NEW" in line and str(files["a"]) in line]
    made = Collection.make(
        {f"q{n}": f"question {n}" for n in range(23)},
        {f"{kind}{n}": "text" for kind in "dxq" for n in range(40)},
        list(files.values()),
        4,
    )
    assert any("sort -s -k 1,1" in line for line in made.notes)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda line: line.replace(" Q0", ""), "line 150"),
        (lambda line: line.replace(" tag", " tag tag"), "line 150"),
        (lambda line: " ".join([*line.split()[:4], "much", "tag"]), "line 150"),
        (lambda line: " ".join([*line.split()[:4], "inf", "tag"]), "line 150"),
        (lambda line: " ".join(["all", *line.split()[1:]]), "line 150"),
        (lambda line: line + "\n" + line, "line 151"),
    ],
)
def test_a_damaged_line_is_named_as_in_one_piece(
    files: dict[str, Path], damage: Callable[[str], str], message: str
) -> None:
    lines = files["a"].read_text().splitlines()
    lines[149] = damage(lines[149])
    files["a"].write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match=message) as whole:
        read_run(files["a"])
    with pytest.raises(DataError) as found:
        evaluate(read_runs(files), labels(), "P@3")
    assert str(found.value) == str(whole.value)


@pytest.mark.parametrize("between", [1, 20])
@pytest.mark.parametrize("later", ["", '{"query_id": "q1", "doc_id": "d5", "score": "much"}\n'])
def test_a_document_that_comes_again_with_its_query_is_named_with_its_lines(
    tmp_path: Path, between: int, later: str
) -> None:
    line = '{{"query_id": "q{}", "doc_id": "d0", "score": 1.5}}\n'
    path = tmp_path / "run.jsonl"
    path.write_text("".join(map(line.format, [*range(between + 1), 0])) + later)
    refused_alike(path, rf"line {between + 2}: .* \(first on line 1\)")


def test_two_runs_in_one_file_are_refused_in_parts_too(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    rows = rows_of(6)
    path.write_text(trec(rows) + trec([(q, f"other{d}", s) for q, d, s in rows]).replace("tag", "gat"))
    refused_alike(path, "holds the runs 'tag' and 'gat'")


def test_a_sheet_of_excel_is_read_in_one_piece_and_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "run.xlsx"
    pd.DataFrame(rows_of(5), columns=["query_id", "doc_id", "score"]).to_excel(path, index=False)
    run = DiskRun(path)
    assert len(run.of_parts(len)) > 5
    assert run.whole().frame().to_csv() == read_run(path).frame().to_csv()
    assert len(read_run(path)) == len(rows_of(5))


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.csv").write_text("query_id,doc_id,score\n")
    with pytest.raises(DataError, match="is empty; expected a TREC run") as found:
        DiskRun(tmp_path / "run.csv").whole()
    with pytest.raises(DataError) as whole:
        read_run(tmp_path / "run.csv")
    assert str(found.value) == str(whole.value)


def test_a_file_is_gone_through_once_and_again_only_for_another_order(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    read: list[Path] = []
    two = [files["a"], files["b"]]

    def counted(path: Path, *args: object, **options: object) -> object:
        if path in two:
            read.append(path)
        return text_batches(path, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("judgekit.data.sources.text_batches", counted)
    (tmp_path / "gold.qrels").write_text("".join(f"q{n} 0 d{n} 1\n" for n in range(20)))
    jk.score(two, tmp_path / "gold.qrels", "P@3 nDCG@10 AP RR Bpref")
    assert read == two
    jk.score(two, tmp_path / "gold.qrels", "P@3 P(ties=doc-asc)@3")
    assert read == two * 3
    assert jk.score(two, tmp_path / "gold.qrels", "P@3").lists[0].frame().equals(read_run(two[0]).frame())


@pytest.mark.parametrize("depth", [1, 4, 100])
@pytest.mark.parametrize("drop_self", [True, False])
def test_a_run_that_is_cut_while_it_is_read_is_the_same(
    files: dict[str, Path], depth: int, drop_self: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = noted_runs(files, depth, drop_self=drop_self).runs
    monkeypatch.setattr(parts, "MEMORY_LIMIT", 1 << 30)
    whole = [run.cut(depth) for run in as_runs(files, drop_self=drop_self)]
    for one, other in zip(cut, whole, strict=True):
        assert one.query_ids.tolist() == other.query_ids.tolist()
        for rule in Ties:
            assert one.with_ties(rule).frame().to_csv() == other.with_ties(rule).frame().to_csv()
        # What lies below the depth is not kept.
        assert len(one.docs_as_read) == len(one)
        assert one.doc_ids.tolist() == other.doc_ids.tolist()


def test_what_is_seen_of_a_run_in_passing_is_what_it_has(files: dict[str, Path]) -> None:
    for drop_self in (False, True):
        (run,) = read_runs({"a": files["a"]}, drop_self=drop_self)
        whole = read_run(files["a"])
        whole = whole.without_own() if drop_self else whole
        assert isinstance(run, DiskRun)
        assert run.extent[:2] == (len(whole.query_ids), int((whole.counts > 0).sum()))
        assert sorted(run.extent.own_first) == sorted(whole.extent.own_first)
        assert bool(whole.extent.own_first) is not drop_self
        for wanted in (whole.query_ids[:3], ["q0", "nowhere"], whole.query_ids[-2:], whole.query_ids, []):
            assert run.only(wanted).frame().to_csv() == whole.only(wanted).frame().to_csv()
        assert run.lowest(5).frame().to_csv() == whole.lowest(5).frame().to_csv()


def test_small_files_are_read_at_once(files: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    size = sum(path.stat().st_size for path in files.values())
    monkeypatch.setattr(parts, "MEMORY_LIMIT", size)
    assert all(isinstance(run, Run) for run in [*read_runs(files), *noted_lists(files).runs])
    monkeypatch.setattr(parts, "MEMORY_LIMIT", size - 1)
    assert all(isinstance(run, DiskRun) for run in [*read_runs(files), *noted_lists(files).runs])
    assert all(isinstance(run, Run) for run in read_runs(files, whole=True))


def peak(make: Callable[[], object]) -> int:
    """Return the most bytes that Python and numpy hold for something."""
    tracemalloc.start()
    try:
        make()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def long_run(path: Path) -> Path:
    """Write a run of 200,000 rows."""
    with path.open("w") as stream:
        for query in range(400):
            stream.write(trec([(f"q{query}", f"d{doc}", -float(doc)) for doc in range(500)]))
    return path


def test_no_more_than_a_part_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_ROWS", 5_000)
    monkeypatch.setattr("judgekit.data.columns._BLOCK", 1 << 16)
    path = long_run(tmp_path / "run.trec")
    gold = Labeling("gold", Scale("binary"), pd.DataFrame({"query_id": ["q1"], "doc_id": ["d7"], "relevance": [1.0]}))
    assert peak(lambda: evaluate(read_runs({"run": path}), [gold], "P@3 AP")) < 1_000_000
    assert peak(lambda: evaluate([read_run(path)], [gold], "P@3 AP")) > 4_000_000


def test_pairs_are_counted_one_question_after_the_other(tmp_path: Path) -> None:
    run = read_run(long_run(tmp_path / "run.trec"))
    found: dict[str, object] = {}
    assert peak(lambda: found.update(counts_of([run], run.query_ids, 500))) < 2_000_000
    assert found == {"pairs": 200_000, "lists": 400, "labels_again": (), "answers_again": ()}


def test_a_file_that_cannot_be_opened_is_refused_in_a_sentence(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path, expected: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("judgekit.data.folders.packing", refused)
    with pytest.raises(DataError, match=r"a\.trec: cannot be opened: Permission denied; expected a TREC run"):
        read_runs(files)


def test_columns_say_whether_a_number_is_a_rank(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text("query_id,doc_id,rank\n" + "".join(f"q{n // 9},d{n},{9 - n % 9}\n" for n in range(60)))
    run = DiskRun(path)
    assert isinstance(run._columns, PairColumns)
    assert run.whole().frame().to_csv() == read_run(path).frame().to_csv()
    assert run.whole().top("q0", 2) == ["d8", "d7"]


def test_runs_alike_only_below_the_depth_share_documents(tmp_path: Path) -> None:
    for name in "ab":
        rows = [(q, f"{name}{q}-{n}" if n < 5 else f"{q}-{n}", n) for q in range(30) for n in range(45)]
        (tmp_path / f"{name}.trec").write_text("".join(f"q{q} Q0 {doc} {n} {100 - n} t\n" for q, doc, n in rows))
    files = {name: tmp_path / f"{name}.trec" for name in "ab"}
    assert [*disjoint(noted_runs(files, 5).runs)] == []
    # Other documents alone do make them runs over other collections.
    other = tmp_path / "b.trec"
    other.write_text("".join(f"q{q} Q0 b{q}-{n} {n} {100 - n} t\n" for q in range(30) for n in range(45)))
    assert [*disjoint(noted_runs(files, 5).runs)] == [("a", "b", 0.0)]
