import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from judgekit.client.budget import Price
from judgekit.errors import ConfigError, JudgekitError
from judgekit.experiment.file import config_of, load, parse_config
from judgekit.experiment.prepare import prepare
from tests.small import EXPERIMENT, edited


def content(*replacements: tuple[str, str]) -> dict[str, Any]:
    text = EXPERIMENT
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    return tomllib.loads(text)


def in_endpoint(line: str) -> tuple[str, str]:
    return 'model = "mock"', f'model = "mock"\n{line}'


def test_a_good_file_is_read_with_its_defaults():
    config = parse_config(content(("[1, 4]", "[4, 1, 4]")), Path("dir/experiment.toml"))
    assert config.answers.depths == [1, 4]
    assert config.answers.metrics == ["em", "f1"]
    assert [str(labeler.spec) for labeler in config.labelers] == ["containment", "judge", "utility"]
    assert [config.resolve(text) for text in ("x", "/tmp/x")] == [Path("dir/x"), Path("/tmp/x")]
    assert parse_config(tomllib.loads(config.toml()), config.path) == config


def test_an_endpoint_has_all_settings_that_endpoints_have():
    config = parse_config(content(in_endpoint('headers = { X = "env:MINE" }')), Path("e.toml"))
    assert config.servers()["local"].headers == {"X": "env:MINE"}


JUDGE = 'kind = "judge"'
UTILITY = 'kind = "utility"'
NAME = 'name = "judge"'


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[data]", "[dat]", ["[dat]", "Did you mean 'data'?"]),
        ("depth = 4", "dept = 4", ["data.dept", "Did you mean 'depth'?"]),
        ("depth = 4", 'depth = "ten"', ["[data.depth]", "must be a whole number, not 'ten'"]),
        (
            "depth = 4",
            "depth = 3",
            ["goes to 4, but data.depth pools only the top 3", "raise data.depth"],
        ),
        ('docs = "docs.jsonl"', "", ["[data.docs] is missing"]),
        ('good = "good.trec"', '"" = "good.trec"', ["[runs]", "name of a run is empty"]),
        ('good = "good.trec"', 'all = "good.trec"', ["[runs]", "a run cannot be named 'all'"]),
        ('"good.trec"', '{ file = "good.trec", modle = "m" }', ["[runs.good.modle]", "Did you mean 'model'?"]),
        ('"good.trec"', "3", ["[runs.good]", "must be"]),
        (*in_endpoint('api_key_env = "NO_SUCH_KEY"'), ["variable NO_SUCH_KEY is not set"]),
        (*in_endpoint("concurency = 4"), ["[endpoints.local.concurency]", "Did you mean 'concurrency'?"]),
        (JUDGE, 'kind = "jugde"', ["labelers.1", "jugde", "Did you mean 'judge'?"]),
        (JUDGE, JUDGE + '\npromt = "binary"', ["labelers.1", "promt", "Did you mean 'prompt'?"]),
        (JUDGE, 'kind = "judge(prompt=graded)"\nprompt = "binary"', ["labelers.1", "'prompt' is given twice"]),
        (NAME, 'name = " "', ["labelers.1", "name is empty"]),
        (NAME, 'name = "Containment"', ["labelers", "'containment' and 'Containment'", "rename one"]),
        (
            UTILITY,
            UTILITY + "\nquality = [1]",
            ["[labelers.2]", "'quality' must be a text, a number or true/false"],
        ),
        ("[1, 4]", "[]", ["[answers.depths] must have at least 1 item"]),
        ("[1, 4]", '[1, 4]\nmetrics = ["emm"]', ["answers", "emm"]),
        ("[1, 4]", '[1, 4]\nmetrics = ["em", "f1", "em"]', ["[answers]", "metrics names 'em' twice"]),
        ('"nDCG", "P"', '"nDGC"', ["metrics.measures", "nDGC", "nDCG"]),
        ("resamples = 100", 'resamples = 100\nprimary = "R@4"', ["analysis.primary", "R@4"]),
        (
            "resamples = 100",
            'resamples = 100\nprimary = "nDCG@10"',
            ["nDCG@10 needs answers from the top 10", "add 10 to [answers] depths, or name nDCG@1 or nDCG@4"],
        ),
    ],
)
def test_a_mistake_is_a_sentence_that_names_the_key_before_anything_is_asked(folder, old, new, words):
    edited(folder / "experiment.toml", old, new)
    with pytest.raises(JudgekitError) as caught:
        prepare(folder / "experiment.toml")
    assert all(word in str(caught.value) for word in words), caught.value


def test_questions_that_are_documents_leave_their_own_lists(folder):
    """The question's own document is neither pooled nor labelled, and the lists are filled from below it."""
    with open(folder / "docs.jsonl", "a") as docs, open(folder / "good.trec", "a") as run:
        for number in range(6):
            query = json.loads((folder / "queries.jsonl").read_text().splitlines()[number])
            docs.write(json.dumps({"doc_id": query["query_id"], "text": query["text"]}) + "\n")
            run.write(f"{query['query_id']} Q0 {query['query_id']} 0 1e6 good\n")
    path, noted = folder / "experiment.toml", "run 'good' begins with the query's own document for 6 of 6 queries"
    given = prepare(path).collection
    assert any(note.startswith(noted) for note in given.notes)
    edited(path, "[data]", "[data]\ndrop_self = true")
    left = prepare(path).collection
    assert not any("own document" in note for note in left.notes)
    assert all(query_id in given.pairs[query_id] and query_id not in left.pairs[query_id] for query_id in left.queries)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"[data\n", r"bad\.toml: is not TOML: .*line 1"),
        (b"depth = " + b"9" * 5000, "is not TOML: .*5000 digits"),
        ("# Qualität\n".encode("latin-1"), "is not UTF-8: save the file as UTF-8"),
    ],
)
def test_a_file_that_is_no_toml_is_a_sentence(tmp_path, text, said):
    (tmp_path / "bad.toml").write_bytes(text)
    with pytest.raises(ConfigError, match=said):
        load(tmp_path / "bad.toml")


@pytest.mark.parametrize(
    "entry", [3, {"prompt": 1}, {"prompt": 1, "completion": -1}, {"prompt": True, "completion": 1}, {"input": 1}]
)
def test_prices_are_read_from_a_table_and_mistakes_are_named(entry):
    good = parse_config({**content(), "prices": {"m": {"prompt": 0.15, "completion": 1}}}, Path("e.toml"))
    assert good.price_list() == {"m": Price(0.15, 1.0)}
    with pytest.raises(ConfigError, match=r"prices\.m"):
        parse_config({**content(), "prices": {"m": entry}}, Path("e.toml"))


def test_results_of_an_older_version_have_to_be_made_again(judgekit, folder):
    judgekit("run", "experiment.toml", "--out", "results", code=0)
    edited(folder / "results" / "resolved.toml", 'model = "mock"', 'model = "mock"\nfamily = "x"')
    with pytest.raises(ConfigError, match=r"unknown key 'family'.* another version .* run the experiment again"):
        config_of(folder / "results")
