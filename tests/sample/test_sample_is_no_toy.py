"""The sample's replies are recorded, all of them and no others, and lead to labelings and answers worth comparing."""

import re
import shutil
from contextlib import closing

import numpy as np
import pytest

from examples.sample.record import write
from judgekit.client.asking import Asking
from judgekit.client.transports import RECORDING, recorded
from judgekit.data.trec import read_run
from judgekit.errors import EndpointError
from judgekit.experiment.run import run
from judgekit.sample import EXPERIMENT
from judgekit.store.replies import Store


def test_every_reply_that_the_demo_needs_is_recorded(demo, demo_cache):
    """That none is recorded besides is tested where both experiments have run: test_labelers.py."""
    assert demo.missing == ()
    with closing(Store(demo_cache)) as store:
        asked = {key[:16] for key, _ in store.texts()}
    assert asked <= set(recorded()[1])


def test_the_report_says_whose_replies_these_are(demo):
    assert demo.results.note.startswith("Replayed: the recorded replies of a small real model (MiniLM-L6, 22.7 M")


@pytest.mark.parametrize("edited", ["queries.jsonl", "docs.jsonl", "experiment.toml"])
def test_an_edited_sample_stops_and_says_what_to_do(edited, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(EXPERIMENT.parent, copy)
    text = (copy / edited).read_text(encoding="utf-8")
    new = text.replace('kind = "judge"', 'kind = "judge(prompt=useful)"').replace("Ostrawick", "Ostrawyck")
    assert new != text
    (copy / edited).write_text(new, encoding="utf-8")
    with pytest.raises(EndpointError, match=r"no reply is recorded .* set base_url to the address of a server"):
        run(copy / "experiment.toml", out=tmp_path / "out", asking=Asking(cache=tmp_path / "cache"))


def test_the_same_replies_are_recorded_as_the_same_bytes(tmp_path):
    write(tmp_path / "again.gz", *recorded(), [])
    assert (tmp_path / "again.gz").read_bytes() == RECORDING.read_bytes()


def test_the_numbers_in_the_readme_are_those_of_the_recorded_replies(demo):
    """How often the gold passage is in the top k, and exact match, both by run and depth."""
    readme = EXPERIMENT.with_name("README.md").read_text(encoding="utf-8")
    written = {
        run_: [float(number) for number in re.findall(r"\.\d+", numbers)]
        for run_, numbers in re.findall(r"^\| (\w+) \| ([.\d/ |]+) \|$", readme, re.MULTILINE)
    }
    quality = demo.quality[(demo.quality["metric"] == "em") & (demo.quality["depth"] > 0)]
    means = quality.groupby(["run", "depth"])["value"].mean().unstack("depth")
    lines = EXPERIMENT.with_name("provenance.qrels").read_text(encoding="utf-8").splitlines()
    golds = {line.split()[0]: line.split()[2] for line in lines}
    seen = {}
    for name in means.index:
        listed = read_run(EXPERIMENT.parent / "runs" / f"{name}.trec")
        found = [np.mean([doc in listed.top(q, depth) for q, doc in golds.items()]) for depth in means.columns]
        seen[name] = pytest.approx([*found, *means.loc[name]], abs=0.0051)
    assert written == seen
