"""The experiment file: its form, read strictly, and written back resolved.

Unknown tables and keys are errors that suggest the nearest; a wrong type names the key. Paths are relative to the
file. Nothing here runs anything: see `judgekit.experiment.run`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, get_type_hints

import tomli_w
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
    field_serializer,
    field_validator,
    model_validator,
)

from judgekit.analysis.money import Money
from judgekit.client.budget import Price
from judgekit.collection import Collection
from judgekit.data.documents import Fields
from judgekit.data.manifest import by_role
from judgekit.data.sources import resolved
from judgekit.data.streams import read_bytes
from judgekit.data.tables import ALL, UNDECLARED
from judgekit.errors import ConfigError, DataError, UsageError, in_our_words, not_among
from judgekit.experiment import trust
from judgekit.reading import ANSWER_METRICS, ANSWER_PROMPT
from judgekit.rules import DeclaredOutcome, Rules
from judgekit.settings import Bounds, bounds_of, settings_of
from judgekit.spec import slug, split_file, with_options
from judgekit.wire.types import Endpoint

Positive = Annotated[int, Field(ge=1)]
_Several = Annotated[list[str], BeforeValidator(lambda given: [given] if isinstance(given, str) else given)]


class _Section(BaseModel):
    # Be strict: a "5" in quotes is as often a mistake as a number.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class DataConfig(_Section):
    """``[data]``: the collection and the depth of the pool.

    Attributes:
        queries: the file of the questions.
        docs: the file of the documents, or several.
        depth: number of documents to take from each run; their union, the pool, is labelled once.
        fields: what models and containment see of a document: its title and text, or the text alone.
        drop_self: leave documents that are the question itself, by its id, out of the runs.
        sample: table of the questions to use, with the columns ``query_id`` and ``weight``; `judgekit plan` writes it.
            Only the means of runs are weighted.
        limit: use only the first queries, also of a sample.
    """

    queries: str
    docs: Annotated[_Several, Field(min_length=1)]
    depth: Positive
    fields: Fields = "title+text"
    drop_self: bool = False
    sample: str | None = None
    limit: Positive | None = None


class RunConfig(_Section):
    """``[runs]``: a run by its name, with the path of its file or with these keys in braces.

    Attributes:
        file: the file of the run.
        model: the model that reranked it; labels by the same model may favour the run, and the decision says so.
        settings: what the run was made with, such as `{ retriever = "dense", chunk = 512 }`. A note names settings that
            never vary alone.
    """

    file: str
    model: Annotated[str, Field(min_length=1)] | None = None
    settings: dict[str, bool | int | float | str] = {}

    @model_validator(mode="before")
    @classmethod
    def _file_alone(cls, given: Any) -> Any:
        if isinstance(given, str):
            return {"file": given}
        return given


def _form_of(cls: type[Any], name: str, base: type[BaseModel] = _Section) -> type[BaseModel]:
    """Return the form of a table with a dataclass's fields except its name; the class checks their values."""
    # Types, defaults and bounds come from the dataclass, so that file, Python and command line cannot differ.
    hints = get_type_hints(cls)
    form: dict[str, Any] = {}
    for declared in fields(cls):
        if not declared.init or declared.name == "name":
            continue
        bounds, hint, default = bounds_of(declared), hints[declared.name], declared.default
        if bounds != Bounds():
            hint = Annotated[hint, Field(ge=bounds.least, le=bounds.most)]
        if declared.default_factory is dict:
            default = {}
        elif default is MISSING:
            default = ...
        form[declared.name] = (hint, default)
    return create_model(name, __base__=base, __doc__=cls.__doc__, **form)


if TYPE_CHECKING:
    from judgekit.answers.direction import Directions

    EndpointConfig = _Section
    MoneyConfig = _Section
    AnalysisConfig = Rules
    OutcomeConfig = BaseModel
