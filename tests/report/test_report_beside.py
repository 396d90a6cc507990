"""Several results folders on one page, and what a user can get wrong with them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from judgekit import report
from judgekit.cli import main
from judgekit.report.beside import beside


def test_each_folder_has_its_verdict_its_place_in_table_1_and_in_a_figure_for_each_use(make_results, outline):
    modes = {name: make_results(title=name) for name in ("concatenated", "fused", "voted", "one each")}
    page = outline(beside(modes))
    row = next(row for row in page.rows if row[0] == "fused")
    assert row[1:3] == ["300", "5"]
    assert row[5].startswith("Under nDCG@5")
    assert next(row for row in page.rows if "concatenated" in row[1:])[1:] == list(modes)
    assert page.tags["svg"] == 4  # two uses, three folders at once
    assert "not about the same cell" not in page.whole


def test_folders_with_other_cells_are_not_compared_by_their_numbers(make_results, outline):
    other = dataclasses.replace(make_results().primary, measure="nDCG@10", depth=10)
    assert "not about the same cell" in outline(beside({"a": make_results(), "b": make_results(primary=other)})).whole


def test_hostile_names_stay_texts(make_results, poison, hostile, outline):
    page = outline(beside({hostile: poison(make_results(), hostile), "b": make_results()}))
    assert "<script>alert(1)</script>" in page.whole
    assert page.tags["script"] == 1


def test_report_compares_folders_and_says_what_is_wrong(make_results, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        report.save(make_results(), tmp_path / name)
    with pytest.raises(SystemExit) as ended:
        main(["report", "a", "b"])
    assert ended.value.code == 0
    assert "<bdi>a</bdi>" in (tmp_path / "comparison.html").read_text(encoding="utf-8")
    for arguments, said in (
        (["a", "a"], "a is given twice"),
        (["a", "b", "--out", "c.pdf"], "ends in .html"),
        (["a", "--out", "c.html"], "--out is for several folders"),
        (["a", "none"], "not a results folder"),
    ):
        with pytest.raises(SystemExit):
            main(["report", *arguments])
        assert said in " ".join(capsys.readouterr().err.split())
