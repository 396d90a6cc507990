"""The experiment file is read strictly: a mistake is a sentence that names the file, the key and the nearest word."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from judgekit.client.budget import Price
from judgekit.errors import ConfigError, JudgekitError
from judgekit.experiment.file import load, parse_config
from judgekit.experiment.prepare import prepare
from tests.mock import URL
from tests.small import edited

GOOD = """
[data]
queries = "queries.jsonl"
docs = "docs.jsonl"
depth = 10
[runs]
bm25 = "runs/bm25.trec"
[endpoints.local]
base_url = "http://localhost:8000/v1"
model = "my-model"
api_key_env = "MY_KEY"
concurrency = 64
[[labelers]]
name = "erag"
kind = "utility"
endpoint = "local"
quality = "em"
[answers]
endpoint = "local"
depths = [5, 1, 10, 5]
[prices."org/model"]
prompt = 0.5
completion = 1.5
"""


def _content(*replacements: tuple[str, str]) -> dict[str, Any]:
    text = GOOD
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    return tomllib.loads(text)


def test_a_good_file_is_read_with_its_defaults():
    config = parse_config(_content(), Path("dir/experiment.toml"))
    assert config.answers.depths == [1, 5, 10]
    assert config.answers.metrics == ["em", "f1"]
    assert str(config.labelers[0].spec) == "utility(endpoint=local, quality=em)"
    assert config.resolve("queries.jsonl") == Path("dir/queries.jsonl")
    assert config.resolve("/tmp/queries.jsonl") == Path("/tmp/queries.jsonl")


def test_an_endpoints_words_for_a_complete_reply_are_a_list():
    config = parse_config(_content(("concurrency = 64", 'complete = ["done"]')), Path("e.toml"))
    assert config.servers()["local"].complete == ("done",)
    with pytest.raises(ConfigError, match=r"endpoints\.local\.complete"):
        parse_config(_content(("concurrency = 64", 'complete = "done"')), Path("e.toml"))


def test_the_resolved_file_reads_back_as_the_same_experiment():
    config = parse_config(_content(), Path("experiment.toml"))
    assert parse_config(tomllib.loads(config.toml()), Path("experiment.toml")) == config


@pytest.mark.parametrize(
    ("replacement", "words"),
    [
        (("concurrency =", "concurency ="), "[endpoints.local.concurency]*Did you mean 'concurrency'?"),
        (("[answers]", "[anwsers]"), "[anwsers]*Did you mean 'answers'?"),
        (("depth = 10", 'depth = "ten"'), "[data.depth]*integer; got 'ten'"),
        (("depth = 10", "depth = 0"), "[data.depth]*greater than or equal to 1; got 0"),
        (
            ("depth = 10", "depth = 5"),
            "answers.depths goes to 10, but data.depth pools only the top 5*raise data.depth",
        ),
        (('docs = "docs.jsonl"', ""), "[data.docs] is missing"),
        (("[answers]", '[answers]\nmetrics = ["em", "f1", "em"]'), "[answers]*metrics names 'em' twice"),
        (("bm25 =", "all ="), "[runs]*a run cannot be named 'all'"),
        (("http://localhost", "localhost"), "[endpoints.local.base_url]*must start with http:// or https://"),
        (("concurrency = 64", "max_retries = -1"), "[endpoints.local.max_retries]"),
        (('kind = "utility"', "kind = 3"), "[labelers.0.kind]"),
        (('quality = "em"', "quality = [1]"), "[labelers.0] option 'quality' must be a text, a number or true/false"),
        (("depths = [5, 1, 10, 5]", "depths = []"), "[answers.depths] is empty: name at least one"),
        (("depths = [5, 1, 10, 5]", "depths = [0]"), "[answers.depths.0]"),
    ],
)
def test_a_mistake_is_a_sentence_that_names_the_key(replacement, words):
    with pytest.raises(ConfigError) as caught:
        parse_config(_content(replacement), Path("experiment.toml"))
    message = str(caught.value)
    assert message.startswith("experiment.toml: ")
    position = 0
    for part in words.split("*"):
        position = message.index(part, position) + len(part)


JUDGE = 'kind = "judge"'


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[data]", "[dat]", ["[dat]", "Did you mean 'data'?"]),
        ("depth = 4", "dept = 4", ["data.dept", "Did you mean 'depth'?"]),
        (JUDGE, 'kind = "jugde"', ["labelers.1", "jugde", "Did you mean 'judge'?"]),
        (JUDGE, JUDGE + '\npromt = "binary"', ["labelers.1", "promt", "Did you mean 'prompt'?"]),
        (JUDGE, JUDGE + '\nprompt = "binry"', ["labelers.1", "binry", "binary"]),
        (JUDGE, 'kind = "judge(prompt=graded)"\nprompt = "binary"', ["labelers.1", "'prompt' is given twice"]),
        (JUDGE, JUDGE + '\nendpoint = "lokal"', ["lokal", "Did you mean 'local'?"]),
        ('name = "judge"', 'name = " "', ["labelers.1", "name is empty"]),
        (
            'name = "judge"',
            'name = "Containment"',
            ["labelers", "'containment' and 'Containment'", "rename one"],
        ),
        ('good = "good.trec"', '"" = "good.trec"', ["[runs]", "name of a run is empty"]),
        ('"mock"', '""', ["endpoints.local.model", "empty"]),
        (f'"{URL}"', '"http://127.0.0.1:9/v1"\napi_key_env = "JK_NO_SUCH_KEY"', ["JK_NO_SUCH_KEY"]),
        ('"nDCG", "P"', '"nDGC"', ["metrics.measures", "nDGC", "nDCG"]),
        ("depths = [1, 4]", 'depths = [1, 4]\nmetrics = ["emm"]', ["answers", "emm"]),
        ("resamples = 100", 'resamples = 100\nprimary = "R@4"', ["analysis.primary", "R@4"]),
    ],
)
def test_a_mistake_is_found_before_anything_is_asked(folder, old, new, words):
    edited(folder / "experiment.toml", old, new)
    with pytest.raises(JudgekitError) as caught:
        prepare(folder / "experiment.toml")
    assert all(word in str(caught.value) for word in words), caught.value


def test_a_number_of_thousands_of_digits_is_a_sentence(tmp_path):
    (tmp_path / "long.toml").write_text(f"[data]\ndepth = {'9' * 5000}\n")
    with pytest.raises(ConfigError, match=r"long\.toml: is not TOML: .*5000 digits"):
        load(tmp_path / "long.toml")


def test_a_missing_file_and_a_file_that_is_no_toml_are_sentences(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere\.toml: no such file; expected an experiment file"):
        load(tmp_path / "nowhere.toml")
    bad = tmp_path / "bad.toml"
    bad.write_text("[data\n")
    with pytest.raises(ConfigError, match=r"bad\.toml: is not TOML: .*line 1"):
        load(bad)
    bad.write_bytes("# Qualität\n".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"bad\.toml: is not UTF-8: save the file as UTF-8"):
        load(bad)
    with pytest.raises(ConfigError, match="is a folder"):
        load(tmp_path)


@pytest.mark.parametrize(
    "entry", [3, {"prompt": 1}, {"prompt": 1, "completion": -1}, {"prompt": True, "completion": 1}, {"input": 1}]
)
def test_prices_are_read_from_a_table_and_mistakes_are_named(entry):
    good = parse_config({**_content(), "prices": {"m": {"prompt": 0.15, "completion": 1}}}, Path("e.toml"))
    assert good.price_list() == {"m": Price(0.15, 1.0)}
    with pytest.raises(ConfigError, match=r"prices\.m"):
        parse_config({**_content(), "prices": {"m": entry}}, Path("e.toml"))


def test_an_endpoint_names_its_transport_and_its_headers():
    lines = 'transport = "openai"\nheaders = { X-Tenant = "env:MY_TENANT" }'
    config = parse_config(_content(("concurrency = 64", lines)), Path("e.toml"))
    endpoint = config.endpoints["local"]
    assert (endpoint.transport, endpoint.headers) == ("openai", {"X-Tenant": "env:MY_TENANT"})
    assert 'X-Tenant = "env:MY_TENANT"' in config.toml()
    with pytest.raises(ConfigError, match=r"endpoints\.local\.headers\.Authorization"):
        parse_config(_content(("concurrency = 64", 'headers = { Authorization = "Bearer x" }')), Path("e.toml"))
    with pytest.raises(ConfigError, match=r"endpoints\.local\.transport"):
        parse_config(_content(("concurrency = 64", 'transport = "curl"')), Path("e.toml"))