else:
    EndpointConfig = _form_of(Endpoint, "EndpointConfig")
    MoneyConfig = _form_of(Money, "MoneyConfig")
    AnalysisConfig = _form_of(Rules, "AnalysisConfig")
    OutcomeConfig = _form_of(DeclaredOutcome, "OutcomeConfig", BaseModel)


class _Endpoints(BaseModel):
    endpoints: Annotated[dict[str, EndpointConfig], Field(min_length=1)]


def endpoint_of(name: str, table: dict[str, Any]) -> Endpoint:
    """Return the endpoint of a table written like ``[endpoints.NAME]`` of an experiment file."""
    try:
        form = _Endpoints(endpoints={name: table})  # type: ignore[dict-item]  # pydantic turns it into the table's form
    except ValidationError as error:
        raise _speak(error, None) from None
    return Endpoint(name=name, **form.endpoints[name].model_dump())


class PriceConfig(_Section):
    """``[prices.MODEL]``: money per million tokens, in the user's currency.

    Attributes:
        prompt: price of a million prompt tokens.
        completion: price of a million reply tokens, thinking included.
        cached: price of a million prompt tokens from the server's cache; without it they cost as much as others.
    """

    prompt: Annotated[float, Field(ge=0)]
    completion: Annotated[float, Field(ge=0)]
    cached: Annotated[float, Field(ge=0)] | None = None


class _Servers(_Endpoints):
    prices: dict[str, PriceConfig] = {}


def _tables(endpoints: Mapping[str, _Section], folder: Path) -> dict[str, dict[str, Any]]:
    """Return the settings of endpoints by name; their files are relative to a folder."""
    tables = {name: table.model_dump() for name, table in endpoints.items()}
    for table in tables.values():
        if isinstance(table["target"], str):
            table["target"] = str(resolved(table["target"], folder))
        file, carrier = split_file(str(table["transport"]))
        if file is not None:
            table["transport"] = f"{resolved(file, folder)}:{carrier}"
    return tables


def _price_list(prices: Mapping[str, PriceConfig]) -> dict[str, Price]:
    return {name: Price(price.prompt, price.completion, price.cached) for name, price in prices.items()}


class LabelerConfig(BaseModel):
    """``[[labelers]]``: a kind, its options, and optionally a name.

    Attributes:
        kind: a labeler that `judgekit list labelers` shows, or your own class, ``my_labelers.py:Longest``.
        name: name of the labeling in tables and files; by default its spelling, ``judge(prompt=graded)``.
        card: the card that `judgekit judge-test` wrote of it; the report and the card of `judgekit build` cite it.
    """

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)
    kind: str
    name: str | None = None
    card: str | None = None

    @property
    def spec(self) -> str:
        """The labeler's spelling as the user gave it (``build`` makes it canonical)."""
        return with_options(self.kind, (self.model_extra or {}).items())

    @model_validator(mode="after")
    def _plain_options(self) -> LabelerConfig:
        if self.name is not None and not self.name.strip():
            raise ValueError("name is empty: leave it out to use the labeler's spelling as its name")
        for key, value in (self.model_extra or {}).items():
            if not isinstance(value, bool | int | float | str):
                raise ValueError(f"option {key!r} must be a text, a number or true/false")
        return self


