"""The pool of an experiment in partitions of its queries, each worked on by itself, anywhere and again after a failure.

A partition is a file with one row that holds everything it needs: queries, documents and ranked lists. In the folder
(of this machine, or any address that fsspec knows: ``s3://…``, ``gs://…``) there are, for ``part-00003-of-00008``:

    partitions/   its row
    replies/      a folder of segments, JSON lines as `judgekit cache export` writes them: what was paid for, every few
                  seconds, and one segment in their place at the end
    labels/NAME/, answers/NAME/, scores/   its tables
    done/         what it took; it is written last, and a partition that has it is skipped

Queries with the same text are in the same partition, so that no request is in two. There is a power of two of them, so
that replies find their way where a pool has grown and has more partitions than before.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import io
import json
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import pandas as pd

from judgekit import __version__, stages
from judgekit.answers.imported import Imported
from judgekit.client.leases import Lease
from judgekit.client.session import Session
from judgekit.data.documents import Doc, MemoryDocs, Query
from judgekit.data.files import read_table, write_table
from judgekit.data.labelings import LabelFile, Labeling
from judgekit.data.runs import Run
from judgekit.data.streams import temporary
from judgekit.data.tables import LABELS, QUALITY, Status, Table
from judgekit.errors import StoreError
from judgekit.experiment.file import Config
from judgekit.experiment.prepare import Prepared, programs
from judgekit.metrics import parse_measures
from judgekit.progress import Event
from judgekit.spec import slug
from judgekit.store.maintenance import export_store, import_store
from judgekit.store.records import Record
from judgekit.store.replies import Store
from judgekit.wire.types import Reply

__all__ = ["Folder", "Job", "Partition", "collect_tables", "read_done", "run_partition", "write_partitions"]


class Folder:
    """A folder on any file system. What is written there is whole or absent."""

    def __init__(self, address: str) -> None:
        import fsspec

        self.files, self.root = fsspec.core.url_to_fs(address)
        self.local = "file" in self.files.protocol

    def write(self, name: str, content: bytes) -> None:
        """Write a file. Stores of objects show one once it is whole; on disks it is renamed."""
        path = f"{self.root}/{name}"
        self.files.makedirs(path.rpartition("/")[0], exist_ok=True)
        if not self.local:
            self.files.pipe_file(path, content)
            return
        partial = temporary(Path(path))
        partial.write_bytes(content)
        partial.replace(path)

    def read(self, name: str) -> bytes | None:
        """Return what a file holds, None if it is not there."""
        with suppress(FileNotFoundError):
            content: bytes = self.files.cat_file(f"{self.root}/{name}")
            return content
        return None

    def names(self, folder: str) -> list[str]:
        """Return the names of what is in a folder, sorted; without what is being written."""
        with suppress(FileNotFoundError):
            self.files.invalidate_cache(f"{self.root}/{folder}")
            found = (str(path).rpartition("/")[2] for path in self.files.ls(f"{self.root}/{folder}", detail=False))
            return sorted(name for name in found if not name.startswith("."))
        return []

    def everything(self) -> list[str]:
        """Return the names of all files, in folders too."""
        self.files.invalidate_cache(self.root)
        return [str(path).removeprefix(f"{self.root}/") for path in self.files.find(self.root)]

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with suppress(FileNotFoundError):
            self.files.rm_file(f"{self.root}/{name}")

    def write_frame(self, name: str, frame: pd.DataFrame) -> None:
        """Write a table as Parquet."""
        with tempfile.TemporaryDirectory(prefix="judgekit-") as folder:
            path = Path(folder, "table.parquet")
            write_table(frame, path)
            self.write(name, path.read_bytes())


@dataclass(frozen=True)
class Partition:
    """What is known of a partition without reading it."""

    name: str
    pairs: int
    answers: int
    digest: str


@dataclass(frozen=True)
class Job:
    """What is done with every partition, as any worker can be told.

    Attributes:
        folder: the address of the folder.
        config: the experiment, without answers that were imported; its path is absolute.
        measures: the spellings of the measures.
        stages: the names of the stages that answer.
        wait_s: how long a server that is not ready is waited for.
        digest: of all that decides what the tables are, but for the partitions themselves.
    """

    folder: str
    config: Config
    measures: tuple[str, ...]
    stages: tuple[str, ...]
    wait_s: float
    digest: str

    @classmethod
    def of(cls, prepared: Prepared, folder: str, hashes: Sequence[str], wait_s: float = 0.0) -> Job:
        """Return the job of an experiment; ``hashes`` are those of the files that it reads."""
        # What was imported is there already, and is rated where the partitions come together.
        config, all_asked = prepared.config.updated(answers={"imported": None}), prepared.answering.items()
        asked = tuple(name for name, one in all_asked if not isinstance(one.answerer, Imported))
        servers = [
            (e.name, e.identity, e.model, e.api, sorted(e.params.items()), e.complete) for e in prepared.endpoints
        ]
        measures = tuple(map(str, prepared.measures))
        parts = (config.data, config.labelers, config.answers, config.metrics, servers, measures, sorted(hashes))
        digest = hashlib.sha256(repr((__version__, parts)).encode()).hexdigest()
        config = config.model_copy(update={"path": config.path.absolute()})
        return cls(folder, config, measures, asked, wait_s, digest)


def _place(query: Query, of: int) -> int:
    said = json.dumps([query.text, [dict(one) for one in query.messages]])
    return int.from_bytes(hashlib.sha256(said.encode()).digest()[:8]) % of


def write_partitions(prepared: Prepared, job: Job, pairs: int) -> list[Partition]:
    """Write the partitions, each of about so many pairs at most, and remove tables that are not of them."""
    collection, config, folder = prepared.collection, prepared.config, Folder(job.folder)
    of = 1
    while of * pairs < collection.n_pairs:
        of *= 2
    places: dict[int, list[str]] = {}
    for query_id, query in collection.queries.items():
        places.setdefault(_place(query, of), []).append(query_id)
    out = []
    for number, query_ids in sorted(places.items()):
        part, name = collection.only(query_ids), f"part-{number:05}-of-{of:05}"
        content = _row(part)
        asked = stages.answer_units(part, config.answers.depths, config.answers.closed_book)
        one = Partition(name, part.n_pairs, len(asked), f"{job.digest}-{hashlib.sha256(content).hexdigest()}")
        out.append(one)
        path = f"partitions/{name}.parquet"
        if not read_done(folder, name, one.digest) or folder.read(path) is None:
            folder.remove(f"done/{name}.json")
            row = pd.DataFrame({"name": [name], "digest": [one.digest], "content": [content]})
            folder.write(path, row.to_parquet(compression="zstd"))
    known = {one.name for one in out}
    for path in folder.everything():
        if path.startswith("part-", path.rfind("/") + 1) and path.rpartition("/")[2].split(".")[0] not in known:
            folder.remove(path)
    return out


def _row(part: stages.Collection) -> bytes:
    """Return everything that a partition needs as JSON."""
    ids = {doc_id for query_id in part.queries for run in part.runs for doc_id in run.top(query_id)}
    return orjson.dumps(
        {
            "queries": list(part.queries.values()),
            "docs": part.docs.get(sorted(ids)),
            "runs": [{"name": run.name, "ties": run.ties.value} | run.frame().to_dict("list") for run in part.runs],
        }
    )


def _collection(content: bytes, config: Config) -> stages.Collection:
    found = orjson.loads(content)
    queries = [
        Query(**{**q, "answers": tuple(q["answers"]), "messages": tuple(q["messages"])}) for q in found["queries"]
    ]
    runs = [Run(one["name"], one["query_id"], one["doc_id"], one["score"], ties=one["ties"]) for one in found["runs"]]
    docs = MemoryDocs(Doc(**doc) for doc in found["docs"])
    by_id = {query.query_id: query for query in queries}
    return stages.Collection(by_id, docs, tuple(runs), config.data.depth, config.data.fields)


def read_done(folder: Folder, name: str, digest: str, *, whole: bool = True) -> dict[str, Any] | None:
    """Return what a finished partition took, else None; to be ``whole`` it may not lack a reply either."""
    text = folder.read(f"done/{name}.json")
    found: dict[str, Any] = {} if text is None else json.loads(text)
    return found if found.get("digest") == digest and not (whole and found["failed"]) else None


class _SegmentStore(Store):
    """A store that hands on what is new in it, every few seconds."""

    def __init__(self, path: str, folder: Folder, name: str) -> None:
        super().__init__(path)
        self._folder, self._name = folder, f"replies/{name}"
        self._new: list[Record] = []
        number, _, of = name.removeprefix("part-").partition("-of-")
        for other in folder.names("replies"):
            its, _, count = other.removeprefix("part-").partition("-of-")
            fewer = min(int(of), int(count))
            if int(its) % fewer == int(number) % fewer:
                for segment in folder.names(f"replies/{other}"):
                    self._take(f"replies/{other}/{segment}")

    def _take(self, name: str) -> None:
        with tempfile.TemporaryDirectory(prefix="judgekit-") as local:
            path, content = Path(local, "segment.jsonl.gz"), self._folder.read(name)
            if content is not None:  # else another worker has put one in the place of several
                path.write_bytes(content)
                import_store(self, path)
        self._new.clear()

    def put_many(self, records: Sequence[Record], *, replace: bool = False) -> dict[str, Reply]:
        """Store records, and keep those that are new for the next segment."""
        kept = super().put_many(records, replace=replace)
        self._new += [record for record in records if record.key not in kept]
        return kept

    def flush(self) -> None:
        """Write a segment with what is new."""
        new, self._new = self._new, []
        try:
            if new:
                self._keep(gzip.compress(b"".join(record.text().encode() + b"\n" for record in new), 1, mtime=0))
        except BaseException:
            self._new = new + self._new
            raise

    def _keep(self, segment: bytes) -> None:
        try:
            self._folder.write(f"{self._name}/{time.time_ns():020}-{uuid.uuid4().hex[:8]}.jsonl.gz", segment)
        except OSError as problem:
            raise StoreError(f"the replies cannot be kept in {self._folder.root}: {problem}") from None

    def join(self) -> None:
        """Write one segment in the place of all of this partition's."""
        there = self._folder.names(self._name)
        if len(there) > 1 or self._new:
            with tempfile.TemporaryDirectory(prefix="judgekit-") as local:
                path = Path(local, "segment.jsonl.gz")
                export_store(self, path)
                self._keep(path.read_bytes())
            for name in there:
                self._folder.remove(f"{self._name}/{name}")


