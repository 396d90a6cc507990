"""The values that go over the wire: endpoint, request, reply, failure.

A request is plain data. Everything expensive (storing, sending, limiting, counting) happens to requests outside
of the labelers that made them, which is why a labeler can be tested without a network and why a re-run, another
run with the same pair or another k never pays twice.

Prompts are sent as chat completions. A *completion* takes one text, for base models without a chat template. A reranker
takes a question and a document, and replies with a score (`judgekit.wire.scores`). The body of a request has the shape
of its API, so that it is stored as sent, with its own identity; a reply is stored as it came, and read here as if it
were a chat completion.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, Protocol, TypeVar, get_args

from judgekit.data.streams import note_read
from judgekit.data.tables import UNDECLARED, Status
from judgekit.errors import ConfigError, UsageError
from judgekit.spec import split_file, user_code
from judgekit.wire.access import RECORDED_URL, address_problem, header_problem, key_among, variable_problem
from judgekit.wire.jsontext import at, canonical, parse_json
from judgekit.wire.scores import with_choices
from judgekit.wire.usage import tokens_used

_MAKERS: Final = frozenset({"meta", "google", "microsoft", "openai", "anthropic", "mistralai", "nvidia", "the", "my"})
"""Words for the maker in front of a model's name."""

IDENTITY_VERSION: Final = 1
"""Hashed into every identity, and fixed: another number would lose every reply that was paid for."""

CONSTRAINTS = frozenset({"response_format", "structured_outputs", "regex", "ebnf", "grammar"})
"""The fields of a request body with constraints: OpenAI's and vLLM's."""

Carrier = Literal["http", "openai"]
Api = Literal["chat", "completions", "rerank", "score"]
ROUTES: Final[Mapping[Api, str]] = {
    "chat": "/v1/chat/completions",
    "completions": "/v1/completions",
    "rerank": "/v1/rerank",
    "score": "/v1/score",
}
"""The route of each API, as batch files name it."""

SHOWN: Final[Mapping[str, str]] = {
    "chat": "messages",
    "completions": "prompt",
    "rerank": "documents",
    "score": "text_2",
}
"""The field of the body that holds each API's prompt."""

ASKED: Final = ("query", "text_1")
"""The fields that hold a reranker's question."""

_CUE: Final = "Reply:"
# OpenAI refuses a completion with more alternatives than these.
_MOST: Final = 5

_SAID: Final = 150
"""Number of characters shown of malformed headers."""