class AnswersConfig(_Section, OutcomeConfig):
    """``[answers]``: end-to-end answering from the top k documents of each run.

    Attributes:
        import: file with your application's answers, or several. Other endpoints then answer only if ``endpoint`` names
            them. Rows without a run belong to the run that is the same file, else to the only run.
        answered_by: the model that gave the imported answers.
        endpoint: the endpoint that answers; by default the only one. Several answer in turn, and the decision is about
            the first.
        prompt: an answer prompt, or the path of your own.
        depths: numbers of documents to answer from.
        metrics: metrics that rate the answers: see `judgekit list metrics`, or name your own, ``my_metrics.py:Brief``.
        closed_book: also answer without any document, as a control.
        ratings: files of ratings by people or another tool; the decision is then about them. Nothing is answered,
            unless the table names an endpoint, a prompt, metrics or imported answers. Ratings may also be columns of
            imported answers.
        grades: people's grades of answers, written by `judgekit annotate read`: they correct the outcome.
        modes: modes of answering, see below: the decision is about the first, and a table compares them.
        context_tokens: largest number of tokens for the documents of a prompt, by estimate; the rest is cut.
        reverse: ratings or metrics whose small values are the good ones.
        as_given: those whose large values are the good ones, where tools disagree (hallucination, toxicity, bias).
        samples: how often each question is answered, at temperature 1 unless the endpoint has another. The mean of its
            answers counts, and the decision says how much is chance between them.
    """

    imported: _Several = Field(default=[], alias="import")
    answered_by: Annotated[str, Field(min_length=1)] = UNDECLARED
    endpoint: _Several = []
    prompt: str = ANSWER_PROMPT
    depths: Annotated[list[Positive], Field(min_length=1)] = [5]
    metrics: list[str] = [*ANSWER_METRICS]
    closed_book: bool = True
    ratings: list[str] = []
    grades: str | None = None
    modes: list[str] = []
    context_tokens: Positive | None = None
    reverse: list[str] = []
    as_given: list[str] = []
    samples: Positive = 1

    @property
    def directions(self) -> Directions:
        """The directions of metrics that the file declares."""
        # Imported here, since loading a file does not need the readers of replies.
        from judgekit.answers.direction import Directions

        return Directions(tuple(self.reverse), tuple(self.as_given))

    @property
    def endpoints(self) -> list[str | None]:
        """The names of the endpoints that answer; None stands for the only one."""
        return [*self.endpoint] or ([] if self.imported else [None])

    @property
    def declared(self) -> DeclaredOutcome:
        """The outcome as the file declares it."""
        return DeclaredOutcome(**{key: getattr(self, key) for key in settings_of(DeclaredOutcome)})

    @model_validator(mode="before")
    @classmethod
    def _ratings_need_no_llm(cls, given: Any) -> Any:
        """Answer nothing if there are ratings and nothing asks for answers: endpoints may be for labelers."""
        if not isinstance(given, dict) or not given.get("ratings"):
            return given
        # The endpoint may be a judge's, and answers beside the rated ones were not requested.
        wished = {"endpoint", "prompt", "metrics", "import"} & {*given}
        return given if wished else given | {"metrics": []}

    @model_validator(mode="after")
    def _some_quality(self) -> AnswersConfig:
        for metric in self.metrics:
            if self.metrics.count(metric) > 1:
                raise ValueError(f"metrics names {metric!r} twice")
        if self.reverse and self.as_given:
            self.directions  # noqa: B018  # raises if one is named both ways
        if self.samples > 1 and self.imported and not self.endpoint:
            raise ValueError(
                "samples asks a model several times, but these answers are imported: number several answers to a"
                " question in a column sample"
            )
        outcome = self.declared.outcome  # raises if the scale is unknown, whatever else the table holds
        if not (self.metrics or self.ratings or self.imported or outcome):
            raise ValueError("name the outcome to compare scores with: metrics, or files with ratings")
        return self

    @field_validator("depths")
    @classmethod
    def _distinct(cls, depths: list[int]) -> list[int]:
        return sorted(set(depths))


class MetricsConfig(_Section):
    """``[metrics]``: how runs are scored.

    Attributes:
        measures: measures; one without a cutoff is taken at every answer depth.
    """

    measures: Annotated[list[str], Field(min_length=1)] = ["nDCG", "P", "R", "AP", "RR", "Success"]


