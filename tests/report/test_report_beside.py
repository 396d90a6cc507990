import dataclasses

import pytest

from judgekit import report
from judgekit.report.beside import beside, changes, write_beside
from tests.commands import in_process
from tests.report.conftest import HOSTILE, make_backing, make_results, parse_page, poisoned


@pytest.mark.parametrize("k", [5, 10])
def test_each_folder_has_its_decision_its_place_in_table_1_and_in_a_figure_for_each_use(k):
    other = dataclasses.replace(make_results().primary, measure=f"nDCG@{k}", depth=k)
    found = {"fused": make_results(title="fused"), "voted": make_results(title="voted", primary=other)}
    page = parse_page(beside(found, {}))
    row = next(row for row in page.rows if row[0] == "fused")
    assert row[1:3] == ["300", "5"]
    assert row[5].startswith("300 new questions would take $0.24 for judge. Of two questions, erag finds")
    assert ["", "fused", "voted"] in page.rows
    # both uses, and the paper's Figure 1 with the primary and with the best measure, for a page and for a phone
    assert page.tags["svg"] == 2 * 4
    assert ("not about the same cell" in page.whole) is (k == 10)


def test_hostile_names_stay_texts():
    found = {HOSTILE: poisoned(make_results(), HOSTILE), "b": make_results()}
    backing = make_backing(4, text=HOSTILE, ids=HOSTILE)
    later = dataclasses.replace(backing, quality=backing.quality.assign(value=1.0))
    changed = {"b": changes((make_results(), backing), (make_results(), later))}
    page = parse_page(beside(found, changed))
    assert "<script>alert(1)</script>" in page.whole
    assert page.tags["script"] == 1


def test_what_changed_is_said_before_the_tables(tmp_path):
    before, after = make_backing(), make_backing()
    quality = after.quality
    here = (quality["depth"] == 5) & (quality["metric"] == "em") & (quality["run"] == "bm25")
    right = before.quality["value"].where(here)
    lost = sorted(quality.loc[right == 1, "query_id"])[:2]
    quality.loc[here & quality["query_id"].isin(lost), "value"] = 0.0
    (won,) = sorted(quality.loc[right == 0, "query_id"])[:1]
    quality.loc[here & (quality["query_id"] == won), "value"] = 1.0
    first, *others = make_results().claims
    new = make_results(claims=(dataclasses.replace(first, sentence="Label with judge."), *others))
    found = {"old": (make_results(), before), "new": (new, after)}
    changed = write_beside(found, tmp_path / "page.html")["new"]
    (line,) = changed.decision
    assert line[:2] == ("Failing", dict(make_results().decision)["Failing"])
    assert line[2].startswith("Label with judge.")
    assert changed.questions["query"].tolist() == [*lost, won]
    page = parse_page((tmp_path / "page.html").read_text(encoding="utf-8"))
    said = (
        "The decision differs in Failing.",
        "Questions won: 1, lost: 2, of 60",
    )
    places = [page.whole.index(sentence) for sentence in said]
    assert places == sorted(places)
    assert places[-1] < page.whole.index("Label with judge.") < page.whole.index("What each results folder says")
    same = write_beside({"a": (new, after), "b": (new, after)}, tmp_path / "page.html")["b"]
    assert same.sentences[0] == "The decision is the same."
    assert not same.decision
    assert same.questions.empty


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"metric": "f1"}, "the decisions are about another metric or depth"),
        ({"depth": 1}, "the decisions are about another metric or depth"),
        ({"model": "other"}, "no run has a question in both"),
    ],
)
def test_questions_are_not_counted_where_answers_do_not_compare(change, said):
    other = make_results(primary=dataclasses.replace(make_results().primary, **change))
    found = changes((make_results(), make_backing()), (other, make_backing()))
    assert said in found.sentences[-1]
    assert found.questions.empty
    gone = changes((other, make_backing(quality=None)), (other, make_backing()))
    assert "the answers of one folder are gone" in gone.sentences[-1]


def test_report_compares_folders_and_says_what_is_wrong(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        report.save(make_results(), tmp_path / name)
    judgekit = in_process(capfd)
    assert "The decision is the same." in judgekit("report", "a", "b", "--figures", "figures", code=0).out
    assert "<bdi>a</bdi>" in (tmp_path / "comparison.html").read_text(encoding="utf-8")
    assert (tmp_path / "figures/against-k.svg").exists()
    for arguments, said in (
        ("a a", "a folder is given twice"),
        ("a b --out c.pdf", "must end in .html"),
        ("a --out c.html", "--out needs several folders"),
        ("a none", "holds no report.json"),
        ("a b --figures b", "a folder of their own"),
    ):
        assert said in " ".join(judgekit("report", *arguments.split(), code=2).err.split())
