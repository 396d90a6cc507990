"""What `save` writes, `load` reads back, and a damaged folder is a sentence."""

from __future__ import annotations

import dataclasses
import json
import math

import pandas as pd
import pytest

from judgekit import report
from judgekit.errors import DataError
from judgekit.report.model import Section
from tests.report.conftest import HOSTILE


def assert_same(a: object, b: object) -> None:
    if isinstance(a, pd.DataFrame):
        pd.testing.assert_frame_equal(a, b, check_exact=True)
    elif dataclasses.is_dataclass(a):
        assert type(a) is type(b)
        for field in dataclasses.fields(a):
            assert_same(getattr(a, field.name), getattr(b, field.name))
    elif isinstance(a, tuple):
        assert isinstance(b, tuple)
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    elif isinstance(a, float) and math.isnan(a):
        assert isinstance(b, float)
        assert math.isnan(b)
    else:
        assert type(a) is type(b)
        assert a == b


BARE = {"differences": None, "details": None, "agreement": None, "models": None, "sections": (), "note": ""}
BROKEN = {"title": HOSTILE, "warnings": ("\ud800 lone surrogate", "\u202e"), "settings": "\x00\x1b"}


@pytest.mark.parametrize("changes", [{}, BARE, BROKEN])
def test_what_is_saved_is_loaded_unchanged(make_results, tmp_path, changes):
    results = make_results(**changes)
    report.save(make_results(), tmp_path)
    report.save(results, tmp_path)
    assert (tmp_path / "differences.csv").exists() is (results.differences is not None)
    assert_same(results, report.load(tmp_path))


def test_tables_of_other_rooms_may_have_any_columns_and_gaps(make_results, tmp_path):
    table = pd.DataFrame(
        {
            "label": pd.Series(["a", None], dtype=object),
            "mixed": pd.Series([1, "x"], dtype=object),
            "count": pd.Series([1, None], dtype="Int64"),
            "whole": pd.Series([1, 2], dtype="Int32"),
            "share": [math.nan, math.inf],
            "yes": [True, False],
            "kind": pd.Categorical(["u", "v"]),
            7: [1, 2],
        }
    )
    table.index = pd.Index([5, 9])
    results = make_results(agreement=table, sections=(Section("s", "", table), Section("t")))
    report.save(results, tmp_path)
    loaded = report.load(tmp_path)
    assert_same(results, loaded)
    assert report.render(results) == report.render(loaded)
    text = str(pd.Series(["a"]).dtype)  # "str", and "object" before pandas 3
    assert list(loaded.agreement.dtypes.astype(str)) == [
        text, text, "float64", "int64", "float64", "bool", text, "int64"
    ]  # fmt: skip


def test_saving_twice_gives_the_same_bytes(make_results, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        report.save(make_results(), tmp_path / name)
    for file in ("comparison.csv", "differences.csv", "details.csv", "report.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda value: value.update(schema=99), "schema 99"),
        (lambda value: value.update(title=3), "title: input should be a valid string"),
        (lambda value: value["facts"].update(queries="many"), "facts.queries: input should be a valid integer"),
        (lambda value: value["primary"].pop("use"), "primary.use: field required"),
        (
            lambda value: value["labelings"][0].update(counts=[]),
            "labelings.0.counts: .* valid dictionary",
        ),
        (lambda value: value.update(quality={"columns": {}}), "quality: input should be an instance of DataFrame"),
        (lambda value: value["quality"]["rows"][0].pop(), "is not the JSON that judgekit writes"),
        (lambda value: value.update(warnings="none"), "warnings: input should be a valid tuple"),
    ],
)
def test_a_damaged_file_is_named_with_the_place(make_results, tmp_path, change, message):
    report.save(make_results(), tmp_path)
    path = tmp_path / "report.json"
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))
    with pytest.raises(DataError, match=message) as caught:
        report.load(tmp_path)
    assert caught.value.path == path


def test_what_is_no_results_folder_or_no_json_is_an_error(make_results, tmp_path):
    with pytest.raises(DataError, match="not a results folder of judgekit"):
        report.load(tmp_path)
    report.save(make_results(), tmp_path)
    (tmp_path / "report.json").write_text("{")
    with pytest.raises(DataError, match="is not the JSON that judgekit writes"):
        report.load(tmp_path)