async def run_partition(job: Job, name: str, lease: Lease) -> None:
    """Label, answer and score a partition, unless it is done: the very code that works on a whole pool.

    Raises:
        JudgekitError: as for `judgekit.experiment.run.run`; what was paid for is in the segments.
        CancelledError: everything has to stop.
    """
    folder = Folder(job.folder)
    row = pd.read_parquet(io.BytesIO(folder.read(f"partitions/{name}.parquet") or b"")).iloc[0]
    if read_done(folder, name, row["digest"]):
        return
    config = job.config
    collection = _collection(row["content"], config)
    told: tuple[str, dict[str, Event], list[str]] = (name, {}, [])

    def tell(event: Event) -> None:
        told[1][event.stage] = replace(event, note="")
        told[2].extend([event.note] if event.note else [])

    with tempfile.TemporaryDirectory(prefix="judgekit-") as local:
        store = _SegmentStore(local, folder, name)

        async def flush() -> None:
            while True:
                await asyncio.sleep(config.executor.flush_s)
                await asyncio.to_thread(store.flush)

        try:
            async with Session(store, "on", None, config.price_list(), tell, wait_s=job.wait_s, lease=lease) as session:
                main = asyncio.create_task(_tables(job, collection, session, folder, name))
                beside: set[asyncio.Task[None]] = {asyncio.create_task(flush()), asyncio.create_task(lease.keep(told))}
                try:
                    await asyncio.wait({main, *beside}, return_when=asyncio.FIRST_COMPLETED)
                    for task in beside:
                        if task.done() and not main.done():
                            task.result()  # raises what ended it, or everything has to stop
                            raise asyncio.CancelledError
                    failed = main.result()
                finally:
                    main.cancel()
                    for task in beside:
                        task.cancel()
                    await asyncio.gather(main, *beside, return_exceptions=True)
                    store.flush()
                account = session.account()
                store.join()
        finally:
            store.close()
            await lease.leave(told)
    folder.write(f"done/{name}.json", orjson.dumps({"digest": row["digest"], "failed": failed, "account": account}))


