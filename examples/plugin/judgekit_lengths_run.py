"""A step of a run and a command that look at lengths alone: how to write a plug-in."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import judgekit as jk

if TYPE_CHECKING:  # `judgekit --help` imports this file: what is slow to import belongs into the functions
    import pandas as pd

    from judgekit.extend import Prepared, Section, State

FILE = "lengths.csv"
jk.register.spellings("judgekit_lengths")


@jk.register.step(after="label")
class Lengths(jk.Step):
    """Say how long the documents are that each labeling calls relevant."""

    name = "lengths"

    def files(self, prepared: Prepared) -> Iterable[str]:
        """Return the one table that it writes."""
        return [FILE]

    async def do(self, state: State) -> None:
        """Write the table."""
        self.table(state).to_csv(state.folder / FILE, index=False)

    def section(self, state: State) -> Iterable[Section]:
        """Show the table in the report."""
        from judgekit.extend import Section

        yield Section("Lengths", "How many characters documents have, by their label.", self.table(state))

    def table(self, state: State) -> pd.DataFrame:
        """Return labeling, relevance, documents, and how many characters they have in the mean."""
        import pandas as pd

        tables = [labeling.table.assign(labeling=name) for name, labeling in state.labelings.items()]
        pairs = pd.concat(tables, ignore_index=True)
        docs = list(dict.fromkeys(pairs["doc_id"]))
        length = {doc.doc_id: len(doc.text) for doc in state.prepared.collection.docs.get(docs)}
        pairs["characters"] = pairs["doc_id"].map(length)
        means = pairs.groupby(["labeling", "relevance"])["characters"].agg(["size", "mean"])
        return means.round(1).reset_index().rename(columns={"size": "docs", "mean": "characters"})


@jk.register.command("lengths")
def lengths(results: Annotated[Path, typer.Argument(help="Results folder of `judgekit run`.")]) -> None:
    """Show how long the documents are that each labeling calls relevant."""
    if not (results / FILE).is_file():
        raise jk.JudgekitError(f"{results} holds no {FILE}: run the experiment with this plug-in installed")
    typer.echo((results / FILE).read_text(encoding="utf-8"), nl=False)
