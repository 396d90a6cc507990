"""The judgments among the files of `judgekit init`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from judgekit.data.documents import Docs, Queries
from judgekit.data.gold import judged_by, misplaced
from judgekit.data.labelings import Labeling
from judgekit.data.runs import pool
from judgekit.data.trec import read_qrels
from judgekit.setup.inputs import Files, Input
from judgekit.setup.joined import run_with_gold
from judgekit.setup.runs import FoundRuns
from judgekit.spec import slug

_OWN_LABELINGS: Final = ("containment", "judge", "erag")


@dataclass(frozen=True)
class FoundJudgments:
    """Judgments: the file of each by name, with how it names passages (``page``, ``title`` or ""), and the labels."""

    files: Mapping[str, tuple[Input, str]]
    labelings: Sequence[Labeling]


class _Judged(NamedTuple):
    """Judgments that are used: their file, how they name passages, their labels, and the run in whose file they are."""

    file: Input
    expand: str
    labeling: Labeling
    run: str

    @property
    def pairs(self) -> set[tuple[str, str, float]]:
        """Query, doc and grade of each."""
        return {*self.labeling.table[["query_id", "doc_id", "relevance"]].itertuples(index=False, name=None)}


def read_judgments(files: Files, runs: FoundRuns, asked: Queries, docs: Docs, depth: int) -> FoundJudgments:
    """Return the judgments about what runs found, and note why others are left aside."""
    pooled = dict(pool([*runs.runs.values()], asked, depth))
    found: list[_Judged] = []
    for file in sorted(files.of("qrels"), key=lambda file: bool(run_with_gold(file, runs))):
        labeling = files.read(file, "qrels", lambda path: read_qrels(path))
        if labeling is None:
            continue
        judged = labeling.table.groupby("query_id")["doc_id"].agg(set).to_dict()
        about = [query_id for query_id in asked if query_id in judged]
        met = sum(not judged[query_id].isdisjoint(pooled[query_id]) for query_id in about)
        expand = "" if met else _expanded(judged, pooled, about, docs)
        if not about:
            none = "judges none of the questions"
            files.leave(file, f"it {none}", f"{file.name} {none} of the runs")
            continue
        if not met and not expand:
            none = "judges none of the passages that the runs found"
            files.leave(file, f"it {none}", f"{file.name} {none}: are these of the same collection?")
            continue
        new = _Judged(file, expand, labeling, run_with_gold(file, runs))
        # Each export of a tool repeats the gold passages of the data set.
        same = next((other.file for other in found if new.run and other.pairs == new.pairs), None)
        if same is not None:
            file.take("qrels", f"judgments: those of {same.name}")
            continue
        found.append(new)
        by = f", by the {expand} of a passage" if expand else ""
        judgments = f"judgments: {len(about):,} of {len(asked):,} questions, {met or len(about):,} with a"
        file.take("qrels", f"{judgments} judged passage among those that runs found{by}")
        if not expand:
            files.cautions += misplaced(file.name, judged_by(labeling), labeling.scale.threshold, pooled, docs)
    return FoundJudgments(_named(files, found), [judged.labeling for judged in found])


def _named(files: Files, found: Sequence[_Judged]) -> dict[str, tuple[Input, str]]:
    """Return the files of judgments by their names: those in files of runs are gold, and no labels of a run."""
    gold = [judged for judged in found if judged.run]
    if len(gold) > 1:
        files.cautions.append(
            f"the gold passages in {' and '.join(judged.file.name for judged in gold)} differ, so that each file is a"
            " labeler of its own. If only one is right, take the other [[labelers]] out of experiment.toml"
        )
    used: dict[str, tuple[Input, str]] = {}
    for judged in found:
        name = judged.file.stem
        if judged.run:
            name = "gold" if len(gold) == 1 else f"gold-{slug(judged.run)}"
        while name in used or name in _OWN_LABELINGS:
            name += "-qrels"
        used[name] = judged.file, judged.expand
    return used


def _expanded(judged: Mapping[str, set[str]], pooled: Mapping[str, list[str]], of: Iterable[str], docs: Docs) -> str:
    """Return ``page`` or ``title`` if judgments name these, else ""."""
    for query_id in of:
        for doc in docs.get(pooled[query_id]):
            if doc.page_id in judged[query_id]:
                return "page"
            if doc.title in judged[query_id]:
                return "title"
    return ""
