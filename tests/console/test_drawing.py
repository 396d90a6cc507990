"""What a run says of its stages and its money where no terminal is."""

from tests.mock import URL
from tests.small import toml


def test_stages_without_requests_are_told_too_and_money_at_the_end(judgekit, folder):
    said = judgekit("run", "experiment.toml", "--out", "results", "--cache", "store")
    assert [line.split(":")[0] for line in said.err.splitlines()] == [
        *("label containment", "label judge", "label erag", "answer", "score", "compare", "report")
    ]
    server = {"endpoints": {"local": {"base_url": URL, "model": "mock"}}}
    (folder / "priced.toml").write_text(toml(**server, prices={"mock": {"prompt": 1.0, "completion": 1.0}}))
    said = judgekit(
        *("label", "judge", "--queries", "queries.jsonl", "--docs", "docs.jsonl", "--run", "good.trec"),
        *("--out", "out.qrels", "--cache", "other", "--endpoint", "priced.toml"),
    )
    assert "spent: 0.00" in said.err
