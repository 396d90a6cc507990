"""What a run says of its stages and its money where no terminal is."""

import time

import pytest
from rich.console import Console

from judgekit.console import bars
from judgekit.console.bars import _Bars, progress
from judgekit.progress import Event
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


def test_a_log_holds_a_line_every_half_minute_and_each_note_once(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with progress() as draw:
        for second in (0, 29, 30, 31, 59, 60):
            now[0] = 100.0 + second
            draw(Event("label judge", second, 90, second, failed=second == 60, note="the model thinks", spent=0.5))
    told = capfd.readouterr().err.splitlines()
    assert told == [
        "note: the model thinks",
        "label judge: 30 of 90, 30 sent, 0 from the store, 0.5 spent in all",
        "label judge: 60 of 90, 60 sent, 0 from the store, 1 failed, 0.5 spent in all",
        "spent: 0.5",
    ]


@pytest.mark.parametrize("columns", [50, 120])
def test_a_narrow_terminal_keeps_count_and_time(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bars, "console", lambda stderr: Console(stderr=stderr, width=columns))
    drawing = _Bars()
    drawing(Event("label judge(prompt=graded)", 1234, 5678, 1234))
    with drawing.bars.console.capture() as shown:
        drawing.bars.console.print(drawing.bars.get_renderable())
    assert "1234/5678" in shown.get()
    assert "0:00:0" in shown.get()
    assert ("sent" in shown.get()) == (columns == 120)
