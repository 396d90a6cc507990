"""Batches at a service: requests without a stored reply are uploaded and answered there.

That usually costs half of the price and takes up to a day. The service has OpenAI's routes for files and batches;
Azure's have the same. Submissions are noted in the store until their replies are imported, so that no request is
submitted twice. The note is written before the batch is created and completed afterwards: if the process dies in
between, the batch is found at the service by its file.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, TypeVar

import orjson

from judgekit.client.batch.files import BatchExport, BatchImport, export_batch, import_batch
from judgekit.client.transports import http_options, openai_options
from judgekit.errors import EndpointError, StoreError, UsageError
from judgekit.store.replies import Store
from judgekit.wire.access import Secret, headers_of
from judgekit.wire.types import ROUTES, Endpoint, Program

if TYPE_CHECKING:
    import openai
    from openai.types import Batch

FINAL: Final = ("completed", "failed", "expired", "cancelled")
"""The states of a batch that a service no longer works on."""

U = TypeVar("U")


@dataclass(frozen=True, slots=True)
class Submission:
    """A batch at a service, as the store keeps it until its replies are imported.

    Attributes:
        endpoint: the endpoint's part of the identity of requests.
        model: the model that is asked.
        file: the service's id of the uploaded file.
        batch: the service's id of the batch; None if the process ended before receiving it.
        time: when it was submitted, seconds since 1970.
        keys: the identities of the requests.
    """

    endpoint: str
    model: str
    file: str
    batch: str | None
    time: float
    keys: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its name in the store."""
        return hashlib.sha256(f"{self.endpoint} {self.file}".encode()).hexdigest()[:32]


@contextmanager
def service(endpoint: Endpoint) -> Iterator[openai.OpenAI]:
    """Yield a client with an endpoint's key and proxy; report errors as a sentence without the key."""
    import openai

    if endpoint.built_in:
        raise UsageError(f"endpoint {endpoint.name!r} ({endpoint.base_url}) has no batch service")
    secret, http = Secret.of(endpoint), openai.DefaultHttpxClient(**http_options(endpoint))
    client = openai.OpenAI(**openai_options(endpoint), default_headers=headers_of(endpoint), http_client=http)
    try:
        yield client
    except openai.APIError as problem:
        reason = secret.cut(str(getattr(problem, "message", problem)))
        raise EndpointError(
            f"the batch service of endpoint {endpoint.name!r} at {endpoint.base_url}: {reason}. The store has"
            " a note of every submitted batch: run the command again"
        ) from None
    finally:
        client.close()


def _noted(store: Store) -> list[Submission]:
    try:
        rows = [orjson.loads(text) for text in store.submissions()]
        return [Submission(**{**row, "keys": tuple(row["keys"])}) for row in rows]
    except (KeyError, TypeError, ValueError):
        raise StoreError(
            f"the store {store.path} holds a damaged note of a submitted batch: download the result files from your"
            " batch service and import them with `judgekit batch import`"
        ) from None


def _note(store: Store, submission: Submission) -> None:
    store.note_submission(submission.name, orjson.dumps(asdict(submission)).decode())


def _found(store: Store, client: openai.OpenAI, submission: Submission) -> Submission | None:
    """Return a submission with its batch, found by its file if not noted; None if there is none."""
    if submission.batch is not None:
        return submission
    # The client turns the pages itself; the newest batches come first.
    for batch in client.batches.list(limit=100):
        if batch.input_file_id == submission.file:
            known = replace(submission, batch=batch.id)
            _note(store, known)
            return known
    return None


def _by_endpoint(store: Store, endpoints: Iterable[Endpoint]) -> dict[Endpoint, list[Submission]]:
    """Return the submissions to endpoints, each once."""
    whose: Mapping[tuple[str, str], Endpoint] = {(e.identity, e.model): e for e in endpoints}
    submitted: dict[Endpoint, list[Submission]] = {}
    for submission in sorted(_noted(store), key=lambda submission: submission.time):
        endpoint = whose.get((submission.endpoint, submission.model))
        if endpoint is not None:
            submitted.setdefault(endpoint, []).append(submission)
    return submitted