async def _tables(job: Job, collection: stages.Collection, session: Session, folder: Folder, name: str) -> int:
    """Write the tables of a partition; return how many labels and answers have no reply."""
    config = job.config
    labelers, built = programs(config, collection, answers=bool(job.stages))
    answering = dict(zip(job.stages, built.values(), strict=True))
    labelings = []
    failed = 0
    for title, labeler in labelers.items():
        labeling = await stages.label_pool(labeler, collection, session, title)
        labelings.append(labeling)
        failed += labeling.counts()[Status.FAILED.value]
        folder.write_frame(f"labels/{slug(title)}/{name}.parquet", labeling.table)
    for stage, one in answering.items():
        options: dict[str, Any] = {"closed_book": config.answers.closed_book, "stage": stage}
        quality = await stages.answer_runs(one, collection, config.answers.depths, session, **options)
        failed += int((quality["status"] == Status.FAILED.value).sum())
        folder.write_frame(f"answers/{slug(stage)}/{name}.parquet", quality)
    measures = parse_measures(job.measures, config.path.parent)
    scores = stages.score_pool(collection, labelings, measures, config.metrics.missing).scores()
    folder.write_frame(f"scores/{name}.parquet", scores)
    return failed


def collect_tables(
    prepared: Prepared, job: Job, partitions: Sequence[Partition], place: Path
) -> tuple[dict[str, Labeling], dict[str, pd.DataFrame]]:
    """Return the labelings and, by stage, the answers of all partitions, as they are where nothing was divided.

    Labels stay on disk, in ``place``.
    """
    folder = Folder(job.folder)

    def tables(what: str, table: Table) -> Iterator[pd.DataFrame]:
        with tempfile.TemporaryDirectory(prefix="judgekit-") as local:
            for one in partitions:
                path = Path(local, "table.parquet")
                path.write_bytes(folder.read(f"{what}/{one.name}.parquet") or b"")
                yield read_table(table, path)

    labelings = {}
    for name, labeler in prepared.labelers.items():
        with LabelFile(place) as kept:
            for frame in tables(f"labels/{slug(name)}", LABELS):
                kept.add(frame)
            labelings[name] = Labeling.from_table(name, labeler.scale, kept.table(LABELS.empty()))
    quality = {}
    for stage in job.stages:
        frame = pd.concat(tables(f"answers/{slug(stage)}", QUALITY), ignore_index=True)
        quality[stage] = frame.sort_values(["run", "depth", "query_id", "metric"], ignore_index=True)
    return labelings, quality