class Config(_Section):
    """A whole experiment file.

    Attributes:
        title: title of the report; by default the file's name, or the folder's name for ``experiment.toml``.
        accept_missing: the share of the labels of each labeling, and of the answers of each run, that may be missing
            without `judgekit run` ending with exit code 1; what is missing is listed in any case. `judgekit build`
            accepts none.
        runs: the table ``[runs]``, see below: a name and the file of each run.
        path: the file that it was read from; paths inside are relative to its folder.
    """

    title: str = ""
    accept_missing: Annotated[float, Field(ge=0, lt=1)] = 0.0
    data: DataConfig
    runs: Annotated[dict[str, RunConfig], Field(min_length=1)]
    endpoints: dict[str, EndpointConfig] = {}
    labelers: Annotated[list[LabelerConfig], Field(min_length=1)]
    answers: AnswersConfig = AnswersConfig()
    metrics: MetricsConfig = MetricsConfig()
    analysis: AnalysisConfig = AnalysisConfig()
    prices: dict[str, PriceConfig] = {}
    money: MoneyConfig = MoneyConfig()
    path: Path = Field(default=Path("experiment.toml"), exclude=True)

    @field_validator("runs")
    @classmethod
    def _run_names(cls, runs: dict[str, RunConfig]) -> dict[str, RunConfig]:
        if not all(name.strip() for name in runs):
            raise ValueError("the name of a run is empty")
        if ALL in runs:
            raise ValueError(f"a run cannot be named {ALL!r}: that name stands for the mean over runs")
        return runs

    @field_serializer("runs")
    def _files_alone(self, runs: dict[str, RunConfig]) -> dict[str, Any]:
        # TOML puts a table's plain keys before its tables, so a mix would lose the order of the runs.
        if all(run.model is None and not run.settings for run in runs.values()):
            return {name: run.file for name, run in runs.items()}
        return {name: run.model_dump(exclude_defaults=True) for name, run in runs.items()}

    @model_validator(mode="after")
    def _depth_covers_answers(self) -> Config:
        # An answer from documents below the pool has no labels to compare with.
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
        tables = _tables(self.endpoints, self.path.parent)
        return {name: Endpoint(name=name, **table) for name, table in tables.items()}

    def costs(self) -> Money:
        """Return the costs of things other than requests."""
        return Money(**self.money.model_dump())

    def rules(self) -> Rules:
        """Return the subject of the decision and the rules for claims."""
        return Rules(**self.analysis.model_dump())  # type: ignore[attr-defined]  # likewise

    def price_list(self) -> dict[str, Price]:
        """Return the prices by endpoint name or model id."""
        return _price_list(self.prices)

    def files(self) -> dict[str, Path]:
        """Return the data by role, as a manifest names it: ``queries``, ``docs``, ``docs 2``, ``run NAME``."""
        return by_role(*self._collected())

    def collection(self, cache: str | Path | None) -> Collection:
        """Read all queries, documents and runs; the index of a large collection lies in ``cache``."""
        queries, docs, runs = self._collected()
        data = self.data
        return Collection.make(queries, docs, runs, data.depth, data.fields, cache, drop_self=data.drop_self)

    def _collected(self) -> tuple[Path, list[Path], dict[str, Path]]:
        """Return the files of queries, of docs, and of runs by name."""
        runs = {name: self.resolve(run.file) for name, run in self.runs.items()}
        return self.resolve(self.data.queries), [self.resolve(file) for file in self.data.docs], runs

    def updated(self, **sections: Mapping[str, Any]) -> Config:
        """Return the experiment with other values of some keys, by section: ``config.updated(data={"limit": 10})``."""
        # Not checked again, because commands and `prepare` have checked the values.
        changed = {name: getattr(self, name).model_copy(update=dict(keys)) for name, keys in sections.items()}
        return self.model_copy(update=changed)

    def toml(self) -> str:
        """Return the file with every default written out."""
        return tomli_w.dumps(_without_none(self.model_dump(mode="json", by_alias=True)))


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(held) for key, held in value.items() if held is not None}
    if isinstance(value, list):
        return [_without_none(held) for held in value]
    return value


