"""Nothing of an experiment file is imported, read from the environment or contacted before its user confirmed it."""

import json
import os
import re
import stat
from pathlib import Path

import pytest

import judgekit as jk
from judgekit.errors import ConfigError
from judgekit.experiment.file import load
from judgekit.wire.access import address_problem, is_local
from tests.commands import Judgekit
from tests.small import edited, toml

EVIL = """
from dataclasses import dataclass
from pathlib import Path

Path(__file__).with_name("was run").write_text("yes")
import judgekit as jk


@dataclass(frozen=True)
class Mine(jk.Labeler):
    "A labeler."
    kind = "mine"
    scale = "binary"

    def relevance(self, query, doc):
        return True


class Sender:
    async def send(self, endpoint, body):
        return 200, {}, b"{}"


def answer(question, documents):
    return "yes"


def docs(path):
    return []
"""


@pytest.fixture
def evil(folder: Path, untrusting: Path) -> Path:
    (folder / "evil.py").write_text(EVIL)
    return folder / "experiment.toml"


def was_run(path: Path) -> bool:
    return (path.parent / "was run").exists()


COMMANDS = (
    ["run", "experiment.toml"],
    ["run", "experiment.toml", "--dry-run"],
    ["run", "experiment.toml", "--part", "1/2"],
    ["plan", "experiment.toml"],
    ["build", "experiment.toml", "-l", "judge"],
    ["batch", "export", "experiment.toml"],
    ["batch", "submit", "experiment.toml"],
    ["batch", "fetch", "experiment.toml"],
    ["annotate", "sample", "experiment.toml", "--out", "s.jsonl"],
    ["check-endpoint", "--endpoint", "experiment.toml"],
    ["label", "judge", "--queries", "queries.jsonl", "--docs", "docs.jsonl", "--run", "good.trec", "-o", "x.qrels",
     "--endpoint", "experiment.toml:local"],
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_runs_code_or_reads_a_key_before_it_is_confirmed(
    command: list[str], evil: Path, judgekit: Judgekit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x" * 40)
    edited(evil, 'kind = "containment"', 'kind = "evil.py:Mine"')
    text = re.sub(
        r'base_url = ".*"',
        'base_url = "https://evil.example/v1"\napi_key_env = "AWS_SECRET_ACCESS_KEY"',
        evil.read_text(),
    )
    evil.write_text(text)
    said = judgekit(*command, code=2)
    assert "import evil.py (SHA-256 " in said.err
    assert "read the environment variable AWS_SECRET_ACCESS_KEY and send it to https://evil.example" in said.err
    assert "contact https://evil.example" in said.err
    assert "judgekit trust experiment.toml" in said.err
    assert not was_run(evil)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('kind = "containment"', 'kind = "evil.py:Mine"'),
        ('kind = "judge"', 'kind = "cascade"\nfirst = "evil.py:Mine"'),
        ('kind = "judge"', """kind = "cascade"\nfirst = "cascade(first='evil.py:Mine', then=judge)" """),
        ('docs = "docs.jsonl"', 'docs = "evil.py:docs:docs.jsonl"'),
        ("[answers]", '[answers]\nmetrics = ["evil.py:Mine"]'),
        ("[answers]", '[endpoints.app]\ntarget = "evil.py:answer"\n[answers]'),
        ('model = "mock"', 'model = "mock"\ntransport = "./evil.py:Sender"'),
        ('["nDCG", "P"]', '["evil.py:mine_at@1"]'),
    ],
)
def test_code_is_found_wherever_a_file_may_name_it(evil: Path, old: str, new: str) -> None:
    text = evil.read_text()
    assert old in text
    evil.write_text(text.replace(old, new, 1))
    with pytest.raises(ConfigError, match=r"would import (\./)?evil\.py"):
        load(evil)
    assert not was_run(evil)


def test_a_confirmation_holds_for_this_code_this_key_and_this_server_alone(
    evil: Path, judgekit: Judgekit, untrusting: Path
) -> None:
    edited(evil, 'kind = "containment"', 'kind = "evil.py:Mine"')
    said = judgekit("trust", "experiment.toml", code=0)
    assert "import evil.py (SHA-256 " in said.out
    assert not was_run(evil), "it is shown, not run"
    assert stat.S_IMODE((untrusting / "trust.json").stat().st_mode) == 0o600
    judgekit("run", "experiment.toml", "--out", "results", code=0)
    assert was_run(evil)
    assert "judge" in judgekit("build", "results", "-l", "judge", code=0).out, "the results name the same code"

    (evil.parent / "evil.py").write_text(EVIL + "\n# and more\n")
    assert "judgekit trust experiment.toml" in judgekit("plan", "experiment.toml", code=2).err
    assert "judgekit trust results" in judgekit("build", "results", "-l", "judge", code=2).err
    judgekit("trust", "results", code=0)
    judgekit("plan", "experiment.toml", code=0)

    remote = re.sub(
        r'base_url = ".*"', 'base_url = "https://a.example:8443/v1"\napi_key_env = "MY_KEY"', evil.read_text()
    )
    evil.write_text(remote)
    judgekit("trust", "experiment.toml", code=0)
    load(evil)
    for old, new in (
        *(("https:", "http:"), (":8443", ":9"), ("MY_KEY", "OTHER_KEY"), ("a.example", "a.example.org")),
        ("https://a.example:8443", "http://localhost:8000"),  # may be contacted, but has not been confirmed for the key
    ):
        evil.write_text(remote.replace(old, new))
        with pytest.raises(ConfigError, match="judgekit trust"):
            load(evil)
    evil.write_text(remote.replace("/v1", "/v2"))
    load(evil)


