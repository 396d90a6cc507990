"""The demo with a chat model's replies: all of them are recorded and no others, and the report says whose they are."""

from contextlib import closing
from pathlib import Path

import pytest

from judgekit.client.asking import Asking
from judgekit.client.transports import RECORDINGS, recorded
from judgekit.experiment.file import load
from judgekit.experiment.run import RunResult, run
from judgekit.sample import EXPERIMENTS
from judgekit.store.replies import Store

MODEL = "SmolLM2-135M-Instruct-Q4_1"


@pytest.fixture(scope="module")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    folder = tmp_path_factory.mktemp("smollm2")
    return run(EXPERIMENTS["smollm2"], out=folder / "out", asking=Asking(cache=folder / "cache"))


def test_every_reply_that_it_needs_is_recorded_and_none_besides(smollm2: RunResult) -> None:
    with closing(Store(smollm2.folder.parent / "cache")) as store:
        asked = {key[:16] for key, _ in store.texts()}
    server, lines = recorded(RECORDINGS[MODEL])
    assert asked == set(lines)
    assert server["model"] == MODEL
    assert {endpoint.model for endpoint in load(EXPERIMENTS["smollm2"]).endpoints.values()} == {MODEL}


def test_the_recording_is_small() -> None:
    assert RECORDINGS[MODEL].stat().st_size < 150_000


def test_the_report_says_whose_replies_these_are(smollm2: RunResult) -> None:
    assert smollm2.results.note.startswith("Replayed: the recorded replies of a small real model (SmolLM2")


@pytest.mark.usefixtures("folder")
def test_the_command_takes_either_model_and_no_third(judgekit, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Path, Path]] = []

    def refused(experiment: Path, *, out: Path, **_: object) -> None:
        asked.append((experiment, out))
        raise SystemExit(0)

    monkeypatch.setattr("judgekit.experiment.run.run", refused)
    judgekit("demo", code=0)
    judgekit("demo", "--model", "smollm2", code=0)
    judgekit("demo", "--model", "smollm2", "--out", "here", code=0)
    assert asked == [
        (EXPERIMENTS["minilm"], Path("judgekit-demo")),
        (EXPERIMENTS["smollm2"], Path("judgekit-demo-smollm2")),
        (EXPERIMENTS["smollm2"], Path("here")),
    ]
    assert "smollm2" in judgekit("demo", "--model", "gpt", code=2).err