def working_on(store: Store, endpoints: Iterable[Endpoint]) -> list[Endpoint]:
    """Return the endpoints that have batches of this store; stops once every batch has its endpoint."""
    open_ = {(submission.endpoint, submission.model) for submission in _noted(store)}
    found: list[Endpoint] = []
    # Going through all requests takes long, but most jobs ask one endpoint, which their first request names.
    source = iter(endpoints)
    while open_ and (endpoint := next(source, None)) is not None:
        whom = endpoint.identity, endpoint.model
        if whom in open_:
            open_.discard(whom)
            found.append(endpoint)
    return found


def submit(store: Store, units: Iterable[U], program: Program[U], endpoints: Iterable[Endpoint]) -> BatchExport:
    """Upload the requests without a stored reply, and create batches of them."""
    for endpoint, submissions in _by_endpoint(store, endpoints).items():
        unknown = [submission for submission in submissions if submission.batch is None]
        # A process may have died between upload and answer: without this look, the batch would be paid twice.
        if unknown:
            with service(endpoint) as client:
                for submission in unknown:
                    if _found(store, client, submission) is None:
                        store.forget_submission(submission.name)
    under_way = {key for submission in _noted(store) for key in submission.keys}
    with TemporaryDirectory(prefix="judgekit-") as folder:
        exported = export_batch(store, units, program, Path(folder, "batch.jsonl"), under_way=under_way)
        for file, endpoint in exported.files.items():
            with service(endpoint) as client:
                _send(store, client, endpoint, file)
    return exported


def _send(store: Store, client: openai.OpenAI, endpoint: Endpoint, file: Path) -> None:
    import openai

    with file.open("rb") as stream:
        keys = tuple(orjson.loads(line)["custom_id"] for line in stream)
    uploaded = client.files.create(file=file, purpose="batch")
    submission = Submission(
        endpoint.identity, endpoint.model, file=uploaded.id, batch=None, time=time.time(), keys=keys
    )
    # Noted before the batch exists: if the process dies in between, the batch is found by its file and not paid for
    # twice.
    _note(store, submission)
    try:
        # Not retried by the client: a batch whose confirmation was lost is found by its file.
        route: Any = ROUTES[endpoint.api]
        batch = client.with_options(max_retries=0).batches.create(
            input_file_id=uploaded.id, endpoint=route, completion_window="24h"
        )
    except openai.APIStatusError as problem:
        # Refused for good, so there is no batch to look for; after a 5xx there may be one.
        if problem.status_code < 500:
            store.forget_submission(submission.name)
        raise
    _note(store, replace(submission, batch=batch.id))


@dataclass(frozen=True, slots=True)
class Fetched:
    """A batch's state at the service, and its imported replies.

    Attributes:
        endpoint: who was asked.
        submission: what was submitted.
        batch: the service's state of it; None if unknown there.
        problems: why the service refused the batch as a whole.
        imports: the imports, one of replies and one of errors; empty while the batch goes on.
    """

    endpoint: Endpoint
    submission: Submission
    batch: Batch | None
    problems: tuple[str, ...] = ()
    imports: tuple[BatchImport, ...] = ()


def fetch(store: Store, endpoints: Iterable[Endpoint]) -> Iterator[Fetched]:
    """Import the replies of all batches that have ended; those of the others are left for another time."""
    for endpoint, submissions in _by_endpoint(store, endpoints).items():
        with service(endpoint) as client:
            for submission in submissions:
                known = _found(store, client, submission)
                if known is None or known.batch is None:
                    yield Fetched(endpoint, submission, None)
                    continue
                batch = client.batches.retrieve(known.batch)
                ended, imports = batch.status in FINAL, list[BatchImport]()
                with TemporaryDirectory(prefix="judgekit-") as folder:
                    for file in filter(None, (batch.output_file_id, batch.error_file_id)) if ended else ():
                        with client.files.with_streaming_response.content(file) as response:
                            response.stream_to_file(Path(folder, "results.jsonl"))
                        imports.append(import_batch(store, Path(folder, "results.jsonl")))
                if ended:
                    store.forget_submission(known.name)
                errors = batch.errors.data if batch.errors else None
                yield Fetched(
                    endpoint, known, batch, tuple(str(error.message) for error in errors or ()), tuple(imports)
                )
