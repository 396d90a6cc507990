"""llama-server with a real small model, which talks unless it is held to a form."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import judgekit as jk
from judgekit.client.sync import run_sync
from judgekit.reading.check import check_endpoint
from judgekit.sample import EXPERIMENT
from judgekit.wire.types import Endpoint
from tests.integration.serving import Server, free_port, serving

pytestmark = pytest.mark.more
PAIRS = 20
CONCURRENCY = 2


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """llama-server of JUDGEKIT_LLAMA_SERVER with the model of JUDGEKIT_LLAMA_MODEL, a GGUF file."""
    executable, model = (os.environ.get(name) for name in ("JUDGEKIT_LLAMA_SERVER", "JUDGEKIT_LLAMA_MODEL"))
    if not executable or not model or shutil.which(executable) is None:
        pytest.skip("needs JUDGEKIT_LLAMA_SERVER, the executable, and JUDGEKIT_LLAMA_MODEL, a GGUF file")
    port, folder = free_port(), tmp_path_factory.mktemp("llama")
    command = [executable, "-m", model, "-a", "small", "--host", "127.0.0.1", "--port", str(port)]
    env = {**os.environ, "LD_LIBRARY_PATH": str(Path(executable).resolve().parent)}
    with serving([*command, "-np", "2", "-c", "8192"], port, "/health", folder / "log", env) as started:
        yield started


def endpoint(server: Server, **options: Any) -> Endpoint:
    return Endpoint("llama", server.base_url, "small", concurrency=CONCURRENCY, timeout_s=300, **options)


def labelled(server: Server, spec: str, tmp_path: Path, **options: Any) -> pd.DataFrame:
    """Label the first passages of the sample."""
    sample = EXPERIMENT.parent
    queries = (sample / "queries.jsonl").read_text().splitlines()[:PAIRS]
    (tmp_path / "queries.jsonl").write_text("\n".join(queries))
    made = jk.label(
        spec,
        queries=tmp_path / "queries.jsonl",
        docs=sample / "docs.jsonl",
        runs={"bm25": sample / "runs" / "bm25.trec"},
        depth=1,
        endpoints=endpoint(server, **options),
        asking=jk.Asking(cache=tmp_path / "store"),
    )
    return made.table[made.table["query_id"].isin([json.loads(line)["query_id"] for line in queries])]


# Before the way that holds, chats ignore one way and completions three; each costs what is in flight.
@pytest.mark.parametrize(("api", "ignored"), [("chat", 1), ("completions", 3)])
def test_a_small_model_gives_verdicts_once_it_is_held_to_their_form(
    api: str, ignored: int, server: Server, tmp_path: Path
) -> None:
    table = labelled(server, "judge", tmp_path, api=api)
    assert len(table) == PAIRS
    assert (table["status"] == "ok").sum() >= 0.95 * (PAIRS - ignored * CONCURRENCY)


def test_probabilities_are_read_where_the_model_states_a_verdict(server: Server, tmp_path: Path) -> None:
    table = labelled(server, "judge(read=logprobs)", tmp_path)
    assert table.loc[table["status"] == "ok", "relevance"].between(0, 1).all()
    assert not table["reason"].fillna("").str.contains("no log-probabilities").any()


def test_the_check_says_what_the_server_holds_to(server: Server) -> None:
    works = {check.name: check.works for check in run_sync(check_endpoint(endpoint(server)))}
    assert works["words by a list of words"] == "ignored"
    assert works["words by a JSON schema"] == works["an object by a JSON schema"] == "held"
    assert works["log-probabilities"] == "yes"
    assert works["a prompt beyond 4,096 tokens"] == "refused"
    base = {check.name: check.works for check in run_sync(check_endpoint(endpoint(server, api="completions")))}
    assert base["words by a grammar"] == "held"
