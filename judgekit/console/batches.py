"""The results of `--batch submit` and `--batch fetch`, and of the older `judgekit batch`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from judgekit.console.printing import say
from judgekit.console.results import CommandResult

if TYPE_CHECKING:
    from judgekit.client.batch.files import BatchExport, BatchImport
    from judgekit.client.batch.service import Fetched


def submitted_batches(found: BatchExport) -> CommandResult:
    """Return the result of submitting."""
    told = [
        f"{found.requests:,} requests submitted in {len(found.files):,} batches, {found.cached:,} are in the store,"
        f" {found.under_way:,} were submitted before"
    ]
    if found.at_least and found.requests:
        told.append("Replies may lead to more requests: fetch them, then submit again.")
    submitted = {
        "requests": found.requests,
        "batches": len(found.files),
        "cached": found.cached,
        "under_way": found.under_way,
        "at_least": found.at_least,
    }
    return CommandResult(lambda: say(*told), {"submitted": submitted})


def fetched_batches(fetched: Iterable[Fetched], *, as_json: bool) -> CommandResult:
    """Return the result of fetching: the progress of each batch, and the imported replies.

    Each batch is reported as soon as it arrives, since a large one takes minutes and a later one may fail.
    """
    told = _Told(quiet=as_json)
    for result in fetched:
        submission, batch = result.submission, result.batch
        told.say(_progress(result))
        told.missing += result.problems
        row: dict[str, object] = {
            "batch": submission.batch or submission.file,
            "endpoint": result.endpoint.name,
            "model": submission.model,
            "requests": len(submission.keys),
            "status": "unknown" if batch is None else batch.status,
            "imported": 0,
        }
        for imported in result.imports:
            told.add(imported)
            row["imported"] = sum(one.imported for one in result.imports)
        told.batches.append(row)
    if not told.batches:
        told.say("no submitted batch is waiting to be fetched")
    return CommandResult(lambda: None, {"batches": told.batches}, missing=told.missing)


def imported_files(found: Iterable[tuple[str, BatchImport]], *, as_json: bool) -> CommandResult:
    """Return the result of importing result files; each file is reported when imported."""
    told = _Told(quiet=as_json)
    rows: list[dict[str, object]] = []
    for path, imported in found:
        told.say(f"{path}:")
        told.add(imported)
        rows.append({"file": path, "imported": imported.imported, "there": imported.there})
    return CommandResult(lambda: None, {"imported": rows}, missing=told.missing)


@dataclass
class _Told:
    """Reports about batches: requests without a reply, and a row per batch. Nothing is printed if ``quiet``."""

    quiet: bool
    missing: list[str] = field(default_factory=list)
    batches: list[dict[str, object]] = field(default_factory=list)

    def say(self, line: str) -> None:
        """Print a line for people."""
        if not self.quiet:
            say(line)

    def add(self, imported: BatchImport) -> None:
        """Report the imported replies."""
        self.say(f"  {imported.imported:,} replies imported, {imported.there:,} were already stored")
        for sentence in _without_reply(imported):
            self.say(f"  {sentence}")
            self.missing.append(sentence)


def _without_reply(imported: BatchImport) -> Iterator[str]:
    """Yield the requests that have no reply."""
    for line, key, reason in imported.failed:
        yield f"line {line}: no reply to {key[:12]}: {reason}"
    for line, key in imported.unknown:
        yield f"line {line}: {key[:12]} was not exported from this store"


def _progress(fetched: Fetched) -> str:
    """Return the progress of a batch."""
    submission = fetched.submission
    whom = f"{submission.batch or submission.file} ({submission.model} at {fetched.endpoint.name})"
    if fetched.batch is None:
        return f"{whom}: unknown to the service; submit the requests again"
    counts, total = fetched.batch.request_counts, f"{len(submission.keys):,}"
    done = f"{counts.completed:,} of {total} done, {counts.failed:,} failed" if counts else f"0 of {total} done"
    return "\n  ".join([f"{whom}: {fetched.batch.status}, {done}", *fetched.problems])
