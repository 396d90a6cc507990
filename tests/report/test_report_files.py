import json
import math
from pathlib import Path

import pandas as pd
import pytest

from judgekit import report
from judgekit.errors import DataError
from judgekit.report.model import Results, Section
from tests.report.conftest import HOSTILE, make_results

ODD = pd.DataFrame(
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
BARE = {"differences": None, "details": None, "agreement": None, "sections": (), "note": ""}
BROKEN = {"title": HOSTILE, "warnings": ("\ud800 lone surrogate", "\u202e"), "settings": "\x00\x1b"}
OTHERS = {"agreement": ODD.set_axis([5, 9]), "sections": (Section("s", "", ODD), Section("t"))}


def saved(results: Results, folder: Path) -> dict[str, bytes]:
    folder.mkdir(exist_ok=True)
    report.save(results, folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("changes", [{}, BARE, BROKEN, OTHERS])
def test_what_is_saved_is_loaded_and_drawn_as_it_was(tmp_path, changes):
    saved(make_results(), tmp_path / "first")
    results = make_results(**changes)
    written = saved(results, tmp_path / "first")
    assert ("differences.csv" in written) is (results.differences is not None)
    loaded = report.load(tmp_path / "first")
    assert saved(loaded, tmp_path / "second") == written
    assert report.render(loaded) == report.render(results)
    assert type(loaded.primary) is type(results.primary)
    assert [one.spending for one in loaded.labelings] == [one.spending for one in results.labelings]


def test_tables_of_other_rooms_may_have_any_columns_and_gaps():
    table, text = Section("s", "", ODD).table, str(pd.Series(["a"]).dtype)  # "str", and "object" before pandas 3
    assert list(table.dtypes.astype(str)) == [text, text, "float64", "int64", "float64", "bool", text, "int64"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda value: value.update(schema=99), "schema 99"),
        (lambda value: value["facts"].update(queries="many"), "facts.queries: must be a valid integer"),
        (lambda value: value["primary"].pop("use"), "primary.use: field required"),
        (lambda value: value.update(quality={"columns": {}}), "quality: must be an instance of DataFrame"),
        (lambda value: value["quality"]["rows"][0].pop(), "is not the JSON that judgekit writes"),
    ],
)
def test_a_damaged_file_is_named_with_the_place(tmp_path, change, message):
    report.save(make_results(), tmp_path)
    path = tmp_path / "report.json"
    value = json.loads(path.read_text())
    path.write_text(json.dumps(value | {"examples": "of an earlier version are left out"}))
    report.load(tmp_path)
    change(value)
    path.write_text(json.dumps(value))
    with pytest.raises(DataError, match=message) as caught:
        report.load(tmp_path)
    assert caught.value.path == path


def test_what_is_no_results_folder_or_no_json_is_an_error(tmp_path):
    with pytest.raises(DataError, match=r"holds no report\.json: give the folder that judgekit run wrote"):
        report.load(tmp_path)
    (tmp_path / "report.json").write_text("{")
    with pytest.raises(DataError, match="is not the JSON that judgekit writes"):
        report.load(tmp_path)
