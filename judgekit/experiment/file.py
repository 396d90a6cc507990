"""The experiment file: its form, read strictly, and written back resolved.

Unknown tables and keys are errors that suggest the nearest; a wrong type names the key. Paths are relative to the
file. Nothing here runs anything: see `judgekit.experiment.run`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_origin, get_type_hints

import tomli_w
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    Strict,
    ValidationError,
    create_model,
    field_validator,
    model_validator,
)

from judgekit.client.budget import Price
from judgekit.data.documents import Fields
from judgekit.data.forms import resolved, with_form
from judgekit.data.manifest import by_role, of_roles
from judgekit.data.streams import read_bytes
from judgekit.data.tables import ALL, UNDECLARED
from judgekit.errors import ConfigError, DataError, UsageError, not_among
from judgekit.gate.decision import DEFAULT_STEPS, SHARES, Rules
from judgekit.spec import slug, with_options
from judgekit.wire.types import Endpoint

__all__ = [
    "AnalysisConfig",
    "AnswersConfig",
    "Config",
    "DataConfig",
    "ExecutorConfig",
    "GuardConfig",
    "LabelerConfig",
    "MetricsConfig",
    "endpoint_of",
    "labels_file",
    "load",
    "located",
]

Positive = Annotated[int, Field(ge=1)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class DataConfig(_Section):
    """``[data]``: the collection and the depth of the pool.

    ``data`` stands for queries and docs where one source holds both, such as ``beir:FOLDER``.

    Attributes:
        queries: the file with the questions.
        docs: the file with the documents, or several.
        depth: each run is cut to this many documents; their union is the pool, of which every pair is labelled once.
        format: in which form a file is, by role (``queries``, ``docs``, ``run NAME``), where its content does not
            tell; ``FORM:FILE`` says the same.
        fields: how documents are shown to models and to containment: with their title, or the text alone.
        query_log: a file with real queries, one a line; the report says whether the experiment's look like them.
        limit: use the first queries only.
    """

    queries: str
    docs: str | list[str]
    depth: Positive
    format: dict[str, str] = {}
    fields: Fields = "title+text"
    query_log: str | None = None
    limit: Positive | None = None

    @model_validator(mode="before")
    @classmethod
    def _one_source(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "data" not in given:
            return given
        source = given["data"]
        return {"queries": source, "docs": source, **{key: value for key, value in given.items() if key != "data"}}


def _form_of(cls: type[Any], name: str) -> type[_Section]:
    """Return the form of a table that holds a dataclass's fields without its name; the class checks what they hold."""
    hints = get_type_hints(cls)
    form: dict[str, Any] = {}
    for one in fields(cls):
        # TOML has lists only.
        hint = Annotated[hints[one.name], Strict(False)] if get_origin(hints[one.name]) is tuple else hints[one.name]
        default = {} if one.default_factory is dict else ... if one.default is MISSING else one.default
        if one.init and one.name not in ("name", "client"):
            form[one.name] = (hint, default)
    return create_model(name, __base__=_Section, **form)


if TYPE_CHECKING:
    EndpointConfig = _Section
    RulesConfig = _Section
else:
    EndpointConfig = _form_of(Endpoint, "EndpointConfig")
    RulesConfig = _form_of(Rules, "RulesConfig")


class _Endpoints(_Section):
    endpoints: dict[str, EndpointConfig]


def endpoint_of(name: str, table: dict[str, Any]) -> Endpoint:
    """Return the endpoint that a table describes as ``[endpoints.NAME]`` of an experiment file would.

    Raises:
        ConfigError: as for `load`.
    """
    try:
        form = _Endpoints(endpoints={name: table})  # type: ignore[dict-item]  # pydantic makes the table's form of it
    except ValidationError as error:
        raise _speak(error, None) from None
    return Endpoint(name=name, **form.endpoints[name].model_dump())


class PriceConfig(_Section):
    """``[prices.MODEL]``: money per million tokens, in the user's currency.

    Attributes:
        prompt: for a million tokens of prompts.
        completion: for a million tokens of replies.
    """

    prompt: Annotated[float, Field(ge=0)]
    completion: Annotated[float, Field(ge=0)]


