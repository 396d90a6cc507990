"""The base of a run's steps, and the state that they share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from judgekit.data.manifest import mismatches

if TYPE_CHECKING:
    import pandas as pd

    from judgekit.analysis.agreement import Agreement
    from judgekit.analysis.comparison import Comparison
    from judgekit.analysis.primary import Primary
    from judgekit.client.budget import Amount
    from judgekit.client.session import Session
    from judgekit.client.stages import StageUnit
    from judgekit.data.labelings import Labeling
    from judgekit.data.manifest import InputFile
    from judgekit.data.result_files import ResultFiles
    from judgekit.experiment.prepare import Prepared
    from judgekit.metrics import Evaluation, Measure
    from judgekit.progress import Progress
    from judgekit.report import Results
    from judgekit.report.model import Section


_MIXED: Final = (
    "Ask one of the models again (`judgekit cache forget --model NAME`, then run), or accept the mix with"
    " accept_mixed_models = true under [analysis]."
)


@dataclass
class State:
    """A run in progress: its inputs, and the results of each finished step.

    Attributes:
        prepared: the experiment, read and checked.
        files: the files that the run may write.
        session: the session that sends all requests.
        progress: called with events.
        warnings: lines for the report, shown before those of the steps.
        labelings: by name; set by the step ``label``.
        quality: the quality table; set by ``answer``.
        evaluation, scores, comparison, agreed: set by ``compare``.
        results: what the report shows; set by ``report``.
    """

    # These exist from the start. Steps set the rest; reading it too early is an AttributeError.
    prepared: Prepared
    files: ResultFiles
    session: Session
    progress: Progress
    warnings: list[str] = field(init=False)
    labelings: dict[str, Labeling] = field(init=False)
    quality: pd.DataFrame = field(init=False)
    evaluation: Evaluation = field(init=False)
    scores: pd.DataFrame = field(init=False)
    comparison: Comparison = field(init=False)
    agreed: Agreement = field(init=False)
    results: Results = field(init=False)

    def __post_init__(self) -> None:
        self.warnings = [*mismatches(self.inputs), *self.prepared.collection.notes]

    @property
    def folder(self) -> Path:
        """The folder of the results."""
        return self.files.place

    @property
    def inputs(self) -> Mapping[str, InputFile]:
        """The files that were read, by role."""
        return self.files.inputs

    @property
    def cell(self) -> Primary:
        """What the decision is about."""
        return self.comparison.primary

    @property
    def mix(self) -> str:
        """Why mixed models under one name rule out a decision; "" if models are not mixed or mixing is accepted."""
        # A server that swaps the model behind a name during a run splits one outcome into two.
        mixed = self.session.mixed()
        if self.prepared.config.analysis.accept_mixed_models or not mixed:
            return ""
        return f"{'; '.join(mixed)}. {_MIXED}"

    def answered(self) -> pd.DataFrame:
        """Return the quality that the decision is about, for every run and mode."""
        cell, rows = self.cell, self.quality
        return rows[(rows["model"] == cell.model) & (rows["metric"] == cell.metric) & (rows["depth"] == cell.depth)]

    def first_mode(self) -> pd.DataFrame:
        """Return the quality that the decision is about, for every run in the first mode only."""
        from judgekit.analysis.modes import of_mode

        return of_mode(self.answered())

    def score(self, measures: Sequence[Measure]) -> Evaluation:
        """Return the runs' scores under the labelings by these measures."""
        from judgekit.scoring import score_pool

        return score_pool(self.prepared.collection, list(self.labelings.values()), measures)

    def taken(self, stage: str) -> Amount:
        """Return the cost of a stage's answers at the depth of the decision."""
        from judgekit.answering import stage_at_depth

        return self.session.usage(stage_at_depth(stage, self.cell.depth)).standalone


class Step:
    """The base of all steps: a name and four methods. Override the ones that you need.

    Add your own class with ``@judgekit.register.step(after="answer")``.
    """

    name: ClassVar[str]

    def asks(self, prepared: Prepared) -> Mapping[str, Callable[[], Iterator[StageUnit]]]:
        """Return the requests to LLMs, by stage, as functions that yield programs and units.

        Dry runs count them, parts send their share of them, and batch files hold them.
        """
        return {}

    def files(self, prepared: Prepared) -> Iterable[str]:
        """Return the names of all files that the step may write into the results folder."""
        return ()

    async def do(self, state: State) -> None:
        """Do the step: ask ``state.session``, write the files, fill in what the next steps need."""

    def section(self, state: State) -> Iterable[Section]:
        """Return the step's sections of the report."""
        return ()