def test_python_and_ci_confirm_without_a_file(
    evil: Path, judgekit: Judgekit, untrusting: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edited(evil, 'kind = "containment"', 'kind = "evil.py:Mine"')
    with pytest.raises(ConfigError, match="judgekit trust"):
        jk.run(evil, out=evil.parent / "results")
    assert not was_run(evil)
    jk.run(evil, out=evil.parent / "results", trust=True)
    jk.plan(evil, trust=True)
    assert not untrusting.exists(), "a program's word is not kept"
    (line,) = (
        line for line in judgekit("trust", "experiment.toml", code=0).out.splitlines() if "JUDGEKIT_TRUST" in line
    )
    (untrusting / "trust.json").unlink()
    monkeypatch.setenv("JUDGEKIT_TRUST", "0" * 64)
    with pytest.raises(ConfigError):
        load(evil)
    monkeypatch.setenv("JUDGEKIT_TRUST", line.partition("=")[2])
    load(evil)
    (evil.parent / "evil.py").write_text(EVIL + "# other")
    with pytest.raises(ConfigError):
        load(evil)


def test_local_servers_and_what_init_wrote_here_need_no_confirmation(
    evil: Path, judgekit: Judgekit, untrusting: Path
) -> None:
    load(evil)  # a server on this machine, without a key
    assert "nothing to confirm" in judgekit("trust", "experiment.toml", code=0).out
    assert not untrusting.exists()
    judgekit("init", ".", "--overwrite", code=0)
    edited(evil, 'base_url = "', 'api_key_env = "MY_KEY"\nbase_url = "https://api.example/v1" # "')
    load(evil)
    copied = evil.with_name("copied.toml")
    copied.write_text(evil.read_text())
    evil.unlink()
    load(copied)  # its server and its key were run from a file of the user's own
    edited(copied, "api.example", "other.example")
    with pytest.raises(ConfigError, match=r"contact https://other\.example"):
        load(copied)


def test_a_header_from_a_variable_is_a_key_even_for_a_server_on_this_machine(evil: Path) -> None:
    edited(evil, 'model = "mock"', 'model = "mock"\nheaders = { X-Tenant = "env:MY_TENANT" }')
    with pytest.raises(ConfigError, match="read the environment variable MY_TENANT and send it to http://127"):
        load(evil)


def test_a_configuration_that_cannot_be_read_confirms_nothing(evil: Path, untrusting: Path) -> None:
    edited(evil, 'kind = "containment"', 'kind = "evil.py:Mine"')
    untrusting.mkdir(parents=True)
    for content in ("{", "[]", '{"confirmed": [3], "own": []}', json.dumps({"confirmed": []})):
        (untrusting / "trust.json").write_text(content)
        with pytest.raises(ConfigError, match="delete it"):
            load(evil)
    assert not was_run(evil)


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "169.254.169.254.",
        "2852039166",
        "0xa9fea9fe",
        "[fe80::1]",
        "[::ffff:169.254.169.254]",
        "metadata.google.internal",
        "METADATA",
    ],
)
def test_link_local_addresses_are_refused(host: str) -> None:
    assert "link-local" in str(address_problem(f"http://{host}/latest"))
    assert not is_local(f"http://{host}/latest")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1", "[::1]", "a.localhost"])
def test_this_machine_is_known_by_its_names(host: str) -> None:
    assert is_local(f"http://{host}:8000/v1")
    assert address_problem(f"http://{host}:8000/v1") is None


def test_texts_of_a_file_are_shown_without_what_a_terminal_acts_on(evil: Path, judgekit: Judgekit) -> None:
    name = "evil\x1b[2K.py"
    os.rename(evil.parent / "evil.py", evil.parent / name)
    evil.write_text(toml(**{"labelers": [{"kind": f"{name}:Mine"}]}))
    said = judgekit("trust", "experiment.toml", code=0)
    assert "import evil" in said.out
    assert "\x1b" not in said.out