class LabelerConfig(BaseModel):
    """``[[labelers]]``: a kind, its options, and optionally a name.

    Attributes:
        kind: a labeler that `judgekit labelers` lists, or a class of your own, ``my_labelers.py:Longest``.
        name: what tables and files call the labeling; by default its spelling, ``judge(prompt=graded)``.
    """

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)
    kind: str
    name: str | None = None

    @property
    def spec(self) -> str:
        """The labeler's spelling as the user gave it (``build`` makes it canonical)."""
        return with_options(self.kind, (self.model_extra or {}).items())

    @model_validator(mode="after")
    def _plain_options(self) -> LabelerConfig:
        if self.name is not None and not self.name.strip():
            raise ValueError("name is empty: leave it out, and the labeler's spelling is its name")
        for key, value in (self.model_extra or {}).items():
            if not isinstance(value, bool | int | float | str):
                raise ValueError(f"option {key!r} must be a text, a number or true/false")
        return self


class AnswersConfig(_Section):
    """``[answers]``: end-to-end answering from the top k documents of each run.

    Attributes:
        import: a file with what your application answered; then only endpoints that ``endpoint`` names answer too.
        answered_by: the model that gave the imported answers.
        endpoint: which endpoint answers; by default the only one. Several answer one after the other, and the verdict
            is about the answers of the first.
        prompt: an answer prompt, or the path of your own.
        depths: how many of a run's documents an answer is made from.
        metrics: how answers are rated; `judgekit answer-metrics` lists what there is, ``my_metrics.py:Brief`` is yours.
        closed_book: whether questions are also answered without any document, as a control.
        ratings: files with what people or another tool think of answers. Where nothing names an endpoint, a prompt,
            metrics or answers to import, nothing is answered, and quality is those ratings alone.
        modes: ways of answering, see below: the verdict is about the first, and a table of their own compares them.
        options: the table ``[answers.options]``, see below.
    """

    imported: str | None = Field(default=None, alias="import")
    answered_by: Annotated[str, Field(min_length=1)] = UNDECLARED
    endpoint: str | list[str] | None = None
    prompt: str = "answer-short"
    depths: Annotated[list[Positive], Field(min_length=1)] = [5]
    metrics: list[str] = ["em", "f1"]
    closed_book: bool = True
    ratings: list[str] = []
    options: dict[str, bool | int | float | str] = {}
    modes: list[str] = []

    @property
    def endpoints(self) -> list[str | None]:
        """The names of the endpoints that answer; None stands for the only one."""
        if self.endpoint is None and self.imported is not None:
            return []
        return list(self.endpoint) if isinstance(self.endpoint, list) else [self.endpoint]

    @field_validator("endpoint")
    @classmethod
    def _some(cls, endpoint: str | list[str] | None) -> str | list[str] | None:
        if isinstance(endpoint, list) and (not endpoint or len(set(endpoint)) < len(endpoint)):
            raise ValueError("names each endpoint once, and at least one")
        return endpoint

    @model_validator(mode="after")
    def _some_quality(self) -> AnswersConfig:
        twice = next((metric for metric in self.metrics if self.metrics.count(metric) > 1), None)
        if twice is not None:
            raise ValueError(f"metrics names {twice!r} twice")
        if not (self.metrics or self.ratings):
            raise ValueError("name what to compare scores with: metrics, or files with ratings")
        return self

    @field_validator("depths")
    @classmethod
    def _distinct(cls, depths: list[int]) -> list[int]:
        return sorted(set(depths))


class PromptsConfig(_Section):
    """``[prompts]``: prompts of your own.

    Attributes:
        folder: a folder with prompts, NAME.toml; short names are looked for there first.
    """

    folder: str | None = None


class MetricsConfig(_Section):
    """``[metrics]``: how runs are scored.

    Attributes:
        measures: each without a cutoff is taken at every answer depth.
        missing: what becomes of the score of a query of which a label is missing: undefined, the label counts as not
            relevant, or the document is left out of the list.
    """

    measures: Annotated[list[str], Field(min_length=1)] = ["nDCG", "P", "R", "AP", "RR", "Success"]
    missing: Literal["undefined", "zero", "condense"] = "undefined"