_ROOMS = frozenset({"max_tokens", "max_completion_tokens"})
_OURS = frozenset({"model", "stream", "texts", *ASKED, *SHOWN.values()})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An OpenAI-compatible server and the model to ask there, or your own application that answers questions.

    It holds the *name* of the key's variable, never a key.

    Attributes:
        patience_s: seconds for which failed requests are retried; a tenth of it for an endpoint that has never
            answered.
        max_reply_bytes: size limit of an unpacked reply, a thousand times the size of a verdict.
        name: the endpoint's name.
        base_url: e.g. ``http://localhost:8000/v1``; ``recorded:`` replays the bundled sample's replies.
        model: model id to send.
        api_key_env: name of the environment variable that holds the key, if one is needed.
        transport: ``http``, judgekit's own client; ``openai``, the openai package; or your own: ``"my_file.py:Mine"``,
            an object with an async ``send(endpoint, body)`` that returns (status, headers, bytes), or an
            ``openai.AsyncOpenAI`` (or Azure's) with its own address and key. Not part of a request's identity.
        headers: further headers of each request; ``"env:NAME"`` is the value of an environment variable.
        revision: your name for the weights; changing it makes all requests new.
        namespace: replaces ``base_url`` in the identity of requests, for replicas and changing ports.
        concurrency: largest number of requests in flight.
        timeout_s: seconds that one attempt may take, once it holds a slot.
        max_retries: number of retries of a failed request.
        requests_per_minute: largest number of requests per minute; by default there is no limit.
        params: further fields of each request body, e.g. ``{"temperature": 0, "seed": 1}``. They are part of the
            identity of a request.
        api: ``chat`` (completions); ``completions`` of one text, for base models without a chat template; for a
            reranker ``rerank``, or ``score`` for vLLM's route of that name.
        target: your application instead of a server: a Python function (question, documents) -> answer, or its file and
            name, ``"my_app.py:answer"``. It only answers questions. Declare the LLM inside as ``model``. Its code (the
            file, or the function's source) is part of its identity, unless there is a ``revision``.
        thinks: the model reasons in its replies without marking the beginning: the reply follows ``</think>``. No
            constraint is sent then.
        identity: its part of a request's identity: the namespace, else the base_url, and the revision if there is one.
    """

    patience_s: ClassVar[float] = 900.0
    max_reply_bytes: ClassVar[int] = 8_000_000

    name: str
    base_url: str = ""
    model: str = ""
    api_key_env: str | None = None
    namespace: str | None = None
    revision: str | None = None
    concurrency: int = 16
    timeout_s: float = 120.0
    max_retries: int = 6
    requests_per_minute: float | None = None
    params: Mapping[str, Any] = field(default_factory=dict, hash=False)
    thinks: bool = False
    transport: Any = field(default="http", hash=False)
    headers: Mapping[str, str] = field(default_factory=dict, hash=False)
    api: Api = "chat"
    target: Any = field(default=None, hash=False)
    identity: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, problem in self._problems():
            raise ConfigError(problem, key=f"endpoints.{self.name}.{name}")
        version = ""
        if self.target is not None:
            version = self._code()
        if self.revision:
            version = f"revision {self.revision}"
        if self.application and not self.model.strip():
            object.__setattr__(self, "model", UNDECLARED)
        identity = self.namespace or self.base_url.rstrip("/")
        if version:
            identity += f" ({version})"
        object.__setattr__(self, "identity", identity)

    def _problems(self) -> Iterator[tuple[str, str]]:
        """Yield the problems of the given values: each name, and why its value cannot be used."""
        if self.api not in ROUTES:
            yield "api", f"must be one of {', '.join(map(repr, ROUTES))}, not {self.api!r}"
        if self.own_transport and not self._carries():
            carriers = "'http', 'openai', 'my_file.py:Mine' or an object with send(endpoint, body)"
            yield "transport", f"must be {carriers}, not {self.transport!r}"
        if self.application:
            if self.api != "chat":
                yield "api", "is for LLMs: leave it out of an endpoint with your own application (target)"
            if self.own_transport:
                yield "transport", "cannot be combined with your own application, which carries requests itself"
        else:
            if self.scores and (self.transport == "openai" or hasattr(self.transport, "chat")):
                yield "transport", f"the openai package has no route for api = {self.api!r}: leave transport out"
            if not self.model.strip():
                yield "model", "model is empty"
            problem = address_problem(self.base_url)
            if problem is not None and not self.built_in:
                yield "base_url", problem
        yield from self._unsendable()
        if self.concurrency < 1:
            yield "concurrency", f"must be at least 1, not {self.concurrency}"
        if self.max_retries < 0:
            yield "max_retries", f"must be at least 0, not {self.max_retries}"
        if not self.timeout_s > 0:
            yield "timeout_s", f"must be positive, not {self.timeout_s}"

    def _carries(self) -> bool:
        """Return whether the user's transport is an object, or the name of one in a file."""
        if isinstance(self.transport, str):
            return split_file(self.transport)[0] is not None
        return callable(getattr(self.transport, "send", None)) or hasattr(self.transport, "chat")

    def _unsendable(self) -> Iterator[tuple[str, str]]:
        """Yield why parameters, headers or the name of the key's variable cannot be sent or must not be kept."""
        params = dict(self.params)
        for name, value in sorted(params.items()):
            if name in _OURS:
                yield f"params.{name}", f"judgekit sets {name} itself; leave it out"
            if name in _ROOMS and (type(value) is not int or value < 1):
                yield f"params.{name}", f"must be a whole number of at least 1, not {value!r}"
        key = key_among(params)
        if key is not None:
            yield "params", f"{key} looks like a key, and what is sent is stored: put it in a variable, see api_key_env"
        for name, value in self.headers.items():
            problem = header_problem(name, value)
            if problem is not None:
                yield f"headers.{name}", problem
        if self.api_key_env is not None:
            problem = variable_problem(self.api_key_env)
            if problem is not None:
                yield "api_key_env", problem
        try:
            canonical(params)
        except (TypeError, ValueError) as error:
            yield "params", f"cannot be sent as JSON: {error}"

    def _code(self) -> str:
        """Set the callable's address, and return the identity of its code."""
        where = f"endpoints.{self.name}.target"
        if callable(self.target):
            name = getattr(self.target, "__qualname__", type(self.target).__name__)
            try:
                source = inspect.getsource(self.target).encode()
            except (OSError, TypeError):
                source = b""
            if not (source or self.revision):
                raise ConfigError("its code cannot be read: give the endpoint a revision", key=where)
        else:
            file, _, function = str(self.target).rpartition(":")
            name = f"{Path(file).name}:{function}"
            if not (file.endswith(".py") and function.isidentifier()):
                raise ConfigError(f"must be a file and a function, my_app.py:answer, not {self.target!r}", key=where)
            try:
                source = Path(file).read_bytes()
            except OSError as problem:
                raise ConfigError(f"cannot read {file}: {problem.strerror}", key=where) from None
            note_read(Path(file))
        object.__setattr__(self, "base_url", f"callable:{name}")
        return f"code {hashlib.sha256(source).hexdigest()[:16]}"

    @property
    def own_transport(self) -> bool:
        """Whether the user's own transport carries its requests."""
        return self.transport not in get_args(Carrier)

    @property
    def application(self) -> bool:
        """Whether it is the user's own application, which only answers questions."""
        return self.target is not None

    @property
    def scores(self) -> bool:
        """Whether it is a reranker, which replies with a score instead of text."""
        return self.api in ("rerank", "score")

    @property
    def reranker(self) -> Endpoint:
        """Itself, where a reranker is needed.

        Raises:
            UsageError: it is an LLM or an application.
        """
        if not self.scores:
            raise UsageError(
                f'endpoint {self.name!r} is no reranker: if its server has a route /rerank, give it api = "rerank"'
            )
        return self

    @property
    def llm(self) -> Endpoint:
        """Itself, where an LLM is needed.

        Raises:
            UsageError: it is an application or a reranker.
        """
        if self.scores:
            raise UsageError(
                f"endpoint {self.name!r} is a reranker (api = {self.api!r}), but an LLM is needed here: name another"
                " endpoint"
            )
        if self.application:
            raise UsageError(
                f"endpoint {self.name!r} is an application that answers questions, but an LLM is needed"
                " here: name another endpoint"
            )
        return self

    @property
    def built_in(self) -> bool:
        """Whether judgekit answers itself, with no server and no key."""
        return self.base_url == RECORDED_URL


def family_of(model: str) -> str:
    """Return the family in a model's id: its first word, ``qwen`` for ``Qwen/Qwen2.5-7B``."""
    words = re.findall(r"[a-z]{2,}", model.rpartition("/")[2].casefold())
    return next((word for word in words if word not in _MAKERS), "")


class NotConnectedError(ConnectionError):
    """No connection was made: nothing listens there, the name is unknown, or its certificate is not trusted."""


class MalformedHeadError(ConnectionError):
    """A server answered with HTTP headers that no client accepts, so its reply cannot be read."""

    def __init__(self, said: str) -> None:
        what = " ".join(said.replace("^", "").split())
        super().__init__(
            f"the server answered, but its HTTP headers are malformed ({what[:_SAID]}), so its reply cannot be read."
            " Mend the server, or the proxy in front of it"
        )


class TooLargeError(OSError):
    """A response exceeds the size limit of replies; the rest is not read."""

    def __init__(self, most: int) -> None:
        super().__init__(f"a reply of more than {most / 1e6:g} MB")


def identity(endpoint: str, sample: int, body: bytes) -> str:
    """Return the identity of a request: SHA-256 (hex) of identity version, endpoint identity, sample and body."""
    return hashlib.sha256(b"%d\n%b\n%d\n%b" % (IDENTITY_VERSION, endpoint.encode(), sample, body)).hexdigest()


# Not frozen: a million are made, and frozen ones take four times as long.
@dataclass(slots=True)
class Request:
    """A request for one chat completion. Never modified.

    Attributes:
        endpoint: where to ask.
        body: canonical JSON of the request body as the labeler made it, before any parameter negotiation.
        sample: tells repeated samples of one body apart; without it, n samples would share one reply.
        again: whether it repeats a request whose reply could not be used; counted apart.
        constraint: further fields of the body that hold the model to a form of reply. They are added when it is sent,
            if the server takes them, and are not part of its identity.
        free: whether it is sent without the constraints in its body, because a reply under them came back blank or cut.
        key: the identity, see `identity`.
    """

    endpoint: Endpoint
    body: bytes
    sample: int = 0
    again: bool = field(default=False, compare=False)
    constraint: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    free: bool = field(default=False, compare=False)
    key: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.key = identity(self.endpoint.identity, self.sample, self.body)

    def __hash__(self) -> int:
        return hash(self.key)


def shaped(api: str, model: str, messages: Sequence[Mapping[str, Any]], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a request in the shape of its API."""
    body: dict[str, Any] = {"model": model, SHOWN[api]: list(messages), **fields}
    if api == "completions":
        # A base model continues after the cue.
        parts: list[str] = []
        for message in messages:
            text = str(message["content"])
            parts.append(f"{_CUE} {text}" if message["role"] == "assistant" else text)
        body["prompt"] = "\n\n".join([*parts, _CUE])
        top = body.pop("top_logprobs", None)
        if body.pop("logprobs", None) is not None and top is not None:
            body["logprobs"] = min(top, _MOST)
    return body


def shown_text(body: Mapping[str, Any]) -> str:
    """Return the text that a request shows the model, for any API."""
    if "prompt" in body:
        return str(body["prompt"])
    if any(name in body for name in ASKED):
        return "\n".join(str(body.get(name, "")) for name in (*ASKED, "documents", "texts", "text_2"))
    return "\n".join([str(message.get("content")) for message in body.get("messages", ())])


def chat(endpoint: Endpoint, messages: Sequence[Mapping[str, str]], *, sample: int = 0, **params: Any) -> Request:
    """Return the request for one chat completion; ``params`` override the endpoint's."""
    body = shaped(endpoint.api, endpoint.llm.model, messages, {**endpoint.params, **params})
    return Request(endpoint, canonical(body), sample)


Origin = tuple[str, str]
"""The model and the fingerprint that a reply names, or ""."""


class Reply:
    """An endpoint's reply to one request: the raw JSON, and what is in it. Never modified once it is stored.

    Attributes:
        key: identity of the request.
        raw: the JSON text of the response body, as it came.
        cached: whether it was replayed from the store.
        text: the answer's text, without any reasoning (a field of its own, or part of the content).
        refusal: the refusal text, if the model declined.
        finish_reason: why the reply ended, in the server's own words (see `judgekit.reading.verdict.unfinished`), or
            None.
        logprobs: the token log-probabilities of the answer (OpenAI's ``logprobs.content``), or None.
        usage: its tokens, or None if the server reported none that make sense.
        seconds: time from sending the request to having the reply; None if unknown.
        stored_at: when it was stored, seconds since 1970; None before it is.
        origin: the model and the fingerprint that the reply names.
    """

    # Everything is read when it is made, since each part is needed several times, a million times over. The parsed body
    # is not kept: long-lived objects slow the garbage collector.
    __slots__ = (
        *("cached", "finish_reason", "key", "logprobs", "origin", "raw", "refusal", "seconds", "stored_at", "text"),
        "usage",
    )

    def __init__(
        self,
        key: str,
        raw: str,
        cached: bool = False,
        body: Any = None,
        seconds: float | None = None,
        stored_at: float | None = None,
    ) -> None:
        """Read a reply; ``body`` is the parsed ``raw``, if it is parsed already."""
        if body is None:
            body = parse_json(raw)
        body = with_choices(body)
        choice = chosen(body)
        message = choice.get("message")
        if not isinstance(message, dict):
            message = {}
        content, refusal, logprobs = message.get("content"), message.get("refusal"), choice.get("logprobs")
        self.key = key
        self.raw = raw
        self.cached = cached
        self.text = content if isinstance(content, str) else _joined(content)
        reason = choice.get("finish_reason")
        self.finish_reason = reason if reason is None or isinstance(reason, str) else str(reason)
        self.refusal = str(refusal) if refusal else None
        tokens = None if logprobs is None else at(logprobs, "content")
        self.logprobs: list[dict[str, Any]] | None = tokens if isinstance(tokens, list) else None
        self.usage = tokens_used(body)
        self.seconds = seconds
        self.stored_at = stored_at
        model, mark = body.get("model"), body.get("system_fingerprint")
        self.origin: Origin = (model if type(model) is str else "", mark if type(mark) is str else "")

    def __repr__(self) -> str:
        return f"Reply({self.key!r}, {self.raw!r}, cached={self.cached})"


def chosen(body: Mapping[str, Any]) -> Any:
    """Return the choice of index 0, or the first one if none has that index, in the shape of a chat completion's."""
    choices = body["choices"]
    choice = choices[0]
    if len(choices) > 1:
        choice = next((listed for listed in choices if isinstance(listed, dict) and listed.get("index") == 0), choice)
    completed = isinstance(choice, dict) and "message" not in choice and "finish_reason" in choice
    if completed and "score" in choice:
        return {**choice, "message": {"content": repr(choice["score"])}}
    if completed and isinstance(choice.get("text"), str):
        return {**choice, "message": {"content": choice["text"]}, "logprobs": _paired(choice.get("logprobs"))}
    return choice


def _paired(logprobs: Any) -> dict[str, Any] | None:
    """Return a completion's log-probabilities, given as parallel lists, as a list of tokens."""
    if isinstance(logprobs, dict) and isinstance(logprobs.get("content"), list):
        return logprobs  # llama-server's are in the shape of a chat completion's
    if not isinstance(logprobs, dict) or not isinstance(logprobs.get("tokens"), list):
        return None
    tokens = logprobs["tokens"]
    own, tops = ((logprobs.get(name) or [None] * len(tokens)) for name in ("token_logprobs", "top_logprobs"))
    return {
        "content": [
            {
                "token": token,
                "logprob": logprob,
                "top_logprobs": [{"token": t, "logprob": p} for t, p in (top or {}).items()],
            }
            for token, logprob, top in zip(tokens, own, tops, strict=False)
        ]
    }


def _joined(content: Any) -> str:
    """Return the text of a content in parts, without thinking."""
    if not isinstance(content, list):
        return ""
    texts: list[str] = []
    for part in content:
        text = at(part, "text")
        if at(part, "type") == "text" and isinstance(text, str):
            texts.append(text)
    return "".join(texts)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request has no reply. Never stored, so running again asks again.

    Attributes:
        key: identity of the request.
        status: usually `Status.FAILED`.
        reason: a sentence for the user, with the server's own message if it sent one.
    """

    key: str
    status: Status
    reason: str


Outcome = Reply | Failure

U = TypeVar("U", contravariant=True)


class Program(Protocol[U]):
    """A pure function from a unit and its outcomes so far to further requests.

    ``replies`` holds the outcomes of all requests made for this unit so far, in the order they were returned. It is
    called again with the new outcomes, until it returns []. One wave is the common case. It may have a method
    ``most(unit)``, see `most_requests`.
    """

    def requests(self, unit: U, replies: Sequence[Outcome], /) -> list[Request]:
        """Return the next wave of requests; [] when nothing more is needed."""
        ...


def next_requests(program: Program[U], unit: U, replies: Sequence[Outcome]) -> list[Request]:
    """Return the next wave of a unit; an error of a user's own program names the unit and the line."""
    if type(program).__module__.startswith("judgekit."):
        return program.requests(unit, replies)
    file = type(program).requests.__code__.co_filename
    with user_code(lambda: f"{about(program, unit)}: requests", file):
        return program.requests(unit, replies)


def about(program: Any, unit: Any) -> str:
    """Return the program and the unit of a message, as far as known."""
    if isinstance(unit, tuple):  # of several stages as one program
        program, unit = unit
    named = [str(getattr(program, "spec", type(program).__name__))]
    if query := getattr(unit, "query", None):
        named.append(f"query {query.query_id!r}")
    for doc in getattr(unit, "docs", ())[:1]:
        named.append(f"doc {doc.doc_id!r}")
    return ", ".join(named)


def most_requests(program: Program[U], unit: U) -> int | None:
    """Return the largest number of requests of a unit in all waves; None if its program does not say."""
    most: Callable[[U], int | None] | None = getattr(program, "most", None)
    return None if most is None else most(unit)


class Transport(Protocol):
    """Carries the bytes of one request to an endpoint. It neither retries nor interprets."""

    async def send(self, endpoint: Endpoint, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        """POST a chat-completion body; return (HTTP status, headers, response body)."""
        ...

    async def aclose(self) -> None:
        """Close what is open; by default nothing is."""
        return
