"""Writes docs/study.md, its figures, its tables (studies/tables.md) and its table of pairs: `make study`."""

from __future__ import annotations

import sys
from itertools import chain
from pathlib import Path
from typing import Final

from studies import page, sections, small_model
from studies.source import COMMITS, SourceError

TABLES: Final = Path(__file__).with_name("tables.md")
LICENCES: Final = {
    "bbucksch/RAGs-for-Complex-QA": "Apache-2.0",
    "webis-de/clef24-mibi-bioasq-": "MIT",
    "TonicAI/tonic_validate": "MIT",
    "chaitanyamalaviya/ExpertQA": "MIT",
}


def pages() -> dict[Path, str]:
    """Write the figures and the table of pairs, and return the page of the studies and that of their tables."""
    found = sections.Found.read()
    page.numbers(found.pairs, "study-pairs.csv")
    study = chain(
        ["# Studies on public data"],
        sections.headline(found),
        sections.judging(),
        sections.choosing(found),
        sections.indexes(found),
        sections.twice(found),
        sections.snippets(),
        sections.construction(found),
        sections.unanswerable(),
        sections.usefulness(),
        small_model.place(),
        sections.gap(),
        sections.method(),
    )
    credit = [
        (f"[{repo}](https://github.com/{repo}/tree/{commit})", commit[:7], LICENCES.get(repo, "none stated"))
        for repo, commit in COMMITS.items()
    ]
    tables = chain(
        [
            "# Tables of the studies",
            "`make study` writes this page. [The studies](../docs/study.md) say what follows and define the words."
            " Brackets hold 95 % intervals.",
        ],
        sections.repositories(found),
        sections.gains(found),
        sections.prompts(found),
        sections.constructed(found),
        sections.judged_by_people(),
        sections.little(found),
        small_model.replies(),
        sections.collections(),
        [
            "## Sources",
            "The data are fetched when the studies are run, checked by their SHA-256, and none are kept here. BioASQ's"
            " questions are CC BY 2.5.",
            page.table(["repository", "commit", "licence"], credit),
        ],
    )
    return {path: "\n\n".join(parts) + "\n" for path, parts in ((page.DOCS / "study.md", study), (TABLES, tables))}


if __name__ == "__main__":
    try:
        written = pages()
    except SourceError as error:
        sys.exit(str(error))
    for path, text in written.items():
        path.write_text(text)
