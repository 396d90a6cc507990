import json
import math
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from judgekit.analysis.leakage import AnsweredBy
from judgekit.client.budget import Amount, Usage
from judgekit.errors import DataError
from judgekit.experiment import results as summary
from judgekit.experiment.finished import read_results
from judgekit.labelers.base import Needs
from judgekit.wire.types import Endpoint
from tests.small import edited

FREE = Usage(wall_s=0.5)
ASKED = Usage(standalone=Amount(10, 1000, 10, 0.2), incurred=Amount(10, 1000, 10, 0.2), wall_s=3.0, sent=10)
SILENT = Usage(standalone=Amount(10, 0, 0, 0.0, unreported=10), wall_s=3.0, sent=10)
PARTLY = Usage(standalone=Amount(10, 900, 9, 0.1, unreported=1), wall_s=3.0, sent=10)


def costs(**usages):
    labelers = {name: SimpleNamespace(needs=Needs(people=name == "people")) for name in usages}
    session = SimpleNamespace(usage=lambda stage: usages[stage.removeprefix("label ")])
    return summary.costs(labelers, session).set_index("labeling")


def test_what_labels_by_people_cost_is_not_known_from_the_requests():
    found = costs(people=FREE, judge=ASKED, containment=FREE)
    assert found.loc["people"].isna().all()
    assert found["money"].to_dict() == pytest.approx({"people": math.nan, "judge": 0.2, "containment": 0}, nan_ok=True)


def test_tokens_that_a_server_did_not_report_leave_the_cost_unknown_or_a_lower_bound():
    found = costs(silent=SILENT, partly=PARTLY)
    assert found["money"].isna().all()
    assert (found["requests"] == 10).all()
    nothing, some = summary._spending(SILENT).standalone, summary._spending(PARTLY).standalone
    assert (nothing.prompt_tokens, nothing.completion_tokens, nothing.money) == (None, None, None)
    assert (some.prompt_tokens, some.money, some.unreported) == (900, 0.1, 1)


def test_request_seconds_are_unknown_where_no_reply_has_a_time_and_a_lower_bound_where_some_have_none():
    timed = Amount(10, 100, 10, 0.1, seconds=2.5)
    some, none = replace(timed, untimed=3), replace(timed, seconds=0.0, untimed=10)
    shown = [summary._cost(amount) for amount in (timed, some, none)]
    assert [(cost.request_seconds, cost.untimed) for cost in shown] == [(2.5, 0), (2.5, 3), (None, 10)]
    seconds = costs(timed=Usage(timed), some=Usage(some))["request_seconds"].to_dict()
    assert seconds == pytest.approx({"timed": 2.5, "some": math.nan}, nan_ok=True)


def test_wall_time_is_that_of_this_session_and_what_people_were_paid_is_unknown():
    again = Usage(standalone=Amount(10, 100, 10, 0.1, seconds=2.5), wall_s=0.01, cached=10)
    spent, people = summary._spending(again), summary._spending(again, people=True)
    assert (spent.standalone.request_seconds, spent.standalone.money, spent.standalone.wall_s) == (2.5, 0.1, None)
    assert (spent.incurred.wall_s, spent.incurred.requests) == (None, 0), "reading the store is no cost"
    assert summary._spending(ASKED).incurred.wall_s == 3.0
    assert (people.standalone.request_seconds, people.standalone.money, people.incurred.money) == (None, None, 0)


@pytest.mark.parametrize(("weights", "mean"), [(None, 2.0), ({"q1": 3.0, "q2": 1.0, "q3": 9.0}, 1.5)])
def test_a_mean_is_that_of_the_values_that_there_are(weights, mean):
    rows = pd.DataFrame({"run": "r", "query_id": ["q1", "q2", "q3"], "value": [1.0, 3.0, math.nan]})
    assert summary._means(rows, ["run"], weights).to_dict() == {"r": mean}


HERE, THERE = (Endpoint(name, f"http://{name}/v1", f"{name}-model") for name in ("here", "there"))


@pytest.mark.parametrize("jury", [(HERE, THERE), (THERE, HERE)])
def test_the_report_names_all_models_of_a_jury_and_whose_answers_they_share(jury):
    answering = {"here-model": AnsweredBy(HERE, "p"), "else-model": AnsweredBy(replace(HERE, model="else-model"), "p")}
    needs = Needs(endpoints=jury)
    assert summary._kinship(needs, {"here-model": answering["here-model"]}) == "same model"
    assert summary._kinship(needs, answering) == "same model as here-model"
    assert summary._together(e.model for e in needs.asked) == " + ".join(e.model for e in jury)


def test_a_run_that_changes_nothing_writes_the_same_bytes(judgekit, folder):
    command = ["run", "experiment.toml", "--out", "results", "--cache", "store"]

    def written() -> dict[str, bytes]:
        files = (path for path in sorted((folder / "results").rglob("*")) if path.is_file())
        return {str(path): path.read_bytes() for path in files}

    judgekit(*command, code=0)
    first = written()
    bill = json.loads(first[str(folder / "results" / "report.json")])["answers"][0]["spending"]["incurred"]
    assert bill["requests"] > 0
    judgekit(*command, code=0)
    assert written() == first

    # Another measure costs nothing: what was paid for these results is 0, and it stays so.
    edited(folder / "experiment.toml", 'measures = ["', 'measures = ["RR", "')
    judgekit(*command, code=0)
    second = written()
    bill = json.loads(second[str(folder / "results" / "report.json")])["answers"][0]["spending"]["incurred"]
    assert (bill["requests"], bill["wall_s"]) == (0, None)
    judgekit(*command, code=0)
    assert written() == second


def test_results_of_data_in_a_form_are_opened_again(judgekit, folder):
    """As `init` writes it: a form in front of the path."""
    lines = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    rows = "".join(f"{row['query_id']},{row['text']},{row['answers'][0]}\n" for row in lines)
    (folder / "fragen.csv").write_text(f"Nr,Frage,Antwort\n{rows}")
    edited(folder / "experiment.toml", '"queries.jsonl"', '"csv(id=Nr,text=Frage,answers=Antwort):fragen.csv"')
    judgekit("run", "experiment.toml", "--out", "results", code=0)
    prepared, labelings, _ = read_results(folder / "results")
    assert len(prepared.collection.queries) == len(lines)
    assert set(labelings) == {"containment", "judge", "erag"}
    (folder / "fragen.csv").rename(folder / "gone.csv")
    with pytest.raises(DataError, match=r"fragen\.csv"):
        read_results(folder / "results")