_RENAMED = {
    "margin": "is replaced by keep (the share of the best labeling's gain that a cheaper one must keep) and by"
    " margin_points (in points of quality)",
    "primary_level": 'is replaced by use = "choose-runs" (within queries) or "find-questions" (over queries)',
    "levels": "is not needed any more: all levels are always worked out",
}
"""Keys of an earlier version, which must not be taken for others, with what stands in their place."""


class AnalysisConfig(_Section):
    """``[analysis]``: what the labels are wanted for, what the verdict is about, and the resampling.

    Attributes:
        use: which verdict leads. By default ``choose-runs`` with two or more runs, else ``find-questions``.
        primary: the measure that the verdict is about; by default nDCG with the largest cutoff, else the first.
        primary_metric: the answer metric that the verdict is about; by default the first.
        keep: the share of the best labeling's decision gain that a cheaper one must keep to be recommended.
        margin_points: the points of quality that a cheaper one may lose instead.
        confidence: of all intervals and claims.
        groups: a column of the queries: those of a group (paraphrases, questions about one document) are resampled
            together.
        resamples: the number of bootstrap resamples of the queries.
        seed: of the resamples.
        accept_mixed_models: whether a verdict may rest on replies of several models under one name.
        stop: ``decided`` labels and answers random blocks of queries, and ends with the first after which one labeling
            is shown to be better than every other.
    """

    use: Literal["choose-runs", "find-questions", "guard"] | None = None
    primary: str | None = None
    primary_metric: str | None = None
    keep: Annotated[float, Field(gt=0, le=1)] = 0.5
    margin_points: Annotated[float, Field(ge=0)] | None = None
    confidence: Annotated[float, Field(ge=0.5, lt=1)] = 0.95
    groups: str | None = None
    resamples: Annotated[int, Field(ge=100, le=100_000)] = 1000
    seed: Annotated[int, Field(ge=0)] = 1
    accept_mixed_models: bool = False
    stop: Literal["decided"] | None = None

    @model_validator(mode="before")
    @classmethod
    def _renamed(cls, given: Any) -> Any:
        for key in _RENAMED:
            if isinstance(given, dict) and key in given:
                raise ValueError(f"{key} {_RENAMED[key]}")
        return given


class GuardConfig(RulesConfig):
    """``[guard]``: what `judgekit guard` does with this file, and the ladder of `judgekit run`.

    Attributes:
        base: the run that is the old version, and that the ladder makes worse; by default the first.
        new: the run that is the new version.
        labeler: the labeler that `judgekit guard` asks.
        steps: what the ladder does to lists.
        shares: the percent of the queries that a step changes.
        noise: the percent of the queries that change for better or worse beside it.
        relevant: the labeler whose relevant documents the step ``drop`` takes away; by default one that reads a file.
        earlier: a file with an earlier version of the documents, for the step ``stale``.
        answer: answer so many changed queries a step, to tie it to points of quality.
    """

    base: str | None = None
    new: str | None = None
    labeler: str | None = None
    steps: list[str] = Field(default=list(DEFAULT_STEPS), min_length=1)
    shares: list[Annotated[float, Field(gt=0, le=100)]] = Field(default=list(SHARES), min_length=1)
    noise: Annotated[float, Field(ge=0, le=100)] = 0.0
    relevant: str | None = None
    earlier: str | None = None
    answer: Annotated[int, Field(ge=0)] = 0

    def rules(self) -> Rules:
        """Return the rules of the gate."""
        return Rules(**{one.name: getattr(self, one.name) for one in fields(Rules)})


class ExecutorConfig(_Section):
    """``[executor]``: where labels, answers and scores are made: in this process, or by the workers of a Ray cluster.

    Attributes:
        kind: this process, or the workers of a Ray cluster.
        address: the cluster's; ``auto`` is the one that this machine belongs to, ``local`` one that is started here for
            the run.
        folder: where workers find their partitions and leave what they made, any address that fsspec knows. By default
            it is the folder ``partitions`` of the results, which all nodes must then see.
        workers: how many; by default as many as the cluster has CPUs.
        pairs: the most pairs of a partition.
        flush_s: new replies are kept every so many seconds.
    """

    kind: Literal["local", "ray"] = "local"
    address: str = "auto"
    folder: str | None = None
    workers: Positive | None = None
    pairs: Positive = 100_000
    flush_s: Annotated[float, Field(gt=0)] = 5.0