def read_servers(path: Path) -> tuple[dict[str, dict[str, Any]], dict[str, Price]]:
    """Return the tables of endpoints and the prices of an experiment file, which may hold nothing else."""
    with located(path):
        try:
            content = _content(path)
            form = _Servers.model_validate(content)
        except ValidationError as error:
            raise _speak(error, path) from None
    trust.check(content, path)
    return _tables(form.endpoints, path.parent), _price_list(form.prices)


def load(experiment: Config | str | Path, *, trusted: bool = False) -> Config:
    """Read an experiment file; return one that was already read as it is.

    Raises:
        ConfigError: it is no experiment, or what it would import, read from the environment and contact is not
            confirmed (`judgekit.experiment.trust`); ``trusted`` confirms it.
    """
    if isinstance(experiment, Config):
        return experiment
    path = Path(experiment)
    content = _content(path)
    config = parse_config(content, path)
    # After the checks: nobody should have to confirm what a broken file would do.
    if not trusted:
        trust.check(content, path)
    return config


def entries_of(source: Path) -> tuple[trust.Entry, ...]:
    """Return everything that an experiment file, or a results folder's, would import, read and contact."""
    if source.is_dir():
        content, path = _resolved(source)
    else:
        content, path = _content(source), source
    return trust.listed(content, path.parent)


def _content(path: Path) -> dict[str, Any]:
    if path.is_dir():
        # Users may give the folder, which often holds the file.
        own = path / "experiment.toml"
        cure = f"give {own}" if own.is_file() else "judgekit init makes one of a folder with data"
        raise ConfigError(f"is a folder; expected an experiment file: {cure}", path)
    content = b""
    try:
        content = read_bytes(path, "an experiment file")
        return tomllib.loads(content.decode())
    except DataError as error:
        raise ConfigError(error.reason, path) from None
    except UnicodeDecodeError:
        raise ConfigError("is not UTF-8: save the file as UTF-8, or give an experiment file (.toml)", path) from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"is not TOML: {_toml_problem(error, content)}; expected an experiment file", path) from error


def _toml_problem(error: Exception, content: bytes) -> str:
    """Return the error in a TOML file, for messages."""
    said = str(error)
    place = re.search(r"at line (\d+)", said)
    lines = content.decode(errors="replace").splitlines()
    if place and "\\" in "".join(lines[int(place[1]) - 1 : int(place[1])]):
        said += (
            ". A backslash between double quotes begins an escape: write the path between single quotes, as in"
            " 'C:\\data\\runs', or with forward slashes"
        )
    return said


def parse_config(content: dict[str, Any], path: Path) -> Config:
    """Check the content of an experiment file; ``path`` stands in messages and anchors relative paths."""
    with located(path):
        try:
            config = Config.model_validate({**content, "path": path})
        except ValidationError as error:
            raise _speak(error, path) from None
        # The classes check more than their forms: addresses, keys, scales, amounts.
        config.servers()
        with located(path, "analysis"):
            config.rules()
    return config


@contextmanager
def located(path: Path, key: str | None = None) -> Iterator[None]:
    """Add the experiment file and the place to an error, unless the error names a better one."""
    try:
        yield
    except ConfigError as error:
        if error.path not in (None, path):
            raise  # it names its own file, such as a prompt
        raise ConfigError(error.reason, path, error.key or key) from None
    except UsageError as error:
        raise ConfigError(str(error), path, key) from None


SECTIONS: Final[Mapping[str, type[BaseModel]]] = {
    "data": DataConfig,
    "runs": RunConfig,
    "endpoints": EndpointConfig,
    "labelers": LabelerConfig,
    "answers": AnswersConfig,
    "metrics": MetricsConfig,
    "analysis": AnalysisConfig,  # type: ignore[dict-item]  # a form with the fields of Rules
    "prices": PriceConfig,
    "money": MoneyConfig,
}
"""The form of every table of the file."""


