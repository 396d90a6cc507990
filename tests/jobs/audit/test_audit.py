import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import judgekit as jk
from judgekit.errors import DataError, JudgekitError, UsageError
from judgekit.jobs.audit.numbers import groups_of
from tests.jobs.audit.conftest import KINDS, TOWNS, experiment
from tests.small import Judgekit


def sent(events: list) -> int:
    last = {event.stage: event.sent for event in events}
    return sum(last.values())


def test_by_default_nobody_is_asked_and_the_report_has_a_section_once(copied: Path) -> None:
    events: list = []
    out = copied / "out"
    comparison = (out / "comparison.csv").read_bytes()
    for _ in range(2):
        found = jk.audit(out, asking=jk.Asking(cache=copied / "cache", progress=events.append))
    assert not events
    assert set(found.table["check"]) == {"circularity", "surface"}
    assert list(found.numbers) == ["keyword", "oracle", "hash", "long", "gold"]
    sections = json.loads((out / "report.json").read_text())["sections"]
    assert [one["title"] for one in sections].count("Audit") == 1
    assert "they count against a labeling" in (out / "report.html").read_text()
    assert (out / "comparison.csv").read_bytes() == comparison
    assert len(pd.read_csv(out / "audit.csv")) > 25


def test_every_number_stands_in_its_interval_and_every_subject_says_what_it_does(audited: jk.Audit) -> None:
    table = audited.table
    assert set(table["check"]) == {"circularity", "surface", "gullibility"}
    there = table.dropna(subset=["value", "low"])
    assert (there["low"] <= there["value"] + 1e-12).all()
    assert (there["value"] <= there["high"] + 1e-12).all()
    assert (table[table["value"].isna()]["verdict"] != "").all()
    told = table[table["check"].isin(["circularity", "gullibility"])]
    for (labeling, check, subject), rows in told.groupby(["labeling", "check", "subject"]):
        assert (rows["verdict"] != "").any(), (labeling, check, subject)


def test_what_was_paid_for_once_is_not_paid_for_again(copied: Path) -> None:
    probes, cache = ["inject"], copied / "cache"
    before = {path: path.stat().st_mtime_ns for path in (copied / "out").rglob("*")}
    counted = jk.audit.plan(copied / "out", probes=probes, asking=jk.Asking(cache=cache))
    assert {path: path.stat().st_mtime_ns for path in (copied / "out").rglob("*")} == before, "a plan writes nothing"
    to_send = counted["all"].requests - counted["all"].cached
    assert to_send > 0
    assert counted["audit keyword, inject"].tokens.low > 0
    first: list = []
    jk.audit(copied / "out", probes=probes, asking=jk.Asking(cache=cache, progress=first.append))
    assert sent(first) == to_send
    assert {event.stage for event in first} == set(counted) - {"all"}
    again: list = []
    jk.audit(copied / "out", probes=probes, asking=jk.Asking(cache=cache, progress=again.append))
    assert sent(again) == 0
    left = jk.audit.plan(copied / "out", probes=probes, asking=jk.Asking(cache=cache))["all"]
    assert left.requests == left.cached > 0


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("queries.jsonl", "different queries"),
        ("docs.jsonl", "different docs"),
        ("weak.trec", "different files of run weak"),
        ("gold.qrels", "gold.qrels was changed after the run"),
        ("mine.py", "mine.py was changed after the run"),
        ("out/labels/hash.parquet", "was changed after the run"),
        ("out/manifest.json", ""),
        ("out/report.json", ""),
    ],
)
def test_data_that_are_changed_or_missing_are_named(copied: Path, path: str, says: str) -> None:
    content = (copied / path).read_bytes()
    if says:
        (copied / path).write_bytes(content.replace(b" ", b"  "))
        with pytest.raises(DataError, match=says):
            jk.audit(copied / "out", asking=jk.Asking(cache=copied / "cache"))
    (copied / path).unlink()
    with pytest.raises(JudgekitError, match=f"{Path(path).name}|did not finish|run the experiment"):
        jk.audit(copied / "out", asking=jk.Asking(cache=copied / "cache"))