class ReportConfig(_Section):
    """``[report]``: the page.

    Attributes:
        texts: whether it shows questions, passages, answers and replies.
    """

    texts: bool = True


class Config(_Section):
    """A whole experiment file.

    Attributes:
        title: of the report; by default the file's name.
        runs: the table ``[runs]``: a name and the file of each run.
        path: the file that it was read from; paths inside are relative to its folder.
    """

    title: str = ""
    data: DataConfig
    runs: Annotated[dict[str, str], Field(min_length=1)]
    endpoints: dict[str, EndpointConfig] = {}
    labelers: Annotated[list[LabelerConfig], Field(min_length=1)]
    answers: AnswersConfig = AnswersConfig()
    prompts: PromptsConfig = PromptsConfig()
    metrics: MetricsConfig = MetricsConfig()
    analysis: AnalysisConfig = AnalysisConfig()
    report: ReportConfig = ReportConfig()
    guard: GuardConfig | None = None
    executor: ExecutorConfig = ExecutorConfig()
    prices: dict[str, PriceConfig] = {}
    path: Path = Field(default=Path("experiment.toml"), exclude=True)

    @field_validator("runs")
    @classmethod
    def _run_names(cls, runs: dict[str, str]) -> dict[str, str]:
        if not all(name.strip() for name in runs):
            raise ValueError("the name of a run is empty")
        if ALL in runs:
            raise ValueError(f"a run cannot be named {ALL!r}: that name stands for the mean over runs")
        return runs

    @model_validator(mode="before")
    @classmethod
    def _ratings_need_no_llm(cls, content: Any) -> Any:
        """Answer nothing where there are ratings, no endpoint, and no wish for an answer."""
        answers = content.get("answers") if isinstance(content, dict) and not content.get("endpoints") else None
        if (
            isinstance(answers, dict)
            and answers.get("ratings")
            and not {"endpoint", "prompt", "metrics", "import"} & set(answers)
        ):
            return {**content, "answers": {**answers, "metrics": []}}
        return content

    @model_validator(mode="after")
    def _depth_covers_answers(self) -> Config:
        if max(self.answers.depths) > self.data.depth:
            raise ValueError(
                f"answers.depths goes to {max(self.answers.depths)}, but data.depth pools only the top"
                f" {self.data.depth} documents: raise data.depth"
            )
        return self

    def resolve(self, text: str) -> Path:
        """Return a path of the file, relative paths being relative to the file's folder; ``~`` is the home."""
        return resolved(text, self.path.parent)

    def servers(self) -> dict[str, Endpoint]:
        """Return the endpoints by name."""
        tables = {name: table.model_dump() for name, table in self.endpoints.items()}
        for table in tables.values():
            if isinstance(table["target"], str):
                table["target"] = str(self.resolve(table["target"]))
        return {name: Endpoint(name=name, **table) for name, table in tables.items()}

    def prompt_folder(self) -> Path | None:
        """Return the folder of the user's prompts, if there is one."""
        return None if self.prompts.folder is None else self.resolve(self.prompts.folder)

    def price_list(self) -> dict[str, Price]:
        """Return the prices by endpoint name or model id."""
        return {name: Price(price.prompt, price.completion) for name, price in self.prices.items()}

    def files(self) -> dict[str, Path]:
        """Return the data by role, as a manifest names it: ``queries``, ``docs``, ``docs 2``, ``run NAME``."""
        docs = [self.data.docs] if isinstance(self.data.docs, str) else self.data.docs
        named = by_role(self.data.queries, docs, self.runs)
        for role in self.data.format:
            if role not in named:
                raise ConfigError(not_among("input", role, named), self.path, "data.format")
        return {role: with_form(self.resolve(file), self.data.format.get(role)) for role, file in named.items()}

    def collection(self) -> tuple[Path, list[Path], dict[str, Path]]:
        """Return the files of queries, of docs, and of runs by name."""
        return of_roles(self.files())

    def updated(self, **sections: Mapping[str, Any]) -> Config:
        """Return the experiment with other values of some keys, by section: ``config.updated(data={"limit": 10})``."""
        changed = {name: getattr(self, name).model_copy(update=dict(keys)) for name, keys in sections.items()}
        return self.model_copy(update=changed)

    def toml(self) -> str:
        """Return the file with every default written out."""
        return tomli_w.dumps(_without_none(self.model_dump(mode="json", by_alias=True)))


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_none(v) for k, v in value.items() if v is not None}
    return [_without_none(v) for v in value] if isinstance(value, list) else value