_KINDS_OF_VALUE: Final = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("string_type", "path_type"), "a text in quotes"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("list_type", "tuple_type"), "a list in [ ]"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "a table"),
}
"""The requirement for a key, by pydantic's name of the problem."""


def _speak(error: ValidationError, path: Path | None) -> ConfigError:
    """Turn the first problem into a sentence for the user."""
    problems = error.errors()
    # A misspelt key is also a missing one; the misspelt name is more helpful.
    problem = next((p for p in problems if p["type"] == "extra_forbidden"), problems[0])
    location = [str(part) for part in problem["loc"]]
    key = ".".join(location)
    kind = problem["type"]
    if kind == "extra_forbidden":
        what: str = "table or key"
        section: type[BaseModel] = Config
        if len(location) > 1:
            what, section = "key", SECTIONS.get(location[0], Config)
        known = [field.alias or name for name, field in section.model_fields.items() if name != "path"]
        return ConfigError(not_among(what, location[-1], known), path, key)
    if kind == "missing":
        return ConfigError("is missing", path, key)
    if location == ["labelers"] and kind == "list_type":
        return ConfigError("write [[labelers]], with two brackets, above each labeler", path, key)
    if kind in _KINDS_OF_VALUE:
        return ConfigError(f"must be {_KINDS_OF_VALUE[kind]}, not {problem['input']!r}", path, key)
    given = "" if kind == "value_error" else f"; got {problem['input']!r}"
    return ConfigError(f"{in_our_words(problem['msg'])}{given}", path, key or None)


REPLIES_FILE: Final = "replies.parquet"
"""The file in a results folder with the cost of the replies behind labels."""


def labels_file(name: str, end: str = ".parquet") -> str:
    """Return the path of a labeling's labels in a results folder."""
    return f"labels/{slug(name)}{end}"


ANCHOR: Final = "# Paths are relative to "
"""The first line of the file that keeps a results folder's experiment."""

FILE: Final = "# The experiment file is "
"""The beginning of its second line."""


def resolved_toml(config: Config) -> str:
    """Return the experiment kept in a results folder."""
    return f"{ANCHOR}{config.path.parent.absolute()}\n{FILE}{config.path.name}\n{config.toml()}"


def experiment_of(folder: Path) -> Path | None:
    """Return the experiment file of a results folder; None for a folder without results."""
    with suppress(OSError, UnicodeDecodeError):
        first, second, *_ = (*(folder / "resolved.toml").read_text(encoding="utf-8").split("\n", 2), "")
        if first.startswith(ANCHOR) and second.startswith(FILE):
            return Path(first.removeprefix(ANCHOR), second.removeprefix(FILE))
    return None


def of_another(folder: Path, config: Config) -> str | None:
    """Return the experiment file of a results folder, if it is another one."""
    other = experiment_of(folder)
    if other is None or other.resolve() == config.path.resolve():
        return None
    return str(other)


def config_of(folder: Path) -> Config:
    """Return the experiment of a results folder.

    Raises:
        ConfigError, DataError: it has no results, or a version of judgekit with another form of file wrote them.
    """
    content, path = _resolved(folder)
    try:
        config = parse_config(content, path)
    except ConfigError as error:
        cure = "If another version of judgekit made these results, run the experiment again"
        raise ConfigError(f"{error.reason} {cure}", folder / path.name, error.key) from None
    trust.check(content, path, folder)
    return config


def _resolved(folder: Path) -> tuple[dict[str, Any], Path]:
    """Return the experiment kept in a results folder, and the file to which its paths are relative."""
    path, source = folder / "resolved.toml", experiment_of(folder)
    if source is None:
        raise DataError("does not hold results of `judgekit run` (no resolved.toml)", folder)
    return tomllib.loads(path.read_text(encoding="utf-8")), source.parent / path.name