def test_without_a_reference_the_audit_says_what_it_leaves_out(copied: Path) -> None:
    (copied / "experiment.toml").write_text(experiment("keyword", "oracle"))
    out, cache = copied / "other", copied / "cache"
    jk.run(copied / "experiment.toml", out=out, asking=jk.Asking(cache=cache))
    found = jk.audit(out, asking=jk.Asking(cache=cache), probes=["stuff"])
    assert "--reference" in found.notes[0]
    assert not set(found.table["check"]) & {"surface"}
    stuffed = found.table[(found.table["labeling"] == "keyword") & (found.table["statistic"] == "flips to relevant")]
    assert (stuffed["value"] == 1).all(), "of passages of other questions"
    (note,) = jk.audit(out, reference="oracle", asking=jk.Asking(cache=cache)).notes
    assert note.startswith("The reference is oracle")
    with pytest.raises(UsageError, match="Did you mean 'oracle'"):
        jk.audit(out, reference="orcale", asking=jk.Asking(cache=cache))


def test_a_measure_that_the_labels_do_not_define_leaves_no_number(copied: Path) -> None:
    (copied / "experiment.toml").write_text(experiment("long", "gold", metrics={"measures": ["AP", "P"]}))
    out, cache = copied / "ap", copied / "cache"
    jk.run(copied / "experiment.toml", out=out, asking=jk.Asking(cache=cache))
    table = jk.audit(out, asking=jk.Asking(cache=cache), probes=["claim"]).table
    rows = table[(table["labeling"] == "long") & (table["check"] == "circularity")]
    assert rows["value"].isna().all()
    assert rows["verdict"].str.contains(f"unknown: only 0 of {TOWNS} queries").all()
    attacked = table[(table["labeling"] == "long") & (table["check"] == "gullibility")]
    assert "flips to relevant" in set(attacked["statistic"])


def test_people_are_the_reference_before_provenance(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "people", {"kind": "human", "file": "gold.qrels"})
    (copied / "experiment.toml").write_text(experiment("hash", "gold", "people"))
    out, asking = copied / "people", jk.Asking(cache=copied / "cache")
    jk.run(copied / "experiment.toml", out=out, asking=asking)
    found = jk.audit(out, asking=asking)
    assert found.notes[0] == "The reference is people, which judges 160 pairs, 20 of them relevant."
    beside = found.table[found.table["check"] == "surface"]
    assert set(beside["labeling"]) == {"hash", "gold"}, "and is not compared with itself"


def test_groups_keep_the_queries_of_a_unit_together() -> None:
    units = np.repeat(np.arange(30), 3)
    groups = groups_of(units, 1)
    assert len(np.unique(groups)) == 20
    assert all(len(set(groups[units == unit])) == 1 for unit in range(30))


@pytest.mark.parametrize(
    ("options", "says"),
    [({"probes": "pud"}, "Did you mean 'pad'"), ({"probes": ["pad", "pad"]}, "pad is listed twice")],
)
def test_a_mistake_is_a_sentence(finished: Path, options: dict, says: str) -> None:
    with pytest.raises(JudgekitError, match=says):
        jk.audit(finished / "out", asking=jk.Asking(cache=finished / "cache"), **options)


def test_a_folder_without_results_and_a_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"resolved\.toml"):
        jk.audit(tmp_path)
    (tmp_path / "experiment.toml").write_text("")
    with pytest.raises(UsageError, match="an audit needs a results folder"):
        jk.audit(tmp_path / "experiment.toml")


def test_the_command_line_prints_what_each_labeling_is_flagged_for(judgekit: Judgekit, copied: Path) -> None:
    out, cache = str(copied / "out"), str(copied / "cache")
    idle = judgekit("audit", out, "--cache", cache, code=0)
    assert "add --probe all" in idle.err
    assert "gullibility" not in idle.out
    counted = judgekit("audit", out, "--cache", cache, "--probe", "all", "--dry-run", code=0)
    assert "audit keyword, inject" in counted.out
    assert "Nothing was sent" in counted.out
    said = judgekit("audit", out, "--cache", cache, "--probe", "claim", code=0)
    assert "gullibility" in said.out
    assert "hash:" in said.out
    assert "gullibility" in (copied / "out" / "audit.csv").read_text()
