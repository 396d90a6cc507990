"""A job: fixed when it is made, counted without being sent, done once."""

import inspect
import pickle
import typing
from math import inf, nan
from pathlib import Path

import pytest

import judgekit as jk
from judgekit.data.result_files import ResultFiles
from judgekit.errors import BudgetError, UsageError
from judgekit.experiment.build import BuildResult
from judgekit.job import Job, Settled, job
from judgekit.progress import Event
from tests.mock import URL

JOBS = ["answer", "audit", "build", "choose", "guard", "label", "run"]
MOCK = jk.Endpoint("local", base_url=URL, model="mock")
FREE = jk.Price(prompt=0, completion=0)
DEAR = jk.Price(prompt=1e6, completion=1e6)


@pytest.fixture
def pool(folder: Path) -> dict[str, object]:
    return {"queries": folder / "queries.jsonl", "docs": folder / "docs.jsonl", "runs": folder / "good.trec"}


def sent(events: list[Event]) -> int:
    return sum({event.stage: event.sent for event in events}.values())


@pytest.mark.parametrize("name", JOBS)
def test_a_function_that_does_a_job_is_a_plain_function_to_whoever_looks_at_it(name: str) -> None:
    function = getattr(jk, name)
    assert inspect.isfunction(function)
    assert pickle.loads(pickle.dumps(function)) is function  # noqa: S301  # our own
    assert function.__doc__.strip()
    assert "Job[" not in str(inspect.signature(function))
    assert list(inspect.signature(function.plan).parameters) == list(inspect.signature(function).parameters)
    assert inspect.signature(function.plan).return_annotation == "dict[str, Plan]"


def test_what_a_function_returns_is_what_its_types_say() -> None:
    assert typing.get_type_hints(jk.build)["return"] is BuildResult


def test_a_plan_counts_what_is_then_sent_and_writes_nothing(pool: dict[str, object], tmp_path: Path) -> None:
    events: list[Event] = []
    asking = jk.Asking(cache=tmp_path / "store", progress=events.append)
    plan = jk.label.plan("judge", **pool, endpoints=MOCK, asking=asking)
    assert plan["label judge"].requests == plan["all"].requests > 0
    assert not (tmp_path / "store").exists()
    assert not events
    jk.label("judge", **pool, endpoints=MOCK, asking=asking)
    assert sent(events) == plan["all"].requests
    again = jk.label.plan("judge", **pool, endpoints=MOCK, asking=asking)["all"]
    assert again.cached == again.requests


def test_a_cost_limit_holds_in_python(pool: dict[str, object], tmp_path: Path) -> None:
    asks = {"depths": 2, "endpoints": MOCK, **pool}
    with pytest.raises(BudgetError, match="would exceed the budget of 1;"):
        jk.label("judge", **pool, endpoints=MOCK, asking=jk.Asking(1, cache=tmp_path / "a", prices={"mock": DEAR}))
    with pytest.raises(BudgetError):
        jk.answer(**asks, asking=jk.Asking(1, cache=tmp_path / "b", prices={"mock": DEAR}))
    free = jk.Asking(1, cache=tmp_path / "c", prices={MOCK.name: FREE})
    assert jk.label("judge", **pool, endpoints=MOCK, asking=free).counts()[jk.Status.OK]
    with pytest.raises(UsageError, match=r"a cost limit needs the price of the model 'mock'.*jk\.Price"):
        jk.label("judge", **pool, endpoints=MOCK, asking=jk.Asking(1, cache=tmp_path / "d"))


def test_the_prices_that_are_given_stand_in_the_place_of_a_files(folder: Path, tmp_path: Path) -> None:
    with (folder / "experiment.toml").open("a") as file:
        file.write('[prices.mock]\nprompt = 1e6\ncompletion = 1e6\n[prices."other"]\nprompt = 1\ncompletion = 2\n')
    made = jk.build.job(folder / "experiment.toml", "judge", asking=jk.Asking(1, prices={"mock": FREE}))
    assert made.asking.prices == {"mock": FREE, "other": jk.Price(1, 2)}
    with pytest.raises(BudgetError):
        jk.build(folder / "experiment.toml", "judge", out=tmp_path / "out", asking=jk.Asking(1, cache=tmp_path / "s"))


@pytest.mark.parametrize("price", [(1, 2), {"prompt": 1}, jk.Price(-1, 0), jk.Price(0, nan), jk.Price(inf, 0)])
def test_a_price_that_is_none_is_refused(price: object) -> None:
    with pytest.raises(UsageError, match=r"prices\['m'\] must be a judgekit\.Price"):
        jk.Asking(prices={"m": price})  # type: ignore[dict-item]


def test_inputs_are_fixed_when_the_job_is_made(tmp_path: Path) -> None:
    first, later = tmp_path / "first", tmp_path / "later"
    for file in (first, later):
        file.write_text("a\n")

    @job
    def reads(path: Path) -> Job[list[str]]:
        from judgekit.data.streams import text_of

        text_of(path)

        async def do(_: object, files: ResultFiles) -> list[str]:
            text_of(later)
            return sorted(files.inputs)

        return Job({}, do, jk.Asking(cache=tmp_path / "store"), ResultFiles(tmp_path / "out", ("a",)))

    assert reads(first) == [str(first)]


def test_a_job_that_asks_nobody_opens_no_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGEKIT_CACHE", str(tmp_path / "cache"))
    assert Settled.of(3).run() == 3

    ratings = [{"query_id": f"q{i}", "value": i % 2} for i in range(9)]
    for name in ("base", "new"):
        (tmp_path / f"{name}.jsonl").write_text("".join(f"{row}\n".replace("'", '"') for row in ratings))
    assert jk.guard(tmp_path / "base.jsonl", tmp_path / "new.jsonl").outcome == "pass"
    assert jk.guard.plan(tmp_path / "base.jsonl", tmp_path / "new.jsonl")["all"].requests == 0
    assert not (tmp_path / "cache").exists()


def test_what_asks_nobody_is_written_too(tmp_path: Path) -> None:
    path = tmp_path / "three.txt"

    def write(result: int, _: ResultFiles) -> None:
        path.write_text(str(result))

    made = Settled.of(3).writing(ResultFiles.beside(path, roles={}), write)
    assert not path.exists()
    assert made.run() == 3
    assert path.read_text() == "3"
    assert (tmp_path / "three.txt.manifest.json").exists()
