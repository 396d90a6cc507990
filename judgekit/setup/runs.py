"""The runs among the files of `judgekit init`, whose ids decide what joins with them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Final

from judgekit.data.checks import check_runs
from judgekit.data.documents import Docs, Queries
from judgekit.data.runs import Run
from judgekit.data.tables import ALL
from judgekit.data.trec import read_run
from judgekit.errors import DataError
from judgekit.setup.inputs import Files, Input

ANSWERED: Final = 5
"""The default number of documents behind an answer."""


@dataclass(frozen=True)
class FoundRuns:
    """Runs and their files by name; only files for those that do not join."""

    runs: Mapping[str, Run]
    files: Mapping[str, Input]

    @property
    def asked_ids(self) -> set[str]:
        """The ids of their questions."""
        return set(chain.from_iterable(run.query_ids for run in self.runs.values()))

    @property
    def longest(self) -> int:
        """The number of documents in the longest list."""
        return max((int(run.counts.max(initial=1)) for run in self.runs.values()), default=ANSWERED)

    def doc_ids(self) -> set[str]:
        """Return the passages behind answers."""
        depth = min(ANSWERED, self.longest)
        return set(chain.from_iterable(run.cut(depth).doc_ids for run in self.runs.values()))

    def of(self, file: Input) -> set[str]:
        """Return the names of the runs in a file."""
        return {name for name in self.runs if self.files[name] is file}

    def joining(self, files: Files, queries: Queries, docs: Docs) -> FoundRuns:
        """Return those that join with questions and passages, and note why others do not."""
        kept: dict[str, Run] = {}
        for name, run in self.runs.items():
            file = self.files[name]
            try:
                check_runs([run], queries, docs)
            except DataError as error:
                files.leave(file, error.reason, f"{file.name} does not join: {error.reason}")
                continue
            most = int(run.counts.max(initial=0))
            file.take("run", f"run {name!r}: {len(run.query_ids):,} questions, up to {most:,} documents each")
            kept[name] = run
        return replace(self, runs=kept)


def read_runs(files: Files) -> FoundRuns:
    """Read the runs."""
    runs: dict[str, Run] = {}
    of: dict[str, Input] = {}
    for file in files.of("run"):
        name = _free_name(file, runs)
        run = files.read(file, "run", partial(read_run, name=name))
        if run is not None:
            runs[name], of[name] = run, file
    return FoundRuns(runs, of)


def _free_name(file: Input, taken: Collection[str]) -> str:
    """Return the name of a file's run, different from others and from the name for all runs."""
    name = file.run or file.stem
    if name == ALL:
        name = "all-runs"
    return file.name if name in taken else name