def load(path: str | Path) -> Config:
    """Read an experiment file.

    Raises:
        ConfigError: no such file, no TOML, an unknown key (the nearest is suggested), a wrong type, a value that
            makes no sense. The message names the file and the key.
    """
    path = Path(path)
    try:
        content = tomllib.loads(read_bytes(path, "an experiment file").decode())
    except DataError as error:
        raise ConfigError(error.reason, path) from None
    except UnicodeDecodeError:
        raise ConfigError("is not UTF-8: save the file as UTF-8", path) from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"is not TOML: {error}", path) from error
    return parse_config(content, path)


def parse_config(content: dict[str, Any], path: Path) -> Config:
    """Check the content of an experiment file; ``path`` stands in messages and anchors relative paths."""
    with located(path):
        try:
            config = Config.model_validate({**content, "path": path})
        except ValidationError as error:
            raise _speak(error, path) from None
        config.servers()
        if config.guard is not None:
            config.guard.rules()
    return config


@contextmanager
def located(path: Path, key: str | None = None) -> Iterator[None]:
    """Say of what cannot be used in which experiment file it stands, and where, unless the error says it better."""
    try:
        yield
    except ConfigError as error:
        if error.path not in (None, path):
            raise  # a file of its own, such as a prompt
        raise ConfigError(error.reason, path, error.key or key) from None
    except UsageError as error:
        raise ConfigError(str(error), path, key) from None


SECTIONS: dict[str, type[BaseModel]] = {
    "data": DataConfig,
    "endpoints": EndpointConfig,
    "labelers": LabelerConfig,
    "answers": AnswersConfig,
    "prompts": PromptsConfig,
    "metrics": MetricsConfig,
    "analysis": AnalysisConfig,
    "report": ReportConfig,
    "executor": ExecutorConfig,
    "guard": GuardConfig,
    "prices": PriceConfig,
}


def _speak(error: ValidationError, path: Path | None) -> ConfigError:
    """Turn the first problem into a sentence for the user."""
    problems = error.errors()
    # A misspelt key is also a missing one: the name that is there says more than the one that is not.
    problem = next((p for p in problems if p["type"] == "extra_forbidden"), problems[0])
    location = [str(part) for part in problem["loc"]]
    key = ".".join(location)
    kind = problem["type"]
    if kind == "extra_forbidden":
        section = SECTIONS.get(location[0], Config) if len(location) > 1 else Config
        known = [one.alias or name for name, one in section.model_fields.items() if name != "path"]
        what = "table or key" if len(location) == 1 else "key"
        return ConfigError(not_among(what, location[-1], known), path, key)
    if kind == "missing":
        return ConfigError("is needed and missing", path, key)
    if kind == "too_short":
        return ConfigError("is empty: name at least one", path, key)
    message = problem["msg"].removeprefix("Value error, ")
    given = "" if kind == "value_error" else f"; got {problem['input']!r}"
    return ConfigError(f"{message[:1].lower()}{message[1:]}{given}", path, key or None)


def labels_file(name: str, end: str = ".parquet") -> str:
    """Return where the labels of a labeling lie in a results folder."""
    return f"labels/{slug(name)}{end}"


ANCHOR: Final = "# Paths are relative to "
"""How the file begins that keeps the experiment of a results folder."""


def config_of(folder: Path) -> Config:
    """Return the experiment that a results folder came from.

    Raises:
        ConfigError, DataError: there is none.
    """
    path = folder / "resolved.toml"
    try:
        first, _, rest = path.read_text(encoding="utf-8").partition("\n")
        if not first.startswith(ANCHOR):
            raise ValueError
        return parse_config(tomllib.loads(rest), Path(first.removeprefix(ANCHOR)) / path.name)
    except (OSError, ValueError):
        raise DataError("does not hold results of `judgekit run` (no resolved.toml)", folder) from None
